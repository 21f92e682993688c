//! A bundle that comes without a report is judged here, by the same line as `triage`.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use dualplane_core::evidence::Bundle;
use dualplane_core::knowledge::Knowledge;
use dualplane_core::verdict::timeline::{Measure, timeline};
use dualplane_incidents::{Gpu, Where, fullest};
use dualplane_input::{Incident, Sieve};
use dualplane_pages::Scene;
use dualplane_report::Report;
use serde_json::Value;
use tokio::sync::Semaphore;

/// Bundles at a time: unpacking and judging take a core and memory each.
const AT_ONCE: usize = 2;

/// Looks into bundles that are kept for the next reader of their page.
const SCENES: usize = 64;

/// Looks by the sums of their bundles and the containers in them, the newest last.
type Scenes = Arc<Mutex<VecDeque<(String, Arc<Scene>)>>>;

/// Judges bundles.
#[derive(Debug, Clone)]
pub struct Judge {
    knowledge: Arc<Knowledge>,
    places: Arc<Semaphore>,
    scenes: Scenes,
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
        Ok(Self {
            knowledge: Arc::new(knowledge),
            places: Arc::new(Semaphore::new(AT_ONCE)),
            scenes: Scenes::default(),
        })
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

    /// What an Xid means.
    #[must_use]
    pub fn xid(&self, code: u32) -> Option<String> {
        self.knowledge.xid(code).map(|x| x.meaning.clone())
    }

    /// What a page shows of a bundle and its report does not hold; `None` where it cannot be read.
    pub async fn scene(&self, path: PathBuf, sum: &str, report: &Value) -> Option<Arc<Scene>> {
        let of = |key: &str| report.pointer(key).and_then(Value::as_str).unwrap_or("").to_owned();
        let whose = (of("/subject/namespace"), of("/subject/pod"), of("/subject/container"));
        let key = format!("{sum}/{}/{}/{}", whose.0, whose.1, whose.2);
        let kept = || self.scenes.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, scene)) = kept().iter().find(|(k, _)| *k == key) {
            return Some(Arc::clone(scene));
        }
        let _place = Arc::clone(&self.places).acquire_owned().await.ok()?;
        let knowledge = Arc::clone(&self.knowledge);
        let work = tokio::task::spawn_blocking(move || scene(&path, &whose, &knowledge));
        let scene = Arc::new(work.await.ok()??);
        let mut all = kept();
        all.push_back((key, Arc::clone(&scene)));
        if all.len() > SCENES {
            all.pop_front();
        }
        Some(scene)
    }
}

/// One report for each pod that died. Secrets and texts of users are masked in what they quote, as `triage` does: it is kept
/// and shown.
fn reports(path: &Path, knowledge: &Knowledge) -> Result<Vec<Report>, String> {
    let incidents = dualplane_input::read(&[path.to_owned()], &Sieve::new(knowledge));
    let incidents = incidents.map_err(|e| e.to_string())?;
    let of = |i: Incident| dualplane_report::triage_all(&i.name, i.files, i.gaps, knowledge);
    let mut reports: Vec<Report> = incidents.into_iter().flat_map(of).collect();
    reports.iter_mut().for_each(|r| dualplane_report::mask(r, knowledge));
    Ok(reports)
}

/// Of the pod and container that the report is of: a bundle may hold several that died.
fn scene(path: &Path, whose: &(String, String, String), knowledge: &Knowledge) -> Option<Scene> {
    let all = reports(path, knowledge).ok()?;
    let same = |told: &Option<String>, wanted: &str| told.as_deref().unwrap_or("") == wanted;
    let mine = all.iter().find(|r| {
        let s = &r.verdict.subject;
        same(&s.namespace, &whose.0) && same(&s.pod, &whose.1) && same(&s.container, &whose.2)
    });
    let alone = (all.len() == 1).then(|| all.first()).flatten();
    mine.or(alone).map(|r| Scene::of(r, knowledge))
}

/// The same for whoever may wait.
///
/// # Errors
///
/// As [`Judge::judge`].
pub fn judge(path: &Path, place: &Where, knowledge: &Knowledge) -> Result<Vec<Judged>, String> {
    let reports = reports(path, knowledge)?;
    if reports.is_empty() {
        return Err(
            "there is no evidence in it: send the .tar.gz that `dualplane capture` or the agent wrote"
                .to_owned(),
        );
    }
    let judged = |r: &Report| {
        let text = dualplane_report::json::render(std::slice::from_ref(r)).map_err(|e| e.to_string())?;
        let report: Value = serde_json::from_str(&text).map_err(|e| e.to_string())?;
        let container = report.pointer("/subject/container").and_then(Value::as_str).unwrap_or("");
        let mut place = told(&r.bundle, container, r.facts.engine.model.clone(), place);
        vram(r, &mut place);
        Ok(Judged { report, place })
    };
    reports.iter().map(judged).collect()
}

/// The card that was fullest, by the samples and by what the first error says.
fn vram(r: &Report, place: &mut Where) {
    let lines = timeline(&r.bundle, &r.facts, &r.verdict).lines;
    let most = |measure, card: &Option<String>| {
        let of = lines.iter().filter(|l| l.measure == measure && l.card == *card).flat_map(|l| &l.points);
        of.map(|(_, v)| *v).filter(|v| v.is_finite()).reduce(f64::max)
    };
    let cards = lines.iter().filter(|l| l.measure == Measure::Vram).map(|l| &l.card);
    let full = cards.filter_map(|c| Some((most(Measure::Vram, c)?, most(Measure::VramTotal, c)?)));
    let said = r.verdict.trigger.as_ref().and_then(|t| vram_of_error(&t.text));
    // The error speaks of the moment, which samples may have missed.
    let all = full.map(|(used, total)| (used as u64, total as u64)).chain(said);
    if let Some((used, total)) = fullest(all) {
        place.vram_held_bytes = place.vram_held_bytes.or(Some(used));
        place.vram_total_bytes = place.vram_total_bytes.or(Some(total));
    }
}

/// VRAM in use and in all, as an allocation error says it.
pub(crate) fn vram_of_error(line: &str) -> Option<(u64, u64)> {
    let oom = dualplane_core::facts::vram::parse(line)?;
    let (total, free) = (oom.total?.0, oom.free?.0);
    (free <= total && total > 0).then_some((total - free, total))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_of_a_bundle_holds_no_secret() {
        let token = "hf_AbCdEfGhIjKlMnOpQrStUvWxYz012345";
        let log = format!(
            "INFO 11-24 00:01:00 [core.py:58] Initializing a V1 LLM engine (v0.11.0)\n\
             torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of \
             79.11 GiB of which 1.00 GiB is free. HF_TOKEN={token}\n"
        );
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join("previous.log");
        std::fs::write(&file, log).unwrap();
        let knowledge = Knowledge::embedded().unwrap();
        let judged = judge(&file, &Where::default(), &knowledge).unwrap();
        let report = judged[0].report.to_string();
        assert!(
            report.contains("cuda_oom") && report.contains("HF_TOKEN") && !report.contains(token),
            "{report}"
        );
        let seen = scene(&file, &<_>::default(), &knowledge).unwrap();
        let lines = format!("{:?}", seen.log.unwrap());
        assert!(lines.contains("HF_TOKEN") && !lines.contains(token), "{lines}");
    }
}
