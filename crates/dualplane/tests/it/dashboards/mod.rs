//! `dualplane dashboards`: boards that Grafana takes, whose queries a real Prometheus answers over recorded series.

mod picture;
pub(crate) mod prometheus;
mod scale;
pub(crate) mod series;

use std::path::Path;

use dualplane_alerts::{Options, Selection, select};
use dualplane_base::yaml::manifest;
use dualplane_dashboards::{Kind, Ready, boards, emit, ready, show};
use serde_json::{Value, json};

use self::picture::{Answer, Span, svg};
use self::prometheus::{Prometheus, draws_alike, is_there, promtool};
use self::series::{MINUTES, START};
use crate::harness::{code, dualplane, root, run, stderr, stdout};
use crate::recorded_load::Recorded;

/// What can be chosen in the recorded series. The board of one pod shows the one that died.
const CHOICES: &[(&str, &[&str])] = &[
    ("cluster", &["prod"]),
    ("namespace", &["serving"]),
    ("model", &["llama-70b", "qwen-32b"]),
    ("pod", &["code-0", "chat-0", "chat-2", "draft-0"]),
    ("node", &["n1", "n2"]),
    ("gpu", &["0", "2"]),
];

/// The pod that died.
const DEAD: &str = "code-0";

fn rules() -> Selection {
    select(&Options::default()).unwrap()
}

fn all() -> Vec<Ready> {
    let rules = rules();
    boards().iter().map(|b| ready(b, &rules)).collect()
}

/// A query as Grafana asks it when this is chosen; `.*` is what it asks for "All".
fn chosen(expr: &str, choose: impl Fn(&str) -> String) -> String {
    CHOICES.iter().fold(expr.to_owned(), |expr, (name, _)| {
        expr.replace(&format!("=~\"${name}\""), &format!("=~\"{}\"", choose(name)))
    })
}

/// What is shown first: everything, or the pod that died.
fn first(board: &Ready, expr: &str) -> String {
    let one = |name: &str| match (board.board.single, name) {
        (true, "pod") => DEAD.to_owned(),
        _ => ".*".to_owned(),
    };
    chosen(expr, one)
}

fn printed(args: &[&str]) -> String {
    let o = run(&[&["dashboards"], args].concat());
    assert_eq!(code(&o), 0, "{args:?}: {}", stderr(&o));
    stdout(&o)
}

/// Errors of a board against the types of `@grafana/schema`.
fn faults(board: &Value) -> Vec<String> {
    let text = std::fs::read_to_string(root().join("testdata/grafana/dashboard.schema.json")).unwrap();
    let validator = jsonschema::validator_for(&serde_json::from_str(&text).unwrap()).unwrap();
    validator.iter_errors(board).map(|e| format!("{} at {}", e.schema_path, e.instance_path)).collect()
}

#[test]
fn boards_follow_the_types_of_grafana() {
    for b in boards() {
        let board: Value = serde_json::from_str(&printed(&[&b.name, "-o", "json"])).unwrap();
        assert_eq!(faults(&board), Vec::<String>::new(), "{}", b.name);
        assert_eq!(board["uid"], format!("dualplane-{}", b.name));
    }
    // The check can fail, in each kind of panel and outside of them.
    let good: Value = serde_json::from_str(&printed(&["server", "-o", "json"])).unwrap();
    let kinds = good["panels"].as_array().unwrap();
    let of = |kind: &str| kinds.iter().position(|p| p["type"] == kind).unwrap();
    let (lines, states, table) = (of("timeseries"), of("state-timeline"), of("table"));
    for (pointer, value) in [
        ("/schemaVersion".to_owned(), json!("39")),
        ("/templating/list/1/sort".to_owned(), json!(99)),
        ("/links/0/type".to_owned(), json!("elsewhere")),
        (format!("/panels/{lines}/type"), json!("graph")),
        (format!("/panels/{lines}/options/legend/placement"), json!("top")),
        (format!("/panels/{lines}/fieldConfig/defaults/custom/thresholdsStyle/mode"), json!("dots")),
        (format!("/panels/{lines}/fieldConfig/defaults/thresholds/steps/0/color"), json!(1)),
        (format!("/panels/{lines}/targets/0/expr"), json!(null)),
        (format!("/panels/{states}/options/showValue"), json!("sometimes")),
        (format!("/panels/{table}/options/frameIndex"), json!("first")),
        (format!("/panels/{table}/gridPos/w"), json!("wide")),
    ] {
        let mut bad = good.clone();
        *bad.pointer_mut(&pointer).unwrap_or_else(|| panic!("{pointer}")) = value;
        assert!(!faults(&bad).is_empty(), "{pointer} is not looked at");
    }
    let mut bad = good;
    bad.as_object_mut().unwrap().insert("unheard_of".into(), json!(1));
    assert!(!faults(&bad).is_empty());
}

/// Each query as a recording rule: promtool parses it.
fn as_rules(boards: &[Ready]) -> Value {
    let queries =
        boards.iter().flat_map(|r| r.panels().flat_map(|p| &p.queries).map(move |q| first(r, &q.expr)));
    let rules: Vec<Value> =
        queries.enumerate().map(|(i, expr)| json!({"record": format!("query:{i}"), "expr": expr})).collect();
    json!({"groups": [{"name": "queries", "rules": rules}]})
}

#[test]
fn every_query_is_parsed_by_promtool() {
    if !is_there() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let mut all = all();
    std::fs::write(dir.path().join("queries.yaml"), manifest(&as_rules(&all))).unwrap();
    promtool(dir.path(), &["check", "rules", "queries.yaml"]);
    // The check can fail.
    all[0].rows[0].panels[0].queries[0].expr.push(')');
    std::fs::write(dir.path().join("queries.yaml"), manifest(&as_rules(&all))).unwrap();
    let o = std::process::Command::new("promtool")
        .args(["check", "rules", "queries.yaml"])
        .current_dir(dir.path())
        .output();
    assert!(!o.unwrap().status.success());
}

/// What a panel's queries answer over the minutes that are shown.
fn answers(server: &Prometheus, board: &Ready, from: i64) -> Vec<Vec<Answer>> {
    let one = |kind: Kind, q: &dualplane_dashboards::ReadyQuery| {
        let expr = first(board, &q.expr);
        let series = match kind {
            Kind::Stat | Kind::Table => server.at(&expr, MINUTES - 1),
            _ => server.range(&expr, from, MINUTES - 1, 3),
        };
        Answer { legend: q.legend.clone(), series }
    };
    board.panels().map(|p| p.queries.iter().map(|q| one(p.panel.kind, q)).collect()).collect()
}

/// Queries without an answer, for everything and for each single choice of a variable.
fn unanswered(server: &Prometheus, board: &Ready, from: i64) -> Vec<String> {
    let mut out = Vec::new();
    let gives = |expr: &str| !server.range(expr, from, MINUTES - 1, 5).is_empty();
    for q in board.panels().flat_map(|p| &p.queries) {
        if !gives(&first(board, &q.expr)) {
            out.push(format!("{}: {}", board.board.name, q.expr));
            continue;
        }
        for (name, values) in CHOICES {
            let asked = format!("${name}\"");
            let with = |value: &str| {
                let one = |n: &str| if n == *name { value.to_owned() } else { ".*".to_owned() };
                chosen(&q.expr, one)
            };
            if q.expr.contains(&asked) && !values.iter().any(|v| gives(&with(v))) {
                out.push(format!("{}, {name}: {}", board.board.name, q.expr));
            }
            // A filter that filters nothing would pass the test above.
            if q.expr.contains(&asked) && gives(&with("nothing-like-it")) && !q.expr.contains("vector(0)") {
                out.push(format!("{}, {name} does not choose: {}", board.board.name, q.expr));
            }
        }
    }
    out
}

/// `EXPECTORATE=overwrite cargo test -p dualplane --test it dashboards` draws the pictures anew.
#[test]
fn every_query_is_answered_over_recorded_series_and_the_pictures_show_it() {
    if !is_there() {
        return;
    }
    let rules = rules();
    let server = Prometheus::with_the_evening(&rules);
    let alike = draws_alike();
    let mut complaints = Vec::new();
    for board in all() {
        let from = MINUTES - 60 * i64::from(board.board.hours.min(6));
        complaints.extend(unanswered(&server, &board, from));
        let at = |minute: i64| (START + minute * 60) as f64;
        let span = Span { from: at(from), to: at(MINUTES) };
        let drawn = svg(&board, &emit::json(&board), &answers(&server, &board, from), &span, DEAD);
        if alike {
            let picture = root().join(format!("docs/dashboards/{}.svg", board.board.name));
            expectorate::assert_contents(picture, &drawn);
        }
    }
    assert!(complaints.is_empty(), "no answer:\n{}", complaints.join("\n"));
    // The check can fail: a record that no rule makes, and a filter on what is not there.
    let mut bad = ready(&boards()[0], &rules);
    bad.rows[0].panels[1].queries[0].expr = "sum(dualplane:no_such_record)".to_owned();
    bad.rows[0].panels[2].queries[0].expr =
        "dualplane:requests_running{model=~\"$model\",pod=\"gone\"}".to_owned();
    bad.rows[0].panels[3].queries[0].expr =
        "dualplane:requests_running or (dualplane:replicas{cluster=~\"$cluster\"})".to_owned();
    assert_eq!(unanswered(&server, &bad, 300).len(), 3);
}

/// Over a stretch of real load, whose servers have no card: what has no answer there is listed with what it asks for.
/// `EXPECTORATE=overwrite cargo test -p dualplane --test it dashboards` writes the list anew.
#[test]
fn queries_are_answered_over_real_load_where_its_machine_had_the_parts() {
    if !is_there() {
        return;
    }
    let lines = Recorded::read();
    let lines = lines.hours(MINUTES as usize, 60 / lines.step);
    let server = Prometheus::with(&rules(), &lines);
    let (mut asked, mut none) = (0, String::new());
    for board in all() {
        for panel in board.panels() {
            for q in &panel.queries {
                asked += 1;
                let expr = chosen(&q.expr, |_| ".*".to_owned());
                if server.range(&expr, MINUTES - 120, MINUTES - 1, 5).is_empty() {
                    none += &format!("{}: {}: {}\n", board.board.name, panel.panel.title, q.expr);
                }
            }
        }
    }
    let count = none.lines().count();
    assert!(asked > 2 * count, "{count} of {asked} have no answer");
    expectorate::assert_contents(root().join("testdata/dashboards/not-recorded.txt"), &none);
}

#[test]
fn forms_are_what_their_readers_expect() {
    let text = printed(&[]);
    for b in boards() {
        assert!(text.contains(&b.title) && text.contains(&b.question), "{}\n{text}", b.name);
    }
    assert!(text.contains("6 boards"), "{text}");
    assert!(!printed(&["slo"]).contains("GPU health"));
    // One name twice is one board, and the uid is a name, too.
    assert_eq!(printed(&["slo", "dualplane-slo", "-o", "json"]), printed(&["slo", "-o", "json"]));
    let maps = printed(&["-o", "configmap", "-n", "monitoring", "--label", "team=serving"]);
    let documents: Vec<&str> = maps.split("---\n").collect();
    assert_eq!(documents.len(), boards().len());
    for (document, board) in documents.iter().zip(boards()) {
        let map: Value = serde_saphyr::from_str(document).unwrap();
        assert_eq!((&map["kind"], &map["metadata"]["name"]), (&json!("ConfigMap"), &json!(board.uid())));
        assert_eq!(map["metadata"]["labels"]["grafana_dashboard"], "1");
        assert_eq!(
            (&map["metadata"]["labels"]["team"], &map["metadata"]["namespace"]),
            (&json!("serving"), &json!("monitoring"))
        );
    }
    let dir = tempfile::tempdir().unwrap();
    let into = dir.path().join("a/b");
    let listed = printed(&["--engine", "vllm", "--dir", into.to_str().unwrap()]);
    assert_eq!(listed.lines().count(), boards().len());
    for path in listed.lines() {
        let board: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
        assert_eq!(Path::new(path).file_stem().unwrap().to_str(), board["uid"].as_str());
        assert_eq!(faults(&board), Vec::<String>::new());
    }
    printed(&["incident", "--dir", dir.path().to_str().unwrap(), "-o", "configmap"]);
    assert!(
        std::fs::read_to_string(dir.path().join("dualplane-incident.yaml"))
            .unwrap()
            .starts_with("apiVersion: v1\n")
    );
    let set = printed(&["server", "-o", "json", "--set", "host_memory_ratio=70%"]);
    assert!(
        set.contains("\"value\": 0.7\n") && !printed(&["server", "-o", "json"]).contains("\"value\": 0.7\n")
    );
}

/// `EXPECTORATE=overwrite cargo test -p dualplane --test it dashboards` writes the chart's boards anew.
#[test]
fn the_chart_has_the_same_boards() {
    let folder = root().join("deploy/helm/dualplane/boards");
    for r in all() {
        let text = format!("{}\n", emit::json(&r));
        expectorate::assert_contents(folder.join(format!("{}.json", r.board.name)), &text);
    }
    assert_eq!(std::fs::read_dir(folder).unwrap().count(), all().len());
}

#[test]
fn wrong_words_are_answered_with_near_ones() {
    for (args, says) in [
        (&["slos"][..], "`slos` is no board: did you mean slo"),
        (&["health"], "did you mean gpu-health"),
        (&["helth"], "did you mean gpu-health"),
        (&["-o", "json"], "prints one board"),
        (&["slo", "--engine", "vlm"], "`vlm` is no engine: did you mean vllm"),
        (&["--set", "kv_ration=0.9"], "did you mean kv_ratio"),
        (&["--dir", "/dev/null/x"], "/dev/null/x"),
    ] {
        let o = run(&[&["dashboards"], args].concat());
        assert_ne!(code(&o), 0, "{args:?}: {}", stdout(&o));
        assert!(stderr(&o).contains(says), "{args:?}: {}", stderr(&o));
    }
    let dir = tempfile::tempdir().unwrap();
    let o = run(&["dashboards", "--dir", dir.path().to_str().unwrap(), "-o", "text"]);
    assert_eq!((code(&o), std::fs::read_dir(dir.path()).unwrap().count()), (2, 0), "{}", stderr(&o));
}

/// Commands that panels name are commands: help comes after what is before it was understood.
#[test]
fn commands_of_panels_are_commands() {
    let mut seen = 0;
    for panel in boards().iter().flat_map(|b| &b.row).flat_map(|r| &r.panel) {
        for quoted in panel.text.as_deref().unwrap_or_default().split('`').skip(1).step_by(2) {
            let Some(line) = quoted.strip_prefix("dualplane ") else { continue };
            let line = line.replace("$namespace", "serving").replace("$pod", "code-0");
            let args: Vec<&str> = line.split(' ').chain(["--help"]).collect();
            let o = dualplane().args(&args).output().unwrap();
            assert_eq!(code(&o), 0, "{line}: {}", stderr(&o));
            seen += 1;
        }
        for said in panel.say.split("dualplane ").skip(1) {
            let command = said.split([' ', '.', ',']).next().unwrap();
            let o = run(&[command, "--help"]);
            assert_eq!(code(&o), 0, "{}: {command}", panel.title);
            seen += 1;
        }
    }
    assert!(seen >= 8, "{seen}");
}

/// What boards say is in plain English, as all that people read.
#[test]
fn boards_are_in_plain_english() {
    let text = all().iter().map(|r| emit::json(r).to_string()).collect::<String>() + &printed(&[]);
    assert_eq!(crate::words::found(&text), None);
}

/// `EXPECTORATE=overwrite cargo test -p dualplane --test it dashboards` writes the table anew.
#[test]
fn the_table_of_the_manual_is_what_the_boards_ask() {
    let page = root().join("docs/dashboards.md");
    let text = std::fs::read_to_string(&page).unwrap();
    let (head, rest) = text.split_once("writes this table -->\n").unwrap();
    let (_, tail) = rest.split_once("<!-- end -->").unwrap();
    let new = format!("{head}writes this table -->\n\n{}\n<!-- end -->{tail}", show::table(&all()));
    expectorate::assert_contents(page, &new);
}
