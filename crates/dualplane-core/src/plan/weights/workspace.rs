//! Buffers that stay beside the weights.

use super::tally::Tally;
use crate::plan::launch::Launch;
use crate::plan::model::Model;
use crate::plan::pool::Settled;

pub(super) fn add(
    t: &mut Tally<'_>,
    model: &Model,
    launch: &Launch,
    settled: &Settled,
    stage: u64,
    of: &[u64],
) {
    let _ = (t, model, launch, settled, stage, of);
}
