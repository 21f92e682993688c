//! `dualplane rules`: what it prints is what Prometheus takes, and every alert does what its cases say, by promtool.

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::harness::{code, root, run, stderr, stdout};
use crate::recorded_load::{Recorded, notation};
use crate::schema::follows;

const ENGINES: [&str; 7] = ["vllm", "sglang", "tgi", "tensorrt-llm", "triton", "llama.cpp", "ray"];
/// Alerts that are off by default.
const OPTIONAL: &str = "gpu-busy,vram-above";

fn has_promtool() -> bool {
    let there = Command::new("promtool").arg("--version").output().is_ok_and(|o| o.status.success());
    if !there {
        eprintln!("SKIPPED: no promtool");
    }
    there
}

fn promtool(dir: &Path, args: &[&str]) {
    let o = Command::new("promtool").args(args).current_dir(dir).output().unwrap();
    assert!(o.status.success(), "promtool {args:?}\n{}{}", stdout(&o), stderr(&o));
}

fn printed(args: &[&str]) -> String {
    let o = run(&[&["rules"], args].concat());
    assert_eq!(code(&o), 0, "{args:?}: {}", stderr(&o));
    stdout(&o)
}

/// The rules of a selection and, if asked for, their tests.
fn hold(args: &[&str], tests: bool) {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("rules.yaml"), printed(args)).unwrap();
    promtool(dir.path(), &["check", "rules", "rules.yaml"]);
    if tests {
        let text = printed(&[args, &["--tests"]].concat());
        assert!(text.contains("promql_expr_test"), "{args:?}: no tests");
        std::fs::write(dir.path().join("tests.yaml"), text).unwrap();
        promtool(dir.path(), &["test", "rules", "tests.yaml"]);
    }
}

#[test]
fn every_alert_fires_and_stays_silent_where_it_must() {
    if has_promtool() {
        hold(&["--enable", OPTIONAL, "--without-dashboards"], true);
    }
}

/// Apart from the alerts, whose cases last hours: promtool computes every record at every minute of each.
#[test]
fn every_record_says_what_its_cases_expect() {
    if !has_promtool() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("rules.yaml"), printed(&[])).unwrap();
    let mut tests: Value = serde_saphyr::from_str(&printed(&["--tests"])).unwrap();
    let cases = tests["tests"].as_array_mut().unwrap();
    cases.retain(|c| c["name"].as_str().unwrap().starts_with("dualplane:"));
    assert!(cases.len() >= 60, "{}", cases.len());
    std::fs::write(dir.path().join("tests.yaml"), tests.to_string()).unwrap();
    promtool(dir.path(), &["test", "rules", "tests.yaml"]);
}

#[test]
fn records_that_only_dashboards_read_can_be_left_out() {
    let of = |args: &[&str]| -> Vec<String> {
        let json: Value = serde_json::from_str(&printed(&[args, &["-o", "json"]].concat())).unwrap();
        json["records"].as_array().unwrap().iter().map(|r| r["record"].as_str().unwrap().to_owned()).collect()
    };
    let (all, few) = (of(&[]), of(&["--without-dashboards"]));
    assert!(few.len() >= 28 && few.len() + 30 < all.len(), "{} of {}", few.len(), all.len());
    assert!(few.iter().all(|r| all.contains(r)) && !few.contains(&"dualplane:gpu_power:watts".to_owned()));
}

/// Records have other expressions then: the cases of the engine's queue and cache are held against them.
#[test]
fn rules_of_each_engine_alone_hold() {
    if !has_promtool() {
        return;
    }
    for engine in ENGINES {
        hold(&["--engine", engine, "--enable", OPTIONAL], false);
        let alerts = "kv-cache-full,queue-long,vram-high,reject-burst,ttft-high";
        let all = printed(&["--engine", engine, "-o", "json"]);
        let all: Value = serde_json::from_str(&all).unwrap();
        let there = |id: &&str| all["alerts"].as_array().unwrap().iter().any(|a| a["id"] == **id);
        let own: Vec<&str> = alerts.split(',').filter(there).collect();
        assert!(own.len() >= 2, "{engine}: {own:?}");
        hold(&["--engine", engine, "--alert", &own.join(",")], true);
    }
}

#[test]
fn a_healthy_day_fires_nothing() {
    if !has_promtool() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    // A card that vLLM filled is what `vram-above` tells of, also on a day that is well.
    let rules = printed(&["--enable", "gpu-busy", "--without-dashboards"]);
    std::fs::write(dir.path().join("rules.yaml"), rules).unwrap();
    std::fs::copy(root().join("testdata/alerts/healthy-day.yaml"), dir.path().join("day.yaml")).unwrap();
    promtool(dir.path(), &["test", "rules", "day.yaml"]);
}

/// A day that is made of a stretch of real load: its servers were well, and nothing fires. What they load at the start is in it once.
#[test]
fn a_day_of_real_load_fires_nothing() {
    if !has_promtool() {
        return;
    }
    let recorded = Recorded::read();
    let nth = 60 / recorded.step;
    let series: Vec<Value> = recorded
        .hours(1440, nth)
        .into_iter()
        .map(|(name, all)| json!({"series": name, "values": notation(&all)}))
        .collect();
    let none = |expr: &str| json!({"expr": expr, "eval_time": "1d", "exp_samples": []});
    let test = json!({
        "rule_files": ["rules.yaml"],
        "evaluation_interval": "2m",
        "group_eval_order": ["dualplane-records", "dualplane-alerts"],
        "tests": [{
            "name": "a day of real load",
            "interval": "1m",
            "input_series": series,
            "promql_expr_test": [
                none(r#"count by (alertname, pod) (count_over_time(ALERTS{alertstate="firing"}[1d]))"#),
                // And the rules did look.
                none(r"count(dualplane:host_memory_usage:ratio) < 2 or count(dualplane:kv_cache_usage:ratio) < 2"),
                none(r"count(dualplane:requests_arrived:rate15m > 0) < 2 or absent(dualplane:requests_arrived:rate15m)"),
                none(r"absent(dualplane:ready:bool) or absent(dualplane:restarts:total)"),
            ],
        }],
    });
    let dir = tempfile::tempdir().unwrap();
    let rules = printed(&["--enable", "gpu-busy", "--without-dashboards"]);
    std::fs::write(dir.path().join("rules.yaml"), rules).unwrap();
    std::fs::write(dir.path().join("day.yaml"), test.to_string()).unwrap();
    promtool(dir.path(), &["test", "rules", "day.yaml"]);
}

#[test]
fn forms_are_what_their_readers_expect() {
    let rule = printed(&["-o", "prometheusrule", "-n", "monitoring", "--label", "release=prometheus"]);
    for line in ["kind: PrometheusRule", "  namespace: monitoring", "    release: prometheus"] {
        assert!(rule.lines().any(|l| l == line), "{line}\n{rule}");
    }
    assert!(
        printed(&["-o", "values"]).starts_with("additionalPrometheusRulesMap:\n  dualplane:\n    groups:\n")
    );
    let json: Value = serde_json::from_str(&printed(&["-o", "json"])).unwrap();
    follows(&json, "alerts");
    assert!(json["alerts"].as_array().unwrap().len() >= 30);
    let text = printed(&["-o", "text", "--alert", "xid"]);
    assert!(text.contains("critical") && text.contains("1 alert and 1 recording rule"), "{text}");
    let explained = printed(&["--explain", "DualplaneXid"]);
    assert!(
        explained.contains("runbook:  dualplane runbook xid_hardware") && explained.contains("source:"),
        "{explained}"
    );
    let explained: Value = serde_json::from_str(&printed(&["--explain", "xid", "-o", "json"])).unwrap();
    assert_eq!(explained["sources"], serde_json::json!(["agent", "dcgm"]));
}

#[test]
fn wrong_words_are_answered_with_near_ones() {
    for (args, says) in [
        (&["--alert", "xids"][..], "did you mean xid"),
        (&["--explain", "kv-full"], "did you mean kv-cache-full"),
        (&["--disable", "nothing-like-it"], "is no alert"),
        (&["--engine", "vlm"], "`vlm` is no engine: did you mean vllm"),
        (&["--source", "vllm"], "is no source"),
        (&["--set", "kv_ration=0.9"], "did you mean kv_ratio"),
        (&["--set", "kv_ratio=95"], "kv_ratio=95: give a share"),
        (&["--set", "kv_ratio"], "NAME=VALUE"),
        (&["-n", "monitoring"], "add -o prometheusrule"),
        (&["-o", "prometheusrule", "-n", "a b"], "lower-case letters, digits and dashes"),
        (&["-o", "prometheusrule", "--label", "re lease=x"], "a label has letters"),
        (&["--for", "ten"], "is no duration"),
        (&["--alert", "xid", "--source", "ksm"], "no alert is left"),
        (&["--tests", "--for", "5m"], "cannot be used with"),
    ] {
        let o = run(&[&["rules"], args].concat());
        assert_eq!(code(&o), 2, "{args:?}: {}", stdout(&o));
        assert!(stderr(&o).contains(says), "{args:?}: {}", stderr(&o));
    }
}

/// `EXPECTORATE=overwrite cargo test -p dualplane --test it rules_alerts` writes the tables anew.
#[test]
fn the_tables_of_the_manual_are_what_the_program_lists() {
    let page = root().join("docs/alerts.md");
    let text = std::fs::read_to_string(&page).unwrap();
    let (head, rest) = text.split_once("writes these tables -->\n").unwrap();
    let (_, tail) = rest.split_once("<!-- end -->").unwrap();
    let new = format!("{head}writes these tables -->\n\n{}\n<!-- end -->{tail}", printed(&["--list"]));
    expectorate::assert_contents(page, &new);
}

/// The runbooks of alerts are the pages that reports link.
#[test]
fn links_to_runbooks_are_those_of_reports() {
    let json: Value = serde_json::from_str(&printed(&["-o", "json"])).unwrap();
    let mut seen = 0;
    for a in json["alerts"].as_array().unwrap() {
        let Some(url) = a["runbook_url"].as_str() else { continue };
        let class = dualplane_base::Class::ALL.iter().find(|c| a["class"] == c.as_str()).unwrap();
        assert_eq!(url, dualplane_report::runbook::link(*class));
        seen += 1;
    }
    assert!(seen >= 25, "{seen}");
}

/// `EXPECTORATE=overwrite cargo test -p dualplane --test it rules_alerts` writes the chart's rules and thresholds anew.
#[test]
fn the_chart_has_the_same_rules_and_thresholds() {
    let chart = root().join("deploy/helm/dualplane");
    let template = dualplane_alerts::template().unwrap();
    let text = dualplane_alerts::emit::chart(&template);
    expectorate::assert_contents(chart.join("rules.yaml"), &text);
    let thresholds: String =
        template.values.iter().map(|(name, value)| format!("    {name}: {value}\n")).collect();
    let values = std::fs::read_to_string(chart.join("values.yaml")).unwrap();
    let (head, rest) = values.split_once("  thresholds:\n").unwrap();
    let (_, tail) = rest.split_once("\n\n").unwrap();
    expectorate::assert_contents(
        chart.join("values.yaml"),
        &format!("{head}  thresholds:\n{thresholds}\n{tail}"),
    );
    // What the chart's template does with its text, for other thresholds than the defaults.
    let set: Vec<String> = template.values.keys().map(|name| format!("{name}=1")).collect();
    let mut args = vec!["--enable", OPTIONAL, "-o", "prometheusrule"];
    args.extend(set.iter().flat_map(|s| ["--set", s.as_str()]));
    let own = printed(&args);
    let filled =
        template.values.keys().fold(text.clone(), |text, name| text.replace(&format!("@{name}@"), "1"));
    let exprs = |text: &str| -> Vec<String> {
        let lines = text.lines().filter_map(|l| l.trim_start().strip_prefix("expr: "));
        lines.map(str::to_owned).collect()
    };
    assert!(text.contains("@host_memory_ratio@") && !filled.contains('@'));
    assert_eq!(exprs(&filled), exprs(&own));
}
