//! Tests of the data: names, places, variables, thresholds, links. What the queries answer is Prometheus's to say.

use std::collections::BTreeSet;

use dualplane_alerts::{Options, Rules, Selection, select};
use serde_json::{Value, json};

use crate::board::{Board, Kind, TEXT, boards, find};
use crate::grid::COLUMNS;
use crate::query::records;
use crate::{Ready, emit, ready};

fn all_rules() -> Selection {
    select(&Options::default()).unwrap()
}

fn all() -> Vec<Ready> {
    let selection = all_rules();
    boards().iter().map(|b| ready(b, &selection)).collect()
}

#[test]
fn the_data_are_read_and_every_board_is_whole() {
    assert!(TEXT.is_whole());
    let read: Vec<Board> = serde_json::from_str(TEXT.text()).unwrap();
    assert_eq!(read.len(), 6);
    let (mut names, mut titles, mut places) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    for b in &read {
        assert!(
            names.insert(b.name.clone()) && titles.insert(b.title.clone()) && places.insert(b.place),
            "{}",
            b.name
        );
        // Grafana takes 40 characters of a uid.
        assert!(
            b.uid().len() <= 40 && b.uid().chars().all(|c| c.is_ascii_lowercase() || c == '-'),
            "{}",
            b.uid()
        );
        assert!(b.question.ends_with('?') && b.hours > 0, "{}", b.name);
        assert!(b.choose.iter().enumerate().all(|(i, v)| !b.choose[..i].contains(v)), "{}", b.name);
        assert!(
            b.row.iter().enumerate().all(|(i, r)| b.row[..i].iter().all(|o| o.title != r.title)),
            "{}",
            b.name
        );
        let mut titles = BTreeSet::new();
        for p in b.row.iter().flat_map(|r| &r.panel) {
            let place = format!("{}: {}", b.name, p.title);
            assert!(titles.insert(&p.title), "{place}: twice");
            assert!(p.say.ends_with('.') && p.say.len() > 40, "{place}: say what to do");
            assert!(p.width <= COLUMNS && p.height >= 4, "{place}");
            assert_eq!(p.query.is_empty(), p.kind == Kind::Text, "{place}");
            assert_eq!(p.text.is_some(), p.kind == Kind::Text, "{place}");
            assert_eq!(p.state.is_empty(), p.kind != Kind::States, "{place}");
            assert!(p.query.len() <= 4 && p.query.iter().all(|q| !q.legend.is_empty()), "{place}");
            assert!(p.threshold.iter().all(|t| t.below == p.threshold[0].below), "{place}");
        }
    }
}

/// A board asks records of the rules alone: names of series by engine and version stand in one place.
#[test]
fn queries_read_records_and_alerts_and_nothing_else() {
    let known: BTreeSet<&str> = Rules::embedded().records().iter().map(|r| r.name.as_str()).collect();
    for b in boards() {
        for q in b.row.iter().flat_map(|r| &r.panel).flat_map(|p| &p.query) {
            let own = records(&q.expr);
            assert!(!own.is_empty() || q.expr.contains("ALERTS{"), "{}: {}", b.name, q.expr);
            for name in own {
                assert!(known.contains(name), "{}: no rule records {name}", b.name);
            }
            // A series is a name before `{`: all of them are ours.
            for (before, _) in q.expr.match_indices('{').map(|(at, _)| q.expr.split_at(at)) {
                let name = before
                    .rsplit(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == ':'))
                    .next()
                    .unwrap();
                assert!(known.contains(name) || name == "ALERTS", "{}: {name} in {}", b.name, q.expr);
            }
        }
    }
}

/// Records that no alert reads are there for boards: one that no board reads either would be dead weight.
#[test]
fn every_record_is_read_by_an_alert_a_board_or_another_record() {
    let text: String = Rules::embedded()
        .records()
        .iter()
        .flat_map(|r| r.from.iter())
        .chain(Rules::embedded().alerts().iter().flat_map(|a| a.parts().iter()))
        .chain(
            boards()
                .iter()
                .flat_map(|b| &b.row)
                .flat_map(|r| &r.panel)
                .flat_map(|p| &p.query)
                .map(|q| &q.expr),
        )
        .fold(String::new(), |all, e| all + e + "\n");
    let read = records(&text);
    for r in Rules::embedded().records() {
        assert!(read.contains(r.name.as_str()), "nothing reads {}", r.name);
    }
}

#[test]
fn thresholds_are_those_of_the_rules_and_follow_them() {
    let rules = Rules::embedded();
    let mut seen = BTreeSet::new();
    for r in all() {
        for p in r.panels() {
            assert_eq!(p.limits.len(), p.panel.threshold.len(), "{}: a threshold is unknown", p.panel.title);
            for (limit, threshold) in p.limits.iter().zip(&p.panel.threshold) {
                let want: f64 = threshold
                    .at
                    .iter()
                    .map(|n| rules.values().find(|(name, _)| name == n).unwrap().1.default)
                    .product();
                assert!((limit.at - want).abs() < 1e-9, "{}: {} is not {want}", p.panel.title, limit.at);
                seen.extend(threshold.at.iter().cloned());
            }
            assert_eq!(p.alerts.len(), p.panel.alert.len(), "{}: an alert is unknown", p.panel.title);
        }
    }
    assert!(seen.len() >= 12, "{seen:?}");
    let set =
        select(&Options { set: vec![("host_memory_ratio".into(), "70%".into())], ..Options::default() });
    let board = emit::json(&ready(find("server").unwrap(), &set.unwrap()));
    let panel = of_title(&board, "Host RAM: how close is it to the limit?");
    let steps = &panel["fieldConfig"]["defaults"]["thresholds"]["steps"];
    assert_eq!(*steps, json!([{"color": "green", "value": null}, {"color": "red", "value": 0.7}]));
    let board = emit::json(&ready(find("capacity").unwrap(), &all_rules()));
    let steps = &of_title(&board, "Host RAM: how much do the nodes have left?")["fieldConfig"]["defaults"]["thresholds"]
        ["steps"];
    assert_eq!(*steps, json!([{"color": "red", "value": null}, {"color": "green", "value": 0.05}]));
}

fn of_title<'b>(board: &'b Value, title: &str) -> &'b Value {
    board["panels"].as_array().unwrap().iter().find(|p| p["title"] == title).unwrap()
}

/// What is wrong with the places and ids of a board's panels.
fn clashes(board: &Value) -> Vec<String> {
    let panels = board["panels"].as_array().unwrap();
    let of = |p: &Value, key: &str| p["gridPos"][key].as_u64().unwrap();
    let mut out = Vec::new();
    let mut ids = BTreeSet::new();
    for (i, a) in panels.iter().enumerate() {
        if !ids.insert(a["id"].as_u64().unwrap()) {
            out.push(format!("{} is twice", a["id"]));
        }
        if of(a, "x") + of(a, "w") > u64::from(COLUMNS) {
            out.push(format!("{} is too wide", a["title"]));
        }
        for b in &panels[..i] {
            let apart = |at: &str, size: &str| {
                of(a, at) + of(a, size) <= of(b, at) || of(b, at) + of(b, size) <= of(a, at)
            };
            if !apart("x", "w") && !apart("y", "h") {
                out.push(format!("{} over {}", a["title"], b["title"]));
            }
        }
    }
    out
}

#[test]
fn panels_do_not_overlap_and_ids_are_unique() {
    for r in all() {
        let board = emit::json(&r);
        assert_eq!(clashes(&board), Vec::<String>::new(), "{}", r.board.name);
        // Lines of panels reach from side to side.
        let mut lines = std::collections::BTreeMap::<u64, u64>::new();
        for p in board["panels"].as_array().unwrap() {
            *lines.entry(p["gridPos"]["y"].as_u64().unwrap()).or_default() +=
                p["gridPos"]["w"].as_u64().unwrap();
        }
        assert!(lines.values().all(|w| *w == u64::from(COLUMNS)), "{}: {lines:?}", r.board.name);
    }
    // The check can fail.
    let mut board = emit::json(&all()[0]);
    board["panels"][2]["gridPos"]["x"] = json!(0);
    board["panels"][3]["id"] = board["panels"][1]["id"].clone();
    board["panels"][4]["gridPos"]["w"] = json!(20);
    assert!(clashes(&board).len() >= 3, "{:?}", clashes(&board));
}

/// `$name` in the text of a board.
fn variables(text: &str) -> BTreeSet<String> {
    let names = text.split('$').skip(1).map(|rest| {
        let rest = rest.strip_prefix('{').unwrap_or(rest);
        rest.chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '_').collect::<String>()
    });
    names.filter(|n| !n.is_empty()).collect()
}

#[test]
fn variables_are_declared_and_each_is_used() {
    for r in all() {
        let board = emit::json(&r);
        let list = board["templating"]["list"].as_array().unwrap();
        let declared: BTreeSet<String> =
            list.iter().map(|v| v["name"].as_str().unwrap().to_owned()).collect();
        assert_eq!(declared.len(), list.len());
        let own = variables(&board["panels"].to_string());
        let strange: Vec<&String> =
            own.iter().filter(|n| !declared.contains(*n) && !n.starts_with("__")).collect();
        assert!(strange.is_empty(), "{}: {strange:?}", r.board.name);
        assert!(declared.iter().all(|n| own.contains(n)), "{}: {declared:?} {own:?}", r.board.name);
        // No set of labels is left.
        for p in r.panels() {
            for q in &p.queries {
                let left = [
                    "{served",
                    "{pod}",
                    "{pod,",
                    "{space",
                    "{card",
                    "{device",
                    "{node}",
                    "{placed",
                    "{cluster}",
                ];
                assert!(left.iter().all(|l| !q.expr.contains(l)), "{}", q.expr);
            }
        }
    }
}

/// A legend names labels that its query keeps.
#[test]
fn legends_name_labels_that_are_there() {
    for b in boards() {
        for q in b.row.iter().flat_map(|r| &r.panel).flat_map(|p| &p.query) {
            for label in q.legend.split("{{").skip(1).filter_map(|l| l.split_once("}}")).map(|(l, _)| l) {
                let kept = q
                    .expr
                    .split(" by (")
                    .skip(1)
                    .filter_map(|e| e.split_once(')'))
                    .any(|(by, _)| by.split(", ").any(|l| l == label));
                assert!(
                    kept || q.expr.contains("on (cluster, node, resource)"),
                    "{}: {label} in {}",
                    b.name,
                    q.expr
                );
            }
        }
    }
}

#[test]
fn an_engine_alone_leaves_out_what_it_does_not_tell() {
    let of = |engine: &str| {
        let s = select(&Options { engines: vec![engine.into()], ..Options::default() }).unwrap();
        ready(find("server").unwrap(), &s)
    };
    assert!(of("vllm").left_out.is_empty(), "{:?}", of("vllm").left_out);
    let lost = of("llama.cpp").left_out;
    assert!(
        lost.contains(&"How many prompts are long?")
            && lost.contains(&"Where does a request spend its time?"),
        "{lost:?}"
    );
    let board = emit::json(&of("llama.cpp"));
    assert_eq!(clashes(&board), Vec::<String>::new());
    // A panel keeps its id, so that links to it stay.
    let title = "VRAM: how full are the cards?";
    assert_eq!(of_title(&board, title)["id"], of_title(&emit::json(&of("vllm")), title)["id"]);
    assert!(!board.to_string().contains("long_prompts"));
}

#[test]
fn a_config_map_carries_the_same_board() {
    let r = &all()[0];
    let own = [("team".to_owned(), "serving".to_owned())];
    let map: Value = serde_saphyr::from_str(&emit::config_map(r, Some("monitoring"), &own)).unwrap();
    assert_eq!(map["metadata"]["labels"]["grafana_dashboard"], "1");
    assert_eq!(
        (&map["metadata"]["namespace"], &map["metadata"]["labels"]["team"]),
        (&json!("monitoring"), &json!("serving"))
    );
    let text = map["data"]["dualplane-slo.json"].as_str().unwrap();
    assert_eq!(serde_json::from_str::<Value>(text).unwrap(), emit::json(r));
    for r in all() {
        let size = emit::config_map(&r, None, &[]).len();
        assert!(size < 200 * 1024, "{}: {size} bytes", r.board.name);
    }
}

#[test]
fn lines_of_pods_lead_to_the_board_of_a_pod() {
    let mut seen = 0;
    for r in all() {
        let text = emit::json(&r).to_string();
        for uid in text.split("/d/").skip(1).map(|rest| rest.split('?').next().unwrap()) {
            assert!(find(uid).unwrap().single, "{uid}");
            seen += 1;
        }
        assert_eq!(text.contains("/d/"), !r.board.single && text.contains("{{pod}}\""), "{}", r.board.name);
    }
    assert!(seen >= 30, "{seen}");
}

#[test]
fn a_wrong_name_is_answered_with_the_nearest() {
    assert_eq!(find("dualplane-gpu-use").unwrap().name, "gpu-use");
    let fault = find("gpu").unwrap_err().to_string();
    assert!(fault.starts_with("`gpu` is no board: did you mean gpu-"), "{fault}");
}
