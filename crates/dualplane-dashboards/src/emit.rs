//! A board as Grafana takes it: JSON for an import or a provider's folder, a `ConfigMap` for the sidecar of its chart.

use dualplane_alerts::emit::page;
use dualplane_base::yaml::manifest;
use serde_json::{Map, Value, json};

use crate::board::Panel;
use crate::grid::{Grid, Place};
use crate::panel;
use crate::ready::Ready;
use crate::variable;

/// Of the JSON. Grafana 10.3 wrote this one; later versions raise it themselves.
const SCHEMA_VERSION: u32 = 39;
/// Ids of headings; a board has fewer panels.
const HEADINGS: usize = 101;
/// By this tag the boards link one another.
const TAG: &str = "dualplane";
/// By this label Grafana's sidecar finds `ConfigMaps`.
const SIDECAR_LABEL: (&str, &str) = ("grafana_dashboard", "1");

/// Grafana's JSON.
#[must_use]
pub fn json(ready: &Ready) -> Value {
    let board = ready.board;
    json!({
        "uid": board.uid(),
        "title": format!("dualplane / {}", board.title),
        "description": board.question,
        "tags": [TAG],
        "schemaVersion": SCHEMA_VERSION,
        "editable": true,
        // One crosshair over all panels: what happened at the same time is the question here.
        "graphTooltip": 1,
        "refresh": "1m",
        "time": {"from": format!("now-{}h", board.hours), "to": "now"},
        "templating": {"list": variable::list(board)},
        "annotations": {"list": [annotation(ready)]},
        "links": links(),
        "panels": panels(ready),
    })
}

/// Rows and panels with their places. An id is the place in the data, so that a link to a panel stays where another engine
/// leaves panels out: panels count from 1, headings from [`HEADINGS`].
fn panels(ready: &Ready) -> Vec<Value> {
    let rows = &ready.board.row;
    let all: Vec<&Panel> = rows.iter().flat_map(|r| &r.panel).collect();
    let mut grid = Grid::default();
    let mut out = Vec::new();
    for row in &ready.rows {
        let id = HEADINGS + rows.iter().take_while(|r| r.title != row.title).count();
        let place = position(grid.heading());
        out.push(
            json!({"id": id, "type": "row", "title": row.title, "collapsed": false, "gridPos": place, "panels": []}),
        );
        for p in &row.panels {
            let id = 1 + all.iter().take_while(|other| other.title != p.panel.title).count();
            let place = position(grid.place(p.panel.width, p.panel.height));
            out.push(panel::json(ready.board, p, id, &place));
        }
    }
    out
}

fn position(place: Place) -> Value {
    json!({"x": place.x, "y": place.y, "w": place.width, "h": place.height})
}

/// Alerts as marks over all panels.
fn annotation(ready: &Ready) -> Value {
    let expr = crate::query::filled(
        r#"ALERTS{space,alertname=~"Dualplane.+",alertstate="firing"}"#,
        &ready.board.choose,
    );
    json!({
        "name": "Alerts",
        "enable": true,
        "datasource": variable::datasource(),
        "iconColor": "red",
        "target": {"refId": "alerts", "datasource": variable::datasource(), "expr": expr},
        "titleFormat": "{{alertname}}",
        "textFormat": "{{namespace}}/{{pod}} {{node}} {{severity}}",
    })
}

fn links() -> Value {
    let link = |title: &str, kind: &str, tags: &[&str], url: &str, blank: bool| {
        json!({
            "title": title, "type": kind, "tags": tags, "url": url, "icon": if blank { "doc" } else { "external link" },
            "tooltip": "", "asDropdown": !blank, "includeVars": !blank, "keepTime": !blank, "targetBlank": blank,
        })
    };
    json!([
        link("Other boards", "dashboards", &[TAG], "", false),
        link("What the boards say", "link", &[], &page("dashboards.md"), true),
        link("Runbooks", "link", &[], &page("runbooks/README.md"), true),
    ])
}

/// A `ConfigMap` that Grafana's sidecar loads.
#[must_use]
pub fn config_map(ready: &Ready, namespace: Option<&str>, own: &[(String, String)]) -> String {
    let uid = ready.board.uid();
    let mut labels = Map::new();
    labels.insert("app.kubernetes.io/part-of".into(), "dualplane".into());
    labels.insert(SIDECAR_LABEL.0.into(), SIDECAR_LABEL.1.into());
    labels.extend(own.iter().map(|(k, v)| (k.clone(), v.clone().into())));
    let mut metadata = Map::new();
    metadata.insert("name".into(), uid.clone().into());
    metadata.extend(namespace.map(|n| ("namespace".to_owned(), n.into())));
    metadata.insert("labels".into(), labels.into());
    // On one line: `kubectl apply` keeps a copy of the object in an annotation of at most 256 KiB.
    let text = json(ready).to_string();
    manifest(&json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": metadata,
        "data": {format!("{uid}.json"): text},
    }))
}
