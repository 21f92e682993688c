//! ConfigMaps that the pod mounts or takes variables from, as they are now: a setting may stand in none of the pod's own
//! words. What else a cluster keeps in ConfigMaps is not asked for.

use std::collections::BTreeSet;

use serde_json::Value;

use super::context::Context;
use super::events::as_list;
use super::source::{Missing, SourceData, Work, gap};
use crate::api::{ApiError, path};
use crate::find::text;
use crate::target::is_name;

/// ConfigMaps of a pod.
const MAX: usize = 16;
/// Of one value: a chat template has some KiB.
const MAX_VALUE: usize = 64 << 10;
/// In each namespace, the certificate of the API server.
const ROOT_CA: &str = "kube-root-ca.crt";

pub(super) fn plan<'a>(cx: &'a Context<'a>, work: &mut Work<'a>) {
    let names = names(&cx.pod);
    if names.is_empty() {
        return;
    }
    let missing = Missing { what: "the pod's ConfigMaps".into(), command: None, wanted: false };
    work.add("configuration", missing, read(cx, names));
}

/// Names that the pod refers to.
fn names(pod: &Value) -> Vec<String> {
    let mut all = BTreeSet::new();
    let list = |object: &'_ Value, at: &str| -> Vec<Value> {
        object.pointer(at).and_then(Value::as_array).cloned().unwrap_or_default()
    };
    for v in list(pod, "/spec/volumes") {
        all.insert(text(&v, "/configMap/name"));
        all.extend(list(&v, "/projected/sources").iter().map(|s| text(s, "/configMap/name")));
    }
    for c in list(pod, "/spec/containers").iter().chain(&list(pod, "/spec/initContainers")) {
        all.extend(list(c, "/envFrom").iter().map(|e| text(e, "/configMapRef/name")));
        all.extend(list(c, "/env").iter().map(|e| text(e, "/valueFrom/configMapKeyRef/name")));
    }
    all.into_iter().filter(|n| is_name(n) && n != ROOT_CA).take(MAX).collect()
}

async fn read(cx: &Context<'_>, names: Vec<String>) -> Result<SourceData, ApiError> {
    let base = path::namespaced("v1", &cx.namespace, "configmaps");
    let mut items: Vec<Value> = Vec::new();
    let mut gaps = Vec::new();
    for name in names {
        match cx.api.object(&path::named(&base, &name)).await {
            Ok(map) => items.push(slim(map)),
            // An optional one.
            Err(e) if e.is_absent() => {}
            Err(e) => {
                let command = format!("kubectl get configmap {name} -n {} -o yaml", cx.namespace);
                // The reader's role leaves them out on purpose, and a verdict rarely needs them: who may not read one may
                // read none, and is not told so each time.
                if matches!(e, ApiError::Forbidden { .. }) {
                    break;
                }
                let missing =
                    Missing { what: format!("ConfigMap {name}"), command: Some(command), wanted: true };
                gaps.push(gap(missing, &e));
            }
        }
    }
    let mut read = if items.is_empty() {
        SourceData::default()
    } else {
        SourceData::one(as_list(cx, "configuration.json", items))
    };
    read.gaps = gaps;
    Ok(read)
}

/// Without what is no text, and what of it is too long.
fn slim(mut map: Value) -> Value {
    if let Some(object) = map.as_object_mut() {
        object.remove("binaryData");
        object.insert("kind".into(), "ConfigMap".into());
        object.insert("apiVersion".into(), "v1".into());
        if let Some(meta) = object.get_mut("metadata").and_then(Value::as_object_mut) {
            meta.remove("managedFields");
            if let Some(notes) = meta.get_mut("annotations").and_then(Value::as_object_mut) {
                notes.remove("kubectl.kubernetes.io/last-applied-configuration");
            }
        }
        for value in
            object.get_mut("data").and_then(Value::as_object_mut).into_iter().flat_map(|d| d.values_mut())
        {
            if value.as_str().is_some_and(|s| s.len() > MAX_VALUE) {
                *value = Value::from(format!("[left out: more than {} KiB]", MAX_VALUE >> 10));
            }
        }
    }
    map
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_way_to_a_config_map_is_followed_and_no_other() {
        let pod = json!({"spec": {
            "volumes": [
                {"name": "a", "configMap": {"name": "mounted"}},
                {"name": "b", "projected": {"sources": [{"configMap": {"name": "kube-root-ca.crt"}}, {"configMap": {"name": "projected"}}]}},
                {"name": "c", "secret": {"secretName": "never"}},
            ],
            "containers": [{"envFrom": [{"configMapRef": {"name": "all"}}, {"secretRef": {"name": "never"}}],
                "env": [{"name": "X", "valueFrom": {"configMapKeyRef": {"name": "one", "key": "x"}}}, {"name": "Y", "value": "1"}]}],
            "initContainers": [{"envFrom": [{"configMapRef": {"name": "all"}}, {"configMapRef": {"name": "../secrets/x"}}]}],
        }});
        assert_eq!(names(&pod), ["all", "mounted", "one", "projected"]);
        assert!(names(&json!({"spec": {"containers": [{}]}})).is_empty());
    }

    #[test]
    fn only_text_of_some_length_is_kept() {
        let map = slim(json!({"metadata": {"name": "m", "managedFields": []}, "binaryData": {"x": "AA=="},
            "data": {"config.yaml": "max-model-len: 8192\n", "long": "x".repeat(100_000)}}));
        assert_eq!(map["kind"], "ConfigMap");
        assert_eq!(map["data"]["config.yaml"], "max-model-len: 8192\n");
        assert_eq!(map["data"]["long"], "[left out: more than 64 KiB]");
        assert!(map.get("binaryData").is_none() && map["metadata"].get("managedFields").is_none());
    }
}
