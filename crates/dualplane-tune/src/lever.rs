//! The eleven levers, each with what it moves and what it risks on both planes: `knowledge/levers.toml`.

use std::sync::LazyLock;

use serde::{Deserialize, Serialize};

use crate::flow::Branch;

/// A lever.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Lever {
    /// The server puts requests together (Triton: `dynamic_batching`).
    DynamicBatching,
    /// Sizes of batches that the model runs best with (Triton: `preferred_batch_size`).
    PreferredSizes,
    /// How long a request waits for others (Triton: `max_queue_delay_microseconds`).
    QueueDelay,
    /// Copies of the model (Triton: `instance_group`; others: data parallel ranks, replicas).
    InstanceCount,
    /// Requests that are computed at the same time, and tokens of one step (vLLM: `--max-num-seqs`).
    InFlightBatching,
    /// A compiled engine.
    TensorRt,
    /// Fewer bits of weights or of the KV cache.
    Precision,
    /// How inputs reach the server: gRPC, shared memory.
    Transport,
    /// Tokenizing, images and audio elsewhere, or on more processors.
    CpuPreprocessing,
    /// What stays in memory and is warm: the KV cache's size, preloaded models.
    Residency,
    /// Long or large requests in a deployment of their own.
    SeparateDeployments,
}

/// What is known of a lever.
#[derive(Debug, Deserialize)]
struct Entry {
    id: Lever,
    title: String,
    risks_host: String,
    risks_vram: String,
    #[serde(default)]
    advice: Vec<Advice>,
    #[cfg(test)]
    example: serde_json::Value,
}

/// What is said of a lever where no flag does it.
#[derive(Debug, Deserialize)]
pub(crate) struct Advice {
    pub(crate) branch: Branch,
    /// Ids of the engines whose settings it names; of none, it is for all.
    #[serde(default)]
    engines: Vec<String>,
    pub(crate) to: String,
    pub(crate) why: String,
    pub(crate) predicted: String,
}

#[derive(Debug, Default, Deserialize)]
struct Table {
    lever: Vec<Entry>,
}

// A table that is no table fails the tests below; a program without it names levers without words.
static TABLE: LazyLock<Table> = LazyLock::new(|| {
    serde_json::from_str(include_str!(concat!(env!("OUT_DIR"), "/levers.json"))).unwrap_or_default()
});

impl Lever {
    /// All of them, in the order of the list.
    pub const ALL: [Self; 11] = [
        Self::DynamicBatching,
        Self::PreferredSizes,
        Self::QueueDelay,
        Self::InstanceCount,
        Self::InFlightBatching,
        Self::TensorRt,
        Self::Precision,
        Self::Transport,
        Self::CpuPreprocessing,
        Self::Residency,
        Self::SeparateDeployments,
    ];

    fn of(self, get: fn(&Entry) -> &str) -> &'static str {
        TABLE.lever.iter().find(|e| e.id == self).map_or("", get)
    }

    /// Its name.
    #[must_use]
    pub fn title(self) -> &'static str {
        self.of(|e| &e.title)
    }

    /// What more of it risks in host RAM.
    #[must_use]
    pub fn risks_host(self) -> &'static str {
        self.of(|e| &e.risks_host)
    }

    /// What more of it risks in VRAM.
    #[must_use]
    pub fn risks_vram(self) -> &'static str {
        self.of(|e| &e.risks_vram)
    }
}

/// What is said in a branch to the users of an engine: first what names its settings, then what holds for all.
pub(crate) fn advice(branch: Branch, engine: &str) -> impl Iterator<Item = (Lever, &'static Advice)> {
    let of = move |own: bool| {
        let all = TABLE.lever.iter().flat_map(|e| e.advice.iter().map(|a| (e.id, a)));
        all.filter(move |(_, a)| {
            a.branch == branch
                && (if own { a.engines.iter().any(|e| e == engine) } else { a.engines.is_empty() })
        })
        .collect::<Vec<_>>()
    };
    [of(true), of(false)].into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use dualplane_engines::Engines;

    use super::*;
    use crate::{Finding, Levers, Numbers, Tried, propose};

    #[test]
    fn every_lever_is_in_the_table_once_and_in_order() {
        let ids: Vec<Lever> = TABLE.lever.iter().map(|e| e.id).collect();
        assert_eq!(ids, Lever::ALL);
        let engines = Engines::embedded();
        for e in &TABLE.lever {
            assert!(!e.title.is_empty() && !e.risks_host.is_empty() && !e.risks_vram.is_empty());
            for name in e.advice.iter().flat_map(|a| &a.engines) {
                assert!(engines.get(name).is_some(), "{name} is no engine");
            }
        }
    }

    /// What an example says is what is proposed.
    #[test]
    fn every_example_proposes_its_lever() {
        for e in &TABLE.lever {
            let of = |key: &str| e.example.get(key).cloned().unwrap_or_default();
            let number = |key: &str| of(key).as_f64();
            let engine = Engines::embedded().get(of("engine").as_str().unwrap()).unwrap();
            let levers = Levers::of(engine);
            let branch: Branch = serde_json::from_value(of("branch")).unwrap();
            let command: Vec<String> =
                of("command").as_str().unwrap().split(' ').map(str::to_owned).collect();
            let before: Vec<Lever> = serde_json::from_value(of("tried")).unwrap_or_default();
            let n = Numbers {
                running: number("running"),
                running_peak: number("running"),
                waiting: number("waiting"),
                waiting_peak: number("waiting"),
                kv_share: number("kv"),
                ..Numbers::default()
            };
            let finding = Finding { branch: Some(branch), because: Vec::new(), missing: Vec::new() };
            let mut tried = Vec::new();
            for lever in before {
                let p = propose(&n, &finding, &levers, &command, &tried).unwrap();
                assert_eq!(p.lever, lever, "before {:?}", e.id);
                tried.push(Tried { flag: String::new(), to: p.to });
            }
            let p = propose(&n, &finding, &levers, &command, &tried).unwrap();
            assert_eq!(p.lever, e.id, "{p:?}");
            assert_eq!(
                (p.risks_host.as_str(), p.risks_vram.as_str()),
                (e.id.risks_host(), e.id.risks_vram())
            );
        }
    }
}
