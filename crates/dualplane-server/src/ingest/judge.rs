//! A bundle that comes without a report is judged here, by the same line as `triage`.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use dualplane_core::evidence::Bundle;
use dualplane_core::knowledge::Knowledge;
use dualplane_incidents::{Gpu, Where};
use dualplane_input::Sieve;
use serde_json::Value;
use tokio::sync::Semaphore;

/// Bundles at a time: unpacking and judging take a core and memory each.
const AT_ONCE: usize = 2;

/// Judges bundles.
#[derive(Debug, Clone)]
pub struct Judge {
    knowledge: Arc<Knowledge>,
    places: Arc<Semaphore>,
}

/// A report, and what its evidence tells of the place.
#[derive(Debug, Clone)]
pub struct Judged {
    /// `dualplane.verdict/v2`.
    pub report: Value,
    /// Where.
    pub place: Where,
}

impl Judge {
    /// # Errors
    ///
    /// A sentence: the knowledge of this program cannot be read.
    pub fn new() -> Result<Self, String> {
        let knowledge = Knowledge::embedded().map_err(|e| e.to_string())?;
        Ok(Self { knowledge: Arc::new(knowledge), places: Arc::new(Semaphore::new(AT_ONCE)) })
    }

    /// What stands in it: one report for each pod that died.
    ///
    /// # Errors
    ///
    /// A sentence: nothing of it can be read.
    pub async fn judge(&self, path: PathBuf, place: Where) -> Result<Vec<Judged>, String> {
        let _place = Arc::clone(&self.places).acquire_owned().await.map_err(|e| e.to_string())?;
        let knowledge = Arc::clone(&self.knowledge);
        let work = tokio::task::spawn_blocking(move || judge(&path, &place, &knowledge));
        work.await.map_err(|e| e.to_string())?
    }
}

/// The same for whoever may wait.
///
/// # Errors
///
/// As [`Judge::judge`].
pub fn judge(path: &Path, place: &Where, knowledge: &Knowledge) -> Result<Vec<Judged>, String> {
    let sieve = Sieve::new(knowledge);
    let incidents = dualplane_input::read(&[path.to_owned()], &sieve).map_err(|e| e.to_string())?;
    let mut out = Vec::new();
    for i in incidents {
        let reports = dualplane_report::triage_all(&i.name, i.files, i.gaps, knowledge);
        let document = dualplane_report::json::render(&reports).map_err(|e| e.to_string())?;
        let document: Value = serde_json::from_str(&document).map_err(|e| e.to_string())?;
        let items = dualplane_incidents::items(&document).into_iter().cloned();
        for (r, report) in reports.iter().zip(items) {
            let container = report.pointer("/subject/container").and_then(Value::as_str).unwrap_or("");
            let model = r.facts.engine.model.clone();
            let found = told(&r.bundle, container, model, place);
            out.push(Judged { report, place: found });
        }
    }
    if out.is_empty() {
        return Err(
            "there is no evidence in it: send the .tar.gz that `dualplane capture` or the agent wrote"
                .to_owned(),
        );
    }
    Ok(out)
}

/// What the evidence tells of the place, where the sender told nothing.
fn told(bundle: &Bundle, container: &str, model: Option<String>, place: &Where) -> Where {
    let mut out = place.clone();
    let mut containers = bundle.pods.iter().flat_map(|p| &p.containers);
    let image = containers.find(|c| c.name == container && !c.image.is_empty()).map(|c| c.image.clone());
    out.image = out.image.or(image);
    out.model = out.model.or(model);
    if out.gpus.is_empty() {
        // Cards that were given to the container, else those of which a tool of the same place told.
        let printed = || bundle.gpus.iter().flat_map(|s| &s.gpus);
        let card = |uuid: &str| {
            let g = printed().find(|g| g.uuid.as_deref() == Some(uuid));
            Gpu { uuid: uuid.to_owned(), name: g.and_then(|g| g.name.clone()), ..Gpu::default() }
        };
        out.gpus = bundle.given.iter().map(|u| card(u)).collect();
        if out.gpus.is_empty() {
            // With several cards printed, which of them were the pod's is not known: only what kind they are.
            let alone = printed().count() == 1;
            let uuid = |g: &Option<String>| g.clone().filter(|_| alone).unwrap_or_default();
            let mut seen: Vec<Gpu> = printed()
                .map(|g| Gpu { uuid: uuid(&g.uuid), name: g.name.clone(), ..Gpu::default() })
                .filter(|g| !g.uuid.is_empty() || g.name.is_some())
                .collect();
            seen.sort();
            seen.dedup();
            out.gpus = seen;
        }
    }
    out
}
