//! `dualplane capture pod/NAME`: evidence into a file, before the next restart takes it away.

use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};

use dualplane_base::text::counted;
use dualplane_kube::bundle;
use dualplane_kube::capture::{Captured, State};

use jiff::Timestamp;

use super::{block_on, capture_url, connect, pods};
use crate::args::CaptureArgs;
use crate::commands::Failure;
use crate::exit::{self, Code};
use crate::{files, output};

/// Characters of namespace and pod in the name of a file.
const MAX_NAME: usize = 180;
/// Pods in one bundle: each keeps some MiB until it is written.
const MAX_PODS: usize = 20;

pub(crate) fn run(args: &CaptureArgs) -> Result<Code, Failure> {
    // Before anything is asked: evidence that cannot be written is lost with the next restart.
    if let Some(out) = &args.out {
        place(out)?;
    }
    if let Some(url) = &args.url {
        let now = Timestamp::now();
        return keep(args, &[capture_url::read(url, now)?], now);
    }
    let (captured, now) = of_cluster(args)?;
    keep(args, &captured, now)
}

fn of_cluster(args: &CaptureArgs) -> Result<(Vec<Captured>, Timestamp), Failure> {
    let wanted = pods::of_cluster_only(&args.targets, &args.select)?;
    let work = |tools: &pods::CaptureTools<'_>| {
        block_on(async {
            let options = pods::options(&args.stores)?;
            let api = connect(&args.cluster).await?;
            let found = pods::find(&api, &wanted).await?;
            let pods = pods::in_trouble(&api, &wanted, found)?;
            if pods.len() > MAX_PODS {
                output::note(&format!(
                    "captured the first {MAX_PODS} of {} pods; name the others to capture them",
                    pods.len()
                ));
            }
            let mut all: Vec<Captured> = Vec::new();
            let pods = pods.into_iter().take(MAX_PODS).collect();
            pods::capture(&api, pods, &options, tools, |c| {
                all.push(c);
                Ok(())
            })
            .await?;
            Ok((all, options.now))
        })
    };
    pods::with_tools(None, work)
}

/// Writes the bundle and says what is in it.
fn keep(args: &CaptureArgs, captured: &[Captured], now: Timestamp) -> Result<Code, Failure> {
    let time = now.strftime("%Y%m%dT%H%M%SZ").to_string();
    let stem = stem(captured.first().map_or("pod", |c| c.name.as_str()), &time);
    let folders = captured.iter().map(|c| {
        // One pod is the bundle; several lie side by side in it.
        let folder =
            if captured.len() == 1 { stem.clone() } else { format!("{stem}/{}", c.name.replace('/', "-")) };
        (folder, c.files.as_slice())
    });
    let seconds = u64::try_from(now.as_second()).unwrap_or(0);
    let name = format!("{stem}.tar.zst");
    let out = match &args.out {
        Some(folder) if folder.is_dir() => folder.join(name),
        Some(out) => out.clone(),
        None => PathBuf::from(name),
    };
    let failed = |source| Failure::Unwritable { path: out.clone(), source };
    let bytes = bundle::pack(folders, seconds).map_err(failed)?;
    if out.as_os_str() == "-" {
        let mut stdout = io::stdout().lock();
        stdout.write_all(&bytes).and_then(|()| stdout.flush()).map_err(Failure::Output)?;
    } else {
        files::write_whole(&out, &bytes).map_err(failed)?;
    }
    tell(captured, &out, bytes.len());
    Ok(exit::OK)
}

/// Whether a bundle can be written there: a whole file takes the place of what stands there, which must be none but a
/// file (renaming over `/dev/null` would replace it for everybody).
fn place(out: &Path) -> Result<(), Failure> {
    let flag = |why: String| Err(Failure::Flag { flag: "--out", why });
    if out.as_os_str() == "-" {
        if io::stdout().is_terminal() {
            return flag("a bundle is binary; name a file, or redirect it: --out - > FILE".into());
        }
        return Ok(());
    }
    if ["json", "yaml", "text", "wide", "markdown"].iter().any(|format| out.as_os_str() == *format) {
        return flag(format!(
            "here, -o names the output file, not a format; use ./{} for a file of that \
        name",
            out.display()
        ));
    }
    let shown = out.display();
    match out.metadata() {
        Ok(is) if is.is_file() || is.is_dir() => return Ok(()),
        Ok(_) => {
            return flag(format!("{shown} is not a regular file; use --out - to write to standard output"));
        }
        Err(_) => {}
    }
    let folder = out.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if folder.is_dir() { Ok(()) } else { flag(format!("the directory {} does not exist", folder.display())) }
}

/// Names of namespaces and pods have up to 63 and 253 characters, a file's 255 bytes with what stands around it.
fn stem(pod: &str, time: &str) -> String {
    let name: String = pod.replace('/', "-").chars().take(MAX_NAME).collect();
    format!("dualplane-{name}-{time}")
}

/// What was kept, what is missing, and what comes next; on standard error, as the bundle may go to standard output.
fn tell(captured: &[Captured], out: &Path, size: usize) {
    for c in captured {
        let ok = c.sources.iter().filter(|s| s.state == State::Ok).count();
        let absent = c.sources.iter().filter(|s| s.state == State::Absent).count();
        let masked: u64 = c.redacted.values().sum();
        output::note(&format!(
            "{}: {} from {}, {}, {absent} without data here, {masked} secrets and prompts masked",
            c.name,
            counted(c.files.len(), "file"),
            counted(ok, "source"),
            counted(c.gaps.len(), "gap")
        ));
        for gap in &c.gaps {
            output::note(&format!("missing: {}: {}", gap.what, gap.why));
        }
    }
    if out.as_os_str() != "-" {
        output::note(&format!("written: {} ({} KiB)", out.display(), size.div_ceil(1024)));
        output::note(&format!("next: dualplane triage {}", out.display()));
    }
}
