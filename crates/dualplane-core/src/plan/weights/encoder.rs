//! Encoders of images.

use super::tally::Tally;
use crate::plan::launch::Launch;
use crate::plan::model::Model;
use crate::plan::pool::Settled;

pub(super) fn add(t: &mut Tally<'_>, model: &Model, launch: &Launch, settled: &Settled) {
    let _ = (t, model, launch, settled);
}
