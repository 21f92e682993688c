//! What `deploy/` grants and installs: no more than is used, and all that is used.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::harness::root;

pub(crate) fn documents(file: &str) -> Vec<Value> {
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
            // Only who may change a ConfigMap may read it: others hold more than settings.
            let allowed: &[&str] = match (role, resource.contains("configmaps")) {
                ("dualplane-apply", true) => &["get", "patch"],
                ("dualplane-apply", false) => &["patch"],
                (_, true) => &[],
                (_, false) => &["get", "list"],
            };
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

/// Helm refuses a value that the schema does not have, and every install with it.
#[test]
fn the_chart_describes_every_threshold() {
    let read = |name: &str| std::fs::read_to_string(root().join("deploy/helm/dualplane").join(name)).unwrap();
    let schema: serde_json::Value = serde_json::from_str(&read("values.schema.json")).unwrap();
    let thresholds = &schema["properties"]["rules"]["properties"]["thresholds"];
    let described: BTreeSet<&str> =
        thresholds["properties"].as_object().unwrap().keys().map(String::as_str).collect();
    let required: BTreeSet<&str> =
        thresholds["required"].as_array().unwrap().iter().filter_map(|r| r.as_str()).collect();
    let values = documents("deploy/helm/dualplane/values.yaml").remove(0);
    let given: BTreeSet<&str> =
        values["rules"]["thresholds"].as_object().unwrap().keys().map(String::as_str).collect();
    assert!(given.len() > 20);
    assert_eq!(given, described);
    assert_eq!(given, required);
}

/// What the adapter's source asks for: paths, tables of kinds, and what lies below an object.
fn asked() -> BTreeSet<String> {
    let mut out = BTreeSet::new();
    let dir = root().join("crates/dualplane-kube/src");
    let mut files = Vec::new();
    crate::tidy::rust_files(&dir, &mut files);
    // What the server asks about its callers is granted to it alone, by Kubernetes' own role.
    files.retain(|f| !f.ends_with("review.rs"));
    let access = std::fs::read_to_string(root().join("deploy/helm/dualplane/templates/server/access.yaml"));
    assert!(access.unwrap().contains("  name: system:auth-delegator\n"));
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
        for (sign, resource) in [("fn pod_proxy", "/pods/proxy"), ("fn node_proxy", "/nodes/proxy")] {
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
    // ConfigMaps are read with the rights of whoever may change them.
    let granted: BTreeSet<String> = ["dualplane-reader", "dualplane-kubelet", "dualplane-apply"]
        .iter()
        .flat_map(|r| rules(r))
        .map(|r| r.0)
        .collect();
    for resource in asked {
        assert!(granted.contains(&resource), "deploy/rbac.yaml does not grant {resource}");
    }
}

/// Verbs that the agent's part of the adapter uses, by resource: each function names one resource.
fn asked_by_the_agent() -> BTreeSet<(String, String)> {
    let mut out = BTreeSet::new();
    for file in ["node_pods.rs", "event.rs"] {
        let text = std::fs::read_to_string(root().join("crates/dualplane-kube/src").join(file)).unwrap();
        let code = text.split("#[cfg(test)]").next().unwrap();
        for function in code.split("pub async fn ").skip(1) {
            let resource = ["pods", "events"].iter().find(|r| function.contains(&format!("\"{r}\")")));
            let resource = resource.unwrap_or_else(|| panic!("{file}: a function without a resource"));
            for (call, verb) in [
                ("api.list(", "list"),
                ("api.object(", "get"),
                ("api.get_within(", "get"),
                ("api.post(", "create"),
                ("api.patch(", "patch"),
            ] {
                if function.contains(call) {
                    out.insert((format!("/{resource}"), verb.to_owned()));
                }
            }
        }
    }
    out
}

fn of_kind(file: &str, kind: &str) -> Value {
    let mut all = documents(file).into_iter().filter(|d| d["kind"] == kind);
    let first = all.next().unwrap_or_else(|| panic!("no {kind} in {file}"));
    assert!(all.next().is_none(), "one {kind}");
    first
}

#[test]
fn the_agent_may_do_what_it_does_and_no_more() {
    let role = of_kind("deploy/agent.yaml", "ClusterRole");
    let mut granted = BTreeSet::new();
    for rule in role["rules"].as_array().unwrap() {
        assert_eq!(words(rule, "apiGroups"), [""]);
        for resource in words(rule, "resources") {
            granted.extend(words(rule, "verbs").into_iter().map(|v| (format!("/{resource}"), v)));
        }
    }
    assert_eq!(granted, asked_by_the_agent());
    let binding = of_kind("deploy/agent.yaml", "ClusterRoleBinding");
    assert_eq!(binding["roleRef"]["name"], role["metadata"]["name"]);
    let pod = &of_kind("deploy/agent.yaml", "DaemonSet")["spec"]["template"]["spec"];
    assert_eq!(binding["subjects"][0]["name"], pod["serviceAccountName"]);
}

/// Privileges, mounts and rules stand below a comment of their own.
#[test]
fn every_privilege_of_the_agent_says_what_it_is_for() {
    let privileges = [
        "- apiGroups",
        "hostPID:",
        "hostNetwork:",
        "runAsUser:",
        "privileged:",
        "allowPrivilegeEscalation:",
        "readOnlyRootFilesystem:",
        "appArmorProfile:",
        "- SYS_PTRACE",
        "- DAC_READ_SEARCH",
        "priorityClassName:",
        "- {operator:",
        "mountPath:",
        "$patch: delete",
    ];
    for (file, least) in [("deploy/agent.yaml", 13), ("deploy/agent-unprivileged.yaml", 5)] {
        let text = std::fs::read_to_string(root().join(file)).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        let mut found = 0;
        for (i, line) in lines.iter().enumerate().filter(|(_, l)| !l.trim_start().starts_with('#')) {
            if file.ends_with("unprivileged.yaml")
                && (line.contains("readOnly") || line.contains("privileged: false"))
            {
                continue;
            }
            // The volume of a mount that is taken away.
            if privileges.iter().any(|p| line.contains(p)) && !line.contains("- {name: kmsg, $patch") {
                // `tolerations:` and `add:` open a list whose first item is meant.
                let above =
                    lines[..i].iter().rev().find(|l| !matches!(l.trim(), "tolerations:" | "add:")).unwrap();
                assert!(above.trim_start().starts_with('#'), "{file}:{}: {line}", i + 1);
                found += 1;
            }
        }
        assert!(found >= least, "{file}: {found}");
    }
}

#[test]
fn the_agent_writes_to_its_own_folder_alone() {
    let pod = &of_kind("deploy/agent.yaml", "DaemonSet")["spec"]["template"]["spec"];
    let containers = pod["containers"].as_array().unwrap();
    assert_eq!(containers.len(), 1);
    let container = &containers[0];
    let volumes = pod["volumes"].as_array().unwrap();
    let mounts = container["volumeMounts"].as_array().unwrap();
    assert_eq!(volumes.len(), mounts.len());
    for mount in mounts {
        let volume = volumes.iter().find(|v| v["name"] == mount["name"]).unwrap();
        let state = mount["mountPath"] == "/var/lib/dualplane";
        assert_eq!(mount["readOnly"] == true, !state, "{mount}");
        let host = volume["hostPath"]["path"].as_str().unwrap();
        assert!(mount["mountPath"].as_str().unwrap().ends_with(host), "{mount}: {volume}");
    }
    assert_eq!(container["securityContext"]["readOnlyRootFilesystem"], true);
    assert!(
        container["resources"]["requests"].is_object()
            && container["resources"]["limits"]["memory"].is_string()
    );
    // The port of the probe, of the annotation, of the arguments and of the agent's own default.
    let port = container["ports"][0]["containerPort"].as_u64().unwrap();
    let annotations =
        &of_kind("deploy/agent.yaml", "DaemonSet")["spec"]["template"]["metadata"]["annotations"];
    assert_eq!(annotations["prometheus.io/port"], port.to_string());
    let listen = format!("--listen=0.0.0.0:{port}");
    assert!(words(container, "args").contains(&listen), "{listen}");
    let source = root().join("crates/dualplane-agent/src/publish/http/mod.rs");
    let source = std::fs::read_to_string(source).unwrap().replace('_', "");
    assert!(source.contains(&format!("DEFAULTPORT: u16 = {port};")));
    // What takes the privileges away names what is there.
    let patch = &of_patch();
    let own = &patch["spec"]["template"]["spec"]["containers"][0];
    assert_eq!(own["name"], container["name"]);
    for gone in own["volumeMounts"].as_array().unwrap() {
        assert!(mounts.iter().any(|m| m["mountPath"] == gone["mountPath"]), "{gone}");
    }
    let s = &own["securityContext"];
    assert_eq!((&s["privileged"], &s["allowPrivilegeEscalation"]), (&false.into(), &false.into()));
    assert_eq!(s["capabilities"]["drop"][0], "ALL");
}

fn of_patch() -> Value {
    documents("deploy/agent-unprivileged.yaml").remove(0)
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

/// A profile that lets through what breaks out of a container would be worse than the runtime's own.
#[test]
fn the_seccomp_profile_allows_what_it_lists_and_nothing_that_leaves_a_container() {
    let text = std::fs::read_to_string(root().join("deploy/profiles/seccomp.json")).unwrap();
    let profile: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(profile["defaultAction"], "SCMP_ACT_ERRNO");
    let mut names = Vec::new();
    for rule in profile["syscalls"].as_array().unwrap() {
        assert_eq!(rule["action"], "SCMP_ACT_ALLOW");
        let of_rule: Vec<&str> = rule["names"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
        if of_rule == ["socket"] {
            assert_eq!(rule["args"][0]["op"], "SCMP_CMP_EQ", "{rule}");
            continue;
        }
        assert!(of_rule.is_sorted() && rule["comment"].is_string(), "{rule}");
        names.extend(of_rule);
    }
    let listed = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), listed, "one is listed twice");
    for leaves in [
        "add_key",
        "bpf",
        "delete_module",
        "finit_module",
        "init_module",
        "io_uring_setup",
        "kexec_load",
        "keyctl",
        "mknod",
        "mount",
        "move_mount",
        "open_by_handle_at",
        "perf_event_open",
        "pivot_root",
        "process_vm_readv",
        "ptrace",
        "reboot",
        "setns",
        "swapon",
        "umount2",
        "unshare",
        "userfaultfd",
    ] {
        assert!(!names.contains(&leaves), "{leaves}");
    }
}

#[test]
fn the_apparmor_profile_is_one() {
    let file = root().join("deploy/profiles/apparmor");
    // -Q: into no kernel; -K: no cache.
    let Ok(o) = std::process::Command::new("apparmor_parser").args(["-Q", "-K"]).arg(&file).output() else {
        eprintln!("SKIPPED: no apparmor_parser on this machine");
        return;
    };
    assert!(o.status.success(), "{}", String::from_utf8_lossy(&o.stderr));
}
