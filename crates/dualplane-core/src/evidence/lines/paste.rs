//! A text as people paste it: an issue with fences, commands with their output, several kinds one below the other.
//!
//! Fences and prompts cut the text into blocks. Each block is recognised by itself. What a parser has read is blanked,
//! line by line, so that the rest is a log whose line numbers are those of the file.

use crate::evidence::recognise::{Kind, is_kernel_line, mostly, recognise_structured};
use crate::evidence::{Bundle, describe, forms, inspect, kube, prose, stream, tables};

/// Larger texts are logs: nobody pastes them, and they are not looked through for objects.
pub(in crate::evidence) const MAX_PASTE: usize = 16 << 20;
/// Blocks in one text; the rest is one block.
const MAX_BLOCKS: usize = 2000;

/// Commands whose output is evidence, as they stand behind a prompt.
const COMMANDS: &[&str] = &[
    "kubectl ",
    "oc ",
    "k ",
    "sudo ",
    "docker ",
    "nerdctl ",
    "podman ",
    "crictl ",
    "journalctl",
    "dmesg",
    "nvidia-smi",
    "rocm-smi",
    "amd-smi",
    "dcgmi ",
    "py-spy ",
    "promtool ",
    "ausearch",
    "cat ",
    "tail ",
    "head ",
    "grep ",
    "curl ",
    "free",
    "stern ",
    "logcli ",
    "helm ",
    "ls ",
    "cd ",
    "exit",
];

/// Reads the objects of a text into the bundle and returns what is left: logs, each with whether it is a kernel's.
pub(in crate::evidence) fn read(
    bundle: &mut Bundle,
    name: &str,
    bytes: Vec<u8>,
    kernel: bool,
) -> Vec<(bool, Vec<u8>)> {
    if bytes.len() > MAX_PASTE {
        return vec![(kernel, bytes)];
    }
    let text = String::from_utf8_lossy(&bytes);
    let mut lines: Vec<&str> = text.split('\n').map(|l| l.strip_suffix('\r').unwrap_or(l)).collect();
    let (blocks, mut owner) = blocks(&lines);
    // A text without a fence or prompt was recognised as a whole before.
    let one = blocks.len() < 2 && owner.iter().all(|o| *o == Owner::Log);
    let mut claim = |from: usize, to: usize, by: Owner| {
        if let Some(range) = owner.get_mut(from..to) {
            range.fill(by);
        }
    };
    let found = stream::read(&text);
    kube::add_all(bundle, &found.objects, name, &text);
    if let Some((line, error)) = found.broken {
        let why = format!("its JSON is broken at line {line} ({error}); save it again");
        bundle.gap(name, &why, Some("kubectl get pod,events,node -o json"));
    }
    for (from, to) in found.lines {
        claim(from, to, Owner::Taken);
        lines.get_mut(from..to).unwrap_or_default().fill("");
    }
    for (start, end) in blocks {
        let Some(body) = lines.get(start..end) else { continue };
        if !one && structured(bundle, name, body, start) {
            claim(start, end, Owner::Taken);
            continue;
        }
        if !one && !kernel && mostly(body, is_kernel_line) {
            claim(start, end, Owner::Kernel);
        }
        let mut read = describe::read(bundle, body, start as u64 + 1, name);
        let mut rest = body.to_vec();
        for range in &read {
            rest.get_mut(range.0..range.1).unwrap_or_default().fill("");
        }
        let rows = tables::read(bundle, &rest, start as u64 + 1, name);
        for range in &rows {
            rest.get_mut(range.0..range.1).unwrap_or_default().fill("");
        }
        read.extend(rows);
        let above = start.checked_sub(1).and_then(|i| lines.get(i)).copied();
        let above = above.and_then(|l| command(l.trim_start_matches(['>', ' '])));
        read.extend(forms::read(bundle, &rest, start as u64 + 1, name, above));
        for (from, to) in read {
            claim(start + from, start + to, Owner::Taken);
        }
    }
    if let Some(prose) = prose::lines(&text.split('\n').collect::<Vec<_>>()) {
        for (owner, prose) in owner.iter_mut().zip(prose) {
            if prose && *owner == Owner::Log {
                *owner = Owner::Taken;
            }
        }
    }
    drop(lines);
    if owner.iter().all(|o| *o == Owner::Log) {
        drop(text);
        return vec![(kernel, bytes)];
    }
    let mut out = vec![(kernel, keep(&bytes, &owner, Owner::Log))];
    if owner.contains(&Owner::Kernel) {
        out.push((true, keep(&bytes, &owner, Owner::Kernel)));
    }
    out.retain(|(_, b)| !b.iter().all(u8::is_ascii_whitespace));
    out
}

/// Who reads a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Owner {
    /// It is a line of a log.
    Log,
    /// It is a line of a kernel log between others.
    Kernel,
    /// A parser has read it, or it is a fence or prompt.
    Taken,
}

/// A block that is an object or metrics as a whole. Padding keeps the line numbers of the file.
fn structured(bundle: &mut Bundle, name: &str, body: &[&str], start: usize) -> bool {
    let text = body.join("\n");
    match recognise_structured(text.as_bytes()) {
        Some(Kind::Kube(objects)) => {
            let padded = format!("{}{text}", "\n".repeat(start));
            kube::add_all(bundle, &objects, name, &padded) > 0
        }
        Some(Kind::Inspect(value)) => {
            bundle.pasted.extend(inspect::pods(&value, name));
            true
        }
        Some(Kind::Metrics) => {
            let padded = format!("{}{text}", "\n".repeat(start));
            bundle.samples(&padded, name);
            true
        }
        Some(Kind::Series(value)) => {
            let padded = format!("{}{text}", "\n".repeat(start));
            bundle.series(&value, &padded, name);
            true
        }
        _ => false,
    }
}

/// Blocks between fences and prompts. The lines of fences and prompts are no evidence.
fn blocks(lines: &[&str]) -> (Vec<(usize, usize)>, Vec<Owner>) {
    let mut blocks = Vec::new();
    let mut owner = vec![Owner::Log; lines.len()];
    let mut start = 0;
    for (i, (line, owner)) in lines.iter().zip(&mut owner).enumerate() {
        if blocks.len() >= MAX_BLOCKS || !is_bound(line) {
            continue;
        }
        if start < i {
            blocks.push((start, i));
        }
        *owner = Owner::Taken;
        start = i + 1;
    }
    if start < lines.len() {
        blocks.push((start, lines.len()));
    }
    blocks.retain(|(a, b)| lines.get(*a..*b).is_some_and(|l| l.iter().any(|l| !l.trim().is_empty())));
    (blocks, owner)
}

pub(in crate::evidence) fn is_bound(line: &str) -> bool {
    let line = line.trim_start_matches(['>', ' ']);
    if let Some(rest) = line.strip_prefix("```").or_else(|| line.strip_prefix("~~~")) {
        return rest.len() < 24 && !rest.trim().contains(' ');
    }
    command(line).is_some_and(|c| COMMANDS.iter().any(|known| c.starts_with(known)))
}

/// What stands behind a prompt: `$ cmd`, `# cmd`, `user@host:~$ cmd`, `[root@node ~]# cmd`.
fn command(line: &str) -> Option<&str> {
    if let Some(c) = line.strip_prefix("$ ").or_else(|| line.strip_prefix("# ")) {
        return Some(c);
    }
    let at = line.bytes().take(64).position(|b| matches!(b, b'$' | b'#'))?;
    let (prompt, rest) = line.split_at_checked(at)?;
    let host = prompt.contains('@') && prompt.split_whitespace().count() <= 2;
    rest.get(1..).filter(|_| host)?.strip_prefix(' ')
}

/// The text with only the lines of one owner; the others are empty.
fn keep(bytes: &[u8], owner: &[Owner], mine: Owner) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len());
    for (i, (line, owner)) in bytes.split(|b| *b == b'\n').zip(owner).enumerate() {
        if i > 0 {
            out.push(b'\n');
        }
        if *owner == mine {
            out.extend_from_slice(line);
        }
    }
    out
}
