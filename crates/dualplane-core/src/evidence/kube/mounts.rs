//! Files of a container that stand in ConfigMaps: which key of which map a path is.

use dualplane_base::json::{list, str_at};
use serde_json::Value;

/// A mount of a container.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Mount {
    /// Where, without a slash at its end.
    path: String,
    /// What of the volume is mounted there; empty where all of it is.
    sub_path: String,
    /// The ConfigMaps whose keys are its files; none where it holds something else.
    maps: Vec<Map>,
}

/// A ConfigMap of a volume.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Map {
    name: String,
    /// Key and path of each file; empty where each key is a file of its own name.
    items: Vec<(String, String)>,
}

/// The mounts of a container, given the volumes of its pod.
#[must_use]
pub fn mounts(container: &Value, volumes: &[Value]) -> Vec<Mount> {
    let one = |m: &Value| Mount {
        path: str_at(m, "/mountPath").trim_end_matches('/').to_owned(),
        sub_path: str_at(m, "/subPath").trim_matches('/').to_owned(),
        maps: volumes.iter().find(|v| str_at(v, "/name") == str_at(m, "/name")).map(maps).unwrap_or_default(),
    };
    list(container, "/volumeMounts").iter().map(one).collect()
}

fn maps(volume: &Value) -> Vec<Map> {
    let projected = list(volume, "/projected/sources").iter().filter_map(|s| s.get("configMap"));
    let items = |m: &Value| {
        let one = |i: &Value| (str_at(i, "/key").to_owned(), str_at(i, "/path").to_owned());
        list(m, "/items").iter().map(one).collect()
    };
    let of = |m: &Value| Map { name: str_at(m, "/name").to_owned(), items: items(m) };
    volume.get("configMap").into_iter().chain(projected).map(of).filter(|m| !m.name.is_empty()).collect()
}

/// ConfigMap and key of the file at a path; `None` where it stands elsewhere, or in one of several maps.
#[must_use]
pub fn map_of<'m>(mounts: &'m [Mount], path: &str) -> Option<(&'m str, String)> {
    let below = |m: &&Mount| path == m.path || path.strip_prefix(&m.path).is_some_and(|r| r.starts_with('/'));
    let mount = mounts.iter().filter(below).max_by_key(|m| m.path.len())?;
    let rest = path.get(mount.path.len()..)?.trim_matches('/');
    let inner = [mount.sub_path.as_str(), rest];
    let inner = inner.into_iter().filter(|p| !p.is_empty()).collect::<Vec<_>>().join("/");
    let mut found = mount.maps.iter().filter_map(|m| Some((m.name.as_str(), m.key(&inner)?)));
    found.next().filter(|_| found.next().is_none())
}

impl Map {
    fn key(&self, inner: &str) -> Option<String> {
        match self.items.iter().find(|(_, path)| path == inner) {
            Some((key, _)) => Some(key.clone()),
            None => {
                (self.items.is_empty() && !inner.is_empty() && !inner.contains('/')).then(|| inner.to_owned())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_path_is_a_key_of_the_map_that_is_mounted_closest() {
        let volumes = json!([
            {"name": "conf", "configMap": {"name": "llm-conf"}},
            {"name": "one", "configMap": {"name": "llm-one", "items": [{"key": "serve", "path": "sub/serve.yaml"}]}},
            {"name": "both", "projected": {"sources": [{"secret": {"name": "s"}}, {"configMap": {"name": "llm-p"}}]}},
            {"name": "data", "persistentVolumeClaim": {"claimName": "c"}}]);
        let container = json!({"volumeMounts": [
            {"name": "data", "mountPath": "/"}, {"name": "conf", "mountPath": "/etc/vllm/"},
            {"name": "data", "mountPath": "/etc/vllm/data"}, {"name": "conf", "mountPath": "/a.yaml", "subPath": "b.yaml"},
            {"name": "one", "mountPath": "/one"}, {"name": "both", "mountPath": "/both"}]});
        let all = mounts(&container, volumes.as_array().unwrap());
        for (path, want) in [
            ("/etc/vllm/config.yaml", Some(("llm-conf", "config.yaml"))),
            ("/a.yaml", Some(("llm-conf", "b.yaml"))),
            ("/one/sub/serve.yaml", Some(("llm-one", "serve"))),
            ("/both/c.yaml", Some(("llm-p", "c.yaml"))),
            // Of a claim, of no item, below a folder, and of a folder that only begins so.
            ("/etc/vllm/data/config.yaml", None),
            ("/one/serve", None),
            ("/etc/vllm/x/config.yaml", None),
            ("/etc/vllm-config.yaml", None),
        ] {
            let want = want.map(|(m, k)| (m, k.to_owned()));
            assert_eq!(map_of(&all, path), want, "{path}");
        }
    }
}
