//! Actions: what to do, computed from the evidence, as values. Nothing here is carried out.
//!
//! Each class has its own file. Every number shows its arithmetic; where the evidence cannot carry a number, the action
//! says what to measure and with which command. Levers of the wrong plane appear only under [`Stage::Avoid`].

mod alloc;
mod bleeding;
mod busy;
mod check;
pub(crate) mod focus;
mod host;
mod kv;
mod levers;
mod mig;
mod next;
mod other;
mod patch;
mod pool_size;
mod pressure;
mod quarantine;
mod reload;
mod rollout;
mod scaling;
mod settings;
mod shared_pool;
mod systemd;
mod vram;
mod watch;
mod xid;

pub(crate) use dualplane_base::command::{on_node, own_cgroup, own_cgroup_and_stat, own_kills};
use serde::Serialize;

use crate::budget::Budget;
use dualplane_base::Class;
use dualplane_base::order::Order as _;
use dualplane_core::change::Change;
use dualplane_core::evidence::Bundle;
use dualplane_core::facts::Facts;
use dualplane_core::knowledge::Knowledge;
use dualplane_core::verdict::{Names, Verdict};

/// When an action is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// Now, to serve again.
    StopTheBleeding,
    /// The change that removes the cause.
    Fix,
    /// How to see that it worked.
    Verify,
    /// So that it does not come back.
    Prevent,
    /// What looks like a fix and is none.
    Avoid,
}

impl Stage {
    /// All stages in order.
    pub const ALL: [Self; 5] = [Self::StopTheBleeding, Self::Fix, Self::Verify, Self::Prevent, Self::Avoid];

    /// Heading.
    #[must_use]
    pub fn title(self) -> &'static str {
        match self {
            Self::StopTheBleeding => "Stop the bleeding",
            Self::Fix => "Fix",
            Self::Verify => "Verify",
            Self::Prevent => "Prevent",
            Self::Avoid => "Avoid",
        }
    }
}

/// One action.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Action {
    /// When.
    pub stage: Stage,
    /// What, in one sentence.
    pub title: String,
    /// How its numbers come about.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub arithmetic: Vec<String>,
    /// Commands to run, ready to paste.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub commands: Vec<String>,
    /// What it changes of the container: `apply` computes the patch anew from this.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<Change>,
    /// A manifest patch (strategic merge, YAML).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub patch: Option<String>,
    /// What it rests on: where a fact speaks against it, the action is dropped.
    #[serde(skip)]
    pub(crate) rests: Vec<check::Rest>,
}

impl Action {
    pub(crate) fn new(stage: Stage, title: impl Into<String>) -> Self {
        Self {
            stage,
            title: title.into(),
            arithmetic: Vec::new(),
            commands: Vec::new(),
            changes: Vec::new(),
            patch: None,
            rests: Vec::new(),
        }
    }

    pub(crate) fn because(mut self, arithmetic: impl Into<String>) -> Self {
        self.arithmetic.push(arithmetic.into());
        self
    }

    pub(crate) fn run(mut self, command: impl Into<String>) -> Self {
        self.commands.push(command.into());
        self
    }

    pub(crate) fn patch(mut self, patch: &serde_json::Value) -> Self {
        self.patch = Some(dualplane_base::yaml::manifest(patch));
        self
    }
}

/// What the class files work on.
pub(crate) struct Context<'a> {
    pub bundle: &'a Bundle,
    pub facts: &'a Facts,
    pub knowledge: &'a Knowledge,
    pub verdict: &'a Verdict,
    pub budget: &'a Budget,
}

/// Computes the actions for a verdict, in the order of their stages.
#[must_use]
pub fn advise(
    bundle: &Bundle,
    facts: &Facts,
    knowledge: &Knowledge,
    verdict: &Verdict,
    budget: &Budget,
) -> Vec<Action> {
    let cx = Context { bundle, facts, knowledge, verdict, budget };
    let mut actions = match verdict.class {
        Class::HostOomKilled | Class::HostNodeOom => host::advise(&cx),
        Class::HostAllocFailure => alloc::advise(&cx),
        Class::CudaOomLoad | Class::CudaOomRuntime | Class::Fragmentation | Class::GpuCapacityConflict => {
            vram::advise(&cx)
        }
        Class::KvCacheCapacity => kv::advise(&cx),
        Class::MigSliceTooSmall => mig::advise(&cx),
        Class::XidHardware => xid::advise(&cx),
        Class::NotMemory | Class::Unknown => {
            let own = busy::advise(&cx);
            let known = !own.is_empty();
            pressure::advise(&cx).unwrap_or_else(|| if known { own } else { other::advise(&cx) })
        }
    };
    let first_aid = bleeding::advise(&cx, &actions);
    actions.extend(first_aid);
    actions.splice(0..0, shared_pool::advise(&cx));
    // What doubled the need goes before what makes one copy smaller.
    actions.splice(0..0, reload::advise(&cx));
    actions.extend(watch::advise(&cx));
    let taken_out = quarantine::advise(&cx, &actions);
    actions.extend(taken_out);
    actions.extend(scaling::hold(&cx));
    actions.extend(scaling::figure(&cx));
    check::drop_contradicted(&cx, &mut actions);
    // Before what the class advises: it is known to have worked.
    actions.splice(0..0, rollout::advise(&cx));
    actions.order_by_key(|a| a.stage);
    lead(&mut actions);
    settings::render(&cx, &mut actions);
    systemd::adapt(&cx, &mut actions);
    actions
}

/// The first fix is no alternative to another, whatever was dropped before it.
fn lead(actions: &mut [Action]) {
    let Some(first) = actions.iter_mut().find(|a| a.stage == Stage::Fix) else { return };
    if let Some(rest) = first.title.strip_prefix("Or ") {
        let mut chars = rest.chars();
        first.title = chars.next().map_or_else(String::new, |c| c.to_uppercase().chain(chars).collect());
    }
}

/// Lines and messages of the evidence that speak for the verdict. Our own sentences are not among them: they may be worded
/// anew, and what they count or compute names remedies of other classes.
pub(crate) fn quotes<'a>(cx: &Context<'a>) -> impl Iterator<Item = &'a str> {
    let supports = cx.verdict.causes.first().into_iter().flat_map(|c| &c.supports);
    supports.filter_map(|s| s.proof.quoted())
}

/// Signatures of the lines that speak for the verdict.
pub(crate) fn signatures<'a>(cx: &Context<'a>) -> impl Iterator<Item = &'a str> {
    let supports = cx.verdict.causes.first().into_iter().flat_map(|c| &c.supports);
    supports.filter_map(|s| s.proof.signature())
}

/// Names of pod, container, namespace and node for commands.
pub(crate) fn names(cx: &Context<'_>) -> Names {
    Names::of(&cx.verdict.subject)
}

/// A PromQL expression as a comment, so that pasting it into a shell does nothing.
pub(crate) fn promql(expression: &str) -> String {
    format!("# PromQL: {expression}")
}

/// What a container uses of its limit. Dead instances and two exporters of the same objects would make a match of several
/// series, which is an error: hence the maximum of each side.
pub(crate) fn of_limit(n: &Names, of_pod: bool) -> String {
    let pod = if of_pod { format!(",pod=\"{}\"", n.pod) } else { String::new() };
    let of = format!("namespace=\"{}\"{pod},container=\"{}\"", n.ns, n.container);
    let by = "(namespace, pod, container)";
    format!(
        "max by {by} (container_memory_working_set_bytes{{{of}}}) / on {by} max by {by} (kube_pod_container_resource_limits{{resource=\"memory\",{of}}})"
    )
}

/// What made the pod, as far as commands need it.
pub(crate) enum Workload {
    /// `kind/name` of what `kubectl rollout restart` and `kubectl set` work on.
    Rolling(String),
    /// Another kind of owner, which only its own controller can roll out.
    Other(String),
    /// The pod has no owner: nobody makes it again.
    Bare,
    /// The evidence does not tell.
    Unknown,
}

/// The owner of the pod.
pub(crate) fn workload(cx: &Context<'_>) -> Workload {
    let Some(pod) = cx.verdict.subject.pod_of(cx.bundle) else { return Workload::Unknown };
    match &pod.owner {
        Some((kind, name)) => owner(kind, name),
        None if !pod.whole() => Workload::Unknown,
        None => Workload::Bare,
    }
}

fn owner(kind: &str, name: &str) -> Workload {
    let rolling =
        |kind: &str, name: &str| Workload::Rolling(format!("{kind}/{}", Names::safe(Some(name), "NAME")));
    match kind {
        // A ReplicaSet's name is its Deployment's with a hash behind it.
        "ReplicaSet" => rolling("deployment", name.rsplit_once('-').map_or(name, |(d, _)| d)),
        "Deployment" => rolling("deployment", name),
        "StatefulSet" => rolling("statefulset", name),
        "DaemonSet" => rolling("daemonset", name),
        _ if !kind.is_empty() && kind.len() <= 63 && kind.chars().all(|c| c.is_ascii_alphanumeric()) => {
            Workload::Other(kind.to_owned())
        }
        _ => Workload::Unknown,
    }
}

/// Rounds a utilisation down to a whole hundredth, never below 0.
pub(crate) fn floor_hundredth(value: f64) -> f64 {
    // 0.29 * 100 is 28.999… in binary: a billionth is added before flooring.
    ((value * 100.0 + 1e-9).floor() / 100.0).max(0.0)
}

/// Rounds a utilisation up to a whole hundredth.
pub(crate) fn ceil_hundredth(value: f64) -> f64 {
    ((value * 100.0 - 1e-9).ceil() / 100.0).max(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_kubectl_restarts_is_named_in_a_command() {
        for (kind, name, want) in [
            ("ReplicaSet", "llm-6d9f7c5b84", Some("deployment/llm")),
            ("StatefulSet", "llm", Some("statefulset/llm")),
            ("DaemonSet", "$(reboot)", Some("daemonset/NAME")),
            ("Job", "llm-job", None),
            ("LeaderWorkerSet", "lws", None),
            ("InferenceService", "x", None),
            ("x; reboot", "y", None),
        ] {
            let got = owner(kind, name);
            let got = if let Workload::Rolling(w) = &got { Some(w.as_str()) } else { None };
            assert_eq!(got, want, "{kind}/{name}");
        }
    }
}
