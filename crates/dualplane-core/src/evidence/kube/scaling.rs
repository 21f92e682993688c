//! Tables of `kubectl get hpa` and `kubectl get pdb`: who makes more pods of a launch, and who keeps them where they are.

use dualplane_base::json::{list, str_at};
use serde_json::Value;

use super::tables::{self, Heading};
use crate::evidence::{Bundle, describe};

/// Rows of one text.
const MAX_ROWS: usize = 1000;

/// A row of `kubectl get hpa`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Autoscaler {
    /// Namespace, where the table has that column.
    pub namespace: Option<String>,
    /// Name.
    pub name: String,
    /// Kind and name of what it scales.
    pub target: (String, String),
    /// Metrics against their targets, as printed: `cpu: 12%/80%`.
    pub metrics: String,
    /// Most replicas that it makes.
    pub max: u64,
    /// Replicas now.
    pub replicas: Option<u64>,
}

impl Autoscaler {
    /// It follows CPU and memory of the host alone, as far as it tells.
    #[must_use]
    pub fn follows_the_host_alone(&self) -> bool {
        let mut parts = self.metrics.split(',').map(str::trim).filter(|p| !p.is_empty()).peekable();
        let host = |p: &str| {
            ["cpu", "memory"].iter().any(|w| p.get(..w.len()).is_some_and(|h| h.eq_ignore_ascii_case(w)))
        };
        parts.peek().is_some() && parts.all(host)
    }
}

/// A row of `kubectl get pdb`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DisruptionBudget {
    /// Namespace, where the table has that column.
    pub namespace: Option<String>,
    /// Name.
    pub name: String,
    /// Pods that may be evicted now.
    pub allowed: u64,
}

/// Reads a table that begins at the first line; returns the lines that it takes.
pub(in crate::evidence) fn read(bundle: &mut Bundle, lines: &[&str]) -> Option<usize> {
    let first = lines.first()?;
    let scales = first.contains("MINPODS") && first.contains("MAXPODS");
    let budgets = first.contains("ALLOWED DISRUPTIONS");
    if !(scales || budgets) || first.len() > 400 || first.bytes().any(|b| b.is_ascii_lowercase()) {
        return None;
    }
    let heading: Heading = describe::cells(first)
        .into_iter()
        .map(|cell| (cell.as_ptr() as usize - first.as_ptr() as usize, cell.to_owned()))
        .collect();
    let mut taken = 1;
    for (i, line) in lines.iter().enumerate().skip(1).take(MAX_ROWS) {
        let cells = cells(&heading, line);
        let get = |name: &str| cells.iter().find(|(n, _)| *n == name).map_or("", |(_, c)| *c);
        let read = if scales {
            autoscaler(&get).map(|a| bundle.autoscalers.push(a))
        } else {
            budget(&get).map(|b| bundle.disruption_budgets.push(b))
        };
        if read.is_none() {
            break;
        }
        taken = i + 1;
    }
    (taken > 1).then_some(taken)
}

/// The cells with their labels: by their order where none is empty, since a paste loses the columns; else by their columns.
fn cells<'a>(heading: &'a Heading, line: &'a str) -> Vec<(&'a str, &'a str)> {
    let cells = describe::cells(line);
    if cells.len() == heading.len() {
        return heading.iter().map(|(_, name)| name.as_str()).zip(cells).collect();
    }
    tables::cells(heading, line)
}

fn some(text: &str) -> Option<String> {
    (!text.is_empty()).then(|| text.to_owned())
}

/// The same as an object; KEDA's own stands for the autoscaler that KEDA makes of it.
pub(super) fn object(bundle: &mut Bundle, v: &Value) {
    let name = str_at(v, "/metadata/name");
    let (namespace, kind) = (some(str_at(v, "/metadata/namespace")), str_at(v, "/kind"));
    if name.is_empty() {
        return;
    }
    if kind == "PodDisruptionBudget" {
        if let Some(allowed) = v.pointer("/status/disruptionsAllowed").and_then(Value::as_u64) {
            bundle.disruption_budgets.push(DisruptionBudget { namespace, name: name.to_owned(), allowed });
        }
        return;
    }
    let keda = kind == "ScaledObject";
    let target = match str_at(v, "/spec/scaleTargetRef/kind") {
        "" => "Deployment",
        kind => kind,
    };
    let number = |pointer: &str| v.pointer(pointer).and_then(Value::as_u64);
    // "Resource" is the kind of figure, and its name is what is followed.
    let kinds: Vec<&str> = list(v, if keda { "/spec/triggers" } else { "/spec/metrics" })
        .iter()
        .map(|m| {
            let names = ["/resource/name", "/containerResource/name"].map(|at| str_at(m, at));
            names.into_iter().find(|n| !n.is_empty()).unwrap_or(str_at(m, "/type"))
        })
        .collect();
    bundle.autoscalers.push(Autoscaler {
        namespace,
        name: if keda { format!("keda-hpa-{name}") } else { name.to_owned() },
        target: (target.to_owned(), str_at(v, "/spec/scaleTargetRef/name").to_owned()),
        metrics: kinds.join(", "),
        // What KEDA takes where nothing is said.
        max: number(if keda { "/spec/maxReplicaCount" } else { "/spec/maxReplicas" }).unwrap_or(100),
        replicas: number("/status/currentReplicas"),
    });
}

fn autoscaler<'a>(get: &impl Fn(&str) -> &'a str) -> Option<Autoscaler> {
    let (kind, target) = get("REFERENCE").split_once('/')?;
    Some(Autoscaler {
        namespace: some(get("NAMESPACE")),
        name: some(get("NAME"))?,
        target: (kind.to_owned(), target.to_owned()),
        metrics: get("TARGETS").to_owned(),
        max: get("MAXPODS").parse().ok()?,
        replicas: get("REPLICAS").parse().ok(),
    })
}

fn budget<'a>(get: &impl Fn(&str) -> &'a str) -> Option<DisruptionBudget> {
    Some(DisruptionBudget {
        namespace: some(get("NAMESPACE")),
        name: some(get("NAME"))?,
        allowed: get("ALLOWED DISRUPTIONS").parse().ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> (Bundle, Option<usize>) {
        let mut b = Bundle::default();
        let lines: Vec<&str> = text.lines().collect();
        let n = read(&mut b, &lines);
        (b, n)
    }

    #[test]
    fn tables_of_both_kinds() {
        let (b, n) = of(
            "NAMESPACE   NAME      REFERENCE        TARGETS                        MINPODS   MAXPODS   REPLICAS   AGE\n\
                         serving     llm-hpa   Deployment/llm   cpu: 12%/80%, memory: 5%/90%   1         8         6          12d\n\nother",
        );
        assert_eq!(n, Some(2));
        let a = &b.autoscalers[0];
        assert_eq!((a.name.as_str(), a.target.1.as_str(), a.max, a.replicas), ("llm-hpa", "llm", 8, Some(6)));
        assert_eq!(
            (a.namespace.as_deref(), a.metrics.as_str()),
            (Some("serving"), "cpu: 12%/80%, memory: 5%/90%")
        );
        let (b, n) =
            of("NAME      REFERENCE        TARGETS                 MINPODS   MAXPODS   REPLICAS   AGE\n\
                         llm-hpa   Deployment/llm   cpu: 12%/80%   1         8         6          12d");
        assert_eq!((n, b.autoscalers[0].max), (Some(2), 8), "pasted without its columns");
        let (b, n) = of("NAME      MIN AVAILABLE   MAX UNAVAILABLE   ALLOWED DISRUPTIONS   AGE\n\
                         llm-pdb   1               N/A               0                     12d");
        assert_eq!((n, b.disruption_budgets[0].allowed), (Some(2), 0));
    }

    #[test]
    fn other_tables_and_cut_rows_are_none() {
        for text in [
            "NAME   READY   STATUS   RESTARTS   AGE\nllm-0   1/1   Running   0   1d",
            "NAME      REFERENCE        TARGETS   MINPODS   MAXPODS   REPLICAS   AGE",
            "NAME      REFERENCE        TARGETS   MINPODS   MAXPODS   REPLICAS   AGE\nllm",
        ] {
            assert_eq!(of(text).1, None, "{text}");
        }
    }
}
