//! Length and concurrency need more keys and values than there is room for.

use super::scene::{Scene, Stage};
use super::{FITTING, Row, STRONG, WEAK};
use crate::verdict::proof::{Launch, Proof, Series};
use crate::verdict::{Cited, Class};

/// A cache this full has no room for the next token of each sequence.
const FULL: f64 = 0.95;
/// A cache this empty was not short.
const EMPTY: f64 = 0.5;

pub(super) fn row(s: &Scene) -> Row {
    let mut row = Row::new("more length and concurrency than the KV cache has room for");
    if s.class == Some(Class::KvCacheCapacity)
        && let Some(t) = &s.line
    {
        let text = crate::text::shorten(t.text.trim(), 200).into_owned();
        row.speaks(STRONG, Cited::at(Proof::Line { signature: t.signature.clone(), text }, &t.place));
    }
    if let Some((share, at)) = &s.kv_use {
        let cited = Cited::at(Series::KvCache(*share), at);
        match share {
            x if *x >= FULL => row.speaks(STRONG, cited),
            x if *x < EMPTY => row.speaks_against(FITTING, cited),
            _ => {}
        }
    }
    if let (Some(sequences), Some(length)) = (s.sequences, s.length) {
        let demand = sequences.saturating_mul(length);
        let cited = Cited::plain(Launch::Demand { sequences, length, pool: s.pool });
        match s.pool {
            Some(pool) if demand > pool => row.speaks(FITTING, cited),
            Some(_) => row.speaks_against(FITTING, cited),
            None => row.speaks(WEAK, cited),
        }
    }
    match s.phase {
        Stage::Loading if s.class != Some(Class::KvCacheCapacity) => {
            row.speaks_against(STRONG, Cited::plain(Launch::NeverServed));
        }
        Stage::Serving if s.preallocates && s.class == Some(Class::CudaOomRuntime) => {
            row.speaks_against(FITTING, Cited::plain(Launch::PoolTaken));
        }
        _ => {}
    }
    row
}
