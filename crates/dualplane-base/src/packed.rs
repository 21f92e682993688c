//! Texts that a build script packed into the program, because they are long and say nearly the same: unpacked when they are
//! first asked for, a MiB in some three milliseconds.

use std::sync::OnceLock;

use miniz_oxide::inflate::decompress_slice_iter_to_slice;

/// A text that is packed: a raw stream of DEFLATE (RFC 1951).
#[derive(Debug)]
pub struct Block {
    packed: &'static [u8],
    len: usize,
    text: OnceLock<String>,
}

impl Block {
    /// Nothing is unpacked yet. `len`: bytes of the text.
    #[must_use]
    pub const fn new(packed: &'static [u8], len: usize) -> Self {
        Self { packed, len, text: OnceLock::new() }
    }

    /// The text; empty where these bytes are none, which a test of each crate that has blocks excludes by [`Block::is_whole`].
    pub fn text(&self) -> &str {
        self.text.get_or_init(|| {
            let mut bytes = vec![0; self.len];
            let read = decompress_slice_iter_to_slice(&mut bytes, std::iter::once(self.packed), false, true);
            bytes.truncate(read.unwrap_or_default());
            String::from_utf8(bytes).unwrap_or_default()
        })
    }

    /// Whether it unpacks to what was packed, and was worth it.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.text().len() == self.len && self.packed.len() * 3 < self.len
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_stream_or_longer_than_said_is_an_empty_text() {
        // "aaaaaaaaaa", by `python3 -c "import zlib; print(zlib.compress(b'a' * 10, 9)[2:-4])"`.
        const TEN: &[u8] = b"KL\x84\x01\x00";
        assert_eq!(Block::new(TEN, 10).text(), "aaaaaaaaaa");
        assert!(!Block::new(TEN, 10).is_whole(), "five bytes of ten");
        for (bytes, len) in [(TEN, 9), (&TEN[..2], 10), (&[0xff; 20][..], 10), (&[][..], 0)] {
            assert_eq!(Block::new(bytes, len).text(), "");
        }
    }
}
