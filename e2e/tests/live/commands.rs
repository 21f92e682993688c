//! Every command that a report prints, run: each template of `testdata/commands.txt` with the names of objects that exist here.
//!
//! What would change something of others runs with `--dry-run=server`; what needs a card's tool runs with a stand-in that knows
//! the tool's options. Three things differ from what a person pastes, since this cluster has no registry: the debug pod's image,
//! the shell of the node is called by its path (the Debian busybox would run its own), and a drain is kept to the test's pods.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::harness::{Ran, create, dualplane, kubectl, root, succeeds, until};
use crate::templates::{self, Template};

const NS: &str = "e2e-commands";
const NODE: &str = "gpu-node-1";

/// A server that failed once, was rolled out twice, answers with an engine's page, and has limits of its own and of its pod.
const OBJECTS: &str = r#"
apiVersion: v1
kind: Namespace
metadata: {name: e2e-commands}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: llm, namespace: e2e-commands}
spec:
  replicas: 1
  strategy: {type: Recreate}
  selector: {matchLabels: {app: commands}}
  template:
    metadata: {labels: {app: commands}, annotations: {revision: "REVISION"}}
    spec:
      terminationGracePeriodSeconds: 0
      resources: {limits: {memory: 64Mi}}
      initContainers:
      - {name: fetch, image: "registry.local/busybox:1", imagePullPolicy: Never, command: ["true"], resources: {limits: {memory: 48Mi}}}
      containers:
      - name: server
        image: registry.local/busybox:1
        imagePullPolicy: Never
        command: [sh, -c]
        args:
        - |
          echo "KV cache size: 1,024 tokens"
          [ -e /state/seen ] || { touch /state/seen; echo first; exit 1; }
          mkdir -p /www && echo 'vllm:num_requests_running 1' > /www/metrics
          httpd -f -p 8000 -h /www & wait $!; exit 1
        resources: {limits: {memory: 48Mi}}
        volumeMounts: [{name: state, mountPath: /state}]
      volumes: [{name: state, emptyDir: {}}]
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: llm, namespace: e2e-commands}
spec:
  replicas: 0
  serviceName: llm
  selector: {matchLabels: {app: commands-set}}
  template:
    metadata: {labels: {app: commands-set}}
    spec: {containers: [{name: server, image: "registry.local/busybox:1", imagePullPolicy: Never}]}
---
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: llm, namespace: e2e-commands}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: llm}
  maxReplicas: 2
---
apiVersion: v1
kind: ConfigMap
metadata: {name: llm, namespace: e2e-commands}
data: {alloc: ""}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: llm, namespace: e2e-commands}
spec: {minAvailable: 0, selector: {matchLabels: {app: commands}}}
"#;

/// The limit of its pod.
const OF_POD: &str = "      resources: {limits: {memory: 64Mi}}\n";

/// What the makers' tools take: every option and value that a command may have, and what they print for it.
/// nvidia-smi(1) 610, dcgmi of DCGM 4, amd-smi 26, xpu-smi 2.0, npu-smi and hl-smi of their manuals, helm 3, lspci(8), ipmitool(1).
const TOOLS: &[(&str, &str)] = &[
    (
        "nvidia-smi",
        r#"fields() { for f in $(echo "$1" | tr , ' '); do case " $2 " in *" $f "*) ;; *) echo "Field \"$f\" is not a valid field to query." >&2; exit 2;; esac; done; }
case "$1" in
  mig) shift; case "$*" in -lgip) echo profiles; exit;; esac; echo "bad: mig $*" >&2; exit 2;;
  nvlink|c2c) s=$1; shift; case "$1" in -s|-e) ;; *) echo "bad: $s $*" >&2; exit 2;; esac; shift; [ $# = 0 ] || [ "$1" = -i ] || exit 2; echo links; exit;;
  topo) [ "$2" = -m ] && echo topology && exit; exit 2;;
  vgpu) [ "$2" = -q ] && echo vgpu && exit; exit 2;;
esac
while [ $# -gt 0 ]; do case "$1" in
  -L|-q|--gpu-reset) ;;
  -i|-l|-lms) shift; case "$1" in ''|*[!0-9a-fA-F:.]*) echo "bad id or time $1" >&2; exit 2;; esac;;
  -d) shift; fields "$1" "MEMORY UTILIZATION ECC TEMPERATURE POWER CLOCK COMPUTE PIDS PERFORMANCE SUPPORTED_CLOCKS PAGE_RETIREMENT ACCOUNTING ENCODER_STATS VOLTAGE FBC_STATS ROW_REMAPPER GSP_FIRMWARE_VERSION";;
  --format=csv|--format=csv,noheader) ;;
  --query-gpu=index) echo 0; exit;;
  --query-gpu=*) fields "${1#*=}" "timestamp index name uuid pci.bus_id memory.used memory.free memory.total temperature.gpu";;
  --query-compute-apps=*) fields "${1#*=}" "timestamp gpu_name gpu_bus_id gpu_serial gpu_uuid pid process_name name used_gpu_memory used_memory";;
  --query-remapped-rows=*) fields "${1#*=}" "timestamp gpu_name gpu_bus_id gpu_serial gpu_uuid remapped_rows.correctable remapped_rows.uncorrectable remapped_rows.pending remapped_rows.failure";;
  *) echo "Invalid combination of input arguments: $1" >&2; exit 2;; esac; shift; done
printf 'GPU Recovery Action : None\nGSP Firmware Version : 550\nFabric\n  State\nSRAM Correctable : 0\n'"#,
    ),
    (
        "dcgmi",
        r#"[ "$1" = diag ] || exit 2; shift
while [ $# -gt 0 ]; do case "$1" in
  -r) shift; case "$1" in [1-4]) ;; *) exit 2;; esac;;
  -i) shift; case "$1" in ''|*[!0-9,]*) echo "bad -i $1" >&2; exit 2;; esac;;
  *) exit 2;; esac; shift; done; echo diagnostic"#,
    ),
    ("nvidia-bug-report.sh", "[ $# = 0 ] && echo written"),
    (
        "amd-smi",
        r#"case "$*" in "metric --mem-usage"|"metric --ecc"|"metric --mem-usage --watch 1"|"metric --mem-usage --watch 10"|process|list) echo amd;; *) exit 2;; esac"#,
    ),
    ("npu-smi", r#"[ "$*" = info ] || exit 2; echo npu"#),
    (
        "hl-smi",
        r#"case "$*" in "-Q memory.used,memory.free,memory.total -f csv") echo hl;; *) exit 2;; esac"#,
    ),
    ("helm", r#"[ "$1 $2 $4 $6" = "get values -n -o" ] || exit 2; echo "replicas: 1""#),
    (
        "xpu-smi",
        r#"for a in "$@"; do case "$a" in --query-gpu=*|--format=csv|--loop-ms=*[0-9]|ps|health|-l) ;; *) exit 2;; esac; done; echo xpu"#,
    ),
    (
        "lspci",
        r#"[ "$1" = -vvv ] || exit 2; case "$2 $3" in "-d 10de:") ;; "-s "????:??:??.?) ;; *) exit 2;; esac; echo slot"#,
    ),
    ("ipmitool", r#"[ "$*" = "sel list" ] && echo event"#),
    (
        "systemctl",
        r#"case "$*" in
reboot|"status nvidia-fabricmanager"|"restart vllm.service"|"edit --full vllm.service") echo unit;;
"set-property vllm.service MemoryMax=1M"|"set-property vllm.service MemoryMax=1G"|"set-property --runtime vllm.service MemoryMax=infinity") echo unit;;
"show vllm.service -p MemoryCurrent -p MemoryPeak -p MemoryMax"|"show vllm.service -p NRestarts -p Result -p ExecMainStatus") echo unit;;
*) exit 2;; esac"#,
    ),
    ("sudo", r#"exec "$@""#),
    (
        "journalctl",
        r#"case "$*" in -k) echo 'NVRM: Xid';; "-u vllm.service -n 500 --no-pager") echo line;; *) exit 2;; esac"#,
    ),
    ("cat", r#"case "$1" in /proc/driver/nvidia/version) echo NVRM;; *) exec /bin/cat "$@";; esac"#),
];

fn sh(command: &str, folder: &Path, tools: Option<&Path>) -> Ran {
    let mut c = Command::new("timeout");
    c.args(["180", "bash", "-o", "pipefail", "-c", command]).current_dir(folder);
    // Where the program itself is, for what calls it.
    let own = dualplane().get_program().to_owned();
    let folders = [tools, Path::new(&own).parent()].into_iter().flatten().map(Path::to_owned);
    let path = std::env::var_os("PATH").unwrap();
    c.env("PATH", std::env::join_paths(folders.chain(std::env::split_paths(&path))).unwrap());
    Ran::of(&mut c)
}

/// What it printed, to the terminal or into its file.
fn printed(ran: &Ran, folder: &Path) -> usize {
    let files = std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().metadata().unwrap());
    ran.out.len() + files.map(|m| m.len() as usize).sum::<usize>()
}

/// With the image that is here, the node's own shell, and debug pods where the test takes them away.
fn for_this_cluster(command: &str) -> String {
    command
        .replace(
            "--image=busybox",
            &format!("--image=registry.local/busybox:1 --image-pull-policy=Never -n {NS}"),
        )
        .replace("chroot /host sh -c", "chroot /host /bin/sh -c")
        .replace("/proc/PID/", "/proc/1/")
}

/// `--dry-run=server` behind the words of kubectl; a drain only of the test's pods.
fn dry(command: &str) -> String {
    let only = if command.starts_with("kubectl drain") { " --pod-selector=app=commands" } else { "" };
    format!("{command} --dry-run=server{only}")
}

/// What a wrapper runs elsewhere, to be run here with the stand-ins.
fn inner(command: &str) -> String {
    if let Some((_, there)) = command.split_once("sh -c 'sleep 2; ") {
        let (there, here) = there.split_once('\'').unwrap();
        format!("{there}{here}")
    } else if let Some((_, there)) = command.split_once(" -c server -- ") {
        there.to_owned()
    } else {
        command.to_owned()
    }
}

/// The expression without its comparison, with the limit as the kubelet itself tells it: one ratio. This kubelet tells of the
/// pod's cgroups, whose container has no name.
fn of_real_series(expression: &str) -> Option<String> {
    let ratio = expression.rsplit_once(['<', '>'])?.0;
    let limit = "container_spec_memory_limit_bytes{";
    let ratio = ratio.replace("kube_pod_container_resource_limits{resource=\"memory\",", limit);
    Some(ratio.replace("container=\"server\"", "container=\"\"")).filter(|r| r.contains(limit))
}

fn query(expression: &str) -> Value {
    let url = format!("{}/api/v1/query", std::env::var("E2E_PROMETHEUS").unwrap());
    Ran::of(Command::new("curl").args(["-sG", &url, "--data-urlencode", &format!("query={expression}")]))
        .json()
}

fn promql(command: &str) -> Result<(), String> {
    let expression = command.strip_prefix("# PromQL: ").ok_or("no expression")?;
    let answer = query(expression);
    if answer["status"] != "success" {
        return Err(answer.to_string());
    }
    if let Some(ratio) = of_real_series(expression) {
        // The kubelet's figures come with the next scrape.
        let from = Instant::now();
        loop {
            let answer = query(&ratio);
            let all = answer["data"]["result"].as_array().cloned().unwrap_or_default();
            let value = |r: &Value| r["value"][1].as_str().and_then(|v| v.parse::<f64>().ok());
            // Other pods of the namespace have no limit.
            if all.iter().any(|r| value(r).is_some_and(|v| v > 0.0 && v < 1.0)) {
                break;
            }
            if from.elapsed() > Duration::from_secs(90) {
                return Err(format!("{ratio}: {answer}"));
            }
            std::thread::sleep(Duration::from_secs(3));
        }
    }
    Ok(())
}

struct Here {
    pod: String,
    tools: tempfile::TempDir,
}

impl Here {
    fn up() -> Self {
        let of_keda = "apiVersion: keda.sh/v1alpha1\nkind: ScaledObject\nmetadata: {name: llm, namespace: e2e-commands}\n\
                       spec: {scaleTargetRef: {name: llm}, triggers: [{type: cpu, metricType: Utilization, metadata: {value: \"80\"}}]}\n";
        // Limits of a pod came after 1.30.
        let of_pod = succeeds(&["explain", "pod.spec.resources"]);
        assert!(OBJECTS.contains(OF_POD));
        let objects = if of_pod { OBJECTS.to_owned() } else { OBJECTS.replace(OF_POD, "") };
        for revision in ["1", "2"] {
            create(&objects.replace("REVISION", revision));
            kubectl(&["rollout", "status", "-n", NS, "deploy/llm", "--timeout=90s"]);
        }
        create(of_keda);
        let from = Instant::now();
        let pod = loop {
            let pods: Value =
                serde_json::from_str(&kubectl(&["get", "pod", "-n", NS, "-l", "app=commands", "-o", "json"]))
                    .unwrap();
            let pods = pods["items"].as_array().unwrap().clone();
            let ready = |p: &&Value| {
                let s = &p["status"]["containerStatuses"][0];
                s["restartCount"] == 1
                    && s["ready"] == true
                    && s["lastState"]["terminated"].is_object()
                    && p["metadata"]["deletionTimestamp"].is_null()
            };
            if let [p] = &pods[..]
                && ready(&p)
            {
                break p["metadata"]["name"].as_str().unwrap().to_owned();
            }
            assert!(from.elapsed() < Duration::from_secs(90), "{pods:?}");
            std::thread::sleep(Duration::from_secs(1));
        };
        let tools = tempfile::tempdir().unwrap();
        for (name, script) in TOOLS {
            let file = tools.path().join(name);
            std::fs::write(&file, format!("#!/bin/sh\n{script}\n")).unwrap();
            let mut p = std::fs::metadata(&file).unwrap().permissions();
            std::os::unix::fs::PermissionsExt::set_mode(&mut p, 0o755);
            std::fs::set_permissions(&file, p).unwrap();
        }
        Self { pod, tools }
    }

    /// A kubelet may drop a dead container while the pod lives on, and its log with it: another one is made then.
    fn ended_once(&self) {
        let status = |path: &str| {
            let path = format!("jsonpath={{.status.containerStatuses[0]{path}}}");
            kubectl(&["get", "pod", &self.pod, "-n", NS, "-o", &path])
        };
        if succeeds(&["logs", &self.pod, "-n", NS, "-c", "server", "--previous"]) {
            return;
        }
        let before = status(".restartCount");
        let _ = succeeds(&["exec", &self.pod, "-n", NS, "-c", "server", "--", "killall", "httpd"]);
        until("the server does not come back", || {
            (status(".restartCount") != before && status(".ready") == "true").then_some(())
        });
    }

    fn names(&self, workload: &'static str) -> Vec<(&str, &str)> {
        vec![
            ("ns", NS),
            ("pod", &self.pod),
            ("copy", "llm-measure"),
            ("container", "server"),
            ("node", NODE),
            ("workload", workload),
            ("object", "llm"),
            ("unit", "vllm.service"),
            ("quantity", "32Mi"),
            ("number", "1"),
            ("port", "8000"),
            ("card", "0000:4a:00.0"),
            ("series", "vllm:num_requests_running|vllm:kv_cache_usage_perc"),
            ("value", "0.92"),
            ("label", "app=commands"),
            ("key", "alloc"),
            ("name", "vllm:num_preemptions_total"),
            ("name2", "vllm:kv_cache_usage_perc"),
        ]
    }

    fn run(&self, t: &Template, workload: &'static str) -> Result<(), String> {
        let command = t.fill(&self.names(workload));
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        let told = |ran: &Ran| format!("{:?} {} {}", ran.code, ran.err.trim(), ran.text().trim());
        match t.run.trim_end_matches('*') {
            "read" | "quiet" | "own" => {
                let ran = sh(&for_this_cluster(&command), folder, None);
                // A search that finds nothing ends with 1, and says nothing.
                let quiet = t.run.starts_with("quiet");
                let ended = ran.code == Some(0) || quiet && ran.code == Some(1) && ran.err.trim().is_empty();
                if !ended || !quiet && printed(&ran, folder) == 0 {
                    return Err(told(&ran));
                }
                Ok(())
            }
            "dry" => {
                let ran = sh(&dry(&command), folder, None);
                if ran.code == Some(0) && printed(&ran, folder) > 0 { Ok(()) } else { Err(told(&ran)) }
            }
            "metrics" => {
                let ran = sh(&command, folder, None);
                let known = ran.code == Some(0) || ran.err.trim() == "error: Metrics API not available";
                if known { Ok(()) } else { Err(told(&ran)) }
            }
            "tool" => {
                let ran = sh(&inner(&command), folder, Some(self.tools.path()));
                if ran.code == Some(0) && printed(&ran, folder) > 0 { Ok(()) } else { Err(told(&ran)) }
            }
            "here" => {
                let ran = sh(&command, folder, None);
                if ran.code == Some(0) && printed(&ran, folder) > 0 { Ok(()) } else { Err(told(&ran)) }
            }
            "promql" => promql(&command),
            other => Err(format!("no class {other}")),
        }
    }
}

fn known() -> Vec<Template> {
    templates::read(&std::fs::read_to_string(root().join("testdata/commands.txt")).unwrap())
}

#[test]
fn every_printed_command_runs() {
    let here = Here::up();
    let mut failed = Vec::new();
    let templates = known();
    // What restarts the pod comes last.
    let (last, first): (Vec<_>, Vec<_>) =
        templates.iter().partition(|t| t.text.starts_with("kubectl rollout restart"));
    let mut ran = 0;
    // `map` prints them where claims are served.
    let claims = succeeds(&["get", "--raw", "/apis/resource.k8s.io/v1"]);
    let of_claims = |t: &Template| ["resourceclaims", "resourceslices"].iter().any(|w| t.text.contains(w));
    let served = |t: &&&Template| claims || !of_claims(t);
    for t in first.iter().chain(&last).filter(served) {
        let workloads: &[&str] = if t.text.contains("@workload@") {
            &["deployment/llm", "statefulset/llm"]
        } else {
            &["deployment/llm"]
        };
        for w in workloads {
            ran += 1;
            // Streams of kubectl break, with words of its own; a command that is wrong is wrong again.
            let tried = here.run(t, w).or_else(|_| {
                here.ended_once();
                here.run(t, w)
            });
            if let Err(why) = tried {
                failed.push(format!("{} {}\n    {why}", t.run, t.text));
            }
            if t.text.contains("kubectl create -f -") {
                copy_has_no_limit();
            }
        }
    }
    kubectl(&["delete", "ns", NS, "--wait=false"]);
    assert!(failed.is_empty(), "{} of {ran}:\n{}", failed.len(), failed.join("\n"));
}

/// The copy that is measured has no limit of its own and none of its pod, and runs.
fn copy_has_no_limit() {
    let copy: Value =
        serde_json::from_str(&kubectl(&["get", "pod", "llm-measure", "-n", NS, "-o", "json"])).unwrap();
    assert!(copy.pointer("/spec/resources/limits/memory").is_none(), "{}", copy["spec"]["resources"]);
    assert!(copy.pointer("/spec/containers/0/resources/limits/memory").is_none(), "{}", copy["spec"]);
    let from = Instant::now();
    // Its first start fails as the server's own does.
    let restarted = "--for=jsonpath={.status.containerStatuses[0].restartCount}=1";
    while !(succeeds(&["wait", "-n", NS, "pod/llm-measure", restarted, "--timeout=5s"])
        && succeeds(&["wait", "-n", NS, "pod/llm-measure", "--for=condition=Ready", "--timeout=5s"]))
    {
        assert!(from.elapsed() < Duration::from_secs(60), "the copy does not run");
    }
}

/// What the incidents' reports print today is of these templates.
#[test]
fn every_printed_command_is_of_a_template() {
    let templates = known();
    let mut unknown = Vec::new();
    for entry in std::fs::read_dir(root().join("testdata/incidents")).unwrap() {
        let path = entry.unwrap().path();
        let ran = Ran::of(dualplane().args(["triage", "-o", "json"]).arg(&path));
        let mut commands = Vec::new();
        walk(&ran.json(), &mut commands);
        unknown.extend(commands.into_iter().filter(|c| !templates.iter().any(|t| t.is_of(c))));
    }
    assert!(unknown.is_empty(), "{unknown:#?}");
}

fn walk(value: &Value, out: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            for (key, value) in fields {
                match (key.as_str(), value) {
                    ("command", Value::String(c)) => out.push(c.clone()),
                    ("commands", Value::Array(all)) => {
                        out.extend(all.iter().filter_map(|c| Some(c.as_str()?.to_owned())))
                    }
                    _ => walk(value, out),
                }
            }
        }
        Value::Array(all) => all.iter().for_each(|v| walk(v, out)),
        _ => {}
    }
}
