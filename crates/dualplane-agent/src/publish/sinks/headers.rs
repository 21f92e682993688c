//! A file of headers, one `Name: value` in a line, as curl reads them with `-H @FILE`.

use http::{HeaderName, HeaderValue};

/// A line that is no header. The line itself is not shown: it may be a secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("line {0} is not a header: use Name: value")]
pub struct NoHeader(usize);

/// Names and values. Empty lines and those that begin with `#` say nothing.
///
/// # Errors
/// The first line that is none.
pub fn read_headers(text: &str) -> Result<Vec<(String, String)>, NoHeader> {
    let lines = text.lines().map(str::trim).enumerate().filter(|(_, l)| !l.is_empty() && !l.starts_with('#'));
    lines.map(|(at, line)| header(line).ok_or(NoHeader(at + 1))).collect()
}

fn header(line: &str) -> Option<(String, String)> {
    let (name, value) = line.split_once(':')?;
    let (name, value) = (name.trim(), value.trim());
    (HeaderName::try_from(name).is_ok() && HeaderValue::try_from(value).is_ok())
        .then(|| (name.to_owned(), value.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_in_each_line() {
        let text = "# of the store\r\nx-ms-blob-type: BlockBlob\r\n\nAuthorization:Basic a:b\n";
        let two = [("x-ms-blob-type", "BlockBlob"), ("Authorization", "Basic a:b")];
        assert_eq!(read_headers(text), Ok(two.map(|(n, v)| (n.to_owned(), v.to_owned())).to_vec()));
        assert_eq!(read_headers(""), Ok(Vec::new()));
        for (text, line) in [("a b: c", 1), ("a: b\nsecret", 2), (": b", 1), ("a: \u{1}", 1)] {
            assert_eq!(read_headers(text), Err(NoHeader(line)), "{text:?}");
        }
    }
}
