//! `dualplane incidents ls|show|export`: what the agent of this machine kept.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use dualplane_agent::incident::{BUNDLE_SUFFIX, Kind, State, Summary, list};
use dualplane_agent::recorder::incidents_dir;
use dualplane_base::json::pretty;
use dualplane_base::text::counted;
use dualplane_base::text::printable;
use serde_json::json;

use super::{Failure, triage};
use crate::args::{Format, IncidentsArgs, IncidentsCommand, IncidentsFormat, TriageArgs};
use crate::exit::{self, Code};
use crate::{files, output};

pub(crate) fn run(command: &IncidentsCommand) -> Result<Code, Failure> {
    match command {
        IncidentsCommand::Ls { namespace, all, common, .. } => ls(namespace.as_deref(), *all, common),
        IncidentsCommand::Show { id, verbose, color, common } => {
            let bundle = bundle(&find(common, id)?, common)?;
            let format = match common.output {
                IncidentsFormat::Text => Format::Text,
                IncidentsFormat::Json => Format::Json,
            };
            triage::run(&TriageArgs::of_file(&bundle, format, *verbose, *color))
        }
        IncidentsCommand::Export { id, out, common } => export(id, out.as_deref(), common),
    }
}

fn read(common: &IncidentsArgs) -> Result<Vec<Summary>, Failure> {
    let dir = incidents_dir(&common.state);
    let (all, unreadable) = list(&dir).map_err(|e| Failure::NoState {
        path: common.state.clone(),
        why: format!("{}: {e}", dir.display()),
    })?;
    if unreadable > 0 {
        output::note(&format!("cannot read {} in {}", counted(unreadable, "incident"), dir.display()));
    }
    Ok(all)
}

fn ls(namespace: Option<&str>, all: bool, common: &IncidentsArgs) -> Result<Code, Failure> {
    let mut items = read(common)?;
    items.retain(|s| namespace.is_none_or(|n| s.namespace == n));
    let hidden = |s: &Summary| s.kind == Kind::End || s.state == State::Dropped;
    let before = items.len();
    items.retain(|s| all || !hidden(s));
    let left_out = before - items.len();
    if common.output == IncidentsFormat::Json {
        let value = json!({"schema": "dualplane.incidents/v1", "items": items});
        output::write(&pretty(&value)?)?;
        return Ok(exit::OK);
    }
    output::write(&table(&items))?;
    if left_out > 0 {
        output::note(&format!(
            "{left_out} more with --all: containers that ended for an unknown reason, and incidents whose \
            bundle was deleted"
        ));
    }
    Ok(exit::OK)
}

fn table(items: &[Summary]) -> String {
    if items.is_empty() {
        return "no incidents\n".to_owned();
    }
    let row = |s: &Summary| {
        let pod = if s.pod.is_empty() { String::new() } else { format!("{}/{}", s.namespace, s.pod) };
        let kind = match s.kind {
            Kind::Death if s.first => "first death",
            Kind::Death => "death",
            Kind::Kill if s.from_exec => "kill of an exec",
            Kind::Kill => "kill inside",
            Kind::End => "end",
        };
        let class = match (s.state, &s.class) {
            (State::Dropped, _) => "(bundle gone)",
            (_, Some(c)) => c,
            (_, None) => "(not judged)",
        };
        [s.died_at.clone(), pod, s.container.clone(), kind.to_owned(), class.to_owned(), s.id.clone()]
            .map(|c| printable(&c).into_owned())
    };
    let head = ["DIED", "POD", "CONTAINER", "WHAT", "CLASS", "ID"].map(ToOwned::to_owned);
    let rows: Vec<[String; 6]> = std::iter::once(head).chain(items.iter().map(row)).collect();
    super::columns(&rows)
}

/// One incident by its id, by the beginning of it, or the last.
fn find(common: &IncidentsArgs, id: &str) -> Result<Summary, Failure> {
    let all = read(common)?;
    if id == "last" {
        let last = all.iter().rfind(|s| s.kind != Kind::End && s.state != State::Dropped);
        return last.cloned().ok_or_else(|| Failure::NoIncident { id: id.to_owned(), near: Vec::new() });
    }
    let fits: Vec<&Summary> = all.iter().filter(|s| s.id == id || s.id.starts_with(id)).collect();
    match fits.as_slice() {
        [one] => Ok((*one).clone()),
        several => {
            let exact = several.iter().find(|s| s.id == id);
            let near = several.iter().take(5).map(|s| s.id.clone()).collect();
            exact.map(|s| (*s).clone()).ok_or(Failure::NoIncident { id: id.to_owned(), near })
        }
    }
}

fn bundle(s: &Summary, common: &IncidentsArgs) -> Result<PathBuf, Failure> {
    let path = incidents_dir(&common.state).join(format!("{}{BUNDLE_SUFFIX}", s.id));
    if s.state == State::Dropped || !path.is_file() {
        return Err(Failure::BundleGone(s.id.clone()));
    }
    Ok(path)
}

fn export(id: &str, out: Option<&Path>, common: &IncidentsArgs) -> Result<Code, Failure> {
    let path = bundle(&find(common, id)?, common)?;
    let bytes = std::fs::read(&path).map_err(|source| Failure::Unreadable { path: path.clone(), source })?;
    if out == Some(Path::new("-")) {
        std::io::stdout().lock().write_all(&bytes).map_err(Failure::Output)?;
        return Ok(exit::OK);
    }
    let name = path.file_name().map(PathBuf::from).unwrap_or_default();
    let out = out.map_or(name, Path::to_path_buf);
    files::write_whole(&out, &bytes).map_err(|source| Failure::Unwritable { path: out.clone(), source })?;
    output::write(&format!("{}\n", out.display()))?;
    Ok(exit::OK)
}
