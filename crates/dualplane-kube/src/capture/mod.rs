//! Collects what a dead pod leaves behind: every source at once, each with its own time, none able to stop the others.
//!
//! The logs of the dead instance go first: the next restart takes them away.

mod again;
mod configuration;
mod context;
pub(crate) mod engine;
mod events;
pub(crate) mod kernel_log;
mod kubelet;
mod log_buffer;
mod log_file;
mod logs;
mod many;
mod node;
mod node_logs;
mod owners;
mod policy;
mod series;
mod shared;
pub(crate) mod source;

use dualplane_base::order::Order as _;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use dualplane_core::evidence::{Gap, RawFile};
use dualplane_core::knowledge::Knowledge;
use dualplane_core::sift::Sifter;
use serde_json::Value;

pub use self::context::{Context, Options};
pub use self::many::capture_all;
pub use self::series::{Access as SeriesAccess, has_password, store};
pub use self::shared::Shared;
pub use self::source::{Source, State};
use crate::api::Api;
use crate::bundle::artifact;
use crate::bundle::manifest::{Manifest, SCHEMA};
use crate::find::text;

/// Told of each source that ends: its name, how many have, and of how many.
pub type Progress<'p> = &'p dyn Fn(&str, usize, usize);

/// The evidence of one pod.
#[derive(Debug, Default)]
pub struct Captured {
    /// `namespace/pod`.
    pub name: String,
    /// Redacted files, sorted by name, the manifest among them.
    pub files: Vec<RawFile>,
    /// What is missing, and why.
    pub gaps: Vec<Gap>,
    /// Every source with how it went.
    pub sources: Vec<Source>,
    /// How often each rule of redaction masked something.
    pub redacted: BTreeMap<String, u64>,
}

/// Captures one pod, whose object is given as it was found; twice, where a container restarted meanwhile and took a log along.
pub async fn capture(
    api: &Api,
    pod: Value,
    options: &Options,
    knowledge: &Knowledge,
    sifter: Option<&Arc<Sifter>>,
    shared: &Shared,
    progress: Progress<'_>,
) -> Captured {
    let of = |pod| Context::new(api, pod, options, knowledge, sifter, shared);
    let cx = of(pod);
    let first = once(&cx, progress).await;
    let missing = again::missing_logs(&first);
    if missing == 0 {
        return first;
    }
    let Some(now) = again::moved(api, &cx.pod).await else { return first };
    let second = once(&of(now), progress).await;
    // What the first look still had may be gone for good.
    if again::missing_logs(&second) < missing { second } else { first }
}

async fn once<'a>(cx: &'a Context<'a>, progress: Progress<'_>) -> Captured {
    let name = format!("{}/{}", cx.namespace, cx.pod_name);
    let mut work = source::Work::default();
    // Perishable first. The order also is the order in which requests get their slot.
    logs::plan(cx, &mut work);
    events::plan(cx, &mut work);
    node::plan(cx, &mut work);
    node_logs::plan(cx, &mut work);
    owners::plan(cx, &mut work);
    policy::plan(cx, &mut work);
    configuration::plan(cx, &mut work);
    kubelet::plan(cx, &mut work);
    engine::plan(cx, &mut work);
    series::plan(cx, &mut work);
    let mut ended = work.run(progress).await;
    ended.push(cx.pod_file());
    ended.order_by(|a, b| a.source.name.cmp(&b.source.name));

    let mut out = Captured { name, ..Captured::default() };
    for e in ended {
        out.files.extend(e.files);
        out.gaps.extend(e.gaps);
        out.sources.push(e.source);
    }
    // A server's words may quote what it was given.
    for why in
        out.gaps.iter_mut().map(|g| &mut g.why).chain(out.sources.iter_mut().filter_map(|s| s.why.as_mut()))
    {
        *why = cx.masked(why);
    }
    out.gaps.order();
    out.gaps.dedup();
    out.files.order_by(|a, b| a.name.cmp(&b.name));
    out.redacted = cx.redacted();
    let manifest = Manifest {
        schema: SCHEMA.into(),
        tool: concat!("dualplane ", env!("CARGO_PKG_VERSION")).into(),
        captured_at: cx.options.now.to_string(),
        pod: out.name.clone(),
        uid: text(&cx.pod, "/metadata/uid"),
        died_at: cx.died_at.map(|t| t.to_string()),
        sources: out.sources.clone(),
        models: artifact::of_files(&out.files),
        gaps: out.gaps.clone(),
        redacted: out.redacted.clone(),
        server_asked_to_wait: cx.api.waits(),
    };
    out.files.push(RawFile::new("manifest.json", manifest.render()));
    out
}

/// For one request of a source that is nice to have: a metrics endpoint that hangs must not keep anybody waiting.
const SHORT: Duration = Duration::from_secs(5);
