//! Pairs of label and value in a line, however they are joined: `Label: value`, `"label":"value"`, `label=value`,
//! `label -> value`, cells of a table, several in one line.

use super::field::{Field, field};

/// A label and what stands behind it, up to the end of the line or cell.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Pair<'a> {
    pub(super) field: Field,
    /// The label as it was written.
    pub(super) label: &'a str,
    /// What stands behind it; other pairs may follow in it.
    pub(super) value: &'a str,
    /// Where the label begins.
    pub(super) start: usize,
}

/// Words of the longest label, `last terminated reason`.
const LONGEST: usize = 3;
/// Pairs of one line.
const MAX_PAIRS: usize = 400;

/// The pairs of a line that [`super::tidy::bare`] made.
pub(super) fn pairs(line: &str) -> Vec<Pair<'_>> {
    let mut out: Vec<Pair<'_>> = Vec::new();
    // Where the words of the next label may begin.
    let mut from = 0;
    for (at, c) in line.char_indices() {
        let joint = match c {
            ':' | '=' => true,
            '|' => true,
            ' ' => {
                line.get(at..).is_some_and(|r| r.starts_with("  "))
                    && !line.get(..at).is_some_and(|b| b.ends_with(' '))
            }
            ',' | ';' => {
                from = at + 1;
                continue;
            }
            _ => continue,
        };
        if !joint || out.len() >= MAX_PAIRS {
            continue;
        }
        let cell = matches!(c, '|' | ' ');
        let before = line.get(from..at).unwrap_or_default();
        // What stands behind a label is its value, also where it could be a label.
        let begin = from + before.len() - before.trim_start().len();
        if cell && out.last().is_some_and(|p| value_at(line, p) == begin) {
            from = at + 1;
            continue;
        }
        // A cell is a label as a whole; before a colon the last words are.
        if let Some((start, f)) = label(before, cell)
            && !(c == ' ' && line.get(at..).is_none_or(|r| r.trim_start().starts_with([':', '|', '='])))
        {
            let start = from + start;
            out.push(Pair {
                field: f,
                label: line.get(start..at).unwrap_or_default().trim(),
                value: line.get(at..).unwrap_or_default().trim_start_matches([' ', ':', '=', '|']).trim_end(),
                start,
            });
        }
        if c != ' ' {
            from = at + 1;
        }
    }
    out
}

/// Where the value of a pair begins.
fn value_at(line: &str, pair: &Pair<'_>) -> usize {
    (pair.value.as_ptr() as usize).saturating_sub(line.as_ptr() as usize)
}

/// The label at the end of a text, and where it begins.
fn label(text: &str, whole: bool) -> Option<(usize, Field)> {
    let end = text.trim_end();
    if whole {
        let start = end.len() - end.trim_start().len();
        return field(end.trim_start()).filter(|_| end.len() - start <= 40).map(|f| (start, f));
    }
    // The longest of the last words wins: `Last State` before `State`.
    let mut starts: Vec<usize> = Vec::new();
    let mut at = end.len();
    for word in end.rsplit([' ', '/', '.', '(', ',']).take(LONGEST) {
        at = at.checked_sub(word.len())?;
        starts.push(at);
        at = at.saturating_sub(1);
    }
    starts.iter().rev().find_map(|s| field(end.get(*s..)?).map(|f| (*s, f)))
}

#[cfg(test)]
mod tests {
    use super::super::tidy::bare;
    use super::*;

    fn found(line: &str) -> Vec<(Field, String)> {
        let line = bare(line);
        let first = |v: &str| v.split([' ', ',']).next().unwrap_or_default().to_owned();
        pairs(&line).iter().map(|p| (p.field, first(p.value))).collect()
    }

    #[test]
    fn all_ways_to_join_a_label_and_its_value() {
        let reason = vec![(Field::Reason, "OOMKilled".to_owned())];
        for line in [
            "Reason:       OOMKilled",
            "\"reason\": \"OOMKilled\",",
            "reason=OOMKilled",
            "Reason -> OOMKilled",
            "| Reason | OOMKilled |",
            "Reason    OOMKilled",
            "**Reason:** OOMKilled",
            "Reason : OOMKilled",
        ] {
            assert_eq!(found(line), reason, "{line}");
        }
        let all = "Last State: Terminated / Reason: OOMKilled / Exit Code: 137";
        let want = [(Field::LastState, "Terminated"), (Field::Reason, "OOMKilled"), (Field::ExitCode, "137")];
        assert_eq!(found(all), want.map(|(f, v)| (f, v.to_owned())));
        let joined = "Last State:     Terminated       Reason:       OOMKilled       Exit Code:    137";
        assert_eq!(found(joined), want.map(|(f, v)| (f, v.to_owned())));
        let go = "ContainerStateTerminated{ExitCode:137,Signal:0,Reason:OOMKilled,}";
        assert_eq!(found(go), [(Field::ExitCode, "137".to_owned()), (Field::Reason, "OOMKilled".to_owned())]);
        assert_eq!(found("http://x:80/a finish_reason: stop"), []);
    }
}
