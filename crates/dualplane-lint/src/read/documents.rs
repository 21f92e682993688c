//! A stream as its documents, cut at the lines that separate them.

use std::io::{self, BufRead, Read};

use super::MAX_DOCUMENT;

/// A document as text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Document {
    /// Number in its file, from 1.
    pub number: u64,
    /// Line of the file at which it begins, from 1.
    pub line: u64,
    /// The text; empty where it was too long.
    pub text: String,
    /// It is longer than what is read.
    pub too_long: bool,
    /// It holds bytes that are no text.
    pub binary: bool,
}

/// Documents of a stream.
#[derive(Debug)]
pub struct Documents<R> {
    reader: R,
    line: u64,
    number: u64,
    ended: bool,
}

impl<R: BufRead> Documents<R> {
    /// Reads from here on.
    pub fn new(reader: R) -> Self {
        Self { reader, line: 1, number: 0, ended: false }
    }

    /// One line with its end, cut at the bound: a file without line ends is one line.
    fn next_line(&mut self, into: &mut Vec<u8>) -> io::Result<usize> {
        let bound = u64::try_from(MAX_DOCUMENT).unwrap_or(u64::MAX) + 1;
        (&mut self.reader).take(bound).read_until(b'\n', into)
    }
}

impl<R: BufRead> Iterator for Documents<R> {
    type Item = io::Result<Document>;

    fn next(&mut self) -> Option<Self::Item> {
        let mut bytes = Vec::new();
        let mut too_long = false;
        let mut begin = self.line;
        loop {
            if self.ended {
                return None;
            }
            let from = bytes.len();
            let read = match self.next_line(&mut bytes) {
                Ok(n) => n,
                Err(e) => {
                    self.ended = true;
                    return Some(Err(e));
                }
            };
            let line = bytes.get(from..).unwrap_or_default();
            let whole = line.ends_with(b"\n");
            let separator = is_separator(line);
            self.ended = read == 0;
            if separator || read == 0 {
                bytes.truncate(from);
                self.line += u64::from(separator);
                // What stands behind a separator without a word of its own is no document.
                let empty = !too_long && only_blank(&bytes);
                if empty {
                    bytes.clear();
                    begin = self.line;
                    continue;
                }
                self.number += 1;
                let (text, binary) = match String::from_utf8(bytes) {
                    Ok(text) => (text, false),
                    Err(_) => (String::new(), true),
                };
                return Some(Ok(Document { number: self.number, line: begin, text, too_long, binary }));
            }
            self.line += u64::from(whole);
            if bytes.len() > MAX_DOCUMENT {
                too_long = true;
            }
            if too_long {
                bytes.clear();
            }
        }
    }
}

/// `---`, also with a comment or a tag behind it; a document that begins on that line is not written by any tool.
fn is_separator(line: &[u8]) -> bool {
    let Some(rest) = line.strip_prefix(b"---") else { return false };
    let rest = rest.trim_ascii();
    rest.is_empty() || rest.starts_with(b"#") && line.get(3).is_some_and(u8::is_ascii_whitespace)
}

/// Only blanks, comments, and the end mark of a document.
fn only_blank(bytes: &[u8]) -> bool {
    bytes.split(|b| *b == b'\n').all(|l| {
        let l = l.trim_ascii();
        l.is_empty() || l.starts_with(b"#") || l == b"..."
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Vec<(u64, u64, String)> {
        let all = Documents::new(text.as_bytes()).map(Result::unwrap);
        all.map(|d| (d.number, d.line, d.text)).collect()
    }

    #[test]
    fn documents_know_their_lines() {
        let all = read("# head\n---\n# Source: a\na: 1\n---\n\n---   # next\nb: |\n  --- x\n---\n");
        assert_eq!(all, [(1, 3, "# Source: a\na: 1\n".into()), (2, 8, "b: |\n  --- x\n".into())]);
        assert_eq!(read("a: 1"), [(1, 1, "a: 1".into())]);
        assert!(read("---\n---\n").is_empty());
    }

    #[test]
    fn a_long_document_is_skipped_and_the_next_is_read() {
        let text = format!("a: 1\n---\nb: {}\n---\nc: 1\n", "x".repeat(MAX_DOCUMENT + 10));
        let all: Vec<Document> = Documents::new(text.as_bytes()).map(Result::unwrap).collect();
        assert_eq!(all.len(), 3);
        assert!(all[1].too_long && all[1].text.is_empty());
        assert_eq!((all[2].number, all[2].line, all[2].text.as_str()), (3, 5, "c: 1\n"));
        let bytes: &[u8] = b"a: \xff\n---\nb: 1\n";
        let all: Vec<Document> = Documents::new(bytes).map(Result::unwrap).collect();
        assert!(all[0].binary && all[1].text == "b: 1\n");
    }
}
