//! What a release must show: `gate.toml`.
//!
//! A key that stands in the policy is demanded: where the report does not hold the number, that is no pass. A key that is left
//! out is not asked for.

use std::collections::BTreeMap;

use dualplane_base::units::{Bytes, parse_k8s_memory};
use serde::Deserialize;

use super::figure::Figure;
use super::identity::Field;

/// The id of the form.
pub const POLICY_SCHEMA: &str = "dualplane.gate-policy/v1";

/// A policy with every key and what it is for, as `gate --init` prints it.
pub const TEMPLATE: &str = include_str!("template.toml");

/// A policy.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Policy {
    /// [`POLICY_SCHEMA`].
    pub schema: String,
    /// Which runs are believed.
    #[serde(default)]
    pub runs: Runs,
    /// What must stay free at the peak.
    #[serde(default)]
    pub headroom: Headroom,
    /// What must hold while it runs.
    #[serde(default)]
    pub stability: Stability,
    /// What the measured load must cover.
    #[serde(default)]
    pub worst_case: WorstCase,
    /// What clients must see.
    #[serde(default)]
    pub slo: SloPolicy,
    /// How much worse than the baseline it may be, by figure, as a share.
    #[serde(default)]
    pub regression: Option<Regression>,
}

/// Which runs are believed.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Runs {
    /// Runs of the candidate, at least.
    #[serde(default)]
    pub candidate: Option<u32>,
    /// Runs of the baseline, at least.
    #[serde(default)]
    pub baseline: Option<u32>,
    /// Seconds of each, at least.
    #[serde(default)]
    pub seconds: Option<f64>,
}

/// What must stay free at the peak, as shares.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Headroom {
    /// Of the container's memory limit.
    #[serde(default)]
    pub host: Option<f64>,
    /// Of the cards' memory.
    #[serde(default)]
    pub vram: Option<f64>,
    /// Of the KV cache.
    #[serde(default)]
    pub kv: Option<f64>,
    /// The limit that it will run with, where it was measured with another one or none: `32Gi`.
    #[serde(default)]
    pub host_limit: Option<Memory>,
}

/// What must hold while it runs.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stability {
    /// Restarts, at most.
    #[serde(default)]
    pub restarts: Option<u32>,
    /// No Xid but these.
    #[serde(default)]
    pub xids_allowed: Option<Vec<u32>>,
    /// Memory errors that were not corrected, at most.
    #[serde(default)]
    pub ecc_uncorrected: Option<u64>,
    /// Preemptions, at most, over all runs.
    #[serde(default)]
    pub preemptions: Option<u64>,
    /// Neither plane grows by more an hour than this: `16Mi`.
    #[serde(default)]
    pub drift_per_hour: Option<Memory>,
}

/// What the measured load must cover.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorstCase {
    /// The longest input of the shape has so many tokens, at least.
    #[serde(default)]
    pub input_tokens: Option<u64>,
    /// The longest output.
    #[serde(default)]
    pub output_tokens: Option<u64>,
    /// Requests at the same time, at least, in one of the runs.
    #[serde(default)]
    pub concurrency: Option<u32>,
    /// Requests a second, at least, in one of the runs.
    #[serde(default)]
    pub rate: Option<f64>,
    /// Each of these ways to load it was used: `burst`, `long-spike`.
    #[serde(default)]
    pub modes: Vec<String>,
}

/// What clients must see, in every run.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SloPolicy {
    /// 99th percentile of seconds to the first token, at most.
    #[serde(default)]
    pub ttft_p99: Option<f64>,
    /// 99th percentile of seconds between two tokens, at most.
    #[serde(default)]
    pub itl_p99: Option<f64>,
    /// 99th percentile of seconds of a request, at most.
    #[serde(default)]
    pub e2e_p99: Option<f64>,
    /// Share of requests that fail, at most.
    #[serde(default)]
    pub errors: Option<f64>,
    /// Good requests as a share of those sent and not cancelled, at least.
    #[serde(default)]
    pub good: Option<f64>,
    /// Good requests a second, at least.
    #[serde(default)]
    pub goodput: Option<f64>,
}

/// How much worse than the baseline it may be.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Regression {
    /// Of the intervals.
    #[serde(default = "confidence")]
    pub confidence: f64,
    /// Where the noise is larger than what may be lost: also no pass.
    #[serde(default)]
    pub certain: bool,
    /// Properties in which the candidate may differ from the baseline: what is released.
    #[serde(default = "may_differ")]
    pub may_differ: Vec<Field>,
    /// By figure, the share that is tolerated.
    pub tolerance: BTreeMap<Figure, f64>,
}

const fn confidence() -> f64 {
    0.99
}

fn may_differ() -> Vec<Field> {
    Field::RELEASED.to_vec()
}

/// An amount of memory as manifests write it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct Memory(pub Bytes);

impl TryFrom<String> for Memory {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        parse_k8s_memory(&text)
            .map(Memory)
            .ok_or_else(|| format!("`{text}` is no amount of memory; write 32Gi or 512Mi"))
    }
}

impl Policy {
    /// What a policy asks for that cannot be, in words; none where it is sound.
    #[must_use]
    pub fn fault(&self) -> Option<String> {
        let shares = [
            ("headroom.host", self.headroom.host),
            ("headroom.vram", self.headroom.vram),
            ("headroom.kv", self.headroom.kv),
            ("slo.errors", self.slo.errors),
            ("slo.good", self.slo.good),
        ];
        for (key, share) in shares {
            if share.is_some_and(|s| !(0.0..=1.0).contains(&s)) {
                return Some(format!("{key} is a share: 0 to 1, and 0.1 is 10 %"));
            }
        }
        if let Some(r) = &self.regression {
            if !(0.5..1.0).contains(&r.confidence) {
                return Some("regression.confidence is from 0.5 to below 1".to_owned());
            }
            if let Some((f, _)) = r.tolerance.iter().find(|(_, t)| !t.is_finite() || **t < 0.0) {
                return Some(format!("regression.tolerance.{} is a share of 0 or more", f.as_str()));
            }
            if let Some(f) =
                r.may_differ.iter().find(|f| !Field::RELEASED.contains(f) && !Field::MODEL.contains(f))
            {
                return Some(format!(
                    "regression.may_differ names {}: a comparison across different ones says nothing of the release; \
                     measure the baseline anew",
                    f.as_str()
                ));
            }
        }
        let times = [
            ("runs.seconds", self.runs.seconds),
            ("slo.ttft_p99", self.slo.ttft_p99),
            ("slo.itl_p99", self.slo.itl_p99),
            ("slo.e2e_p99", self.slo.e2e_p99),
            ("slo.goodput", self.slo.goodput),
            ("worst_case.rate", self.worst_case.rate),
        ];
        let bad = times.iter().find(|(_, t)| t.is_some_and(|t| !t.is_finite() || t < 0.0));
        bad.map(|(key, _)| format!("{key} is a number of 0 or more"))
    }
}
