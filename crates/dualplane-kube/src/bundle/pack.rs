//! Packs files into a `.tar.zst`: the same files give the same bytes.

use std::io;

use dualplane_core::evidence::RawFile;
use ruzstd::encoding::{CompressionLevel, compress};

/// Packs files below a folder for each pod.
///
/// # Errors
/// When a name cannot stand in an archive.
pub fn pack<'f>(
    folders: impl IntoIterator<Item = (String, &'f [RawFile])>,
    mtime: u64,
) -> io::Result<Vec<u8>> {
    let mut tar = tar::Builder::new(Vec::new());
    tar.mode(tar::HeaderMode::Deterministic);
    for (folder, files) in folders {
        for file in files {
            let mut header = tar::Header::new_gnu();
            header.set_size(file.bytes.len() as u64);
            header.set_mode(0o600);
            header.set_mtime(mtime);
            header.set_entry_type(tar::EntryType::Regular);
            tar.append_data(&mut header, format!("{folder}/{}", file.name), file.bytes.as_slice())?;
        }
    }
    let tar = tar.into_inner()?;
    let mut packed = Vec::with_capacity(tar.len() / 4);
    compress(tar.as_slice(), &mut packed, CompressionLevel::Fastest);
    Ok(packed)
}
