//! From the words of the command line to pods, and to their evidence.

use std::collections::BTreeSet;
use std::io::{IsTerminal, Write};
use std::sync::{Arc, OnceLock};

use dualplane_core::knowledge::Knowledge;
use dualplane_core::redact::Redactor;
use dualplane_core::sift::Sifter;
use dualplane_kube::api::Api;
use dualplane_kube::capture::{self, Captured, Options};
use dualplane_kube::find::{self, Found, PodFilter};
use dualplane_kube::gone;
use dualplane_kube::target::{Kind, Named, Target, is_name};
use jiff::Timestamp;
use serde_json::Value;

use crate::args::{SelectArgs, StoreArgs};
use crate::commands::Failure;
use crate::secret::{self, Secret};
use crate::{output, own_knowledge};

/// What is asked about.
#[derive(Debug)]
pub(crate) struct PodSelection {
    pub(crate) targets: Vec<Target>,
    pub(crate) everywhere: bool,
    /// Only pods in trouble: of workloads and selectors, unless a pod is named.
    pub(crate) failed: bool,
}

impl PodSelection {
    /// Said where no pod is in trouble: of how many, so that a wrong name does not read as good news.
    pub(crate) fn none_failed(&self, found: &[Found], namespace: &str) -> String {
        let place =
            if self.everywhere { "all namespaces".to_owned() } else { format!("namespace {namespace}") };
        let each: Vec<String> = self
            .targets
            .iter()
            .zip(found)
            .map(|(t, f)| {
                let whose = match t {
                    Target::One(n) => format!(" of {n}"),
                    Target::Selector(s) => format!(" with {s}"),
                    Target::Namespace => String::new(),
                };
                match f.seen {
                    0 => format!("there are no pods{whose} in {place}"),
                    1 => format!("the pod{whose} in {place} neither restarted nor failed"),
                    n => format!("none of the {n} pods{whose} in {place} restarted or failed"),
                }
            })
            .collect();
        each.join("; ")
    }
}

/// Reads `pod/NAME`, `pod NAME`, `-l`, `-A`; `None` where the words are not of a cluster.
pub(crate) fn wanted(words: &[String], select: &SelectArgs) -> Result<Option<PodSelection>, Failure> {
    let flag = |flag: &'static str, why: &str| Failure::Flag { flag, why: why.to_owned() };
    let mut targets: Vec<Target> = Vec::new();
    match words {
        // `pod NAME…`, as kubectl takes it.
        [kind, names @ ..]
            if !names.is_empty() && Kind::of(kind).is_some() && names.iter().all(|n| is_name(n)) =>
        {
            let Some(kind) = Kind::of(kind) else { return Ok(None) };
            targets.extend(names.iter().map(|n| Target::One(Named { kind, name: n.clone() })));
        }
        words => {
            for word in words {
                match Named::parse(word) {
                    Some(named) => targets.push(Target::One(named)),
                    None if targets.is_empty() && select.selector.is_none() && !select.all_namespaces => {
                        return Ok(None);
                    }
                    None => {
                        return Err(flag(
                            "TARGET",
                            &format!(
                                "{word} is not a cluster object such as pod/NAME; files and cluster \
                                objects cannot be combined"
                            ),
                        ));
                    }
                }
            }
        }
    }
    if let Some(selector) = &select.selector {
        if !targets.is_empty() {
            return Err(flag("--selector", "it cannot be combined with a name"));
        }
        targets.push(Target::Selector(selector.clone()));
    }
    if targets.is_empty() && (select.all_namespaces || select.failed) {
        if !select.failed {
            return Err(flag("--all-namespaces", "combine it with --failed or -l SELECTOR"));
        }
        targets.push(Target::Namespace);
    }
    if targets.is_empty() {
        return Ok(None);
    }
    let one = targets.iter().any(|t| matches!(t, Target::One(_)));
    if one && select.all_namespaces {
        return Err(flag("--all-namespaces", "a name belongs to one namespace; use -n"));
    }
    Ok(Some(PodSelection { targets, everywhere: select.all_namespaces, failed: select.failed }))
}

/// What a word may have meant that is neither a path nor an object of a cluster.
pub(crate) fn meant(word: &str) -> String {
    let kinds = "pod, deploy, rs, sts, ds, job, lws";
    match word.split_once('/') {
        None if is_name(word) && !word.contains('.') => {
            format!("there is no such file; for a pod in a cluster, use pod/{word} -n NAMESPACE, for a \
            workload deploy/{word}")
        }
        Some((kind, name)) if Named::parse(word).is_some() => {
            format!("files and cluster objects cannot be combined; give {kind}/{name} alone")
        }
        Some((kind, name)) if Kind::of(kind).is_some() => format!(
            "\"{name}\" is not a valid object name: use lower-case letters, digits, - and . ({kind}/NAME)"
        ),
        Some((kind, name)) if is_name(name) && is_name(kind) && !name.contains('.') => format!(
            "\"{kind}\" is neither a directory nor a known kind ({kinds}); find pods of other kinds with \
            -l SELECTOR"
        ),
        _ => "check the path; a TARGET is a directory, one or more files, - for standard input, or pod/NAME of a cluster"
            .into(),
    }
}

/// The words of a command that takes nothing but a cluster's objects.
pub(crate) fn of_cluster_only(words: &[String], select: &SelectArgs) -> Result<PodSelection, Failure> {
    let word = words.iter().find(|w| Named::parse(w).is_none()).map_or("", String::as_str);
    wanted(words, select)?.ok_or_else(|| Failure::NoObject { word: word.to_owned(), hint: meant(word) })
}

/// Finds all pods.
pub(crate) async fn find(api: &Api, wanted: &PodSelection) -> Result<Vec<Found>, Failure> {
    let mut found = Vec::new();
    for target in &wanted.targets {
        let which = if wanted.failed { PodFilter::Failed } else { PodFilter::All };
        let of_target = find::find(api, target, wanted.everywhere, which).await?;
        if of_target.cut {
            output::note(
                "the list of pods is incomplete: it is too long or changed too often; name a namespace (-n)",
            );
        }
        if let Some(job) = of_target.workload.as_ref().filter(|w| of_target.seen == 0 && is_job(w)) {
            return Err(pods_gone(api, job).await);
        }
        found.push(of_target);
    }
    Ok(found)
}

fn is_job(workload: &Value) -> bool {
    workload.get("kind").and_then(Value::as_str) == Some("Job")
}

/// A Job's pods go with its TTL or by hand; its condition stays, and what agents kept of them.
async fn pods_gone(api: &Api, job: &Value) -> Failure {
    let gone = gone::of_job(api, job).await;
    let name = name_of(job);
    let mut why = format!("the pods of job/{name} are gone");
    match &gone.condition {
        Some(c) => why.push_str(&format!("; the Job's condition: {c}")),
        None => why.push_str("; the Job has no condition yet"),
    }
    for t in &gone.told {
        why.push_str(&format!("\n  the agent on node {} recorded of {}: {}", t.node, t.pod, t.message));
    }
    let hint = match gone.told.first() {
        Some(t) => format!(
            "on node {}: dualplane incidents show {id}; or through kubectl port-forward to the agent's pod there: \
            curl -o bundle.tar.zst localhost:10980/incidents/{id}/bundle && dualplane triage bundle.tar.zst",
            t.node,
            id = t.incident
        ),
        None => format!(
            "no agent told of them in an Event (kept for an hour); on the node that ran them: dualplane incidents ls --all -n {}",
            api.namespace()
        ),
    };
    Failure::PodsGone { why, hint }
}

/// Of a workload's pods that all live, as many are held against their limits: replicas are much alike.
const LIVING: usize = 3;

/// Of a workload's or selector's pods those in trouble, if there are any: beside them, the healthy ones tell nothing.
pub(crate) fn in_trouble(
    api: &Api,
    wanted: &PodSelection,
    mut found: Vec<Found>,
) -> Result<Vec<Value>, Failure> {
    let now = Timestamp::now();
    let mut pods: Vec<Value> = Vec::new();
    // A pod and its workload may both be named.
    let mut known = BTreeSet::new();
    for (target, found) in wanted.targets.iter().zip(&mut found) {
        let named = matches!(target, Target::One(n) if n.kind == Kind::Pod);
        let inside = |p: &Value| found.killed_inside.contains(text(p, "/metadata/uid"));
        let chosen = found.pods.iter().filter(|p| named || find::has_failed(p, now) || inside(p));
        pods.extend(chosen.filter(|p| known.insert(identity(p))).cloned());
    }
    if pods.is_empty() {
        let none = if found.iter().all(|f| f.seen == 0) { Failure::NoPods } else { Failure::NoneFailed };
        return Err(none(wanted.none_failed(&found, api.namespace())));
    }
    Ok(pods)
}

/// The same; of a workload or selector of which no pod is in trouble, some of those that live: how they stand against their
/// limits is the answer then. `--failed` asks for no such thing.
pub(crate) fn to_judge(api: &Api, wanted: &PodSelection, found: Vec<Found>) -> Result<Vec<Value>, Failure> {
    let living: Vec<Value> = match wanted.failed {
        true => Vec::new(),
        false => found.iter().flat_map(|f| &f.pods).filter(|p| runs(p)).take(LIVING).cloned().collect(),
    };
    match in_trouble(api, wanted, found) {
        Err(Failure::NoneFailed(why)) if !living.is_empty() => {
            let which =
                if living.len() == 1 { "it is".to_owned() } else { format!("{} of them are", living.len()) };
            output::note(&format!("{why}; {which} held against the limits of both planes"));
            Ok(living)
        }
        chosen => chosen,
    }
}

fn runs(pod: &Value) -> bool {
    text(pod, "/status/phase") == "Running"
}

/// Empty where it is not there.
fn text<'v>(object: &'v Value, at: &str) -> &'v str {
    object.pointer(at).and_then(Value::as_str).unwrap_or_default()
}

/// Tells two pods apart. Without a uid, which no API server leaves out, its name does.
fn identity(pod: &Value) -> String {
    ["/metadata/uid", "/metadata/namespace", "/metadata/name"].map(|at| text(pod, at)).join("/")
}

/// Options of a capture from the flags and the environment. Clients need the runtime that they run on.
pub(crate) fn options(stores: &StoreArgs) -> Result<Options, Failure> {
    let store = |flag: &'static str, url: &Option<String>, from: Secret| {
        let Some(url) = url else { return Ok(None) };
        if capture::has_password(url) {
            let why = format!(
                "a password in a URL is seen by others; leave the user there, and name a file with the password in {}",
                from.file
            );
            return Err(Failure::Flag { flag, why });
        }
        Ok(Some(capture::store(url, from.read()?)?))
    };
    let prometheus = store("--prometheus", &stores.prometheus, secret::PROMETHEUS)?;
    let loki = store("--loki", &stores.loki, secret::LOKI)?;
    Ok(Options { now: Timestamp::now(), prometheus, loki })
}

/// What captures need that takes milliseconds to build.
#[derive(Debug)]
pub(crate) struct CaptureTools<'k> {
    given: Option<&'k Knowledge>,
    loaded: OnceLock<Result<Knowledge, Failure>>,
    sifter: OnceLock<Option<Arc<Sifter>>>,
}

impl CaptureTools<'_> {
    /// Waits until it is loaded; `None` where it cannot be, which [`with_tools`] says.
    fn knowledge(&self) -> Option<&Knowledge> {
        self.given.or_else(|| self.loaded.wait().as_ref().ok())
    }

    /// Who comes first builds it, the other waits.
    fn sifter(&self) -> Option<&Arc<Sifter>> {
        self.sifter.get_or_init(|| Sifter::new(self.knowledge()?).ok().map(Arc::new)).as_ref()
    }
}

/// Runs `work` while a thread builds what it will need: the first requests are under way meanwhile.
pub(crate) fn with_tools<T>(
    given: Option<&Knowledge>,
    work: impl FnOnce(&CaptureTools<'_>) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let tools = CaptureTools { given, loaded: OnceLock::new(), sifter: OnceLock::new() };
    let done = std::thread::scope(|scope| {
        scope.spawn(|| {
            if given.is_none() {
                tools.loaded.get_or_init(|| own_knowledge::load(None));
            }
            tools.sifter();
            // The rules of redaction are compiled by their first use, too.
            if let Some(knowledge) = tools.knowledge() {
                drop(Redactor::new(knowledge).text("2026-01-01T00:00:00.000000000Z token=\n").into_owned());
            }
        });
        work(&tools)
    });
    // Without it nothing was captured.
    match tools.loaded.into_inner() {
        Some(Err(failure)) => Err(failure),
        _ => done,
    }
}

/// Captures pods with a line of progress.
pub(crate) async fn capture(
    api: &Api,
    pods: Vec<Value>,
    options: &Options,
    tools: &CaptureTools<'_>,
    each: impl FnMut(Captured) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let Some(known) = tools.knowledge() else { return Ok(()) };
    let names: Vec<String> = pods.iter().map(name_of).collect();
    let progress = Progress::new();
    let show = |i: usize, source: &str, done: usize, of: usize| {
        let name = names.get(i).map_or("", String::as_str);
        let nth = if names.len() > 1 { format!("pod {} of {}, ", i + 1, names.len()) } else { String::new() };
        progress.show(&format!("{name}: {nth}source {done} of {of} ({source})"));
    };
    let result = capture::capture_all(api, pods, options, known, tools.sifter(), &show, each).await;
    progress.clear();
    result
}

fn name_of(pod: &Value) -> String {
    text(pod, "/metadata/name").to_owned()
}

/// One line on a terminal that says how far it is.
pub(crate) struct Progress {
    terminal: bool,
}

impl Progress {
    pub(crate) fn new() -> Self {
        Self { terminal: std::io::stderr().is_terminal() }
    }

    pub(crate) fn show(&self, text: &str) {
        if self.terminal {
            let line: String =
                dualplane_base::text::printable(text).chars().take(output::progress_columns() - 1).collect();
            let _ = write!(std::io::stderr().lock(), "\r\x1b[K{line}");
        }
    }

    pub(crate) fn clear(&self) {
        if self.terminal {
            let _ = write!(std::io::stderr().lock(), "\r\x1b[K");
        }
    }
}
