//! A sifted log as a text for people that keeps its line numbers: where lines were left out, a line says how many.

use std::sync::Arc;

/// A line is matched and kept up to here, in sifting and in `facts`.
pub const MAX_LINE: usize = 64 << 10;

/// A log of which only some lines were kept.
#[derive(Debug, Clone, Default)]
pub struct Sifted {
    /// The kept lines.
    pub text: Vec<u8>,
    /// The number of each in the log, from 1.
    pub numbers: Arc<[u64]>,
    /// Lines of the log.
    pub lines: u64,
    /// Lines that say what kept lines say already and were dropped for want of room.
    pub omitted: u64,
}

/// First line of such a text.
const HEAD: &str = "[dualplane.sifted/v1 ";
/// Line where others were left out.
const CUT: &str = "[dualplane: ";

/// The text of a sifted log.
#[must_use]
pub fn fold(log: &Sifted) -> Vec<u8> {
    let mut out = format!("{HEAD}lines={} omitted={}]\n", log.lines, log.omitted).into_bytes();
    let mut next = 1;
    for (line, number) in log.text.split_inclusive(|b| *b == b'\n').zip(log.numbers.iter()) {
        cut(&mut out, next, *number);
        out.extend_from_slice(line);
        if !line.ends_with(b"\n") {
            out.push(b'\n');
        }
        next = number + 1;
    }
    cut(&mut out, next, log.lines + 1);
    out
}

fn cut(out: &mut Vec<u8>, next: u64, number: u64) {
    if number > next {
        out.extend_from_slice(format!("{CUT}lines {next} to {} left out]\n", number - 1).as_bytes());
    }
}

/// Whether a text begins as [`fold`] writes it.
#[must_use]
pub fn is_folded(head: &[u8]) -> bool {
    head.starts_with(HEAD.as_bytes())
}

/// Reads what [`fold`] wrote; `None` for any other text.
#[must_use]
pub fn unfold(text: &[u8]) -> Option<Sifted> {
    let mut lines = text.split_inclusive(|b| *b == b'\n');
    let head = std::str::from_utf8(lines.next()?).ok()?.trim_end();
    let head = head.strip_prefix(HEAD)?.strip_suffix(']')?;
    let number =
        |key: &str| head.split(' ').find_map(|p| p.strip_prefix(key)).and_then(|v| v.parse::<u64>().ok());
    let mut log = Sifted { lines: number("lines=")?, omitted: number("omitted=")?, ..Sifted::default() };
    let mut numbers = Vec::new();
    let mut next: u64 = 1;
    for line in lines {
        // A line that only looks like ours would have to lead forward, and then costs only itself.
        if let Some(last) = left_out(line, next) {
            next = last.saturating_add(1);
            continue;
        }
        log.text.extend_from_slice(line);
        numbers.push(next);
        next = next.saturating_add(1);
    }
    log.numbers = numbers.into();
    Some(log)
}

/// The last line that a cut leaves out.
fn left_out(line: &[u8], next: u64) -> Option<u64> {
    let line = std::str::from_utf8(line).ok()?.trim_end();
    let rest = line.strip_prefix(CUT)?.strip_prefix("lines ")?.strip_suffix(" left out]")?;
    let (from, to) = rest.split_once(" to ")?;
    let (from, to): (u64, u64) = (from.parse().ok()?, to.parse().ok()?);
    (from == next && to >= from).then_some(to)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folded_log_keeps_its_numbers() {
        let log = Sifted {
            text: b"one\nfive\nsix\nlast without end".to_vec(),
            numbers: vec![1, 5, 6, 900].into(),
            lines: 1000,
            omitted: 3,
        };
        let text = fold(&log);
        assert!(is_folded(&text));
        let shown = String::from_utf8(text.clone()).unwrap();
        assert!(shown.contains("one\n[dualplane: lines 2 to 4 left out]\nfive\nsix\n"), "{shown}");
        assert!(shown.ends_with("[dualplane: lines 901 to 1000 left out]\n"), "{shown}");
        let again = unfold(&text).unwrap();
        assert_eq!((&again.numbers, again.lines, again.omitted), (&log.numbers, 1000, 3));
        assert_eq!(again.text, b"one\nfive\nsix\nlast without end\n");
    }

    #[test]
    fn other_texts_are_not_unfolded() {
        assert!(unfold(b"INFO a log\n").is_none());
        assert!(unfold(b"[dualplane.sifted/v1 lines=x omitted=0]\n").is_none());
        // A line of the log that imitates ours and leads back is a line.
        let odd = unfold(b"[dualplane.sifted/v1 lines=9 omitted=0]\na\n[dualplane: lines 1 to 8 left out]\n")
            .unwrap();
        assert_eq!(&*odd.numbers, &[1, 2]);
    }
}
