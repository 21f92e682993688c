//! A memory limit that is pasted without the state of its container: a cut of `describe`, of YAML, or a bare quantity that a
//! command asked for. It is what a use is held against; nothing ended in it.

use super::asked::Asked;
use super::tidy;
use crate::units::{Bytes, parse_k8s_memory};

/// A quoted limit and where it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QuotedLimit {
    /// The pod that the command above names; empty where none does.
    pub pod: String,
    /// Amount.
    pub bytes: Bytes,
    /// File.
    pub file: String,
    /// Line, from 1.
    pub line: u64,
}

/// Lines of one section of resources: cpu, memory, ephemeral storage, devices.
const SECTION: usize = 6;
/// Limits of one text.
const MAX: usize = 16;

pub(super) fn quoted(lines: &[&str], first: u64, file: &str, asked: &Asked) -> Vec<QuotedLimit> {
    let limit = |i: usize, bytes: Bytes| QuotedLimit {
        pod: asked.pod.clone(),
        bytes,
        file: file.to_owned(),
        line: first + i as u64,
    };
    let mut out = Vec::new();
    for (i, line) in lines.iter().enumerate() {
        if out.len() >= MAX {
            break;
        }
        if asked.limit
            && let Some(bytes) =
                parse_k8s_memory(line.trim().trim_matches(['\'', '"', '%'])).filter(|b| b.0 > 0)
        {
            out.push(limit(i, bytes));
        }
        if !line.trim_end().ends_with("imits:") || !tidy::bare(line).eq_ignore_ascii_case("limits:") {
            continue;
        }
        let section = lines.iter().enumerate().skip(i + 1).take(SECTION);
        let memory = section
            .map(|(at, l)| (at, tidy::bare(l)))
            .take_while(|(_, l)| !l.to_ascii_lowercase().starts_with("requests"))
            .find_map(|(at, l)| {
                let value = l.strip_prefix("memory:")?.trim();
                Some(limit(at, parse_k8s_memory(value.trim_matches(['\'', '"']))?))
            });
        out.extend(memory);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::super::asked::asked;
    use super::*;
    use crate::units::GIB;

    fn of(text: &str, command: &str) -> Vec<(u64, u64)> {
        let lines: Vec<&str> = text.lines().collect();
        let found = quoted(&lines, 1, "x", &asked(command));
        found.iter().map(|l| (l.bytes.0 / GIB, l.line)).collect()
    }

    #[test]
    fn a_limit_in_every_form() {
        assert_eq!(
            of(
                "    Limits:\n      cpu:     8\n      memory:  32Gi\n    Requests:\n      memory:  16Gi\n",
                ""
            ),
            [(32, 3)]
        );
        assert_eq!(
            of("  resources:\n    limits:\n      memory: \"64Gi\"\n      nvidia.com/gpu: \"1\"\n", ""),
            [(64, 3)]
        );
        assert_eq!(
            of("24Gi\n", "kubectl get pod x -o jsonpath='{.spec.containers[0].resources.limits.memory}'"),
            [(24, 1)]
        );
    }

    #[test]
    fn requests_and_prose_are_none() {
        assert!(
            of("    Limits:\n      nvidia.com/gpu:  1\n    Requests:\n      memory:  16Gi\n", "").is_empty()
        );
        assert!(of("We hit our limits:\nall of them\n24Gi\n", "").is_empty());
    }
}
