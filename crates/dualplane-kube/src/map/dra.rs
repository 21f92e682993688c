//! ResourceClaims and ResourceSlices, in whichever version of resource.k8s.io the cluster serves.

use std::collections::BTreeSet;

use dualplane_core::evidence::Gap;
use serde_json::{Value, json};

use super::Fetched;
use crate::api::{Api, ApiError, path};
use crate::find::text;

/// Versions that are understood, the newest first. Before v1beta1 (1.32) allocations had another form.
const VERSIONS: &[&str] = &["v1", "v1beta2", "v1beta1"];

#[derive(Debug, Default)]
pub(super) struct Devices {
    pub(super) claims: Vec<Value>,
    pub(super) slices: Vec<Value>,
    pub(super) gaps: Vec<Gap>,
}

/// Fetches both; a cluster without the API group has neither, in silence.
pub(super) async fn fetch(
    api: &Api,
    nodes: Option<&BTreeSet<String>>,
    namespaces: &BTreeSet<String>,
) -> Devices {
    let group = match api.object("/apis/resource.k8s.io").await {
        Ok(group) => group,
        Err(e) => {
            let got =
                Fetched::of(Err(e), "devices from ResourceClaims", "kubectl get resourceclaims -A -o yaml");
            return Devices { gaps: got.gaps, ..Devices::default() };
        }
    };
    let Some(version) = served(&group) else { return Devices::default() };
    let group_version = format!("resource.k8s.io/{version}");
    let (slices, claims) =
        tokio::join!(slices(api, &group_version, nodes), claims(api, &group_version, namespaces));
    let slices =
        Fetched::of(slices, "device attributes from ResourceSlices", "kubectl get resourceslices -o yaml");
    let claims = Fetched::of(claims, "devices from ResourceClaims", "kubectl get resourceclaims -A -o yaml");
    let gaps = slices.gaps.into_iter().chain(claims.gaps).collect();
    Devices { claims: claims.items, slices: slices.items, gaps }
}

fn served(group: &Value) -> Option<&'static str> {
    let versions = group.get("versions")?.as_array()?;
    let has = |v: &str| versions.iter().any(|s| s.get("version").and_then(Value::as_str) == Some(v));
    VERSIONS.iter().copied().find(|v| has(v))
}

async fn slices(
    api: &Api,
    group_version: &str,
    nodes: Option<&BTreeSet<String>>,
) -> Result<Vec<Value>, ApiError> {
    // A slice without a node is of devices that several nodes reach.
    let near = |s: Value| {
        let node = text(&s, "/spec/nodeName");
        (node.is_empty() || nodes.is_none_or(|n| n.contains(&node))).then_some(s)
    };
    Ok(api.list(&path::cluster(group_version, "resourceslices"), &[], near).await?.items)
}

/// Claims of all namespaces, since they share cards; where that is not allowed, of the pods' own.
async fn claims(
    api: &Api,
    group_version: &str,
    namespaces: &BTreeSet<String>,
) -> Result<Vec<Value>, ApiError> {
    let slim = |c: Value| {
        let status = c.get("status")?;
        let kept = json!({"namespace": text(&c, "/metadata/namespace"), "name": text(&c, "/metadata/name")});
        Some(json!({"metadata": kept, "status": status}))
    };
    match api.list(&path::cluster(group_version, "resourceclaims"), &[], slim).await {
        Err(ApiError::Forbidden { .. }) if !namespaces.is_empty() => {}
        other => return Ok(other?.items),
    }
    let mut all = Vec::new();
    for ns in namespaces {
        let base = path::namespaced(group_version, ns, "resourceclaims");
        all.extend(api.list(&base, &[], slim).await?.items);
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_served_version_is_taken() {
        let group =
            |v: &[&str]| json!({"versions": v.iter().map(|v| json!({"version": v})).collect::<Vec<_>>()});
        assert_eq!(served(&group(&["v1beta1", "v1", "v1beta2"])), Some("v1"));
        assert_eq!(served(&group(&["v1alpha3", "v1beta1"])), Some("v1beta1"));
        assert_eq!(served(&group(&["v1alpha3"])), None);
    }
}
