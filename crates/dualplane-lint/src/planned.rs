//! The plan of a server in a manifest: its launch, and both planes where model and card are known.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use dualplane_base::gpu::Gpu as Card;
use dualplane_core::evidence::{Pod, of_spec};
use dualplane_plan::cli::CommandLine;
use dualplane_plan::host::{Checkpoint, HostInput, HostReport, host};
use dualplane_plan::{Answer, EngineKind, Named, PlanError, answer};
use dualplane_report::planned::known;
use dualplane_report::planned::manifest::{Workload, server};
use serde_json::Value;

/// Launches that are kept: the same chart stands in many namespaces. One takes some 20 KiB.
const MEMO: usize = 512;

/// What is known of a server before it starts.
#[derive(Debug)]
pub(crate) struct Planned {
    /// Its launch, with what the pod gives it.
    pub(crate) workload: Workload,
    /// Its model, where its name tells.
    pub(crate) model: Option<Named>,
    /// Both planes, where the card is known as well.
    pub(crate) answer: Option<Answer>,
    /// The host plane.
    pub(crate) host: Option<HostReport>,
    /// The engine rejects these settings.
    pub(crate) contradiction: Option<PlanError>,
}

impl Planned {
    /// The command line.
    pub(crate) fn line(&self) -> &CommandLine {
        &self.workload.line
    }
}

/// Plans, each computed once.
#[derive(Debug)]
pub(crate) struct Planner {
    cards: Vec<Card>,
    card: Option<String>,
    /// Models by the names that manifests give them: each is looked up in the whole catalogue.
    models: Mutex<HashMap<String, Option<Named>>>,
    memo: Mutex<HashMap<String, Option<Arc<Planned>>>>,
}

impl Planner {
    /// `card`: where the manifest names none.
    pub(crate) fn new(card: Option<String>) -> Self {
        Self {
            cards: dualplane_plan::card::embedded().unwrap_or_default(),
            card,
            models: Mutex::default(),
            memo: Mutex::default(),
        }
    }

    /// The plan of a container; `None` where it is no server with arithmetic here.
    pub(crate) fn plan(&self, pod: &Value, index: usize) -> Option<Arc<Planned>> {
        let key = self.key(pod, index);
        let memo = || self.memo.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = memo().get(&key) {
            return found.clone();
        }
        let planned = self.compute(&of_spec(pod), index).map(Arc::new);
        let mut memo = memo();
        if memo.len() >= MEMO {
            memo.clear();
        }
        memo.insert(key, planned.clone());
        planned
    }

    /// All that a plan depends on.
    fn key(&self, pod: &Value, index: usize) -> String {
        let part = |key: &str| pod.get(key).map(Value::to_string).unwrap_or_default();
        let container =
            pod.pointer(&format!("/containers/{index}")).map(Value::to_string).unwrap_or_default();
        format!("{container}{}{}{}", part("volumes"), part("nodeSelector"), part("resources"))
    }

    fn compute(&self, pod: &Pod, index: usize) -> Option<Planned> {
        let main = pod.containers.iter().filter(|c| c.kind == dualplane_core::evidence::ContainerKind::Main);
        let container = main.into_iter().nth(index)?;
        let workload = match server(pod, container) {
            Ok(w) => w,
            // The flag that the engine rejects is known; the launch is not.
            Err(e @ PlanError::Contradiction { .. }) => {
                let line = CommandLine::of(EngineKind::Vllm);
                let workload = Workload { name: String::new(), line, mig: None, card: None, grouped: false };
                return Some(Planned {
                    workload,
                    model: None,
                    answer: None,
                    host: None,
                    contradiction: Some(e),
                });
            }
            Err(_) => return None,
        };
        let model = workload.line.model.as_deref().filter(|m| !m.contains('$')).and_then(|m| self.model(m));
        let placed = self
            .card_of(&workload)
            .and_then(|name| dualplane_plan::card::place(&self.cards, Some(&name), None).ok());
        let (mut contradiction, mut both) = (None, None);
        if let (Some(named), Some(placed)) = (&model, &placed) {
            match answer(named, &workload.line, placed, None) {
                Ok(a) => both = Some(a),
                Err(e @ PlanError::Contradiction { .. }) => contradiction = Some(e),
                Err(_) => {}
            }
        }
        let host = match &both {
            Some(a) => Some(a.host.clone()),
            // What llama.cpp keeps in RAM is in its file, which is not at hand.
            None if workload.line.launch.engine == EngineKind::LlamaCpp => None,
            None => model.as_ref().map(|n| {
                let files = Checkpoint::default();
                host(HostInput { line: &workload.line, model: Some(&n.model), plan: None, files, cpu: false })
            }),
        };
        Some(Planned { workload, model, answer: both, host, contradiction })
    }

    /// The facts of a model, where its name tells.
    fn model(&self, name: &str) -> Option<Named> {
        let models = || self.models.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = models().get(name) {
            return found.clone();
        }
        let found = known(name);
        let mut models = models();
        if models.len() >= MEMO {
            models.clear();
        }
        models.insert(name.to_owned(), found.clone());
        found
    }

    /// The card with the slice that the pod asks for.
    fn card_of(&self, w: &Workload) -> Option<String> {
        let base = w.card.clone().or_else(|| self.card.clone())?;
        let base = base.trim_end_matches("-SHARED").to_owned();
        match &w.mig {
            Some(profile) if !base.contains(':') && !base.contains("-MIG-") => {
                Some(format!("{base}:{profile}"))
            }
            _ => Some(base),
        }
    }
}
