//! The card that a name like `H100-80GB` or `A100-80GB:2g.20gb` means.

mod names;

use super::gpu::Gpu;
use super::outcome::PlanError;
use super::quantity::{Quantity, Unknown};
use dualplane_base::gpu::{Gpu as Card, MigProfile, find};
use dualplane_base::packed::Block;
use dualplane_base::units::{Bytes, GIB};
pub use names::{Known, Machine, list, machine, machines};

/// Where only a size is given, the attention kernels of the commonest server cards are taken.
const ASSUMED_CAPABILITY: (u32, u32) = (9, 0);

/// What an operating system takes of a pool that it shares with the card, where the catalogue has no figures, in GiB.
const HOST_USE_GIB: (f64, f64, f64) = (1.0, 4.0, 16.0);

/// A card for a plan, and what is not known about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placed {
    /// The card.
    pub gpu: Gpu,
    /// What its figures leave open.
    pub unknown: Vec<Unknown>,
}

static TEXT: Block = include!(concat!(env!("OUT_DIR"), "/gpus.rs"));

/// The embedded cards.
///
/// # Errors
/// When the embedded text does not parse, which the tests of this crate exclude.
pub fn embedded() -> Result<Vec<Card>, serde_json::Error> {
    serde_json::from_str(TEXT.text())
}

/// As [`place`], and AMD's server cards too, with what that leaves open: an estimate for a person, never a check.
///
/// # Errors
/// As [`place`].
pub fn place_roughly(cards: &[Card], name: Option<&str>, memory: Option<Bytes>) -> Result<Placed, PlanError> {
    match name {
        Some(name) if is_cpu(name) => cpu(memory),
        Some(name) => named(cards, name, memory, true),
        None => place(cards, None, memory),
    }
}

/// The card of a catalogue name, with a total of one's own where `memory` is given; or a nameless card of that size.
///
/// # Errors
/// [`PlanError::Contradiction`] where the name is not known or the slice is none of the card's,
/// [`PlanError::Unsupported`] where the card has no arithmetic here.
pub fn place(cards: &[Card], name: Option<&str>, memory: Option<Bytes>) -> Result<Placed, PlanError> {
    match (name, memory) {
        (Some(name), _) if is_cpu(name) => cpu(memory),
        (Some(name), _) => named(cards, name, memory, false),
        (None, Some(Bytes(total_bytes))) => {
            let capability = ASSUMED_CAPABILITY;
            let label = format!("a card of {}", Bytes(total_bytes));
            let unknown = Unknown {
                what: format!("the GPU's compute capability; assumed {}.{}", capability.0, capability.1),
                settle: "also name the GPU with --gpu".into(),
            };
            let gpu =
                Gpu { name: label.clone(), device_name: label, total_bytes, capability, host_use: None };
            Ok(Placed { gpu, unknown: vec![unknown] })
        }
        (None, None) => Err(PlanError::contradiction("--gpu", "neither a GPU nor a size was given")),
    }
}

fn is_cpu(name: &str) -> bool {
    name.trim().eq_ignore_ascii_case("cpu")
}

/// The host instead of a card: its RAM counts.
fn cpu(memory: Option<Bytes>) -> Result<Placed, PlanError> {
    let Some(Bytes(total)) = memory else {
        return Err(PlanError::contradiction("--gpu", "cpu: give the node's RAM with --gpu-memory"));
    };
    Ok(Placed { gpu: Gpu::of_host(total), unknown: Vec::new() })
}

fn named(cards: &[Card], name: &str, memory: Option<Bytes>, rocm: bool) -> Result<Placed, PlanError> {
    let (base, slice) = match name.split_once(':') {
        Some((base, slice)) => (base, Some(slice.trim())),
        None => match name.split_once("-MIG-") {
            Some((base, slice)) => (base, Some(slice)),
            None => (name, None),
        },
    };
    let meant = machine(base).card;
    let Some(card) = find(cards, base).or_else(|| find(cards, &meant)) else {
        // A profile is a share of a card, and not of the same size on each.
        let cut: Vec<String> = cards
            .iter()
            .filter_map(|c| Some(format!("{}:{}", c.id, profile(c, base).ok()?.profile)))
            .collect();
        if !cut.is_empty() {
            let why = format!("`{base}` is a share of a GPU; say of which: {}", cut.join(", "));
            return Err(PlanError::contradiction("--gpu", why));
        }
        return Err(PlanError::contradiction(
            "--gpu",
            format!("`{base}` is not in the catalogue{}", near(cards, base)),
        ));
    };
    let mut unknown = Vec::new();
    let capability = capability(card, rocm, &mut unknown)?;
    let profile = slice.map(|s| profile(card, s)).transpose()?;
    let total_bytes = match (memory, profile) {
        (Some(Bytes(given)), _) => given,
        (None, Some(p)) => slice_bytes(card, p, &mut unknown)?,
        (None, None) => card_bytes(card, &mut unknown)?,
    };
    let host_use = card.unified_memory.then(|| shared(card, &mut unknown));
    let device = card.names.first().unwrap_or(&card.id);
    let (name, device_name) = match profile {
        Some(p) => (format!("{}:{}", card.id, p.profile), format!("{device} MIG {}", p.profile)),
        None => (card.id.clone(), device.clone()),
    };
    Ok(Placed { gpu: Gpu { name, device_name, total_bytes, capability, host_use }, unknown })
}

/// What the host takes of a pool that it shares with the card.
fn shared(card: &Card, unknown: &mut Vec<Unknown>) -> Quantity {
    let (low, usual, high) = card.host_use_gib.unwrap_or(HOST_USE_GIB);
    let bytes = |gib: f64| (gib * GIB as f64) as u64;
    unknown.push(Unknown {
        what: format!(
            "what the host itself takes of the memory that {} shares with it: assumed {low} to {high} GiB",
            card.id
        ),
        settle: "--free-gpu-memory with MemAvailable of /proc/meminfo, before the start".into(),
    });
    Quantity::band(bytes(low), bytes(usual), bytes(high))
}

fn near(cards: &[Card], name: &str) -> String {
    let letters: String = name.chars().filter(char::is_ascii_alphanumeric).take(2).collect();
    let ids: Vec<&str> = cards
        .iter()
        .filter(|c| {
            !letters.is_empty() && c.id.to_ascii_lowercase().starts_with(&letters.to_ascii_lowercase())
        })
        .map(|c| c.id.as_str())
        .collect();
    let alike = dualplane_base::near::near(name, cards.iter().map(|c| c.id.as_str()));
    match (alike.as_slice(), ids.as_slice()) {
        ([], []) => "; give its size with --gpu-memory and no --gpu".into(),
        ([], near) | (near, _) => format!(
            "; near: {}; or give its size with --gpu-memory and no --gpu",
            near.iter().take(6).copied().collect::<Vec<_>>().join(", ")
        ),
    }
}

fn capability(card: &Card, rocm: bool, unknown: &mut Vec<Unknown>) -> Result<(u32, u32), PlanError> {
    let text = card.compute_capability.as_deref().unwrap_or_default();
    // Weights, pages and shares are the same code on ROCm; attention back ends and workspaces are others.
    if rocm && ["gfx90a", "gfx942", "gfx950"].contains(&text) {
        unknown.push(Unknown {
            what: format!(
                "what ROCm builds do differently on {}: weights and cache are the engine's own on any GPU, while activations, \
                 graphs and memory outside PyTorch are those of CUDA",
                card.id
            ),
            settle: "start once, then use --from-log with the log, or --available-kv with the printed size".into(),
        });
        return Ok(if text == "gfx90a" { (8, 0) } else { ASSUMED_CAPABILITY });
    }
    let parts = text.split_once('.').and_then(|(a, b)| Some((a.parse().ok()?, b.parse().ok()?)));
    parts.ok_or_else(|| {
        PlanError::unsupported(format!("{}: only CUDA GPUs are supported; this one is {text}", card.id))
    })
}

fn profile<'a>(card: &'a Card, name: &str) -> Result<&'a MigProfile, PlanError> {
    let lower = name.to_ascii_lowercase();
    let wanted =
        lower.trim_start_matches("nvidia.com/").trim_start_matches("mig-").trim_start_matches("mig ");
    card.mig.iter().find(|p| p.profile.eq_ignore_ascii_case(wanted)).ok_or_else(|| {
        let all: Vec<&str> = card.mig.iter().map(|p| p.profile.as_str()).collect();
        let have = if all.is_empty() {
            "it does not support MIG".to_owned()
        } else {
            format!("its profiles are {}", all.join(", "))
        };
        PlanError::contradiction("--gpu", format!("{} has no MIG profile `{name}`: {have}", card.id))
    })
}

fn card_bytes(card: &Card, unknown: &mut Vec<Unknown>) -> Result<u64, PlanError> {
    if let Some(gib) = card.torch_total_gib {
        if let Some((low, high)) = card.torch_total_seen_gib.filter(|(l, h)| h - l > 0.2) {
            unknown.push(Unknown {
                what: format!("the GPU's total memory: logs show {low} to {high} GiB; assumed {gib}"),
                settle: "--gpu-memory with the value printed by the engine or \
                torch.cuda.mem_get_info()"
                    .into(),
            });
        }
        return Ok((gib * GIB as f64) as u64);
    }
    let Some(Bytes(total)) = card.total() else {
        return Err(PlanError::contradiction(
            "--gpu",
            format!("the catalogue has no size for {}; give --gpu-memory", card.id),
        ));
    };
    unknown.push(Unknown {
        what: format!(
            "the total that CUDA reports for {}: assumed nvidia-smi's {}, minus the driver's reserve if \
            known",
            card.id,
            Bytes(total)
        ),
        settle: "--gpu-memory with the value from torch.cuda.mem_get_info(), which is 0 to 1.5 % \
        lower"
            .into(),
    });
    Ok(total.saturating_sub(card.reserved_mib.unwrap_or(0) << 20))
}

fn slice_bytes(card: &Card, profile: &MigProfile, unknown: &mut Vec<Unknown>) -> Result<u64, PlanError> {
    if profile.mib.is_none() {
        unknown.push(Unknown {
            what: format!(
                "the size of {}:{}: computed from its slices, which is an upper bound",
                card.id, profile.profile
            ),
            settle: "--gpu-memory with the values from nvidia-smi -L and torch.cuda.mem_get_info()".into(),
        });
    }
    card.mig_size(profile).map(|b| b.0).ok_or_else(|| {
        PlanError::contradiction(
            "--gpu",
            format!("the size of {}:{} is unknown; give --gpu-memory", card.id, profile.profile),
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// No card's id or name is another's, so that it does not matter which way it is found.
    #[test]
    fn a_card_is_found_by_its_id_and_names_however_they_are_spelt() {
        let cards = embedded().unwrap();
        assert!(cards.len() > 50);
        for c in &cards {
            let spelt =
                [c.id.clone(), c.id.to_ascii_lowercase(), c.id.replace('-', " "), format!("{} ", c.id)];
            for name in spelt.iter().chain(&c.names) {
                assert_eq!(find(&cards, name).map(|found| &found.id), Some(&c.id), "{name}");
            }
        }
    }

    /// A profile alone, as a resource of Kubernetes names it, is a share of each card that has one of that name.
    #[test]
    fn a_share_without_its_card_is_told_whose_it_may_be() {
        assert!(TEXT.is_whole());
        let cards = embedded().unwrap();
        let mut seen = 0;
        for (card, p) in cards.iter().flat_map(|c| c.mig.iter().map(move |p| (c, p))) {
            let whole = format!("{}:{}", card.id, p.profile);
            for name in [p.profile.clone(), format!("nvidia.com/mig-{}", p.profile)] {
                let said = place(&cards, Some(&name), None).unwrap_err().to_string();
                assert!(said.contains(&whole), "{name}: {said}");
                seen += 1;
            }
            let placed = place(&cards, Some(&whole), None);
            assert!(placed.map_or_else(|e| e.to_string().contains("size"), |_| true), "{whole}");
        }
        assert!(seen > 20);
    }

    #[test]
    fn names_are_forgiving_and_slices_have_their_own_size() {
        let cards = embedded().unwrap();
        let of = |name: &str| {
            place(&cards, Some(name), None).map(|p| (p.gpu.name, p.gpu.total_bytes, p.gpu.capability))
        };
        assert_eq!(of("h100-80gb").unwrap(), ("H100-80GB".into(), (79.19 * GIB as f64) as u64, (9, 0)));
        assert_eq!(of("NVIDIA H100 80GB HBM3").unwrap().0, "H100-80GB");
        assert_eq!(of("A100-80GB:2g.20gb").unwrap(), ("A100-80GB:2g.20gb".into(), 19_968 << 20, (8, 0)));
        assert_eq!(of("rtx pro 6000").unwrap().2, (12, 0));
        for (bad, why) in [
            ("H1000", "not in the catalogue"),
            ("A100-80GB:9g.1gb", "its profiles are"),
            ("L4:1g.1gb", "no MIG"),
            ("MI300X", "gfx942"),
            ("Gaudi-3", "gaudi3"),
            ("MI300A", "gfx942"),
        ] {
            assert!(of(bad).unwrap_err().to_string().contains(why), "{bad}");
        }
    }

    #[test]
    fn every_card_says_its_source_and_amd_s_what_rocm_leaves_open() {
        let cards = embedded().unwrap();
        for card in &cards {
            assert!(card.source.len() > 10, "{} says no source", card.id);
        }
        let mi300 = place_roughly(&cards, Some("MI300X"), None).unwrap();
        assert!(mi300.unknown.iter().any(|u| u.what.contains("ROCm")));
    }

    #[test]
    fn a_size_of_ones_own_wins() {
        let cards = embedded().unwrap();
        let given = Some(Bytes(79 * GIB));
        assert_eq!(place(&cards, Some("H100-80GB"), given).unwrap().gpu.total_bytes, 79 * GIB);
        let nameless = place(&cards, None, given).unwrap();
        assert_eq!((nameless.gpu.total_bytes, nameless.unknown.len()), (79 * GIB, 1));
    }

    #[test]
    fn every_cuda_card_can_be_placed() {
        for card in embedded().unwrap() {
            let cards = [card];
            let card = &cards[0];
            if card.compute_capability.as_deref().is_some_and(|c| c.contains('.')) && card.total_mib.is_some()
            {
                assert!(place(&cards, Some(&card.id), None).is_ok(), "{}", card.id);
            }
        }
    }
}
