//! A patch of the common form `spec.template.spec` brought to the form of the object that it is for.

use serde_json::{Value, json};

/// Which of a group's templates a pod is made from (LeaderWorkerSet).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// The leader's.
    Leader,
    /// The workers'.
    Worker,
}

/// Why a patch is not for an object.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Misfit {
    /// The object has no such container; the patch would add one.
    #[error("the patch is for container {container}, but the object has {}", .has.join(", "))]
    NoContainer {
        /// Of the patch.
        container: String,
        /// Of the object.
        has: Vec<String>,
    },
    /// A pod can change its resources only.
    #[error("only the resources of a running pod can change; the patch also changes {0}")]
    MoreThanResources(String),
    /// Leader and workers both have the container, and nothing says whose it is.
    #[error("both leader and workers have a container {0}; it is unclear which one to change")]
    LeaderOrWorker(String),
    /// Kind without pods of its own.
    #[error("the patch is for a pod template, but a {0} has none")]
    NoTemplate(String),
}

/// Where the pod templates of a kind are.
#[must_use]
pub fn template_paths(kind: &str) -> &'static [&'static str] {
    match kind {
        "Deployment" | "StatefulSet" | "DaemonSet" | "ReplicaSet" | "Job" => &["/spec/template"],
        "LeaderWorkerSet" => {
            &["/spec/leaderWorkerTemplate/leaderTemplate", "/spec/leaderWorkerTemplate/workerTemplate"]
        }
        _ => &[],
    }
}

pub(super) const LISTS: [&str; 2] = ["containers", "initContainers"];

/// Brings a patch to the form of an object, and checks that its containers are there: to the API, a container of
/// another name is a new one.
///
/// # Errors
/// See [`Misfit`].
pub fn fit(patch: &Value, object: &Value, role: Option<Role>) -> Result<Value, Misfit> {
    let kind = object.get("kind").and_then(Value::as_str).unwrap_or_default();
    let moved = match (kind, patch.pointer("/spec/template")) {
        ("Pod", Some(template)) => pod(patch, template)?,
        ("LeaderWorkerSet", Some(template)) => group(patch, template, object, role)?,
        (k, Some(_)) if template_paths(k).is_empty() && object.pointer("/spec/template").is_none() => {
            return Err(Misfit::NoTemplate(kind.to_owned()));
        }
        _ => patch.clone(),
    };
    let mut places: Vec<String> = template_paths(kind).iter().map(|p| format!("{p}/spec")).collect();
    if kind == "Pod" {
        places.push("/spec".into());
    }
    for place in &places {
        for list in LISTS {
            let at = format!("{place}/{list}");
            let has = names(object, &at);
            for item in items(&moved, &at) {
                let name = text(item, "name");
                // With an image it is a container to be added, on purpose.
                if !has.iter().any(|h| h == name) && item.get("image").is_none() {
                    return Err(Misfit::NoContainer { container: name.to_owned(), has });
                }
            }
        }
    }
    Ok(moved)
}

/// Gives the container `CONTAINER`, which stands for one that the evidence does not tell, the name of the only one that
/// the object has.
#[must_use]
pub fn placeholder(patch: &Value, object: &Value) -> Value {
    let mut patch = patch.clone();
    let kind = object.get("kind").and_then(Value::as_str).unwrap_or_default();
    let root = template_paths(kind).iter().rfind(|p| object.pointer(p).is_some()).copied().unwrap_or("");
    let [only] = &names(object, &format!("{root}/spec/containers"))[..] else { return patch };
    let containers = patch.pointer_mut("/spec/template/spec/containers").and_then(Value::as_array_mut);
    for name in containers.into_iter().flatten().filter_map(|c| c.get_mut("name")) {
        if *name == json!("CONTAINER") {
            *name = json!(only);
        }
    }
    patch
}

fn items<'v>(of: &'v Value, pointer: &str) -> impl Iterator<Item = &'v Value> {
    of.pointer(pointer).and_then(Value::as_array).into_iter().flatten()
}

fn text<'v>(of: &'v Value, key: &str) -> &'v str {
    of.get(key).and_then(Value::as_str).unwrap_or_default()
}

fn names(of: &Value, pointer: &str) -> Vec<String> {
    items(of, pointer).map(|c| text(c, "name").to_owned()).collect()
}

/// Of a template's patch what a running pod can be given in place.
fn pod(patch: &Value, template: &Value) -> Result<Value, Misfit> {
    let more = |what: &str| Err(Misfit::MoreThanResources(what.to_owned()));
    for (of, allowed) in [(patch, "spec"), (&patch["spec"], "template"), (template, "spec")] {
        if let Some(other) = of.as_object().into_iter().flatten().map(|f| f.0).find(|k| *k != allowed) {
            return more(other);
        }
    }
    let spec = &template["spec"];
    for (field, value) in spec.as_object().into_iter().flatten() {
        if !LISTS.contains(&field.as_str()) {
            return more(field);
        }
        let containers = value.as_array().into_iter().flatten();
        let other = containers.filter_map(Value::as_object).flatten().map(|f| f.0);
        if let Some(other) = other.into_iter().find(|k| !["name", "resources"].contains(&k.as_str())) {
            return more(other);
        }
    }
    Ok(json!({"spec": spec}))
}

/// A group's templates lie elsewhere.
fn group(patch: &Value, template: &Value, object: &Value, role: Option<Role>) -> Result<Value, Misfit> {
    let template_of = |role: Role| match role {
        Role::Leader => "leaderTemplate",
        Role::Worker => "workerTemplate",
    };
    let all: Vec<String> = LISTS.iter().flat_map(|l| names(template, &format!("/spec/{l}"))).collect();
    let holds = |role: Role| {
        let root = format!("/spec/leaderWorkerTemplate/{}/spec", template_of(role));
        let has: Vec<String> = LISTS.iter().flat_map(|l| names(object, &format!("{root}/{l}"))).collect();
        object.pointer(&root).is_some() && all.iter().all(|n| has.contains(n))
    };
    let role = match (holds(Role::Leader), holds(Role::Worker), role) {
        (true, true, Some(role)) => role,
        (true, true, None) => return Err(Misfit::LeaderOrWorker(all.join(", "))),
        (true, false, _) => Role::Leader,
        // Without a template of its own the leader is made from the workers'.
        _ => Role::Worker,
    };
    let mut moved = patch.clone();
    if let Some(spec) = moved.get_mut("spec").and_then(Value::as_object_mut) {
        spec.remove("template");
        spec.insert("leaderWorkerTemplate".into(), json!({template_of(role): template}));
    }
    Ok(moved)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn patch(container: &str) -> Value {
        json!({"spec": {"template": {"spec": {"containers": [
            {"name": container, "resources": {"limits": {"memory": "2Gi"}}}]}}}})
    }

    #[test]
    fn a_container_that_is_not_there_is_no_new_one() {
        let object = json!({"kind": "Deployment", "spec": {"template": {"spec": {"containers": [{"name": "a"}, {"name": "b"}]}}}});
        assert_eq!(fit(&patch("a"), &object, None), Ok(patch("a")));
        let e = fit(&patch("x"), &object, None).unwrap_err();
        assert_eq!(e.to_string(), "the patch is for container x, but the object has a, b");
        let mut added = patch("x");
        added["spec"]["template"]["spec"]["containers"][0]["image"] = json!("i");
        assert!(fit(&added, &object, None).is_ok());
        assert_eq!(placeholder(&patch("CONTAINER"), &object), patch("CONTAINER"));
        let one =
            json!({"kind": "Deployment", "spec": {"template": {"spec": {"containers": [{"name": "a"}]}}}});
        assert_eq!(placeholder(&patch("CONTAINER"), &one), patch("a"));
    }

    #[test]
    fn a_pod_takes_resources_only() {
        let pod = json!({"kind": "Pod", "spec": {"containers": [{"name": "a"}]}});
        let moved = fit(&patch("a"), &pod, None).unwrap();
        assert_eq!(moved, json!({"spec": patch("a")["spec"]["template"]["spec"]}));
        let mut more = patch("a");
        more["spec"]["template"]["spec"]["containers"][0]["env"] = json!([]);
        assert_eq!(fit(&more, &pod, None), Err(Misfit::MoreThanResources("env".into())));
        let strategy = json!({"spec": {"strategy": {}, "template": {"spec": {}}}});
        assert_eq!(fit(&strategy, &pod, None), Err(Misfit::MoreThanResources("strategy".into())));
    }

    #[test]
    fn a_groups_template_is_found() {
        let lws = |leader: Value| {
            json!({"kind": "LeaderWorkerSet", "spec": {"leaderWorkerTemplate": {"leaderTemplate": leader,
                "workerTemplate": {"spec": {"containers": [{"name": "a"}]}}}}})
        };
        let at =
            |v: &Value, which: &str| v.pointer(&format!("/spec/leaderWorkerTemplate/{which}/spec")).is_some();
        let none = fit(&patch("a"), &lws(Value::Null), None).unwrap();
        assert!(at(&none, "workerTemplate") && none.pointer("/spec/template").is_none(), "{none}");
        let other = json!({"spec": {"containers": [{"name": "b"}]}});
        assert!(at(&fit(&patch("b"), &lws(other), None).unwrap(), "leaderTemplate"));
        let same = json!({"spec": {"containers": [{"name": "a"}]}});
        assert!(matches!(fit(&patch("a"), &lws(same.clone()), None), Err(Misfit::LeaderOrWorker(_))));
        assert!(at(&fit(&patch("a"), &lws(same), Some(Role::Leader)).unwrap(), "leaderTemplate"));
        assert!(matches!(fit(&patch("x"), &lws(Value::Null), None), Err(Misfit::NoContainer { .. })));
    }
}
