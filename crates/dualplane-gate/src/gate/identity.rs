//! What a report holds for: hardware, limits, engine, model, requests and load. Reports of different ones are not compared.

use serde::{Deserialize, Serialize};

use crate::document::{Hardware, Measure};

/// A property of what was measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Field {
    /// Names, number, memory and MIG profiles of the cards.
    Gpus,
    /// The processor.
    Cpu,
    /// How many of them.
    Cpus,
    /// RAM of the machine.
    Ram,
    /// Memory limit of the container.
    MemoryLimit,
    /// CPU limit of the container.
    CpuLimit,
    /// The requests.
    Shape,
    /// How and how much of them.
    Load,
    /// What counts as good.
    Slo,
    /// The engine.
    Engine,
    /// Its version.
    EngineVersion,
    /// The model.
    Model,
    /// Its revision.
    ModelRevision,
    /// The image.
    Image,
    /// Its digest.
    ImageDigest,
    /// The command line.
    Command,
    /// Its environment.
    Environment,
}

/// One property that two reports do not share.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Differs {
    /// Which.
    pub field: Field,
    /// In the one; none where it does not say.
    pub one: Option<String>,
    /// In the other.
    pub other: Option<String>,
}

impl Field {
    /// All of them.
    pub const ALL: [Self; 17] = [
        Self::Gpus,
        Self::Cpu,
        Self::Cpus,
        Self::Ram,
        Self::MemoryLimit,
        Self::CpuLimit,
        Self::Shape,
        Self::Load,
        Self::Slo,
        Self::Engine,
        Self::EngineVersion,
        Self::Model,
        Self::ModelRevision,
        Self::Image,
        Self::ImageDigest,
        Self::Command,
        Self::Environment,
    ];
    /// What a release changes.
    pub const RELEASED: [Self; 6] = [
        Self::EngineVersion,
        Self::ModelRevision,
        Self::Image,
        Self::ImageDigest,
        Self::Command,
        Self::Environment,
    ];
    /// What a release changes where it says so.
    pub const MODEL: [Self; 2] = [Self::Engine, Self::Model];

    /// Its key in a policy.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Gpus => "gpus",
            Self::Cpu => "cpu",
            Self::Cpus => "cpus",
            Self::Ram => "ram",
            Self::MemoryLimit => "memory_limit",
            Self::CpuLimit => "cpu_limit",
            Self::Shape => "shape",
            Self::Load => "load",
            Self::Slo => "slo",
            Self::Engine => "engine",
            Self::EngineVersion => "engine_version",
            Self::Model => "model",
            Self::ModelRevision => "model_revision",
            Self::Image => "image",
            Self::ImageDigest => "image_digest",
            Self::Command => "command",
            Self::Environment => "environment",
        }
    }

    /// What a report says of it; none where it says nothing.
    #[must_use]
    pub fn of(self, m: &Measure) -> Option<String> {
        let s = &m.subject;
        let words = |w: &[String]| (!w.is_empty()).then(|| w.join(" "));
        match self {
            Self::Gpus => gpus(&m.hardware),
            Self::Cpu => m.hardware.cpu.clone(),
            Self::Cpus => m.hardware.cpus.map(|n| n.to_string()),
            // A machine says a little more or less of its RAM after an update of its kernel.
            Self::Ram => m.hardware.ram_bytes.map(|b| format!("{:.0} GiB", b as f64 / f64::from(1 << 30))),
            Self::MemoryLimit => m.hardware.memory_limit_bytes.map(|b| b.to_string()),
            Self::CpuLimit => m.hardware.cpu_limit.map(|c| c.to_string()),
            Self::Shape => m.shape.as_ref().map(|s| s.digest.clone().unwrap_or_else(|| s.name.clone())),
            Self::Load => load(m),
            Self::Slo => m.slo.as_ref().map(|s| {
                let part = |name: &str, v: Option<f64>| v.map(|v| format!("{name} {v}"));
                let all =
                    [part("ttft", s.ttft_seconds), part("itl", s.itl_seconds), part("e2e", s.e2e_seconds)];
                all.into_iter().flatten().collect::<Vec<_>>().join(", ")
            }),
            Self::Engine => s.engine.clone(),
            Self::EngineVersion => s.engine_version.clone(),
            Self::Model => s.model.clone(),
            Self::ModelRevision => s.model_revision.clone(),
            Self::Image => s.image.clone(),
            Self::ImageDigest => s.image_digest.clone(),
            Self::Command => words(&s.command),
            Self::Environment => words(&s.environment),
        }
    }
}

fn gpus(h: &Hardware) -> Option<String> {
    let all = h.gpus.as_ref()?;
    if all.is_empty() {
        return Some("none".to_owned());
    }
    let mut names: Vec<String> = all
        .iter()
        .map(|g| {
            let memory = g.memory_bytes.map(|b| format!(" {:.0} GiB", b as f64 / f64::from(1 << 30)));
            let mig = g.mig.as_ref().map(|m| format!(" MIG {m}"));
            format!("{}{}{}", g.name, memory.unwrap_or_default(), mig.unwrap_or_default())
        })
        .collect();
    names.sort();
    Some(names.join(", "))
}

/// The ways in which its runs were loaded, each once.
fn load(m: &Measure) -> Option<String> {
    let mut all: Vec<String> = m
        .runs
        .iter()
        .map(|r| {
            let l = &r.load;
            let concurrency = l.concurrency.map(|c| format!(" {c} at a time"));
            let rate = l.rate.map(|r| format!(" {r}/s"));
            format!("{}{}{}", l.mode, concurrency.unwrap_or_default(), rate.unwrap_or_default())
        })
        .collect();
    all.sort();
    all.dedup();
    (!all.is_empty()).then(|| all.join(", "))
}

/// In what two reports differ. Where neither says anything, nothing is known to differ.
#[must_use]
pub fn differences(one: &Measure, other: &Measure) -> Vec<Differs> {
    Field::ALL
        .into_iter()
        .filter_map(|field| {
            let (one, other) = (field.of(one), field.of(other));
            (one != other).then_some(Differs { field, one, other })
        })
        .collect()
}
