//! What people call cards, and the machines of clouds that have some: `2xA100-80GB`, `p4d.24xlarge`, `h100-sxm`.

use dualplane_base::gpu::Gpu as Card;
use dualplane_base::packed::Block;

/// Machines of clouds and short names of cards, a line each: name, card, how many, and where that is written; 0 and nothing
/// for what is only a name of a card.
static MACHINES: Block = include!(concat!(env!("OUT_DIR"), "/machines.rs"));

/// What the lines say.
fn all_machines() -> impl Iterator<Item = Known> {
    MACHINES.text().lines().filter_map(|line| {
        let mut fields = line.split('\t');
        Some((fields.next()?, fields.next()?, fields.next()?.parse().ok()?, fields.next()?))
    })
}

/// What a name means: `2xA100-80GB`, `p4d.24xlarge` and `h100-sxm` are cards, and some say how many.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Machine {
    /// A name that [`place`](super::place) takes.
    pub card: String,
    /// Cards of the machine, where the name tells.
    pub count: Option<u64>,
}

/// Names of machines that are known, with their cards and the documentation that lists them.
pub fn machines() -> impl Iterator<Item = Known> {
    all_machines().filter(|(_, _, n, _)| *n > 0)
}

/// A machine as [`machines`] gives it.
pub type Known = (&'static str, &'static str, u64, &'static str);

/// Without case and separators.
fn plain(name: &str) -> String {
    name.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect()
}

/// The cards and machines of which a pattern is a part of a name, whatever its case and separators; all for an empty one.
/// A machine comes with its card, and a card with its machines.
#[must_use]
pub fn list<'a>(cards: &'a [Card], pattern: &str) -> (Vec<&'a Card>, Vec<Known>) {
    let want = plain(pattern);
    // Of a pattern that is only signs nothing is a part.
    if want.is_empty() && !pattern.trim().is_empty() {
        return (Vec::new(), Vec::new());
    }
    let has = |t: &str| plain(t).contains(&want);
    let named = |c: &Card| has(&c.id) || c.names.iter().any(|n| has(n));
    let of_machine: Vec<&str> = machines().filter(|(n, ..)| has(n)).map(|(_, card, ..)| card).collect();
    let found: Vec<&Card> =
        cards.iter().filter(|c| named(c) || of_machine.contains(&c.id.as_str())).collect();
    let own = |card: &str| cards.iter().any(|c| c.id == card && named(c));
    (found, machines().filter(|(n, card, ..)| has(n) || own(card)).collect())
}

/// Reads a name as people write it.
#[must_use]
pub fn machine(name: &str) -> Machine {
    // A resource of Kubernetes: its share is all that it says.
    let name = name.trim();
    let name = name.strip_prefix("nvidia.com/mig-").unwrap_or(name);
    let (count, rest) = counted(name);
    // `H100:8`, as SkyPilot writes it; slices have a letter in their names.
    let (count, rest) = match rest.rsplit_once(':').map(|(card, n)| (card.trim(), n.trim().parse::<u64>())) {
        Some((card, Ok(n))) if (1..=64).contains(&n) => (Some(n.saturating_mul(count.unwrap_or(1))), card),
        _ => (count, rest),
    };
    let same = |a: &str, b: &str| plain(a) == plain(b);
    let (base, slice) = match rest.split_once(':').or_else(|| behind(rest)) {
        Some((base, slice)) => (base, Some(slice)),
        None => (rest, None),
    };
    let bare = base.trim().trim_start_matches("NVIDIA ").trim_start_matches("nvidia ");
    // SageMaker's name of a machine of EC2.
    let bare = bare.strip_prefix("ml.").unwrap_or(bare);
    // Azure's sizes are said without their first word too.
    let azure = |n: &str| n.strip_prefix("Standard_").is_some_and(|n| same(n, bare));
    match all_machines().find(|(n, ..)| same(n, bare) || same(n, base) || azure(n)) {
        Some((_, card, n, _)) => Machine {
            card: slice.map_or_else(|| card.to_owned(), |s| format!("{card}:{s}")),
            count: if n > 0 { Some(n.saturating_mul(count.unwrap_or(1))) } else { count },
        },
        None => Machine { card: slice.map_or_else(|| rest.to_owned(), |s| format!("{base}:{s}")), count },
    }
}

/// `H100 1g.10gb`: a card and a slice of it.
fn behind(name: &str) -> Option<(&str, &str)> {
    let (base, slice) = name.trim().rsplit_once([' ', '-'])?;
    let (compute, memory) = slice.split_once("g.")?;
    let number = |t: &str| !t.is_empty() && t.chars().all(|c| c.is_ascii_digit());
    let base = base.trim().trim_end_matches("MIG").trim_end_matches(['-', ' ']);
    (number(compute) && memory.split_once("gb").is_some_and(|(n, _)| number(n)) && !base.is_empty())
        .then_some((base, slice))
}

/// `2xA100`, `2 × A100`, `A100 x2`: how many, and of what.
fn counted(name: &str) -> (Option<u64>, &str) {
    let cross = |c: char| matches!(c, 'x' | 'X' | '×' | '*');
    let digits = name.find(|c: char| !c.is_ascii_digit()).unwrap_or(0);
    if let Some((n, rest)) = name.split_at_checked(digits)
        && let Ok(n) = n.parse::<u64>()
        && let Some(card) = rest.trim_start().strip_prefix(cross)
        && (1..=4096).contains(&n)
    {
        return (Some(n), card.trim());
    }
    if let Some((card, n)) = name.rsplit_once(cross)
        && let Ok(n) = n.trim().parse::<u64>()
        && card.ends_with([' ', '-', '_'])
        && (1..=4096).contains(&n)
    {
        return (Some(n), card.trim_end_matches([' ', '-', '_']));
    }
    (None, name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::card::embedded;
    use dualplane_base::gpu::find;

    #[test]
    fn a_pattern_finds_cards_and_machines_by_a_part_of_their_names() {
        let cards = embedded().unwrap();
        let ids = |p: &str| list(&cards, p).0.iter().map(|c| c.id.clone()).collect::<Vec<_>>();
        let names = |p: &str| list(&cards, p).1.iter().map(|(n, ..)| *n).collect::<Vec<_>>();
        assert_eq!(list(&cards, "").0.len(), cards.len());
        assert!(ids("h100").len() > 1 && ids("h100").iter().all(|i| !i.starts_with("A100")));
        assert_eq!(names("P4D.24"), ["p4d.24xlarge"]);
        assert!(ids("p4d.24xlarge").iter().all(|i| i.starts_with("A100")) && ids("p4d.24xlarge").len() == 1);
        assert!(names("h100").contains(&"p5.48xlarge"));
        assert!(ids("no such card").is_empty() && ids("--").is_empty());
    }

    #[test]
    fn machines_and_short_names_are_cards() {
        let of = |name: &str| {
            let m = machine(name);
            (m.card, m.count)
        };
        for (name, card, count) in [
            ("H100", "H100-80GB", None),
            ("h100-sxm", "H100-80GB", None),
            ("p4d.24xlarge", "A100-40GB", Some(8)),
            ("a2-highgpu-8g", "A100-40GB", Some(8)),
            ("Standard_NC24ads_A100_v4", "A100-80GB", Some(1)),
            ("2xA100-80GB", "A100-80GB", Some(2)),
            ("4 x H100", "H100-80GB", Some(4)),
            ("L40S x8", "L40S", Some(8)),
            ("2xp5.48xlarge", "H100-80GB", Some(16)),
            ("a100:2g.20gb", "A100-80GB:2g.20gb", None),
            ("RTX-3090", "RTX-3090", None),
            ("3090", "RTX-3090", None),
            ("H100:8", "H100-80GB", Some(8)),
            ("L4:2", "L4", Some(2)),
            ("H100 1g.10gb", "H100-80GB:1g.10gb", None),
            ("NVIDIA-A100-SXM4-40GB-MIG-2g.10gb", "NVIDIA-A100-SXM4-40GB:2g.10gb", None),
            ("ml.g5.12xlarge", "A10G", Some(4)),
            ("ND96isr_H100_v5", "H100-80GB", Some(8)),
            ("gpu_8x_h100_sxm5", "H100-80GB", Some(8)),
            ("Arc B580", "Intel-Arc-B580", None),
        ] {
            assert_eq!(of(name), (card.to_owned(), count), "{name}");
        }
        assert!(MACHINES.is_whole());
        let cards = embedded().unwrap();
        assert_eq!(all_machines().count(), MACHINES.text().lines().count());
        for (name, card, ..) in all_machines() {
            assert!(find(&cards, card).is_some(), "{name}: {card}");
        }
        for (name, _, _, source) in machines() {
            assert!(source.starts_with("https://"), "{name} says no source");
        }
    }
}
