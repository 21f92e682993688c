//! The card of a plan, from what the driver says of a device.

use super::seen::Card;
use crate::card::{Placed, place};
use crate::{Gpu, Unknown};
use dualplane_base::gpu::{Gpu as Known, find};
use dualplane_base::units::{Bytes, GIB};

/// Where a driver does not tell what it reserves, a known total is taken if it is so near to the driver's.
const NEAR: f64 = 0.03;

/// A device of the driver as a card of plans. CUDA reports as total what the driver calls total, less what it reserves:
/// 81,559 - 479 MiB are the 79.18 GiB that engines print on an H100.
///
/// # Errors
/// Why it cannot be one: no memory of its own, or no CUDA.
pub(super) fn of(card: &Card, parent: Option<&Card>, known: &[Known]) -> Result<Placed, String> {
    let Some(Bytes(total)) = card.total.filter(|t| t.0 > 0) else {
        return Err(format!(
            "the driver does not report the memory of {}: the GPU shares host memory, or the driver does \
            not respond",
            card.name
        ));
    };
    let own = parent.map_or(card.name.as_str(), |p| p.name.as_str());
    let base = own.split_once(" MIG ").map_or(own, |(base, _)| base);
    let profile = card.name.split_once(" MIG ").map(|(_, p)| p).or(parent.map(|_| card.name.as_str()));
    let found = find(known, base);
    let mut unknown = Vec::new();
    let reported = match card.reserved {
        Some(Bytes(reserved)) => total.saturating_sub(reserved),
        None => {
            let torch = found.filter(|_| parent.is_none()).and_then(|c| c.torch_total_gib);
            let near = torch
                .map(|gib| gib * GIB as f64)
                .filter(|t| (t - total as f64).abs() <= NEAR * total as f64 && *t <= total as f64);
            if near.is_none() {
                unknown.push(Unknown {
                    what: format!(
                        "the total that CUDA reports for {}: assumed the driver's {}",
                        card.name,
                        Bytes(total)
                    ),
                    settle: "--gpu-memory with the value from torch.cuda.mem_get_info(), which is 0 to \
                    1.5 % lower"
                        .into(),
                });
            }
            near.map_or(total, |t| t as u64)
        }
    };
    let mut placed = match found {
        Some(c) => {
            let slice = profile.filter(|p| c.mig.iter().any(|m| m.profile.eq_ignore_ascii_case(p)));
            let name = slice.map_or_else(|| c.id.clone(), |p| format!("{}:{p}", c.id));
            place(known, Some(&name), Some(Bytes(reported))).map_err(|e| e.to_string())?
        }
        None => {
            let mut p = place(&[], None, Some(Bytes(reported))).map_err(|e| e.to_string())?;
            if card.capability.is_some() {
                p.unknown.clear();
            }
            p.gpu.name.clone_from(&card.name);
            p
        }
    };
    placed.unknown.extend(unknown);
    let capability = card.capability.unwrap_or(placed.gpu.capability);
    placed.gpu = Gpu { device_name: card.name.clone(), capability, ..placed.gpu };
    Ok(placed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::card::embedded;
    use dualplane_base::units::MIB;

    fn card(name: &str, total: u64, reserved: Option<u64>) -> Card {
        Card {
            name: name.into(),
            total: Some(Bytes(total * MIB)),
            reserved: reserved.map(|r| Bytes(r * MIB)),
            ..Card::default()
        }
    }

    #[test]
    fn the_driver_says_which_card_and_how_large() {
        let known = embedded().unwrap();
        let p = of(&card("NVIDIA H100 80GB HBM3", 81_559, Some(479)), None, &known).unwrap();
        assert_eq!(
            (p.gpu.name.as_str(), p.gpu.total_bytes, p.gpu.capability),
            ("H100-80GB", 81_080 * MIB, (9, 0))
        );
        assert_eq!((p.gpu.device_name.as_str(), p.unknown.len()), ("NVIDIA H100 80GB HBM3", 0));
        // An older driver: the total that engines print for this card.
        let p = of(&card("NVIDIA H100 80GB HBM3", 81_559, None), None, &known).unwrap();
        assert_eq!((p.gpu.total_bytes, p.unknown.len()), ((79.19 * GIB as f64) as u64, 0));
        // A limit of the driver makes a card smaller than it is called.
        let p = of(&card("NVIDIA H100 80GB HBM3", 40_000, None), None, &known).unwrap();
        assert_eq!((p.gpu.total_bytes, p.unknown.len()), (40_000 * MIB, 1));
    }

    #[test]
    fn slices_unheard_of_cards_and_none() {
        let known = embedded().unwrap();
        let parent = card("NVIDIA H100 80GB HBM3", 81_559, Some(479));
        for name in ["NVIDIA H100 80GB HBM3 MIG 1g.10gb", "1g.10gb"] {
            let p = of(&card(name, 9984, Some(16)), Some(&parent), &known).unwrap();
            assert_eq!((p.gpu.name.as_str(), p.gpu.total_bytes), ("H100-80GB:1g.10gb", 9968 * MIB), "{name}");
        }
        let odd = of(&card("NVIDIA H100 80GB HBM3 MIG 9g.1gb", 9984, None), Some(&parent), &known).unwrap();
        assert_eq!((odd.gpu.name.as_str(), odd.gpu.total_bytes), ("H100-80GB", 9984 * MIB));
        let new = Card { capability: Some((13, 0)), ..card("NVIDIA Z900\u{1b}[2J", 1000, Some(0)) };
        let p = of(&new, None, &known).unwrap();
        assert_eq!((p.gpu.capability, p.unknown.len()), ((13, 0), 0));
        assert_eq!(of(&Card { capability: None, ..new }, None, &known).unwrap().unknown.len(), 1);
        assert!(of(&Card { total: None, ..parent }, None, &known).is_err());
        assert!(of(&card("AMD Instinct MI300X", 1000, None), None, &known).is_err());
    }
}
