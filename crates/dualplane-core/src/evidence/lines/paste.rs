//! A text as people paste it: an issue with fences, commands with their output, several kinds one below the other.
//!
//! Fences and prompts cut the text into blocks. Each block is recognised by itself. What a parser has read is blanked,
//! line by line, so that the rest is a log whose line numbers are those of the file.

use std::borrow::Cow;

use crate::evidence::recognise::{Kind, is_kernel_line, mostly, recognise_structured};
use crate::evidence::{Bundle, describe, forms, inspect, kube, prose, scrap, stream, tables};

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
    let large = text.len() > scrap::MAX_TEXT;
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
        // A quoted mail is read as what it quotes.
        let unquoted: Vec<Cow<'_, str>> = match large {
            true => Vec::new(),
            false => body.iter().map(|l| scrap::tidy::unquoted(l)).collect(),
        };
        let plain: Vec<&str> = match large {
            true => body.to_vec(),
            false => unquoted.iter().map(Cow::as_ref).collect(),
        };
        if (!one || plain != body) && structured(bundle, name, &plain, start) {
            claim(start, end, Owner::Taken);
            continue;
        }
        if !one && !kernel && mostly(body, is_kernel_line) {
            claim(start, end, Owner::Kernel);
        }
        let mut read = describe::read(bundle, &plain, start as u64 + 1, name);
        let mut rest = plain.clone();
        blank(&mut rest, &read);
        let rows = tables::read(bundle, &rest, start as u64 + 1, name);
        blank(&mut rest, &rows);
        read.extend(rows);
        let above = start.checked_sub(1).and_then(|i| lines.get(i)).copied();
        let above = above.and_then(|l| command(l.trim_start_matches(['>', ' '])));
        // Cells of these are parted by tabs, too.
        let mut raw = body.to_vec();
        blank(&mut raw, &read);
        let printouts = forms::read(bundle, &raw, start as u64 + 1, name, above);
        blank(&mut rest, &printouts);
        read.extend(printouts);
        if !kernel && !mostly(body, is_kernel_line) {
            read.extend(scrap::read(bundle, &rest, start as u64 + 1, name, above, large));
        }
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
    let quoted = |l: &str| l.trim_start().starts_with('>');
    let bytes = if !large && text.split('\n').any(quoted) {
        let all: Vec<Cow<'_, str>> = text
            .split('\n')
            .map(|l| if quoted(l) { scrap::tidy::unquoted(l) } else { Cow::Borrowed(l) })
            .collect();
        all.join("\n").into_bytes()
    } else {
        drop(text);
        bytes
    };
    if owner.iter().all(|o| *o == Owner::Log) {
        return vec![(kernel, bytes)];
    }
    let mut out = vec![(kernel, keep(&bytes, &owner, Owner::Log))];
    if owner.contains(&Owner::Kernel) {
        out.push((true, keep(&bytes, &owner, Owner::Kernel)));
    }
    out.retain(|(_, b)| !b.iter().all(u8::is_ascii_whitespace));
    out
}

/// Empties lines that a parser has read.
fn blank(lines: &mut [&str], read: &[(usize, usize)]) {
    for (from, to) in read {
        lines.get_mut(*from..*to).unwrap_or_default().fill("");
    }
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

/// What stands behind a prompt: `$ cmd`, `# cmd`, `user@host:~$ cmd`, `[root@node ~]# cmd`, `➜  ~ cmd`, `PS C:\\> cmd`; or
/// a command of kubectl without one.
fn command(line: &str) -> Option<&str> {
    if let Some(c) = line.strip_prefix("$ ").or_else(|| line.strip_prefix("# ")) {
        return Some(c);
    }
    let asks = |c: &str| ["get ", "describe ", "logs ", "events", "top "].iter().any(|v| c.starts_with(v));
    if line.strip_prefix("kubectl ").or_else(|| line.strip_prefix("oc ")).is_some_and(asks) {
        return Some(line);
    }
    if line.starts_with("PS ") {
        return line.split_once("> ").map(|(_, c)| c);
    }
    if let Some(rest) = ["➜", "❯", "λ"].iter().find_map(|mark| line.strip_prefix(mark)) {
        let starts = |at: &usize| {
            let c = rest.get(*at..).unwrap_or_default();
            COMMANDS.iter().any(|known| c.starts_with(known))
        };
        let word = |(i, c): (usize, char)| (c == ' ').then_some(i + 1);
        return rest.char_indices().take(64).filter_map(word).find(starts).and_then(|at| rest.get(at..));
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
