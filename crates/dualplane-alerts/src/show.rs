//! Rules for people and for programs: what there is, and what one of them means.

use std::collections::BTreeSet;

use dualplane_base::style::{Style, wrap};
use serde_json::{Value, json};

use crate::Fault;
use crate::emit::runbook;
use crate::expression::{filled, number, on_one_line, series, unfolded};
use crate::rule::{Alert, Rules};
use crate::select::{Selection, thresholds, unknown};

/// The alert of an id or name.
///
/// # Errors
/// None has it.
pub fn alert(id: &str) -> Result<&'static Alert, Fault> {
    let rules = Rules::embedded();
    rules.alert(id).ok_or_else(|| unknown("alert", id, rules.alerts.iter().map(|a| a.id.as_str())))
}

/// Ids of the sources of which an alert reads series, also through records.
fn sources(rules: &Rules, parts: &[String]) -> BTreeSet<String> {
    let (mut out, mut seen) = (BTreeSet::new(), BTreeSet::new());
    let mut open: Vec<String> = parts.to_vec();
    while let Some(part) = open.pop() {
        let text = unfolded(&part, &rules.macros);
        for name in series(&text, rules) {
            out.extend(rules.source_of(name).map(str::to_owned));
            if let Some(r) =
                rules.records.iter().find(|r| r.name == name).filter(|_| seen.insert(name.to_owned()))
            {
                open.extend(r.from.iter().cloned());
            }
        }
    }
    out
}

/// The class or plane of an alert.
fn told(word: Option<&String>) -> &str {
    word.map_or("of the verdict", String::as_str)
}

/// All alerts as a table of Markdown, then all thresholds, then all records.
#[must_use]
pub fn table() -> String {
    let rules = Rules::embedded();
    let mut out = String::from(
        "| alert | severity | plane | for | what it finds | first command | runbook |\n|---|---|---|---|---|---|---|\n",
    );
    for a in &rules.alerts {
        let off = if a.optional.is_some() { " (off by default)" } else { "" };
        let page = match &a.class {
            Some(class) => format!("[{class}](runbooks/{class}.md)"),
            None => "of the class".to_owned(),
        };
        let hold = if a.hold == "0m" { "event" } else { &a.hold };
        out.push_str(&format!(
            "| `{}` | {} | {} | {hold} | {}{off} | `{}` | {page} |\n",
            a.id,
            a.severity.as_str(),
            told(a.plane.as_ref()),
            a.title,
            plain(&a.first),
        ));
    }
    out.push_str("\n| threshold | default | unit | what | why |\n|---|---|---|---|---|\n");
    for (name, v) in &rules.values {
        out.push_str(&format!(
            "| `{name}` | {} | {} | {} | {} |\n",
            number(v.default),
            unit(v.unit),
            v.what,
            v.why
        ));
    }
    out.push_str("\n| record | what it says |\n|---|---|\n");
    for r in &rules.records {
        out.push_str(&format!("| `{}` | {} |\n", r.name, r.what));
    }
    out
}

fn unit(unit: crate::Unit) -> String {
    serde_json::to_value(unit).ok().and_then(|v| v.as_str().map(str::to_owned)).unwrap_or_default()
}

/// A template of Prometheus with words in its place.
fn plain(template: &str) -> String {
    template
        .replace("{{ $labels.namespace }}", "NAMESPACE")
        .replace("{{ $labels.pod }}", "POD")
        .replace("{{ $labels.node }}", "NODE")
        .replace("{{ $labels.workload }}", "WORKLOAD")
        .replace("{{ $labels.xid }}", "XID")
}

/// One alert as text.
#[must_use]
pub fn explain(a: &Alert, style: Style) -> String {
    let rules = Rules::embedded();
    let mut out = format!("{}  {}\n\n", style.bold(&a.id), a.severity.as_str());
    let mut add = |head: &str, text: &str| {
        out.push_str(&wrap(text, style.width, head, &" ".repeat(head.len())));
        out.push('\n');
    };
    add("alert:    ", &a.alert);
    add("what:     ", &a.title);
    add("why:      ", &a.why);
    add("plane:    ", told(a.plane.as_ref()));
    add(
        "for:      ",
        if a.hold == "0m" { "an event: its expression has a window of its own" } else { &a.hold },
    );
    if let Some(why) = &a.optional {
        add("off:      ", &format!("unless --enable {} asks for it: {why}", a.id));
    }
    add("first:    ", &plain(&a.first));
    match &a.class {
        Some(class) => add("runbook:  ", &format!("dualplane runbook {class}, {}", runbook(class))),
        None => add("runbook:  ", "of the class that the label tells: dualplane runbook CLASS"),
    }
    add("source:   ", &a.source);
    let named: Vec<&str> = sources(rules, a.parts())
        .iter()
        .filter_map(|id| rules.sources.get(id))
        .map(|s| s.name.as_str())
        .collect::<Vec<_>>();
    add("series:   ", &named.join(", "));
    for name in thresholds(rules, a.parts()) {
        if let Some(v) = rules.values.get(name) {
            add(
                "set:      ",
                &format!("{name}={} ({}): {}; {}", number(v.default), unit(v.unit), v.what, v.why),
            );
        }
    }
    let parts: Vec<String> =
        a.parts().iter().map(|p| on_one_line(&filled(p, |name| rules.text.get(name).cloned()))).collect();
    add("holds:    ", &parts.join("  or  "));
    out
}

/// One alert as a value.
#[must_use]
pub fn json_of(a: &Alert) -> Value {
    let rules = Rules::embedded();
    json!({
        "id": a.id,
        "alert": a.alert,
        "severity": a.severity,
        "plane": a.plane,
        "class": a.class,
        "for": a.hold,
        "off_by_default": a.optional,
        "title": a.title,
        "why": a.why,
        "first": a.first,
        "runbook_url": a.class.as_deref().map(runbook),
        "source": a.source,
        "sources": sources(rules, a.parts()),
        "thresholds": thresholds(rules, a.parts()),
    })
}

/// A selection as a value.
#[must_use]
pub fn json(selection: &Selection) -> Value {
    let rules = Rules::embedded();
    let alerts: Vec<Value> = selection
        .alerts
        .iter()
        .map(|a| {
            let ready = [("for", a.hold.as_str()), ("expr", a.expr.as_str())];
            let mut v = json_of(a.alert);
            if let Some(map) = v.as_object_mut() {
                map.extend(ready.map(|(k, text)| (k.to_owned(), text.into())));
            }
            v
        })
        .collect();
    let records: Vec<Value> = selection
        .records
        .iter()
        .map(|r| json!({"record": r.record.name, "what": r.record.what, "expr": r.expr}))
        .collect();
    let values: Vec<Value> = selection
        .values
        .iter()
        .filter_map(|(name, value)| {
            let v = rules.values.get(name)?;
            Some(json!({"name": name, "value": value, "default": v.default, "unit": v.unit, "what": v.what, "why": v.why}))
        })
        .collect();
    json!({"schema": "dualplane.rules/v1", "alerts": alerts, "records": records, "thresholds": values})
}

/// A selection for people.
#[must_use]
pub fn text(selection: &Selection, style: Style) -> String {
    let mut out = String::new();
    for a in &selection.alerts {
        let own = a.alert;
        let hold = if a.hold == "0m" { "event".to_owned() } else { format!("for {}", a.hold) };
        let (id, severity, class) = (style.bold(&own.id), own.severity.as_str(), told(own.class.as_ref()));
        out.push_str(&format!("{id}  {severity} · {class}, {hold}\n"));
        out.push_str(&wrap(&own.title, style.width, "  ", "  "));
        out.push('\n');
        out.push_str(&wrap(&a.expr, style.width, "  = ", "    "));
        out.push('\n');
    }
    let counted = dualplane_base::text::counted;
    out.push_str(&format!(
        "\n{} and {}; -o yaml prints them for Prometheus\n",
        counted(selection.alerts.len(), "alert"),
        counted(selection.records.len(), "recording rule")
    ));
    out
}
