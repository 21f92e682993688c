//! Who would revert a change of an object: what deploys it, and what made it.

use serde_json::Value;

/// Someone who writes the object from a source of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Manager {
    /// Who, with the name: `Helm (release llm)`.
    pub who: String,
    /// When it reverts the change, and where to change it instead.
    pub instead: String,
    /// The release, where Helm itself deploys it.
    pub release: Option<String>,
}

/// All managers that labels, annotations and the controller of an object name.
#[must_use]
pub fn managers(object: &Value) -> Vec<Manager> {
    let metadata = object.get("metadata").unwrap_or(&Value::Null);
    let label = |key: &str| get(metadata, "labels", key);
    let annotation = |key: &str| get(metadata, "annotations", key);
    let mut out = Vec::new();
    let mut add =
        |who: String, instead: &str| out.push(Manager { who, instead: instead.to_owned(), release: None });

    let flux_release = label("helm.toolkit.fluxcd.io/name");
    let release = annotation("meta.helm.sh/release-name");
    if let Some(name) = flux_release {
        let ns = label("helm.toolkit.fluxcd.io/namespace").unwrap_or_default();
        let who = format!("Flux (HelmRelease {ns}/{name})");
        add(
            who,
            "reverts it when it reconciles the release; change the values of the HelmRelease at their source",
        );
    } else if release.is_some() || label("app.kubernetes.io/managed-by") == Some("Helm") {
        let who = release.map_or_else(|| "Helm".to_owned(), |r| format!("Helm (release {r})"));
        add(who, "reverts it with the next helm upgrade; change the chart's values");
    }
    if let Some(name) = label("kustomize.toolkit.fluxcd.io/name") {
        let ns = label("kustomize.toolkit.fluxcd.io/namespace").unwrap_or_default();
        let who = format!("Flux (Kustomization {ns}/{name})");
        add(who, "reverts it when it reconciles, within minutes; change the manifest at its source");
    }
    // `APP:GROUP/KIND:NAMESPACE/NAME`
    let tracked = annotation("argocd.argoproj.io/tracking-id").and_then(|t| t.split(':').next());
    if let Some(app) = tracked.or_else(|| label("argocd.argoproj.io/instance")) {
        let who = format!("Argo CD (application {app})");
        add(who, "reverts it at the next sync, at once with self-heal; change the manifest at its source");
    }
    if let Some(owner) = controller(metadata) {
        add(owner, "created it and reverts it at its next reconciliation; change it there");
    }
    // An application of Argo CD renders the chart itself: its values stand at the application's source.
    let rendered = tracked.is_some() || label("argocd.argoproj.io/instance").is_some();
    if let Some(helm) = out.first_mut().filter(|_| flux_release.is_none() && !rendered) {
        helm.release = release.map(str::to_owned);
    }
    out
}

fn get<'v>(metadata: &'v Value, map: &str, key: &str) -> Option<&'v str> {
    metadata.get(map)?.get(key)?.as_str().filter(|v| !v.is_empty())
}

fn controller(metadata: &Value) -> Option<String> {
    let owners = metadata.get("ownerReferences")?.as_array()?;
    let owner = owners.iter().find(|o| o.get("controller").and_then(Value::as_bool) == Some(true))?;
    Some(format!("{} {}", owner.get("kind")?.as_str()?, owner.get("name")?.as_str()?))
}

/// Made with `kubectl apply`: nobody reverts a change by itself, but the manifest does not know of it.
#[must_use]
pub fn applied_by_hand(object: &Value) -> bool {
    let metadata = object.get("metadata").unwrap_or(&Value::Null);
    get(metadata, "annotations", "kubectl.kubernetes.io/last-applied-configuration").is_some()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn each_manager_is_known_by_its_marks() {
        let who = |metadata: Value| {
            let all = managers(&json!({"metadata": metadata}));
            all.into_iter().map(|m| m.who).collect::<Vec<_>>().join("; ")
        };
        for (metadata, want) in [
            (json!({}), ""),
            (
                json!({"labels": {"app.kubernetes.io/managed-by": "someone", "app.kubernetes.io/instance": "x"}}),
                "",
            ),
            (json!({"labels": {"app.kubernetes.io/managed-by": "Helm"}}), "Helm"),
            (
                json!({"labels": {"app.kubernetes.io/managed-by": "Helm"}, "annotations": {"meta.helm.sh/release-name": "llm"}}),
                "Helm (release llm)",
            ),
            (
                json!({"labels": {"app.kubernetes.io/managed-by": "Helm", "helm.toolkit.fluxcd.io/name": "llm", "helm.toolkit.fluxcd.io/namespace": "flux"}}),
                "Flux (HelmRelease flux/llm)",
            ),
            (
                json!({"labels": {"kustomize.toolkit.fluxcd.io/name": "apps", "kustomize.toolkit.fluxcd.io/namespace": "flux"}}),
                "Flux (Kustomization flux/apps)",
            ),
            (
                json!({"annotations": {"argocd.argoproj.io/tracking-id": "llm:apps/Deployment:serving/x"}}),
                "Argo CD (application llm)",
            ),
            (json!({"labels": {"argocd.argoproj.io/instance": "llm"}}), "Argo CD (application llm)"),
            (
                json!({"ownerReferences": [{"kind": "A", "name": "a"}, {"kind": "InferenceService", "name": "q", "controller": true}]}),
                "InferenceService q",
            ),
        ] {
            assert_eq!(who(metadata.clone()), want, "{metadata}");
        }
        assert!(!applied_by_hand(&json!({})));
    }
}
