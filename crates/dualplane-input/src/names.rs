//! Names from archives: untrusted bytes become safe relative names, or are said to be unusable.

use super::limits::MAX_NAME;

/// Names that are labels of a corpus, never evidence: a tool that reads its own answers measures nothing.
const LABELS: &[&str] = &["truth.json", "expected.json", "expected.txt", "NOTES.md", "README.md"];

/// What to do with a name.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Name {
    /// A file of this name; `odd` says what was taken out of the name.
    File { name: String, odd: Option<&'static str> },
    /// Nothing to read: a folder, a hidden file, a label.
    Skip,
    /// It cannot be a file's name.
    Bad(&'static str),
}

/// Left out without a word, in directories and archives alike.
pub(super) fn left_out(component: &str) -> bool {
    component.starts_with('.') || LABELS.contains(&component)
}

/// A name as an archive holds it.
pub(super) fn sanitise(raw: &[u8]) -> Name {
    if raw.len() > MAX_NAME {
        return Name::Bad("its name exceeds the maximum path length");
    }
    let text = String::from_utf8_lossy(raw);
    let mut odd = None;
    let mut parts: Vec<String> = Vec::new();
    if text.starts_with('/') {
        odd = Some("an absolute path");
    }
    for part in text.split('/') {
        let drive = part.len() == 2 && part.ends_with(':') && parts.is_empty();
        if part == ".." || drive {
            odd = Some(if drive { "a drive letter" } else { "a path outside the archive" });
        } else if part.contains('\0') {
            odd = Some("a NUL byte");
            parts.push(part.replace('\0', "\u{fffd}"));
        } else if !part.is_empty() && part != "." {
            parts.push(part.to_owned());
        }
    }
    if text.ends_with('/') || parts.is_empty() && odd.is_none() {
        return Name::Skip;
    }
    if parts.is_empty() {
        return Name::Bad("its name is not a valid file name");
    }
    if parts.iter().any(|p| left_out(p)) {
        return Name::Skip;
    }
    Name::File { name: parts.join("/"), odd }
}

/// The name without the suffix of its compression: `server.log.1.gz` is `server.log.1`.
pub(super) fn unpacked(name: &str) -> String {
    without(name, &[".gz", ".gzip", ".zst", ".zstd"])
}

/// The folder that an archive stands for: `bundle.tar.gz` is `bundle`.
pub(super) fn stem(name: &str) -> String {
    without(name, &[".tar.gz", ".tgz", ".tar.zst", ".tzst", ".tar", ".zip", ".gz", ".zst"])
}

fn without(name: &str, suffixes: &[&str]) -> String {
    let lower = name.to_ascii_lowercase();
    let base = lower.rsplit('/').next().map_or(0, str::len);
    suffixes
        .iter()
        .find(|s| lower.ends_with(**s) && base > s.len())
        .and_then(|s| name.get(..name.len() - s.len()))
        .unwrap_or(name)
        .to_owned()
}

#[cfg(test)]
mod tests {
    use super::{Name, sanitise, stem, unpacked};

    #[test]
    fn no_name_leads_out() {
        for (raw, want) in [
            ("a/b.log", Some(("a/b.log", false))),
            ("./a//b.log", Some(("a/b.log", false))),
            ("../../etc/passwd", Some(("etc/passwd", true))),
            ("a/../../b", Some(("a/b", true))),
            ("/var/log/x", Some(("var/log/x", true))),
            ("C:/x.log", Some(("x.log", true))),
            ("a\0b", Some(("a\u{fffd}b", true))),
            ("a/", None),
            ("./", None),
            ("a/.hidden/b", None),
            ("a/truth.json", None),
        ] {
            let got = sanitise(raw.as_bytes());
            match want {
                Some((name, odd)) => {
                    assert!(
                        matches!(&got, Name::File { name: n, odd: o } if n == name && o.is_some() == odd),
                        "{raw}: {got:?}"
                    );
                }
                None => assert_eq!(got, Name::Skip, "{raw}"),
            }
        }
        assert!(matches!(sanitise(b".."), Name::Bad(_)));
        assert!(matches!(sanitise(&[b'a'; 5000]), Name::Bad(_)));
    }

    #[test]
    fn suffixes_are_taken_off_once() {
        assert_eq!(unpacked("a/server.log.1.GZ"), "a/server.log.1");
        assert_eq!(unpacked("a/.gz"), "a/.gz");
        assert_eq!(stem("x/bundle.tar.gz"), "x/bundle");
        assert_eq!(stem("bundle"), "bundle");
    }
}
