//! `dualplane agent`: the flight recorder of a node.
//!
//! `judge.rs` judges bundles in a process of its own, `cluster.rs` asks the API server, `outlets.rs` is where it all goes.

mod cluster;
mod judge;
mod outlets;

use std::fs;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use dualplane_agent::dcgm::DcgmPage;
use dualplane_agent::health::Health;
use dualplane_agent::observe;
use dualplane_agent::recorder::{Cluster, Config, Dependencies, Recorder, RecorderError};
use dualplane_base::units::parse_k8s_memory;
use dualplane_node::cgroup::Wanted;
use dualplane_node::gpu::{Fake, Gpus, Nvml, of_machine};
use dualplane_node::privileges::{self, CapabilitySet};
use dualplane_node::sample;

use self::cluster::ApiServer;
use self::judge::ChildJudge;
use self::outlets::Outlets;
use super::Failure;
use crate::args::{AgentArgs, HostArgs, Listen};
use crate::exit::{self, Code};

/// Below this the ring does not hold ten minutes of a full node.
const LEAST_DISK: u64 = 8 << 20;

pub(crate) fn run(args: &AgentArgs) -> Result<Code, Failure> {
    let disk = parse_k8s_memory(&args.disk).map(|b| b.0).filter(|b| *b >= LEAST_DISK).ok_or_else(|| {
        Failure::Flag {
            flag: "--disk",
            why: format!("{} is not a size of at least {} MiB, such as 64Mi", args.disk, LEAST_DISK >> 20),
        }
    })?;
    // The limit first: raising it may need a capability.
    let _ = dualplane_node::descriptors::raise();
    privileges::keep_only(needed(args)).map_err(Failure::Runtime)?;
    let config = Config {
        observe: observed(&args.host, &args.service, &args.cgroup_root),
        state: args.state.clone(),
        disk,
        kmsg: args.host.kmsg.clone(),
        node: args.node.clone().unwrap_or_else(hostname),
        tool: format!("dualplane {}", env!("CARGO_PKG_VERSION")),
    };
    let access = cluster::access(args.kubeconfig.as_deref(), args.no_cluster);
    let server = access.clone().map(ApiServer::new).transpose().map_err(Failure::Runtime)?;
    let health = Arc::new(Health::default());
    let parts = Dependencies {
        health: Arc::clone(&health),
        gpus: gpus(&args.host, args.nvml.as_deref(), args.dcgm_exporter.as_deref())?,
        judge: Box::new(ChildJudge::new()?),
        cluster: server.map(|s| Box::new(s) as Box<dyn Cluster>),
    };
    let mut outlets = Outlets::open(args, &config.node, access.as_ref(), &health)?;
    let mut recorder = Recorder::new(config, parts).map_err(|e| failure(args, e))?;
    outlets.announce(&recorder, &args.state);
    let stop = AtomicBool::new(false);
    let until = args.run_for.map(|s| std::time::Instant::now() + std::time::Duration::from_secs(s));
    recorder
        .run(&stop, |r| {
            outlets.after(r);
            if until.is_some_and(|u| std::time::Instant::now() >= u) {
                stop.store(true, std::sync::atomic::Ordering::Relaxed);
            }
        })
        .map_err(Failure::Runtime)?;
    recorder.finish();
    outlets.stopped();
    Ok(exit::OK)
}

/// Capabilities that what was asked for needs.
fn needed(args: &AgentArgs) -> CapabilitySet {
    let mut all = privileges::RECORDING;
    // The folder of a copy may be anybody's.
    if !args.copy_to.is_empty() {
        all |= CapabilitySet::DAC_OVERRIDE;
    }
    if matches!(args.listen, Listen::At(a) if a.port() < 1024) {
        all |= CapabilitySet::NET_BIND_SERVICE;
    }
    all
}

/// What to observe, where a host's files are.
pub(crate) fn observed(host: &HostArgs, services: &[String], roots: &[String]) -> observe::Config {
    observe::Config {
        sample: sample::Config {
            cgroups: host.cgroups.clone(),
            proc_root: host.proc_root.clone(),
            wanted: Wanted { services: services.to_vec(), roots: roots.to_vec() },
            ..sample::Config::default()
        },
        pod_logs: host.var_log.join("pods"),
        links: host.var_log.join("containers"),
        pod_resources: Some(host.pod_resources.clone()).filter(|p| p.as_os_str() != "none"),
        ..observe::Config::default()
    }
}

/// The driver's GPUs, those of a table, or why there are none.
pub(crate) fn gpus(
    host: &HostArgs,
    library: Option<&std::path::Path>,
    dcgm: Option<&str>,
) -> Result<Box<dyn Gpus>, Failure> {
    if let Some(table) = &host.gpu_table {
        let text = fs::read_to_string(table)
            .map_err(|source| Failure::Unreadable { path: table.clone(), source })?;
        let fake =
            Fake::from_json(&text).map_err(|e| Failure::Flag { flag: "--gpu-table", why: e.to_string() })?;
        return Ok(Box::new(fake));
    }
    let nvidia = match (Nvml::boxed(library), dcgm) {
        (Err(_), Some(url)) => Ok(Box::new(DcgmPage::at(url)) as Box<dyn Gpus>),
        (nvml, _) => nvml,
    };
    Ok(of_machine(nvidia, std::path::Path::new("/sys")))
}

fn hostname() -> String {
    let name = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let name = name.trim();
    if name.is_empty() { "localhost".to_owned() } else { name.to_owned() }
}

fn failure(args: &AgentArgs, e: RecorderError) -> Failure {
    match e {
        RecorderError::Knowledge(e) => Failure::Knowledge(e),
        RecorderError::Thread(e) => Failure::Runtime(e),
        RecorderError::State { path, source } => Failure::Unwritable { path, source },
        e => Failure::NoState { path: args.state.clone(), why: e.to_string() },
    }
}
