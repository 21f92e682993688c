//! What a command says of the lines below it: which pod they are of, and which fields a template printed.

use super::field::{Field, field};
use super::piece::is_name;

/// Fields of one template.
const MAX_FIELDS: usize = 20;

/// What a command asked for.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Asked {
    pub(super) pod: String,
    pub(super) namespace: String,
    /// Fields of its template in order; `None` where no status has such a field.
    pub(super) fields: Vec<Option<Field>>,
    /// The memory limit was asked for.
    pub(super) limit: bool,
}

/// Reads a command as it stands behind a prompt.
pub(super) fn asked(command: &str) -> Asked {
    let mut out = Asked::default();
    let command = command.get(..command.len().min(2000)).unwrap_or_default();
    let first = command.split('|').next().unwrap_or_default();
    let mut words = first.split_whitespace();
    let tool = words.next().unwrap_or_default();
    if matches!(tool, "kubectl" | "oc" | "k") {
        let words: Vec<&str> = words.collect();
        for (i, word) in words.iter().enumerate() {
            let next = words.get(i + 1).copied().filter(|n| is_name(n));
            if matches!(*word, "-n" | "--namespace") {
                out.namespace = next.unwrap_or_default().to_owned();
            } else if matches!(*word, "pod" | "pods" | "po" | "logs") {
                out.pod = next.unwrap_or_default().to_owned();
            } else if let Some(name) = ["pod/", "pods/", "po/"].iter().find_map(|p| word.strip_prefix(p)) {
                out.pod = Some(name).filter(|n| is_name(n)).unwrap_or_default().to_owned();
            }
        }
    }
    if ["jsonpath", "go-template", "--format", "-f "].iter().any(|w| command.contains(w)) {
        template(command, &mut out);
    }
    out
}

/// `{.status.containerStatuses[0].lastState.terminated.reason}`: the last step of each path is a field.
fn template(command: &str, out: &mut Asked) {
    for group in command.split('{').skip(1) {
        let path = group.split('}').next().unwrap_or_default().trim();
        let steps = path.split(' ').next_back().unwrap_or_default();
        if !steps.starts_with('.') || path.starts_with("range") || out.fields.len() >= MAX_FIELDS {
            continue;
        }
        let last = steps.rsplit('.').next().unwrap_or_default();
        out.limit |= steps.contains("limits") && last == "memory";
        out.fields.push(field(last).filter(|_| !last.is_empty() && last != "memory"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_say_what_follows() {
        let a = asked(
            "kubectl get pod llm-0 -n prod -o jsonpath='{.status.containerStatuses[*].lastState.terminated.reason}'",
        );
        assert_eq!((a.pod.as_str(), a.namespace.as_str()), ("llm-0", "prod"));
        assert_eq!(a.fields, [Some(Field::Reason)]);
        let a = asked("docker inspect llm --format '{{.State.OOMKilled}} {{.State.ExitCode}}'");
        assert_eq!(a.fields, [Some(Field::OomKilled), Some(Field::ExitCode)]);
        let a = asked("kubectl get pod x -o jsonpath='{.spec.containers[0].resources.limits.memory}'");
        assert_eq!((a.fields.as_slice(), a.limit), ([None].as_slice(), true));
        let a = asked("kubectl logs llm-0 --previous | grep -i oom");
        assert_eq!((a.pod.as_str(), a.fields.len()), ("llm-0", 0));
        assert_eq!(asked("dmesg"), Asked::default());
    }
}
