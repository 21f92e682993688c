//! `dualplane profile`: the shape of requests, from what logs, traces and metrics tell of them.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
#[cfg(feature = "live")]
use std::time::Duration;

use dualplane_profile::{Options, Profiler, draw};
use dualplane_shape::Shape;

use super::Failure;
use crate::args::{ProfileArgs, ProfileFormat};
use crate::exit::{self, Code};
use crate::output;

/// Bytes that are read at once.
const CHUNK: usize = 1 << 18;
/// Files of a directory, at most.
const MAX_FILES: usize = 10_000;
/// Levels of directories.
const DEEPEST: usize = 16;
/// A page of metrics, at most.
#[cfg(feature = "live")]
const MAX_PAGE: u64 = 8 << 20;

pub(super) fn run(args: &ProfileArgs) -> Result<Code, Failure> {
    let (mut shape, notes) = match &args.synthesise {
        Some(name) => synthesised(args, name)?,
        None => counted(args)?,
    };
    if let Some(rate) = args.rate {
        shape.arrival_per_second = Some(rate);
    }
    let text = match args.output {
        ProfileFormat::Text => draw(&shape, &notes, output::style(args.color, false)),
        ProfileFormat::Toml => shape.toml(),
        ProfileFormat::Json => shape.json()?,
    };
    output::write(&text)?;
    if args.output != ProfileFormat::Text {
        notes.iter().for_each(|n| output::note(n));
    }
    Ok(exit::OK)
}

fn synthesised(args: &ProfileArgs, name: &str) -> Result<(Shape, Vec<String>), Failure> {
    let why = || Failure::Flag { flag: "--synthesise", why: format!("there is no shape {name}") };
    let mut shape = dualplane_shape::named(name).ok_or_else(why)?;
    if let Some(name) = &args.name {
        shape.name.clone_from(name);
    }
    shape.concurrency = args.concurrency.or(shape.concurrency);
    Ok((shape, Vec::new()))
}

fn counted(args: &ProfileArgs) -> Result<(Shape, Vec<String>), Failure> {
    let mut profiler = Profiler::new(args.long);
    #[cfg(feature = "live")]
    if let Some(url) = &args.prometheus {
        ask(args, url, &mut profiler)?;
    }
    for source in &args.sources {
        read(source, &mut profiler)?;
    }
    let options = Options { name: args.name.clone(), concurrency: args.concurrency };
    profiler.shape(&options).map_err(|why| Failure::NoRequests(why.to_string()))
}

fn read(source: &str, profiler: &mut Profiler) -> Result<(), Failure> {
    if source == "-" {
        profiler.begin("standard input");
        return feed(Path::new("-"), io::stdin().lock(), 0, profiler);
    }
    if source.starts_with("http://") || source.starts_with("https://") {
        #[cfg(feature = "live")]
        return page(source, profiler);
        #[cfg(not(feature = "live"))]
        return Err(Failure::NotBuilt("access to the network"));
    }
    let path = Path::new(source);
    let failed = |source| Failure::Unreadable { path: path.to_owned(), source };
    let about = fs::metadata(path).map_err(failed)?;
    let mut files = Vec::new();
    if about.is_dir() {
        list(path, 0, &mut files).map_err(failed)?;
        files.sort();
    } else {
        files.push(path.to_owned());
    }
    for path in files {
        let failed = |source| Failure::Unreadable { path: path.clone(), source };
        let file = File::open(&path).map_err(failed)?;
        let about = file.metadata().map_err(failed)?;
        if about.is_dir() {
            continue;
        }
        let name = path.file_name().map_or_else(String::new, |n| n.to_string_lossy().into_owned());
        profiler.begin(&name);
        feed(&path, file, about.len(), profiler)?;
    }
    Ok(())
}

/// Files of a directory; links are not followed.
fn list(dir: &Path, depth: usize, out: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        let kind = entry.file_type()?;
        if kind.is_dir() && depth < DEEPEST {
            list(&entry.path(), depth + 1, out)?;
        } else if kind.is_file() && out.len() < MAX_FILES {
            out.push(entry.path());
        }
    }
    Ok(())
}

fn feed(path: &Path, mut from: impl Read, size: u64, profiler: &mut Profiler) -> Result<(), Failure> {
    let failed = |source| Failure::Unreadable { path: path.to_owned(), source };
    let mut chunk = vec![0_u8; CHUNK];
    let mut progress = output::Progress::new();
    let mut done = 0_u64;
    loop {
        let n = match from.read(&mut chunk) {
            Ok(0) => break,
            Ok(n) => n,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
            Err(e) => return Err(failed(e)),
        };
        let bytes = chunk.get(..n).unwrap_or_default();
        if done == 0
            && let Some(tool) = packed(bytes)
        {
            let shown = path.display();
            let why = format!("it is compressed: {tool} {shown} | dualplane profile -");
            return Err(failed(io::Error::new(io::ErrorKind::InvalidData, why)));
        }
        done += n as u64;
        profiler.feed(bytes);
        progress.bytes(done, size, profiler.counted());
    }
    progress.clear();
    Ok(())
}

/// What unpacks bytes that begin so.
fn packed(bytes: &[u8]) -> Option<&'static str> {
    match bytes {
        [0x1f, 0x8b, ..] => Some("zcat"),
        [0x28, 0xb5, 0x2f, 0xfd, ..] => Some("zstdcat"),
        [b'B', b'Z', b'h', ..] => Some("bzcat"),
        [0xfd, b'7', b'z', b'X', b'Z', ..] => Some("xzcat"),
        _ => None,
    }
}

/// What an engine's page of metrics counted since it started.
#[cfg(feature = "live")]
fn page(url: &str, profiler: &mut Profiler) -> Result<(), Failure> {
    let online =
        |why: String| Failure::Online { what: dualplane_base::text::printable(url).into_owned(), why };
    if dualplane_kube::capture::has_password(url) {
        return Err(Failure::Flag { flag: "SOURCE", why: "a password in a URL is seen by others".into() });
    }
    let agent: ureq::Agent = ureq::Agent::config_builder()
        .timeout_global(Some(Duration::from_secs(20)))
        .max_redirects(0)
        .user_agent(concat!("dualplane/", env!("CARGO_PKG_VERSION")))
        .build()
        .into();
    let mut ask = agent.get(url);
    if let Some(token) = crate::secret::ENGINE.read()? {
        ask = ask.header("authorization", format!("Bearer {token}"));
    }
    let mut answer = ask.call().map_err(|e| online(e.to_string()))?;
    let text =
        answer.body_mut().with_config().limit(MAX_PAGE).read_to_vec().map_err(|e| online(e.to_string()))?;
    profiler.begin("metrics page");
    profiler.feed(&text);
    Ok(())
}

/// Parts of the span in which a server is looked for.
#[cfg(feature = "live")]
const COVERED_IN: u64 = 1000;

/// What a Prometheus saw an engine's histograms grow by.
#[cfg(feature = "live")]
fn ask(args: &ProfileArgs, url: &str, profiler: &mut Profiler) -> Result<(), Failure> {
    let flag = |why: String| Failure::Flag { flag: "--prometheus", why };
    if dualplane_kube::capture::has_password(url) {
        let file = crate::secret::PROMETHEUS.file;
        return Err(flag(format!("a password in a URL is seen by others; name a file with it in {file}")));
    }
    let failed = |e: dualplane_kube::api::ApiError| Failure::Online {
        what: "--prometheus".into(),
        why: e.to_string(),
    };
    let token = crate::secret::PROMETHEUS.read()?;
    profiler.begin("Prometheus");
    let now = jiff::Timestamp::now().as_second();
    // The client lives as long as the runtime that it is made in.
    super::live::block_on(async {
        let store = dualplane_kube::capture::store(url, token).map_err(failed)?;
        let mut any = false;
        let step = (args.since / COVERED_IN).max(15);
        for (there, queries) in dualplane_profile::histograms(args.since, &args.selector) {
            // A server that came an hour ago has its requests in that hour, and not in the day that is looked at.
            let from = now.saturating_sub(i64::try_from(args.since).unwrap_or(i64::MAX));
            let seen = store.range(&there, from, now, step).await.map_err(failed)?;
            let points = seen.pointer("/data/result/0/values").and_then(serde_json::Value::as_array);
            let covered = points.map_or(0, |p| (p.len() as u64).saturating_mul(step)).min(args.since);
            if covered == 0 {
                continue;
            }
            any = true;
            for (name, query) in queries {
                let answer = store.range(&query, now, now, 60).await.map_err(failed)?;
                let found = answer.pointer("/data/result").and_then(serde_json::Value::as_array);
                let none = found.is_none_or(Vec::is_empty);
                profiler.answer(answer, &name, covered as f64);
                // An engine that is not there has none of its series.
                if none && name.ends_with("_bucket") {
                    break;
                }
            }
        }
        if any {
            return Ok(());
        }
        let labels = if args.selector.is_empty() { "" } else { " with the labels of --selector" };
        Err(flag(format!(
            "it has no histogram of tokens of an engine that is known{labels}, in the span of --since"
        )))
    })
}
