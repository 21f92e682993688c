//! `dualplane rules`: alerts and recording rules for Prometheus. All of it is data; nothing is read here.

use dualplane_alerts::{Fault, Options, emit, select, show};
use dualplane_base::json::pretty;

use super::Failure;
use crate::args::{RulesArgs, RulesFormat};
use crate::exit::{self, Code};
use crate::output;

pub(super) fn run(args: &RulesArgs) -> Result<Code, Failure> {
    if let Some(id) = &args.explain {
        let alert = show::alert(id).map_err(failure)?;
        output::write(&match args.output {
            RulesFormat::Json => pretty(&show::json_of(alert))?,
            _ => show::explain(alert, output::style(args.color, false)),
        })?;
        return Ok(exit::OK);
    }
    if args.list {
        output::write(&show::table())?;
        return Ok(exit::OK);
    }
    if args.output != RulesFormat::Prometheusrule || args.tests.is_some() {
        let of_object = [("--namespace", args.namespace.is_some()), ("--label", !args.label.is_empty())];
        if let Some((flag, _)) = of_object.into_iter().find(|(_, given)| *given) {
            let why = "it belongs to an object of Kubernetes: add -o prometheusrule".to_owned();
            return Err(Failure::Flag { flag, why });
        }
    }
    let selection = select(&Options {
        engines: args.engine.clone(),
        sources: args.source.clone(),
        only: args.only.clone(),
        disabled: args.disable.clone(),
        enabled: args.enable.clone(),
        without_dashboards: args.without_dashboards,
        hold: args.hold.clone(),
        set: args.set.clone(),
    })
    .map_err(failure)?;
    let text = match (&args.tests, args.output) {
        (Some(file), _) => emit::tests(&selection, file),
        (None, RulesFormat::Yaml) => emit::rule_file(&selection),
        (None, RulesFormat::Prometheusrule) => {
            emit::prometheus_rule(&selection, args.namespace.as_deref(), &args.label)
        }
        (None, RulesFormat::Values) => emit::values(&selection),
        (None, RulesFormat::Text) => show::text(&selection, output::style(args.color, false)),
        (None, RulesFormat::Json) => pretty(&show::json(&selection))?,
    };
    output::write(&text)?;
    Ok(exit::OK)
}

pub(super) fn failure(fault: Fault) -> Failure {
    let flag = match &fault {
        Fault::Unknown { what: "engine", .. } => "--engine",
        Fault::Unknown { what: "source", .. } => "--source",
        Fault::Unknown { what: "threshold", .. } | Fault::Value { .. } => "--set",
        Fault::Duration(_) => "--for",
        Fault::Unknown { what: "board", .. } => "dashboards",
        Fault::Unknown { .. } | Fault::Nothing(_) => "rules",
    };
    let why = match &fault {
        Fault::Unknown { what, near, .. } if near.is_empty() => {
            let list = match *what {
                "board" => "`dualplane dashboards` lists them",
                "alert" => "`dualplane rules -o text` lists them",
                _ => "docs/alerts.md lists them",
            };
            format!("{fault}; {list}")
        }
        _ => fault.to_string(),
    };
    Failure::Flag { flag, why }
}
