//! Flags of `measure`.

use std::path::PathBuf;

use clap::ValueEnum;
use clap::builder::PossibleValuesParser;
use dualplane_gate::document::{Cost, Slo};
use dualplane_shape::names;

use super::Colour;

#[derive(Debug, clap::Args)]
pub(crate) struct MeasureArgs {
    /// OpenAI-compatible server to drive, for example http://10.0.0.7:8000 (its key in the file that
    /// $DUALPLANE_ENGINE_TOKEN_FILE names)
    #[arg(long, value_name = "URL", required_unless_present = "command", help_heading = "Load")]
    pub(crate) target: Option<String>,
    /// Requests as a file says them (`dualplane profile` writes it)
    #[arg(long, value_name = "FILE", conflicts_with = "traffic", help_heading = "Load")]
    pub(crate) shape: Option<PathBuf>,
    /// Requests of a named shape
    #[arg(long, value_name = "NAME", value_parser = PossibleValuesParser::new(names()), help_heading = "Load")]
    pub(crate) traffic: Option<String>,
    /// Requests per second, instead of the shape's: an open loop
    #[arg(long, value_name = "N", value_parser = super::profile::rate, conflicts_with = "concurrency", help_heading = "Load")]
    pub(crate) rate: Option<f64>,
    /// Requests at once, each begun when one ends: a closed loop
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=16_000), help_heading = "Load")]
    pub(crate) concurrency: Option<u64>,
    /// What the load does over its time
    #[arg(long, value_enum, default_value_t = LoadPattern::Steady, value_name = "PATTERN", help_heading = "Load")]
    pub(crate) pattern: LoadPattern,
    /// How long, for example 60s, 10m or 8h
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = time, help_heading = "Load")]
    pub(crate) duration: f64,
    /// Requests, at most
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..), help_heading = "Load")]
    pub(crate) requests: Option<u64>,
    /// Time at the beginning that does not count
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = time, help_heading = "Load")]
    pub(crate) warmup: f64,
    /// Where the chance begins: the same seed sends the same requests
    #[arg(long, value_name = "N", default_value_t = 1, help_heading = "Load")]
    pub(crate) seed: u64,
    /// Search for the most requests at once that stay safe: in the SLO, without preemption, with 10 % of both planes free
    #[arg(long, conflicts_with_all = ["rate", "command"], help_heading = "Load")]
    pub(crate) search: bool,
    /// Measure so many times
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100),
        conflicts_with = "search", help_heading = "Load")]
    pub(crate) runs: u32,
    /// Model to ask for [default: the first that the server lists]
    #[arg(long, value_name = "NAME", help_heading = "Load")]
    pub(crate) model: Option<String>,
    /// Which of the server's routes is asked
    #[arg(long, value_enum, default_value_t = ApiKind::Chat, value_name = "ROUTE", help_heading = "Load")]
    pub(crate) api: ApiKind,
    /// Ask without fields that only engines know (ignore_eos, min_tokens): answers may end early
    #[arg(long, help_heading = "Load")]
    pub(crate) plain: bool,
    /// Cut requests to so many tokens, prompt and answer together [default: what the server says it takes]
    #[arg(long, value_name = "TOKENS", value_parser = clap::value_parser!(u64).range(2..), help_heading = "Load")]
    pub(crate) longest: Option<u64>,
    /// Seconds of a request after which it failed
    #[arg(long, value_name = "TIME", default_value = "10m", value_parser = time, help_heading = "Load")]
    pub(crate) request_timeout: f64,
    /// Where the load tool writes its results: a file or a folder [default: where its command line says]
    #[arg(long, value_name = "PATH", requires = "command", help_heading = "Load")]
    pub(crate) results: Option<PathBuf>,

    /// Start this server, measure its start as well, and end it afterwards; a line for the shell
    #[arg(long, value_name = "COMMAND", conflicts_with_all = ["pid", "cgroup"], help_heading = "Server")]
    pub(crate) serve: Option<String>,
    /// How long a server may take to start
    #[arg(long, value_name = "TIME", default_value = "15m", value_parser = time, help_heading = "Server")]
    pub(crate) start_timeout: f64,
    /// Wait so long until the server at --target answers: pods that were just replaced, say
    #[arg(long, value_name = "TIME", value_parser = time, requires = "target", conflicts_with = "serve", help_heading = "Server")]
    pub(crate) wait: Option<f64>,
    /// A process of the server on this machine: its cgroup and cards are read each second
    #[arg(long, value_name = "PID", help_heading = "Server")]
    pub(crate) pid: Option<u32>,
    /// Its cgroup on this machine, a path below the memory controller
    #[arg(long, value_name = "PATH", help_heading = "Server")]
    pub(crate) cgroup: Option<String>,
    /// The server's log, for triage where it dies [default with --serve: a file in the temporary folder]
    #[arg(long, value_name = "FILE", help_heading = "Server")]
    pub(crate) log: Option<PathBuf>,
    /// The engine's page of metrics [default: /metrics of --target]
    #[arg(long, value_name = "URL", help_heading = "Server")]
    pub(crate) metrics: Option<String>,
    /// An agent of dualplane on the server's node, for example http://10.0.0.7:9464
    #[arg(long, value_name = "URL", requires = "pod", group = "elsewhere", conflicts_with_all = ["serve", "pid", "cgroup"], help_heading = "Server")]
    pub(crate) agent: Option<String>,
    /// Prometheus, or what speaks its API: both planes of the pod as it scraped them, where nothing of the server can be read
    /// from here (its token in the file that $DUALPLANE_PROMETHEUS_TOKEN_FILE names)
    #[arg(long, value_name = "URL", requires = "pod", group = "elsewhere", conflicts_with_all = ["serve", "pid", "cgroup"], help_heading = "Server")]
    pub(crate) prometheus: Option<String>,
    /// With --agent or --prometheus: which pod, and which container of it
    #[arg(long, value_name = "NAMESPACE/POD[/CONTAINER]", value_parser = pod, requires = "elsewhere", help_heading = "Server")]
    pub(crate) pod: Option<String>,
    /// Play cards from a table instead of reading the driver
    #[arg(long, value_name = "FILE", hide = true)]
    pub(crate) gpu_table: Option<PathBuf>,

    /// What counts as a good request, for example ttft=1s,itl=50ms,e2e=20s
    #[arg(long, value_name = "BOUNDS", value_parser = slo, help_heading = "Report")]
    pub(crate) slo: Option<Slo>,
    /// Price of the hardware by the hour, for example 4.10 or 4.10EUR
    #[arg(long, value_name = "PRICE", value_parser = price, help_heading = "Report")]
    pub(crate) price: Option<Cost>,
    /// Name of this build: a tag or a commit
    #[arg(long, value_name = "NAME", help_heading = "Report")]
    pub(crate) build: Option<String>,
    /// Write the report to a file too, by its ending: .json, .html, .md or .txt; may be given again
    #[arg(long, value_name = "FILE", help_heading = "Report")]
    pub(crate) out: Vec<PathBuf>,
    /// Output format
    #[arg(short, long, value_enum, default_value_t = MeasureFormat::Text, help_heading = "Report")]
    pub(crate) output: MeasureFormat,
    /// When to use colour
    #[arg(long, value_enum, default_value_t = Colour::Auto, value_name = "WHEN", help_heading = "Report")]
    pub(crate) color: Colour,
    /// Team's own knowledge for triage
    #[arg(long, value_name = "DIR", help_heading = "Report")]
    pub(crate) knowledge: Option<PathBuf>,
    /// The load tool to run instead: guidellm, aiperf, vllm bench serve, genai-bench, k6, locust, with all its flags
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum LoadPattern {
    /// The shape as it is
    Steady,
    /// From a tenth of the load to twice of it
    Ramp,
    /// Four times the load for a tenth of each minute (of a fifth of the time, where that is shorter)
    Burst,
    /// Between 30 and 50 % of the time, all prompts are as long as the longest hundredth
    LongPrompts,
    /// Between 30 and 50 % of the time, nine of ten clients go away
    CancelStorm,
    /// As steady, for hours: what counts is the drift
    Soak,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ApiKind {
    /// /v1/chat/completions
    Chat,
    /// /v1/completions
    Completions,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum MeasureFormat {
    /// For a terminal
    Text,
    /// dualplane.measure/v1
    Json,
    /// For a pull request
    Markdown,
    /// A page with plots of both planes on one clock; loads nothing from elsewhere
    Html,
}

/// A time: `50ms`, `1.5s`, `10m`, `8h`; a number alone is seconds.
pub(super) fn time(text: &str) -> Result<f64, String> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at_checked(end).unwrap_or((text, ""));
    let scale = match unit {
        "ms" => 1e-3,
        "" | "s" => 1.0,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        "d" => 86_400.0,
        _ => f64::NAN,
    };
    let n = number
        .parse::<f64>()
        .ok()
        .map(|n| n * scale)
        .filter(|n| n.is_finite() && *n >= 0.0 && *n <= 31_536_000.0);
    n.ok_or_else(|| "give a time such as 50ms, 30s, 10m or 8h".to_owned())
}

/// `NAMESPACE/POD` or `NAMESPACE/POD/CONTAINER`, by the letters that Kubernetes allows: they stand in queries.
fn pod(text: &str) -> Result<String, String> {
    let parts: Vec<&str> = text.split('/').collect();
    let name = |p: &&str| {
        !p.is_empty() && p.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || "-.".contains(c))
    };
    let valid = (2..=3).contains(&parts.len()) && parts.iter().all(name);
    valid.then(|| text.to_owned()).ok_or_else(|| "give NAMESPACE/POD or NAMESPACE/POD/CONTAINER".to_owned())
}

fn slo(text: &str) -> Result<Slo, String> {
    let mut slo = Slo::default();
    for part in text.split(',') {
        let (name, value) = part.split_once('=').ok_or("give bounds such as ttft=1s,itl=50ms,e2e=20s")?;
        let value = Some(time(value.trim())?).filter(|v| *v > 0.0);
        match name.trim() {
            "ttft" => slo.ttft_seconds = value,
            "itl" | "tpot" => slo.itl_seconds = value,
            "e2e" => slo.e2e_seconds = value,
            other => return Err(format!("`{other}` is no bound; there are ttft, itl and e2e")),
        }
    }
    Ok(slo)
}

fn price(text: &str) -> Result<Cost, String> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, currency) = text.split_at_checked(end).unwrap_or((text, ""));
    let currency = currency.trim();
    let named =
        currency.is_empty() || (currency.len() == 3 && currency.chars().all(|c| c.is_ascii_uppercase()));
    let per_hour = number.parse::<f64>().ok().filter(|p| p.is_finite() && *p > 0.0 && named);
    let per_hour = per_hour.ok_or("give a price by the hour such as 4.10 or 4.10EUR")?;
    Ok(Cost { per_hour, currency: if currency.is_empty() { "USD".into() } else { currency.into() } })
}
