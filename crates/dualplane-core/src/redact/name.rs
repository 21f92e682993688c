//! Says of a name whether its value is a secret, and of a value whether it can be one.

use crate::knowledge::{Names, SecretName};

/// Longer names are prose.
pub(super) const MAX_NAME: usize = 128;
/// What a mask begins with; what is masked is no secret.
pub(super) const MASK: &str = "[redacted:";

/// The rule that makes a name secret. `shouted`: the name is one of settings, where a word like `AUTH` alone says it.
pub(super) fn judge<'k>(names: &'k Names, name: &str, shouted: bool) -> Option<&'k SecretName> {
    let written = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.' | b'/' | b':');
    if name.len() > MAX_NAME || !name.bytes().all(written) {
        return None;
    }
    let normal = normal(name);
    let parts: Vec<&str> = normal.split('_').filter(|p| !p.is_empty()).collect();
    let last = *parts.last()?;
    let joined = format!("_{}_", parts.join("_"));
    let found = names.secret.iter().filter(|s| shouted || !s.shouted).find_map(|s| {
        let whole = joined.trim_matches('_');
        if s.exact.iter().any(|e| e.trim_matches('_') == whole) {
            return Some((s, true));
        }
        // `DOCKER_AUTH_CONFIG` is known as a whole, though `AUTH` stands in it as well.
        let ends = s.words.iter().filter_map(|w| holds(&joined, &parts, w)).max()?;
        // An ordinary word is a secret only as what the name ends in: `--pin-memory`, `KEY_CACHE`.
        if s.shouted && !ends {
            return None;
        }
        let harmless = parts.iter().any(|p| s.harmless.iter().any(|h| h == p));
        (!harmless).then_some((s, ends))
    });
    let (rule, ends) = found?;
    let whole = joined.trim_matches('_');
    let harmless = names.harmless.iter().any(|h| {
        // A word at the end of the name is what the value is; before it, the last part says what it is.
        !ends && h.endings.iter().any(|e| e == last) || h.names.iter().any(|n| wildcard(n, whole))
    });
    (!harmless).then_some(rule)
}

/// Whether a word stands in a name, and if so, whether it ends it.
fn holds(joined: &str, parts: &[&str], word: &str) -> Option<bool> {
    let mut found = None;
    let mut rest = joined;
    // Word by word from each gap on: a general search costs more to set up than these few bytes to compare.
    while let Some(at) = memchr::memchr(b'_', rest.as_bytes()) {
        rest = rest.get(at + 1..).unwrap_or_default();
        let Some(behind) = rest.strip_prefix(word) else { continue };
        let behind = behind.strip_prefix('s').unwrap_or(behind);
        if behind.starts_with('_') {
            found = found.max(Some(behind.len() == 1));
        }
    }
    if found.is_some() {
        return found;
    }
    // dbpassword, hftoken: written without a gap. Short words end too many others.
    let glued = |p: &str| {
        p.len() > word.len() && (p.ends_with(word) || p.strip_suffix('s').is_some_and(|p| p.ends_with(word)))
    };
    if word.len() < 5 || word.contains('_') {
        return None;
    }
    let at = parts.iter().position(|p| glued(p))?;
    Some(at + 1 == parts.len())
}

/// Small letters, parts joined by `_`: `X-Auth-Token`, `authToken` and `AUTH_TOKEN` are one.
fn normal(name: &str) -> String {
    let mut out = String::with_capacity(name.len() + 4);
    let bytes = name.as_bytes();
    for (i, b) in bytes.iter().enumerate() {
        let before = i.checked_sub(1).and_then(|i| bytes.get(i));
        let behind = bytes.get(i + 1);
        if b.is_ascii_uppercase() {
            let small = before.is_some_and(|p| p.is_ascii_lowercase() || p.is_ascii_digit());
            // HFToken: the last capital begins the word.
            let begins =
                before.is_some_and(u8::is_ascii_uppercase) && behind.is_some_and(u8::is_ascii_lowercase);
            if small || begins {
                out.push('_');
            }
            out.push(char::from(b.to_ascii_lowercase()));
        } else if b.is_ascii_alphanumeric() {
            out.push(char::from(*b));
        } else {
            out.push('_');
        }
    }
    out
}

/// `*` stands for anything; at most a few in a name of knowledge.
fn wildcard(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(mut rest) = parts.next().and_then(|first| text.strip_prefix(first)) else { return false };
    let mut pending = None;
    for part in parts {
        if let Some(middle) = pending.replace(part) {
            let Some((_, behind)) = rest.split_once(middle) else { return false };
            rest = behind;
        }
    }
    match pending {
        Some(last) => rest.ends_with(last),
        None => rest.is_empty(),
    }
}

/// A name as environment variables have it.
pub(super) fn is_shouted(name: &str) -> bool {
    name.len() > 2
        && name.bytes().any(|b| b.is_ascii_uppercase())
        && !name.bytes().any(|b| b.is_ascii_lowercase())
}

/// A value that is no secret, whatever its name says: nothing, a reference, a number, a path, a mask.
pub(super) fn is_harmless(value: &str, rule: &SecretName) -> bool {
    const WORDS: &[&str] = &[
        "none",
        "null",
        "nil",
        "true",
        "false",
        "yes",
        "no",
        "on",
        "off",
        "auto",
        "default",
        "enabled",
        "disabled",
        "required",
        "optional",
        "string",
        "str",
        "bytes",
        "object",
        "unset",
        "empty",
        "undefined",
        "missing",
        "notset",
        "not",
        "set",
        "optional[str]",
        "<nil>",
        "[]",
        "{}",
        "()",
        "invalid",
        "expired",
        "unexpected",
        "expected",
    ];
    let value = value.trim();
    value.is_empty()
        || is_mask(value)
        || value.len() <= 13 && WORDS.iter().any(|w| value.eq_ignore_ascii_case(w))
        || value.bytes().all(|b| matches!(b, b'*' | b'.' | b'-' | b'?' | b'_' | b'\\' | b'/' | b'='))
        || !rule.numbers
            && value.bytes().all(|b| b.is_ascii_digit() || matches!(b, b'.' | b',' | b'-' | b'+' | b'%'))
        || is_reference(value)
        || is_path(value)
}

/// Masks and nothing between them but quotes and brackets.
pub(super) fn is_mask(text: &str) -> bool {
    let id = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_';
    let mut rest = text;
    while let Some((before, behind)) = rest.split_once(MASK) {
        let Some((name, after)) = behind.split_once(']').filter(|(n, _)| n.bytes().all(id)) else {
            return false;
        };
        if name.len() > MAX_NAME || before.bytes().any(|b| b.is_ascii_alphanumeric() || b >= 0x80) {
            return false;
        }
        rest = after;
    }
    rest.len() < text.len() && !rest.bytes().any(|b| b.is_ascii_alphanumeric() || b >= 0x80)
}

/// `$(NAME)`, `${NAME}`, `$NAME`, `{{ .Values.x }}`, `<your token>`
fn is_reference(value: &str) -> bool {
    let name = |n: &str| {
        !n.is_empty() && n.bytes().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_')
    };
    let inner = value.strip_prefix('$').map(|v| {
        let v = v.strip_prefix(['(', '{']).unwrap_or(v);
        v.strip_suffix([')', '}']).unwrap_or(v)
    });
    inner.is_some_and(name)
        || value.starts_with("{{") && value.ends_with("}}")
        || value.starts_with('<') && value.ends_with('>') && !value.contains("://") && value.len() < 64
}

/// `/var/run/secrets/token`: parts of small letters or of capitals only. Base64 that begins with a slash mixes them.
fn is_path(value: &str) -> bool {
    let bare = value.strip_prefix("file://").unwrap_or(value);
    let bare = bare.trim_start_matches('~').trim_start_matches('.');
    let Some(parts) = bare.strip_prefix('/') else { return false };
    let part = |p: &str| {
        let mixed = p.bytes().any(|b| b.is_ascii_lowercase()) && p.bytes().any(|b| b.is_ascii_uppercase());
        p.len() <= 64
            && !mixed
            && p.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-'))
    };
    value.len() < 256 && parts.trim_end_matches('/').split('/').all(part)
}

#[cfg(test)]
mod tests {
    use super::{is_harmless, is_path, normal, wildcard};
    use crate::knowledge::SecretName;

    #[test]
    fn names_are_written_in_many_ways() {
        for (name, want) in [
            ("X-Auth-Token", "x_auth_token"),
            ("authToken", "auth_token"),
            ("HFToken", "hf_token"),
            ("AUTH_TOKEN", "auth_token"),
            ("S3Key2", "s3_key2"),
        ] {
            assert_eq!(normal(name), want);
        }
        assert!(wildcard("max_*_tokens", "max_num_tokens") && wildcard("a*", "a") && wildcard("*a", "xa"));
        assert!(!wildcard("max_*_tokens", "max_tokens") && !wildcard("a", "ab") && !wildcard("", "a"));
    }

    #[test]
    fn harmless_values() {
        let rule: SecretName = serde_json::from_str("{\"id\":\"x\",\"words\":[]}").unwrap();
        for value in [
            "",
            "None",
            "$(HF_TOKEN)",
            "${X}",
            "8192",
            "/etc/ssl/tls.key",
            "/run/secrets/HF_TOKEN",
            "[redacted:x]",
            "***",
            "<token>",
        ] {
            assert!(is_harmless(value, &rule), "{value}");
        }
        for value in [
            "hunter2",
            "/wJalrXUtnFEMI/K7MDENG/bPxRfi",
            "[redacted:x]y",
            "[redacted:a b]",
            "$ecret",
            "12345x",
        ] {
            assert!(!is_harmless(value, &rule), "{value}");
        }
        assert!(!is_path("/aB/c") && is_path("./a/b.key"));
    }
}
