//! Checks in Rust: where the plan's arithmetic, a command line or several objects decide. A rule of `knowledge/lint/` names
//! its check; severity, reasons and examples stand there.

mod card;
mod flags;
mod host;
mod payload;
mod pods;
mod scaling;
mod seen;

use std::sync::Arc;

use serde_json::Value;

use crate::object::{Object, Pods};
use crate::planned::Planned;

pub(crate) use seen::{Seen, Watcher};

/// What a check says of one thing.
#[derive(Debug, Clone, Default)]
pub(crate) struct Said {
    /// What is wrong, with its numbers.
    pub(crate) message: String,
    /// What to change.
    pub(crate) fix: String,
    /// Pointer below what was looked at.
    pub(crate) at: &'static str,
    /// The fix as values, by pointers below what was looked at.
    pub(crate) set: Vec<(String, Value)>,
}

impl Said {
    fn new(message: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { message: message.into(), fix: fix.into(), at: "", set: Vec::new() }
    }

    fn at(self, at: &'static str) -> Self {
        Self { at, ..self }
    }

    fn set(self, at: &'static str, value: impl Into<Value>) -> Self {
        Self { set: vec![(at.to_owned(), value.into())], at, ..self }
    }

    /// Flags with other values, where each stands in the container as a word of its own.
    fn flags(self, container: &Value, flags: &[(&'static str, String)]) -> Self {
        let set: Option<Vec<_>> = flags.iter().map(|(name, value)| flag(container, name, value)).collect();
        Self { set: set.unwrap_or_default(), ..self }
    }
}

/// Where a flag's value stands, and what must stand there instead. None where the flag is missing, stands twice or is a part of
/// a script: the text around it is the shell's.
fn flag(container: &Value, name: &str, value: &str) -> Option<(String, Value)> {
    let mut found = Vec::new();
    for key in ["command", "args"] {
        let list = container.get(key).and_then(Value::as_array);
        // A word that is no text would shift the others.
        let words: Vec<&str> = list.into_iter().flatten().map(|w| w.as_str().unwrap_or_default()).collect();
        for (i, word) in words.iter().enumerate() {
            if *word == name && words.get(i + 1).is_some() {
                found.push((format!("/{key}/{}", i + 1), Value::from(value)));
            } else if word.strip_prefix(name).is_some_and(|rest| rest.starts_with('=')) {
                found.push((format!("/{key}/{i}"), Value::from(format!("{name}={value}"))));
            } else if word.contains(name) && word.contains(char::is_whitespace) {
                return None;
            }
        }
    }
    found.pop().filter(|_| found.is_empty())
}

/// A server with what is known of it.
pub(crate) struct Server<'a> {
    /// Its object.
    pub(crate) object: &'a Object,
    /// Its pod.
    pub(crate) pod: &'a Pods<'a>,
    /// Its container.
    pub(crate) c: &'a Value,
    /// Its plan, where there is one.
    pub(crate) plan: Option<Arc<Planned>>,
}

/// Something in an object of another kind, or between objects.
pub(crate) struct Among<'a> {
    /// The object that is to change.
    pub(crate) watcher: &'a Watcher,
    /// What is wrong.
    pub(crate) said: Said,
}

/// How a check runs.
#[derive(Clone, Copy)]
pub(crate) enum Run {
    /// For each server.
    Server(fn(&Server<'_>) -> Option<Said>),
    /// At the end, for all objects.
    All(for<'a> fn(&'a Seen) -> Vec<Among<'a>>),
}

/// All checks by their names.
pub(crate) const TABLE: &[(&str, Run)] = &[
    ("limit_below_plan", Run::Server(host::limit_below_plan)),
    ("limit_within_plan", Run::Server(host::limit_within_plan)),
    ("limit_without_headroom", Run::Server(host::limit_without_headroom)),
    ("payload_beyond_limit", Run::Server(payload::payload_beyond_limit)),
    ("processor_cache_beyond_limit", Run::Server(payload::processor_cache_beyond_limit)),
    ("request_below_load_peak", Run::Server(host::request_below_load_peak)),
    ("offload_beyond_limit", Run::Server(host::offload_beyond_limit)),
    ("offload_without_limit", Run::Server(host::offload_without_limit)),
    ("shm_below_plan", Run::Server(host::shm_below_plan)),
    ("memory_volumes_beyond_limit", Run::Server(host::memory_volumes_beyond_limit)),
    ("cache_volume_below_weights", Run::Server(host::cache_volume_below_weights)),
    ("settings_rejected", Run::Server(card::settings_rejected)),
    ("card_too_small", Run::Server(card::card_too_small)),
    ("mig_too_small", Run::Server(card::mig_too_small)),
    ("ranks_beyond_gpus", Run::Server(card::ranks_beyond_gpus)),
    ("gpus_unused", Run::Server(card::gpus_unused)),
    ("long_and_short", Run::Server(card::long_and_short)),
    ("share_too_high", Run::Server(flags::share_too_high)),
    ("edge_of_three", Run::Server(flags::edge_of_three)),
    ("share_of_shared_gpu", Run::Server(flags::share_of_shared_gpu)),
    ("servers_share_gpu", Run::Server(flags::servers_share_gpu)),
    ("flag_misspelt", Run::Server(flags::flag_misspelt)),
    ("workers_multiply", Run::Server(flags::workers_multiply)),
    ("queue_unbounded", Run::Server(flags::queue_unbounded)),
    ("probe_shorter_than_load", Run::Server(pods::probe_shorter_than_load)),
    ("stop_longer_than_grace", Run::Server(pods::stop_longer_than_grace)),
    ("hpa_on_cpu", Run::All(scaling::hpa_on_cpu)),
    ("hpa_on_memory", Run::All(scaling::hpa_on_memory)),
    ("keda_on_cpu", Run::All(scaling::keda_on_cpu)),
    ("vpa_evicts", Run::All(scaling::vpa_evicts)),
    ("pdb_takes_all", Run::All(scaling::pdb_takes_all)),
    ("pdb_blocks_drains", Run::All(scaling::pdb_blocks_drains)),
    ("monitor_without_port", Run::All(scaling::monitor_without_port)),
];

/// One by its name.
pub(crate) fn named(name: &str) -> Option<Run> {
    TABLE.iter().find(|(n, _)| *n == name).map(|(_, run)| *run)
}
