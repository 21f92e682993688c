//! Autoscaling over both planes, as an object of KEDA or a `HorizontalPodAutoscaler`.
//!
//! VRAM is full from the start, as engines take their pool at once: what fills under load is the KV cache in it. Host RAM counts
//! only above what a replica holds without much load: one more replica relieves that part alone, and a trigger on the whole of it
//! would add replicas up to the last.

use dualplane_base::units::Bytes;
use dualplane_base::yaml::manifest;
use serde_json::{Value, json};

use crate::size::Sizing;

/// Share of the KV cache in use that asks for one more replica: that one loads for minutes, and at 0.95 requests already wait for
/// one another (alert `kv-cache-full`).
const KV: &str = "0.8";
/// Requests that wait at each replica: a batch of the next step waits anyway (threshold `queue_min` of the alerts).
const WAITING: &str = "5";
/// Share of the memory limit that asks for one more replica, below the 0.9 of the alert `host-memory-near-limit`.
const HOST: f64 = 0.85;
/// With less room than this between what is held anyway and [`HOST`], noise would add replicas.
const ROOM: f64 = 0.05;
/// Of what takes longer to start nothing was measured: KEDA's own default, seconds.
const SCALE_DOWN: f64 = 300.0;

/// What is to be scaled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target<'a> {
    /// API group and version.
    pub api: &'a str,
    /// Kind.
    pub kind: &'a str,
    /// Name.
    pub name: &'a str,
    /// Regular expression of its pods' names, as PromQL anchors it.
    pub pods: &'a str,
    /// Prometheus as KEDA reaches it.
    pub prometheus: &'a str,
    /// Replicas, at least.
    pub min: u32,
    /// At most: what nodes have cards and host RAM for.
    pub max: u32,
}

/// Why no object is printed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// Its replicas die or nearly die of their limit.
    #[error(
        "the limit of {0} cuts off what a replica takes: more replicas would die as these do. Set the limit first (-o patch), and measure again"
    )]
    CutOff(Bytes),
    /// Host RAM is near its limit whatever the load.
    #[error(
        "a replica holds {held} without much load, of a limit of {limit}: one more replica lowers that of none. Set {set} first (-o patch)"
    )]
    Full {
        /// The median while it serves.
        held: Bytes,
        /// What is set.
        limit: Bytes,
        /// What should be.
        set: Bytes,
    },
    /// The series do not tell.
    #[error("{0} is not known: let Prometheus scrape the replicas for longer")]
    Unknown(&'static str),
}

/// What adds a replica.
struct Measure {
    /// One word.
    name: &'static str,
    /// Over all replicas.
    query: String,
    /// What each may have of it.
    threshold: String,
}

/// What both objects are made of.
struct Load {
    measures: [Measure; 3],
    behavior: Value,
    /// Where each number comes from.
    head: String,
}

fn load(s: &Sizing, target: &Target<'_>) -> Result<Load, Fault> {
    let set = s.limit.ok_or(Fault::Unknown("host RAM of its containers"))?;
    let limit = s.limit_now.unwrap_or(set);
    if s.at_least {
        return Err(Fault::CutOff(limit));
    }
    let held = s.ram.steady.ok_or(Fault::Unknown("what it holds while it serves"))?;
    let room = limit.0 as f64 * HOST - held.0 as f64;
    if room < limit.0 as f64 * ROOM {
        return Err(Fault::Full { held, limit, set });
    }
    let start = s.start_seconds.map(f64::ceil);
    let speed = start.map_or_else(
        || "its start was not measured".to_owned(),
        |seconds| {
            format!("a replica needs {seconds:.0} s to start, and until then relieves nobody: one at a time")
        },
    );
    let head = format!(
        "# VRAM: the KV cache at {KV}; the pool itself is full from the start.\n\
         # Host RAM: what is held above {held}, up to {HOST} of {limit}. The rest does not fall with more replicas.\n\
         # Speed: {speed}.\n\
         # The queries read the records of `dualplane rules`, and series of cAdvisor or of the agent.\n"
    );
    Ok(Load { measures: measures(s, target, held, room), behavior: behavior(start), head })
}

/// A `ScaledObject`, below comments that say what each number comes from.
///
/// # Errors
/// The measured memory says that more replicas do not help.
pub fn keda(s: &Sizing, target: &Target<'_>) -> Result<String, Fault> {
    let load = load(s, target)?;
    let trigger = |m: &Measure| {
        json!({
            "type": "prometheus",
            "metricType": "AverageValue",
            "metadata": {
                "serverAddress": target.prometheus,
                "query": m.query,
                "threshold": m.threshold,
                // No series is an error, and no zero.
                "ignoreNullValues": "false",
            },
        })
    };
    let object = json!({
        "apiVersion": "keda.sh/v1alpha1",
        "kind": "ScaledObject",
        "metadata": {"name": target.name, "namespace": s.owner.namespace},
        "spec": {
            "scaleTargetRef": {"apiVersion": target.api, "kind": target.kind, "name": target.name},
            "minReplicaCount": target.min,
            "maxReplicaCount": target.max,
            "advanced": {"horizontalPodAutoscalerConfig": {"behavior": load.behavior}},
            "triggers": load.measures.iter().map(trigger).collect::<Vec<_>>(),
        },
    });
    Ok(load.head + &manifest(&object))
}

/// A `HorizontalPodAutoscaler` on the same measures. It knows names only: the comments hold the query that answers for each.
///
/// # Errors
/// As [`keda`].
pub fn hpa(s: &Sizing, target: &Target<'_>) -> Result<String, Fault> {
    let mut load = load(s, target)?;
    let name = |m: &Measure| format!("{}_{}", target.name, m.name);
    load.head.push_str(
        "# An HPA asks the cluster's external metrics API, so that an adapter of Prometheus must answer there, with these queries:\n",
    );
    for m in &load.measures {
        load.head.push_str(&format!("#   {}: {}\n", name(m), m.query));
    }
    let metric = |m: &Measure| {
        json!({
            "type": "External",
            "external": {
                "metric": {"name": name(m)},
                "target": {"type": "AverageValue", "averageValue": m.threshold},
            },
        })
    };
    let object = json!({
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": target.name, "namespace": s.owner.namespace},
        "spec": {
            "scaleTargetRef": {"apiVersion": target.api, "kind": target.kind, "name": target.name},
            "minReplicas": target.min,
            "maxReplicas": target.max,
            "metrics": load.measures.iter().map(metric).collect::<Vec<_>>(),
            "behavior": load.behavior,
        },
    });
    Ok(load.head + &manifest(&object))
}

/// A replica helps once it serves: until then none follows, and none goes before it could have helped twice.
fn behavior(start: Option<f64>) -> Value {
    let seconds = start.unwrap_or(SCALE_DOWN).clamp(15.0, 1800.0);
    let down = (seconds * 2.0).clamp(SCALE_DOWN, 3600.0);
    let policy = |period: f64| json!([{"type": "Pods", "value": 1, "periodSeconds": period as u64}]);
    json!({
        "scaleUp": {"stabilizationWindowSeconds": 30, "policies": policy(seconds)},
        "scaleDown": {"stabilizationWindowSeconds": down as u64, "policies": policy(seconds)},
    })
}

fn measures(s: &Sizing, target: &Target<'_>, held: Bytes, room: f64) -> [Measure; 3] {
    let pods = format!("namespace=\"{}\",pod=~\"{}\"", s.owner.namespace, target.pods);
    let own = format!("{pods},container=\"{}\"", s.owner.container);
    let now = if s.exact {
        // What the kernel cannot take back. cAdvisor has no tmpfs: it is what of the cache is on no list of files.
        format!(
            "(dualplane_container_memory_anon_bytes{{{own}}} + dualplane_container_memory_shmem_bytes{{{own}}}) or \
             (container_memory_rss{{{own}}} + container_memory_cache{{{own}}} - container_memory_total_active_file_bytes{{{own}}} \
             - container_memory_total_inactive_file_bytes{{{own}}})"
        )
    } else {
        format!(
            "dualplane_container_memory_working_set_bytes{{{own}}} or container_memory_working_set_bytes{{{own}}}"
        )
    };
    let host = format!("sum(clamp_min(max by (pod) ({now}) - {}, 0))", held.0);
    let measure = |name, query, threshold| Measure { name, query, threshold };
    [
        measure(
            "kv_cache_usage",
            format!("sum(max by (pod) (dualplane:kv_cache_usage:ratio{{{pods}}}))"),
            KV.to_owned(),
        ),
        measure(
            "requests_waiting",
            format!("sum(max by (pod) (dualplane:requests_waiting{{{pods}}}))"),
            WAITING.to_owned(),
        ),
        measure("host_ram_above_steady", host, format!("{room:.0}")),
    ]
}
