//! Verdicts as Events on the pods: `kubectl describe pod` says what died first, without any tool.
//!
//! It is a sink like the others: the folder of incidents is its queue, so an API server that is away loses nothing, and
//! nothing waits for it.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use dualplane_base::Class;
use dualplane_base::text::printable;
use dualplane_base::time::{Stamp, parse_rfc3339};
use dualplane_core::evidence::framing::parse_kmsg;
use dualplane_core::knowledge::Knowledge;
use dualplane_core::redact;
use dualplane_kube::access::Access;
use dualplane_kube::api::{Api, ApiError};
use dualplane_kube::event::{self, IncidentEvent, Published};
use dualplane_node::clock::{Anchor, Moment};

use super::{Sink, SinkError, stable_hash};
use crate::incident::{Kind, Summary};

/// Name of the sink.
const NAME: &str = "event";
/// The API server drops Events after an hour; what is older would be news of yesterday.
const MAX_AGE: Duration = Duration::from_secs(3600);
/// Between two Events of a node.
const PACE: Duration = Duration::from_millis(500);
/// Characters of a first line that are quoted.
const MAX_TRIGGER: usize = 600;

/// What became of an incident.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It is told.
    Published(Published),
    /// There is nothing to tell: it is no memory failure, of no pod, or too old.
    Skipped,
}

/// Publishes Events.
pub struct EventSink {
    access: Access,
    knowledge: Arc<Knowledge>,
    runtime: tokio::runtime::Runtime,
    api: Option<Api>,
}

impl std::fmt::Debug for EventSink {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EventSink").field("api", &self.api).finish_non_exhaustive()
    }
}

impl EventSink {
    /// Nothing is asked yet: the API server may be away.
    ///
    /// # Errors
    /// No event loop can be made: no descriptors.
    pub fn new(access: Access, knowledge: Arc<Knowledge>) -> std::io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        Ok(Self { access, knowledge, runtime, api: None })
    }

    /// Publishes one incident.
    ///
    /// # Errors
    /// [`SinkError::Refused`] where the namespace is gone or going, else it may work later.
    pub fn tell(&mut self, s: &Summary) -> Result<Outcome, SinkError> {
        let now = Anchor::take().wall_ms(Moment::now());
        let Some((class, message)) = words(s, &self.knowledge).filter(|_| !is_old(s, now)) else {
            return Ok(Outcome::Skipped);
        };
        let name = event_name(s, class);
        let notice = IncidentEvent {
            namespace: &s.namespace,
            pod: &s.pod,
            uid: s.api_uid.as_ref().unwrap_or(&s.uid),
            container: &s.container,
            node: &s.node,
            name: &name,
            incident: &s.id,
            class: class.as_str(),
            at: &s.died_at,
            message: &message,
        };
        let later = |e: ApiError| SinkError::Later(e.to_string());
        let api = match self.api.take() {
            Some(api) => api,
            None => self.runtime.block_on(self.access.connect()).map_err(later)?,
        };
        let done = self.runtime.block_on(event::publish(&api, &notice));
        // New credentials may be there the next time.
        if !matches!(&done, Err(ApiError::Access(_) | ApiError::Unauthorized(_))) {
            self.api = Some(api);
        }
        match done {
            Ok(published) => Ok(Outcome::Published(published)),
            Err(e) if is_final(&e) => Err(SinkError::Refused(e.to_string())),
            Err(e) => Err(later(e)),
        }
    }
}

impl Sink for EventSink {
    fn name(&self) -> &str {
        NAME
    }

    fn deliver(&mut self, summary: &Summary, _bundle: &Path) -> Result<(), SinkError> {
        self.tell(summary).map(|_| ())
    }

    fn pace(&self) -> Duration {
        PACE
    }
}

/// The namespace is gone or going, or the object itself is refused: time changes none of these.
fn is_final(e: &ApiError) -> bool {
    match e {
        ApiError::NotFound(_) | ApiError::Status { status: 400 | 422, .. } => true,
        ApiError::Forbidden { why, .. } => why.contains("being terminated"),
        _ => false,
    }
}

fn is_old(s: &Summary, now_ms: i64) -> bool {
    let Some(Stamp::Wall { ms, .. }) = parse_rfc3339(&s.died_at) else { return false };
    u128::try_from(now_ms.saturating_sub(ms)).is_ok_and(|age| age > MAX_AGE.as_millis())
}

/// The same container and class of one pod are one Event.
fn event_name(s: &Summary, class: Class) -> String {
    // Kubernetes' own are POD.HEX as well. With a pod's name of 253 characters it would be too long.
    let pod: String = s.pod.chars().take(200).collect();
    let pod = pod.trim_end_matches(['-', '.']);
    format!("{pod}.{:016x}", stable_hash(&[&s.uid, &s.container, class.as_str()]))
}

/// Class and message; `None` where there is nothing to tell.
fn words(s: &Summary, knowledge: &Knowledge) -> Option<(Class, String)> {
    if s.kind == Kind::End || s.namespace.is_empty() || s.pod.is_empty() || s.uid.is_empty() {
        return None;
    }
    let class = Class::ALL.iter().copied().find(|c| Some(c.as_str()) == s.class.as_deref())?;
    if matches!(class, Class::NotMemory | Class::Unknown) {
        return None;
    }
    let what = match s.kind {
        Kind::Kill if s.from_exec => {
            "a process started with kubectl exec was killed, the container is still running: "
        }
        Kind::Kill => "processes were killed, the container is still running: ",
        Kind::Death | Kind::End => "",
    };
    let mut message =
        format!("{what}{} ({}, {} plane)", class.title(), class.as_str(), class.plane().as_str());
    if let Some(line) = &s.trigger {
        // It is masked already; what leaves the node is masked by what this version knows.
        let line = redact::line(parse_kmsg(line).map_or(line.as_str(), |(_, text)| text), knowledge);
        let line: String = printable(&line).chars().take(MAX_TRIGGER).collect();
        message.push_str(&format!("; first line: {line}"));
    }
    message.push_str(&format!("; incident {} on node {}", s.id, s.node));
    Some((class, message))
}

#[cfg(test)]
mod tests;
