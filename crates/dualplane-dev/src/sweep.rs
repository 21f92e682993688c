//! `dualplane dev sweep CONFIG.json`: many plans of one model, for measuring how long they take (`bench/sweep.sh`).

use std::path::Path;

use dualplane_base::units::GIB;
use dualplane_plan::model::ModelFiles;
use dualplane_plan::{At, Gpu, Launch, Model, Prepared, Verdict};

use super::{DevError, Outcome};

/// Ranks that are tried.
const RANKS: [u64; 4] = [1, 2, 4, 8];

pub(crate) fn run(config: &Path, points: u64) -> Result<Outcome, DevError> {
    let text = super::read(config)?;
    let rejected =
        |why: dualplane_plan::PlanError| DevError::Rejected { path: config.into(), why: why.to_string() };
    let model = Model::read(&ModelFiles { config: &text, ..ModelFiles::default() }).map_err(rejected)?;
    let device_name = "NVIDIA H200".to_owned();
    let gpu =
        Gpu { name: "H200".into(), device_name, total_bytes: 140 * GIB, capability: (9, 0), host_use: None };
    let (mut asked, mut fit) = (0_u64, 0_u64);
    for tp in RANKS {
        let launch = Launch { tp, ..Launch::default() };
        let prepared = Prepared::new(&model, &launch, &gpu).map_err(rejected)?;
        for i in 0..points / RANKS.len() as u64 {
            // Three limits that wander through their ranges at different paces.
            let at = At {
                max_model_len: 1024 + (i * 997) % model.max_model_len.max(2048),
                max_num_seqs: 1 + (i * 13) % 1024,
                max_num_batched_tokens: 2048 + (i * 31) % 14_336,
                gpu_memory_utilization: 0.8 + (i % 16) as f64 / 100.0,
            };
            asked += 1;
            fit += u64::from(prepared.at(&model, &launch, &gpu, &at).verdict == Verdict::Fits);
        }
    }
    Ok(Outcome::of(format!("{asked} plans, {fit} fit\n")))
}
