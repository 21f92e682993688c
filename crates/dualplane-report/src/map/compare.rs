//! Where sources contradict each other. Both sides are kept; the command that settles it is named.

use super::assembly::{Assembly, Held, Source};
use super::engine;
use super::link::{Attributes, Link};
use super::model::{Contradiction, Model, PodMap};
use super::settle::fits;
use dualplane_base::Confidence;
use dualplane_base::device_id as id;

/// Compares what sources say of each container's devices.
pub(super) fn compare(a: &mut Assembly, pods: &[PodMap]) {
    let mut found = Vec::new();
    for pod in pods {
        for c in &pod.containers {
            let key = (pod.namespace.as_str(), pod.name.as_str(), c.name.as_str());
            let what = format!("devices of container {} of pod {}", c.name, pod.full_name());
            let exec = format!("kubectl exec -n {} {} -c {} -- nvidia-smi -L", key.0, key.1, c.name);
            let by_api: Vec<&Held> =
                [Source::Kubelet, Source::Claim].into_iter().flat_map(|f| a.of(key, f)).collect();
            let by_exporter = a.of(key, Source::Exporter);
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
            for own in by_api.iter().filter(|h| h.from == Source::Kubelet) {
                let others: Vec<&Held> = a
                    .held
                    .iter()
                    .filter(|h| h.from == Source::Exporter && h.device == own.device)
                    .filter(|h| (h.namespace.as_str(), h.pod.as_str()) != (key.0, key.1))
                    .collect();
                let named_too = by_exporter.iter().any(|h| h.device == own.device);
                let alone = !a.held.iter().any(|h| {
                    h.from == Source::Kubelet
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
            "requests no GPU, and none is known to be allocated",
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
