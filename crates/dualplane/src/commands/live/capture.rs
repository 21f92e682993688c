//! `dualplane capture pod/NAME`: evidence into a file, before the next restart takes it away.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use dualplane_kube::bundle;
use dualplane_kube::capture::{Captured, State};

use super::{block_on, connect, pods};
use crate::args::CaptureArgs;
use crate::commands::Failure;
use crate::exit::{self, Code};
use crate::{files, output, own_knowledge};

/// Pods in one bundle: each keeps some MiB until it is written.
const MAX_PODS: usize = 20;

pub(crate) fn run(args: &CaptureArgs) -> Result<Code, Failure> {
    let wanted = pods::wanted(&args.targets, &args.select)?.ok_or_else(|| Failure::Flag {
        flag: "TARGET",
        why: format!("{} is not an object of a cluster, such as pod/NAME", args.targets.join(" ")),
    })?;
    let knowledge = own_knowledge::load(None)?;
    let work = |tools: &pods::Tools<'_>| {
        block_on(async {
            let options = pods::options(&args.stores)?;
            let api = connect(&args.cluster).await?;
            let found = pods::find(&api, &wanted).await?;
            let pods = pods::in_trouble(&wanted, found);
            if pods.is_empty() {
                return Err(Failure::NoneFailed(wanted.none_failed()));
            }
            if pods.len() > MAX_PODS {
                output::note(&format!(
                    "of {} pods the first {MAX_PODS} are captured; name the others",
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
    let (captured, now) = pods::with_tools(&knowledge, work)?;
    let time = now.strftime("%Y%m%dT%H%M%SZ").to_string();
    let first = captured.first().map_or("pod", |c| c.name.as_str()).replace('/', "-");
    let stem = format!("dualplane-{first}-{time}");
    let folders = captured.iter().map(|c| {
        // One pod is the bundle; several lie side by side in it.
        let folder =
            if captured.len() == 1 { stem.clone() } else { format!("{stem}/{}", c.name.replace('/', "-")) };
        (folder, c.files.as_slice())
    });
    let seconds = u64::try_from(now.as_second()).unwrap_or(0);
    let out = args.out.clone().unwrap_or_else(|| PathBuf::from(format!("{stem}.tar.zst")));
    let failed = |source| Failure::Unwritable { path: out.clone(), source };
    let bytes = bundle::pack(folders, seconds).map_err(failed)?;
    if out.as_os_str() == "-" {
        let mut stdout = io::stdout().lock();
        stdout.write_all(&bytes).and_then(|()| stdout.flush()).map_err(Failure::Output)?;
    } else {
        files::write_whole(&out, &bytes).map_err(failed)?;
    }
    tell(&captured, &out, bytes.len());
    Ok(exit::OK)
}

/// What was kept, what is missing, and what comes next; on standard error, as the bundle may go to standard output.
fn tell(captured: &[Captured], out: &Path, size: usize) {
    for c in captured {
        let ok = c.sources.iter().filter(|s| s.state == State::Ok).count();
        let absent = c.sources.iter().filter(|s| s.state == State::Absent).count();
        let masked: u64 = c.redacted.values().sum();
        output::note(&format!(
            "{}: {} files of {ok} sources, {} gaps, {absent} sources that do not exist here, {masked} secrets and prompts masked",
            c.name,
            c.files.len(),
            c.gaps.len()
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
