//! No action against the facts: each states what it rests on, and is dropped where a fact says otherwise.

use super::{Action, Context, Stage};
use dualplane_base::Phase;
use dualplane_base::units::Bytes;
use dualplane_core::change::Change;
use dualplane_core::evidence::State;
use dualplane_core::facts::Maker;
use dualplane_core::facts::quantised::{by_name, by_setting};
use dualplane_core::verdict::Trigger;

/// What an action rests on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rest {
    /// The card, or what of it is given, is smaller than the need.
    TooSmall {
        /// What must fit.
        need: Bytes,
        /// What it must fit into.
        total: Bytes,
    },
    /// What the server asked for fits the card when nobody else is on it.
    FitsAlone,
    /// The weights are what did not fit.
    WeightsFailed,
    /// The checkpoint is not quantised yet.
    Unquantised,
    /// Cached memory of the allocator would have held the request in one piece.
    OnePiece {
        /// Reserved and not allocated.
        idle: Bytes,
        /// What was asked for.
        requested: Bytes,
    },
    /// The allocator knows `expandable_segments`.
    GrowsSegments,
    /// The node can hold a request of this size.
    NodeHolds(Bytes),
    /// The node cannot hold a request of this size.
    NodeLacks(Bytes),
    /// More ranks than run now.
    MoreRanks(u64),
    /// Fewer layers than there are.
    FewerLayers {
        /// Layers to be placed on the card.
        some: u64,
        /// Layers of the model.
        all: u64,
    },
    /// Words of the evidence, so that nothing is said of a message that was not printed.
    Says(&'static str),
    /// Host RAM and VRAM are two pools: what is moved from one to the other makes room.
    TwoPools,
    /// Nothing else lowers the engine's share of the card: it is to be kept.
    KeepsShare,
}

impl Action {
    /// States what it rests on.
    pub(crate) fn rests(mut self, on: Rest) -> Self {
        self.rests.push(on);
        self
    }
}

/// Why a fact speaks against it; `None` where none does.
pub(crate) fn against(cx: &Context<'_>, rest: Rest) -> Option<String> {
    let oom = cx.verdict.trigger.as_ref().and_then(Trigger::vram).unwrap_or_default();
    match rest {
        Rest::TooSmall { need, total } => (need <= total).then(|| format!("{need} fit {total}")),
        Rest::FitsAlone => {
            let need = oom.own().zip(oom.requested).map(|(own, req)| own.saturating_add(req));
            let short = need.zip(oom.total).is_some_and(|(need, total)| need > total);
            let started = cx.verdict.phase == Phase::Traffic || oom.others().is_some();
            (short || need.is_none() && !started)
                .then(|| "nothing shows that it fits the card alone".to_owned())
        }
        Rest::WeightsFailed => weights_failed(cx, &oom),
        Rest::Unquantised => quantised(cx).map(|how| format!("the checkpoint is quantised: {how}")),
        Rest::OnePiece { idle, requested } => {
            (idle < requested).then(|| format!("{idle} cached < {requested} requested"))
        }
        Rest::GrowsSegments => grows_no_segments(cx),
        Rest::NodeHolds(need) => {
            let has = node_memory(cx).filter(|has| *has < need)?;
            Some(format!("the node has {has}"))
        }
        Rest::NodeLacks(need) => match node_memory(cx) {
            Some(has) if has < need => None,
            Some(has) => Some(format!("the node has {has}")),
            None => Some("the evidence does not show what the node has".to_owned()),
        },
        Rest::MoreRanks(want) => {
            let now = cx.facts.engine.ranks() as u64;
            (want <= now).then(|| format!("{now} ranks run already"))
        }
        Rest::FewerLayers { some, all } => {
            (some >= all).then(|| format!("all {all} layers were on the card"))
        }
        Rest::TwoPools => {
            let one = super::shared_pool::one(cx)?;
            Some(format!("{one} has one pool"))
        }
        Rest::Says(words) => {
            let said = cx.verdict.trigger.as_ref().is_some_and(|t| t.text.contains(words))
                || super::quotes(cx).any(|q| q.contains(words));
            (!said).then(|| format!("nothing says `{words}`"))
        }
        // Compared with the other actions, see `drop_contradicted`.
        Rest::KeepsShare => {
            cx.engine().filter(|d| d.flags.share.is_empty()).map(|d| format!("{} has no share", d.name))
        }
    }
}

/// RAM that a pod can have on the node, or the machine's.
pub(crate) fn node_memory(cx: &Context<'_>) -> Option<Bytes> {
    let node = cx.verdict.subject.node.as_deref();
    let here = cx.bundle.nodes.iter().find(|n| Some(n.name.as_str()) == node);
    here.and_then(|n| n.memory_allocatable).or_else(|| {
        let of = |m: &&dualplane_core::evidence::host_model::HostMemory| {
            m.node.as_deref().zip(node).is_none_or(|(a, b)| a == b)
        };
        cx.bundle.machines.iter().filter(of).find_map(|m| m.total)
    })
}

/// The weights failed where loading filled the card; a profile run, a pool or a graph comes after them.
fn weights_failed(cx: &Context<'_>, oom: &dualplane_core::facts::vram::VramOom) -> Option<String> {
    if cx.verdict.phase != Phase::Load {
        return Some(format!("it failed in the phase {}", cx.verdict.phase));
    }
    let text = cx.verdict.trigger.as_ref().map_or("", |t| t.text.as_str()).to_ascii_lowercase();
    if ["kv cache", "kv_cache", "kv buffer", "compute buffer", "warmup"].iter().any(|w| text.contains(w)) {
        return Some("a buffer beside the weights failed".to_owned());
    }
    let need = oom.own().zip(oom.requested).map(|(own, req)| own.saturating_add(req));
    match need.zip(oom.total) {
        Some((need, total)) if need > total => None,
        Some((need, total)) => Some(format!("{need} fit {total}")),
        None => Some("the evidence shows no sizes".to_owned()),
    }
}

/// How it is known that the checkpoint is quantised.
pub(super) fn quantised(cx: &Context<'_>) -> Option<String> {
    let e = &cx.facts.engine;
    if let Some(how) = by_setting(e) {
        return Some(how);
    }
    let of_plan = cx.budget.expected.as_ref().and_then(|x| x.launch.model.as_ref());
    if of_plan.is_some_and(|m| m.model.quantization.is_some()) {
        return Some("as its configuration says".to_owned());
    }
    let of_line = cx.budget.expected.as_ref().and_then(|x| x.launch.line.model.as_deref());
    by_name(e, of_line)
}

/// `expandable_segments` came with PyTorch 2.1, whose message is worded anew, and maps memory as CUDA and HIP do.
fn grows_no_segments(cx: &Context<'_>) -> Option<String> {
    let text = cx.verdict.trigger.as_ref().map_or("", |t| t.text.as_str());
    if text.contains(" total capacity;") {
        return Some("this message is of PyTorch before 2.1, which rejects the option".to_owned());
    }
    if matches!(cx.facts.maker, Maker::Intel | Maker::Ascend | Maker::Gaudi) {
        return Some("the variable is CUDA's and HIP's".to_owned());
    }
    None
}

/// Drops what a fact speaks against, and commands that cannot run.
pub(super) fn drop_contradicted(cx: &Context<'_>, actions: &mut Vec<Action>) {
    actions.retain(|a| a.rests.iter().all(|r| against(cx, *r).is_none()));
    let never_ran = never_ran(cx);
    for a in actions.iter_mut() {
        a.commands.retain(|c| !(never_ran && c.contains("--previous")));
    }
    if lowers_share(cx, actions) {
        actions.retain(|a| !a.rests.contains(&Rest::KeepsShare));
    }
}

/// The container has had no earlier instance: there is no previous log.
fn never_ran(cx: &Context<'_>) -> bool {
    let Some(status) = cx.container().and_then(|c| c.status.as_ref()) else { return false };
    let whole = cx.verdict.subject.pod_of(cx.bundle).is_some_and(dualplane_core::evidence::Pod::whole);
    whole && status.restarts == Some(0) && !matches!(status.last, State::Terminated(_))
}

/// Some action lowers the share of the card.
fn lowers_share(cx: &Context<'_>, actions: &[Action]) -> bool {
    let Some(head) = cx.engine() else { return false };
    let names = &head.flags.share;
    actions.iter().filter(|a| a.stage != Stage::Avoid).flat_map(|a| &a.changes).any(|c| {
        let Change::Setting(s) = c else { return false };
        let number = |v: &Option<String>| v.as_deref().and_then(|v| v.parse::<f64>().ok());
        names.iter().any(|n| s.names.contains(n))
            && number(&s.value).zip(number(&s.was)).is_none_or(|(value, was)| value < was)
    })
}
