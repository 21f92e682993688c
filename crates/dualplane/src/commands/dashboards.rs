//! `dualplane dashboards`: boards for Grafana. All of it is data; nothing is read here.

use std::path::Path;

use dualplane_alerts::{Options, select};
use dualplane_base::json::pretty;
use dualplane_dashboards::{Board, Ready, boards, emit, find, ready, show};

use super::{Failure, rules};
use crate::args::{DashboardsArgs, DashboardsFormat};
use crate::exit::{self, Code};
use crate::output;

pub(super) fn run(args: &DashboardsArgs) -> Result<Code, Failure> {
    let ready = chosen(args)?;
    let Some(dir) = &args.dir else {
        output::write(&match args.output {
            None | Some(DashboardsFormat::Text) => show::text(&ready, output::style(args.color, false)),
            Some(DashboardsFormat::Configmap) => {
                let all: Vec<String> = ready.iter().map(|r| config_map(r, args)).collect();
                all.join("---\n")
            }
            Some(DashboardsFormat::Json) => match ready.as_slice() {
                [one] => pretty(&emit::json(one))?,
                _ => {
                    let why = "prints one board: name it, or write one file a board with --dir".to_owned();
                    return Err(Failure::Flag { flag: "-o json", why });
                }
            },
        })?;
        return Ok(exit::OK);
    };
    let unwritable = |path: &Path| {
        let path = path.to_owned();
        move |source| Failure::Unwritable { path, source }
    };
    std::fs::create_dir_all(dir).map_err(unwritable(dir))?;
    for r in &ready {
        let (ending, text) = match args.output {
            None | Some(DashboardsFormat::Json) => ("json", pretty(&emit::json(r))?),
            Some(DashboardsFormat::Configmap) => ("yaml", config_map(r, args)),
            Some(DashboardsFormat::Text) => {
                let why = "writes boards for Grafana: give -o json or -o configmap".to_owned();
                return Err(Failure::Flag { flag: "--dir", why });
            }
        };
        let path = dir.join(format!("{}.{ending}", r.board.uid()));
        std::fs::write(&path, text).map_err(unwritable(&path))?;
        output::write(&format!("{}\n", path.display()))?;
    }
    Ok(exit::OK)
}

/// The boards that were named, with what the rules of the same engines and sources record.
fn chosen(args: &DashboardsArgs) -> Result<Vec<Ready>, Failure> {
    let mut named: Vec<&'static Board> = Vec::new();
    for name in &args.boards {
        let board = find(name).map_err(rules::failure)?;
        if !named.iter().any(|b| b.name == board.name) {
            named.push(board);
        }
    }
    if named.is_empty() {
        named.extend(boards());
    }
    let options = Options {
        engines: args.engine.clone(),
        sources: args.source.clone(),
        set: args.set.clone(),
        ..Options::default()
    };
    let selection = select(&options).map_err(rules::failure)?;
    Ok(named.into_iter().map(|b| ready(b, &selection)).collect())
}

fn config_map(ready: &Ready, args: &DashboardsArgs) -> String {
    emit::config_map(ready, args.namespace.as_deref(), &args.label)
}
