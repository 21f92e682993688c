//! Who holds the memory of a card, and what nobody does.

use super::outcome::{Held, Unexplained, UnexplainedKind};
use super::seen::{Card, Holder, Life, Pids};
use dualplane_base::order::Order as _;
use dualplane_base::text::name;
use dualplane_base::units::{Bytes, MIB};

/// Memory in use on a card that nobody uses, at most: a few MiB were seen on idle cards, some 10 MiB beside each process.
pub(super) const IDLE: u64 = 512 * MIB;
/// Holders that a sentence names.
const NAMED: usize = 3;

/// The holders of a card, the largest first.
pub(super) fn held(card: &Card) -> Vec<Held> {
    let mut all: Vec<Held> = card
        .processes
        .iter()
        .map(|h| Held { orphan: matches!(h.life, Life::Gone | Life::Ended), holder: h.clone() })
        .collect();
    all.order_by_key(|h| (std::cmp::Reverse(h.holder.used), h.holder.pid));
    all
}

/// Memory that no listed process explains.
pub(super) fn unexplained(card: &Card, pids: Pids) -> Option<Unexplained> {
    let sum = card.processes.iter().filter_map(|h| h.used).fold(0_u64, |a, b| a.saturating_add(b.0));
    let rest = card.used?.0.saturating_sub(sum);
    if rest <= IDLE {
        return None;
    }
    let silent = card.processes.iter().any(|h| h.used.is_none());
    // Clients of MPS have their memory behind the server's back.
    let mps =
        card.processes.iter().any(|h| h.comm.as_deref().is_some_and(|c| c.starts_with("nvidia-cuda-mps")));
    let kind = match pids {
        _ if silent || mps => UnexplainedKind::Unsure,
        Pids::Host => UnexplainedKind::Orphan,
        Pids::Own => UnexplainedKind::NotVisible,
        Pids::Unknown => UnexplainedKind::Unsure,
    };
    Some(Unexplained { bytes: Bytes(rest), kind })
}

/// Who holds a card, in one sentence; `None` where nobody does.
pub(super) fn sentence(held: &[Held], rest: Option<Unexplained>) -> Option<String> {
    let mut parts: Vec<String> = held.iter().take(NAMED).map(one).collect();
    if held.len() > NAMED {
        parts.push(format!("{} more", held.len() - NAMED));
    }
    parts.extend(rest.map(|u| match u.kind {
        UnexplainedKind::Orphan => {
            format!("{} belong to no process: an orphaned context", u.bytes)
        }
        UnexplainedKind::NotVisible => {
            format!("{} are used by processes not visible from this PID namespace", u.bytes)
        }
        UnexplainedKind::Unsure => format!("{} are unexplained", u.bytes),
    }));
    (!parts.is_empty()).then(|| parts.join("; "))
}

fn one(h: &Held) -> String {
    let mut about = vec![format!("pid {}", h.holder.pid)];
    about.extend(owner(&h.holder));
    about.extend(h.holder.age_seconds.map(|s| format!("started {} ago", age(s))));
    let what = match h.holder.used {
        Some(b) => format!("holds {b}"),
        None => "uses memory; the driver does not report how much".into(),
    };
    let who = match (h.holder.life, h.holder.comm.as_deref().filter(|c| !c.is_empty())) {
        (Life::Gone, _) => "a process that no longer exists".to_owned(),
        (Life::Ended, Some(c)) => format!("{c}, which has ended"),
        (Life::Ended, None) => "a process that has ended".to_owned(),
        (Life::NotVisible, _) => "a process not visible from this PID namespace".to_owned(),
        (Life::Runs, Some(c)) => c.to_owned(),
        (Life::Runs, None) => "a process".to_owned(),
    };
    format!("{who} ({}) {what}", about.join(", "))
}

/// The pod of a holder as far as it is known.
#[must_use]
pub fn owner(h: &Holder) -> Option<String> {
    if let Some(n) = &h.names {
        return Some(format!("pod {}/{} container {}", name(&n.namespace), name(&n.pod), name(&n.container)));
    }
    let short = |id: &str| id.chars().take(12).collect::<String>();
    match (&h.pod_uid, &h.container_id) {
        (Some(uid), Some(c)) => Some(format!("pod UID {} container {}", name(uid), short(c))),
        (Some(uid), None) => Some(format!("pod UID {}", name(uid))),
        (None, Some(c)) => Some(format!("container {}", short(c))),
        (None, None) => None,
    }
}

/// Seconds as people say them: `40 s`, `12 min`, `3 h`, `5 days`.
#[must_use]
pub fn age(seconds: u64) -> String {
    match seconds {
        0..120 => format!("{seconds} s"),
        120..7200 => format!("{} min", seconds / 60),
        7200..172_800 => format!("{} h", seconds / 3600),
        _ => format!("{} days", seconds / 86_400),
    }
}

/// What to do about holders.
pub(super) fn settle(held: &[Held], rest: Option<Unexplained>, index: u32) -> String {
    let orphan = held.iter().any(|h| h.orphan) || rest.is_some_and(|u| u.kind == UnexplainedKind::Orphan);
    if orphan {
        return format!(
            "on the node, run `fuser -v /dev/nvidia*` to see which processes have the GPU open; if there \
            are none, drain and reset it: nvidia-smi --gpu-reset -i {index}"
        );
    }
    let hidden = held.iter().any(|h| h.holder.life == Life::NotVisible)
        || rest.is_some_and(|u| u.kind == UnexplainedKind::NotVisible);
    if hidden {
        return "wait, or identify the process: run this with hostPID: true, with --host-proc, or on the node"
            .into();
    }
    match held.iter().find_map(|h| h.holder.names.as_ref()) {
        Some(n) => format!(
            "wait until pod {}/{} ends, or stop it; two servers on one GPU each need their own share \
            (--gpu-memory-utilization)",
            name(&n.namespace),
            name(&n.pod)
        ),
        None => "wait until that process ends, or stop it; two servers on one GPU each need their own \
        share (--gpu-memory-utilization)"
            .into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dualplane_base::units::GIB;

    fn holder(pid: u32, used: Option<u64>, life: Life) -> Holder {
        Holder {
            pid,
            used: used.map(Bytes),
            life,
            comm: Some("VLLM::Worker".into()),
            age_seconds: Some(90),
            names: None,
            pod_uid: None,
            container_id: None,
        }
    }

    fn kind(used: u64, processes: Vec<Holder>, pids: Pids) -> Option<UnexplainedKind> {
        let card = Card { used: Some(Bytes(used)), processes, ..Card::default() };
        unexplained(&card, pids).map(|u| u.kind)
    }

    #[test]
    fn the_drivers_own_is_nobodys_orphan() {
        assert_eq!(kind(IDLE, vec![], Pids::Host), None);
        assert_eq!(kind(9 * GIB + IDLE, vec![holder(7, Some(9 * GIB), Life::Runs)], Pids::Host), None);
        assert_eq!(unexplained(&Card::default(), Pids::Host), None, "a card that tells nothing");
    }

    #[test]
    fn what_nobody_explains_is_called_by_what_can_be_seen() {
        let two = 2 * GIB;
        assert_eq!(kind(two, vec![], Pids::Host), Some(UnexplainedKind::Orphan));
        assert_eq!(kind(two, vec![], Pids::Own), Some(UnexplainedKind::NotVisible));
        assert_eq!(kind(two, vec![], Pids::Unknown), Some(UnexplainedKind::Unsure));
        assert_eq!(
            kind(two, vec![holder(7, None, Life::Runs)], Pids::Host),
            Some(UnexplainedKind::Unsure),
            "a process that does not tell its memory may hold it all"
        );
        let mut mps = holder(7, Some(MIB), Life::Runs);
        mps.comm = Some("nvidia-cuda-mps-server".chars().take(15).collect());
        assert_eq!(kind(two, vec![mps], Pids::Host), Some(UnexplainedKind::Unsure));
    }

    #[test]
    fn sentences_name_pid_pod_age_and_bytes() {
        let mut h = holder(4711, Some(39 * GIB), Life::Runs);
        h.names = Some(super::super::seen::Names {
            namespace: "s".into(),
            pod: "old".into(),
            container: "c".into(),
        });
        let card = Card { processes: vec![h, holder(9, Some(GIB), Life::Gone)], ..Card::default() };
        let all = held(&card);
        assert_eq!(
            sentence(&all, None).unwrap(),
            "VLLM::Worker (pid 4711, pod s/old container c, started 90 s ago) holds 39.00 GiB; \
             a process that no longer exists (pid 9, started 90 s ago) holds 1.00 GiB"
        );
        assert!(all[1].orphan && !all[0].orphan);
        assert!(settle(&all, None, 3).contains("--gpu-reset -i 3"));
        assert!(settle(&all[..1], None, 3).contains("pod s/old"));
        assert_eq!(sentence(&[], None), None);
        assert_eq!(
            (age(119), age(7199), age(7200), age(200_000)),
            ("119 s".into(), "119 min".into(), "2 h".into(), "2 days".into())
        );
    }
}
