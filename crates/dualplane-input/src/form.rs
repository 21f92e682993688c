//! What a file is packed as, from its first bytes; names say nothing.

use std::io::{self, Read};

/// As many bytes as a form is recognised by: one tar header.
pub(super) const HEAD_LEN: u64 = 512;

/// How bytes are packed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// Not packed.
    Plain,
    Tar,
    Zip,
    Gzip,
    Zstd,
    /// Packed in a way that is not read, with the command that unpacks it.
    Foreign(&'static str, &'static str),
}

/// Recognises the form by the head of a file.
pub(super) fn form(head: &[u8]) -> Form {
    let magics: [(&[u8], Form); 8] = [
        (b"\x1f\x8b\x08", Form::Gzip),
        (b"\x28\xb5\x2f\xfd", Form::Zstd),
        (b"PK\x03\x04", Form::Zip),
        (b"PK\x05\x06", Form::Zip),
        (b"BZh", Form::Foreign("bzip2", "bzip2 -dk")),
        (b"\xfd7zXZ\x00", Form::Foreign("xz", "xz -dk")),
        (b"7z\xbc\xaf\x27\x1c", Form::Foreign("7z", "7z x")),
        (b"Rar!\x1a\x07", Form::Foreign("RAR", "unrar x")),
    ];
    match magics.iter().find(|(magic, _)| head.starts_with(magic)) {
        // A log may begin with these letters; the block size and the block's own magic follow in a real one.
        Some((b"BZh", _)) if head.get(4..10) != Some(b"1AY&SY") => Form::Plain,
        Some((_, form)) => *form,
        None if head.get(257..262) == Some(b"ustar") || tar_header(head) => Form::Tar,
        None => Form::Plain,
    }
}

/// A block whose checksum is right is a tar header, whatever its magic.
pub(super) fn tar_header(block: &[u8]) -> bool {
    if block.len() != HEAD_LEN as usize || block.first() == Some(&0) {
        return false;
    }
    let sum: u32 =
        block.iter().enumerate().map(|(i, b)| if (148..156).contains(&i) { 32 } else { u32::from(*b) }).sum();
    tar::Header::from_byte_slice(block).cksum().is_ok_and(|c| c == sum)
}

/// A stream whose first bytes were looked at.
pub(super) struct Peeked<'a> {
    head: Vec<u8>,
    given: usize,
    /// What ended the look; told behind the bytes before it.
    error: Option<io::Error>,
    rest: &'a mut dyn Read,
}

impl<'a> Peeked<'a> {
    /// The form of a stream, and the stream as it was.
    pub(super) fn new(rest: &'a mut dyn Read) -> (Form, Self) {
        let mut head = Vec::new();
        let error = (&mut *rest).take(HEAD_LEN).read_to_end(&mut head).err();
        (form(&head), Self { head, given: 0, error, rest })
    }
}

impl Read for Peeked<'_> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let mut left = self.head.get(self.given..).unwrap_or_default();
        if !left.is_empty() {
            let n = left.read(buf)?;
            self.given += n;
            return Ok(n);
        }
        match self.error.take() {
            Some(error) => Err(error),
            None => self.rest.read(buf),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Form, form};

    #[test]
    fn bytes_decide() {
        for (head, want) in [
            (b"\x1f\x8b\x08\0".as_slice(), Form::Gzip),
            (b"PK\x03\x04\x14\0", Form::Zip),
            (b"PKCS error: out of memory\n", Form::Plain),
            (b"BZh is what the log says\n", Form::Plain),
            (b"\x28\xb5\x2f\xfd\x04", Form::Zstd),
            (b"", Form::Plain),
            (&[0; 512], Form::Plain),
        ] {
            assert_eq!(form(head), want, "{head:?}");
        }
        let mut header = tar::Header::new_old();
        header.set_path("a").unwrap_or_default();
        header.set_size(1);
        header.set_cksum();
        assert_eq!(form(header.as_bytes()), Form::Tar);
    }
}
