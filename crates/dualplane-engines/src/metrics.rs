//! What engines tell of themselves at a metrics port: how one is known, where to ask, and the few series that matter.
//!
//! A page of vLLM has some 2000 lines, of which 5 matter: names are compared, only the lines of those are parsed.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use serde::Deserialize;

use dualplane_base::metrics::sample;

use super::{Descriptor, Engines};

/// Series of one name that are taken: ranks and models of one engine are some tens.
const MAX_SERIES: usize = 512;
/// Longest name of a model that is kept, characters.
const LONGEST_MODEL: usize = 200;

/// `[engine.metrics]` of `knowledge/engines/NAME.toml`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Metrics {
    /// Name under which the agent tells of the engine, where that is not its id.
    label: Option<String>,
    ports: Vec<u16>,
    port_flags: Vec<String>,
    paths: Vec<String>,
    model_labels: Vec<String>,
    copies: Vec<String>,
    only_empty: Vec<String>,
    kv_use: Vec<Series>,
    running: Vec<Series>,
    waiting: Vec<Series>,
    preemptions: Vec<Series>,
    /// Tokens that the KV cache holds.
    kv_pool: Vec<PoolSeries>,
    /// Counter of tokens in prompts.
    prompt_tokens: Vec<Series>,
    /// Counter of tokens that were generated.
    generated_tokens: Vec<Series>,
    /// Tokens that the KV cache holds.
    pool_tokens: Vec<Series>,
    /// Counter of tokens of prompts that the prefix cache was asked for.
    prefix_asked: Vec<Series>,
    /// Counter of those that it had.
    prefix_had: Vec<Series>,
    /// More counters and gauges of preempted requests, which only stored series are searched for.
    preempted: Vec<String>,
    /// Counters of requests that failed.
    failed: Vec<String>,
    /// Histogram of the time to the first token, in seconds.
    first_token: Option<String>,
    /// Where it was read.
    source: String,
}

/// An engine that tells metrics.
#[derive(Debug)]
pub struct EngineMetrics {
    /// Name under which the agent tells of it: `vllm`.
    pub engine: &'static str,
    /// Where it listens unless told otherwise.
    pub ports: &'static [u16],
    /// Flags that tell otherwise.
    pub port_flags: &'static [String],
    /// Paths to ask, in this order.
    pub paths: &'static [String],
    descriptor: &'static Descriptor,
    metrics: &'static Metrics,
}

/// A series, or the quotient of two.
#[derive(Debug, Clone, Deserialize)]
struct Series {
    name: String,
    #[serde(default)]
    labels: BTreeMap<String, String>,
    #[serde(default)]
    over: Option<Box<Series>>,
    /// The number is the product of these labels, and what the series itself says is 1.
    #[serde(default)]
    product: Vec<String>,
}

/// Where an engine tells the size of its KV cache: as a value, as a number in a label, or as blocks times their tokens.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct PoolSeries {
    name: String,
    #[serde(default)]
    labels: BTreeMap<String, String>,
    /// Label with the number, where it is not the value.
    #[serde(default)]
    label: Option<String>,
    /// Label with the tokens of a block.
    #[serde(default)]
    block: Option<String>,
    /// The number counts blocks.
    #[serde(default)]
    in_blocks: bool,
    /// Series with the tokens of a block.
    #[serde(default)]
    block_series: Option<Series>,
}

/// Size of a KV cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KvPool {
    /// Tokens of all engines behind the page.
    pub tokens: u64,
    /// Tokens of the largest of them: no request can hold more.
    pub largest: u64,
    /// Tokens of a block, where it is told.
    pub block: Option<u64>,
}

impl Series {
    /// The name alone is the number.
    fn is_plain(&self) -> bool {
        self.over.is_none() && self.labels.is_empty() && self.product.is_empty()
    }

    /// A series of this name alone.
    const fn plain(name: String) -> Self {
        Self { name, labels: BTreeMap::new(), over: None, product: Vec::new() }
    }

    /// What a line of the page says of it.
    fn number(&self, point: &Point) -> Option<f64> {
        if self.product.is_empty() {
            return Some(point.value);
        }
        let factors = self.product.iter().map(|l| label(point, l)?.parse::<f64>().ok());
        factors.product::<Option<f64>>().filter(|n| n.is_finite() && *n >= 0.0)
    }
}

/// What a page told; `None` where it does not.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Counts {
    /// Name under which the model is served.
    pub model: Option<String>,
    /// Used share of the KV cache, 0 to 1.
    pub kv_use: Option<f64>,
    /// Running requests.
    pub running: Option<f64>,
    /// Waiting requests.
    pub waiting: Option<f64>,
    /// Preemptions since the engine started.
    pub preemptions: Option<f64>,
    /// Requests that got their first token since then.
    pub first_tokens: Option<f64>,
    /// Seconds that they waited for it, all together.
    pub first_token_seconds: Option<f64>,
    /// Tokens in prompts since then.
    pub prompt_tokens: Option<f64>,
    /// Tokens that were generated since then.
    pub generated_tokens: Option<f64>,
    /// Tokens that the KV cache holds.
    pub pool_tokens: Option<f64>,
    /// Tokens of prompts that the prefix cache was asked for since then.
    pub prefix_asked: Option<f64>,
    /// Those of them that it had.
    pub prefix_had: Option<f64>,
}

/// How the parts of one number become one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Join {
    Sum,
    Most,
}

/// A line of the page that is wanted.
struct Point {
    name: String,
    labels: Vec<(String, String)>,
    value: f64,
}

/// All engines that tell metrics.
#[must_use]
pub fn engines() -> &'static [EngineMetrics] {
    static ALL: OnceLock<Vec<EngineMetrics>> = OnceLock::new();
    ALL.get_or_init(|| Engines::embedded().iter().filter_map(EngineMetrics::of).collect())
}

/// What an engine says in `metrics`, else what its head says of its API.
const fn or<'a, T>(own: &'a [T], head: &'a [T]) -> &'a [T] {
    if own.is_empty() { head } else { own }
}

impl EngineMetrics {
    fn of(descriptor: &'static Descriptor) -> Option<Self> {
        let metrics = descriptor.metrics.as_ref()?;
        Some(Self {
            engine: metrics.label.as_deref().unwrap_or(&descriptor.id),
            ports: or(&metrics.ports, &descriptor.ports),
            port_flags: or(&metrics.port_flags, &descriptor.port_flags),
            paths: &metrics.paths,
            descriptor,
            metrics,
        })
    }

    /// A word of a command line or a process title names this engine.
    #[must_use]
    pub fn is_named_by(&self, word: &str) -> bool {
        self.descriptor.is_named_by(word)
    }

    /// As [`Metrics::names`].
    #[must_use]
    pub fn names(&self) -> [Option<&'static str>; 4] {
        self.metrics.names()
    }

    /// As [`Metrics::rate_names`].
    #[must_use]
    pub fn rate_names(&self) -> [Option<String>; 4] {
        self.metrics.rate_names()
    }

    /// As [`Metrics::read`].
    #[must_use]
    pub fn read(&self, page: &str) -> Option<Counts> {
        self.metrics.read(page)
    }

    /// As [`Metrics::kv_pool`].
    #[must_use]
    pub fn kv_pool(&self, page: &str) -> Option<KvPool> {
        self.metrics.kv_pool(page)
    }
}

impl Metrics {
    /// Where they are, `api` being where the API is.
    pub(super) fn ports_or<'a>(&'a self, api: &'a [u16]) -> &'a [u16] {
        or(&self.ports, api)
    }

    /// Under which names the numbers stand: share of the KV cache in use, requests that run, that wait, preemptions. `None`
    /// where the engine has none, or where the name alone would be another number: a quotient, one of several labels.
    #[must_use]
    pub fn names(&self) -> [Option<&str>; 4] {
        [&self.kv_use, &self.running, &self.waiting, &self.preemptions]
            .map(|all| all.first().filter(|s| s.is_plain()).map(|s| s.name.as_str()))
    }

    /// The same of what rates are made of: requests that got a first token, seconds that they waited for it, tokens of
    /// prompts, tokens that were generated.
    #[must_use]
    pub fn rate_names(&self) -> [Option<String>; 4] {
        let of = |all: &[Series]| all.first().filter(|s| s.is_plain()).map(|s| s.name.clone());
        let [count, sum] = self.first_token_series().map(|all| of(&all));
        [count, sum, of(&self.prompt_tokens), of(&self.generated_tokens)]
    }

    /// Count and sum of the histogram of the time to the first token.
    fn first_token_series(&self) -> [Vec<Series>; 2] {
        ["count", "sum"]
            .map(|part| self.first_token.iter().map(|name| Series::plain(format!("{name}_{part}"))).collect())
    }

    /// Name of the histogram of the time to the first token.
    #[must_use]
    pub fn first_token(&self) -> Option<&str> {
        self.first_token.as_deref()
    }

    /// Names of the share of the KV cache in use, of all releases.
    pub fn kv_use_names(&self) -> impl Iterator<Item = &str> {
        self.kv_use.iter().filter(|s| s.is_plain()).map(|s| s.name.as_str())
    }

    /// Names of what counts preempted requests, of all releases.
    pub fn preempted_names(&self) -> impl Iterator<Item = &str> {
        self.preemption_names().chain(self.preempted.iter().map(String::as_str))
    }

    /// Names of what counts failed requests, of all releases.
    pub fn failed_names(&self) -> impl Iterator<Item = &str> {
        self.failed.iter().map(String::as_str)
    }

    /// Names of the counter of preemptions, of all releases.
    pub fn preemption_names(&self) -> impl Iterator<Item = &str> {
        self.preemptions.iter().filter(|s| s.is_plain()).map(|s| s.name.as_str())
    }

    /// Names of the number of requests that run, of all releases.
    pub fn running_names(&self) -> impl Iterator<Item = &str> {
        self.running.iter().filter(|s| s.is_plain()).map(|s| s.name.as_str())
    }

    /// Names of the number of requests that wait, of all releases.
    pub fn waiting_names(&self) -> impl Iterator<Item = &str> {
        self.waiting.iter().filter(|s| s.is_plain()).map(|s| s.name.as_str())
    }

    /// Reads a page of metrics; `None` where it is not one of this engine.
    #[must_use]
    pub fn read(&self, page: &str) -> Option<Counts> {
        let [first_tokens, first_token_seconds] = &self.first_token_series();
        let gauges = [&self.kv_use, &self.running, &self.waiting, &self.preemptions];
        let rates = [first_tokens, first_token_seconds, &self.prompt_tokens, &self.generated_tokens];
        let cache = [&self.pool_tokens, &self.prefix_asked, &self.prefix_had];
        let fields = gauges.into_iter().chain(rates).chain(cache);
        let all = fields.flatten();
        let names: Vec<&str> = all
            .flat_map(|s| [Some(s.name.as_str()), s.over.as_ref().map(|o| o.name.as_str())])
            .flatten()
            .collect();
        let points = points(page, &names);
        if points.is_empty() {
            return None;
        }
        let of = |series: &[Series], join| series.iter().find_map(|s| self.value(s, join, &points));
        // Of Triton's models the one that has a KV cache, not the pipeline around it: names stand in the order of the fields.
        let by_field = names.iter().flat_map(|n| points.iter().filter(move |p| p.name == **n));
        let model = by_field.into_iter().find_map(|p| self.model_labels.iter().find_map(|l| label(p, l)));
        Some(Counts {
            model: model.filter(|m| !m.is_empty()).map(|m| m.chars().take(LONGEST_MODEL).collect()),
            kv_use: of(&self.kv_use, Join::Most),
            running: of(&self.running, Join::Sum),
            waiting: of(&self.waiting, Join::Sum),
            preemptions: of(&self.preemptions, Join::Sum),
            first_tokens: of(first_tokens, Join::Sum),
            first_token_seconds: of(first_token_seconds, Join::Sum),
            prompt_tokens: of(&self.prompt_tokens, Join::Sum),
            generated_tokens: of(&self.generated_tokens, Join::Sum),
            pool_tokens: of(&self.pool_tokens, Join::Sum),
            prefix_asked: of(&self.prefix_asked, Join::Sum),
            prefix_had: of(&self.prefix_had, Join::Sum),
        })
    }

    /// The size of the KV cache; `None` where the page does not tell it.
    #[must_use]
    pub fn kv_pool(&self, page: &str) -> Option<KvPool> {
        let blocks = self.kv_pool.iter().filter_map(|s| s.block_series.as_ref()).map(|s| s.name.as_str());
        let names: Vec<&str> = self.kv_pool.iter().map(|s| s.name.as_str()).chain(blocks).collect();
        let points = points(page, &names);
        self.kv_pool.iter().find_map(|s| self.pool_of(s, &points))
    }

    fn pool_of(&self, series: &PoolSeries, points: &[Point]) -> Option<KvPool> {
        let in_label = |p: &Point, key: &Option<String>| label(p, key.as_deref()?)?.parse::<f64>().ok();
        let mut block = series.block_series.as_ref().and_then(|s| self.value(s, Join::Most, points));
        let mut parts: BTreeMap<Vec<(&str, &str)>, f64> = BTreeMap::new();
        for p in points.iter().filter(|p| p.name == series.name) {
            let narrowed = series.labels.iter().all(|(k, v)| label(p, k) == Some(v));
            let number = if series.label.is_some() { in_label(p, &series.label) } else { Some(p.value) };
            let Some(number) = number.filter(|n| narrowed && n.is_finite() && *n > 0.0) else { continue };
            block = in_label(p, &series.block).or(block);
            let tokens = if series.in_blocks { number * block? } else { number };
            let told = p.labels.iter().filter(|(k, _)| !self.copies.contains(k));
            let part = parts.entry(told.map(|(k, v)| (k.as_str(), v.as_str())).collect()).or_insert(tokens);
            *part = part.max(tokens);
        }
        // Whole numbers of a page; what is larger than 2^53 is no size of a cache.
        let whole = |n: f64| format!("{n:.0}").parse::<u64>().ok();
        Some(KvPool {
            tokens: whole(parts.values().copied().reduce(|a, b| a + b)?)?,
            largest: whole(parts.values().copied().reduce(f64::max)?)?,
            block: block.and_then(whole).filter(|b| *b > 0),
        })
    }

    fn value(&self, series: &Series, join: Join, points: &[Point]) -> Option<f64> {
        // What a rank tells again is one part; the highest is taken, as ranks are scraped at slightly different times.
        let mut parts: BTreeMap<Vec<(&str, &str)>, f64> = BTreeMap::new();
        for p in points.iter().filter(|p| p.name == series.name) {
            let narrowed = series.labels.iter().all(|(k, v)| label(p, k) == Some(v));
            let whole = self.only_empty.iter().all(|k| label(p, k).is_none_or(str::is_empty));
            if !narrowed || !whole {
                continue;
            }
            let told = p.labels.iter().filter(|(k, _)| !self.copies.contains(k));
            let key = told.map(|(k, v)| (k.as_str(), v.as_str())).collect();
            let Some(number) = series.number(p) else { continue };
            let part = parts.entry(key).or_insert(number);
            *part = part.max(number);
        }
        let value = match join {
            Join::Sum => parts.values().copied().reduce(|a, b| a + b),
            Join::Most => parts.values().copied().reduce(f64::max),
        }?;
        match &series.over {
            None => Some(value),
            Some(over) => self.value(over, join, points).filter(|o| *o > 0.0).map(|o| value / o),
        }
    }
}

fn label<'p>(point: &'p Point, key: &str) -> Option<&'p str> {
    point.labels.iter().find(|(k, _)| k == key).map(|(_, v)| v.as_str())
}

fn points(page: &str, names: &[&str]) -> Vec<Point> {
    let mut out: Vec<Point> = Vec::new();
    for line in page.lines() {
        let wanted =
            |name: &&&str| line.strip_prefix(**name).is_some_and(|rest| rest.starts_with(['{', ' ', '\t']));
        if names.iter().find(wanted).is_none() {
            continue;
        }
        let Some((name, labels, value, _)) = sample(line) else { continue };
        if value.is_finite() && value >= 0.0 && out.len() < MAX_SERIES {
            out.push(Point { name: name.to_owned(), labels, value });
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn engine(name: &str) -> &'static EngineMetrics {
        engines().iter().find(|e| e.engine == name).unwrap()
    }

    #[test]
    fn engines_by_words() {
        let named = |word: &str| {
            engines().iter().filter(|e| e.is_named_by(word)).map(|e| e.engine).collect::<Vec<_>>()
        };
        assert_eq!(named("/usr/local/bin/vllm"), ["vllm"]);
        assert_eq!(named("vllm.entrypoints.openai.api_server"), ["vllm"]);
        assert_eq!(named("VLLM::EngineCore_DP0"), ["vllm"]);
        assert_eq!(named("sglang::scheduler_TP0"), ["sglang"]);
        assert_eq!(named("/app/llama-server"), ["llama.cpp"]);
        assert_eq!(named("text-generation-router"), ["tgi"]);
        for no in ["vllmx", "python3", "", "é", "/vllm/"] {
            assert!(named(no).is_empty(), "{no}");
        }
    }

    #[test]
    fn the_size_of_a_kv_cache() {
        let pool =
            |name: &str, page: &str| engine(name).kv_pool(page).map(|p| (p.tokens, p.largest, p.block));
        let info = "vllm:cache_config_info{block_size=\"16\",engine=\"0\",num_gpu_blocks=\"100\"} 1.0\n\
            vllm:cache_config_info{block_size=\"16\",engine=\"1\",num_gpu_blocks=\"50\"} 1.0\n";
        assert_eq!(pool("vllm", info), Some((2400, 1600, Some(16))));
        let told = "vllm:cache_config_info{block_size=\"16\",kv_cache_size_tokens=\"1500\",num_gpu_blocks=\"100\"} 1.0\n";
        assert_eq!(
            pool("vllm", told),
            Some((1500, 1500, Some(16))),
            "groups of layers hold less than blocks say"
        );
        assert_eq!(
            pool("vllm", "vllm:cache_config_info{block_size=\"16\",num_gpu_blocks=\"None\"} 1.0\n"),
            None
        );
        let ranks = "sglang:max_total_num_tokens{tp_rank=\"0\"} 900\nsglang:max_total_num_tokens{tp_rank=\"1\"} 900\n";
        assert_eq!(pool("sglang", ranks), Some((900, 900, None)), "ranks hold the same tokens");
        let blocks = "nv_trt_llm_kv_cache_block_metrics{kv_cache_block_type=\"max\",model=\"m\"} 400\n\
            nv_trt_llm_kv_cache_block_metrics{kv_cache_block_type=\"tokens_per\",model=\"m\"} 64\n";
        assert_eq!(pool("triton", blocks), Some((25_600, 25_600, Some(64))));
        assert_eq!(pool("tgi", "tgi_batch_max_total_tokens 5000\n"), Some((5000, 5000, None)));
    }

    #[test]
    fn pages_of_others_garbage_and_floods() {
        let vllm = engine("vllm");
        assert_eq!(vllm.read("# HELP x\nprocess_cpu_seconds_total 3\n"), None);
        assert_eq!(vllm.read("<html>vllm:kv_cache_usage_perc 0.3</html>"), None);
        assert_eq!(vllm.read("vllm:num_requests_running_max 3\n"), None, "a longer name is another one");
        assert_eq!(vllm.read("vllm:num_requests_running NaN\n"), None);
        assert_eq!(vllm.read("vllm:num_requests_running{a=\"b 1\n"), None);
        let page = "vllm:num_requests_running 1\nvllm:kv_cache_usage_perc 2e999\n";
        let counts = vllm.read(page).unwrap();
        assert_eq!((counts.running, counts.kv_use), (Some(1.0), None));
        let flood: String =
            (0..5000).map(|i| format!("vllm:num_requests_running{{e=\"{i}\"}} 1\n")).collect();
        assert_eq!(vllm.read(&flood).unwrap().running, Some(MAX_SERIES as f64));
        let rates = "vllm:time_to_first_token_seconds_sum{engine=\"0\"} 3.5\nvllm:time_to_first_token_seconds_count{engine=\"0\"} 7\n\
            vllm:time_to_first_token_seconds_sum{engine=\"1\"} 1.5\nvllm:time_to_first_token_seconds_count{engine=\"1\"} 3\n\
            vllm:prompt_tokens_total{engine=\"0\"} 900\nvllm:generation_tokens_total{engine=\"0\"} 40\n";
        let counts = vllm.read(rates).unwrap();
        assert_eq!((counts.first_tokens, counts.first_token_seconds), (Some(10.0), Some(5.0)));
        assert_eq!(
            (counts.prompt_tokens, counts.generated_tokens, counts.running),
            (Some(900.0), Some(40.0), None)
        );
        let names = vllm.rate_names();
        assert_eq!(names[1].as_deref(), Some("vllm:time_to_first_token_seconds_sum"));
        assert_eq!(engine("tei").rate_names(), [const { None }; 4]);
        let long = format!("vllm:num_requests_running{{model_name=\"{}\"}} 1", "m".repeat(9000));
        assert_eq!(vllm.read(&long).unwrap().model.unwrap().len(), LONGEST_MODEL);
    }
}
