//! `lint --fix`: fixes that are values, as patches of the files; with `--write`, into the files.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use dualplane_base::text::{counted, printable};
use dualplane_lint::read::Documents;
use dualplane_lint::report::Report;
use dualplane_lint::{Edit, fix};
use similar::algorithms::{Capture, Compact, Replace, myers};
use similar::udiff::UnifiedHunkHeader;
use similar::{DiffTag, group_diff_ops};

use crate::commands::Failure;
use crate::exit::{self, Code};
use crate::{files, output};

/// A larger file is not rewritten.
const MAX_FILE: u64 = 64 << 20;
/// For the shortest patch of one file.
const PATIENCE: Duration = Duration::from_secs(3);
/// Lines around a change.
const CONTEXT: usize = 3;

pub(super) fn run(report: &Report, write: bool) -> Result<Code, Failure> {
    let mut by_file: BTreeMap<&str, BTreeMap<u64, Vec<Edit>>> = BTreeMap::new();
    for f in report.findings.iter().filter(|f| !f.edits.is_empty() && f.source.file != "-") {
        by_file
            .entry(&f.source.file)
            .or_default()
            .entry(f.source.document)
            .or_default()
            .extend(f.edits.iter().cloned());
    }
    let (mut out, mut done, mut files) = (String::new(), 0, 0);
    for (file, documents) in by_file {
        let path = Path::new(file);
        let unreadable = |source| Failure::Unreadable { path: path.into(), source };
        if std::fs::metadata(path).map_err(unreadable)?.len() > MAX_FILE {
            continue;
        }
        let before = std::fs::read_to_string(path).map_err(unreadable)?;
        let (after, made) = fixed(&before, &documents);
        if made == 0 {
            continue;
        }
        (done, files) = (done + made, files + 1);
        out.push_str(&patch(file, &before, &after));
        if write {
            replace(path, &after).map_err(|source| Failure::Unwritable { path: path.into(), source })?;
        }
    }
    let left = report.findings.len().saturating_sub(done);
    output::write(&out)?;
    let verb = if write { "wrote" } else { "shows" };
    output::note(&format!(
        "{verb} {} in {}; {} left for you to decide{}",
        counted(done, "change"),
        counted(files, "file"),
        counted(left, "finding"),
        if write || done == 0 { "" } else { "; --write changes the files" }
    ));
    Ok(exit::OK)
}

/// The whole new text or the whole old one, with the rights that the file had.
fn replace(path: &Path, text: &str) -> std::io::Result<()> {
    let rights = std::fs::metadata(path)?.permissions();
    files::write_whole(path, text.as_bytes())?;
    std::fs::set_permissions(path, rights)
}

/// A file's text with the edits of its documents, and how many were made.
fn fixed(text: &str, documents: &BTreeMap<u64, Vec<Edit>>) -> (String, usize) {
    let mut out = String::with_capacity(text.len());
    let (mut made, mut from) = (0, 0);
    // Where each line begins: a file may have as many documents as lines.
    let begins: Vec<usize> = std::iter::once(0).chain(text.match_indices('\n').map(|(i, _)| i + 1)).collect();
    for document in Documents::new(text.as_bytes()).flatten() {
        let Some(edits) = documents.get(&document.number).filter(|_| !document.text.is_empty()) else {
            continue;
        };
        let line = usize::try_from(document.line).unwrap_or(usize::MAX);
        let Some(start) = begins.get(line.saturating_sub(1)).copied() else { continue };
        let end = start + document.text.len();
        let (Some(before), true) =
            (text.get(from..start), text.get(start..end) == Some(document.text.as_str()))
        else {
            continue;
        };
        let patched = fix(&document.text, edits);
        made += patched.done.len();
        out.push_str(before);
        out.push_str(&patched.text);
        from = end;
    }
    out.push_str(text.get(from..).unwrap_or_default());
    (out, made)
}

/// A unified diff, which `patch` and `git apply` take. The library's own way from text to text would bring all of its algorithms,
/// an eighth of a MiB.
fn patch(file: &str, before: &str, after: &str) -> String {
    let name = printable(file.trim_start_matches('/'));
    let (old, new) = (lines(before), lines(after));
    let mut found = Compact::new(Replace::new(Capture::default()), old.as_slice(), new.as_slice());
    // Of a large file with many changes, any patch that is right is better than the shortest one minutes later.
    let until = Instant::now().checked_add(PATIENCE);
    let (old_lines, new_lines) = (0..old.len(), 0..new.len());
    let Ok(()) =
        myers::diff_deadline(&mut found, old.as_slice(), old_lines, new.as_slice(), new_lines, until);
    let mut out = format!("--- a/{name}\n+++ b/{name}\n");
    for hunk in group_diff_ops(found.into_inner().into_inner().into_ops(), CONTEXT) {
        out.push_str(&format!("{}\n", UnifiedHunkHeader::new(&hunk)));
        for op in hunk {
            let same = op.tag() == DiffTag::Equal;
            let gone = old.get(op.old_range()).unwrap_or_default();
            let come = new.get(op.new_range()).filter(|_| !same).unwrap_or_default();
            let marked =
                gone.iter().map(|l| (if same { ' ' } else { '-' }, l)).chain(come.iter().map(|l| ('+', l)));
            for (mark, line) in marked {
                let (text, end) = line.strip_suffix('\n').map_or((*line, NO_END), |l| (l, "\n"));
                out.push(mark);
                out.push_str(&printable(text));
                out.push_str(end);
            }
        }
    }
    out
}

/// As `diff` says that a file's last line has no end.
const NO_END: &str = "\n\\ No newline at end of file\n";

fn lines(text: &str) -> Vec<&str> {
    text.split_inclusive('\n').collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_patch_shows_single_lines() {
        let before = "a: 1\nb: 2\nc: 3\nd: 4\ne: 5\n";
        let after = "a: 1\nb: 2\nc: 9\nd: 4\ne: 5\nf: 6\n";
        // Changes whose surroundings meet are one hunk.
        let want =
            "--- a/x.yaml\n+++ b/x.yaml\n@@ -1,5 +1,6 @@\n a: 1\n b: 2\n-c: 3\n+c: 9\n d: 4\n e: 5\n+f: 6\n";
        assert_eq!(patch("x.yaml", before, after), want);
    }

    /// What the library itself writes, which is compiled into this test alone.
    #[test]
    fn it_is_the_patch_that_the_library_writes() {
        let before: String = (0..60).map(|i| format!("line {}\n", i % 7)).collect();
        for (from, to) in
            [("line 3\n", "x\n"), ("line 3\nline 4\n", ""), ("line 6\n", "a\nb\nc\n"), ("line 0", "y")]
        {
            for end in ["", "last without an end"] {
                let old = before.clone() + end;
                let new = old.replacen(from, to, 3) + if end.is_empty() { "" } else { "\n" };
                let diff = similar::TextDiff::from_lines(&old, &new);
                let want = diff.unified_diff().context_radius(CONTEXT).header("a/f", "b/f").to_string();
                assert_eq!(patch("f", &old, &new), want);
            }
        }
    }

    #[test]
    fn documents_are_fixed_each_in_its_place() {
        let text = "# one\na: 1\n---\nb: 1 # two\n";
        let edit = |p: &str| vec![Edit { pointer: p.into(), value: 2.into() }];
        let (out, made) = fixed(text, &BTreeMap::from([(1, edit("/a")), (2, edit("/b"))]));
        assert_eq!((out.as_str(), made), ("# one\na: 2\n---\nb: 2 # two\n", 2));
    }
}
