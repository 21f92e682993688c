//! One pod told several times (as JSON, described, inspected, a row of a table) becomes one: the fullest form stays, and
//! takes from the others what it lacks.

use crate::evidence::Bundle;
use crate::evidence::kube_model::{
    Container, ContainerKind, ContainerStatus, Extent, Pod, State, Termination,
};

/// Moves pasted pods to the pods of the bundle, or into those that are there already.
pub(in crate::evidence) fn pasted(bundle: &mut Bundle) {
    let (full, thin): (Vec<Pod>, Vec<Pod>) =
        std::mem::take(&mut bundle.pasted).into_iter().partition(|p| p.extent != Extent::Row);
    let (named, nameless): (Vec<Pod>, Vec<Pod>) =
        full.into_iter().chain(thin).partition(|p| !p.name.is_empty());
    for pod in named {
        match bundle.pods.iter_mut().find(|p| same(p, &pod)) {
            Some(known) => absorb(known, pod),
            None => bundle.pods.push(pod),
        }
    }
    for pod in nameless {
        join(bundle, pod);
    }
}

/// A status without the pod's name is that of the only pod, or of a pod that nothing else tells of.
fn join(bundle: &mut Bundle, mut piece: Pod) {
    match bundle.pods.as_mut_slice() {
        [] => bundle.pods.push(piece),
        [known] => {
            let mut mains = known.containers.iter().filter(|c| c.kind == ContainerKind::Main);
            let only = mains.next().map(|c| c.name.clone()).filter(|_| mains.next().is_none());
            for c in piece.containers.iter_mut().filter(|c| c.name.is_empty()) {
                c.name = only.clone().unwrap_or_default();
            }
            absorb(known, piece);
        }
        _ => {
            let why = "it shows how a container ended but not its pod, and the evidence covers several pods";
            bundle.gap(&piece.file, why, Some("kubectl get pod POD -o json > pod.json"));
        }
    }
}

fn same(a: &Pod, b: &Pod) -> bool {
    a.name == b.name && (a.namespace == b.namespace || a.namespace.is_empty() || b.namespace.is_empty())
}

fn absorb(known: &mut Pod, other: Pod) {
    known.extent = known.extent.max(other.extent);
    if known.uid.is_empty() {
        known.uid = other.uid;
    }
    if known.namespace.is_empty() {
        known.namespace = other.namespace;
    }
    known.node = known.node.take().or(other.node);
    known.reason = known.reason.take().or(other.reason);
    known.message = known.message.take().or(other.message);
    for v in other.volumes {
        if !known.volumes.iter().any(|k| k.name == v.name) {
            known.volumes.push(v);
        }
    }
    for c in other.containers {
        // A row or a cut-out may not name the container: it is the only one, or one that ended alike.
        let (some, only) = (!known.containers.is_empty(), known.containers.len() == 1);
        let place = match c.name.is_empty() {
            true => known.containers.iter().position(|k| only || ended_alike(k, &c)),
            false => known.containers.iter().position(|k| k.name == c.name || only && k.name.is_empty()),
        };
        match place.and_then(|i| known.containers.get_mut(i)) {
            Some(k) => absorb_container(k, c),
            None if c.name.is_empty() && some && !oom_killed(&c) => {}
            None => known.containers.push(c),
        }
    }
}

/// One end told twice, with what each lacks.
fn same_end(known: &mut Termination, other: Termination) {
    let fits = known.exit_code.is_none() || other.exit_code.is_none() || known.exit_code == other.exit_code;
    if fits && known.reason.is_empty() {
        known.reason = other.reason;
    }
    if fits {
        known.exit_code = known.exit_code.or(other.exit_code);
    }
}

fn oom_killed(c: &Container) -> bool {
    c.status.iter().flat_map(ContainerStatus::terminations).any(Termination::oom_killed)
}

fn ended_alike(a: &Container, b: &Container) -> bool {
    oom_killed(a) && oom_killed(b)
}

fn absorb_container(known: &mut Container, other: Container) {
    if known.name.is_empty() {
        known.name = other.name;
    }
    if known.image.is_empty() {
        known.image = other.image;
    }
    known.memory_limit = known.memory_limit.or(other.memory_limit);
    if known.args.is_empty() {
        known.args = other.args;
    }
    known.invocation = known.invocation.take().or(other.invocation);
    let Some(status) = other.status else { return };
    match &mut known.status {
        None => known.status = Some(status),
        // Two instances of one container: the newer is the state, the older the last one.
        Some(k) if matches!(k.last, State::None) && k.container_id != status.container_id => {
            if k.restarts >= status.restarts {
                k.last = status.state;
            } else {
                let older = std::mem::replace(k, status);
                if matches!(k.last, State::None) {
                    k.last = older.state;
                }
            }
        }
        Some(k) if k.termination().is_none() => *k = status,
        // Told twice: the code from the one, the reason from the other.
        Some(k) => {
            let told = status.termination().cloned();
            if let (State::Terminated(t), _) | (_, State::Terminated(t)) = (&mut k.state, &mut k.last)
                && let Some(other) = told
            {
                same_end(t, other);
            }
            k.restarts = k.restarts.max(status.restarts);
        }
    }
}
