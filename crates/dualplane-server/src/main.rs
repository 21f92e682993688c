//! The command line of `dualplane-server`.

use std::io::{self, Write};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use clap::{ArgGroup, Args, Parser, Subcommand, ValueEnum};
use dualplane_guard::config::Tls;
use dualplane_server::app::Say;
use dualplane_server::auth::{oidc, sha256};
use dualplane_server::config::{Kubernetes, Options};
use dualplane_server::ingest::shelf::Place;
use dualplane_server::notify::config::Config;
use dualplane_server::serve::{ServeError, run};
use dualplane_server::watch::Watch;
use dualplane_server::{api, demo, notify};
use ring::rand::SecureRandom;

/// Keeps the incidents of a fleet and shows them.
///
/// Agents, CI and people send what `dualplane triage -o json` prints, or bundles, which are judged here. Without a database it
/// keeps everything in one folder.
#[derive(Debug, Parser)]
#[command(name = "dualplane-server", version, max_term_width = 100, disable_help_subcommand = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Serve until a signal ends it
    Serve(Box<Serve>),
    /// Serve recorded incidents on this machine, to look around
    Demo {
        /// Where to listen; only this machine can be given
        #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8377")]
        listen: SocketAddr,
    },
    /// Send a sample to each channel of a file of --notify
    Notify {
        /// The file
        file: PathBuf,
        /// Print what would be sent, and send nothing
        #[arg(long)]
        dry_run: bool,
    },
    /// Make a token and print the lines for the file of --tokens
    Token {
        /// Whose it is: stands in the audit log
        name: String,
        /// What it may do
        #[arg(long, value_enum, default_value = "read")]
        role: Role,
        /// NAMESPACE, CLUSTER/NAMESPACE or CLUSTER/*; all where none is given
        #[arg(long, value_name = "NAMESPACE")]
        namespace: Vec<String>,
    },
    /// Print the OpenAPI document of the API
    Openapi,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Role {
    /// Send incidents and bundles
    Upload,
    /// Read
    Read,
    /// Both
    Admin,
}

#[derive(Debug, Args)]
#[command(group = ArgGroup::new("of_cluster").multiple(true))]
struct Serve {
    /// Where to listen; beyond this machine only with tokens and TLS
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8377")]
    listen: SocketAddr,
    /// Folder of the database, the bundles and the audit log
    #[arg(long, value_name = "DIR", default_value = "dualplane-data")]
    data: PathBuf,
    /// Postgres instead of SQLite in the folder: postgres://USER:PASSWORD@HOST/NAME?sslmode=verify-full
    #[arg(long, value_name = "URL", env = "DUALPLANE_DATABASE_URL", hide_env_values = true)]
    database_url: Option<String>,
    /// The audit log, instead of audit.jsonl in the folder; `-` is standard output
    #[arg(long, value_name = "FILE")]
    audit_log_path: Option<PathBuf>,
    /// Keep bundles in a bucket instead of the folder: s3://BUCKET/PREFIX, gs://BUCKET/PREFIX, az://CONTAINER/PREFIX or
    /// `https://ACCOUNT.blob.core.windows.net/CONTAINER/PREFIX`; keys are those of the environment, or the role of the machine or
    /// service account
    #[arg(long, value_name = "URL")]
    bundles: Option<String>,
    /// Where the bucket is reached, where it is not its cloud's: for example `https://minio.storage:9000` for s3://
    #[arg(long, value_name = "URL", requires = "bundles")]
    bundles_endpoint: Option<String>,
    /// Its region; without it $AWS_REGION, or us-east-1
    #[arg(long, value_name = "REGION", requires = "bundles")]
    bundles_region: Option<String>,
    /// Certificates that the bucket is known by, PEM, beside the usual authorities
    #[arg(long, value_name = "FILE", requires = "bundles")]
    bundles_ca: Option<PathBuf>,
    /// Let bundles cross the network to the bucket without TLS
    #[arg(long, requires = "bundles")]
    bundles_plain: bool,
    /// Certificates, PEM; read again when they change
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<PathBuf>,
    /// Private key, PEM
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
    /// A proxy before it speaks TLS
    #[arg(long)]
    behind_proxy: bool,
    /// Tokens, TOML; read again when it changes. `dualplane-server token NAME` makes one
    #[arg(long, value_name = "FILE")]
    tokens: Option<PathBuf>,
    /// Let the API server of the cluster say whose other tokens are (TokenReview) and what these may do (SubjectAccessReview)
    #[arg(long, group = "of_cluster")]
    kubernetes: bool,
    /// Watch the pods of the cluster, and capture what dies of model servers and of pods with GPUs where no agent sends it
    #[arg(long, group = "of_cluster")]
    watch: bool,
    /// With --watch: in this namespace and no other; may be repeated
    #[arg(long, value_name = "NAMESPACE", requires = "watch")]
    watch_namespace: Vec<String>,
    /// With --watch: seconds for which an agent's report of the same death, which knows more, is waited for
    #[arg(long, value_name = "SECONDS", default_value = "30", requires = "watch", value_parser = clap::value_parser!(u64).range(0..=3600))]
    watch_agents_first: u64,
    /// With --kubernetes or --watch: what deaths of this cluster name as their `cluster`
    #[arg(long, value_name = "NAME", default_value = "", requires = "of_cluster")]
    cluster: String,
    /// With --kubernetes: for whom its tokens must be made
    #[arg(long, value_name = "AUDIENCE", default_value = "dualplane-server", requires = "kubernetes")]
    audience: String,
    #[command(flatten)]
    oidc: Oidc,
    /// Days after which a death is removed
    #[arg(long, value_name = "DAYS", default_value = "90", value_parser = clap::value_parser!(u32).range(1..=36_500))]
    keep_days: u32,
    /// MiB of a bundle
    #[arg(long, value_name = "MIB", default_value = "64", value_parser = clap::value_parser!(u64).range(1..=4096))]
    max_bundle_mib: u64,
    /// Requests a second of one token; twice as many at once
    #[arg(long, value_name = "N", default_value = "5000", value_parser = clap::value_parser!(u32).range(1..))]
    rate: u32,
    /// Who is told of new deaths, TOML; `dualplane-server notify FILE --dry-run` shows what is sent. Of several replicas with it one sends
    #[arg(long, value_name = "FILE")]
    notify: Option<PathBuf>,
}

/// People whom an issuer knows. Flags that an API server has mean what they mean there.
#[derive(Debug, Args)]
struct Oidc {
    /// With --kubernetes: know people by an issuer of OpenID Connect; SubjectAccessReview says what they may do
    #[arg(long, value_name = "URL", requires_all = ["kubernetes", "oidc_client_id"])]
    oidc_issuer_url: Option<String>,
    /// For which client its tokens must be made
    #[arg(long, value_name = "ID", requires = "oidc_issuer_url")]
    oidc_client_id: Option<String>,
    /// The secret of the client; without it a public one
    #[arg(long, value_name = "FILE", requires = "oidc_url")]
    oidc_client_secret: Option<PathBuf>,
    /// Where people reach this server, https://HOST: they sign in on the page, and the issuer knows URL/login/callback
    #[arg(long, value_name = "URL", requires = "oidc_issuer_url")]
    oidc_url: Option<String>,
    /// Claim that names the user
    #[arg(long, value_name = "CLAIM", default_value = "sub", requires = "oidc_issuer_url")]
    oidc_username_claim: String,
    /// Stands before the user, `-` for nothing; without it ISSUER# before all claims but `email`
    #[arg(long, value_name = "PREFIX", requires = "oidc_issuer_url")]
    oidc_username_prefix: Option<String>,
    /// Claim that names the groups
    #[arg(long, value_name = "CLAIM", default_value = "groups", requires = "oidc_issuer_url")]
    oidc_groups_claim: String,
    /// Stands before each group
    #[arg(long, value_name = "PREFIX", default_value = "", requires = "oidc_issuer_url")]
    oidc_groups_prefix: String,
    /// Certificates that the issuer is known by, PEM, instead of the usual authorities
    #[arg(long, value_name = "FILE", requires = "oidc_issuer_url")]
    oidc_ca_file: Option<PathBuf>,
    /// The key that sessions are sealed by, which replicas share; made where there is none [default: DIR/session.key]
    #[arg(long, value_name = "FILE", requires = "oidc_url")]
    oidc_session_key: Option<PathBuf>,
}

impl Oidc {
    fn options(self, data: &std::path::Path) -> Option<oidc::Options> {
        let (issuer, client) = self.oidc_issuer_url.zip(self.oidc_client_id)?;
        let username_prefix = match self.oidc_username_prefix {
            Some(p) if p == "-" => String::new(),
            Some(p) => p,
            None if self.oidc_username_claim == "email" => String::new(),
            None => format!("{issuer}#"),
        };
        Some(oidc::Options {
            issuer,
            client,
            secret: self.oidc_client_secret,
            ca: self.oidc_ca_file,
            names: oidc::Names {
                username_claim: self.oidc_username_claim,
                username_prefix,
                groups_claim: self.oidc_groups_claim,
                groups_prefix: self.oidc_groups_prefix,
            },
            url: self.oidc_url,
            session_key: self.oidc_session_key.unwrap_or_else(|| data.join("session.key")),
        })
    }
}

fn say(line: &str) {
    // Nobody is left to tell that standard error is closed.
    let _ = writeln!(io::stderr(), "{line}");
}

fn main() -> ExitCode {
    let done = match Cli::parse().command {
        Command::Serve(s) => serve(*s),
        Command::Demo { listen } => show(listen),
        Command::Token { name, role, namespace } => token(&name, role, &namespace),
        Command::Notify { file, dry_run } => sample(&file, dry_run),
        Command::Openapi => print(&api::document()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            say(&format!("error: {e}"));
            ExitCode::FAILURE
        }
    }
}

fn print(text: &str) -> Result<(), ServeError> {
    match writeln!(io::stdout(), "{text}") {
        Err(e) if e.kind() != io::ErrorKind::BrokenPipe => Err(e.into()),
        _ => Ok(()),
    }
}

fn telling() -> Say {
    Arc::new(|line: &str| say(line))
}

fn serve(s: Serve) -> Result<(), ServeError> {
    let tls = s.tls_cert.zip(s.tls_key).map(|(certificate, key)| Tls { certificate, key });
    let scheme = if tls.is_some() { "https" } else { "http" };
    let oidc = s.oidc.options(&s.data);
    let options = Options {
        listen: s.listen,
        data: s.data,
        database_url: s.database_url,
        audit_log: s.audit_log_path,
        bundles: s.bundles.map(|url| Place {
            url,
            endpoint: s.bundles_endpoint,
            region: s.bundles_region,
            ca: s.bundles_ca,
            plain: s.bundles_plain,
        }),
        tls,
        behind_proxy: s.behind_proxy,
        tokens: s.tokens,
        watch: s.watch.then(|| Watch {
            cluster: s.cluster.clone(),
            namespaces: s.watch_namespace.into_iter().collect(),
            agents_first: Duration::from_secs(s.watch_agents_first),
        }),
        kubernetes: s.kubernetes.then_some(Kubernetes { cluster: s.cluster, audience: s.audience }),
        oidc,
        keep_days: s.keep_days,
        max_bundle: s.max_bundle_mib << 20,
        rate: s.rate,
    };
    let open = options.tokens.is_none() && options.kubernetes.is_none();
    let told = s.notify.as_deref().map(Config::load).transpose().map_err(ServeError::Said)?;
    let folder = options.data.clone();
    run(options, telling(), async move |app, address| {
        (app.say)(&format!("dualplane-server listens on {scheme}://{address}"));
        if open {
            (app.say)("there are no tokens: whoever is on this machine may read and send");
        }
        if let Some(config) = told {
            let ending = app.ending.subscribe();
            tokio::spawn(notify::run(app, config, folder, ending));
        }
        Ok(())
    })
}

/// A death that never was, by its name and words.
const SAMPLE: &str = include_str!("notify/sample.json");

fn sample(file: &std::path::Path, dry_run: bool) -> Result<(), ServeError> {
    let config = Config::load(file).map_err(ServeError::Said)?;
    let incident = serde_json::from_str(SAMPLE).map_err(|e| ServeError::Said(e.to_string()))?;
    if dry_run {
        return print(notify::dry_run(&config, &incident).map_err(ServeError::Said)?.trim_end());
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let notice = dualplane_notify::Notice::of(&incident, &config.url);
    let mut failed = Vec::new();
    for target in &config.channels {
        match runtime.block_on(notify::deliver(&config, target, &notice)) {
            Ok(()) => say(&format!("{}: sent to {}", target.name, target.told())),
            Err(e) => {
                say(&format!("{}: {e}", target.name));
                failed.push(target.name.as_str());
            }
        }
    }
    if failed.is_empty() {
        Ok(())
    } else {
        Err(ServeError::Said(format!("not sent to {}", failed.join(", "))))
    }
}

fn show(listen: SocketAddr) -> Result<(), ServeError> {
    if !listen.ip().is_loopback() {
        return Err(ServeError::Said(format!(
            "the demo is for this machine alone, and {listen} can be reached from others: use `serve` with --tokens"
        )));
    }
    let home = tempfile::Builder::new().prefix("dualplane-demo-").tempdir()?;
    let options = Options {
        listen,
        data: home.path().to_owned(),
        database_url: None,
        audit_log: None,
        bundles: None,
        tls: None,
        behind_proxy: false,
        tokens: None,
        kubernetes: None,
        watch: None,
        oidc: None,
        keep_days: 90,
        max_bundle: 64 << 20,
        rate: 5000,
    };
    run(options, telling(), async |app, address| {
        let n = demo::fill(&app).await?;
        (app.say)(&format!(
            "{n} recorded deaths, their times moved into the last two weeks: http://{address}/"
        ));
        (app.say)("they are gone when this ends (Ctrl-C)");
        Ok(())
    })
}

fn token(name: &str, role: Role, namespaces: &[String]) -> Result<(), ServeError> {
    let mut secret = [0_u8; 32];
    let random = ring::rand::SystemRandom::new().fill(&mut secret);
    random.map_err(|_| ServeError::Said("this machine has no randomness".to_owned()))?;
    let token = format!("dps_{}", base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(secret));
    say(&format!("the token, which stands nowhere else: {token}"));
    let role = match role {
        Role::Upload => "upload",
        Role::Read => "read",
        Role::Admin => "admin",
    };
    let text = |t: &str| toml::Value::String(t.to_owned()).to_string();
    let mut lines = format!(
        "[[token]]\nname = {}\nsha256 = \"{}\"\nrole = \"{role}\"",
        text(name),
        sha256(token.as_bytes())
    );
    if !namespaces.is_empty() {
        let all: Vec<String> = namespaces.iter().map(|n| text(n)).collect();
        lines.push_str(&format!("\nnamespaces = [{}]", all.join(", ")));
    }
    print(&lines)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cluster_is_asked_and_watched_by_one_server() {
        let parses =
            |more: &[&str]| Cli::try_parse_from(["dualplane-server", "serve"].iter().chain(more)).is_ok();
        assert!(parses(&["--kubernetes", "--watch", "--cluster", "k", "--watch-namespace", "a"]));
        assert!(parses(&["--kubernetes", "--cluster", "k"]) && parses(&["--watch", "--cluster", "k"]));
        assert!(!parses(&["--cluster", "k"]) && !parses(&["--kubernetes", "--watch-namespace", "a"]));
        assert!(!parses(&["--watch", "--audience", "a"]));
    }
}
