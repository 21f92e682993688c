//! Flags of `rules`.

use clap::ValueEnum;

use super::Colour;

#[derive(Debug, clap::Args)]
pub(crate) struct RulesArgs {
    /// Engines that serve: vllm, sglang, tgi, tensorrt-llm, triton, llama.cpp, ray, or all
    #[arg(long, value_name = "ENGINE", value_delimiter = ',')]
    pub(crate) engine: Vec<String>,
    /// What else Prometheus scrapes: ksm (kube-state-metrics), cadvisor, dcgm, agent, or all
    #[arg(long, value_name = "SOURCE", value_delimiter = ',')]
    pub(crate) source: Vec<String>,
    /// These alerts only, with the recording rules that they read
    #[arg(long = "alert", value_name = "ID", value_delimiter = ',')]
    pub(crate) only: Vec<String>,
    /// Leave these alerts out
    #[arg(long, value_name = "ID", value_delimiter = ',')]
    pub(crate) disable: Vec<String>,
    /// Also these alerts, which are off by default
    #[arg(long, value_name = "ID", value_delimiter = ',')]
    pub(crate) enable: Vec<String>,
    /// Leave out the records that only `dashboards` reads
    #[arg(long)]
    pub(crate) without_dashboards: bool,
    /// How long a state must hold before it fires, for all alerts but events, for example 10m
    #[arg(long = "for", value_name = "DURATION")]
    pub(crate) hold: Option<String>,
    /// Set a threshold, for example host_memory_ratio=85%
    #[arg(long, value_name = "NAME=VALUE", value_parser = pair)]
    pub(crate) set: Vec<(String, String)>,
    /// Namespace of the PrometheusRule
    #[arg(short, long, value_name = "NS", value_parser = namespace)]
    pub(crate) namespace: Option<String>,
    /// A label of the PrometheusRule, such as the one by which your Prometheus selects rules
    #[arg(long, value_name = "NAME=VALUE", value_parser = label)]
    pub(crate) label: Vec<(String, String)>,
    /// Print tests for promtool instead, which read the rules from a file with this name
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = "rules.yaml", conflicts_with_all = ["set", "hold"])]
    pub(crate) tests: Option<String>,
    /// Explain an alert: what it means, its thresholds, its expression, its runbook
    #[arg(long, value_name = "ID")]
    pub(crate) explain: Option<String>,
    /// List all alerts, thresholds and recording rules
    #[arg(long)]
    pub(crate) list: bool,
    /// Output format
    #[arg(short, long, value_enum, default_value_t = RulesFormat::Yaml)]
    pub(crate) output: RulesFormat,
    /// When to use colour
    #[arg(long, value_enum, default_value_t = Colour::Auto, value_name = "WHEN")]
    pub(crate) color: Colour,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum RulesFormat {
    /// A rule file of Prometheus
    Yaml,
    /// A PrometheusRule of its operator
    Prometheusrule,
    /// Values of the chart kube-prometheus-stack
    Values,
    /// Lines for people
    Text,
    /// dualplane.rules/v1
    Json,
}

pub(super) fn pair(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("give NAME=VALUE")?;
    match name.is_empty() || value.is_empty() {
        true => Err("give NAME=VALUE".to_owned()),
        false => Ok((name.to_owned(), value.to_owned())),
    }
}

/// As the API server takes it (RFC 1123).
pub(super) fn namespace(text: &str) -> Result<String, String> {
    let inner = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let whole = text.len() <= 63 && text.chars().all(inner) && !text.starts_with('-') && !text.ends_with('-');
    match whole && !text.is_empty() {
        true => Ok(text.to_owned()),
        false => Err("give a name of lower-case letters, digits and dashes".to_owned()),
    }
}

/// As the API server takes it: a name may have a domain in front, and both are short.
fn label(text: &str) -> Result<(String, String), String> {
    let (name, value) = pair(text)?;
    let word = |t: &str| {
        let edge = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric());
        t.len() <= 63
            && t.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c))
            && edge(t.chars().next())
            && edge(t.chars().last())
    };
    let (domain, own) = name.split_once('/').unwrap_or(("a", &name));
    match word(own) && domain.split('.').all(|part| namespace(part).is_ok()) && word(&value) {
        true => Ok((name, value)),
        false => Err("a label has letters, digits, dashes, dots and underscores, 63 at most".to_owned()),
    }
}
