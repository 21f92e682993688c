//! What `deploy/` grants and installs: no more than is used, and all that is used.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::harness::root;

fn documents(file: &str) -> Vec<Value> {
    let text = std::fs::read_to_string(root().join(file)).unwrap();
    serde_saphyr::from_multiple(&text).unwrap()
}

fn words(rule: &Value, key: &str) -> Vec<String> {
    rule[key].as_array().unwrap().iter().map(|v| v.as_str().unwrap().to_owned()).collect()
}

/// Rules of a role as `group/resource` with their verbs.
fn rules(name: &str) -> Vec<(String, Vec<String>)> {
    let all = documents("deploy/rbac.yaml");
    let role = all.iter().find(|d| d["metadata"]["name"] == name && d["rules"].is_array());
    let rules = role.unwrap_or_else(|| panic!("no role {name}"))["rules"].as_array().unwrap();
    let mut out = Vec::new();
    for rule in rules {
        assert_eq!(rule.as_object().unwrap().len(), 3, "{rule}");
        for group in words(rule, "apiGroups") {
            for resource in words(rule, "resources") {
                out.push((format!("{group}/{resource}"), words(rule, "verbs")));
            }
        }
    }
    out
}

const ROLES: [&str; 4] = ["dualplane-reader", "dualplane-kubelet", "dualplane-apply", "dualplane-minimal"];

#[test]
fn no_role_grants_more_than_reading_but_the_one_that_says_so() {
    for role in ROLES {
        for (resource, verbs) in rules(role) {
            let all = format!("{resource} {}", verbs.join(" "));
            for never in [
                "*",
                "secrets",
                "pods/exec",
                "pods/attach",
                "pods/portforward",
                "create",
                "delete",
                "escalate",
            ] {
                assert!(!all.contains(never), "{role}: {all}");
            }
            let allowed: &[&str] = if role == "dualplane-apply" { &["patch"] } else { &["get", "list"] };
            assert!(verbs.iter().all(|v| allowed.contains(&v.as_str())), "{role}: {all}");
        }
    }
    let bound: Vec<String> = documents("deploy/rbac.yaml")
        .iter()
        .filter_map(|d| d["roleRef"]["name"].as_str().map(ToOwned::to_owned))
        .collect();
    assert_eq!(bound, ["dualplane-reader", "dualplane-minimal"], "writing and the kubelet are opt-in");
}

/// Every rule stands below a comment that says what it buys.
#[test]
fn every_rule_says_what_it_buys() {
    let text = std::fs::read_to_string(root().join("deploy/rbac.yaml")).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    for (i, line) in lines.iter().enumerate().filter(|(_, l)| l.starts_with("- apiGroups")) {
        let above =
            lines[..i].iter().rev().take_while(|l| !l.starts_with("rules:")).find(|l| l.starts_with('#'));
        assert!(above.is_some(), "line {}: {line}", i + 1);
    }
}

/// What the adapter's source asks for: paths, tables of kinds, and what lies below an object.
fn asked() -> BTreeSet<String> {
    let mut out = BTreeSet::new();
    let dir = root().join("crates/dualplane-kube/src");
    let mut files = Vec::new();
    crate::tidy::rust_files(&dir, &mut files);
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        let code = text.split("#[cfg(test)]").next().unwrap();
        let quoted: Vec<&str> = code.split('"').collect();
        // A group and version, and the next word in quotes: its resource, in calls and tables alike.
        for pair in quoted.windows(4) {
            let version = pair[0].rsplit('/').next().unwrap();
            let is_version = version.starts_with('v')
                && version.len() <= 8
                && version[1..].starts_with(|c: char| c.is_ascii_digit())
                && version.chars().all(|c| c.is_ascii_alphanumeric())
                && !pair[0].starts_with('/');
            // Node events are in the namespace `default`.
            let is_resource =
                !matches!(pair[2], "" | "default") && pair[2].chars().all(|c| c.is_ascii_lowercase());
            // A key of an object that is built there.
            let is_key = pair[3].starts_with(':');
            if is_version && is_resource && !is_key && pair[1].len() < 60 && pair[1].contains(',') {
                let group = pair[0].rsplit_once('/').map_or("", |g| g.0);
                out.insert(format!("{group}/{}", pair[2]));
            }
        }
        if code.contains("pod_path(\"log") || code.contains("\"log\"") {
            out.insert("/pods/log".into());
        }
        for (sign, resource) in [
            ("fn pod_proxy", "/pods/proxy"),
            ("path::cluster(\"v1\", \"nodes\"), &cx.node))", "/nodes/proxy"),
        ] {
            if code.contains(sign) && code.contains("/proxy/{below}") {
                out.insert(resource.into());
            }
        }
    }
    out
}

#[test]
fn all_that_the_adapter_reads_is_granted() {
    let asked = asked();
    for known in [
        "/pods",
        "/events",
        "/nodes",
        "/pods/log",
        "/pods/proxy",
        "/nodes/proxy",
        "apps/controllerrevisions",
        "metrics.k8s.io/pods",
        "leaderworkerset.x-k8s.io/leaderworkersets",
    ] {
        assert!(asked.contains(known), "the search of the source does not find {known} any more: {asked:?}");
    }
    let granted: BTreeSet<String> =
        ["dualplane-reader", "dualplane-kubelet"].iter().flat_map(|r| rules(r)).map(|r| r.0).collect();
    for resource in asked {
        assert!(granted.contains(&resource), "deploy/rbac.yaml does not grant {resource}");
    }
}

#[test]
fn the_manifest_of_krew_is_whole() {
    let all = documents("deploy/krew/dualplane.yaml");
    let [plugin] = &all[..] else { panic!("one document") };
    assert_eq!(plugin["apiVersion"], "krew.googlecontainertools.github.com/v1alpha2");
    assert_eq!((&plugin["kind"], &plugin["metadata"]["name"]), (&"Plugin".into(), &"dualplane".into()));
    let spec = &plugin["spec"];
    let version = spec["version"].as_str().unwrap();
    assert_eq!(version.trim_start_matches('v'), env!("CARGO_PKG_VERSION"));
    // krew's own bound.
    assert!(spec["shortDescription"].as_str().unwrap().len() <= 50);
    let mut platforms = Vec::new();
    for p in spec["platforms"].as_array().unwrap() {
        let (os, arch) = (&p["selector"]["matchLabels"]["os"], &p["selector"]["matchLabels"]["arch"]);
        platforms.push(format!("{}/{}", os.as_str().unwrap(), arch.as_str().unwrap()));
        let sha = p["sha256"].as_str().unwrap();
        assert!(sha.len() == 64 && sha.chars().all(|c| c.is_ascii_hexdigit()), "{sha}");
        let uri = p["uri"].as_str().unwrap();
        assert!(
            uri.starts_with("https://")
                && uri.contains(version)
                && (uri.ends_with(".tar.gz") || uri.ends_with(".zip"))
        );
        let bin = p["bin"].as_str().unwrap();
        assert_eq!(bin.ends_with(".exe"), os == "windows");
        assert!(p["files"].as_array().unwrap().iter().any(|f| f["from"] == bin));
    }
    assert_eq!(platforms, ["linux/amd64", "linux/arm64", "darwin/amd64", "darwin/arm64", "windows/amd64"]);
}
