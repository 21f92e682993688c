//! Boards as data: `knowledge/dashboards/*.toml`.

use std::sync::OnceLock;

use dualplane_alerts::Fault;
use dualplane_base::packed::Block;
use serde::Deserialize;

/// What a person chooses on top of a board.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Variable {
    /// Where a Prometheus serves several clusters.
    Cluster,
    /// Of Kubernetes.
    Namespace,
    /// The name under which a model is served.
    Model,
    /// A server.
    Pod,
    /// A machine.
    Node,
    /// The index of a card on its node.
    Gpu,
}

impl Variable {
    /// Its name in Grafana, which is the label that it chooses.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Cluster => "cluster",
            Self::Namespace => "namespace",
            Self::Model => "model",
            Self::Pod => "pod",
            Self::Node => "node",
            Self::Gpu => "gpu",
        }
    }
}

/// How a panel is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Values over time.
    Lines,
    /// The last value, in large figures.
    Stat,
    /// What held when: one bar a series.
    States,
    /// Labels in columns.
    Table,
    /// Words.
    Text,
}

/// What a panel's values count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Measure {
    /// A number of things.
    #[default]
    Count,
    /// 0 to 1.
    Ratio,
    /// Seconds.
    Seconds,
    /// Bytes.
    Bytes,
    /// Bytes a second.
    BytesPerSecond,
    /// Requests a second.
    RequestsPerSecond,
    /// Tokens a second.
    TokensPerSecond,
    /// Degrees.
    Celsius,
    /// Watts.
    Watts,
    /// Hertz.
    Hertz,
}

impl Measure {
    /// The id of Grafana's unit.
    #[must_use]
    pub fn grafana(self) -> &'static str {
        match self {
            Self::Count => "short",
            Self::Ratio => "percentunit",
            Self::Seconds => "s",
            Self::Bytes => "bytes",
            Self::BytesPerSecond => "binBps",
            Self::RequestsPerSecond => "reqps",
            Self::TokensPerSecond => "suffix: tokens/s",
            Self::Celsius => "celsius",
            Self::Watts => "watt",
            Self::Hertz => "hertz",
        }
    }
}

/// A line in PromQL, with `{set}` for the labels that the board's variables choose.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Query {
    /// The expression.
    pub expr: String,
    /// What a series is called: `{{label}}` stands for its label.
    pub legend: String,
}

/// A threshold, by the names of the rules' values.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Threshold {
    /// Names; several are multiplied.
    pub(crate) at: Vec<String>,
    /// What is below it is bad, instead of what is above.
    #[serde(default)]
    pub(crate) below: bool,
}

/// What a value of a state means.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct State {
    /// The value.
    pub value: i64,
    /// In words.
    pub text: String,
    /// A colour of Grafana: green, yellow, orange, red, blue.
    pub colour: String,
}

/// One question and its answer.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Panel {
    /// The question.
    pub title: String,
    /// What to do when it looks bad.
    pub say: String,
    /// How it is drawn.
    pub kind: Kind,
    /// What it counts.
    #[serde(default)]
    pub measure: Measure,
    /// Columns of 24.
    pub width: u32,
    /// Rows of Grafana's grid, of 30 pixels each.
    pub height: u32,
    /// What is asked.
    #[serde(default)]
    pub query: Vec<Query>,
    /// Where it becomes bad.
    #[serde(default)]
    pub(crate) threshold: Vec<Threshold>,
    /// Ids of the alerts that watch the same.
    #[serde(default)]
    pub alert: Vec<String>,
    /// One value after another on top of one another.
    #[serde(default)]
    pub stack: bool,
    /// Of states.
    #[serde(default)]
    pub state: Vec<State>,
    /// Of a table: the header of the value's column, which is hidden otherwise.
    #[serde(default)]
    pub value: Option<String>,
    /// Of a text, as Markdown.
    #[serde(default)]
    pub text: Option<String>,
}

/// Panels under a heading.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Row {
    /// The heading.
    pub title: String,
    /// From left to right.
    pub panel: Vec<Panel>,
}

/// A board.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Board {
    /// Its place in lists.
    pub place: u32,
    /// Stable name, never reused: its uid in Grafana is made of it.
    pub name: String,
    /// Title in Grafana.
    pub title: String,
    /// The question that it answers.
    pub question: String,
    /// What can be chosen.
    pub choose: Vec<Variable>,
    /// It shows one pod at a time: no variable takes several values.
    #[serde(default)]
    pub single: bool,
    /// How many hours it shows first.
    pub hours: u32,
    /// Its panels.
    pub row: Vec<Row>,
}

impl Board {
    /// Its id in Grafana: the same for each release, so that links and bookmarks stay.
    #[must_use]
    pub fn uid(&self) -> String {
        format!("dualplane-{}", self.name)
    }
}

pub(crate) static TEXT: Block = include!(concat!(env!("OUT_DIR"), "/boards.rs"));

/// All boards; none only if the data do not parse, which the tests of this crate exclude.
#[must_use]
pub fn boards() -> &'static [Board] {
    static ALL: OnceLock<Vec<Board>> = OnceLock::new();
    ALL.get_or_init(|| serde_json::from_str(TEXT.text()).unwrap_or_default())
}

/// A board by its name or its uid.
///
/// # Errors
/// No board has this name; the fault names the nearest.
pub fn find(name: &str) -> Result<&'static Board, Fault> {
    let found = boards().iter().find(|b| b.name == name || b.uid() == name);
    found.ok_or_else(|| dualplane_alerts::unknown("board", name, boards().iter().map(|b| b.name.as_str())))
}
