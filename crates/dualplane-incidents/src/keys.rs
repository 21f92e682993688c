//! Names: of an incident, of a workload by its pod, of what repeats.

use dualplane_base::Class;
use dualplane_base::drawn::{POD, is_drawn};
use dualplane_base::hash::fnv1a;

use crate::query::encode;

/// Longest name of an incident: a name of a file with room for a suffix.
const MAX_ID: usize = 180;

/// Hex digits of a sender in a name.
const SENDER: usize = 12;

/// A name of an incident: what a sender may give it ([`is_sent_id`]), and where somebody else had given it to another death
/// before, behind it `~` and the sender ([`id_of_sender`]).
#[must_use]
pub fn is_id(text: &str) -> bool {
    match text.split_once('~') {
        None => is_sent_id(text),
        Some((id, of)) => {
            let hex = |c: char| c.is_ascii_digit() || matches!(c, 'a'..='f');
            is_sent_id(id) && of.len() == SENDER && of.chars().all(hex)
        }
    }
}

/// The name that this sender's death has where somebody else took its name before. No sender can give a name of this form, so
/// nobody can take it in advance. `hash`: of the sender's name, in hex.
#[must_use]
pub fn id_of_sender(id: &str, hash: &str) -> String {
    let of: String = hash.chars().take(SENDER).collect();
    format!("{id}~{of}")
}

/// A name that is safe in a URL and as a name of a file: letters, digits, `-`, `.`, `_`; it begins with a letter or digit.
#[must_use]
pub fn is_sent_id(text: &str) -> bool {
    (1..=MAX_ID).contains(&text.len())
        && text.starts_with(|c: char| c.is_ascii_alphanumeric())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_'))
}

/// The workload of a pod by the pod's name: `vllm` of `vllm-6c9f7d5b48-x2kqm` (a Deployment), `vllm-x2kqm` (a `DaemonSet` or a
/// job) and `vllm-0` (a `StatefulSet`). A name of another form is its own workload.
#[must_use]
pub fn workload_of_pod(pod: &str) -> &str {
    let Some((rest, last)) = pod.rsplit_once('-') else { return pod };
    if rest.is_empty() || last.is_empty() {
        return pod;
    }
    if last.len() <= 4 && last.chars().all(|c| c.is_ascii_digit()) {
        return rest;
    }
    if last.len() != POD || !is_drawn(last) {
        return pod;
    }
    match rest.rsplit_once('-') {
        Some((name, hash)) if !name.is_empty() && (6..=10).contains(&hash.len()) && is_drawn(hash) => name,
        _ => rest,
    }
}

/// The key of a loop. What names neither a workload nor a container repeats nothing: its key is its own.
pub(crate) fn loop_key(id: &str, [cluster, namespace, owner, container]: [&str; 4]) -> String {
    if owner.is_empty() && container.is_empty() {
        return format!("id/{id}");
    }
    [cluster, namespace, owner, container].map(part).join("/")
}

/// Bytes of a part as it is written, beyond which its hash stands for its end: databases bound what they index.
const PART: usize = 300;

fn part(text: &str) -> String {
    let mut out = encode(text);
    if out.len() > PART {
        // The same everywhere and for ever. Nobody gains by two names of this length that meet.
        let hash = fnv1a(out.bytes());
        out.truncate(PART - 20);
        out.push_str(&format!("~{hash:016x}"));
    }
    out
}

/// The key of a cause.
pub(crate) fn cause_key(loop_key: &str, class: Class) -> String {
    format!("{loop_key}/{class}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pods_of_one_workload_share_its_name() {
        for (pod, owner) in [
            ("vllm-6c9f7d5b48-x2kqm", "vllm"),
            ("llm-server-6c9f7d5b48-x2kqm", "llm-server"),
            ("vllm-0", "vllm"),
            ("vllm-prefill-12", "vllm-prefill"),
            ("agent-x2kqm", "agent"),
            ("train-llama", "train-llama"),
            ("server", "server"),
            ("qwen-2507", "qwen"),
            ("model-error", "model-error"),
            ("-0", "-0"),
            ("", ""),
        ] {
            assert_eq!(workload_of_pod(pod), owner, "{pod}");
        }
    }

    #[test]
    fn ids_have_no_way_out() {
        for good in ["a", "20261121T213812.345Z-serving-vllm-0-3", "A_b.c"] {
            assert!(is_id(good), "{good}");
        }
        for bad in ["", ".", "..", ".a", "-a", "a/b", "a\\b", "a b", "a%2f", "ä", "a\n"] {
            assert!(!is_id(bad), "{bad:?}");
        }
        assert!(!is_id(&"a".repeat(181)));
        let of = id_of_sender("a", &"0f".repeat(32));
        assert!(is_id(&of) && !is_sent_id(&of), "{of}");
        for bad in [
            "~0f0f0f0f0f0f",
            "a~",
            "a~0f0f0f0f0f0",
            "a~0F0F0F0F0F0F",
            "a~../../../../",
            "a~0f0f0f0f0f0f~0f0f0f0f0f0f",
        ] {
            assert!(!is_id(bad), "{bad:?}");
        }
    }

    #[test]
    fn parts_of_a_key_do_not_run_into_each_other() {
        let a = loop_key("x", ["", "a/b", "c", ""]);
        let b = loop_key("x", ["", "a", "b/c", ""]);
        assert_ne!(a, b);
        assert_ne!(loop_key("x", ["c", "n", "", ""]), loop_key("y", ["c", "n", "", ""]));
    }
}
