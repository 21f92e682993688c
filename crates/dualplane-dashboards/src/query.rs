//! Queries: names of sets become matchers on the board's variables, and a query tells which records it reads.

use std::collections::BTreeSet;

use crate::board::Variable;

/// What `{name}` behind a series stands for: labels that its series have, of which a board matches those that can be chosen.
const SETS: &[(&str, &[Variable])] = &[
    ("served", &[Variable::Cluster, Variable::Namespace, Variable::Model, Variable::Pod]),
    ("pod", &[Variable::Cluster, Variable::Namespace, Variable::Pod]),
    ("space", &[Variable::Cluster, Variable::Namespace]),
    ("card", &[Variable::Cluster, Variable::Namespace, Variable::Pod, Variable::Node, Variable::Gpu]),
    ("device", &[Variable::Cluster, Variable::Node, Variable::Gpu]),
    ("node", &[Variable::Cluster, Variable::Node]),
    ("placed", &[Variable::Cluster, Variable::Namespace, Variable::Pod, Variable::Node]),
    ("cluster", &[Variable::Cluster]),
];

/// The expression as Grafana asks it, its variables still in it.
pub(crate) fn filled(expr: &str, choose: &[Variable]) -> String {
    let text = expr.split_whitespace().collect::<Vec<_>>().join(" ");
    SETS.iter().fold(text, |text, (name, labels)| {
        let each = labels.iter().filter(|v| choose.contains(v)).map(|v| v.as_str());
        let matchers: Vec<String> = each.map(|l| format!("{l}=~\"${l}\"")).collect();
        let matchers = matchers.join(",");
        // More matchers may follow; nothing chosen leaves them alone.
        let before_more = if matchers.is_empty() { "{".to_owned() } else { format!("{{{matchers},") };
        text.replace(&format!("{{{name}}}"), &format!("{{{matchers}}}"))
            .replace(&format!("{{{name},"), &before_more)
    })
}

/// Records that an expression reads.
#[must_use]
pub fn records(expr: &str) -> BTreeSet<&str> {
    let name = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == ':';
    let unquoted = expr.split('"').step_by(2);
    unquoted.flat_map(|p| p.split(move |c| !name(c))).filter(|w| w.starts_with("dualplane:")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_become_matchers_on_what_can_be_chosen() {
        let both = [Variable::Cluster, Variable::Pod];
        assert_eq!(
            filled("a{served} +\n  b{pod,x=\"1\"} + c{other=\"2\"}", &both),
            "a{cluster=~\"$cluster\",pod=~\"$pod\"} + b{cluster=~\"$cluster\",pod=~\"$pod\",x=\"1\"} + c{other=\"2\"}"
        );
        assert_eq!(filled("a{node} + b{node,x=\"1\"}", &[]), "a{} + b{x=\"1\"}");
    }

    #[test]
    fn records_are_found_outside_of_quotes() {
        let found = records("sum(dualplane:a:b{x=\"dualplane:c\"}) / ALERTS and dualplane:d");
        assert_eq!(found, ["dualplane:a:b", "dualplane:d"].into());
    }
}
