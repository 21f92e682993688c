//! `dualplane rollback`: lists the changes that `apply` made from here, and undoes one.

use std::fmt::Write as _;

use dualplane_base::json::pretty;
use dualplane_base::text::printable;
use dualplane_core::change::{self, ObjectRef, Policy, Record, State};
use dualplane_core::knowledge::Knowledge;
use dualplane_core::redact;
use dualplane_kube::api::{Api, ApiError};
use dualplane_kube::apply::{self, ChangeRequest, Preview};
use jiff::Timestamp;
use serde_json::{Value, json};

use super::changes::{self, Changes};
use super::{block_on, connect, review};
use crate::args::{ListFormat, RollbackArgs};
use crate::commands::Failure;
use crate::exit::{self, Code};
use crate::{output, own_knowledge};

/// Characters of what a change did, in a table.
const MAX_WHAT: usize = 70;

pub(crate) fn run(args: &RollbackArgs) -> Result<Code, Failure> {
    let changes = Changes::here()?;
    let records = changes.all()?;
    let record = match &args.id {
        Some(id) => changes::find(records, id)?,
        None if args.last => changes::last(records)
            .ok_or_else(|| Failure::NotChanged { why: "there is no change to undo".into(), hint: None })?,
        None => {
            let text = match args.output {
                ListFormat::Text => table(&records),
                ListFormat::Json => pretty(&list(&records))?,
            };
            output::write(&text)?;
            return Ok(exit::OK);
        }
    };
    undo(args, &changes, record, &output::write)?;
    Ok(exit::OK)
}

/// Undoes one change. `say` takes what people read.
pub(super) fn undo(
    args: &RollbackArgs,
    changes: &Changes,
    mut record: Record,
    say: &dyn Fn(&str) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let not = |why: String, hint: Option<String>| Failure::NotChanged { why, hint };
    match record.state {
        State::Failed => {
            return Err(not(format!("{} was rejected, so there is nothing to undo", record.id), record.why));
        }
        State::RolledBack => {
            let when = record.rolled_back.unwrap_or_default();
            say(&format!("{} was already rolled back at {when}.\n", record.id))?;
            return Ok(());
        }
        State::Planned | State::Unknown => {
            output::note("the record does not say whether this change was made; checking the object itself");
        }
        State::Applied => {}
    }
    let knowledge = own_knowledge::load(None)?;
    let colour = output::style(args.color, false).colour;
    let policy = match (args.force, args.keep_changed) {
        (true, _) => Policy::Overwrite,
        (_, true) => Policy::Keep,
        _ => Policy::Refuse,
    };
    block_on(async {
        let api = cluster(args, &record).await?;
        let object = (&record.object, &record.changes);
        let file = record.settings_file.as_ref().map(|f| (&f.object, &f.changes));
        let mut all = Vec::new();
        let (mut already, mut changed) = (0, 0);
        // The ConfigMap first: pods that are made anew read it.
        for (object, edits) in file.into_iter().chain([object]) {
            let ask = ChangeRequest::Revert(edits.clone(), policy);
            let shown = apply::preview(&api, object, &ask).await.map_err(|e| missing(e, object))?;
            if shown.object.uid != object.uid {
                return Err(not(
                    format!(
                        "{object} is not the object that was changed: it was deleted and recreated since"
                    ),
                    Some("the change disappeared with the object".into()),
                ));
            }
            differences(&shown, policy, &knowledge)?;
            already += shown.inverse.already;
            changed += edits.len();
            if !shown.inverse.operations.is_empty() {
                all.push(shown);
            }
        }
        if all.is_empty() {
            let whole = already == changed;
            let why =
                if whole { "all values are as before the change" } else { "no value is left to restore" };
            say(&format!("Nothing to undo: {why}.\n"))?;
            if whole && !args.dry_run {
                done(changes, &mut record);
            }
            return Ok(());
        }
        let mut text = String::new();
        for (i, shown) in all.iter().enumerate() {
            review::heading(&mut text, &shown.object, &api);
            if i == 0 {
                let _ =
                    writeln!(text, "Undo {} of {}: {}", record.id, record.when, printable(&record.what()));
            }
            text.push('\n');
            text.push_str(&review::text(&api, shown, &knowledge, colour).await);
            for m in change::managers(&shown.live) {
                let _ = writeln!(text, "warning: {} {}.", printable(&m.who), m.instead);
            }
        }
        say(&text)?;
        if args.dry_run {
            return Ok(());
        }
        let places: Vec<String> = all.iter().map(|s| review::place(&s.object, &api)).collect();
        review::confirm(&format!("Roll back {}?", places.join(" and ")), args.yes)?;
        for shown in &all {
            apply::carry_out(&api, shown).await.map_err(review::not_done)?;
        }
        done(changes, &mut record);
        let objects: Vec<String> = all.iter().map(|s| printable(&s.object.to_string()).to_string()).collect();
        say(&format!("Rolled back {}.\n", objects.join(" and ")))?;
        Ok(())
    })
}

/// The cluster of the record: its context, where none is given, and the same server in any case.
async fn cluster(args: &RollbackArgs, record: &Record) -> Result<Api, Failure> {
    let mut wanted = args.cluster.clone();
    if wanted.context.is_none() {
        wanted.context.clone_from(&record.context);
    }
    let api = match connect(&wanted).await {
        // The context may have another name by now.
        Err(Failure::Cluster(ApiError::Access(_))) if args.cluster.context.is_none() => {
            connect(&args.cluster).await?
        }
        other => other?,
    };
    if api.server().trim_end_matches('/') != record.server.trim_end_matches('/') {
        return Err(Failure::NotChanged {
            why: format!("{} was made on {}, but this is {}", record.id, record.server, api.server()),
            hint: Some("name the context of that cluster with --context".into()),
        });
    }
    Ok(api)
}

fn missing(fault: ApiError, object: &ObjectRef) -> Failure {
    match fault {
        ApiError::NotFound(_) => Failure::NotChanged {
            why: format!("{object} no longer exists"),
            hint: Some("the change disappeared with the object".into()),
        },
        other => review::refused(other),
    }
}

/// Says what others changed since; an error where that stops the way back.
fn differences(shown: &Preview, policy: Policy, knowledge: &Knowledge) -> Result<(), Failure> {
    let value = |path: &str, v: &Option<Value>| {
        let Some(v) = v else { return "nothing".to_owned() };
        let name = path.rsplit(['.', '[']).next().unwrap_or_default().trim_end_matches(']');
        let text = v.as_str().map_or_else(|| v.to_string(), ToOwned::to_owned);
        let masked = redact::line(&format!("{name}={text}"), knowledge).into_owned();
        masked.chars().skip(name.chars().count() + 1).take(200).collect()
    };
    let lines: Vec<String> = shown
        .inverse
        .differs
        .iter()
        .map(|d| {
            let place = d.place();
            format!("{place}: the change set {}, it is now {}", value(&place, &d.left), value(&place, &d.now))
        })
        .collect();
    if lines.is_empty() {
        return Ok(());
    }
    if policy == Policy::Refuse {
        return Err(Failure::NotChanged {
            why: format!("someone else changed the same values since:\n    {}", lines.join("\n    ")),
            hint: Some(
                "--keep-changed keeps these values and undoes the rest; --force overwrites them".into(),
            ),
        });
    }
    let what = if policy == Policy::Keep { "kept" } else { "overwritten" };
    lines.iter().for_each(|l| output::note(&format!("{what}: {l}")));
    Ok(())
}

/// The change is undone; a record that cannot say so is found to be undone when it is asked for again.
fn done(changes: &Changes, record: &mut Record) {
    record.state = State::RolledBack;
    record.rolled_back = Some(Timestamp::now().to_string());
    if let Err(e) = changes.write(record) {
        output::note(&e.to_string());
    }
}

fn table(records: &[Record]) -> String {
    if records.is_empty() {
        return "No changes have been made from this machine.\n".into();
    }
    let row = |r: &Record| {
        let namespace = r.object.namespace.as_ref().map_or(String::new(), |n| format!("{n}/"));
        let what = printable(&r.what()).chars().take(MAX_WHAT).collect();
        let when = r.when.get(..19).unwrap_or(&r.when).replace('T', " ");
        [r.id.clone(), when, r.state.word().into(), format!("{namespace}{}", r.object), what]
    };
    let head = ["ID", "WHEN (UTC)", "STATE", "OBJECT", "WHAT"].map(ToOwned::to_owned);
    let rows: Vec<[String; 5]> = std::iter::once(head).chain(records.iter().map(row)).collect();
    let width = |column: usize| rows.iter().filter_map(|r| r.get(column)).map(|c| c.chars().count()).max();
    let widths: Vec<usize> = (0..5).map(|c| width(c).unwrap_or(0)).collect();
    let mut out = String::new();
    for row in &rows {
        let cells: Vec<String> =
            row.iter().zip(&widths).map(|(c, w)| format!("{:w$}", printable(c), w = *w)).collect();
        let _ = writeln!(out, "{}", cells.join("  ").trim_end());
    }
    out
}

/// Without the values: a list may be pasted anywhere.
fn list(records: &[Record]) -> Value {
    let item = |r: &Record| {
        let paths: Vec<String> = r.changes.iter().map(|e| change::at(&e.path)).collect();
        json!({"id": r.id, "when": r.when, "state": r.state, "user": r.user, "server": r.server, "context": r.context,
            "object": r.object, "what": r.what(), "paths": paths, "undo": r.undo})
    };
    json!({"schema": "dualplane.changes/v1", "items": records.iter().map(item).collect::<Vec<_>>()})
}
