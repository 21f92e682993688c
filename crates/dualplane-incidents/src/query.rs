//! The query of a URL: pairs in, pairs out.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// All but the unreserved characters of RFC 3986.
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// As a value in a URL's query or path: letters, digits and `-._~` stay, all else becomes `%XX`.
#[must_use]
pub fn encode(text: &str) -> String {
    utf8_percent_encode(text, RESERVED).to_string()
}

/// The text again; `+` is a space. Stricter than the library, which lets broken ones stand: `None` where a `%` has no two digits behind it or the bytes are no UTF-8.
#[must_use]
pub fn decode(text: &str) -> Option<String> {
    let mut bytes = text.bytes();
    let mut out = Vec::with_capacity(text.len());
    while let Some(b) = bytes.next() {
        match b {
            b'+' => out.push(b' '),
            b'%' => {
                let mut digit = || char::from(bytes.next()?).to_digit(16);
                out.push(u8::try_from(digit()? * 16 + digit()?).ok()?);
            }
            b => out.push(b),
        }
    }
    String::from_utf8(out).ok()
}

/// The pairs of a query, with or without its `?`. `None` where one cannot be read.
pub(crate) fn pairs(query: &str) -> Option<Vec<(String, String)>> {
    query
        .strip_prefix('?')
        .unwrap_or(query)
        .split('&')
        .filter(|p| !p.is_empty())
        .map(|pair| {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            Some((decode(key)?, decode(value)?))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_text_is_refused() {
        for bad in ["%", "%4", "%zz", "%ff"] {
            assert_eq!(decode(bad), None, "{bad}");
        }
        assert_eq!(decode("a+b%20c").as_deref(), Some("a b c"));
    }

    proptest::proptest! {
        #[test]
        fn every_text_comes_back(text in ".*") {
            let there = encode(&text);
            proptest::prop_assert!(there.bytes().all(|b| b.is_ascii_alphanumeric() || b"-._~%".contains(&b)));
            proptest::prop_assert_eq!(decode(&there), Some(text));
        }
    }
}
