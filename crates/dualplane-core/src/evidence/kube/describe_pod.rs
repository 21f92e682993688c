//! The part of `kubectl describe pod` that only pods have: containers with their states, and volumes.

use crate::evidence::describe::{conditions, indent, key_value, section, stamp, value};
use crate::evidence::kube_model::{
    Container, ContainerKind, ContainerStatus, Extent, Pod, Probe, State, Termination, Volume,
};
use crate::units::{parse_k8s_memory, parse_k8s_quantity};

/// Of one pod; the API server allows fewer.
const MAX_CONTAINERS: usize = 1000;

/// Reads one described pod. `body` holds its lines without the common indent.
pub(in crate::evidence) fn pod(body: &[&str], file: &str) -> Pod {
    let text = |key: &str| value(body, key).map(str::to_owned);
    let mut containers = Vec::new();
    for (key, kind) in [
        ("Init Containers", ContainerKind::Init),
        ("Containers", ContainerKind::Main),
        ("Ephemeral Containers", ContainerKind::Ephemeral),
    ] {
        read_containers(body, key, kind, &mut containers);
    }
    let status = text("Status").unwrap_or_default();
    let deleting = status.starts_with("Terminating");
    Pod {
        file: file.to_owned(),
        name: text("Name").unwrap_or_default(),
        namespace: text("Namespace").unwrap_or_default(),
        // "gpu-node-1/10.0.0.11"
        node: text("Node").and_then(|n| n.split('/').next().map(str::to_owned)).filter(|n| !n.is_empty()),
        phase: if deleting { "Running".to_owned() } else { status },
        reason: text("Reason"),
        message: text("Message"),
        conditions: conditions(body),
        deleting,
        grace_seconds: text("Termination Grace Period").and_then(|g| g.trim_end_matches('s').parse().ok()),
        owner: text("Controlled By")
            .and_then(|o| o.split_once('/').map(|(k, n)| (k.to_owned(), n.to_owned()))),
        config_hash: section(body, "Annotations")
            .map(|(_, l)| l)
            .chain(value(body, "Annotations"))
            .find_map(|l| l.trim().strip_prefix("kubernetes.io/config.hash:"))
            .map(|h| h.trim().to_owned()),
        extent: extent(body, &containers),
        containers,
        volumes: volumes(body),
        ..Pod::default()
    }
}

/// kubectl prints the name first, the class of service below the containers, and of each container its image and state.
/// Where one of these is missing or somebody wrote dots for lines, more may be.
fn extent(body: &[&str], containers: &[Container]) -> Extent {
    const KEYS: [&str; 5] = ["Name", "Namespace", "Containers", "Volumes", "QoS Class"];
    let top = |key: &str| body.iter().any(|l| indent(l) == 0 && key_value(l).is_some_and(|(k, _)| k == key));
    let told = |c: &Container| {
        let status = c.status.as_ref();
        !c.image.is_empty() && status.is_some_and(|s| !matches!(s.state, State::None) && s.ready.is_some())
    };
    let dots = |l: &&str| matches!(l.trim(), "..." | "…" | "[...]" | "[…]" | "(...)" | "<snip>" | "--");
    let whole = KEYS.iter().all(|k| top(k))
        && !containers.is_empty()
        && containers.iter().all(told)
        && !body.iter().any(dots);
    if whole { Extent::Whole } else { Extent::Piece }
}

fn volumes(body: &[&str]) -> Vec<Volume> {
    let mut out: Vec<Volume> = Vec::new();
    for (_, line) in section(body, "Volumes") {
        match (indent(line), key_value(line), out.last_mut()) {
            (1..=3, Some((name, "")), _) => out.push(Volume { name: name.to_owned(), ..Volume::default() }),
            (_, Some(("Medium", medium)), Some(v)) => v.memory_medium = medium.starts_with("Memory"),
            (_, Some(("SizeLimit", size)), Some(v)) => v.size_limit = parse_k8s_memory(size),
            _ => {}
        }
    }
    out
}

fn read_containers(body: &[&str], key: &str, kind: ContainerKind, out: &mut Vec<Container>) {
    let mut current: Option<Container> = None;
    // The key of the second level that deeper lines belong to.
    let mut under = String::new();
    // A termination message may have lines of its own; they end with the exit code.
    let mut message = false;
    let mut level = 2;
    for line in lines_of(body, key) {
        let pair = key_value(line);
        if message && pair.is_none_or(|(k, _)| k != "Exit Code") {
            if let Some(t) = current.as_mut().and_then(|c| ending(c, &under)) {
                t.message.push('\n');
                t.message.push_str(line.trim());
            }
            continue;
        }
        message = false;
        if line.trim().is_empty() {
            continue;
        }
        let depth = indent(line);
        if let Some((name, "")) = pair.filter(|_| depth <= level) {
            out.extend(current.take().filter(|_| out.len() < MAX_CONTAINERS));
            level = depth;
            current = Some(Container {
                name: name.to_owned(),
                kind,
                status: Some(ContainerStatus::default()),
                ..Container::default()
            });
            under.clear();
            continue;
        }
        let Some(c) = current.as_mut() else { continue };
        if depth <= level + 2 {
            if let Some((key, value)) = pair {
                under = key.to_owned();
                first_level(c, key, value);
            }
        } else {
            message = second_level(c, &under, line, pair);
        }
    }
    out.extend(current);
}

/// The lines of a section; text of a termination message that begins at the margin does not end it.
fn lines_of<'a>(body: &'a [&'a str], key: &str) -> Vec<&'a str> {
    let heading = |l: &str| key_value(l).is_some_and(|(k, v)| k == key && v.is_empty()) && indent(l) == 0;
    let Some(start) = body.iter().position(|l| heading(l)) else { return Vec::new() };
    let rest = body.get(start + 1..).unwrap_or_default();
    let ends = |l: &&str| {
        let key = key_value(l).map(|(k, _)| k);
        indent(l) == 0
            && matches!(
                key,
                Some(
                    "Containers" | "Ephemeral Containers" | "Conditions" | "Volumes" | "QoS Class" | "Events"
                )
            )
    };
    let end = rest.iter().position(ends).unwrap_or(rest.len());
    rest.get(..end).unwrap_or_default().to_vec()
}

fn first_level(c: &mut Container, key: &str, value: &str) {
    let status = c.status.get_or_insert_default();
    let state = |word: &str| match word {
        "Terminated" => State::Terminated(Termination::default()),
        "Waiting" => State::Waiting { reason: String::new(), message: String::new() },
        "Running" => State::Running { started: None },
        _ => State::None,
    };
    match key {
        "Container ID" => {
            status.container_id =
                value.rsplit_once("//").map(|(_, id)| id.to_owned()).filter(|i| !i.is_empty());
        }
        "Image" => c.image = value.to_owned(),
        "State" => status.state = state(value),
        "Last State" => status.last = state(value),
        "Ready" => status.ready = Some(value == "True"),
        "Restart Count" => status.restarts = value.parse().ok(),
        "Restart Policy" if c.kind == ContainerKind::Init && value == "Always" => {
            c.kind = ContainerKind::Sidecar;
        }
        "Liveness" => c.liveness = Some(probe(value)),
        "Startup" => c.startup = Some(probe(value)),
        _ => {}
    }
}

/// A line below `Args:`, `State:`, `Limits:` and so on; true where a message begins that may have more lines.
fn second_level(c: &mut Container, under: &str, line: &str, pair: Option<(&str, &str)>) -> bool {
    let (key, value) = pair.unwrap_or_default();
    match under {
        "Command" | "Args" => c.args.push(line.trim().to_owned()),
        "State" | "Last State" => {
            let status = c.status.get_or_insert_default();
            let state = if under == "State" { &mut status.state } else { &mut status.last };
            match (state, key) {
                (State::Terminated(t), "Reason") => t.reason = value.to_owned(),
                (State::Terminated(t), "Message") => {
                    t.message = value.to_owned();
                    return true;
                }
                (State::Terminated(t), "Exit Code") => t.exit_code = value.parse().ok(),
                (State::Terminated(t), "Started") => t.started = stamp(value),
                (State::Terminated(t), "Finished") => t.finished = stamp(value),
                (State::Waiting { reason, .. }, "Reason") => *reason = value.to_owned(),
                (State::Waiting { message, .. }, "Message") => *message = value.to_owned(),
                (State::Running { started }, "Started") => *started = stamp(value),
                _ => {}
            }
        }
        "Limits" => match key {
            "memory" => c.memory_limit = parse_k8s_memory(value),
            k if k.contains('/') && !k.starts_with("hugepages") => {
                if let Some(n) = parse_k8s_quantity(value) {
                    c.devices.push((k.to_owned(), n as u64));
                }
            }
            _ => {}
        },
        "Requests" if key == "memory" => c.memory_request = parse_k8s_memory(value),
        // What comes from a secret or a field has no value here.
        "Environment" if !key.is_empty() && !value.starts_with('<') => {
            c.env.push((key.to_owned(), value.to_owned()));
        }
        "Mounts" => {
            if let Some((path, volume)) = line.trim().split_once(" from ") {
                let volume = volume.split(' ').next().unwrap_or_default();
                c.mounts.push((volume.to_owned(), path.trim_end_matches('/').to_owned()));
            }
        }
        _ => {}
    }
    false
}

fn ending<'a>(c: &'a mut Container, under: &str) -> Option<&'a mut Termination> {
    let status = c.status.as_mut()?;
    match if under == "State" { &mut status.state } else { &mut status.last } {
        State::Terminated(t) => Some(t),
        _ => None,
    }
}

/// `http-get http://:8000/health delay=60s timeout=1s period=10s #success=1 #failure=3`
fn probe(text: &str) -> Probe {
    let number = |key: &str, default: u64| {
        text.split_whitespace()
            .find_map(|w| w.strip_prefix(key)?.trim_end_matches('s').parse().ok())
            .unwrap_or(default)
    };
    Probe {
        initial_delay: number("delay=", 0),
        period: number("period=", 10),
        failure_threshold: number("#failure=", 3),
    }
}
