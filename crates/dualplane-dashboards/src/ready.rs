//! What a board shows for a selection of rules: panels that can be fed, with thresholds as numbers.

use std::collections::BTreeSet;

use dualplane_alerts::{Alert, Rules, Selection};

use crate::board::{Board, Panel, Threshold};
use crate::query::{filled, records};

/// A threshold as a number.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Limit {
    /// In the panel's unit.
    pub at: f64,
    /// What is below it is bad, instead of what is above.
    pub below: bool,
}

/// A query as Grafana asks it.
#[derive(Debug, Clone)]
pub struct ReadyQuery {
    /// PromQL, with Grafana's variables.
    pub expr: String,
    /// What a series is called.
    pub legend: String,
}

/// A panel that can be fed.
#[derive(Debug, Clone)]
pub struct ReadyPanel {
    /// Its data.
    pub panel: &'static Panel,
    /// What it asks.
    pub queries: Vec<ReadyQuery>,
    /// Where it becomes bad.
    pub limits: Vec<Limit>,
    /// Alerts that watch the same.
    pub alerts: Vec<&'static Alert>,
}

/// Panels under a heading.
#[derive(Debug, Clone)]
pub struct ReadyRow {
    /// The heading.
    pub title: &'static str,
    /// From left to right.
    pub panels: Vec<ReadyPanel>,
}

/// A board that can be fed.
#[derive(Debug, Clone)]
pub struct Ready {
    /// Its data.
    pub board: &'static Board,
    /// Its panels; a row without any is left out.
    pub rows: Vec<ReadyRow>,
    /// Titles of panels whose series nothing exposes.
    pub left_out: Vec<&'static str>,
}

impl Ready {
    /// All panels.
    pub fn panels(&self) -> impl Iterator<Item = &ReadyPanel> {
        self.rows.iter().flat_map(|r| &r.panels)
    }
}

/// A board with what the rules of a selection record.
#[must_use]
pub fn ready(board: &'static Board, selection: &Selection) -> Ready {
    let there: BTreeSet<&str> = selection.records.iter().map(|r| r.record.name.as_str()).collect();
    let mut left_out = Vec::new();
    let mut rows = Vec::new();
    for row in &board.row {
        let mut panels = Vec::new();
        for panel in &row.panel {
            let fed = panel.query.iter().filter(|q| records(&q.expr).iter().all(|r| there.contains(r)));
            let queries: Vec<ReadyQuery> = fed
                .map(|q| ReadyQuery { expr: filled(&q.expr, &board.choose), legend: q.legend.clone() })
                .collect();
            if queries.is_empty() && !panel.query.is_empty() {
                left_out.push(panel.title.as_str());
                continue;
            }
            let limits = panel.threshold.iter().filter_map(|t| limit(t, selection)).collect();
            let alerts = panel.alert.iter().filter_map(|id| Rules::embedded().alert(id)).collect();
            panels.push(ReadyPanel { panel, queries, limits, alerts });
        }
        if !panels.is_empty() {
            rows.push(ReadyRow { title: &row.title, panels });
        }
    }
    Ready { board, rows, left_out }
}

/// The number of a threshold; none if a name is unknown, which the tests of this crate exclude.
fn limit(threshold: &Threshold, selection: &Selection) -> Option<Limit> {
    let numbers: Option<Vec<f64>> = threshold.at.iter().map(|n| selection.values.get(n).copied()).collect();
    Some(Limit { at: numbers?.into_iter().product(), below: threshold.below })
}
