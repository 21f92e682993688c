//! After all sources were read: which of them speak of the same device, what follows, what is shared.

use super::assembly::{Assembly, Held, Source};
use super::link::Link;
use super::model::PodMap;
use dualplane_base::Confidence;
use dualplane_base::device_id as id;

/// Joins what the kubelet and the exporter say of MIG instances: the one gives the instance's id, the other the card.
pub(super) fn join_instances(a: &mut Assembly, pods: &[PodMap]) {
    for pod in pods {
        for c in &pod.containers {
            let key = (pod.namespace.as_str(), pod.name.as_str(), c.name.as_str());
            let is_instance = |h: &&Held| a.devices.get(&h.device).is_some_and(|d| d.mig);
            let mut own: Vec<String> = [Source::Kubelet, Source::Claim]
                .into_iter()
                .flat_map(|f| a.of(key, f))
                .filter(is_instance)
                .map(|h| h.device.clone())
                .collect();
            own.sort();
            own.dedup();
            let told: Vec<String> = a
                .of(key, Source::Exporter)
                .into_iter()
                .filter(is_instance)
                .map(|h| h.device.clone())
                .filter(|d| !own.contains(d) && !d.starts_with("MIG-"))
                .collect();
            // With several of each it is not told which is which.
            if let ([own], [told]) = (own.as_slice(), told.as_slice())
                && fits(a, own, told)
            {
                a.rename(told, own);
            }
        }
    }
}

/// Whether two descriptions of a MIG instance can be of one: their cards and profiles do not differ.
pub(super) fn fits(a: &Assembly, own: &str, told: &str) -> bool {
    let of =
        |id: &str, name: &str| a.devices.get(id).and_then(|d| d.attributes.value(name)).map(str::to_owned);
    ["parent", "profile"].into_iter().all(|name| match (of(own, name), of(told, name)) {
        (Some(x), Some(y)) => super::link::same(&x, &y),
        _ => true,
    })
}

/// A container that asks for cards on a node with one card can mean no other.
pub(super) fn infer(a: &mut Assembly, pods: &[PodMap]) {
    for pod in pods {
        let Some(node) = pod.node.as_ref().map(|l| l.value.clone()) else { continue };
        // A Pending pod on its node may not have been given anything yet.
        if !matches!(pod.phase.as_str(), "Running" | "Pending") {
            continue;
        }
        for c in pod.containers.iter().filter(|c| c.asks.iter().any(|l| is_whole_card(&l.value))) {
            let key = (pod.namespace.as_str(), pod.name.as_str(), c.name.as_str());
            if a.held.iter().any(|h| (h.namespace.as_str(), h.pod.as_str()) == (key.0, key.1)) {
                continue;
            }
            let mut cards = a
                .devices
                .values()
                .filter(|d| !d.mig && d.node.as_deref() == Some(&node) && id::is_uuid(&d.id));
            let (Some(only), None) = (cards.next().map(|d| d.id.clone()), cards.next()) else { continue };
            let held = Held {
                link: Link::new(&only, format!("the only GPU seen on node {node}"), Confidence::Medium),
                device: only,
                namespace: pod.namespace.clone(),
                pod: pod.name.clone(),
                container: c.name.clone(),
                health: None,
                from: Source::Only,
            };
            a.hold(held, &node);
        }
    }
}

fn is_whole_card(ask: &str) -> bool {
    ask.starts_with("nvidia.com/gpu") || ask.starts_with("amd.com/gpu")
}

/// Says of shared devices why a holder's memory is not its own.
pub(super) fn sharing(a: &mut Assembly, strategy: impl Fn(&str) -> Option<String>) {
    let replicas = std::mem::take(&mut a.replicas);
    for d in a.devices.values_mut() {
        let by_node = d.node.as_deref().and_then(&strategy).filter(|s| s != "none");
        let several = d.holders.len() > 1;
        let replica = replicas.contains(&d.id);
        if !several && !replica && (by_node.is_none() || d.holders.is_empty()) {
            continue;
        }
        let mps = by_node.as_deref() == Some("mps");
        let how = by_node.unwrap_or_else(|| {
            if replica { "replicas of one device".into() } else { "several holders".into() }
        });
        d.shared = Some(if mps {
            format!(
                "{how}: each replica may use an equal share of the memory, and one fault affects all pods \
                on the GPU"
            )
        } else {
            format!("{how}: VRAM is not isolated, and any pod may use all of it")
        });
    }
}
