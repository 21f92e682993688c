//! What becomes of a head between two connections: what belongs to one of them ends there.

use http::header::{CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, HOST, TE};
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue};

use crate::body::Sent;
use crate::config::Target;
use crate::exchange::Outgoing;
use crate::refuse::Reply;

/// The id of a request, taken from the caller where it sends one.
pub(crate) const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// Headers that belong to one connection (RFC 9110, 7.6.1).
fn is_hop(name: &str) -> bool {
    matches!(
        name,
        "connection"
            | "upgrade"
            | "transfer-encoding"
            | "te"
            | "keep-alive"
            | "proxy-connection"
            | "proxy-authenticate"
            | "proxy-authorization"
    )
}

/// What is left of a head for the next connection.
pub(crate) fn strip(headers: &mut HeaderMap) {
    // Most heads have one of these, or none: what is not there is not looked for.
    let there: Vec<HeaderName> = headers.keys().filter(|name| is_hop(name.as_str())).cloned().collect();
    if there.is_empty() {
        return;
    }
    let named: Vec<HeaderName> = if there.contains(&CONNECTION) {
        let words = headers.get_all(CONNECTION).iter().filter_map(|v| v.to_str().ok());
        let names = words.flat_map(|v| v.split(',')).filter_map(|n| n.trim().parse().ok());
        // The others end here whether they are named or not.
        names.filter(|n: &HeaderName| !is_hop(n.as_str())).collect()
    } else {
        Vec::new()
    };
    let trailers = there.contains(&TE)
        && headers
            .get(TE)
            .is_some_and(|te| te.as_bytes().windows(8).any(|w| w.eq_ignore_ascii_case(b"trailers")));
    // A caller must not make the guard drop what servers judge by, nor how long an answer is.
    for name in named.iter().filter(|n| ![HOST, CONTENT_TYPE, CONTENT_LENGTH].contains(n)) {
        headers.remove(name);
    }
    for name in there {
        headers.remove(name);
    }
    if trailers {
        headers.insert(TE, HeaderValue::from_static("trailers"));
    }
}

/// What is left of the head of a request. Its length is that of what is sent, which is written with it: two lengths are how
/// requests are smuggled.
pub(crate) fn strip_request(headers: &mut HeaderMap) {
    strip(headers);
    headers.remove(CONTENT_LENGTH);
}

/// The request as it goes to a server.
pub(crate) fn towards(
    target: &Target,
    head: &Parts,
    caller: &str,
    id: &HeaderValue,
    body: Sent,
) -> Result<Outgoing, Reply> {
    let path = head.uri.path_and_query().map_or("/", http::uri::PathAndQuery::as_str);
    if !path.starts_with('/') {
        return Err(Reply::new(400, "no_path", "the target of the request is no path"));
    }
    let mut request = Outgoing::new(target.peer.clone(), &head.method, [&target.prefix, path], body);
    if !head.headers.contains_key(HOST) {
        request = match head.uri.authority() {
            // HTTP/2 has it in the target.
            Some(host) => {
                request.line(HOST.as_str(), host.as_str().as_bytes());
                request
            }
            None => request.with_own_host(),
        };
    }
    for (name, value) in head.headers.iter().filter(|(name, _)| **name != REQUEST_ID) {
        request.line(name.as_str(), value.as_bytes());
    }
    request.line(REQUEST_ID.as_str(), id.as_bytes());
    request.line("x-forwarded-for", caller.as_bytes());
    Ok(request)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_belongs_to_one_connection_ends_there() {
        let mut h = HeaderMap::new();
        for (name, value) in [
            ("connection", "close, X-Mine, Content-Type"),
            ("connection", "content-length"),
            ("keep-alive", "timeout=5"),
            ("proxy-connection", "keep-alive"),
            ("upgrade", "h2c"),
            ("te", "gzip, trailers"),
            ("transfer-encoding", "chunked"),
            ("x-mine", "1"),
            ("x-yours", "2"),
            ("host", "a"),
            ("content-type", "application/json"),
            ("content-length", "7"),
        ] {
            h.append(name, HeaderValue::from_static(value));
        }
        let names = |h: &HeaderMap| {
            let mut all: Vec<_> = h.iter().map(|(n, v)| format!("{n}: {}", v.to_str().unwrap())).collect();
            all.sort();
            all
        };
        strip(&mut h);
        let left =
            ["content-length: 7", "content-type: application/json", "host: a", "te: trailers", "x-yours: 2"];
        assert_eq!(names(&h), left);
        strip_request(&mut h);
        assert_eq!(names(&h), left[1..]);
    }
}
