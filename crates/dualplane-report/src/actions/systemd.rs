//! Advice for a server that systemd runs without Kubernetes: the same numbers, with the commands that carry them out there.
//!
//! The class files speak kubectl. What they compute is in changes, patches and commands; here it is told again for the
//! unit, and what has no counterpart (nodes, rollouts, budgets) is left out rather than told wrongly.

use dualplane_base::units::parse_k8s_memory;
use dualplane_core::change::Change;

use super::{Action, Context};

/// Units that run containers: what dies in them is a pod's, whatever systemd says of the unit.
const OF_CONTAINERS: &[&str] =
    &["kubelet", "containerd", "docker", "crio", "k3s", "k3s-agent", "rke2-server", "rke2-agent"];

/// The unit of the subject, where it is one: the agent says so, or, where no pod is known, the kernel by its cgroup or
/// systemd by its name.
pub(super) fn unit<'a>(cx: &Context<'a>) -> Option<&'a str> {
    let pod = cx.verdict.subject.pod_of(cx.bundle).or_else(|| cx.bundle.pods.first());
    let found = match pod {
        Some(pod) => pod.unit()?,
        None => of_kernel(cx).or_else(|| of_systemd(cx)).filter(|unit| {
            let name = unit.trim_end_matches(".service");
            !OF_CONTAINERS.contains(&name)
        })?,
    };
    // It becomes part of commands: names of units have these characters, and none that a shell reads.
    let plain = |c: char| c.is_ascii_alphanumeric() || ".-_@:".contains(c);
    (found.chars().all(plain) && found.contains('.')).then_some(found)
}

/// `/system.slice/ollama.service`: the victim's cgroup is that of a service of the system.
fn of_kernel<'a>(cx: &Context<'a>) -> Option<&'a str> {
    let path = cx.facts.ooms.get(cx.verdict.subject.kill?)?.task_memcg.as_deref()?;
    let (_, behind) = path.split_once("system.slice/")?;
    behind.split('/').rfind(|part| part.ends_with(".service"))
}

/// `systemd[1]: ollama.service: A process of this unit has been killed by the OOM killer.`
fn of_systemd<'a>(cx: &Context<'a>) -> Option<&'a str> {
    let place = &cx.verdict.trigger.as_ref()?.place;
    let line = cx.facts.hits.iter().find(|h| h.place == *place && h.id.starts_with("host.systemd_"))?;
    line.text.split_whitespace().find_map(|w| w.strip_suffix(':').filter(|w| w.ends_with(".service")))
}

/// Tells the actions for the unit, where the evidence is of one.
pub(super) fn adapt(cx: &Context<'_>, actions: &mut [Action]) {
    let Some(unit) = unit(cx) else { return };
    for action in actions {
        one(action, unit);
    }
}

fn one(action: &mut Action, unit: &str) {
    // Neither kubectl nor series by container know a unit.
    let told = |c: &&String| c.contains("kubectl") || c.contains("PromQL") && c.contains("container");
    if action.patch.is_none() && !action.commands.iter().any(|c| told(&c)) {
        return;
    }
    let mut commands: Vec<String> = Vec::new();
    let mut add = |c: String| {
        if !commands.contains(&c) {
            commands.push(c);
        }
    };
    if let Some(limit) = limit(action) {
        add(format!("sudo systemctl set-property {unit} MemoryMax={limit}"));
    }
    for change in &action.changes {
        let Change::Setting(s) = change else { continue };
        let name = s.names.first().map_or("", String::as_str);
        let to = match &s.value {
            Some(value) => format!("set {name} {value}"),
            None => format!("take out {name}"),
        };
        add(format!("sudo systemctl edit --full {unit}   # in ExecStart: {to}"));
        add(format!("sudo systemctl restart {unit}"));
    }
    for command in &action.commands {
        if !told(&command) {
            add(command.clone());
        } else if let Some(c) = counterpart(command, unit) {
            add(c);
        }
    }
    action.commands = commands;
    action.patch = None;
    action.changes.clear();
}

/// The limit that an action sets, as systemd writes it.
fn limit(action: &Action) -> Option<String> {
    let of_command = |c: &String| {
        let (_, after) = c.split_once("--limits=memory=")?;
        after.split([' ', ',', '\n']).next().map(ToOwned::to_owned)
    };
    let of_patch = |p: &String| {
        let (_, limits) = p.split_once("limits:")?;
        let (_, after) = limits.split_once("memory:")?;
        after.lines().next().map(|l| l.trim().trim_matches(['"', '\'']).to_owned())
    };
    let of_change = |c: &Change| match c {
        Change::Resource(r) if r.name == "memory" => r.limit.clone(),
        _ => None,
    };
    let text = action
        .changes
        .iter()
        .find_map(of_change)
        .or_else(|| action.commands.iter().find_map(of_command))
        .or_else(|| action.patch.as_ref().and_then(of_patch))?;
    // Both count in powers of 1024; systemd leaves the `i` out.
    match text.strip_suffix('i') {
        Some(short) if short.ends_with(['K', 'M', 'G', 'T']) => Some(short.to_owned()),
        _ => parse_k8s_memory(&text).map(|b| b.0.to_string()),
    }
}

/// What stands for a kubectl command on a host with systemd; `None` where nothing does.
fn counterpart(command: &str, unit: &str) -> Option<String> {
    let has = |words: &[&str]| words.iter().any(|w| command.contains(w));
    Some(match () {
        () if has(&["limits.memory)", "limits=memory"]) && has(&["del("]) => {
            format!(
                "sudo systemctl set-property --runtime {unit} MemoryMax=infinity && sudo systemctl restart {unit}"
            )
        }
        () if has(&["kubectl logs"]) => format!("journalctl -u {unit} -n 500 --no-pager"),
        () if has(&["kubectl delete pod", "rollout restart"]) => format!("sudo systemctl restart {unit}"),
        () if has(&["memory.peak", "kubectl top pod", "kubectl exec"]) => {
            format!("systemctl show {unit} -p MemoryCurrent -p MemoryPeak -p MemoryMax")
        }
        () if has(&["restartCount", "kubectl describe pod", "kubectl get pod"]) => {
            format!("systemctl show {unit} -p NRestarts -p Result -p ExecMainStatus")
        }
        () => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::actions::Stage;

    #[test]
    fn a_limit_becomes_a_property_and_kubectl_its_counterpart() {
        let mut a = Action::new(Stage::Fix, "Raise the limit")
            .run("kubectl set resources deploy/x -n y -c z --requests=memory=24Gi --limits=memory=24Gi")
            .run("kubectl logs x -n y --previous")
            .run("free -h");
        one(&mut a, "vllm.service");
        assert_eq!(
            a.commands,
            [
                "sudo systemctl set-property vllm.service MemoryMax=24G",
                "journalctl -u vllm.service -n 500 --no-pager",
                "free -h"
            ]
        );
        let mut b = Action::new(Stage::Fix, "Raise it");
        b.patch = Some(
            "spec:\n  containers:\n  - name: z\n    resources:\n      limits:\n        memory: 1500M\n"
                .into(),
        );
        one(&mut b, "vllm.service");
        assert_eq!(b.commands, ["sudo systemctl set-property vllm.service MemoryMax=1500000000"]);
        assert_eq!(b.patch, None);
        let mut c = Action::new(Stage::Verify, "Watch it").run("# PromQL: x");
        let before = c.clone();
        one(&mut c, "vllm.service");
        assert_eq!(c, before);
    }
}
