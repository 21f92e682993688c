//! Which GPUs a server will see: `--gpus`, `CUDA_VISIBLE_DEVICES`, `NVIDIA_VISIBLE_DEVICES`.
//!
//! Source: CUDA programming guide, environment variables: the list ends at the first entry that means no device.
//! NVIDIA container toolkit: `all`, `none`, `void`, indices, UUIDs, `0:1` for the second MIG device of the first card.

use super::seen::{Card, Visible};

/// The choice.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Chosen {
    /// Places in the list of cards, in the order of the server's device numbers.
    pub(super) places: Vec<usize>,
    /// How they were chosen.
    pub(super) by: String,
    /// An entry that means no device.
    pub(super) lost: Option<String>,
}

/// Chooses among what the driver lists.
pub(super) fn choose(cards: &[Card], visible: &Visible) -> Chosen {
    // Where MIG is on, the card itself runs nothing.
    let all: Vec<usize> = (0..cards.len()).filter(|i| cards.get(*i).is_some_and(|c| !c.mig)).collect();
    if let Some(list) = &visible.asked {
        let (places, lost) = pick(cards, list, None);
        return Chosen { places, by: format!("--gpus {list}"), lost };
    }
    let mut chosen = container(cards, visible.nvidia.as_deref(), all);
    if let Some(list) = &visible.cuda {
        let by = format!("CUDA_VISIBLE_DEVICES={list}");
        let (places, lost) = pick(cards, list, Some(&chosen.places));
        chosen = Chosen { places, by, lost };
    }
    chosen
}

/// What the container runtime lets through. Inside of a container this has happened already, and indices count anew.
fn container(cards: &[Card], list: Option<&str>, all: Vec<usize>) -> Chosen {
    let every = |by: &str| Chosen { places: all.clone(), by: by.into(), lost: None };
    let Some(list) = list.map(str::trim).filter(|l| !l.is_empty()) else {
        return every("all GPUs listed by the driver");
    };
    let by = format!("NVIDIA_VISIBLE_DEVICES={list}");
    // `void` is what a runtime with CDI or a volume list sets: the devices come another way.
    if matches!(list, "all" | "void") {
        return every("all GPUs listed by the driver");
    }
    if list == "none" {
        return Chosen { places: Vec::new(), by, lost: None };
    }
    let words = list.split(',').count();
    let numbered = list.split(',').all(|w| w.trim().bytes().all(|b| b.is_ascii_digit() || b == b':'));
    if numbered && all.len() <= words {
        return every(&by);
    }
    let (places, lost) = pick(cards, list, None);
    // The ids of a device plugin that passes mounted paths mean nothing to the driver.
    if places.is_empty() { every("all GPUs listed by the driver") } else { Chosen { places, by, lost } }
}

/// The devices of a list, up to the first entry that means none. `among`: indices count these, else the driver's cards.
fn pick(cards: &[Card], list: &str, among: Option<&[usize]>) -> (Vec<usize>, Option<String>) {
    let mut out = Vec::new();
    for word in list.split(',').map(str::trim) {
        if word.is_empty() && list.trim().is_empty() {
            break;
        }
        match one(cards, word, among) {
            Some(places) => out.extend(places.into_iter().filter(|p| !out.contains(p)).collect::<Vec<_>>()),
            None => return (out, Some(word.to_owned())),
        }
    }
    (out, None)
}

fn one(cards: &[Card], word: &str, among: Option<&[usize]>) -> Option<Vec<usize>> {
    let inside = |p: &usize| among.is_none_or(|a| a.contains(p));
    let parts = |card: usize| -> Vec<usize> {
        let of = |(i, c): (usize, &Card)| (c.parent == Some(card)).then_some(i);
        cards.iter().enumerate().filter_map(of).collect()
    };
    // The MIG devices of a card where it is divided.
    let whole = |card: usize| -> Vec<usize> {
        if cards.get(card).is_some_and(|c| c.mig) { parts(card) } else { vec![card] }
    };
    let card = |index: &str| {
        let index: u32 = index.parse().ok()?;
        cards.iter().position(|c| c.parent.is_none() && c.index == index)
    };
    if let Some((index, part)) = word.split_once(':') {
        let part: usize = part.parse().ok()?;
        return parts(card(index)?).get(part).copied().filter(inside).map(|p| vec![p]);
    }
    if !word.is_empty() && word.bytes().all(|b| b.is_ascii_digit()) {
        return match among {
            Some(a) => a.get(word.parse::<usize>().ok()?).map(|p| vec![*p]),
            None => Some(whole(card(word)?)),
        };
    }
    // A beginning is enough where only one device has it.
    let long = word.strip_prefix("GPU-").or_else(|| word.strip_prefix("MIG-")).is_some_and(|r| !r.is_empty());
    let mut fit = cards.iter().enumerate().filter(|(_, c)| long && c.uuid.starts_with(word)).map(|(i, _)| i);
    let (first, second) = (fit.next()?, fit.next());
    if second.is_some() {
        return None;
    }
    let places: Vec<usize> = whole(first).into_iter().filter(inside).collect();
    (!places.is_empty()).then_some(places)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cards() -> Vec<Card> {
        let card = |index: u32, uuid: &str| Card { index, uuid: uuid.into(), ..Card::default() };
        vec![
            card(0, "GPU-aa11"),
            Card { mig: true, ..card(1, "GPU-ab22") },
            Card { parent: Some(1), ..card(1, "MIG-c3") },
            Card { parent: Some(1), ..card(1, "MIG-d4") },
            card(2, "GPU-ee55"),
        ]
    }

    fn of(asked: Option<&str>, cuda: Option<&str>, nvidia: Option<&str>) -> (Vec<usize>, Option<String>) {
        let s = |t: Option<&str>| t.map(str::to_owned);
        let c = choose(&cards(), &Visible { asked: s(asked), cuda: s(cuda), nvidia: s(nvidia) });
        (c.places, c.lost)
    }

    #[test]
    fn lists_mean_what_their_readers_make_of_them() {
        let lost = |w: &str| Some(w.to_owned());
        for (asked, cuda, nvidia, want) in [
            (None, None, None, (vec![0, 2, 3, 4], None)),
            (None, None, Some("all"), (vec![0, 2, 3, 4], None)),
            (None, None, Some("void"), (vec![0, 2, 3, 4], None)),
            (None, None, Some("none"), (vec![], None)),
            (None, None, Some("GPU-ee55,MIG-d4"), (vec![4, 3], None)),
            (None, None, Some("2"), (vec![4], None)),
            (None, None, Some("1:1"), (vec![3], None)),
            // A runtime has let four through already: the numbers are those of the host.
            (None, None, Some("4,5,6,7"), (vec![0, 2, 3, 4], None)),
            (None, None, Some("some-path"), (vec![0, 2, 3, 4], None)),
            (None, Some("1"), Some("GPU-ee55,GPU-aa11"), (vec![0], None)),
            (None, Some("0,-1,1"), None, (vec![0], lost("-1"))),
            (None, Some("0,7"), None, (vec![0], lost("7"))),
            (None, Some(""), None, (vec![], None)),
            (None, Some("MIG-c3"), None, (vec![2], None)),
            (None, Some("GPU-e"), None, (vec![4], None)),
            (None, Some("GPU-a"), None, (vec![], lost("GPU-a"))),
            (None, Some("GPU-"), None, (vec![], lost("GPU-"))),
            (None, Some("GPU-aa11"), Some("GPU-ee55"), (vec![], lost("GPU-aa11"))),
            (Some("2,0"), Some("0"), Some("none"), (vec![4, 0], None)),
            (Some("1"), None, None, (vec![2, 3], None)),
            (Some("1:0"), None, None, (vec![2], None)),
            (Some("0,0"), None, None, (vec![0], None)),
            (Some("99999999999999999999"), None, None, (vec![], lost("99999999999999999999"))),
        ] {
            assert_eq!(of(asked, cuda, nvidia), want, "{asked:?} {cuda:?} {nvidia:?}");
        }
    }
}
