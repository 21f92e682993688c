//! What a report is about: the pod, its engine, how it died.

use dualplane_base::text::name;

use super::Report;

/// The pod with its namespace, where that is known.
pub(crate) fn pod(report: &Report) -> Option<String> {
    let s = &report.verdict.subject;
    let pod = s.pod.as_ref()?;
    Some(match s.namespace.as_deref().filter(|n| !n.is_empty()) {
        Some(namespace) => format!("{}/{}", name(namespace), name(pod)),
        None => name(pod).into_owned(),
    })
}

/// The engine with its version.
pub(crate) fn engine(report: &Report) -> Option<String> {
    let engine = &report.facts.engine;
    Some(format!("{} {}", engine.display_name()?, engine.version.as_deref().unwrap_or("(version unknown)")))
}

/// All that is known, each with its name.
pub(crate) fn rows(report: &Report) -> impl Iterator<Item = (&'static str, String)> {
    let s = &report.verdict.subject;
    let death = s.death.as_ref().map(|d| {
        let at = d.finished.map_or_else(String::new, |at| format!(", ended {}", at.show()));
        format!("{}{at}", d.told(", "))
    });
    let rows = [
        ("pod", pod(report)),
        ("container", s.container.as_deref().map(|c| name(c).into_owned())),
        ("node", s.node.as_deref().map(|n| name(n).into_owned())),
        ("engine", engine(report)),
        ("death", death),
        ("restarts", s.restarts.map(|n| n.to_string())),
    ];
    rows.into_iter().filter_map(|(key, value)| Some((key, value?)))
}
