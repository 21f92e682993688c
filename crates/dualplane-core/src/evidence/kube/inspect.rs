//! What the container runtime says of a container: `crictl inspect`, `docker inspect` (and podman's, nerdctl's).
//!
//! Each container becomes a container of its pod. Where there is no pod (Docker), it stands in a pod of its own name.

use serde_json::Value;

use crate::evidence::kube_model::{Container, ContainerStatus, Extent, Pod, State, Termination, Volume};
use crate::time::{Stamp, parse_rfc3339};
use crate::units::Bytes;
use dualplane_base::json::str_at;

/// Of one file.
const MAX_CONTAINERS: usize = 1000;
/// Docker's default for /dev/shm; it says nothing about the workload.
const DEFAULT_SHM: u64 = 64 << 20;
/// Docker writes this where a process was never started or has not ended.
const ZERO_TIME: &str = "0001-01-01";

/// Whether a JSON value is the answer of an inspect command.
pub(in crate::evidence) fn is_inspect(value: &Value) -> bool {
    match value {
        Value::Array(items) => items.iter().any(|v| is_docker(v) || is_cri(v)),
        v => is_docker(v) || is_cri(v),
    }
}

fn is_docker(v: &Value) -> bool {
    v.get("State").is_some_and(Value::is_object)
        && (v.get("HostConfig").is_some() || v.get("Config").is_some())
}

fn is_cri(v: &Value) -> bool {
    str_at(v, "/status/state").starts_with("CONTAINER_")
        || v.pointer("/status/metadata").is_some() && v.pointer("/status/exitCode").is_some()
}

/// The containers of an inspect answer, those of one pod together.
pub(in crate::evidence) fn pods(value: &Value, file: &str) -> Vec<Pod> {
    let one = std::slice::from_ref(value);
    let items = value.as_array().map_or(one, Vec::as_slice);
    items
        .iter()
        .take(MAX_CONTAINERS)
        .filter_map(|v| match () {
            () if is_docker(v) => Some(docker(v, file)),
            () if is_cri(v) => Some(cri(v, file)),
            () => None,
        })
        .collect()
}

/// Numbers, also those written as strings (protobuf's JSON does so for 64 bits).
fn number(v: &Value, pointer: &str) -> Option<i64> {
    let v = v.pointer(pointer)?;
    v.as_i64().or_else(|| v.as_str()?.parse().ok())
}

/// A limit; 0, negative and the kernel's "none" are none.
fn limit(v: &Value, pointers: &[&str]) -> Option<Bytes> {
    let none = i64::MAX - (1 << 20);
    pointers.iter().find_map(|p| number(v, p).filter(|n| *n > 0 && *n < none)).map(|n| Bytes(n as u64))
}

fn time(v: &Value, pointer: &str) -> Option<Stamp> {
    let t = str_at(v, pointer);
    if t.starts_with(ZERO_TIME) {
        return None;
    }
    parse_rfc3339(t).or_else(|| {
        // The CRI itself counts nanoseconds.
        let ns = number(v, pointer).filter(|n| *n > 0)?;
        Some(Stamp::Wall { ms: ns / 1_000_000, zoned: true, year: true })
    })
}

fn strings(v: &Value, pointer: &str) -> Vec<String> {
    match v.pointer(pointer) {
        Some(Value::Array(items)) => items.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
        Some(Value::String(s)) => vec![s.clone()],
        _ => Vec::new(),
    }
}

fn pairs(list: Vec<String>) -> Vec<(String, String)> {
    list.iter().filter_map(|e| e.split_once('=')).map(|(k, v)| (k.to_owned(), v.to_owned())).collect()
}

fn label(v: &Value, labels: &str, key: &str) -> String {
    let value = v.pointer(labels).and_then(|l| l.get(key)).and_then(Value::as_str);
    value.unwrap_or_default().to_owned()
}

fn cri(v: &Value, file: &str) -> Pod {
    let labels = "/status/labels";
    let named = label(v, labels, "io.kubernetes.container.name");
    let mut args = strings(v, "/info/config/command");
    args.extend(strings(v, "/info/config/args"));
    if args.is_empty() {
        args = strings(v, "/info/runtimeSpec/process/args");
    }
    let devices = strings(v, "/info/runtimeSpec/process/env");
    let state = match str_at(v, "/status/state") {
        "CONTAINER_RUNNING" => State::Running { started: time(v, "/status/startedAt") },
        "CONTAINER_CREATED" => State::Waiting { reason: "ContainerCreating".into(), message: String::new() },
        _ => State::Terminated(Termination {
            exit_code: number(v, "/status/exitCode"),
            reason: str_at(v, "/status/reason").to_owned(),
            message: str_at(v, "/status/message").to_owned(),
            started: time(v, "/status/startedAt"),
            finished: time(v, "/status/finishedAt"),
            container_id: Some(str_at(v, "/status/id").to_owned()),
            blurred: false,
        }),
    };
    let attempt = number(v, "/status/metadata/attempt");
    let restarts = label(v, "/status/annotations", "io.kubernetes.container.restartCount").parse().ok();
    let image = ["/status/image/userSpecifiedImage", "/status/image/image", "/status/imageRef"];
    let container = Container {
        name: if named.is_empty() { str_at(v, "/status/metadata/name").to_owned() } else { named },
        image: image.iter().map(|p| str_at(v, p)).find(|i| !i.is_empty()).unwrap_or_default().to_owned(),
        args,
        devices: gpus(&devices),
        env: pairs(devices),
        memory_limit: limit(
            v,
            &[
                "/status/resources/linux/memoryLimitInBytes",
                "/info/runtimeSpec/linux/resources/memory/limit",
                "/info/config/linux/resources/memory_limit_in_bytes",
            ],
        ),
        status: Some(ContainerStatus {
            restarts: restarts.or(attempt.and_then(|a| a.try_into().ok())),
            ready: Some(matches!(state, State::Running { .. })),
            state,
            last: State::None,
            container_id: Some(str_at(v, "/status/id").to_owned()),
        }),
        ..Container::default()
    };
    Pod {
        file: file.to_owned(),
        name: label(v, labels, "io.kubernetes.pod.name"),
        namespace: label(v, labels, "io.kubernetes.pod.namespace"),
        uid: label(v, labels, "io.kubernetes.pod.uid"),
        containers: vec![container],
        extent: Extent::Whole,
        ..Pod::default()
    }
}

fn docker(v: &Value, file: &str) -> Pod {
    let labels = "/Config/Labels";
    let own = str_at(v, "/Name").trim_start_matches('/').to_owned();
    let service = label(v, labels, "com.docker.compose.service");
    let named = label(v, labels, "io.kubernetes.container.name");
    let oom = v.pointer("/State/OOMKilled").and_then(Value::as_bool) == Some(true);
    let code = number(v, "/State/ExitCode");
    let running = v.pointer("/State/Running").and_then(Value::as_bool) == Some(true);
    let restarting = v.pointer("/State/Restarting").and_then(Value::as_bool) == Some(true);
    let created = str_at(v, "/State/Status") == "created";
    let reason = match code {
        _ if oom => "OOMKilled",
        Some(0) => "Completed",
        Some(_) => "Error",
        None => "",
    };
    let id = str_at(v, "/Id").to_owned();
    let ended = Termination {
        exit_code: code,
        reason: reason.to_owned(),
        message: str_at(v, "/State/Error").to_owned(),
        started: time(v, "/State/StartedAt"),
        finished: time(v, "/State/FinishedAt"),
        container_id: Some(id.clone()),
        blurred: false,
    };
    // Docker keeps the id over restarts; the flag of a running container tells of a process inside that was killed.
    let (state, last) = if running && !restarting {
        let earlier = if oom { State::Terminated(ended) } else { State::None };
        (State::Running { started: time(v, "/State/StartedAt") }, earlier)
    } else if created {
        (State::Waiting { reason: "ContainerCreating".into(), message: ended.message }, State::None)
    } else {
        (State::Terminated(ended), State::None)
    };
    let mut args = strings(v, "/Config/Entrypoint");
    args.extend(strings(v, "/Config/Cmd"));
    let env = strings(v, "/Config/Env");
    let mut devices = gpus(&env);
    for request in v.pointer("/HostConfig/DeviceRequests").and_then(Value::as_array).into_iter().flatten() {
        let ids = request.pointer("/DeviceIDs").and_then(Value::as_array).map_or(0, Vec::len) as u64;
        let count = number(request, "/Count").and_then(|c| u64::try_from(c).ok()).unwrap_or(0);
        devices = vec![("nvidia.com/gpu".to_owned(), ids.max(count).max(1))];
    }
    let shm = limit(v, &["/HostConfig/ShmSize"]).filter(|s| s.0 != DEFAULT_SHM);
    let first = |names: [&String; 3]| names.into_iter().find(|n| !n.is_empty()).cloned().unwrap_or_default();
    let pod = label(v, labels, "io.kubernetes.pod.name");
    let container = Container {
        name: first([&named, &service, &own]),
        image: str_at(v, "/Config/Image").to_owned(),
        args,
        env: pairs(env),
        memory_limit: limit(v, &["/HostConfig/Memory"]),
        devices,
        mounts: shm.iter().map(|_| ("shm".to_owned(), "/dev/shm".to_owned())).collect(),
        status: Some(ContainerStatus {
            restarts: number(v, "/RestartCount").and_then(|n| n.try_into().ok()),
            ready: Some(running),
            state,
            last,
            container_id: Some(id),
        }),
        ..Container::default()
    };
    Pod {
        file: file.to_owned(),
        name: first([&pod, &own, &service]),
        namespace: label(v, labels, "io.kubernetes.pod.namespace"),
        uid: label(v, labels, "io.kubernetes.pod.uid"),
        volumes: shm
            .iter()
            .map(|s| Volume { name: "shm".into(), memory_medium: true, size_limit: Some(*s) })
            .collect(),
        containers: vec![container],
        extent: Extent::Whole,
        ..Pod::default()
    }
}

/// The NVIDIA runtime gives devices by a variable.
fn gpus(env: &[String]) -> Vec<(String, u64)> {
    let visible = env.iter().find_map(|e| e.strip_prefix("NVIDIA_VISIBLE_DEVICES="));
    let some = visible.filter(|v| !v.is_empty() && !matches!(*v, "none" | "void" | "all"));
    some.map(|v| ("nvidia.com/gpu".to_owned(), v.split(',').count() as u64)).into_iter().collect()
}
