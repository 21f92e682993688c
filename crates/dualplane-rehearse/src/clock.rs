//! How long a step takes: what it costs at least, and more for each token, request and token looked back on.

use serde::{Deserialize, Serialize};

use crate::vllm::Step;

/// Seconds of a step.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StepTime {
    /// Of every step: the weights are read, the scheduler runs.
    #[serde(rename = "base_seconds")]
    pub base: f64,
    /// Of each token that is computed.
    #[serde(rename = "token_seconds")]
    pub token: f64,
    /// Of each request that takes part.
    #[serde(rename = "request_seconds", default)]
    pub request: f64,
    /// Of each token that the attention looks back on.
    #[serde(rename = "context_seconds", default)]
    pub context: f64,
}

impl StepTime {
    /// Seconds of this step.
    #[must_use]
    pub fn of(&self, step: &Step) -> f64 {
        if step.is_empty() {
            return 0.0;
        }
        self.base
            + self.token * f64::from(step.tokens)
            + self.request * f64::from(step.requests())
            + self.context * step.context as f64
    }

    /// Every step takes so many times as long.
    #[must_use]
    pub fn times(self, factor: f64) -> Self {
        Self {
            base: self.base * factor,
            token: self.token * factor,
            request: self.request * factor,
            context: self.context * factor,
        }
    }

    /// Whether time passes, and forwards.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        let all = [self.base, self.token, self.request, self.context];
        all.iter().all(|x| x.is_finite() && *x >= 0.0) && self.base + self.token + self.request > 0.0
    }
}
