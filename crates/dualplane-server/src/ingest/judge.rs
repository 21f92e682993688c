//! A bundle that comes without a report is judged here, by the same line as `triage`.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use dualplane_core::evidence::Bundle;
use dualplane_core::knowledge::Knowledge;
use dualplane_incidents::{Gpu, Where};
use dualplane_input::Sieve;
use dualplane_pages::Scene;
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
}

impl Judge {
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

/// Of the pod and container that the report is of: a bundle may hold several that died.
fn scene(path: &Path, whose: &(String, String, String), knowledge: &Knowledge) -> Option<Scene> {
    let incidents = dualplane_input::read(&[path.to_owned()], &Sieve::new(knowledge)).ok()?;
    let all =
        incidents.into_iter().flat_map(|i| dualplane_report::triage_all(&i.name, i.files, i.gaps, knowledge));
    let all: Vec<dualplane_report::Report> = all.collect();
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
