//! The signatures and exceptions that one file holds, bounded.
//!
//! Of each signature only the first [`KEPT_PER_SIGNATURE`] hits of a file are kept as they are, later ones are counted and
//! the last is kept.

use std::collections::HashMap;

use crate::facts::trace::message_of;
use crate::facts::{Exception, Facts, Hit, vram};
use crate::knowledge::{Knowledge, SigId};
use dualplane_base::Class;

/// Of one signature in one file; the last one is kept besides.
pub(crate) const KEPT_PER_SIGNATURE: usize = 64;
/// Exceptions without a signature in one file.
const KEPT_EXCEPTIONS: usize = 64;

/// Hits of one signature.
#[derive(Default)]
struct Count {
    kept: usize,
    all: u64,
    /// Where the last one stands that is kept besides.
    last: Option<usize>,
}

/// What was found so far.
#[derive(Default)]
pub(super) struct Found {
    hits: Vec<Hit>,
    counts: HashMap<u32, Count>,
    exceptions: Vec<Exception>,
    /// A VRAM error whose sizes may stand in the lines below: which hit, whose process, how many lines are left.
    unsized_error: Option<(usize, String, usize)>,
}

impl Found {
    /// Lines are missing behind the last one: no sizes stand there.
    pub(super) fn interrupted(&mut self) {
        self.unsized_error = None;
    }

    pub(super) fn hits(&self) -> &[Hit] {
        &self.hits
    }

    pub(super) fn hit(&mut self, id: SigId, hit: Hit) {
        let count = self.counts.entry(id.number()).or_default();
        count.all += 1;
        let room = count.kept < KEPT_PER_SIGNATURE;
        if room && Self::opens_sizes(&hit) {
            self.unsized_error = Some((self.hits.len(), hit.process.clone(), vram::SIZE_LINES));
        }
        if room {
            count.kept += 1;
            self.hits.push(hit);
        } else if let Some(last) = count.last.and_then(|i| self.hits.get_mut(i)) {
            *last = hit;
        } else {
            count.last = Some(self.hits.len());
            self.hits.push(hit);
        }
    }

    /// A VRAM error opens the lines below it, which say its sizes.
    pub(super) fn opens_sizes(hit: &Hit) -> bool {
        let asks = hit.class.is_some_and(|c| matches!(c, Class::CudaOomLoad | Class::CudaOomRuntime));
        asks && hit.vram.as_ref().is_none_or(|v| v.requested.is_none())
    }

    pub(super) fn into_exceptions(self) -> Vec<Exception> {
        self.exceptions
    }

    pub(super) fn exception(&mut self, exception: Exception) {
        if self.exceptions.len() < KEPT_EXCEPTIONS {
            self.exceptions.push(exception);
        }
    }

    /// Sizes that stand below a message belong to it.
    pub(super) fn sizes_below(&mut self, process: &str, text: &str) {
        let Some((hit, of, left)) = &mut self.unsized_error else { return };
        if of != process {
            return;
        }
        if let Some(hit) = self.hits.get_mut(*hit) {
            vram::read_below(&mut hit.vram, message_of(text));
        }
        *left -= 1;
        if *left == 0 {
            self.unsized_error = None;
        }
    }

    pub(super) fn finish(mut self, knowledge: &Knowledge, facts: &mut Facts) {
        for (number, count) in &self.counts {
            let id = knowledge.signatures().get(*number as usize).map(|s| s.id.as_ref());
            if let Some(first) = self.hits.iter_mut().find(|h| Some(h.id.as_str()) == id) {
                first.count = count.all;
            }
        }
        facts.hits.append(&mut self.hits);
        facts.exceptions.append(&mut self.exceptions);
    }
}
