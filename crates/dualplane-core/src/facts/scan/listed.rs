//! What a log tells that is no signature: answers that failed, and cards and MIG instances that a tool listed.

use crate::facts::lines::mig_table_row;
use crate::facts::openings::{Opening, any};
use crate::facts::{LogSummary, Mig, MigSeen, Place, xid};

/// Answers that failed, as access logs write them.
pub(crate) const FAILED_ANSWERS: &[Opening] =
    &[Opening::new("HTTP/1.1\" 5", 0, 0), Opening::new("| 500 |", 0, 0), Opening::new("| 503 |", 0, 0)];

/// The card whose MIG instances are listed.
#[derive(Default)]
pub(super) struct Listed {
    card: Option<String>,
}

impl Listed {
    /// One line; `before` is the one before it.
    pub(super) fn line(
        &mut self,
        number: u64,
        text: &str,
        place: &Place,
        before: Option<&[u8]>,
        summary: &mut LogSummary,
    ) {
        if any(FAILED_ANSWERS, text) {
            summary.last_5xx = Some(number);
        }
        if summary.gpus.len() < xid::KEPT_GPUS
            && let Some((address, uuid)) = xid::listed(text)
        {
            summary.gpus.push((address, uuid, number));
        }
        if summary.mig.is_some() {
            return;
        }
        if let Some(rest) = text.trim_start().strip_prefix("GPU ") {
            self.card =
                rest.split_once(": ").and_then(|(_, n)| n.split_once(" (UUID")).map(|(n, _)| n.to_owned());
        }
        // nvidia-smi -L: "  MIG 1g.18gb     Device  0: (UUID: MIG-…)"
        let profile = text.trim_start().strip_prefix("MIG ").and_then(|r| r.split_whitespace().next());
        let profile =
            profile.filter(|p| p.contains("g.") && p.ends_with(|c: char| c.is_ascii_alphanumeric()));
        if let Some(profile) = profile {
            summary.mig = Some(Mig {
                profile: Some(profile.to_owned()),
                size: None,
                card: self.card.clone(),
                place: place.clone(),
                seen: MigSeen::Line(text.trim().to_owned()),
            });
        } else if let Some(size) = mig_table_row(text, before) {
            summary.mig = Some(Mig {
                profile: None,
                size: Some(size),
                card: self.card.clone(),
                place: place.clone(),
                seen: MigSeen::Line(text.trim().to_owned()),
            });
        }
    }
}
