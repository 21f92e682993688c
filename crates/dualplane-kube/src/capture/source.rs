//! Sources run side by side; how each went is kept.

use std::future::Future;
use std::pin::Pin;

use dualplane_core::evidence::{Gap, RawFile};
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use super::Progress;
use crate::api::ApiError;

/// How a source went.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// Read.
    Ok,
    /// It does not exist here: no metrics-server, no owner, no such log.
    Absent,
    /// A permission is missing.
    Forbidden,
    /// It could not be read, or not to its end.
    Failed,
}

/// One source of a bundle.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Source {
    /// Name: `logs/vllm (previous)`, `events`.
    pub name: String,
    /// How it went.
    pub state: State,
    /// Bytes that were read, before anything was left out.
    pub bytes: u64,
    /// How long it took, milliseconds.
    pub ms: u64,
    /// Why it is not there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// It failed, and may not when it is read again.
    #[serde(skip)]
    pub may_pass: bool,
}

impl Source {
    /// In this state.
    #[must_use]
    pub fn new(name: &str, state: State, bytes: u64) -> Self {
        Self { name: name.to_owned(), state, bytes, ms: 0, why: None, may_pass: false }
    }
}

/// A source that has ended.
#[derive(Debug)]
pub(super) struct SourceResult {
    pub(super) source: Source,
    pub(super) files: Vec<RawFile>,
    pub(super) gaps: Vec<Gap>,
}

/// What a source hands back where it could be read.
#[derive(Debug, Default)]
pub(super) struct SourceData {
    pub(super) files: Vec<RawFile>,
    pub(super) bytes: u64,
    /// What is missing though the source was read.
    pub(super) gaps: Vec<Gap>,
}

impl SourceData {
    pub(super) fn one(file: RawFile) -> Self {
        Self { bytes: file.bytes.len() as u64, files: vec![file], gaps: Vec::new() }
    }
}

/// What to say where a source fails.
#[derive(Debug)]
pub(crate) struct Missing {
    /// What is missing, in words: "events of the pod".
    pub(crate) what: String,
    /// The command that gets it otherwise.
    pub(crate) command: Option<String>,
    /// Its absence is worth a word; metrics-server and the like may be absent in silence.
    pub(crate) wanted: bool,
}

type Running<'a> = Pin<Box<dyn Future<Output = SourceResult> + 'a>>;

/// Sources to run.
#[derive(Default)]
pub(super) struct Work<'a> {
    running: Vec<Running<'a>>,
}

impl<'a> Work<'a> {
    pub(super) fn add(
        &mut self,
        name: impl Into<String>,
        missing: Missing,
        read: impl Future<Output = Result<SourceData, ApiError>> + 'a,
    ) {
        let name = name.into();
        self.running.push(Box::pin(async move {
            let from = Instant::now();
            let result = read.await;
            let mut ended = end(name, missing, result);
            ended.source.ms = u64::try_from(from.elapsed().as_millis()).unwrap_or(u64::MAX);
            ended
        }));
    }

    pub(super) async fn run(self, progress: Progress<'_>) -> Vec<SourceResult> {
        let all = self.running.len();
        let mut running: FuturesUnordered<Running<'a>> = self.running.into_iter().collect();
        let mut ended = Vec::with_capacity(all);
        while let Some(e) = running.next().await {
            progress(&e.source.name, ended.len() + 1, all);
            ended.push(e);
        }
        ended
    }
}

fn end(name: String, missing: Missing, result: Result<SourceData, ApiError>) -> SourceResult {
    match result {
        Ok(read) => {
            let mut source = Source::new(&name, State::Ok, read.bytes);
            if read.files.is_empty() {
                source.state = State::Absent;
            }
            SourceResult { source, files: read.files, gaps: read.gaps }
        }
        Err(fault) => {
            let state = match &fault {
                ApiError::NotFound(_) => State::Absent,
                ApiError::Forbidden { .. } => State::Forbidden,
                _ => State::Failed,
            };
            let mut source = Source::new(&name, state, 0);
            source.why = Some(fault.to_string());
            source.may_pass = fault.may_pass();
            let gaps = if state == State::Absent && !missing.wanted {
                Vec::new()
            } else {
                vec![gap(missing, &fault)]
            };
            SourceResult { source, files: Vec::new(), gaps }
        }
    }
}

/// The gap that a fault leaves.
pub(crate) fn gap(missing: Missing, fault: &ApiError) -> Gap {
    let why = match fault {
        ApiError::Forbidden { permission, .. } if !permission.is_empty() => {
            format!("missing permission to {permission} (see deploy/rbac.yaml)")
        }
        f => f.to_string(),
    };
    Gap { what: missing.what, why, command: missing.command }
}
