//! What is collected while sources are read: devices by id, and who holds them by whose word.

use std::collections::{BTreeMap, HashMap};

use super::link::Link;
use super::model::{Contradiction, Device, Holder};
use dualplane_base::Confidence;
use dualplane_base::device_id as id;
use dualplane_base::order::Order as _;
use dualplane_core::evidence::Gap;

/// Devices of one map: a cluster of 500 nodes with eight cards each, or of 80 with seven slices a card.
const MAX_DEVICES: usize = 4096;
/// Words of sources about holders.
const MAX_HELD: usize = 16_384;

/// Whose word it is that a container holds a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Source {
    /// The kubelet, which handed it out.
    Kubelet,
    /// The scheduler, which allocated a claim.
    Claim,
    /// The DCGM exporter, which asked the kubelet.
    Exporter,
    /// Nobody; it is the only one that can be meant.
    Only,
}

/// A container holds a device, by one source.
#[derive(Debug, Clone)]
pub(super) struct Held {
    pub(super) device: String,
    pub(super) namespace: String,
    pub(super) pod: String,
    pub(super) container: String,
    pub(super) link: Link,
    pub(super) health: Option<String>,
    pub(super) from: Source,
}

/// Something that a device's source tells of its node.
#[derive(Debug, Clone)]
pub(super) struct OfNode {
    pub(super) node: String,
    pub(super) name: &'static str,
    pub(super) link: Link,
}

#[derive(Debug, Default)]
pub(super) struct Assembly {
    pub(super) devices: BTreeMap<String, Device>,
    pub(super) held: Vec<Held>,
    pub(super) of_nodes: Vec<OfNode>,
    /// A node's own names of its cards (`nvidia0`, index `0`) to ids.
    pub(super) local: HashMap<(String, String), String>,
    /// Devices of which a replica was seen.
    pub(super) replicas: Vec<String>,
    pub(super) contradictions: Vec<Contradiction>,
    pub(super) gaps: Vec<Gap>,
    /// A bound was reached.
    pub(super) cut: bool,
}

impl Assembly {
    /// The device of an id, made where it is new; none beyond the bound.
    pub(super) fn device(&mut self, id: &str, node: &str) -> Option<&mut Device> {
        if self.devices.len() >= MAX_DEVICES && !self.devices.contains_key(id) {
            return None;
        }
        let read = id::read(id);
        let device = self.devices.entry(id.to_owned()).or_insert_with(|| Device {
            id: id.to_owned(),
            mig: read.mig,
            ..Device::default()
        });
        if device.node.is_none() && !node.is_empty() {
            device.node = Some(node.to_owned());
        }
        if let Some(parent) = read.parent {
            device.attributes.tell("parent", &parent, "the id itself", Confidence::High);
        }
        Some(device)
    }

    /// The id that a word of a node's device plugin means.
    pub(super) fn resolve(&mut self, node: &str, raw: &str) -> String {
        let read = id::read(raw);
        let known = |name: &str| self.local.get(&(node.to_owned(), name.to_owned())).cloned();
        let resolved = match read.id.split_once("/gi") {
            Some((card, instance)) if !card.starts_with("MIG-") && !card.starts_with("GPU-") => {
                known(card).map(|uuid| id::instance(&uuid, instance.trim_matches('/')))
            }
            _ => known(&read.id),
        };
        let resolved = resolved.unwrap_or(read.id);
        if read.replica && !self.replicas.contains(&resolved) {
            self.replicas.push(resolved.clone());
        }
        resolved
    }

    pub(super) fn hold(&mut self, held: Held, node: &str) {
        if self.held.len() < MAX_HELD && self.device(&held.device, node).is_some() {
            self.held.push(held);
        } else {
            self.cut = true;
        }
    }

    /// Said where a bound was reached.
    pub(super) fn cut(&self) -> Option<Gap> {
        self.cut.then(|| Gap {
            what: "the remaining devices and their users".into(),
            why: format!("one map covers {MAX_DEVICES} devices and {MAX_HELD} users of them"),
            command: Some("dualplane map --node NODE".into()),
        })
    }

    /// Devices of a container by the word of one kind of source.
    pub(super) fn of<'a>(&'a self, key: (&str, &str, &str), from: Source) -> Vec<&'a Held> {
        self.held
            .iter()
            .filter(|h| {
                h.from == from
                    && (h.namespace.as_str(), h.pod.as_str()) == (key.0, key.1)
                    && (h.container == key.2 || h.container.is_empty())
            })
            .collect()
    }

    /// Gives a device the id that another source has for it.
    pub(super) fn rename(&mut self, from: &str, to: &str) {
        let Some(old) = self.devices.remove(from) else { return };
        let node = old.node.clone().unwrap_or_default();
        if let Some(device) = self.device(to, &node) {
            device.mig |= old.mig;
            device.used = device.used.or(old.used);
            device.attributes.absorb(old.attributes);
        }
        for h in self.held.iter_mut().filter(|h| h.device == from) {
            to.clone_into(&mut h.device);
        }
    }

    /// Puts the holders to their devices: one for a container, with all who tell it.
    pub(super) fn give_holders(&mut self) {
        for h in &self.held {
            let Some(device) = self.devices.get_mut(&h.device) else { continue };
            let same = device.holders.iter_mut().find(|o| {
                o.namespace == h.namespace
                    && o.pod == h.pod
                    && (o.container == h.container || o.container.is_empty() || h.container.is_empty())
            });
            match same {
                Some(holder) => {
                    if holder.container.is_empty() {
                        holder.container.clone_from(&h.container);
                    }
                    holder.health = holder.health.take().or_else(|| h.health.clone());
                    if !holder.links.contains(&h.link) {
                        holder.links.push(h.link.clone());
                    }
                }
                None => device.holders.push(Holder {
                    namespace: h.namespace.clone(),
                    pod: h.pod.clone(),
                    container: h.container.clone(),
                    health: h.health.clone(),
                    links: vec![h.link.clone()],
                }),
            }
        }
        for d in self.devices.values_mut() {
            d.holders.order_by(|a, b| {
                (&a.namespace, &a.pod, &a.container).cmp(&(&b.namespace, &b.pod, &b.container))
            });
            for h in &mut d.holders {
                h.links.order_by_key(|l| std::cmp::Reverse(l.confidence));
            }
        }
    }
}
