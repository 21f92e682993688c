//! After all sources were read: where they contradict each other, what is shared, what is missing and how to get it.

use super::assembly::{Assembly, From, Held};
use super::engine;
use super::id;
use super::model::{Contradiction, Map, Model, PodMap};
use super::told::{Attributes, Link};
use crate::evidence::Gap;
use crate::units::Bytes;
use crate::verdict::Confidence;

/// Memory in use on a card of nobody: a CUDA context alone takes some hundred MiB, the driver's own share less.
const IN_USE: Bytes = Bytes(1 << 30);

/// Joins what the kubelet and the exporter say of MIG instances: the one gives the instance's id, the other the card.
pub(super) fn join_instances(a: &mut Assembly, pods: &[PodMap]) {
    for pod in pods {
        for c in &pod.containers {
            let key = (pod.namespace.as_str(), pod.name.as_str(), c.name.as_str());
            let is_instance = |h: &&Held| a.devices.get(&h.device).is_some_and(|d| d.mig);
            let mut own: Vec<String> = [From::Kubelet, From::Claim]
                .into_iter()
                .flat_map(|f| a.of(key, f))
                .filter(is_instance)
                .map(|h| h.device.clone())
                .collect();
            own.sort();
            own.dedup();
            let told: Vec<String> = a
                .of(key, From::Exporter)
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
fn fits(a: &Assembly, own: &str, told: &str) -> bool {
    let of =
        |id: &str, name: &str| a.devices.get(id).and_then(|d| d.attributes.value(name)).map(str::to_owned);
    ["parent", "profile"].into_iter().all(|name| match (of(own, name), of(told, name)) {
        (Some(x), Some(y)) => super::told::same(&x, &y),
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
                from: From::Only,
            };
            a.hold(held, &node);
        }
    }
}

fn is_whole_card(ask: &str) -> bool {
    ask.starts_with("nvidia.com/gpu") || ask.starts_with("amd.com/gpu")
}

/// Compares what sources say of each container's devices.
pub(super) fn compare(a: &mut Assembly, pods: &[PodMap]) {
    let mut found = Vec::new();
    for pod in pods {
        for c in &pod.containers {
            let key = (pod.namespace.as_str(), pod.name.as_str(), c.name.as_str());
            let what = format!("devices of container {} of pod {}", c.name, pod.full_name());
            let exec = format!("kubectl exec -n {} {} -c {} -- nvidia-smi -L", key.0, key.1, c.name);
            let by_api: Vec<&Held> =
                [From::Kubelet, From::Claim].into_iter().flat_map(|f| a.of(key, f)).collect();
            let by_exporter = a.of(key, From::Exporter);
            let strangers: Vec<&Held> = by_exporter
                .iter()
                .copied()
                .filter(|h| !by_api.iter().any(|b| related(a, &b.device, &h.device)))
                .collect();
            if !by_api.is_empty() && !strangers.is_empty() {
                let told = by_api.iter().chain(&strangers).map(|h| naming(h)).collect();
                found.push(Contradiction { what: what.clone(), told, settle: Some(exec.clone()) });
            }
            // The kubelet gave it to this container, the exporter says it is another pod's: an exporter that lags, or
            // a device that was handed out twice. With replicas the exporter names one pod of several, which is right.
            for own in by_api.iter().filter(|h| h.from == From::Kubelet) {
                let others: Vec<&Held> = a
                    .held
                    .iter()
                    .filter(|h| h.from == From::Exporter && h.device == own.device)
                    .filter(|h| (h.namespace.as_str(), h.pod.as_str()) != (key.0, key.1))
                    .collect();
                let named_too = by_exporter.iter().any(|h| h.device == own.device);
                let alone = !a.held.iter().any(|h| {
                    h.from == From::Kubelet
                        && h.device == own.device
                        && (h.namespace.as_str(), h.pod.as_str()) != (key.0, key.1)
                });
                if !others.is_empty() && !named_too && alone && !a.replicas.contains(&own.device) {
                    let mut told = vec![holder(own)];
                    told.extend(others.into_iter().map(holder));
                    let what = format!("holder of {}", own.device);
                    found.push(Contradiction { what, told, settle: Some(exec.clone()) });
                }
            }
            found.extend(visible(a, &c.asks, &by_api, (&what, &exec)));
            found.extend(models(
                &c.models,
                &format!("model of container {} of pod {}", c.name, pod.full_name()),
            ));
            found.extend(attributes(&c.engine, &format!("container {} of pod {}", c.name, pod.full_name())));
        }
    }
    a.contradictions.extend(found);
}

/// The same device, or a card and its instance.
fn related(a: &Assembly, x: &str, y: &str) -> bool {
    let parent = |id: &str| a.devices.get(id).and_then(|d| d.attributes.value("parent"));
    x == y || parent(x) == Some(y) || parent(y) == Some(x) || {
        // Instances of one card without their own id cannot be told apart here; `fits` did what could be done.
        let both_mig = [x, y].iter().all(|id| a.devices.get(*id).is_some_and(|d| d.mig));
        both_mig && (!x.starts_with("MIG-") || !y.starts_with("MIG-")) && fits(a, x, y)
    }
}

fn naming(h: &Held) -> Link {
    Link::new(&h.device, h.link.source.clone(), h.link.confidence)
}

fn holder(h: &Held) -> Link {
    Link::new(&format!("{}/{}", h.namespace, h.pod), h.link.source.clone(), h.link.confidence)
}

/// A literal NVIDIA_VISIBLE_DEVICES shows the container cards whatever it was given.
fn visible(
    a: &Assembly,
    asks: &[Link],
    given: &[&Held],
    (what, exec): (&str, &str),
) -> Option<Contradiction> {
    let env = asks.iter().find(|l| l.value.starts_with("NVIDIA_VISIBLE_DEVICES="))?;
    let (_, value) = env.value.split_once('=')?;
    let strange = match value {
        "none" | "void" => false,
        "all" => true,
        list => list.split(',').map(str::trim).any(|id| {
            id::is_uuid(id) && !given.is_empty() && !given.iter().any(|h| related(a, &h.device, id))
        }),
    };
    if !strange {
        return None;
    }
    let mut told: Vec<Link> = given.iter().map(|h| naming(h)).collect();
    if told.is_empty() {
        told.push(Link::new(
            "no GPU is asked for or known to be given",
            "pod's spec and status",
            Confidence::Medium,
        ));
    }
    told.push(env.clone());
    Some(Contradiction { what: what.to_owned(), told, settle: Some(exec.to_owned()) })
}

fn models(models: &[Model], what: &str) -> Option<Contradiction> {
    let (answered, spec): (Vec<&Model>, Vec<&Model>) =
        models.iter().partition(|m| m.id.confidence == Confidence::High);
    let spec = spec.first()?;
    if answered.is_empty() || engine::is_served(spec, &answered) {
        return None;
    }
    let told = std::iter::once(&spec.id).chain(answered.iter().take(4).map(|m| &m.id)).cloned().collect();
    Some(Contradiction { what: what.to_owned(), told, settle: None })
}

/// Properties of which sources tell different things.
pub(super) fn attributes(of: &Attributes, what: &str) -> Vec<Contradiction> {
    of.iter()
        .filter(|a| a.disagrees())
        .map(|a| Contradiction { what: format!("{} of {what}", a.name), told: a.links.clone(), settle: None })
        .collect()
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
                "{how}: each replica may take an equal share of the memory, and one fault hits all its holders"
            )
        } else {
            format!("{how}: VRAM is not isolated, any holder may take all of it")
        });
    }
}

/// What is missing in the finished map, with the command that gets it.
pub(super) fn missing(map: &mut Map) {
    let mut gaps = Vec::new();
    for pod in &map.pods {
        let node = pod.node.as_ref().map_or("", |n| n.value.as_str());
        for c in &pod.containers {
            let name = format!("container {} of pod {}", c.name, pod.full_name());
            let asks = c.asks.iter().any(|l| l.source == "pod's spec");
            let exec = format!("kubectl exec -n {} {} -c {} --", pod.namespace, pod.name, c.name);
            let running = c.state.starts_with("running");
            if node.is_empty() && asks {
                gaps.push(Gap {
                    what: format!("devices of {name}"),
                    why: "the pod is not scheduled, so nothing was handed out".into(),
                    command: Some(format!("kubectl describe pod -n {} {}", pod.namespace, pod.name)),
                });
            } else if asks && c.devices.is_empty() {
                let why = "neither the pod's status (allocatedResourcesStatus: kubelet 1.31 and later, ResourceHealthStatus) nor a ResourceClaim nor a DCGM exporter names them";
                let command = if running {
                    format!("{exec} nvidia-smi -L")
                } else {
                    format!(
                        "kubectl debug node/{node} -it --image=busybox -- cat /host/var/lib/kubelet/device-plugins/kubelet_internal_checkpoint"
                    )
                };
                gaps.push(Gap {
                    what: format!("devices of {name}"),
                    why: why.into(),
                    command: Some(command),
                });
            }
            if asks && c.models.is_empty() {
                gaps.push(Gap {
                    what: format!("model of {name}"),
                    why: "no engine answers, and its command line names none".into(),
                    command: Some(format!(
                        "kubectl get --raw /api/v1/namespaces/{}/pods/{}:8000/proxy/v1/models",
                        pod.namespace, pod.name
                    )),
                });
            }
        }
    }
    for d in &map.devices {
        let node = d.node.as_deref().unwrap_or("NODE");
        let divided = map.devices.iter().any(|o| o.attributes.value("parent") == Some(&d.id));
        if let Some(used) = d.used.filter(|u| *u >= IN_USE && d.holders.is_empty() && !divided) {
            gaps.push(Gap {
                what: format!("who uses {used} of {}", d.id),
                why: "no pod holds it: a process outside Kubernetes, one that outlived its pod, or a container with NVIDIA_VISIBLE_DEVICES; `dualplane map --pid PID` on the node tells".into(),
                command: Some(format!(
                    "kubectl debug node/{node} -it --profile=sysadmin --image=ubuntu -- chroot /host nvidia-smi --query-compute-apps=gpu_uuid,pid,used_memory --format=csv"
                )),
            });
        }
        let debug = format!(
            "kubectl debug node/{node} -it --profile=sysadmin --image=ubuntu -- chroot /host nvidia-smi -L"
        );
        if d.mig && d.attributes.get("parent").is_none() {
            gaps.push(Gap {
                what: format!("card of {}", d.id),
                why: "no source names the card of this MIG instance".into(),
                command: Some(debug),
            });
        } else if !id::is_uuid(&d.id) && !d.mig {
            gaps.push(Gap {
                what: format!("UUID of {}", d.id),
                why: "the device plugin or driver gives a name of its own, and no source maps it to a UUID"
                    .into(),
                command: Some(debug),
            });
        }
    }
    for n in map.nodes.iter().filter(|n| n.attributes.get("driver").is_none()) {
        if map.devices.iter().any(|d| d.node.as_deref() == Some(&n.name)) {
            gaps.push(Gap {
                what: format!("driver of node {}", n.name),
                why: "no label of GPU feature discovery, no ResourceSlice and no DCGM exporter tells it"
                    .into(),
                command: Some(format!(
                    "kubectl debug node/{} -it --image=busybox -- cat /host/proc/driver/nvidia/version",
                    n.name
                )),
            });
        }
    }
    map.gaps.extend(gaps);
    map.gaps.sort();
    map.gaps.dedup();
}
