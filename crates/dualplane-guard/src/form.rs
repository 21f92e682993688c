//! The form in which HTTP/1.1 writes a line of a head, and a part of a body whose length nobody knows.

use std::io::Write as _;

use http::HeaderMap;

/// What ends a body in chunks that has nothing behind it.
pub(crate) const LAST_CHUNK: &[u8] = b"0\r\n\r\n";

/// One line.
pub(crate) fn line(to: &mut Vec<u8>, name: &str, value: &[u8]) {
    to.extend_from_slice(name.as_bytes());
    to.extend_from_slice(b": ");
    to.extend_from_slice(value);
    to.extend_from_slice(b"\r\n");
}

/// All of them.
pub(crate) fn lines(to: &mut Vec<u8>, headers: &HeaderMap) {
    for (name, value) in headers {
        line(to, name.as_str(), value.as_bytes());
    }
}

/// A part, which must not be empty: that would be the end.
pub(crate) fn chunk(to: &mut Vec<u8>, data: &[u8]) {
    // Cannot fail: it is written to memory.
    let _ = write!(to, "{:x}\r\n", data.len());
    to.extend_from_slice(data);
    to.extend_from_slice(b"\r\n");
}
