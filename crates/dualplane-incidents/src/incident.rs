//! One death as a fleet keeps it.

use dualplane_base::{Class, Confidence, Phase, Plane};
use serde::{Deserialize, Serialize};

use crate::dimension::Dimension;
use crate::time::Time;

/// Version of the form. The agent's own summary on its node is `dualplane.incident/v1`.
pub const SCHEMA: &str = "dualplane.fleet-incident/v1";

/// A card of the pod.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Gpu {
    /// `GPU-…` or `MIG-…`; empty where only the kind of card is known.
    pub uuid: String,
    /// Name as the driver prints it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Version of the driver.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub driver: Option<String>,
    /// Uncorrected ECC errors that its counter held.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ecc_uncorrected: Option<u64>,
}

/// An Xid that was seen.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Xid {
    /// Its number.
    pub code: u32,
    /// The card: PCI address or UUID, where the line names one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpu: Option<String>,
}

/// The first error.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Trigger {
    /// The line, shortened.
    pub text: String,
    /// File of the evidence.
    pub file: String,
    /// Line, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u64>,
    /// When it was written, as its source printed it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time: Option<String>,
}

/// What a launch should take, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Planned {
    /// At least.
    pub low: u64,
    /// Likely.
    pub expected: u64,
    /// At most.
    pub high: u64,
}

/// Host RAM: what was allowed, held and planned. What is not known is absent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Memory {
    /// Limit of the container.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit_bytes: Option<u64>,
    /// Anonymous and shared memory that it held at the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub held_bytes: Option<u64>,
    /// Peak of the load, by the plan of the launch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub planned: Option<Planned>,
    /// Tokens of KV cache, by the plan of the launch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub planned_kv_tokens: Option<Planned>,
}

/// VRAM of the card that was fullest. What is not known is absent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Vram {
    /// Of the card, or of its MIG instance.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total_bytes: Option<u64>,
    /// The most that was in use on it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub held_bytes: Option<u64>,
    /// Weights and KV cache on a card, by the plan of the launch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub planned: Option<Planned>,
}

/// A server that lives at its limit: which memory that is. Nothing of it died.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum Pressure {
    /// Host RAM.
    Host,
    /// VRAM, or the KV cache in it.
    Gpu,
    /// Both.
    Both,
}

impl Pressure {
    /// For people.
    #[must_use]
    pub fn title(self) -> &'static str {
        match self {
            Self::Host => "Host RAM pressure",
            Self::Gpu => "VRAM pressure",
            Self::Both => "Pressure on both planes",
        }
    }
}

/// Where the time of a death is from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum Clock {
    /// The sender told it.
    Sender,
    /// The report told it.
    Report,
    /// Nobody told it, or it lay in the future: it is when the incident was received.
    Receipt,
}

/// A death. Texts are cleaned of what a terminal would obey and bounded; they are not escaped for HTML.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Incident {
    /// [`SCHEMA`].
    pub schema: String,
    /// The sender's name for it, see [`crate::is_id`]. A second upload of the same name changes nothing.
    pub id: String,
    /// Cluster; empty where nobody told it, as everywhere below.
    pub cluster: String,
    /// Namespace.
    pub namespace: String,
    /// Workload that made the pod.
    pub owner: String,
    /// Pod.
    pub pod: String,
    /// Container.
    pub container: String,
    /// Node.
    pub node: String,
    /// Image.
    pub image: String,
    /// Model.
    pub model: String,
    /// Engine's id.
    pub engine: String,
    /// Its version.
    pub engine_version: String,
    /// Cards.
    pub gpus: Vec<Gpu>,
    /// Xids.
    pub xids: Vec<Xid>,
    /// Class.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub class: Class,
    /// Plane; follows from the class.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub plane: Plane,
    /// What the server was doing.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub phase: Phase,
    /// How sure.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub confidence: Confidence,
    /// The class in words.
    pub title: String,
    /// One sentence about this death.
    pub summary: String,
    /// The first error; absent where the proof is not a line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trigger: Option<Trigger>,
    /// What to do first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub top_action: Option<String>,
    /// Host RAM.
    #[serde(default)]
    pub memory: Memory,
    /// VRAM.
    #[serde(default)]
    pub vram: Vram,
    /// It lives, at this limit; absent of a death.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pressure: Option<Pressure>,
    /// The same workload that dies again has the same.
    pub loop_key: String,
    /// The same workload that dies again of the same has the same.
    pub cause_key: String,
    /// When it died.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub died_at: Time,
    /// Where that is from.
    pub died_at_from: Clock,
    /// When it was received.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub received_at: Time,
    /// How often this cause has been received, this death included. A store fills it in when it is asked.
    pub occurrences: u64,
}

impl Incident {
    /// Its values of a dimension: none where nobody told any, several where it has several cards.
    #[must_use]
    pub fn values(&self, dimension: Dimension) -> Vec<String> {
        let one = |text: &str| if text.is_empty() { Vec::new() } else { vec![text.to_owned()] };
        let of_gpus = |pick: fn(&Gpu) -> Option<&str>| {
            let mut all: Vec<String> =
                self.gpus.iter().filter_map(pick).filter(|v| !v.is_empty()).map(ToOwned::to_owned).collect();
            all.sort();
            all.dedup();
            all
        };
        match dimension {
            Dimension::Class => one(self.class.as_str()),
            Dimension::Plane => one(self.plane.as_str()),
            Dimension::Phase => one(self.phase.as_str()),
            Dimension::Confidence => one(self.confidence.as_str()),
            Dimension::Cluster => one(&self.cluster),
            Dimension::Namespace => one(&self.namespace),
            Dimension::Owner => one(&self.owner),
            Dimension::Pod => one(&self.pod),
            Dimension::Container => one(&self.container),
            Dimension::Node => one(&self.node),
            Dimension::Image => one(&self.image),
            Dimension::Model => one(&self.model),
            Dimension::Engine => one(&self.engine),
            Dimension::EngineVersion => one(&self.engine_version),
            Dimension::Gpu => of_gpus(|g| Some(&g.uuid)),
            Dimension::GpuName => of_gpus(|g| g.name.as_deref()),
            Dimension::Driver => of_gpus(|g| g.driver.as_deref()),
            Dimension::Xid => {
                let mut codes: Vec<u32> = self.xids.iter().map(|x| x.code).collect();
                codes.sort_unstable();
                codes.dedup();
                codes.iter().map(ToString::to_string).collect()
            }
        }
    }
}
