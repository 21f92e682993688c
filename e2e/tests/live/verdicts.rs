//! Pods that really died: the verdict from the live pod is the expected one, and its bundle says the same.

use serde_json::Value;

use crate::harness::{expected, nothing_failed, pods_of, run};

/// What must agree between the pod and its bundle.
fn essence(report: &Value) -> Value {
    let mut essence = report.clone();
    // Its name is that of the file.
    essence.as_object_mut().unwrap().remove("incident");
    essence
}

#[test]
fn live_pods_and_their_bundles_get_the_expected_verdict() {
    let dir = tempfile::tempdir().unwrap();
    let mut wrong = Vec::new();
    let mut judged = 0;
    for (name, scenario) in expected() {
        let pods = pods_of(&scenario);
        if pods.is_empty() {
            wrong.push(format!("{name}: no pod"));
        }
        for pod in pods {
            judged += 1;
            // The pod restarts while it is looked at; three looks in a row that differ are no chance.
            let differ = (0..3)
                .map(|_| look(&dir.path().join("b.tar.zst"), &pod, &scenario))
                .take_while(Option::is_some)
                .last();
            if let Some(Some(why)) =
                differ.filter(|_| look(&dir.path().join("b.tar.zst"), &pod, &scenario).is_some())
            {
                wrong.push(format!("{name} ({pod}): {why}"));
            }
        }
    }
    assert!(judged >= 20, "only {judged} pods");
    assert!(wrong.is_empty(), "{} of {judged} pods:\n{}", wrong.len(), wrong.join("\n"));
}

/// What is wrong with the verdicts of a pod.
fn look(bundle: &std::path::Path, pod: &str, scenario: &toml::Value) -> Option<String> {
    let target = format!("pod/{pod}");
    let live = run(&["triage", &target, "-n", "serving", "-o", "json"]).ok().json();
    let out = bundle.to_string_lossy().into_owned();
    run(&["capture", &target, "-n", "serving", "--out", &out]).ok();
    let offline = run(&["triage", &out, "-o", "json"]).ok().json();
    let said =
        |r: &Value, p: &str| r.pointer(p).map(|v| v.as_str().map_or_else(|| v.to_string(), str::to_owned));
    for (key, pointer) in [
        ("class", "/verdict/class"),
        ("plane", "/verdict/plane"),
        ("phase", "/verdict/phase"),
        ("container", "/subject/container"),
        ("exit_code", "/subject/exit_code"),
    ] {
        let want = scenario.get(key).map(|v| v.as_str().map_or_else(|| v.to_string(), str::to_owned));
        for (which, report) in [("live", &live), ("bundle", &offline)] {
            let open = key == "class" && want.as_deref() == Some("not_memory") && nothing_failed(report);
            if want.is_some() && said(report, pointer) != want && !open {
                return Some(format!(
                    "{which}: {key} {:?}, wanted {want:?}: {}",
                    said(report, pointer),
                    report["verdict"]["summary"]
                ));
            }
        }
    }
    // What does not change from one second to the next.
    for key in ["verdict", "trigger", "sequence"] {
        if essence(&live)[key] != essence(&offline)[key] {
            return Some(format!("the bundle differs in {key}: {} and {}", live[key], offline[key]));
        }
    }
    None
}

#[test]
fn a_roll_out_before_the_death_is_told_field_by_field() {
    let scenario = expected()["deployment"].clone();
    let pod = pods_of(&scenario).remove(0);
    let report = run(&["triage", &format!("pod/{pod}"), "-n", "serving", "-o", "json"]).ok().json();
    let changes = report["changes"].as_array().expect("changes").clone();
    let of = |field: &str| changes.iter().find(|c| c["field"] == field).cloned().unwrap_or_default();
    assert_eq!(
        (&of("resources.limits.memory")["before"], &of("resources.limits.memory")["after"]),
        (&"192Mi".into(), &"64Mi".into()),
        "{changes:?}"
    );
    assert!(of("--max-model-len")["after"].is_string(), "{changes:?}");
    assert!(of("image")["after"].is_string(), "{changes:?}");
    let cause = report["causes"][0]["for"].to_string();
    assert!(cause.contains("resources.limits.memory"), "{cause}");
    // The whole workload leads to the same pod.
    let whole = run(&["triage", "deploy/deployment", "-n", "serving", "-o", "json"]).ok().json();
    assert_eq!(whole["verdict"]["class"], "host_oom_killed");
}

#[test]
fn every_way_to_name_a_pod_leads_to_it() {
    let class = |args: &[&str]| {
        let mut all = vec!["triage"];
        all.extend(args);
        all.extend(["-n", "serving", "-o", "json"]);
        run(&all).ok().json()["verdict"]["class"].as_str().unwrap_or("several").to_owned()
    };
    for args in [
        &["pod/pid1-oom"][..],
        &["po/pid1-oom"],
        &["pod", "pid1-oom"],
        &["-l", "app=pid1-oom"],
        &["sts/statefulset"],
        &["statefulsets.apps/statefulset"],
    ] {
        assert_eq!(class(args), "host_oom_killed", "{args:?}");
    }
    let none = run(&["triage", "deploy/none-such", "-n", "serving"]);
    assert_eq!(none.code, Some(3), "{}", none.err);
    assert!(none.err.contains("not found") && none.err.contains("-n"), "{}", none.err);
    let healthy = run(&["triage", "-l", "app=healthy", "-n", "serving"]);
    assert_eq!(healthy.code, Some(0), "{}", healthy.err);
    assert!(
        healthy.err.contains("app=healthy") && healthy.err.contains("neither restarted nor failed"),
        "{}",
        healthy.err
    );
    // It is held against its limits then; `--failed` asks for those in trouble alone.
    let living = run(&["triage", "-l", "app=healthy", "-n", "serving", "-o", "json"]).ok().json();
    assert!(nothing_failed(&living), "{living:#}");
    let failed = run(&["triage", "-l", "app=healthy", "--failed", "-n", "serving", "-o", "json"]).ok().json();
    assert_eq!(failed["items"], serde_json::json!([]));
}

#[test]
fn the_page_of_many_pods_names_each_once() {
    let page = run(&["triage", "-n", "serving", "--failed"]).ok().text();
    for (name, scenario) in expected() {
        for pod in pods_of(&scenario) {
            let times =
                page.lines().filter(|l| l.trim_start().starts_with(&format!("serving/{pod} "))).count();
            let wanted = usize::from(name != "healthy");
            assert_eq!(times, wanted, "{pod}\n{page}");
        }
    }
}
