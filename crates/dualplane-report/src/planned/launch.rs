//! The launch of the judged container, from all that the evidence tells of it: the pod's command and image, the settings
//! that the server printed, the model that its log names.

use super::manifest;
use super::startlog;
use dualplane_base::gpu::Gpu as Card;
use dualplane_base::units::Bytes;
use dualplane_core::evidence::{Bundle, ContainerKind};
use dualplane_core::facts::Facts;
use dualplane_core::verdict::Subject;
use dualplane_plan::card::{Placed, place};
use dualplane_plan::cli::{self, CommandLine};
use dualplane_plan::model::ModelFiles;
use dualplane_plan::{EngineKind, Model, Named, Version, catalogue};

/// A launch with what is known of its model and card.
#[derive(Debug, Clone)]
pub struct Launched {
    /// What was asked of the engine and of the pod.
    pub line: CommandLine,
    /// Its model, where it is known by its name.
    pub model: Option<Named>,
    /// Its card, where the evidence names it or its size.
    pub placed: Option<Placed>,
    /// Where the settings come from, in words.
    pub source: &'static str,
}

/// The launch of the judged container; `None` where it is no model server whose memory has formulas here.
#[must_use]
pub fn of_subject(bundle: &Bundle, facts: &Facts, subject: &Subject, cards: &[Card]) -> Option<Launched> {
    let head = facts.engine.head()?;
    let engine = head.plan.as_deref()?;
    let kind = EngineKind::named(engine)?;
    // A derived engine has other defaults than its parent, whose plan it shares.
    if head.id.replace('_', "-") != engine {
        return None;
    }
    if subject.container_kind != ContainerKind::Main {
        return None;
    }
    let own = subject.pod_of(bundle).and_then(|pod| {
        let c = pod.containers.iter().find(|c| Some(c.name.as_str()) == subject.container.as_deref())?;
        Some((pod, c))
    });
    let env = own.map(|(_, c)| c.env.as_slice()).unwrap_or_default();
    let image = own.map(|(_, c)| c.image.as_str()).filter(|i| !i.is_empty());
    let told = startlog::arguments(facts);
    let commanded = own.and_then(|(_, c)| cli::parse(&c.args, env, image).ok());
    let (mut line, source) = if told.is_empty() {
        (commanded.filter(|l| l.launch.engine == kind)?, "the pod's command")
    } else {
        (cli::parse(&told, env, Some(engine)).ok()?, "the settings that the log prints")
    };
    // A log prints all settings of some engines, and most change no memory.
    line.unknown_flags.clear();
    if let Some((pod, c)) = own {
        line.host.pod = manifest::ask(pod, c);
    }
    line.host.pod.limit = line.host.pod.limit.or(subject.memory_limit);
    if let Some(v) = facts.engine.version.as_deref().and_then(Version::parse) {
        line.launch.version = v;
        line.launch.version_known = true;
    }
    line.model = line.model.or_else(|| facts.engine.model.clone());
    let model = line.model.as_deref().and_then(known);
    let name = own.and_then(|(pod, _)| manifest::card(pod));
    let name = name.or_else(|| card_of_node(bundle, subject));
    let total = startlog::total(facts).map(Bytes);
    let placed = place(cards, name.as_deref(), total).ok();
    Some(Launched { line, model, placed, source })
}

/// The model of the catalogue that this name means.
#[must_use]
pub fn known(id: &str) -> Option<Named> {
    let entry = catalogue::find(id)?;
    let files = ModelFiles {
        config: entry.config(),
        hf_quant_config: entry.hf_quant_config(),
        safetensors_index: None,
    };
    Some(Named {
        id: id.to_owned(),
        source: format!("catalogue, {}: {}", entry.id, entry.source),
        model: Model::read(&files).ok()?,
        gguf: None,
        files: dualplane_plan::host::Checkpoint::default(),
    })
}

fn card_of_node(bundle: &Bundle, subject: &Subject) -> Option<String> {
    let node = bundle.nodes.iter().find(|n| Some(n.name.as_str()) == subject.node.as_deref())?;
    manifest::card_label(&node.labels)
}
