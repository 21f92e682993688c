//! Whose a request is: by a header, its key, or a claim of its token.

use std::sync::Arc;

use dualplane_base::hash::fnv1a;
use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderName};

/// Longest name that is told apart.
const LONGEST: usize = 64;
const API_KEY: HeaderName = HeaderName::from_static("x-api-key");
/// Whose a request is that says nothing.
pub const NOBODY: &str = "anonymous";

/// How tenants are told apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TenantBy {
    /// They are not.
    None,
    /// By a hash of the key that they send.
    Key,
    /// By a header.
    Header(String),
    /// By a claim of a JWT. It is not verified: whoever stands before the guard does that.
    Jwt(String),
}

impl TenantBy {
    /// `key`, `none`, `header:NAME` or `jwt:CLAIM`.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let rest = |r: &str| (!r.trim().is_empty()).then(|| r.trim().to_ascii_lowercase());
        match text.split_once(':') {
            None if text == "none" => Some(Self::None),
            None if text == "key" => Some(Self::Key),
            Some(("header", name)) => {
                rest(name).filter(|n| n.parse::<http::HeaderName>().is_ok()).map(Self::Header)
            }
            // Claims are told apart by case.
            Some(("jwt", claim)) => rest(claim).map(|_| Self::Jwt(claim.trim().to_owned())),
            _ => None,
        }
    }

    /// Whose a request with these headers is.
    #[must_use]
    pub fn of(&self, headers: &HeaderMap) -> Arc<str> {
        let found = match self {
            Self::None => None,
            Self::Key => key(headers).map(|k| format!("key-{:08x}", hash(k.as_bytes()))),
            Self::Header(name) => headers.get(name.as_str()).and_then(|v| v.to_str().ok()).map(str::to_owned),
            Self::Jwt(claim) => key(headers).and_then(|k| claim_of(k, claim)),
        };
        let Some(found) = found else { return NOBODY.into() };
        let name: String = found.trim().chars().filter(|c| !c.is_control()).take(LONGEST).collect();
        if name.is_empty() { NOBODY.into() } else { name.into() }
    }
}

fn key(headers: &HeaderMap) -> Option<&str> {
    let bearer = headers.get(AUTHORIZATION).and_then(|v| v.to_str().ok());
    let bearer = bearer.and_then(|v| v.split_once(' ')).map(|(_, k)| k.trim());
    bearer.or_else(|| headers.get(API_KEY)?.to_str().ok()).filter(|k| !k.is_empty())
}

/// A hash, folded: a name for a key that does not tell the key.
fn hash(bytes: &[u8]) -> u32 {
    let h = fnv1a(bytes.iter().copied());
    u32::try_from((h >> 32) ^ (h & 0xffff_ffff)).unwrap_or(0)
}

fn claim_of(token: &str, claim: &str) -> Option<String> {
    let payload = token.split('.').nth(1).filter(|p| p.len() <= 8192)?;
    let bytes = url_safe(payload)?;
    let claims: serde_json::Value = serde_json::from_slice(&bytes).ok()?;
    match claims.get(claim)? {
        serde_json::Value::String(s) => Some(s.clone()),
        serde_json::Value::Number(n) => Some(n.to_string()),
        _ => None,
    }
}

fn url_safe(text: &str) -> Option<Vec<u8>> {
    let (mut bits, mut n, mut out) = (0_u32, 0, Vec::new());
    for b in text.trim_end_matches('=').bytes() {
        let v = match b {
            b'A'..=b'Z' => b - b'A',
            b'a'..=b'z' => b - b'a' + 26,
            b'0'..=b'9' => b - b'0' + 52,
            b'-' => 62,
            b'_' => 63,
            _ => return None,
        };
        bits = (bits << 6) | u32::from(v);
        n += 6;
        if n >= 8 {
            n -= 8;
            out.push(u8::try_from((bits >> n) & 0xff).ok()?);
        }
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn by_key_header_and_claim() {
        let mut h = HeaderMap::new();
        assert_eq!(&*TenantBy::Key.of(&h), NOBODY);
        // {"sub":"team-a"}
        h.insert(AUTHORIZATION, "Bearer e30.eyJzdWIiOiJ0ZWFtLWEifQ.x".parse().unwrap());
        h.insert("x-team", "b".parse().unwrap());
        assert_eq!(&*TenantBy::parse("jwt:sub").unwrap().of(&h), "team-a");
        assert_eq!(&*TenantBy::parse("header:X-Team").unwrap().of(&h), "b");
        let name = TenantBy::Key.of(&h);
        assert!(name.starts_with("key-") && name.len() == 12, "{name}");
        for bad in ["jwt", "jwt:", "header:", "header:a b", "user", ""] {
            assert_eq!(TenantBy::parse(bad), None, "{bad}");
        }
        h.insert(AUTHORIZATION, "Bearer a.!.c".parse().unwrap());
        assert_eq!(&*TenantBy::Jwt("sub".into()).of(&h), NOBODY);
    }
}
