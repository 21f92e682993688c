//! The plan of a server in a manifest: its launch, and both planes where model and card are known.

use std::sync::Arc;

use dualplane_base::gpu::Gpu as Card;
use dualplane_core::evidence::{ContainerKind, of_spec};
use dualplane_plan::card::Placed;
use dualplane_plan::cli::CommandLine;
use dualplane_plan::host::{Checkpoint, HostInput, HostReport, host};
use dualplane_plan::{Answer, EngineKind, Named, PlanError, answer};
use dualplane_report::planned::known;
use dualplane_report::planned::manifest::{Workload, server};
use serde_json::Value;

use crate::memo::Memo;

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
    models: Memo<String, Option<Named>>,
    /// Cards by the names that manifests give them.
    placed: Memo<String, Option<Placed>>,
    /// By launch and card: what else stands in a manifest changes no plan.
    plans: Memo<String, Arc<Planned>>,
}

impl Planner {
    /// `card`: where the manifest names none.
    pub(crate) fn new(card: Option<String>) -> Self {
        Self {
            cards: dualplane_plan::card::embedded().unwrap_or_default(),
            card,
            models: Memo::new(MEMO),
            placed: Memo::new(MEMO),
            plans: Memo::new(MEMO),
        }
    }

    /// The plan of a container; `None` where it is no server with arithmetic here.
    pub(crate) fn plan(&self, pod: &Value, index: usize) -> Option<Arc<Planned>> {
        let pod = of_spec(pod);
        let main = pod.containers.iter().filter(|c| c.kind == ContainerKind::Main);
        let container = main.into_iter().nth(index)?;
        match server(&pod, container) {
            Ok(mut workload) => {
                // The same launch has other names in other namespaces.
                workload.name.clear();
                let card = self.card_of(&workload);
                let key = format!("{workload:?}{card:?}");
                Some(self.plans.get(key, || Arc::new(self.compute(workload, card.as_deref()))))
            }
            // The flag that the engine rejects is known; the launch is not.
            Err(e @ PlanError::Contradiction { .. }) => {
                let line = CommandLine::of(EngineKind::Vllm);
                let workload = Workload { name: String::new(), line, mig: None, card: None, grouped: false };
                let contradiction = Some(e);
                Some(Arc::new(Planned { workload, model: None, answer: None, host: None, contradiction }))
            }
            Err(_) => None,
        }
    }

    fn compute(&self, workload: Workload, card: Option<&str>) -> Planned {
        let model = workload.line.model.as_deref().filter(|m| !m.contains('$')).and_then(|m| {
            let name = m.to_owned();
            self.models.get(name, || known(m))
        });
        let placed = card.and_then(|name| {
            let place = || dualplane_plan::card::place(&self.cards, Some(name), None).ok();
            self.placed.get(name.to_owned(), place)
        });
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
        Planned { workload, model, answer: both, host, contradiction }
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
