//! Which pods and devices of all that was read are the answer.

use std::collections::BTreeSet;

use super::assembly::Assembly;
use super::model::{Device, PodMap};
use super::{Asked, NotOne};

/// Candidates that are named where a prefix fits several.
const MAX_CANDIDATES: usize = 20;

/// The pods and devices that are shown.
pub(super) fn choose(
    a: &Assembly,
    pods: Vec<PodMap>,
    count: usize,
    asked: &Asked,
) -> Result<(Vec<PodMap>, BTreeSet<String>), NotOne> {
    let of = |pods: &[PodMap]| -> BTreeSet<String> {
        let holds = |d: &Device| {
            d.holders.iter().any(|h| pods.iter().any(|p| p.namespace == h.namespace && p.name == h.pod))
        };
        a.devices.values().filter(|d| holds(d)).map(|d| d.id.clone()).collect()
    };
    Ok(match asked {
        Asked::Pods(_) | Asked::Process(_) => {
            let mut pods = pods;
            pods.truncate(count);
            let ids = of(&pods);
            (pods, ids)
        }
        Asked::Node(node) => {
            let here = |p: &PodMap| p.node.as_ref().is_some_and(|l| l.value == *node);
            let uses = |p: &PodMap| p.containers.iter().any(|c| !c.asks.is_empty());
            let pods: Vec<PodMap> = pods.into_iter().filter(|p| here(p) && uses(p)).collect();
            let ids =
                a.devices.values().filter(|d| d.node.as_ref() == Some(node)).map(|d| d.id.clone()).collect();
            (pods, ids)
        }
        Asked::Gpu(wanted) => {
            let mut ids = BTreeSet::from([one(a, wanted)?]);
            // Who holds a card of which slices were made are the holders of the slices.
            let parent = |d: &Device| d.attributes.value("parent").is_some_and(|p| ids.contains(p));
            let slices: Vec<String> =
                a.devices.values().filter(|d| parent(d)).map(|d| d.id.clone()).collect();
            ids.extend(slices);
            let held = |p: &PodMap| {
                a.devices
                    .values()
                    .filter(|d| ids.contains(&d.id))
                    .any(|d| d.holders.iter().any(|h| h.namespace == p.namespace && h.pod == p.name))
            };
            let pods = pods.into_iter().filter(held).collect();
            (pods, ids)
        }
    })
}

fn one(a: &Assembly, wanted: &str) -> Result<String, NotOne> {
    let lower = wanted.to_ascii_lowercase();
    let exact = a.devices.keys().find(|id| id.to_ascii_lowercase() == lower);
    if let Some(id) = exact {
        return Ok(id.clone());
    }
    let fits: Vec<&String> = a
        .devices
        .keys()
        .filter(|id| {
            let id = id.to_ascii_lowercase();
            // People copy an id with and without its kind.
            let bare = id.split_once('-').map_or("", |(_, rest)| rest);
            id.starts_with(&lower) || bare.starts_with(&lower)
        })
        .collect();
    match fits.as_slice() {
        [id] => Ok((*id).clone()),
        many => Err(NotOne {
            candidates: many.iter().take(MAX_CANDIDATES).map(|id| (*id).clone()).collect(),
            known: a.devices.len(),
        }),
    }
}
