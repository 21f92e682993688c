//! Reads a `.tar.zst` that [`super::pack`] wrote: to add a file to it, or to show one.

use std::io::{self, Read};

use dualplane_core::evidence::RawFile;
use ruzstd::decoding::StreamingDecoder;

/// Bytes of all files together. What a node keeps of one death is below 4 MiB.
const MAX_BYTES: u64 = 64 << 20;
/// Files.
const MAX_FILES: usize = 1024;

/// The files, named as they stand in the archive.
///
/// # Errors
/// It is no such archive, or larger than any of ours.
pub fn unpack(bytes: &[u8]) -> io::Result<Vec<RawFile>> {
    let odd = |what: String| io::Error::new(io::ErrorKind::InvalidData, what);
    let plain = StreamingDecoder::new(bytes).map_err(|e| odd(e.to_string()))?;
    let mut archive = tar::Archive::new(plain.take(MAX_BYTES));
    let mut out = Vec::new();
    let mut left = MAX_BYTES;
    for entry in archive.entries()? {
        let entry = entry?;
        if out.len() >= MAX_FILES {
            return Err(odd("too many files for a bundle".into()));
        }
        if !entry.header().entry_type().is_file() {
            continue;
        }
        let name = entry
            .path()?
            .to_str()
            .map(ToOwned::to_owned)
            .ok_or_else(|| odd("a file name that is not valid text".into()))?;
        let mut content = Vec::new();
        entry.take(left).read_to_end(&mut content)?;
        left = left.saturating_sub(content.len() as u64);
        out.push(RawFile::new(name, content));
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bundle::pack;

    #[test]
    fn what_was_packed_comes_back_and_the_rest_is_an_error() {
        let files = [RawFile::new("logs/a.log", "one\n"), RawFile::new("pod.json", vec![b'x'; 300_000])];
        let packed = pack([("pod".to_owned(), files.as_slice())], 7).unwrap();
        let back = unpack(&packed).unwrap();
        let names: Vec<&str> = back.iter().map(|f| f.name.as_str()).collect();
        assert_eq!(names, ["pod/logs/a.log", "pod/pod.json"]);
        assert_eq!(back[0].bytes, b"one\n");
        assert_eq!(back[1].bytes.len(), 300_000);
        assert!(unpack(b"no archive").is_err());
        for cut in [1, 20, packed.len() / 2, packed.len() - 1] {
            let _ = unpack(&packed[..cut]);
        }
        assert!(unpack(&packed[..packed.len() / 2]).is_err());
    }
}
