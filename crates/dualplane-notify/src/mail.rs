//! A message as RFC 5322 writes it: ASCII headers, a body in UTF-8 by quoted-printable, so that no server changes it.

use std::fmt::Write as _;

use serde_json::Value;

/// Characters of a line of the body (RFC 2045 allows 76).
const WIDTH: usize = 76;

/// Of the filled template: `subject`, and `lines` of the body. The sender adds From, To, Date and Message-ID.
pub(crate) fn message(filled: &Value) -> String {
    let subject = filled.get("subject").and_then(Value::as_str).unwrap_or_default();
    let mut out = format!("Subject: {}\r\n", header(subject));
    for (name, key) in [("X-Dualplane-Class", "class"), ("References", "thread")] {
        if let Some(value) = filled.get(key).and_then(Value::as_str).filter(|v| !v.is_empty()) {
            let _ = write!(out, "{name}: {}\r\n", header(value));
        }
    }
    out.push_str("MIME-Version: 1.0\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\n");
    let lines = filled.get("lines").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    for line in lines {
        let line = line.as_str().or_else(|| line.get("line").and_then(Value::as_str)).unwrap_or_default();
        out.push_str(&quoted(line));
        out.push_str("\r\n");
    }
    out
}

/// A header's value on one line: what is no printable ASCII is an encoded word (RFC 2047), at most 75 characters each.
fn header(text: &str) -> String {
    if text.chars().all(|c| c == ' ' || c.is_ascii_graphic()) && text.len() < 900 {
        return text.to_owned();
    }
    let mut words = vec![String::new()];
    for c in text.chars() {
        let mut bytes = [0; 4];
        let coded: String = c.encode_utf8(&mut bytes).bytes().fold(String::new(), |mut s, b| {
            let _ = write!(s, "={b:02X}");
            s
        });
        let coded = match c {
            ' ' => "_".to_owned(),
            c if c.is_ascii_alphanumeric() => c.to_string(),
            _ => coded,
        };
        match words.last_mut() {
            Some(word) if word.len() + coded.len() <= 60 => word.push_str(&coded),
            _ => words.push(coded),
        }
    }
    let words: Vec<String> = words.iter().map(|w| format!("=?utf-8?Q?{w}?=")).collect();
    words.join("\r\n ")
}

/// One line of the body (RFC 2045): long lines are broken softly, and a dot at a line's start stays one.
fn quoted(line: &str) -> String {
    let mut out = String::new();
    let mut width = 0;
    for (i, b) in line.bytes().enumerate() {
        let last = i + 1 == line.len();
        let plain = (b.is_ascii_graphic() && b != b'=' || b == b' ')
            && !(b == b' ' && last)
            && !(b == b'.' && width == 0);
        let coded = if plain { char::from(b).to_string() } else { format!("={b:02X}") };
        if width + coded.len() >= WIDTH {
            out.push_str("=\r\n");
            width = 0;
        }
        width += coded.len();
        out.push_str(&coded);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_is_one_line_and_a_body_has_no_lone_dot() {
        assert_eq!(header("Host RAM: a/b"), "Host RAM: a/b");
        assert_eq!(header("ü"), "=?utf-8?Q?=C3=BC?=");
        let long = header(&"ü".repeat(100));
        assert!(long.lines().all(|l| l.len() <= 76 && !l.is_empty()), "{long}");
        assert!(header("a\r\nBcc: x@y").starts_with("=?utf-8?Q?a=0D=0ABcc"), "no header comes in by a value");
        assert_eq!(quoted("."), "=2E");
        assert_eq!(quoted("a=ü "), "a=3D=C3=BC=20");
        assert!(quoted(&"x".repeat(300)).split("\r\n").all(|l| l.len() <= WIDTH));
    }
}
