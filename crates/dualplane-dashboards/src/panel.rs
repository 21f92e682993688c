//! One panel as Grafana takes it.

use dualplane_alerts::emit::runbook;
use dualplane_base::order::Order as _;
use serde_json::{Map, Value, json};

use crate::board::{Board, Kind, Panel, State};
use crate::ready::{Limit, ReadyPanel};
use crate::variable::datasource;

const GOOD: &str = "green";
const BAD: &str = "red";
/// Name of the board to which a series of a pod leads.
const INCIDENT: &str = "dualplane-incident";

pub(crate) fn json(board: &Board, ready: &ReadyPanel, id: usize, place: &Value) -> Value {
    let panel = ready.panel;
    let mut out = Map::new();
    let mut put = |key: &str, value: Value| out.insert(key.to_owned(), value);
    put("id", id.into());
    put("type", kind(panel.kind).into());
    put("title", panel.title.clone().into());
    put("description", description(ready).into());
    put("gridPos", place.clone());
    put("options", options(panel));
    if panel.kind == Kind::Text {
        return out.into();
    }
    put("datasource", datasource());
    put("fieldConfig", json!({"defaults": field(board, ready), "overrides": []}));
    put("targets", targets(ready));
    let links = links(ready);
    if !links.is_empty() {
        put("links", links.into());
    }
    if panel.kind == Kind::Table {
        put("transformations", columns(panel));
    }
    out.into()
}

fn kind(kind: Kind) -> &'static str {
    match kind {
        Kind::Lines => "timeseries",
        Kind::Stat => "stat",
        Kind::States => "state-timeline",
        Kind::Table => "table",
        Kind::Text => "text",
    }
}

/// What to do, and which alert watches.
pub(crate) fn description(ready: &ReadyPanel) -> String {
    let alerts = ready.alerts.iter().map(|a| format!("\n\nAlert {}: {}. {}", a.alert, a.title, a.why));
    std::iter::once(ready.panel.say.clone()).chain(alerts).collect()
}

/// The runbooks of the alerts, each once.
fn links(ready: &ReadyPanel) -> Vec<Value> {
    let mut classes: Vec<&str> = ready.alerts.iter().filter_map(|a| a.class.as_deref()).collect();
    classes.sort_unstable();
    classes.dedup();
    let link = |class: &&str| {
        json!({
            "title": format!("Runbook {class}"), "type": "link", "url": runbook(class), "icon": "doc", "tags": [], "tooltip": "",
            "asDropdown": false, "includeVars": false, "keepTime": false, "targetBlank": true,
        })
    };
    classes.iter().map(link).collect()
}

fn targets(ready: &ReadyPanel) -> Value {
    let instant = matches!(ready.panel.kind, Kind::Table | Kind::Stat);
    let format = if ready.panel.kind == Kind::Table { "table" } else { "time_series" };
    // More queries than letters would need other ids; the tests of this crate allow few.
    let one = |(letter, q): (char, &crate::ready::ReadyQuery)| {
        json!({
            "refId": letter.to_string(), "datasource": datasource(), "editorMode": "code", "expr": q.expr,
            "legendFormat": q.legend, "range": !instant, "instant": instant, "format": format,
        })
    };
    ('A'..='Z').zip(&ready.queries).map(one).collect()
}

fn options(panel: &Panel) -> Value {
    let legend = json!({"displayMode": "table", "placement": "bottom", "showLegend": true, "calcs": ["lastNotNull", "max"]});
    match panel.kind {
        Kind::Lines => json!({"legend": legend, "tooltip": {"mode": "multi", "sort": "desc"}}),
        Kind::Stat => json!({
            "colorMode": if panel.threshold.is_empty() { "none" } else { "value" },
            "graphMode": "none", "justifyMode": "auto", "orientation": "auto", "textMode": "auto", "wideLayout": true,
            "showPercentChange": false, "percentChangeColorMode": "standard",
            "reduceOptions": {"calcs": ["lastNotNull"], "fields": "", "values": false},
        }),
        Kind::States => json!({
            "legend": {"displayMode": "list", "placement": "bottom", "showLegend": true, "calcs": []},
            "tooltip": {"mode": "single", "sort": "none"},
            "rowHeight": 0.8, "mergeValues": true, "showValue": "auto", "alignValue": "left",
        }),
        Kind::Table => json!({"frameIndex": 0, "showHeader": true, "cellHeight": "sm"}),
        Kind::Text => json!({"mode": "markdown", "content": panel.text.clone().unwrap_or_default()}),
    }
}

fn field(board: &Board, ready: &ReadyPanel) -> Value {
    let panel = ready.panel;
    let mut out = Map::new();
    let mut put = |key: &str, value: Value| out.insert(key.to_owned(), value);
    put("unit", panel.measure.grafana().into());
    let by_threshold = matches!(panel.kind, Kind::Stat | Kind::States);
    put("color", json!({"mode": if by_threshold { "thresholds" } else { "palette-classic" }}));
    put("thresholds", json!({"mode": "absolute", "steps": steps(panel, &ready.limits)}));
    if !panel.state.is_empty() {
        put("mappings", mappings(&panel.state));
    }
    if panel.kind == Kind::Lines {
        put("min", 0.into());
        put("custom", lines(panel, &ready.limits));
    }
    if panel.kind == Kind::States {
        put("custom", json!({"fillOpacity": 70, "lineWidth": 0}));
    }
    let of_a_pod = ready.queries.iter().any(|q| q.legend.contains("{{pod}}"));
    if of_a_pod && !board.single && matches!(panel.kind, Kind::Lines | Kind::States) {
        put("links", json!([{"title": "The board of this pod", "url": incident()}]));
    }
    out.into()
}

/// From a series to the board of its pod, with the time that is shown.
fn incident() -> String {
    let of = |label: &str| format!("var-{label}=${{__field.labels.{label}}}");
    let vars = ["cluster", "namespace", "pod"].map(of).join("&");
    format!("/d/{INCIDENT}?var-datasource=${{datasource}}&{vars}&${{__url_time_range}}")
}

fn steps(panel: &Panel, limits: &[Limit]) -> Vec<Value> {
    let step = |colour: &str, at: Option<f64>| json!({"color": colour, "value": at});
    // A state's own colour counts: below it there is nothing to judge.
    if !panel.state.is_empty() {
        return vec![step("text", None)];
    }
    let first = if limits.iter().any(|l| l.below) { BAD } else { GOOD };
    let mut sorted: Vec<&Limit> = limits.iter().collect();
    sorted.order_by(|a, b| a.at.total_cmp(&b.at));
    let rest = sorted.into_iter().map(|l| step(if l.below { GOOD } else { BAD }, Some(l.at)));
    std::iter::once(step(first, None)).chain(rest).collect()
}

fn lines(panel: &Panel, limits: &[Limit]) -> Value {
    json!({
        "drawStyle": "line",
        "lineInterpolation": "linear",
        "lineWidth": 1,
        "fillOpacity": if panel.stack { 30 } else { 5 },
        "showPoints": "never",
        "spanNulls": false,
        "stacking": {"mode": if panel.stack { "normal" } else { "none" }},
        "thresholdsStyle": {"mode": if limits.is_empty() { "off" } else { "dashed" }},
    })
}

fn mappings(states: &[State]) -> Value {
    let one = |(i, s): (usize, &State)| {
        (s.value.to_string(), json!({"text": s.text, "color": s.colour, "index": i}))
    };
    let options: Map<String, Value> = states.iter().enumerate().map(one).collect();
    json!([{"type": "value", "options": options}])
}

/// Labels become columns; the time is always that of the question.
fn columns(panel: &Panel) -> Value {
    let mut hidden = Map::new();
    hidden.insert("Time".to_owned(), true.into());
    let mut renamed = Map::new();
    match &panel.value {
        Some(header) => renamed.insert("Value".to_owned(), header.clone().into()),
        None => hidden.insert("Value".to_owned(), true.into()),
    };
    json!([{"id": "organize", "options": {"excludeByName": hidden, "indexByName": {}, "renameByName": renamed}}])
}
