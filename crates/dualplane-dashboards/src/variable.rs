//! What can be chosen on top of a board, as Grafana's variables.

use serde_json::{Value, json};

use crate::board::{Board, Variable};

/// The data source that all panels ask: Prometheus, or what speaks its language.
pub(crate) fn datasource() -> Value {
    json!({"type": "prometheus", "uid": "${datasource}"})
}

/// Series whose labels are the choices, and what was chosen before.
fn source(variable: Variable) -> (&'static str, &'static [Variable]) {
    match variable {
        Variable::Cluster => ("dualplane:server:info", &[]),
        Variable::Namespace => ("dualplane:server:info", &[Variable::Cluster]),
        Variable::Pod => ("dualplane:server:info", &[Variable::Cluster, Variable::Namespace]),
        Variable::Model => ("dualplane:requests_running", &[Variable::Cluster, Variable::Namespace]),
        Variable::Node => ("dualplane:vram_used:bytes", &[Variable::Cluster]),
        Variable::Gpu => ("dualplane:vram_used:bytes", &[Variable::Cluster, Variable::Node]),
    }
}

/// All of them, the data source first.
pub(crate) fn list(board: &Board) -> Value {
    let first = json!({"name": "datasource", "label": "Data source", "type": "datasource", "query": "prometheus", "refresh": 1});
    let all = board.choose.iter().map(|v| one(board, *v));
    std::iter::once(first).chain(all).collect()
}

fn one(board: &Board, variable: Variable) -> Value {
    let (series, before) = source(variable);
    let label = variable.as_str();
    let matchers: Vec<String> = before
        .iter()
        .filter(|v| board.choose.contains(v))
        .map(|v| format!("{0}=~\"${0}\"", v.as_str()))
        .collect();
    let query = format!("label_values({series}{{{}}}, {label})", matchers.join(","));
    let mut out = json!({
        "name": label,
        "label": words(variable),
        "type": "query",
        "datasource": datasource(),
        "query": {"query": query, "refId": label},
        // Pods come and go within the time that is shown.
        "refresh": 2,
        "sort": 1,
    });
    // Many installations have no label `cluster`: only `.*` matches there. A board of one pod chooses that pod.
    if let Some(map) = out.as_object_mut().filter(|_| !board.single || variable == Variable::Cluster) {
        let all = json!({
            "multi": !board.single,
            "includeAll": true,
            "allValue": ".*",
            "current": match board.single {
                true => json!({"text": "All", "value": "$__all"}),
                false => json!({"text": ["All"], "value": ["$__all"]}),
            },
        });
        map.extend(all.as_object().cloned().unwrap_or_default());
    }
    out
}

fn words(variable: Variable) -> &'static str {
    match variable {
        Variable::Cluster => "Cluster",
        Variable::Namespace => "Namespace",
        Variable::Model => "Model",
        Variable::Pod => "Pod",
        Variable::Node => "Node",
        Variable::Gpu => "GPU",
    }
}
