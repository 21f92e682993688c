//! `dualplane guard`: a proxy before model servers that lets neither memory plane overflow.

use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use dualplane_base::text::{counted, printable};
use dualplane_base::units::Bytes;
use dualplane_guard::config::{Checked, Config, ConfigError, ServerConfig, TracesConfig};
use dualplane_guard::page::Labels;
use dualplane_guard::serve::{self, Options, ServeError};
use dualplane_guard::status::{SCHEMA, Status};
use dualplane_guard::tokenizer::TokenizerConfig;

use super::Failure;
use crate::args::{GuardArgs, GuardCommand, GuardFormat, GuardServeArgs};
use crate::exit::{self, Code};
use crate::output;

/// For an answer of a guard on this machine or in this cluster.
const WITHIN: Duration = Duration::from_secs(5);
/// A status of 200 tenants has some 30 KiB.
const MAX_STATUS: u64 = 4 << 20;

pub(crate) fn run(args: &GuardArgs) -> Result<Code, Failure> {
    match &args.command {
        Some(GuardCommand::Check { config }) => {
            let checked = Config::read(config).and_then(Config::check).map_err(|e| failure(config, e))?;
            output::write(&summary(&checked))?;
            Ok(exit::OK)
        }
        Some(GuardCommand::Status { admin, output }) => status(admin, *output),
        None => serve(&args.serve),
    }
}

fn failure(path: &Path, e: ConfigError) -> Failure {
    match e {
        ConfigError::Unreadable { path, source } => Failure::Unreadable { path, source },
        ConfigError::Syntax { path, why } => Failure::OwnConfig { path, why },
        ConfigError::Value { .. } => Failure::OwnConfig { path: path.to_owned(), why: e.to_string() },
    }
}

fn configured(args: &GuardServeArgs) -> Result<Checked, ConfigError> {
    let mut config = match &args.config {
        Some(path) => Config::read(path)?,
        None => Config {
            server: args
                .upstream
                .iter()
                .map(|url| ServerConfig {
                    cgroup: args.cgroup.clone(),
                    agent: args.agent.clone(),
                    container: args.container.clone(),
                    tokenize: args.tokenize,
                    ..ServerConfig::at(url)
                })
                .collect(),
            tokenizer: args
                .tokenizer
                .iter()
                .map(|file| TokenizerConfig { file: file.clone(), models: Vec::new() })
                .collect(),
            ..Config::default()
        },
    };
    // What the command line says goes before the file.
    if let Some(listen) = &args.listen {
        config.listen.clone_from(listen);
    }
    if let Some(admin) = &args.admin {
        config.admin.clone_from(admin);
    }
    if let Some(log) = &args.access_log {
        config.access_log.clone_from(log);
    }
    if let Some(endpoint) = &args.traces {
        config.traces = Some(match config.traces.take() {
            Some(said) => TracesConfig { endpoint: endpoint.clone(), ..said },
            None => TracesConfig::to(endpoint),
        });
    }
    config.shadow |= args.shadow;
    config.check()
}

fn serve(args: &GuardServeArgs) -> Result<Code, Failure> {
    // Each stream takes two descriptors.
    let _ = dualplane_node::descriptors::raise();
    let path = args.config.clone().unwrap_or_default();
    let checked = configured(args).map_err(|e| match args.config {
        Some(_) => failure(&path, e),
        None => match e {
            ConfigError::Value { key, why } if key.starts_with("traces") => {
                Failure::Flag { flag: "--traces", why }
            }
            ConfigError::Value { key, why } if key.starts_with("tokenizer") => {
                Failure::Flag { flag: "--tokenizer", why }
            }
            e => Failure::Flag { flag: "--upstream", why: e.to_string() },
        },
    })?;
    let labels = [("node", &args.node), ("namespace", &args.namespace), ("pod", &args.pod)];
    let labels = labels.into_iter().filter_map(|(k, v)| Some((k, v.clone()?))).collect();
    let again = args.config.is_some().then(|| {
        let args = args.again();
        Box::new(move || configured(&args)) as Box<dyn Fn() -> Result<Checked, ConfigError> + Send>
    });
    let options = Options {
        labels: Labels(labels),
        reload: again,
        say: Arc::new(|line: &str| output::log(&format!("dualplane guard: {}", printable(line)))),
    };
    serve::run(checked, options).map_err(|e| match e {
        ServeError::Bind { .. } | ServeError::Inherit(_) | ServeError::Tls(_) => {
            Failure::Online { what: "guard".into(), why: e.to_string() }
        }
        ServeError::Log { path, source } => Failure::Unwritable { path, source },
        ServeError::Start(source) => Failure::Runtime(source),
    })?;
    Ok(exit::OK)
}

impl GuardServeArgs {
    /// What a reload needs of them.
    fn again(&self) -> Self {
        Self {
            config: self.config.clone(),
            upstream: Vec::new(),
            listen: self.listen.clone(),
            admin: self.admin.clone(),
            shadow: self.shadow,
            tokenizer: None,
            tokenize: false,
            cgroup: None,
            agent: None,
            container: None,
            access_log: self.access_log.clone(),
            traces: self.traces.clone(),
            node: None,
            namespace: None,
            pod: None,
        }
    }
}

/// What a configuration that was checked says.
fn summary(checked: &Checked) -> String {
    let mut out = String::new();
    let shadow = if checked.config.shadow { ", counts only (shadow)" } else { "" };
    let _ = writeln!(
        out,
        "ok: listens on {}, {}{shadow}",
        checked.listen.map_or_else(|| "its standard input".to_owned(), |a| a.to_string()),
        match (checked.targets.len(), checked.services.len()) {
            (n, 0) => counted(n, "server"),
            (0, m) => counted(m, "service"),
            (n, m) => format!("{}, {}", counted(n, "server"), counted(m, "service")),
        }
    );
    for s in &checked.services {
        let port = if s.wanted.port.is_empty() { "their only port" } else { &s.wanted.port };
        let _ =
            writeln!(out, "  {}: its pods at {port}, by the EndpointSlices at {}", s.name, s.wanted.api.url);
    }
    for t in &checked.targets {
        let kv = match (t.said.unpaged, t.said.kv_tokens) {
            (true, _) => "memory learnt by the shape of requests".to_owned(),
            (false, Some(n)) => format!("KV cache of {n} tokens"),
            (false, None) => {
                let most = checked.config.admission.unknown_requests;
                format!(
                    "KV cache by its metrics; until they tell it, at most {} at a time",
                    counted(most, "request")
                )
            }
        };
        let host = match (&t.said.cgroup, &t.said.agent) {
            (Some(path), _) => format!("host RAM by {path}"),
            (None, Some(_)) => "host RAM by the agent".to_owned(),
            (None, None) => "host RAM not watched".to_owned(),
        };
        let _ = writeln!(out, "  {}: {kv}; {host}", printable(&t.name));
    }
    for t in &checked.config.tokenizer {
        let whose = if t.models.is_empty() { "all models".into() } else { t.models.join(", ") };
        let _ = writeln!(out, "  prompts of {}: counted by {}", printable(&whose), t.file.display());
    }
    out
}

fn status(admin: &str, format: GuardFormat) -> Result<Code, Failure> {
    let admin = admin.strip_prefix("http://").unwrap_or(admin).trim_end_matches('/');
    let admin = if admin.starts_with(':') { format!("127.0.0.1{admin}") } else { admin.to_owned() };
    let url = format!("http://{admin}/status");
    let failed = |why: String| Failure::Online { what: format!("no status of a guard at {url}"), why };
    let agent: ureq::Agent = ureq::Agent::config_builder()
        .timeout_global(Some(WITHIN))
        .http_status_as_error(false)
        .proxy(None)
        .max_redirects(0)
        .build()
        .into();
    let mut answer = agent.get(&url).call().map_err(|e| failed(e.to_string()))?;
    let text = answer
        .body_mut()
        .with_config()
        .limit(MAX_STATUS)
        .read_to_string()
        .map_err(|e| failed(e.to_string()))?;
    let status: Status =
        serde_json::from_str(&text).map_err(|_| failed("what answers is no guard".into()))?;
    if status.schema != SCHEMA {
        return Err(failed(format!(
            "it answers {}, and this version reads {SCHEMA}",
            printable(&status.schema)
        )));
    }
    match format {
        GuardFormat::Json => output::write(&format!("{}\n", serde_json::to_string_pretty(&status)?))?,
        GuardFormat::Text => output::write(&table(&status))?,
    }
    Ok(exit::OK)
}

fn table(s: &Status) -> String {
    let mut out = String::new();
    let mode = match (s.draining, s.shadow) {
        (true, _) => ", draining",
        (false, true) => ", shadow mode",
        (false, false) => "",
    };
    let _ = writeln!(
        out,
        "guard {}, up {:.0} s{mode}: {} under way",
        printable(&s.version),
        s.up_seconds,
        counted(s.under_way, "request")
    );
    for server in &s.servers {
        let engine = server.engine.as_deref().map_or(String::new(), |e| format!(" ({})", printable(e)));
        let up = match (server.up, &server.last_death) {
            (true, _) => "up".to_owned(),
            (false, None) => "down".to_owned(),
            (false, Some(why)) => format!("down: {}", printable(why)),
        };
        let _ = writeln!(out, "\n{}{engine}: {up}, {} running", printable(&server.name), server.running);
        match (server.kv_tokens, server.kv_cap) {
            (Some(all), Some(cap)) => {
                let used = server.kv_use.map_or(String::new(), |u| format!(", used {:.0} %", u * 100.0));
                let _ = writeln!(
                    out,
                    "  KV cache   {} of {cap} tokens given out, {all} in all{used}",
                    server.kv_held
                );
            }
            _ => {
                let _ = writeln!(
                    out,
                    "  KV cache   size not known: set kv_tokens, or let the server tell metrics"
                );
            }
        }
        match (server.host_held, server.host_limit) {
            (Some(held), Some(limit)) => {
                let free = server.host_free.map_or(String::new(), |f| format!(", {} for more", Bytes(f)));
                let _ = writeln!(out, "  host RAM   {} of {} held{free}", Bytes(held), Bytes(limit));
            }
            (Some(held), None) => {
                let _ = writeln!(out, "  host RAM   {} held, no limit", Bytes(held));
            }
            _ => {
                let why = server.host_trouble.as_deref().unwrap_or("not read yet");
                let _ = writeln!(out, "  host RAM   not watched: {}", printable(why));
            }
        }
        if let Some(cause) = &server.cause {
            let _ =
                writeln!(out, "  budget     {:.0} % because of {}", server.share * 100.0, printable(cause));
        }
    }
    for service in &s.services {
        let known = match service.servers {
            None => "not heard of yet".to_owned(),
            Some(n) => counted(n, "server"),
        };
        let idle = if service.idle > 0 { format!(", {} not ready", service.idle) } else { String::new() };
        let trouble = service.trouble.as_deref().map_or(String::new(), |t| format!("; {}", printable(t)));
        let _ = writeln!(out, "\nservice {}: {known}{idle}{trouble}", printable(&service.name));
    }
    for pool in s.pools.iter().filter(|p| p.waiting > 0) {
        let _ = writeln!(
            out,
            "\nqueue {}: {} of {} tokens",
            printable(&pool.name),
            counted(pool.waiting, "request"),
            pool.tokens
        );
    }
    if !s.tenants.is_empty() {
        let _ = writeln!(out, "\nTENANT                RUNNING  WAITING  KV TOKENS");
        for t in &s.tenants {
            let _ = writeln!(
                out,
                "{:<20}  {:>7}  {:>7}  {:>9}",
                printable(&t.name),
                t.running,
                t.waiting,
                t.kv_held
            );
        }
    }
    for model in &s.other_tokenizer {
        let _ = writeln!(
            out,
            "\ntokenizer of {}: not used, as its server counts otherwise; give the tokenizer.json of that model",
            if model.is_empty() { "requests without a model".into() } else { printable(model) }
        );
    }
    for (title, all) in [("refused", &s.refused), ("would have", &s.would)] {
        if !all.is_empty() {
            let list: Vec<String> = all.iter().map(|(w, n)| format!("{} {n}", printable(w))).collect();
            let _ = writeln!(out, "\n{title}: {}", list.join(", "));
        }
    }
    out
}
