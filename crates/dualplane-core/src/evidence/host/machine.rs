//! The memory of a machine: `free`, `/proc/meminfo`, `kubectl top node`; and `kubectl top pod`.

use crate::evidence::Bundle;
use crate::evidence::host_model::{HostMemory, TopRow};
use crate::units::{Bytes, parse_k8s_memory, parse_memory};

/// Rows of `kubectl top` in one text.
const MAX_ROWS: usize = 20_000;

/// Reads the form that begins with the first of these lines; returns how many it takes.
pub(in crate::evidence) fn read(
    bundle: &mut Bundle,
    lines: &[&str],
    first: u64,
    file: &str,
    command: Option<&str>,
) -> Option<usize> {
    let head = lines.first()?;
    let bare = head.trim_start();
    if !(bare.starts_with("total") || bare.starts_with("MemTotal:") || head.contains("CPU(cores)")) {
        return None;
    }
    let words: Vec<&str> = head.split_whitespace().collect();
    match words.as_slice() {
        ["total", "used", "free", ..] => free(bundle, lines, first, file, command),
        ["MemTotal:", _, "kB"] => meminfo(bundle, lines, first, file),
        [.., "CPU(cores)", "MEMORY(bytes)"] | ["NAME", "CPU(cores)", "CPU%" | "CPU(%)", ..] => {
            top(bundle, lines, first, file, &words)
        }
        _ => None,
    }
}

/// `free` prints KiB unless a flag says otherwise, and `-h` a unit behind each number. What no flag tells is not guessed.
fn free(bundle: &mut Bundle, lines: &[&str], first: u64, file: &str, command: Option<&str>) -> Option<usize> {
    let row: Vec<&str> = lines.get(1)?.split_whitespace().collect();
    let ["Mem:", total, used, rest @ ..] = row.as_slice() else { return None };
    let heading: Vec<&str> = lines.first()?.split_whitespace().collect();
    let flags = command.and_then(|c| c.split("free").nth(1)).unwrap_or_default();
    let flag = |c: char| {
        flags.split_whitespace().any(|w| w.starts_with('-') && !w.starts_with("--") && w.contains(c))
    };
    let unit = if flag('b') || flags.contains("--bytes") {
        "B"
    } else if flag('m') || flags.contains("--mebi") {
        "MiB"
    } else if flag('g') || flags.contains("--gibi") {
        "GiB"
    } else {
        "KiB"
    };
    // `-h` says its units itself. A machine of less than 64 MiB serves no model: such a number was printed by -m or -g.
    let least = Bytes(64 << 20);
    let bare = total.bytes().all(|b| b.is_ascii_digit());
    let unknown = bare && command.is_none() && size(total, unit).is_some_and(|t| t < least);
    let taken = 2 + usize::from(lines.get(2).is_some_and(|l| l.trim_start().starts_with("Swap:")));
    if unknown {
        let why = "the output of free has an unknown unit, so its numbers are not used";
        bundle.gap(file, why, Some("free -b > free.txt"));
        return Some(taken);
    }
    let at = heading.iter().position(|h| *h == "available").and_then(|i| i.checked_sub(2));
    bundle.machines.push(HostMemory {
        file: file.to_owned(),
        line: first + 1,
        tool: "free",
        total: size(total, unit),
        used: size(used, unit),
        available: at.and_then(|i| rest.get(i)).and_then(|a| size(a, unit)),
        ..HostMemory::default()
    });
    Some(taken)
}

/// `125Gi`, `1.9Ti`, `512Mi` with `-h`; a bare number in the unit of the flag.
fn size(text: &str, unit: &str) -> Option<Bytes> {
    let text = if text.ends_with('B') { text.trim_end_matches('B') } else { text };
    if text.bytes().all(|b| b.is_ascii_digit()) {
        return parse_memory(text, Some(unit));
    }
    // Older versions print `125G` and mean 2^30.
    let binary = text.trim_end_matches('i');
    parse_k8s_memory(&format!("{binary}i")).or_else(|| parse_k8s_memory(text))
}

fn meminfo(bundle: &mut Bundle, lines: &[&str], first: u64, file: &str) -> Option<usize> {
    let mut m =
        HostMemory { file: file.to_owned(), line: first, tool: "/proc/meminfo", ..HostMemory::default() };
    let mut taken = 0;
    for (i, line) in lines.iter().enumerate().take(128) {
        let Some((key, value)) = line.split_once(':') else { break };
        let mut words = value.split_whitespace();
        let Some(number) = words.next().and_then(|n| n.parse::<u64>().ok()) else { break };
        let kib = match words.next() {
            Some("kB") => Some(Bytes(number.saturating_mul(1024))),
            None => None,
            Some(_) => break,
        };
        match key.trim() {
            "MemTotal" => m.total = kib,
            "MemAvailable" => m.available = kib,
            _ => {}
        }
        taken = i + 1;
    }
    // Two lines of it, as `grep Mem /proc/meminfo` leaves.
    (taken >= 2).then(|| {
        bundle.machines.push(m);
        taken
    })
}

fn top(bundle: &mut Bundle, lines: &[&str], first: u64, file: &str, heading: &[&str]) -> Option<usize> {
    let at = |names: &[&str]| heading.iter().position(|h| names.contains(h));
    let memory = at(&["MEMORY(bytes)"])?;
    let percent = at(&["MEMORY%", "MEMORY(%)"]);
    let node = percent.is_some();
    let mut taken = 1;
    for (i, line) in lines.iter().enumerate().skip(1).take(MAX_ROWS) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let cell = |c: Option<usize>| c.and_then(|c| words.get(c)).copied();
        if words.len() != heading.len() {
            break;
        }
        let bytes = cell(Some(memory)).and_then(parse_k8s_memory);
        // A node without metrics shows `<unknown>`.
        if bytes.is_none() && cell(Some(memory)) != Some("<unknown>") {
            break;
        }
        taken = i + 1;
        let Some(bytes) = bytes else { continue };
        let line = first + i as u64;
        if node {
            if bundle.machines.len() >= MAX_ROWS {
                continue;
            }
            bundle.machines.push(HostMemory {
                file: file.to_owned(),
                line,
                tool: "kubectl top node",
                node: words.first().map(|n| (*n).to_owned()),
                used: Some(bytes),
                used_percent: cell(percent).and_then(|p| p.trim_end_matches('%').parse().ok()),
                ..HostMemory::default()
            });
        } else {
            let containers = at(&["POD"]).is_some();
            let Some(pod) = cell(at(&["POD"]).or(at(&["NAME"]))) else { break };
            if bundle.tops.len() >= MAX_ROWS {
                continue;
            }
            bundle.tops.push(TopRow {
                file: file.to_owned(),
                line,
                tool: "kubectl top",
                namespace: cell(at(&["NAMESPACE"])).map(str::to_owned),
                pod: pod.to_owned(),
                container: cell(at(&["NAME"])).filter(|_| containers).map(str::to_owned),
                memory: bytes,
            });
        }
    }
    Some(taken)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(text: &str, command: Option<&str>) -> (Bundle, usize) {
        let mut b = Bundle::default();
        let lines: Vec<&str> = text.lines().collect();
        let n = read(&mut b, &lines, 1, "x", command).unwrap_or(0);
        (b, n)
    }

    #[test]
    fn units_of_free() {
        const HEAD: &str =
            "               total        used        free      shared  buff/cache   available\n";
        for (row, command, total, available) in [
            ("Mem:       131072000    1000    1000      0    1000   65536000\n", None, Some(125), Some(62)),
            (
                "Mem:           125Gi      96Gi     2.0Gi     1.0Gi      27Gi      27Gi\n",
                None,
                Some(125),
                Some(27),
            ),
            (
                "Mem:            125G       96G      2.0G     1.0G      27G      27G\n",
                Some("free -h"),
                Some(125),
                Some(27),
            ),
            ("Mem:            128000  9600 2  1  27  27648\n", Some("free -m"), Some(125), Some(27)),
            ("Mem:  125 96 2 1 27 27\n", Some("free -g"), Some(125), Some(27)),
        ] {
            let (b, n) = one(&format!("{HEAD}{row}"), command);
            assert_eq!(n, 2, "{row}");
            let m = &b.machines[0];
            assert_eq!(m.total.map(|t| t.0 >> 30), total, "{row}");
            assert_eq!(m.available.map(|t| t.0 >> 30), available, "{row}");
        }
        let (b, n) = one(&format!("{HEAD}Mem:  125 96 2 1 27 27\n"), None);
        assert_eq!((n, b.machines.len(), b.gaps.len()), (2, 0, 1), "the unit is not known");
    }

    #[test]
    fn tables_of_top() {
        let (b, n) = one(
            "NAMESPACE   NAME   CPU(cores)   MEMORY(bytes)\nml   llm-0   12m   61000Mi\nnot a row\n",
            None,
        );
        assert_eq!((n, b.tops.len()), (2, 1));
        assert_eq!((b.tops[0].pod.as_str(), b.tops[0].namespace.as_deref()), ("llm-0", Some("ml")));
        let (b, _) = one("POD   NAME   CPU(cores)   MEMORY(bytes)\nllm-0   vllm   12m   61Gi\n", None);
        assert_eq!(b.tops[0].container.as_deref(), Some("vllm"));
        let (b, n) = one(
            "NAME   CPU(cores)   CPU%   MEMORY(bytes)   MEMORY%\nn1   1   2%   250Gi   98%\nn2 <unknown> <unknown> <unknown> <unknown>\n",
            None,
        );
        assert_eq!((n, b.machines[0].used_percent), (3, Some(98)));
    }
}
