//! `dualplane map pod/NAME`, `--node`, `--gpu`, `--pid`: from requests to drivers, each link with its source.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use dualplane_core::evidence::Gap;
use dualplane_kube::api::Api;
use dualplane_kube::map::{Scope, ask, find_process, gather};
use dualplane_report::map::report;
use dualplane_report::map::{self, Asked, Input, Map, NotOne, Process};
use serde_json::Value;

use super::{block_on, connect, pods};
use crate::args::{MapArgs, MapFormat, SelectArgs};
use crate::commands::Failure;
use crate::exit::{self, Code};
use crate::output;

/// Of a file of /proc that is read.
const MAX_PROC: u64 = 64 << 10;

pub(crate) fn run(args: &MapArgs) -> Result<Code, Failure> {
    let map = match (args.pid, &args.gpu, &args.node) {
        (Some(pid), _, _) => of_process(args, pid)?,
        (_, Some(gpu), node) => block_on(async {
            by_device(args, Scope::Everywhere(node.clone()), Asked::Gpu(gpu.clone())).await
        })?,
        (_, _, Some(node)) => {
            block_on(async { by_device(args, Scope::Node(node.clone()), Asked::Node(node.clone())).await })?
        }
        _ => of_pods(args)?,
    };
    let style = output::style(args.color, args.output == MapFormat::Wide);
    let text = match args.output {
        MapFormat::Text => report::text(&map, style, false),
        MapFormat::Wide => report::text(&map, style, true),
        MapFormat::Json => report::json(&map)?,
        MapFormat::Yaml => report::yaml(&map)?,
    };
    output::write(&text)?;
    Ok(exit::OK)
}

fn of_pods(args: &MapArgs) -> Result<Map, Failure> {
    let select = SelectArgs { selector: args.selector.clone(), ..SelectArgs::default() };
    let wanted = pods::of_cluster_only(&args.targets, &select)?;
    let words = args.selector.as_ref().map_or_else(|| args.targets.join(" "), |s| format!("-l {s}"));
    block_on(async {
        let api = connect(&args.cluster).await?;
        let found = pods::find(&api, &wanted).await?;
        let pods: Vec<Value> = found.into_iter().flat_map(|f| f.pods).collect();
        if pods.is_empty() {
            return Err(Failure::NoneMapped(format!("{words} has no pods in namespace {}", api.namespace())));
        }
        whole(&api, pods, &Asked::Pods(words.clone())).await
    })
}

/// Everything about pods that are known.
async fn whole(api: &Api, pods: Vec<Value>, asked: &Asked) -> Result<Map, Failure> {
    let (input, (answers, gaps)) = {
        let asked_pods = pods.clone();
        let (input, answered) = tokio::join!(gather(api, Scope::Pods(pods)), ask(api, asked_pods.iter()));
        (input?, answered)
    };
    let mut input = input;
    input.answers = answers;
    input.gaps.extend(gaps);
    assembled(&input, asked)
}

/// From the device's end: who holds it is known first, then its holders' engines are asked.
async fn by_device(args: &MapArgs, scope: Scope, asked: Asked) -> Result<Map, Failure> {
    let api = connect(&args.cluster).await?;
    let mut input = gather(&api, scope).await?;
    let first = assembled(&input, &asked)?;
    let holds = |p: &&Value| {
        let text = |at: &str| p.pointer(at).and_then(Value::as_str).unwrap_or_default();
        first.pods.iter().any(|m| m.uid == text("/metadata/uid"))
    };
    let (answers, gaps) = ask(&api, input.neighbours.iter().filter(holds)).await;
    input.answers = answers;
    input.gaps.extend(gaps);
    assembled(&input, &asked)
}

fn assembled(input: &Input, asked: &Asked) -> Result<Map, Failure> {
    map::assemble(input, asked).map_err(|NotOne { candidates, known }| {
        let wanted = match asked {
            Asked::Gpu(id) => id.as_str(),
            _ => "",
        };
        if candidates.is_empty() {
            let gaps: Vec<&str> = input.gaps.iter().map(|g| g.what.as_str()).collect();
            let missing =
                if gaps.is_empty() { String::new() } else { format!("; not read: {}", gaps.join(", ")) };
            Failure::NoneMapped(format!(
                "none of the {known} known GPUs and MIG instances matches \
            {wanted}{missing}"
            ))
        } else {
            Failure::Flag {
                flag: "--gpu",
                why: format!("{wanted} matches several: {}", candidates.join(", ")),
            }
        }
    })
}

/// The cgroup tells the pod's uid; without a cluster that is all there is to tell.
fn of_process(args: &MapArgs, pid: u32) -> Result<Map, Failure> {
    let dir = format!("/proc/{pid}");
    let cgroup = read(&format!("{dir}/cgroup"))?;
    let process =
        dualplane_base::process::process(pid, &read(&format!("{dir}/comm")).unwrap_or_default(), &cgroup);
    let host = read("/proc/sys/kernel/hostname").unwrap_or_default().trim().to_owned();
    block_on(async {
        let asked = Asked::Process(Box::new(process.clone()));
        let gap = if process.pod_uid.is_none() && process.container_id.is_none() {
            no_pod(&process)
        } else {
            match of_cluster(args, &process, &host, &asked).await {
                Ok(map) => return Ok(map),
                Err(gap) => gap,
            }
        };
        assembled(&Input { gaps: vec![gap], ..Input::default() }, &asked)
    })
}

/// Why the cgroup names no pod.
fn no_pod(process: &Process) -> Gap {
    let own_view = process.path == "/" || process.path.starts_with("/..");
    Gap {
        what: format!("pod of process {}", process.pid),
        why: if own_view {
            "a cgroup namespace hides the path of its cgroup; run the command on the node itself".into()
        } else {
            format!("its cgroup {} does not belong to a pod", process.path)
        },
        command: own_view.then(|| format!("nsenter -t 1 -m -C -- cat /proc/{}/cgroup", process.pid)),
    }
}

/// The process within its cluster, or why it stays without.
async fn of_cluster(args: &MapArgs, process: &Process, host: &str, asked: &Asked) -> Result<Map, Gap> {
    let uid = process.pod_uid.as_deref().unwrap_or_default();
    let gap = |why: String| Gap {
        what: format!("pod of process {}", process.pid),
        why,
        command: Some(format!(
            "kubectl get pods -A -o custom-columns=NS:.metadata.namespace,POD:.metadata.name,UID:.metadata.uid | grep {uid}"
        )),
    };
    let api = connect(&args.cluster).await.map_err(|e| gap(format!("could not query the cluster: {e}")))?;
    let pod = find_process(&api, process, host).await.map_err(|e| gap(e.to_string()))?;
    let pod = pod.ok_or_else(|| {
        gap(format!(
            "the cluster has no pod with UID {uid}; the pod may belong to \
        another cluster"
        ))
    })?;
    whole(&api, vec![pod], asked).await.map_err(|e| gap(e.to_string()))
}

fn read(path: &str) -> Result<String, Failure> {
    let failed = |source| Failure::Unreadable { path: Path::new(path).to_owned(), source };
    let mut bytes = Vec::new();
    File::open(path).map_err(failed)?.take(MAX_PROC).read_to_end(&mut bytes).map_err(failed)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
