//! GGUF files on this machine: their headers, read in growing beginnings.

use std::fs::{self, File};
use std::io::Read as _;
use std::path::{Path, PathBuf};

use dualplane_plan::engines::llama_cpp::Gguf;
use dualplane_plan::engines::llama_cpp::gguf::Trouble;
use dualplane_plan::host::Checkpoint;
use dualplane_plan::{Named, PlanError};

use crate::commands::Failure;

/// Headers hold the vocabulary: 4 to 20 MiB are usual.
const FIRST: u64 = 1 << 20;
const MAX_HEADER: u64 = 128 << 20;
/// No model is split into more files.
const MAX_FILES: u64 = 1000;

/// Whether a path is a regular file that begins as GGUF files do; Ollama's have no ending in their names.
pub(super) fn is(path: &Path) -> bool {
    let mut magic = [0; 4];
    fs::metadata(path).is_ok_and(|m| m.is_file())
        && File::open(path).and_then(|mut f| f.read_exact(&mut magic)).is_ok()
        && &magic == b"GGUF"
}

/// Reads a file and the others that it is split into.
pub(super) fn read(id: &str, path: &Path) -> Result<Named, Failure> {
    let (mut gguf, mut bytes) = header(path)?;
    let mut largest = bytes;
    for i in 2..=gguf.files().min(MAX_FILES) {
        let next = sibling(path, i, gguf.files()).ok_or_else(|| {
            bad(
                path,
                "it is not the first file of a \
        split, or its parts do not follow the naming of llama-gguf-split"
                    .into(),
            )
        })?;
        let (more, size) = header(&next)?;
        gguf.extend(more);
        bytes = bytes.saturating_add(size);
        largest = largest.max(size);
    }
    let model = gguf.model()?;
    let files = Checkpoint { bytes: Some(bytes), largest_file: Some(largest), bin: false };
    let source = format!("{}: GGUF header", path.display());
    Ok(Named { id: id.into(), source, model, gguf: Some(gguf), files })
}

/// `m-00001-of-00003.gguf` → `m-00002-of-00003.gguf`.
fn sibling(path: &Path, i: u64, of: u64) -> Option<PathBuf> {
    let name = path.file_name()?.to_str()?;
    let front = name.strip_suffix(&format!("-00001-of-{of:05}.gguf"))?;
    Some(path.with_file_name(format!("{front}-{i:05}-of-{of:05}.gguf")))
}

fn bad(path: &Path, why: String) -> Failure {
    PlanError::Unreadable { file: path.display().to_string(), why }.into()
}

/// The header and the size of the file.
fn header(path: &Path) -> Result<(Gguf, u64), Failure> {
    let failed = |source| Failure::Unreadable { path: path.to_owned(), source };
    let file = File::open(path).map_err(failed)?;
    let size = file.metadata().map_err(failed)?.len();
    let mut bytes = Vec::new();
    let mut file = file.take(MAX_HEADER);
    let mut most = FIRST;
    loop {
        let have = bytes.len() as u64;
        (&mut file).take(most.saturating_sub(have)).read_to_end(&mut bytes).map_err(failed)?;
        match Gguf::read(&bytes) {
            Ok(gguf) => return Ok((gguf, size)),
            Err(Trouble::Bad(why)) => return Err(bad(path, why)),
            // The file ended, or the bound was met.
            Err(Trouble::More) if (bytes.len() as u64) < most => {
                return Err(bad(path, format!("its header does not end within {} bytes", bytes.len())));
            }
            Err(Trouble::More) => most = most.saturating_mul(4),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn splits_are_found_by_their_names() {
        let of = |name: &str| sibling(Path::new(name), 2, 3);
        assert_eq!(of("/x/m-00001-of-00003.gguf"), Some(PathBuf::from("/x/m-00002-of-00003.gguf")));
        assert_eq!(of("/x/m-00002-of-00003.gguf"), None);
        assert!(!is(Path::new("/dev/null")) && !is(Path::new("/")));
    }
}
