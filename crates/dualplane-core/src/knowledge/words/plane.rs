//! Which memory a lack is of: by the words nearest to it that name a plane, from its own name outwards.

use super::Said;
use super::lack::{Kind, Lack};
use super::lex::Token;
use super::lexicon::*;

/// Planes that words name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Plane {
    Gpu,
    Host,
    Kv,
}

/// What a search found: nothing, one plane, or several.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Found {
    Nothing,
    One(Plane),
    Several,
}

/// The plane of a lack; `None` where words do not tell it.
pub(super) fn of(tokens: &[Token], lack: &Lack) -> Option<Said> {
    let own = name(tokens, lack);
    let near = || beside(tokens, lack);
    let apis = || interfaces(tokens, lack);
    let line = || anywhere(tokens, lack);
    let weak = || by_malloc(tokens, lack);
    if lack.kind != Kind::Kill && pins(tokens) {
        return Some(Said::HostMemory);
    }
    let plane = match lack.kind {
        Kind::Plain if amounts(tokens, lack) => first([own, near(), weak(), apis(), line()]),
        // "CUDA alloc failed" says whose allocation it is, "failed to allocate a context" does not.
        Kind::Plain if tokens.get(lack.from).is_some_and(|t| t.roles & ALLOCATE != 0) => {
            first([own, near(), weak(), apis()])
        }
        Kind::Plain => first([own, weak()]),
        // The kernel's answer to a driver's call may mean either memory.
        Kind::Errno => match first([near()]) {
            Some(plane) => Some(plane),
            None if near() == Found::Several || [apis(), line()].contains(&Found::One(Plane::Gpu)) => None,
            None => Some(Plane::Host),
        },
        Kind::Heap => match first([near(), apis(), line()]) {
            None if line() == Found::Several => None,
            found => found.or(Some(Plane::Host)),
        },
        Kind::Limit | Kind::Holder => match first([own, near(), weak(), apis(), line()]) {
            None if [own, near(), apis(), line()].contains(&Found::Several) => None,
            None if tokens.iter().any(|t| t.roles & (DEVICE | KV) != 0) => None,
            found => found.or(Some(Plane::Host)),
        },
        Kind::Kill => first([own]).filter(|p| *p == Plane::Gpu).or(Some(Plane::Host)),
        Kind::Resources => first([own, apis()]).filter(|p| *p == Plane::Gpu),
    };
    plane.map(|p| match p {
        Plane::Gpu => Said::DeviceMemory,
        Plane::Host => Said::HostMemory,
        Plane::Kv => Said::KvCache,
    })
}

/// Whether a lack's own words name more than one plane.
pub(super) fn names_several(tokens: &[Token], lack: &Lack) -> bool {
    name(tokens, lack) == Found::Several
}

/// Whether memory itself was asked for. What takes a structure of its own of some bytes is no card's memory because its
/// caller has a card's name.
fn amounts(tokens: &[Token], lack: &Lack) -> bool {
    let from = joined(tokens, lack.from, lack.to).0;
    let here = tokens.get(from..=lack.to + 4).or(tokens.get(from..)).unwrap_or_default();
    here.iter().any(|t| t.roles & (MEMORY | UNIT | NUMBER | OOM | OF | FIT | EXCEED) != 0) || from < lack.from
}

/// A call of the device's library that takes or locks memory of the host: `cudaMallocHost`. Its error is the same as for a
/// card's memory.
fn pins(tokens: &[Token]) -> bool {
    names(tokens).any(|(_, own)| {
        let has = |f: fn(&Token) -> bool| own.iter().any(f);
        let library = own.first().is_some_and(|t| t.roles & (PREFIX | GPU) != 0);
        library
            && has(|t| t.roles & HOST != 0 && t.roles & ALLOCATE == 0)
            && has(|t| t.roles & (ALLOCATE | TAKE) != 0)
    })
}

/// The names of a line, and where each begins.
fn names(tokens: &[Token]) -> impl Iterator<Item = (usize, &[Token])> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let from = at;
        at += 1;
        while tokens.get(at).is_some_and(|t| t.joined) {
            at += 1;
        }
        tokens.get(from..at.min(tokens.len())).filter(|own| !own.is_empty()).map(|own| (from, own))
    })
}

/// The first place that names a plane; several at one place name none, and nothing further away decides between them.
fn first<const N: usize>(places: [Found; N]) -> Option<Plane> {
    match places.into_iter().find(|f| *f != Found::Nothing)? {
        Found::One(plane) => Some(plane),
        _ => None,
    }
}

fn all(planes: impl Iterator<Item = Plane>) -> Found {
    planes.fold(Found::Nothing, |found, p| match found {
        Found::Nothing => Found::One(p),
        Found::One(q) if q == p => found,
        _ => Found::Several,
    })
}

/// What a word names by itself. A cache of a card is of the card unless it is that of keys and values.
fn named(t: &Token) -> Option<Plane> {
    match t.roles {
        r if r & KV != 0 => Some(Plane::Kv),
        r if r & HOST != 0 => Some(Plane::Host),
        r if r & GPU != 0 => Some(Plane::Gpu),
        _ => None,
    }
}

/// A name that words are joined to: `VK_ERROR_OUT_OF_HOST_MEMORY`, `cudaMallocHost`. The host in it goes before the
/// interface that is asked, and an interface before its "malloc".
fn of_name(tokens: &[Token]) -> Option<Plane> {
    let has = |roles: Roles| tokens.iter().any(|t| t.roles & roles != 0);
    let interface =
        tokens.first().is_some_and(|t| t.roles & PREFIX != 0) && tokens.len() > 1 || has(GPU | OWNER);
    let host = tokens.iter().any(|t| t.roles & HOST != 0 && t.roles & ALLOCATE == 0);
    if has(KV) {
        Some(Plane::Kv)
    } else if host {
        Some(Plane::Host)
    } else if interface || has(DEVICE) {
        Some(Plane::Gpu)
    } else {
        // Malloc of C, not that of some library: `rtMalloc`.
        let other = tokens.first().is_some_and(|t| t.roles == 0)
            && tokens.iter().skip(1).any(|t| t.roles & ALLOCATE != 0);
        (has(HOST) && !other).then_some(Plane::Host)
    }
}

/// The words joined to those from here to there.
fn joined(tokens: &[Token], from: usize, to: usize) -> (usize, usize) {
    let is = |i: usize| tokens.get(i).is_some_and(|t| t.joined);
    let mut first = from;
    while first > 0 && is(first) {
        first -= 1;
    }
    let mut last = to;
    while is(last + 1) {
        last += 1;
    }
    (first, last)
}

/// The lack's own words and the name that they are part of.
fn name(tokens: &[Token], lack: &Lack) -> Found {
    let (from, to) = joined(tokens, lack.from, lack.to);
    let Some(own) = tokens.get(from..=to) else { return Found::Nothing };
    // Each name speaks for itself. An allocator's "malloc" says less than the word before it: "CUDA malloc".
    let mut planes: Vec<Plane> =
        names(own).filter(|(_, n)| !only_malloc(n)).filter_map(|(_, n)| of_name(n)).collect();
    planes.extend(beside_memory(own));
    let pages = own.iter().any(|t| t.roles & PAGES != 0);
    match all(planes.iter().copied()) {
        // "failed to allocate the KV cache on the GPU" says both, and the cache is what was refused.
        Found::Several if planes.contains(&Plane::Kv) => Found::One(Plane::Kv),
        // "GPU and shared host memory": both.
        Found::Several if own.iter().any(|t| t.roles & AND != 0) => Found::Several,
        Found::Several => nearest_to_memory(own),
        Found::Nothing if pages && of_tokens(tokens) => Found::One(Plane::Kv),
        found => found,
    }
}

/// An allocator's "malloc" without a word that says whose: C's, unless the words around it name a card.
fn by_malloc(tokens: &[Token], lack: &Lack) -> Found {
    let (from, to) = joined(tokens, lack.from, lack.to);
    let own = tokens.get(from..=to).unwrap_or_default();
    all(names(own).filter_map(|(_, n)| of_name(n)))
}

/// The pages, blocks or slots of a line are those of keys and values.
fn of_tokens(tokens: &[Token]) -> bool {
    let has = |roles: Roles| tokens.iter().any(|t| t.roles & roles != 0);
    has(KV) || tokens.iter().any(|t| t.roles == PAGES) && has(TOKENS)
}

fn only_malloc(name: &[Token]) -> bool {
    // "CL_OUT_OF_RESOURCES" is an interface's.
    let interface = name.len() > 1 && name.first().is_some_and(|t| t.roles & PREFIX != 0);
    !interface
        && name.iter().all(|t| {
            t.roles & (GPU | DEVICE | OWNER | KV) == 0 && (t.roles & HOST == 0 || t.roles & ALLOCATE != 0)
        })
}

/// "system memory", "locked pages".
fn beside_memory(own: &[Token]) -> Option<Plane> {
    let mut pairs = own.iter().zip(own.iter().skip(1));
    pairs.any(|(a, b)| a.roles & HOST_BESIDE != 0 && b.roles & MEMORY != 0).then_some(Plane::Host)
}

/// "GPU … host memory": the word before the memory names it.
fn nearest_to_memory(own: &[Token]) -> Found {
    let Some(memory) = own.iter().rposition(|t| t.roles & MEMORY != 0) else { return Found::Several };
    let before = own.get(..=memory).unwrap_or_default().iter().rev();
    before.filter_map(named).next().map_or(Found::Several, Found::One)
}

/// What stands before the memory that is meant, or behind it with "on", "in", "of".
fn beside(tokens: &[Token], lack: &Lack) -> Found {
    const BEFORE: usize = 4;
    const BEHIND: usize = 8;
    let sentence = tokens.get(lack.to).map(|t| t.sentence);
    let here = |i: &usize| tokens.get(*i).is_some_and(|t| Some(t.sentence) == sentence);
    let plane =
        |i: usize| tokens.get(i).and_then(|t| named(t).or((t.roles & DEVICE != 0).then_some(Plane::Gpu)));
    let mut planes = Vec::new();
    // Behind: "on GPU 0", "in device memory", "for the KV cache".
    for i in (lack.to + 1..=lack.to + BEHIND).take_while(here) {
        if tokens.get(i).is_some_and(|t| t.roles & LINK != 0) {
            let mut names_left = 4;
            let end = (i + 1..).take_while(here).find(|j| {
                names_left -= usize::from(!tokens.get(*j).is_some_and(|t| t.joined));
                names_left == 0
            });
            let end = end.unwrap_or(tokens.len());
            let behind = || (i + 1..end).take_while(here);
            let strong = behind().find_map(|i| tokens.get(i).and_then(named));
            // "memory for the device's name" is not of the device.
            let weak =
                || behind().find_map(plane).filter(|_| tokens.get(i).is_some_and(|t| t.roles & FOR == 0));
            planes.extend(strong.or_else(weak));
        }
    }
    if !planes.is_empty() {
        return all(planes.into_iter());
    }
    let in_file = |i: usize| {
        let (from, to) = joined(tokens, i, i);
        tokens.get(from..=to).is_some_and(is_file)
    };
    let no_call = |i: &usize| tokens.get(*i).is_some_and(|t| t.roles & ALLOCATE == 0) && !in_file(*i);
    all((lack.from.saturating_sub(BEFORE)..lack.from).filter(here).filter(no_call).filter_map(plane))
}

/// Names of interfaces anywhere in the line.
fn interfaces(tokens: &[Token], lack: &Lack) -> Found {
    let mut planes = Vec::new();
    for (at, own) in names(tokens) {
        let end = at + own.len();
        let has = |roles: Roles| own.iter().any(|t| t.roles & roles != 0);
        let prefixed = own.first().is_some_and(|t| t.roles & (PREFIX | GPU) != 0) && own.len() > 1;
        let outside = end <= lack.from || at > lack.to;
        if outside && !is_file(own) && (prefixed || has(ALLOCATE) && has(HOST)) {
            planes.extend(of_name(own));
        }
    }
    all(planes.into_iter())
}

/// Any word that names a plane by itself. The name of a machine does not: `gpu-node-1`.
fn anywhere(tokens: &[Token], lack: &Lack) -> Found {
    let of = |t: &Token| Some(t).filter(|t| !t.hyphened && t.roles & ALLOCATE == 0).and_then(named);
    // "Device:0", "device_id: 0": devices of memory have numbers.
    let numbered = |i: usize| {
        let id = usize::from(tokens.get(i + 1).is_some_and(|t| t.roles & OTHER != 0 && t.joined));
        tokens.get(i).is_some_and(|t| t.roles & DEVICE != 0)
            && tokens.get(i + 1 + id).is_some_and(|t| t.roles & NUMBER != 0)
    };
    let numbered = (0..tokens.len()).find(|i| numbered(*i)).map(|_| Plane::Gpu);
    let outside =
        |(at, own): &(usize, &[Token])| (at + own.len() <= lack.from || *at > lack.to) && !is_file(own);
    let planes = names(tokens).filter(outside).flat_map(|(_, own)| own.iter().filter_map(of));
    all(planes.filter(|p| *p != Plane::Kv).chain(numbered))
}

/// `gpu_worker.py`: where a message was printed says little of what it is about.
fn is_file(name: &[Token]) -> bool {
    name.len() > 1 && name.iter().any(|t| t.roles & FILE != 0)
}
