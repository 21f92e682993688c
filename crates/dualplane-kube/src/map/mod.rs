//! Fetches what a map is assembled from. Every source may be absent or forbidden; the others go on.

mod ask;
mod dra;
mod exporters;
mod near;
mod process;

use std::collections::BTreeSet;

use dualplane_core::evidence::Gap;
use dualplane_report::map::{Input, asks_for_gpu};
use futures_util::future::join_all;
use serde_json::Value;

pub use self::ask::ask;
pub use self::process::find_process;
use crate::api::{Api, ApiError, path};
use crate::capture::source::{Missing, gap};
use crate::find::text;

/// Nodes of one map; a model over more of them is asked about pod by pod.
const MAX_NODES: usize = 32;
/// Services of a namespace.
const MAX_SERVICES: usize = 500;

/// What the map is about.
#[derive(Debug)]
pub enum Scope {
    /// These pods.
    Pods(Vec<Value>),
    /// A node.
    Node(String),
    /// Every node, or one: a device is looked for.
    Everywhere(Option<String>),
}

/// Fetches all sources but the engines' answers.
///
/// # Errors
/// Where the node that was asked about is not there, or no request can succeed.
pub async fn gather(api: &Api, scope: Scope) -> Result<Input, ApiError> {
    let mut input = Input::default();
    let mut nodes: Option<BTreeSet<String>> = None;
    match scope {
        Scope::Pods(pods) => {
            let mut of_pods: BTreeSet<String> =
                pods.iter().map(|p| text(p, "/spec/nodeName")).filter(|n| !n.is_empty()).collect();
            if of_pods.len() > MAX_NODES {
                input.gaps.push(Gap {
                    what: format!("{} of {} nodes", of_pods.len() - MAX_NODES, of_pods.len()),
                    why: format!("one map covers {MAX_NODES} nodes; select fewer pods"),
                    command: None,
                });
                of_pods = of_pods.into_iter().take(MAX_NODES).collect();
            }
            nodes = Some(of_pods);
            input.pods = pods;
        }
        Scope::Node(node) | Scope::Everywhere(Some(node)) => {
            // A node that is not there is an error of who asks, and found before anything else is fetched.
            input.nodes.push(node_object(api, &node).await?);
            nodes = Some(BTreeSet::from([node]));
        }
        Scope::Everywhere(None) => {}
    }
    let namespaces: BTreeSet<String> = input.pods.iter().map(|p| text(p, "/metadata/namespace")).collect();
    let fetch_nodes = input.nodes.is_empty();
    let (neighbours, objects, devices, exporters, services) = tokio::join!(
        near::neighbours(api, nodes.as_ref(), &input.pods),
        async { if fetch_nodes { node_objects(api, nodes.as_ref()).await } else { Fetched::default() } },
        dra::fetch(api, nodes.as_ref(), &namespaces),
        exporters::fetch(api, nodes.as_ref()),
        services(api, &namespaces),
    );
    input.neighbours = neighbours.items;
    input.nodes.extend(objects.items);
    input.exporters = exporters.0;
    input.services = services.items;
    let claims_matter = input.pods.is_empty() || input.pods.iter().any(has_claims);
    input.claims = devices.claims;
    input.slices = devices.slices;
    if claims_matter {
        input.gaps.extend(devices.gaps);
    }
    let gpus_matter = input.pods.is_empty() || input.pods.iter().any(asks_for_gpu);
    if gpus_matter {
        input.gaps.extend(neighbours.gaps.into_iter().chain(exporters.1));
    }
    input.gaps.extend(objects.gaps.into_iter().chain(services.gaps));
    Ok(input)
}

/// Objects, and why there are no more.
#[derive(Debug, Default)]
struct Fetched {
    items: Vec<Value>,
    gaps: Vec<Gap>,
}

impl Fetched {
    /// A source's objects, or the gap that it leaves; what does not exist here leaves none.
    fn of(result: Result<Vec<Value>, ApiError>, what: &str, command: &str) -> Self {
        match result {
            Ok(items) => Self { items, gaps: Vec::new() },
            Err(e) if e.is_absent() => Self::default(),
            Err(e) => {
                let missing =
                    Missing { what: what.to_owned(), command: Some(command.to_owned()), wanted: true };
                Self { items: Vec::new(), gaps: vec![gap(missing, &e)] }
            }
        }
    }
}

fn has_claims(pod: &Value) -> bool {
    pod.pointer("/spec/resourceClaims").and_then(Value::as_array).is_some_and(|c| !c.is_empty())
        || pod.pointer("/status/extendedResourceClaimStatus").is_some()
}

async fn node_object(api: &Api, name: &str) -> Result<Value, ApiError> {
    api.object(&path::named(&path::cluster("v1", "nodes"), name)).await.map(slim_node)
}

/// Images of a node are most of its object, and of no use here.
fn slim_node(mut node: Value) -> Value {
    for (at, key) in [("/status", "images"), ("/metadata", "managedFields")] {
        if let Some(of) = node.pointer_mut(at).and_then(Value::as_object_mut) {
            of.remove(key);
        }
    }
    node
}

async fn node_objects(api: &Api, names: Option<&BTreeSet<String>>) -> Fetched {
    let Some(names) = names else {
        let list = api.list(&path::cluster("v1", "nodes"), &[], |n| Some(slim_node(n))).await;
        return Fetched::of(list.map(|l| l.items), "nodes", "kubectl get nodes -o wide --show-labels");
    };
    let all = join_all(names.iter().map(|n| async move { (n, node_object(api, n).await) })).await;
    let mut got = Fetched::default();
    for (name, node) in all {
        let command = format!("kubectl get node {name} -o yaml");
        let one = Fetched::of(node.map(|n| vec![n]), &format!("node {name}: driver and labels"), &command);
        got.items.extend(one.items);
        got.gaps.extend(one.gaps);
    }
    got
}

/// Services of the pods' namespaces: the names under which requests come.
async fn services(api: &Api, namespaces: &BTreeSet<String>) -> Fetched {
    let lists = namespaces.iter().map(|ns| async move {
        let base = path::namespaced("v1", ns, "services");
        let list = api.list(&base, &[], Some).await.map(|l| l.items);
        let what = format!("Services of namespace {ns}");
        Fetched::of(list, &what, &format!("kubectl get services -n {ns} -o wide"))
    });
    let mut all = Fetched::default();
    for got in join_all(lists).await {
        all.items.extend(got.items.into_iter().take(MAX_SERVICES));
        all.gaps.extend(got.gaps);
    }
    all
}
