//! EndpointSlices of a Service as the servers that stand behind it: pure, from what an API server sent.
//!
//! A Service has several slices, by address family and by number; one pod may stand in two of them. It is one server, with
//! one KV cache, whichever of its addresses is used.

use dualplane_base::order::Order as _;
use std::collections::BTreeMap;

use serde::Deserialize;

/// Endpoints of a Service: more than this would be another way to share load than a guard.
pub const MOST: usize = 1000;

/// An EndpointSlice, as far as it is read (`discovery.k8s.io/v1`).
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Slice {
    /// Name and version.
    pub metadata: Metadata,
    address_type: String,
    // Go writes an empty list as null.
    endpoints: Option<Vec<Endpoint>>,
    ports: Option<Vec<Port>>,
}

/// Of an object or a list.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Metadata {
    /// Its name.
    pub name: String,
    /// Version of it, opaque.
    pub resource_version: String,
    /// Where a list goes on; empty at its end.
    #[serde(rename = "continue")]
    pub more: String,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Endpoint {
    addresses: Vec<String>,
    conditions: Conditions,
    target_ref: Option<TargetRef>,
    node_name: Option<String>,
}

/// What is not said means: ready, serving as far as it is ready, not terminating (the API's own words).
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(default)]
struct Conditions {
    ready: Option<bool>,
    serving: Option<bool>,
    terminating: Option<bool>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct TargetRef {
    name: String,
    namespace: String,
    uid: String,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct Port {
    name: Option<String>,
    port: Option<u16>,
}

/// How an endpoint stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stands {
    /// It takes requests.
    Ready,
    /// It is about to end and still answers.
    Leaving,
    /// It does not answer yet, or no longer.
    NotReady,
}

/// A pod, or another server, behind a Service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// The pod's name; its address where it is none.
    pub name: String,
    /// `HOST:PORT`.
    pub authority: String,
    /// Of the pod.
    pub namespace: String,
    /// Node of the pod.
    pub node: String,
    /// How it stands.
    pub stands: Stands,
}

/// What all slices of a Service say together.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Behind {
    /// Who gets requests, by name.
    pub servers: Vec<Found>,
    /// Endpoints that get none now.
    pub idle: usize,
    /// Endpoints without the port that was asked for, or beyond [`MOST`].
    pub left_out: usize,
}

/// Who stands behind a Service. `port` is a name or a number; empty: the only one.
///
/// While nobody is ready, those that are about to end and still answer are used, as kube-proxy does.
#[must_use]
pub fn behind<'s>(slices: impl Iterator<Item = &'s Slice>, port: &str) -> Behind {
    let mut out = Behind::default();
    let mut all: BTreeMap<(String, String), Found> = BTreeMap::new();
    let mut slices: Vec<&Slice> = slices.collect();
    // IPv4 before IPv6 before FQDN, then by name: the same slices give the same answer.
    slices.order_by(|a, b| {
        let rank = |s: &Slice| match s.address_type.as_str() {
            "IPv4" => 0,
            "IPv6" => 1,
            _ => 2,
        };
        rank(a).cmp(&rank(b)).then_with(|| a.metadata.name.cmp(&b.metadata.name))
    });
    for slice in slices {
        let number = slice.port(port);
        for endpoint in slice.endpoints.iter().flatten() {
            let (Some(number), Some(address)) = (number, endpoint.addresses.first()) else {
                out.left_out += 1;
                continue;
            };
            let host = if slice.address_type == "IPv6" { format!("[{address}]") } else { address.clone() };
            let of = endpoint.target_ref.clone().unwrap_or_default();
            let name = if of.name.is_empty() { host.clone() } else { of.name };
            let stands = endpoint.conditions.stands();
            let found = Found {
                name: name.clone(),
                authority: format!("{host}:{number}"),
                namespace: of.namespace,
                node: endpoint.node_name.clone().unwrap_or_default(),
                stands,
            };
            // Of two words about one pod the better holds: it may just have moved from a slice to another.
            let key = (name, of.uid);
            match all.get(&key) {
                Some(known) if known.stands <= stands => {}
                _ => drop(all.insert(key, found)),
            }
        }
    }
    let ready = all.values().any(|f| f.stands == Stands::Ready);
    let used = if ready { Stands::Ready } else { Stands::Leaving };
    for found in all.into_values() {
        if found.stands != used {
            out.idle += 1;
        } else if out.servers.len() >= MOST {
            out.left_out += 1;
        } else {
            out.servers.push(found);
        }
    }
    out
}

impl Slice {
    fn port(&self, asked: &str) -> Option<u16> {
        let mut ports = self.ports.iter().flatten();
        let is = |p: &&Port| p.name.as_deref().unwrap_or_default() == asked;
        match asked.parse::<u16>() {
            Ok(number) => ports.find(|p| p.port == Some(number))?.port,
            Err(_) if asked.is_empty() => {
                let first = ports.next()?;
                // Of several none is meant more than another.
                if ports.next().is_some() { None } else { first.port }
            }
            Err(_) => ports.find(is)?.port,
        }
    }
}

impl Conditions {
    fn stands(self) -> Stands {
        let ready = self.ready.unwrap_or(true);
        match (ready, self.serving.unwrap_or(ready), self.terminating.unwrap_or(false)) {
            (true, _, false) => Stands::Ready,
            (_, true, true) => Stands::Leaving,
            _ => Stands::NotReady,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn slice(name: &str, kind: &str, endpoints: Value) -> Slice {
        serde_json::from_value(
            json!({"metadata": {"name": name}, "addressType": kind, "endpoints": endpoints,
            "ports": [{"name": "http", "port": 8000, "protocol": "TCP"}, {"name": "metrics", "port": 9000}]}),
        )
        .unwrap()
    }

    fn pod(name: &str, address: &str, conditions: Value) -> Value {
        json!({"addresses": [address], "conditions": conditions, "nodeName": "n",
            "targetRef": {"kind": "Pod", "name": name, "namespace": "s", "uid": name}})
    }

    fn names(b: &Behind) -> Vec<&str> {
        b.servers.iter().map(|f| f.authority.as_str()).collect()
    }

    #[test]
    fn one_pod_is_one_server_and_only_who_is_ready_gets_something() {
        let four = slice(
            "a",
            "IPv4",
            json!([
                pod("p0", "10.0.0.1", json!({"ready": true})),
                pod("p1", "10.0.0.2", json!({"ready": false, "serving": true, "terminating": true})),
                pod("p2", "10.0.0.3", json!({"ready": false})),
                {"addresses": ["10.0.0.9"]},
            ]),
        );
        let six = slice("b", "IPv6", json!([pod("p0", "fd00::1", json!({}))]));
        let b = behind([&six, &four].into_iter(), "http");
        assert_eq!((names(&b), b.idle, b.left_out), (vec!["10.0.0.9:8000", "10.0.0.1:8000"], 2, 0));
        assert_eq!((b.servers[1].name.as_str(), b.servers[1].namespace.as_str()), ("p0", "s"));
        assert_eq!(names(&behind([&six].into_iter(), "9000")), ["[fd00::1]:9000"]);
        // Two ports, and neither was named.
        assert_eq!(behind([&six].into_iter(), "").left_out, 1);
        assert_eq!(behind([&six].into_iter(), "grpc").left_out, 1);
    }

    #[test]
    fn while_nobody_is_ready_those_that_leave_are_used() {
        let leaving = json!({"ready": false, "serving": true, "terminating": true});
        let over = json!({"ready": false, "serving": false, "terminating": true});
        let s = slice("a", "IPv4", json!([pod("p0", "10.0.0.1", leaving), pod("p1", "10.0.0.2", over)]));
        assert_eq!(names(&behind([&s].into_iter(), "http")), ["10.0.0.1:8000"]);
        // With publishNotReadyAddresses all are called ready, also those that end.
        let published = json!({"ready": true, "serving": true, "terminating": true});
        let s =
            slice("a", "IPv4", json!([pod("p0", "10.0.0.1", published), pod("p1", "10.0.0.2", json!({}))]));
        assert_eq!(names(&behind([&s].into_iter(), "http")), ["10.0.0.2:8000"]);
    }

    #[test]
    fn nothing_that_is_null_or_missing_is_an_error() {
        for text in [
            "{}",
            r#"{"endpoints": null, "ports": null}"#,
            r#"{"endpoints": [{"addresses": []}], "ports": [{}]}"#,
        ] {
            let s: Slice = serde_json::from_str(text).unwrap();
            assert!(behind([&s].into_iter(), "http").servers.is_empty());
        }
    }
}
