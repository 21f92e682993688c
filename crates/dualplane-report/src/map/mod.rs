//! Who runs where: request → model → pod → container → GPU or MIG instance → node → driver.
//!
//! No one source knows the whole way. The kubelet knows which device it gave to which container, the scheduler what a
//! claim got, the DCGM exporter which card has which name, GPU feature discovery the driver, the engine its model. Each
//! link keeps who told it; where they differ both stay, and where nobody tells, the map says what would.

mod answers;
mod assembly;
mod choose;
mod compare;
mod dra;
mod engine;
mod exporter;
mod link;
mod missing;
mod model;
mod node;
mod pods;
pub mod report;
mod settle;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use serde_json::Value;

use self::assembly::Assembly;
pub use self::engine::{Answer, Question, has_engine, questions};
pub use self::exporter::Exporter;
pub use self::link::{Attribute, Attributes, Link};
pub use self::model::{ContainerMap, Contradiction, Device, End, Holder, Map, Model, NodeMap, PodMap};
pub use self::pods::asks_for_gpu;
use dualplane_base::json::str_at;
use dualplane_base::order::Order as _;
pub use dualplane_base::process::Process;
use dualplane_core::evidence::Gap;

/// What was fetched.
#[derive(Debug, Default)]
pub struct Input {
    /// The pods that were asked about.
    pub pods: Vec<Value>,
    /// Other pods that may hold devices on the same nodes.
    pub neighbours: Vec<Value>,
    /// Nodes.
    pub nodes: Vec<Value>,
    /// ResourceClaims.
    pub claims: Vec<Value>,
    /// ResourceSlices.
    pub slices: Vec<Value>,
    /// Services of the pods' namespaces.
    pub services: Vec<Value>,
    /// DCGM exporters.
    pub exporters: Vec<Exporter>,
    /// What engines answered.
    pub answers: Vec<Answer>,
    /// What could not be fetched.
    pub gaps: Vec<Gap>,
}

/// What is asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Asked {
    /// The pods of [`Input::pods`].
    Pods(String),
    /// All devices of a node, and who holds them.
    Node(String),
    /// A device by its id, or by a prefix that only it has.
    Gpu(String),
    /// A process; its pod is in [`Input::pods`], where it was found.
    Process(Box<Process>),
}

/// A device that is not there, or several that the prefix fits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotOne {
    /// Those that it fits.
    pub candidates: Vec<String>,
    /// How many devices are known.
    pub known: usize,
}

/// Assembles the map.
///
/// # Errors
/// [`NotOne`] where [`Asked::Gpu`] does not mean one device.
pub fn assemble(input: &Input, asked: &Asked) -> Result<Map, NotOne> {
    let mut a = Assembly { gaps: input.gaps.clone(), ..Assembly::default() };
    let index = dra::index(&mut a, &input.slices, &input.claims);
    for e in &input.exporters {
        exporter::read(&mut a, e);
    }
    let mut pods = Vec::new();
    for (i, p) in input.pods.iter().chain(&input.neighbours).enumerate() {
        // A pod that ended has given its devices back, whatever its status still says.
        let ended = matches!(str_at(p, "/status/phase"), "Succeeded" | "Failed");
        let map = pods::read(p, &input.services);
        if !ended {
            let before = a.gaps.len();
            pods::allocated(&mut a, p);
            dra::allocated(&mut a, p, &index);
            if i >= input.pods.len() && !matches!(asked, Asked::Node(_)) {
                // What is missing of a neighbour was not asked for.
                a.gaps.truncate(before);
            }
        }
        pods.push(map);
    }
    let seen: BTreeSet<(String, String)> =
        pods.iter().map(|p| (p.namespace.clone(), p.name.clone())).collect();
    dra::reserved(&mut a, &index, |namespace, pod| seen.contains(&(namespace.to_owned(), pod.to_owned())));
    settle::join_instances(&mut a, &pods);
    settle::infer(&mut a, &pods);
    hear(&mut pods, &input.answers);
    a.give_holders();
    let nodes = nodes(&mut a, &input.nodes);
    settle::sharing(&mut a, |node| {
        nodes.iter().find(|n| n.name == node)?.attributes.value("sharing").map(str::to_owned)
    });
    let count = input.pods.len();
    let (chosen, ids) = choose::choose(&a, pods, count, asked)?;
    Ok(finish(a, chosen, ids, nodes, asked))
}

fn hear(pods: &mut [PodMap], answers: &[Answer]) {
    for a in answers {
        let pod = pods.iter_mut().find(|p| p.namespace == a.namespace && p.name == a.pod);
        let container = pod.and_then(|p| p.containers.iter_mut().find(|c| c.name == a.question.container));
        if let Some(c) = container {
            answers::hear(c, &a.question, &a.body);
        }
    }
    for c in pods.iter_mut().flat_map(|p| &mut p.containers) {
        c.models.order_by_key(|m| std::cmp::Reverse(m.id.confidence));
    }
}

/// Nodes with what labels, the kubelet and the sources of their devices tell; and devices with what their node tells.
fn nodes(a: &mut Assembly, objects: &[Value]) -> Vec<NodeMap> {
    let mut nodes: Vec<NodeMap> = objects.iter().map(node::read).collect();
    for told in std::mem::take(&mut a.of_nodes) {
        let found = nodes.iter_mut().find(|n| n.name == told.node);
        let node = match found {
            Some(n) => n,
            None if told.node.is_empty() => continue,
            None => {
                nodes.push(NodeMap { name: told.node.clone(), ..NodeMap::default() });
                let Some(n) = nodes.last_mut() else { continue };
                n
            }
        };
        node.attributes.tell(told.name, &told.link.value, told.link.source, told.link.confidence);
    }
    for d in a.devices.values_mut() {
        let Some(n) = nodes.iter().find(|n| Some(&n.name) == d.node.as_ref()) else { continue };
        for (name, of_node) in [("card", "card"), ("memory", "memory of a card")] {
            // With strategy single the label is of an instance, else of a card.
            let single = n.attributes.value("MIG strategy") == Some("single");
            if let Some(l) = n.attributes.get(of_node).and_then(Attribute::best)
                && (!d.mig || name == "card" || single)
            {
                d.attributes.tell(name, &l.value, l.source.clone(), l.confidence);
            }
        }
    }
    nodes
}

fn finish(
    mut a: Assembly,
    mut pods: Vec<PodMap>,
    ids: BTreeSet<String>,
    nodes: Vec<NodeMap>,
    asked: &Asked,
) -> Map {
    compare::compare(&mut a, &pods);
    let from = match asked {
        Asked::Pods(_) | Asked::Process(_) => End::Pods,
        Asked::Node(_) => End::Node,
        Asked::Gpu(_) => End::Device,
    };
    let mut map = Map { from, ..Map::default() };
    map.gaps.extend(a.cut());
    match asked {
        Asked::Pods(words) => words.clone_into(&mut map.asked),
        Asked::Node(node) => map.asked = format!("node {node}"),
        Asked::Gpu(id) => id.clone_into(&mut map.asked),
        Asked::Process(p) => {
            map.asked = format!("process {}", p.pid);
            map.process = Some(p.as_ref().clone());
        }
    }
    map.devices = a.devices.into_values().filter(|d| ids.contains(&d.id)).collect();
    map.devices.order_by(|x, y| (&x.node, &x.id).cmp(&(&y.node, &y.id)));
    for p in &mut pods {
        for c in &mut p.containers {
            let mine = |h: &Holder| {
                h.namespace == p.namespace
                    && h.pod == p.name
                    && (h.container == c.name || h.container.is_empty())
            };
            let held = map.devices.iter().filter(|d| d.holders.iter().any(mine));
            c.devices = held.map(|d| d.id.clone()).collect();
        }
    }
    let wanted: BTreeSet<&str> = pods
        .iter()
        .filter_map(|p| Some(p.node.as_ref()?.value.as_str()))
        .chain(map.devices.iter().filter_map(|d| d.node.as_deref()))
        .collect();
    map.nodes = nodes.into_iter().filter(|n| wanted.contains(n.name.as_str())).collect();
    map.nodes.order_by(|x, y| x.name.cmp(&y.name));
    pods.order_by(|x, y| (&x.namespace, &x.name).cmp(&(&y.namespace, &y.name)));
    map.pods = pods;
    map.contradictions = a.contradictions;
    for d in &map.devices {
        map.contradictions.extend(compare::attributes(&d.attributes, &d.id));
    }
    for n in &map.nodes {
        map.contradictions.extend(compare::attributes(&n.attributes, &format!("node {}", n.name)));
    }
    map.contradictions.dedup();
    map.gaps.extend(a.gaps);
    missing::missing(&mut map);
    map
}
