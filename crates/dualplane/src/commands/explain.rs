//! `dualplane explain CLASS|RULE|XID|SIGNATURE`: what is known of it, with sources; `--rules` lists all rules.

use std::fmt::Write as _;

use dualplane_base::Class;
use dualplane_base::json::pretty;
use dualplane_core::knowledge::{Knowledge, Signature, Xid};
use dualplane_core::verdict::rules::{Rule, TABLE, rule};
use dualplane_core::verdict::weighing::{WEIGHING, Weighing};
use dualplane_report::rules;
use serde_json::{Value, json};

use super::Failure;
use crate::args::{ExplainArgs, ExplainFormat as Format};
use crate::exit::{self, Code};
use crate::{output, own_knowledge};

pub(crate) fn run(args: &ExplainArgs) -> Result<Code, Failure> {
    let k = own_knowledge::load(args.knowledge.as_deref())?;
    let Some(subject) = &args.subject else { return all_rules(args.output) };
    let word = subject.trim();
    let value = class(&k, word)
        .or_else(|| rule(word).map(rule_value))
        .or_else(|| WEIGHING.iter().find(|w| w.id == word).map(weighing_value))
        .or_else(|| xid(&k, word))
        .or_else(|| k.signatures().iter().find(|s| s.id == word).map(signature))
        .ok_or_else(|| Failure::NotKnown { word: word.to_owned(), near: near(&k, word) })?;
    let text = match args.output {
        Format::Json => pretty(&value)?,
        Format::Text | Format::Markdown => show(&value),
    };
    output::write(&text)?;
    Ok(exit::OK)
}

/// Every rule in its order.
fn all_rules(format: Format) -> Result<Code, Failure> {
    let text = match format {
        Format::Json => pretty(&json!({
            "rules": TABLE.iter().map(rule_value).collect::<Vec<_>>(),
            "weighing": WEIGHING.iter().map(weighing_value).collect::<Vec<_>>(),
        }))?,
        Format::Text => rules::list(),
        Format::Markdown => rules::markdown(),
    };
    output::write(&text)?;
    Ok(exit::OK)
}

fn rule_value(r: &Rule) -> Value {
    json!({
        "rule": r.id,
        "stage": r.stage.id(),
        "decides": r.classes.iter().map(|c| c.as_str()).collect::<Vec<_>>(),
        "when": r.when,
        "not": r.near_miss,
        "goes_before": rules::reasons(r)
            .iter()
            .map(|reason| reason.trim_start_matches("goes before ").replace('`', ""))
            .collect::<Vec<_>>(),
        "source": r.source,
    })
}

fn weighing_value(w: &Weighing) -> Value {
    json!({"weighing": w.id, "adds": w.adds, "because": w.because, "source": w.source})
}

fn class(k: &Knowledge, word: &str) -> Option<Value> {
    let class = Class::ALL.iter().find(|c| c.as_str() == word.replace('-', "_"))?;
    let lines: Vec<Value> = k
        .signatures()
        .iter()
        .filter(|s| s.class == Some(*class))
        .map(|s| json!(format!("{}: {}", s.id, s.meaning)))
        .collect();
    Some(json!({
        "class": class.as_str(),
        "plane": class.plane().as_str(),
        "title": class.title(),
        "decided_by": class.decided_by(),
        "rules": TABLE.iter().filter(|r| r.classes.contains(class)).map(|r| r.id).collect::<Vec<_>>(),
        "signatures": lines,
    }))
}

fn xid(k: &Knowledge, word: &str) -> Option<Value> {
    let digits = word.to_ascii_lowercase();
    let digits = digits.trim_start_matches("xid").trim_start_matches(['.', ':', '-', ' ']);
    k.xid(digits.parse().ok()?).map(xid_value)
}

fn xid_value(x: &Xid) -> Value {
    json!({
        "xid": x.code,
        "name": x.name,
        "meaning": x.meaning,
        "action": x.action,
        "vendor_immediate": x.immediate,
        "vendor_investigate": x.investigate,
        "affects": x.affects,
        "who_else": x.affects_text,
        "then": x.then.list(),
        "source": x.source,
    })
}

fn signature(s: &Signature) -> Value {
    json!({
        "signature": s.id,
        "meaning": s.meaning,
        "mark": format!("{:?}", s.mark).to_lowercase(),
        "class": s.class.map(Class::as_str),
        "phase": s.phase.map(|p| p.as_str()),
        "versions": s.versions,
        "literals": s.literals,
        "pattern": s.pattern,
        "needs_nearby": s.context,
        "not_when": s.unless,
        "source": s.source,
    })
}

/// Names that hold the word, for a hint.
fn near(k: &Knowledge, word: &str) -> Vec<String> {
    let word = word.to_ascii_lowercase();
    let classes = Class::ALL.iter().map(|c| c.as_str().to_owned());
    let rules = TABLE.iter().map(|r| r.id).chain(WEIGHING.iter().map(|w| w.id)).map(str::to_owned);
    let ids = k.signatures().iter().map(|s| s.id.to_string());
    classes.chain(rules).chain(ids).filter(|n| !word.is_empty() && n.contains(&word)).take(8).collect()
}

/// Key and value a line; lists below their key.
fn show(value: &Value) -> String {
    let mut out = String::new();
    let Value::Object(map) = value else { return out };
    for (key, v) in map {
        let key = key.replace('_', " ");
        match v {
            Value::Null => {}
            Value::Array(items) if items.is_empty() => {}
            Value::Array(items) => {
                let _ = writeln!(out, "{key}:");
                for i in items {
                    let _ = writeln!(out, "  {}", plain(i));
                }
            }
            v if plain(v).is_empty() => {}
            v => {
                let _ = writeln!(out, "{key}: {}", plain(v));
            }
        }
    }
    out
}

fn plain(v: &Value) -> String {
    let text = v.as_str().map_or_else(|| v.to_string(), str::to_owned);
    dualplane_base::text::printable(&text).into_owned()
}
