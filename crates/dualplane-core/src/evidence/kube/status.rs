//! The status of a pod or container without the pod around it: `-o jsonpath='{.status}'`, `{.status.containerStatuses}`, or
//! the few lines of `kubectl describe` or YAML that people cut out.

use serde_json::{Value, json};

use crate::evidence::describe::{indent, key_value};

/// Lines around a state that belong to its container.
const REACH: usize = 60;
/// Cut-outs in one text.
const MAX_PIECES: usize = 50;

/// A whole pod that lost its type, as `jq '.items[0]'` leaves it of an answer of the API, whose lists tell it once.
fn untyped(value: &Value) -> Option<Value> {
    let map = value.as_object()?;
    let typed = map.contains_key("apiVersion") || map.get("kind").is_some_and(|k| k != "Pod");
    let named = value.pointer("/metadata/name").is_some_and(Value::is_string);
    let has = |at: &str| value.pointer(at).is_some_and(Value::is_array);
    if typed || !named || !has("/spec/containers") && !has("/status/containerStatuses") {
        return None;
    }
    let mut pod = map.clone();
    pod.insert("kind".into(), "Pod".into());
    pod.insert("apiVersion".into(), "v1".into());
    Some(Value::Object(pod))
}

/// The pod that a status stands for, without a name; or what is a pod, or a list of pods, but for its type.
pub(in crate::evidence) fn as_pod(value: &Value) -> Option<Value> {
    if let Some(pod) = untyped(value) {
        return Some(pod);
    }
    if let Some(items) = value.get("items").and_then(Value::as_array).filter(|i| !i.is_empty()) {
        let pods: Vec<Value> = items.iter().filter_map(untyped).collect();
        let all = pods.len() == items.len();
        return all.then(|| json!({"kind": "List", "apiVersion": "v1", "items": pods}));
    }
    let statuses = match value {
        Value::Object(map) if map.contains_key("kind") || map.contains_key("apiVersion") => return None,
        Value::Object(map)
            if map.get("containerStatuses").and_then(Value::as_array).is_some_and(|s| !s.is_empty()) =>
        {
            return Some(json!({"kind": "Pod", "apiVersion": "v1", "status": value}));
        }
        Value::Object(map) => match map.get("status").filter(|s| s.get("containerStatuses").is_some()) {
            Some(status) if !map.contains_key("metadata") => {
                return Some(json!({"kind": "Pod", "apiVersion": "v1", "status": status}));
            }
            _ => json!([value]),
        },
        Value::Array(items) if items.len() <= 1000 => value.clone(),
        _ => return None,
    };
    let all = statuses.as_array().filter(|s| !s.is_empty() && s.iter().all(is_status));
    all.map(|s| json!({"kind": "Pod", "apiVersion": "v1", "status": {"containerStatuses": s}}))
}

fn is_status(v: &Value) -> bool {
    let ends = |s: &Value| {
        ["terminated", "waiting", "running"].iter().any(|k| s.get(k).is_some_and(Value::is_object))
    };
    ["state", "lastState"].iter().any(|k| v.get(k).is_some_and(ends))
}

/// Whether a text begins as the YAML of a status does.
pub(in crate::evidence) fn opens_yaml(line: &str) -> bool {
    ["lastState:", "state:", "containerStatuses:", "- containerID:"].iter().any(|k| line.trim_end() == *k)
        || line.starts_with("- containerID: ")
        || line.starts_with("containerID: ")
}

/// Pieces of `kubectl describe pod` that begin below the pod's name; each as (start, end, lines of a described pod).
pub(in crate::evidence) fn described(lines: &[&str]) -> Vec<(usize, usize, Vec<String>)> {
    let mut out: Vec<(usize, usize, Vec<String>)> = Vec::new();
    let mut at = 0;
    while let Some(found) = lines.iter().skip(at).position(|l| is_state(l)).map(|i| at + i) {
        at = found + 1;
        // Without its indentation only the tolerant reader tells a state from what is below it.
        let deeper = lines.get(at).is_some_and(|l| indent(l) > lines.get(found).map_or(0, |f| indent(f)));
        if out.len() >= MAX_PIECES || !deeper || !ended(lines.get(at..).unwrap_or_default()) {
            continue;
        }
        let base = lines.get(found).map_or(0, |l| indent(l));
        let belongs = |l: &&str| {
            indent(l) > base
                || indent(l) == base
                    && key_value(l).is_some_and(|(k, _)| k.len() < 24 && k != "Events" && k != "Conditions")
        };
        let above = lines
            .get(..found)
            .unwrap_or_default()
            .iter()
            .rev()
            .take(REACH)
            .take_while(|l| belongs(l))
            .count();
        let below = lines.get(at..).unwrap_or_default().iter().take(REACH).take_while(|l| belongs(l)).count();
        let (start, end) = (found - above, at + below);
        let name = start.checked_sub(1).and_then(|i| lines.get(i)).and_then(|l| {
            let (name, value) = key_value(l)?;
            let heading = name.starts_with(|c: char| c.is_ascii_uppercase());
            let word = !name.contains(' ') && !heading && value.is_empty() && indent(l) < base;
            word.then(|| name.to_owned())
        });
        let mut body = vec!["Containers:".to_owned(), format!("  {}:", name.unwrap_or_default())];
        body.extend(lines.get(start..end).unwrap_or_default().iter().map(|l| {
            let depth = if indent(l) > base { 6 + indent(l) - base - 1 } else { 4 };
            format!("{}{}", " ".repeat(depth), l.trim())
        }));
        out.push((start, end, body));
        at = end;
    }
    out
}

fn is_state(line: &str) -> bool {
    let ends = |v: &str| matches!(v, "Terminated" | "Waiting" | "Running");
    key_value(line.trim_start()).is_some_and(|(k, v)| matches!(k, "State" | "Last State") && ends(v))
}

/// An exit code stands near: prose has states, too.
fn ended(below: &[&str]) -> bool {
    let near = below.iter().take(REACH);
    near.take_while(|l| !l.trim().is_empty()).any(|l| l.trim_start().starts_with("Exit Code:"))
}

#[cfg(test)]
mod tests {
    use crate::evidence::{Bundle, RawFile};

    fn ends(text: &str) -> Vec<(String, Option<i64>, String)> {
        let b = Bundle::from_files(vec![RawFile::new("issue.md", text)]);
        b.pods
            .iter()
            .flat_map(|p| &p.containers)
            .filter_map(|c| Some((c, c.status.as_ref()?.terminations().next()?)))
            .map(|(c, t)| (c.name.clone(), t.exit_code, t.reason.clone()))
            .collect()
    }

    #[test]
    fn pieces_of_a_pod_tell_how_it_ended() {
        let bare = |code, reason: &str| vec![(String::new(), Some(code), reason.to_owned())];
        for (text, want) in [
            (
                "why?\n\n```\nLast State:     Terminated\n  Reason:       Error\n  Exit Code:    137\nReady:          True\nLimits:\n  memory:          120Gi\nEvents:           <none>\n```\n",
                bare(137, "Error"),
            ),
            (
                "    State:          Waiting\n      Reason:       CrashLoopBackOff\n    Last State:     Terminated\n      Reason:       OOMKilled\n      Exit Code:    137\n",
                bare(137, "OOMKilled"),
            ),
            (
                "  vllm:\n    Image: x\n    Last State:     Terminated\n      Reason:       OOMKilled\n      Exit Code:    137\n",
                vec![("vllm".into(), Some(137), "OOMKilled".into())],
            ),
            (
                "{\"name\":\"llama\",\"lastState\":{\"terminated\":{\"exitCode\":139,\"reason\":\"Error\"}},\"restartCount\":1}",
                vec![("llama".into(), Some(139), "Error".into())],
            ),
            (
                "[{\"name\":\"a\",\"state\":{\"terminated\":{\"exitCode\":1,\"reason\":\"Error\"}}}]",
                vec![("a".into(), Some(1), "Error".into())],
            ),
            (
                "{\"phase\":\"Failed\",\"containerStatuses\":[{\"name\":\"a\",\"state\":{\"terminated\":{\"exitCode\":1,\"reason\":\"Error\"}}}]}",
                vec![("a".into(), Some(1), "Error".into())],
            ),
            (
                "$ kubectl get pod x -o yaml | grep -A9 lastState\nlastState:\n  terminated:\n    exitCode: 137\n    reason: OOMKilled\n",
                bare(137, "OOMKilled"),
            ),
            ("State: Terminated is what I saw\n", vec![]),
            ("Last State: Terminated\n\nExit Code: 3 was mine\n", vec![]),
        ] {
            assert_eq!(ends(text), want, "{text}");
        }
    }

    #[test]
    fn a_piece_joins_the_only_pod() {
        let pod = "{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"p\"},\"spec\":{\"containers\":[{\"name\":\"c\"}]}}";
        let piece = "Last State: Terminated\n  Reason: OOMKilled\n  Exit Code: 137\n";
        let b = Bundle::from_files(vec![RawFile::new("pod.json", pod), RawFile::new("x.txt", piece)]);
        assert_eq!(b.pods.len(), 1);
        assert!(b.pods[0].containers[0].status.as_ref().unwrap().terminations().any(|t| t.ended_with(137)));
    }
}
