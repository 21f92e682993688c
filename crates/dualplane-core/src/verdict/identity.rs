//! Whose evidence it is: a kernel log of another node and a fault of another pod's GPU explain nothing, near in time as they
//! may be. Both are told, so that nobody wonders why they were passed over.

use std::collections::BTreeSet;

use super::proof::{Kernel, Proof, Xid};
use super::{Cause, Cited, Class, Confidence, Subject};
use crate::evidence::framing::kernel_host;
use crate::evidence::{Bundle, ContainerStatus};
use crate::facts::{Facts, Hit, Place, XidEvent, pci_address};
use crate::knowledge::Knowledge;

/// The host that a kernel line names, where it is not the node of the pod.
pub(super) fn other_host<'t>(line: &'t str, bundle: &Bundle, subject: &Subject) -> Option<&'t str> {
    let node = subject.node.as_deref()?;
    let host = kernel_host(line)?;
    let label = bundle
        .nodes
        .iter()
        .filter(|n| n.name == node)
        .flat_map(|n| &n.labels)
        .find(|(k, _)| k == "kubernetes.io/hostname")
        .map(|(_, v)| v.as_str());
    // A host calls itself by its short or its full name.
    let short = |n: &str| n.split('.').next().unwrap_or(n).to_ascii_lowercase();
    [Some(node), label].into_iter().flatten().all(|own| short(own) != short(host)).then_some(host)
}

/// The line names another container of the pod than the one whose end is judged.
pub(super) fn other_container(hit: &Hit, bundle: &Bundle, subject: &Subject) -> bool {
    let Some(pod) = subject.pod_of(bundle).filter(|_| subject.container.is_some()) else { return false };
    hit.containers().any(|id| {
        pod.containers.iter().filter(|c| Some(&c.name) != subject.container.as_ref()).any(|c| {
            let ids = c.status.as_ref().into_iter().flat_map(ContainerStatus::instance_ids);
            ids.into_iter()
                .any(|known| !known.is_empty() && (known.starts_with(&id) || id.starts_with(known)))
        })
    })
}

/// PCI addresses of the GPUs that the pod has, with how that is known; empty where the evidence does not tell.
pub(super) fn own_gpus<'f>(bundle: &'f Bundle, facts: &'f Facts, subject: &Subject) -> Vec<(String, Place)> {
    let mut own: Vec<(String, Place)> = Vec::new();
    let mut add = |address: Option<String>, place: Place| {
        if let Some(a) = address.filter(|a| own.len() < 64 && own.iter().all(|(o, _)| o != a)) {
            own.push((a, place));
        }
    };
    // DCGM names the pod that holds a GPU; a scrape of several pods keeps its own label as exported_pod.
    for s in bundle.metrics.iter().filter(|s| s.name.starts_with("DCGM_")) {
        let pod = s.label("exported_pod").or_else(|| s.label("pod"));
        if pod.is_some() && pod == subject.pod.as_deref() {
            let place = Place { file: s.file.clone(), line: Some(s.line) };
            add(s.label("pci_bus_id").and_then(pci_address), place);
        }
    }
    // The device plugin gives a container its GPUs by UUID, which the kubelet tells an agent, too; the driver prints which
    // address a UUID has.
    let uuids: BTreeSet<&str> = subject
        .pod_of(bundle)
        .iter()
        .flat_map(|p| &p.containers)
        .flat_map(|c| &c.env)
        .filter(|(k, _)| k == "NVIDIA_VISIBLE_DEVICES")
        .flat_map(|(_, v)| v.split(',').map(str::trim))
        .chain(bundle.given.iter().map(String::as_str))
        .filter(|v| v.starts_with("GPU-"))
        .collect();
    for log in &facts.logs {
        for (address, uuid, line) in &log.gpus {
            let listed = !log.kernel && log.phase != super::Phase::Unknown && uuid.is_none();
            if listed || uuid.as_deref().is_some_and(|u| uuids.contains(u)) {
                add(Some(address.clone()), Place { file: log.file.clone(), line: Some(*line) });
            }
        }
    }
    // A container's own log that begins with nvidia-smi shows the container's cards; a printout by itself may be the node's.
    // One that a UUID of the pod names counts in any case.
    for snapshot in &bundle.gpus {
        let in_log = facts
            .logs
            .iter()
            .any(|l| l.file == snapshot.file && !l.kernel && l.phase != super::Phase::Unknown);
        for gpu in &snapshot.gpus {
            if in_log || gpu.uuid.as_deref().is_some_and(|u| uuids.contains(u)) {
                let place = Place { file: snapshot.file.clone(), line: Some(gpu.line) };
                add(gpu.pci.as_deref().and_then(pci_address), place);
            }
        }
    }
    own
}

/// The pod asked for no GPU and has no other way to one, and its logs do not speak of one. Where the node's object is at
/// hand, its plugin gives GPUs out; where it is not, no engine runs there, which may see all cards by its image alone.
pub(super) fn without_gpu(bundle: &Bundle, facts: &Facts, subject: &Subject) -> bool {
    let Some(pod) = subject.pod_of(bundle).filter(|p| p.whole() && !p.opens_devices) else { return false };
    let mut node = bundle.nodes.iter().filter(|n| Some(&n.name) == subject.node.as_ref()).peekable();
    // GPU feature discovery labels the nodes on which the plugin runs.
    let given_out = match node.peek() {
        Some(_) => node.flat_map(|n| &n.labels).any(|(k, _)| k.starts_with("nvidia.com/gpu.")),
        None => facts.engine.name.is_none(),
    };
    let sees = |(k, v): &(String, String)| {
        k == "NVIDIA_VISIBLE_DEVICES" && !matches!(v.as_str(), "" | "none" | "void")
    };
    let asks = pod.containers.iter().any(|c| !c.devices.is_empty() || c.env.iter().any(sees));
    // An engine that says that it serves on the CPU speaks of none.
    let on_cpu = facts.engine.on_cpu().is_some();
    let phase = |l: &crate::facts::LogSummary| !on_cpu && l.phase != super::Phase::Unknown;
    let speaks = facts.logs.iter().any(|l| !l.kernel && (phase(l) || !l.gpus.is_empty()));
    given_out && !asks && !speaks
}

/// Why an Xid is none of this pod's: the host, or the GPU.
pub(super) fn not_ours(
    x: &XidEvent,
    own: &[(String, Place)],
    bundle: &Bundle,
    facts: &Facts,
    subject: &Subject,
) -> Option<Cited> {
    if let Some(host) = other_host(&x.text, bundle, subject) {
        return Some(of_host(host, subject, &x.place));
    }
    let address = pci_address(&x.pci)?;
    let Some((_, place)) = own.first() else {
        let none = Xid::OtherGpu { own: Vec::new(), address };
        let file = Place { file: subject.file(bundle), line: None };
        return without_gpu(bundle, facts, subject).then(|| Cited::at(none, &file));
    };
    if own.iter().any(|(o, _)| *o == address) {
        return None;
    }
    let all = own.iter().map(|(a, _)| a.clone()).collect();
    Some(Cited::at(Xid::OtherGpu { own: all, address }, place))
}

/// The driver's line is of another node, or names the address of another GPU.
pub(super) fn other_line(line: &str, own: &[(String, Place)], bundle: &Bundle, subject: &Subject) -> bool {
    if other_host(line, bundle, subject).is_some() {
        return true;
    }
    let word = |c: char| !(c.is_ascii_hexdigit() || matches!(c, ':' | '.'));
    // A domain has four digits or eight; a time of day has two.
    let mut named = line
        .split(word)
        .map(|w| w.trim_matches([':', '.']))
        .filter(|w| w.split(':').next().is_some_and(|d| matches!(d.len(), 4 | 8)))
        .filter_map(pci_address)
        .peekable();
    !own.is_empty() && named.peek().is_some() && named.all(|n| own.iter().all(|(o, _)| *o != n))
}

fn of_host(host: &str, subject: &Subject, place: &Place) -> Cited {
    let node = subject.node.clone().unwrap_or_default();
    Cited::at(Kernel::OtherHost { host: host.to_owned(), node }, place)
}

/// What was passed over, one cause a class and reason.
pub(super) fn passed_over(
    bundle: &Bundle,
    facts: &Facts,
    knowledge: &Knowledge,
    subject: &Subject,
) -> Vec<Cause> {
    let mut out: Vec<Cause> = Vec::new();
    let mut add = |class: Class, title: String, what: Proof, place: &Place, why: Cited| {
        if !out.iter().any(|c| c.class == class && c.against.iter().any(|a| a.proof == why.proof))
            && out.len() < 8
        {
            out.push(Cause {
                class,
                title,
                confidence: Confidence::Low,
                rejected: true,
                supports: vec![Cited::at(what, place)],
                against: vec![why],
            });
        }
    };
    for oom in facts.ooms.iter().filter(|o| !o.in_container()) {
        if let Some(host) = other_host(&oom.text, bundle, subject) {
            let title = format!("an OOM kill on host {}", crate::text::name(host));
            let what = Kernel::OomOnHost(host.to_owned()).into();
            add(Class::HostNodeOom, title, what, &oom.place, of_host(host, subject, &oom.place));
        }
    }
    let own = own_gpus(bundle, facts, subject);
    for x in &facts.xids {
        if let Some(why) = not_ours(x, &own, bundle, facts, subject) {
            let name = knowledge.xid(x.code).map(|k| k.name.clone());
            let known = name.as_deref().unwrap_or("not in the catalogue");
            let title = format!("Xid {} on {}: {known}", x.code, x.pci);
            let what = Xid::Event { code: x.code, pci: x.pci.clone(), name }.into();
            add(Class::XidHardware, title, what, &x.place, why);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evidence::RawFile;

    /// A neighbour's card fails while a pod without one ends; a pod that has another way to a card may have died of it.
    #[test]
    fn a_fault_is_none_of_a_pod_that_asked_for_no_gpu() {
        let k = Knowledge::embedded().unwrap();
        let kernel = "Nov 22 22:24:11 n1 kernel: [51917.321646] NVRM: Xid (PCI:0000:7f:00): 79, pid=4194000, name=python3, GPU has fallen off the bus.\n";
        let class = |label: &str, spec: &str, container: &str| {
            let node = format!(
                r#"{{"kind":"Node","apiVersion":"v1","metadata":{{"name":"n1","labels":{{"{label}":"2"}}}},"status":{{"capacity":{{"memory":"64Gi"}}}}}}"#
            );
            let pod = format!(
                r#"{{"kind":"Pod","apiVersion":"v1","metadata":{{"name":"p","namespace":"s","uid":"3f2b8c1e-0d47-4a5c-9b1e-7d2f6a8c4e10"}},
                "spec":{{"nodeName":"n1",{spec}"containers":[{{"name":"c","image":"i"{container}}}]}},
                "status":{{"phase":"Failed","containerStatuses":[{{"name":"c","state":{{"terminated":{{"exitCode":1,"reason":"Error","startedAt":"2026-11-22T22:24:05Z","finishedAt":"2026-11-22T22:24:12Z"}}}}}}]}}}}"#
            );
            let files = vec![
                RawFile::new("node.json", node),
                RawFile::new("pod.json", pod),
                RawFile::new("node/kernel/kern.log", kernel),
            ];
            let bundle = Bundle::from_files(files);
            let facts = crate::facts::extract(&bundle, &k);
            crate::verdict::judge(&bundle, &facts, &k).class
        };
        let plugin = "nvidia.com/gpu.count";
        assert_eq!(class(plugin, "", ""), Class::Unknown);
        for (label, spec, container) in [
            ("kubernetes.io/os", "", ""),
            (plugin, r#""resourceClaims":[{"name":"gpu"}],"#, ""),
            (plugin, "", r#","securityContext":{"privileged":true}"#),
            (plugin, "", r#","resources":{"limits":{"nvidia.com/gpu":"1"}}"#),
            (plugin, "", r#","env":[{"name":"NVIDIA_VISIBLE_DEVICES","value":"all"}]"#),
        ] {
            assert_eq!(class(label, spec, container), Class::XidHardware, "{label} {spec} {container}");
        }
    }

    /// The agent has the pod's object and not the node's: a job of the node is none of those that use its cards.
    #[test]
    fn without_the_node_an_engine_may_still_have_one() {
        let k = Knowledge::embedded().unwrap();
        let kernel = "3,100,5000000,-;NVRM: Xid (PCI:0000:7f:00): 79, pid=4194000, name=python3, GPU has fallen off the bus.\n";
        let class = |image: &str| {
            let pod = format!(
                r#"{{"kind":"Pod","apiVersion":"v1","metadata":{{"name":"p","namespace":"s","uid":"3f2b8c1e-0d47-4a5c-9b1e-7d2f6a8c4e10"}},
                "spec":{{"nodeName":"n1","containers":[{{"name":"c","image":"{image}"}}]}},
                "status":{{"phase":"Failed","containerStatuses":[{{"name":"c","state":{{"terminated":{{"exitCode":1,"reason":"Error","startedAt":"2026-11-22T22:24:05Z","finishedAt":"2026-11-22T22:24:12Z"}}}}}}]}}}}"#
            );
            let files = vec![
                RawFile::new(
                    "manifest.json",
                    r#"{"schema":"dualplane.bundle/v1","incident":{"container":"c","gpus_given":[]}}"#,
                ),
                RawFile::new("pod.json", pod),
                RawFile::new("node/kernel/kmsg.log", kernel),
                RawFile::new("logs/c.previous.log", "starting\n"),
            ];
            let bundle = Bundle::from_files(files);
            let facts = crate::facts::extract(&bundle, &k);
            crate::verdict::judge(&bundle, &facts, &k).class
        };
        assert_eq!(class("registry.local/backup:1"), Class::Unknown);
        assert_eq!(class("vllm/vllm-openai:v0.11.0"), Class::XidHardware);
    }

    /// The agent's bundle: all cards of the node, and which of them the kubelet gave.
    #[test]
    fn a_fault_of_a_card_that_was_not_given_is_none_of_the_pods() {
        let k = Knowledge::embedded().unwrap();
        let uuid = "GPU-5fd4f087-86f3-7a43-b711-4771313afc50";
        let other = "GPU-9c1b0f7e-2d3a-4e5f-8a6b-7c8d9e0f1a2b";
        let cards = format!(
            "index, name, uuid, pci.bus_id, memory.total [MiB], memory.used [MiB], memory.free [MiB]\n\
             0, NVIDIA H100, {uuid}, 0000:4a:00.0, 81559 MiB, 1 MiB, 81558 MiB\n\
             1, NVIDIA H100, {other}, 0000:5b:00.0, 81559 MiB, 1 MiB, 81558 MiB\n"
        );
        let class = |given: &str| {
            let manifest = format!(
                r#"{{"schema":"dualplane.bundle/v1","incident":{{"gpus_given":[{{"id":"{given}","uuid":"{given}"}},{{"id":"nvidia1","uuid":null}}]}}}}"#
            );
            let kernel = "3,100,5000000,-;NVRM: Xid (PCI:0000:5b:00): 79, GPU has fallen off the bus.\n";
            let files = vec![
                RawFile::new("manifest.json", manifest),
                RawFile::new("gpu/gpus.csv", cards.clone()),
                RawFile::new("node/kernel/kmsg.log", kernel),
                RawFile::new("logs/vllm.previous.log", "RuntimeError: something else\n"),
            ];
            let bundle = Bundle::from_files(files);
            let facts = crate::facts::extract(&bundle, &k);
            crate::verdict::judge(&bundle, &facts, &k).class
        };
        assert_eq!(class(other), Class::XidHardware);
        assert_ne!(class(uuid), Class::XidHardware);
        // An id that is no UUID says nothing of which card it is.
        assert_eq!(class("nvidia0"), Class::XidHardware);
    }
}
