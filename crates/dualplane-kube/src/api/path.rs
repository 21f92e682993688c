//! Paths of the API. Names come from people and from objects; they never become a path of their own.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, PercentEncode, utf8_percent_encode};

/// All but the unreserved characters of RFC 3986.
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// One segment of a path, with everything else than unreserved characters encoded.
#[must_use]
pub fn segment(name: &str) -> String {
    // A segment of dots alone would lead elsewhere.
    if name.chars().all(|c| c == '.') {
        return name.chars().map(|_| "%2E").collect();
    }
    encode(name).to_string()
}

fn encode(text: &str) -> PercentEncode<'_> {
    utf8_percent_encode(text, RESERVED)
}

/// A path with its query.
#[must_use]
pub fn with_query(base: &str, query: &[(&str, &str)]) -> String {
    let mut out = base.to_owned();
    for (i, (key, value)) in query.iter().enumerate() {
        out.push(if i == 0 { '?' } else { '&' });
        out.extend(encode(key));
        out.push('=');
        out.extend(encode(value));
    }
    out
}

/// `/api/v1/namespaces/NS/RESOURCE[/NAME]` of the core group, `/apis/GROUP/VERSION/…` of others.
#[must_use]
pub fn namespaced(group_version: &str, namespace: &str, resource: &str) -> String {
    format!("{}/namespaces/{}/{}", root(group_version), segment(namespace), segment(resource))
}

/// The same without a namespace.
#[must_use]
pub fn cluster(group_version: &str, resource: &str) -> String {
    format!("{}/{resource}", root(group_version))
}

/// An object of a list's path.
#[must_use]
pub fn named(list: &str, name: &str) -> String {
    format!("{list}/{}", segment(name))
}

/// `/api/v1` or `/apis/GROUP/VERSION`: what the server has there. The version may come from a file.
#[must_use]
pub fn root(group_version: &str) -> String {
    if group_version == "v1" {
        "/api/v1".into()
    } else {
        group_version.split('/').fold("/apis".into(), |out, s| format!("{out}/{}", segment(s)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_cannot_leave_its_place() {
        assert_eq!(segment("a/../b?x=1"), "a%2F..%2Fb%3Fx%3D1");
        assert_eq!(segment(".."), "%2E%2E");
        assert_eq!(
            with_query(
                &named(&namespaced("v1", "ns", "pods"), "p"),
                &[("fieldSelector", "spec.nodeName=a b")]
            ),
            "/api/v1/namespaces/ns/pods/p?fieldSelector=spec.nodeName%3Da%20b"
        );
        assert_eq!(cluster("apps/v1", "replicasets"), "/apis/apps/v1/replicasets");
        assert_eq!(root("../a?b/v1"), "/apis/../a%3Fb/v1".replace("../", "%2E%2E/"));
    }
}
