//! Ids that are near to one that is not known: by its letters, and by the size that it says.

use dualplane_base::near::distance;
use dualplane_base::order::Order as _;

use super::{CATALOGUE, COPIERS, CatalogueEntry, bare, ids, name_of, normal};

/// Sizes as far apart are called the same: 7 and 8 billion are not, 70 and 72 are.
const ALIKE: f64 = 1.06;

/// `14B`, `1.5b`, `500M`: parameters.
#[must_use]
pub fn parameters(text: &str) -> Option<u64> {
    let text = text.trim();
    let (number, factor) = match text.char_indices().next_back()? {
        (i, 'b' | 'B') => (text.get(..i)?, 1e9),
        (i, 'm' | 'M') => (text.get(..i)?, 1e6),
        (i, 't' | 'T') => (text.get(..i)?, 1e12),
        _ => return None,
    };
    let n = number.trim().parse::<f64>().ok()? * factor;
    (1e6..=1e13).contains(&n).then_some(n as u64)
}

/// Parameters that a name says: `70B` of `Llama-3.1-70B-Instruct`, 56 billion of `8x7B`. What stands behind a letter, as in
/// `A3B`, counts only a part of them.
fn size(name: &str) -> Option<u64> {
    let name = name.rsplit('/').next().unwrap_or(name);
    name.split(|c: char| !(c.is_alphanumeric() || c == '.')).find_map(|word| {
        let (experts, each) = match word.split_once(['x', 'X']) {
            Some((n, each)) => (n.parse::<u64>().ok().filter(|n| (2..=1024).contains(n))?, each),
            None => (1, word),
        };
        if !each.starts_with(|c: char| c.is_ascii_digit()) {
            return None;
        }
        parameters(each).map(|p| p.saturating_mul(experts))
    })
}

fn apart(a: u64, b: u64) -> f64 {
    (a as f64 / b.max(1) as f64).ln().abs()
}

/// Ids that are near to one that is not known, at most `most`: of the same size where it says one, then by the letters that
/// must be changed. A name that is a size and no more has those nearest in size.
#[must_use]
pub fn near(id: &str, most: usize) -> Vec<&'static str> {
    let wanted = size(id);
    let want = normal(id);
    let want = bare(name_of(&want)).to_owned();
    if let Some(n) = wanted.filter(|_| parameters(&want).is_some()) {
        return of_size(n, most);
    }
    let same = |i: &str| match (wanted, size(i)) {
        (Some(a), Some(b)) => apart(a, b) < ALIKE.ln(),
        (None, _) => true,
        (Some(_), None) => false,
    };
    let mut all: Vec<(bool, bool, usize, usize, &str)> = CATALOGUE
        .iter()
        .flat_map(ids)
        .filter_map(|i| {
            let own = normal(i);
            let own = bare(name_of(&own));
            let shared = own.chars().zip(want.chars()).take_while(|(a, b)| a == b).count();
            let far = distance(own, &want);
            // Half of the letters, or a family that begins alike.
            (far * 2 <= want.chars().count() || shared >= 4).then_some((
                !same(i),
                !own.starts_with(&want),
                far,
                i.len(),
                i,
            ))
        })
        .collect();
    // What the name begins comes first. Of equal ones the shortest: copies have longer names than what they copy.
    all.order();
    all.into_iter().take(most).map(|(.., i)| i).collect()
}

fn organisation(id: &str) -> &str {
    id.split('/').next().unwrap_or_default()
}

/// The first number of a name, which most families count their releases by: 3.3 of `Llama-3.3-70B`.
fn release(id: &str) -> f64 {
    let name = id.rsplit('/').next().unwrap_or(id);
    let numbers = name.split(|c: char| !(c.is_ascii_digit() || c == '.'));
    numbers.filter_map(|n| n.parse().ok()).next().unwrap_or_default()
}

/// Models whose names say about so many parameters, the nearest first: of each publisher one, those with the most models first,
/// and of its models the latest by name, before a second of any.
fn of_size(wanted: u64, most: usize) -> Vec<&'static str> {
    let own = |e: &&CatalogueEntry| {
        let plain = e.hf_quant_config.is_none() && !e.config().contains("quantization_config");
        plain && !COPIERS.contains(&organisation(e.id).to_ascii_lowercase().as_str())
    };
    let models = |id: &str| CATALOGUE.iter().filter(|e| organisation(e.id) == organisation(id)).count();
    let mut all: Vec<(f64, usize, f64, &'static str)> = CATALOGUE
        .iter()
        .filter(own)
        .flat_map(ids)
        .filter_map(|id| Some((apart(size(id)?, wanted), id)))
        .filter(|(far, _)| *far < std::f64::consts::LN_2)
        .map(|(far, id)| (far, models(id), release(id), id))
        .collect();
    all.order_by(|a, b| {
        let names = || b.2.total_cmp(&a.2).then(a.3.len().cmp(&b.3.len())).then(a.3.cmp(b.3));
        a.0.total_cmp(&b.0).then_with(|| b.1.cmp(&a.1)).then_with(names)
    });
    let mut out: Vec<&'static str> = Vec::new();
    while out.len() < most && !all.is_empty() {
        let mut seen = Vec::new();
        all.retain(|(.., id)| {
            let take = out.len() < most && !seen.contains(&organisation(id));
            if take {
                seen.push(organisation(id));
                out.push(id);
            }
            !take
        });
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_near_begins_alike_and_has_the_size_that_is_said() {
        assert_eq!(near("meta/Lama-3.1-8B", 1), ["meta-llama/Llama-3.1-8B"]);
        assert!(near("Qwen/Qwen3-9B", 5).first().is_some_and(|id| id.contains("Qwen3")));
        for (typed, family, billions) in [("qwen 14b", "qwen", 14), ("llama-70b", "llama", 70)] {
            let found = near(typed, 3);
            assert_eq!(found.len(), 3);
            for id in found {
                assert!(id.to_ascii_lowercase().contains(family), "{typed}: {id}");
                assert_eq!(size(id), Some(billions * 1_000_000_000), "{typed}: {id}");
            }
        }
    }

    #[test]
    fn a_bare_size_has_models_of_that_size() {
        for typed in ["14B", "7b", "70B-instruct", "1.5B", "500M"] {
            let wanted = size(typed).unwrap();
            let found = near(typed, 4);
            assert_eq!(found.len(), 4, "{typed}");
            let far: Vec<f64> = found.iter().filter_map(|i| Some(apart(size(i)?, wanted))).collect();
            assert!(far.len() == 4 && far.iter().all(|f| *f < std::f64::consts::LN_2), "{typed}: {found:?}");
        }
        assert_eq!(near("14B", 1), ["Qwen/Qwen3-14B"]);
        assert!(near("70b", 2).contains(&"meta-llama/Llama-3.3-70B-Instruct"));
        assert_eq!(parameters("14B"), Some(14_000_000_000));
        assert_eq!(parameters("500m"), Some(500_000_000));
        assert_eq!(parameters("14"), None);
        assert_eq!(parameters("-3B"), None);
        assert_eq!(size("mistralai/Mixtral-8x7B-v0.1"), Some(56_000_000_000));
        assert_eq!(size("Qwen/Qwen3-30B-A3B"), Some(30_000_000_000));
        assert_eq!(size("microsoft/phi-4"), None);
    }
}
