//! Texts line by line: their encoding, what wraps each line, how texts are cut, joined and ordered.

pub(in crate::evidence) mod encoding;
pub mod framing;
pub(crate) mod parts;
pub(in crate::evidence) mod paste;
pub mod prefix;
pub(crate) mod prose;
mod record;
pub(in crate::evidence) mod rotation;
pub(in crate::evidence) mod sifted;
pub(in crate::evidence) mod stream;
pub(in crate::evidence) mod wrap;
