//! Bytes as people save them become plain UTF-8 text: byte order marks, UTF-16, HTML escapes of a web page.
//!
//! Lines stay lines, so that line numbers hold for the file as an editor shows it.

/// How much of a file decides.
const HEAD: usize = 64 << 10;
/// Only the text of a page is saved escaped; larger files are logs.
const MAX_HTML: usize = 16 << 20;
/// What browsers and log viewers escape.
const ENTITIES: &[(&str, &str)] = &[
    ("&lt;", "<"),
    ("&gt;", ">"),
    ("&quot;", "\""),
    ("&#34;", "\""),
    ("&#39;", "'"),
    ("&#x27;", "'"),
    ("&apos;", "'"),
    ("&nbsp;", " "),
    ("&#x2F;", "/"),
];
/// Tags of pages that show logs and issues.
const TAGS: &[&str] = &[
    "pre", "code", "span", "div", "p", "br", "details", "summary", "html", "body", "td", "tr", "table", "b",
    "a",
];

/// Takes NUL bytes out of a text, and counts them: a log whose node crashed holds blocks of them where the file system had
/// made room for lines that were never written. `None` where the rest is no text either.
pub(crate) fn without_nuls(bytes: &mut Vec<u8>) -> Option<usize> {
    let before = bytes.len();
    if !bytes.contains(&0) || before == 0 {
        return Some(0);
    }
    // What is packed or compiled holds bytes that are no UTF-8 between its NULs.
    let head = bytes.get(..before.min(HEAD)).unwrap_or(bytes);
    let odd: usize = head.utf8_chunks().map(|c| c.invalid().len()).sum();
    let text = head.iter().filter(|b| **b != 0).count();
    if text == 0 || odd * 20 > text {
        return None;
    }
    bytes.retain(|b| *b != 0);
    Some(before - bytes.len())
}

/// Text as it was meant. What is not one of the known encodings stays as it is.
pub(in crate::evidence) fn plain(bytes: Vec<u8>) -> Vec<u8> {
    let bytes = match bytes.strip_prefix(b"\xef\xbb\xbf") {
        Some(rest) => rest.to_vec(),
        None => utf16(&bytes).unwrap_or(bytes),
    };
    html(&bytes).unwrap_or(bytes)
}

/// Whether the bytes begin as UTF-16 does.
pub(in crate::evidence) fn is_utf16(head: &[u8]) -> bool {
    utf16(head.get(..head.len().min(HEAD)).unwrap_or(head)).is_some()
}

fn utf16(bytes: &[u8]) -> Option<Vec<u8>> {
    let (little, body) = if let Some(body) = bytes.strip_prefix(b"\xff\xfe") {
        (true, body)
    } else if let Some(body) = bytes.strip_prefix(b"\xfe\xff") {
        (false, body)
    } else {
        // Without a mark: every other byte of ASCII text is zero.
        let head = bytes.get(..bytes.len().min(HEAD))?;
        let zeros = |odd: usize| head.iter().skip(odd).step_by(2).filter(|b| **b == 0).count() * 10;
        let half = head.len() / 2;
        match (zeros(0), zeros(1)) {
            (even, odd) if half > 16 && odd > half * 8 && even < half => (true, bytes),
            (even, odd) if half > 16 && even > half * 8 && odd < half => (false, bytes),
            _ => return None,
        }
    };
    let units = body.chunks_exact(2).filter_map(|c| {
        let pair: [u8; 2] = c.try_into().ok()?;
        Some(if little { u16::from_le_bytes(pair) } else { u16::from_be_bytes(pair) })
    });
    // Two stray bytes may look like a mark; text of any language has blanks and line ends, digits and punctuation.
    let (mut ascii, mut all) = (0, 0);
    for unit in units.clone().take(HEAD) {
        all += 1;
        ascii += usize::from((9..127).contains(&unit));
    }
    if ascii * 3 < all {
        return None;
    }
    let mut out = String::with_capacity(body.len() / 2);
    out.extend(char::decode_utf16(units).map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER)));
    Some(out.into_bytes())
}

/// Unescapes a text in which some characters stand escaped only.
fn html(bytes: &[u8]) -> Option<Vec<u8>> {
    if bytes.len() > MAX_HTML || !bytes.contains(&b'&') {
        return None;
    }
    let text = std::str::from_utf8(bytes).ok()?;
    let found: Vec<&str> = ENTITIES.iter().filter(|(e, _)| text.contains(e)).map(|(_, c)| *c).collect();
    if found.is_empty() {
        return None;
    }
    let bare = without_tags(text);
    // `<`, `>` and `"` are always escaped by what escapes at all.
    if found.iter().any(|c| matches!(*c, "<" | ">" | "\"") && bare.contains(c)) {
        return None;
    }
    let mut out = bare;
    for (entity, c) in ENTITIES.iter().chain(&[("&amp;", "&")]) {
        if out.contains(entity) {
            out = out.replace(entity, c);
        }
    }
    Some(out.into_bytes())
}

/// Takes known tags out. A tag never reaches over a line end.
fn without_tags(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('<') {
        out.push_str(before);
        let word = after.trim_start_matches('/');
        let name_end = word.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(word.len());
        let name = word.get(..name_end).unwrap_or_default();
        let close = after.find(['>', '\n']).filter(|_| TAGS.contains(&name));
        match close.and_then(|at| after.get(at..)).and_then(|tail| tail.strip_prefix('>')) {
            Some(tail) => rest = tail,
            None => {
                out.push('<');
                rest = after;
            }
        }
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::plain;

    fn text(bytes: &[u8]) -> String {
        String::from_utf8(plain(bytes.to_vec())).unwrap()
    }

    #[test]
    fn encodings_become_utf8() {
        let line = "RuntimeError: CUDA out of memory. Größe 1 GiB\r\n";
        let le: Vec<u8> = line.encode_utf16().flat_map(u16::to_le_bytes).collect();
        let be: Vec<u8> = line.encode_utf16().flat_map(u16::to_be_bytes).collect();
        assert_eq!(text(&[b"\xff\xfe".as_slice(), &le].concat()), line);
        assert_eq!(text(&[b"\xfe\xff".as_slice(), &be].concat()), line);
        assert_eq!(text(&le), line);
        assert_eq!(text(&be), line);
        assert_eq!(text(&[b"\xef\xbb\xbf".as_slice(), line.as_bytes()].concat()), line);
        // Half a unit at the end is dropped; stray bytes are no mark.
        assert_eq!(text(&[b"\xff\xfe".as_slice(), &le, b"x"].concat()), line);
        let stray = b"\xff\xfe\xfd INFO \xc3\x28 x\nCUDA error: out of memory \xff\n".to_vec();
        assert_eq!(plain(stray.clone()), stray);
    }

    #[test]
    fn pages_are_unescaped_and_logs_are_not() {
        for (raw, want) in [
            ("a &lt;b&gt; &quot;c&quot; &amp;amp; &#39;d&#39;", "a <b> \"c\" &amp; 'd'"),
            ("<pre><span class=\"x\">E &lt;3&gt;</span>\nF</pre>", "E <3>\nF"),
            ("prompt: \"&lt;b&gt;\" x < y", "prompt: \"&lt;b&gt;\" x < y"),
            ("a & b &amp; c", "a & b &amp; c"),
        ] {
            assert_eq!(text(raw.as_bytes()), want, "{raw}");
        }
    }
}
