//! Tar archives as a stream. The headers are parsed by the `tar` crate; the walk is our own, because the crate's
//! holds extended names of any length in memory and ends at the first damaged header.

use std::io::{self, Read};

use tar::{Header, PaxExtensions};

use super::form::{HEAD_LEN, tar_header};
use super::limits::{MAX_ENTRIES, MAX_EXTENSION};
use super::pile::Pile;

/// Reads all entries into the pile; what breaks is a gap of the archive.
pub(super) fn read(pile: &mut Pile, from: &mut dyn Read, level: u32) {
    let mut tar = Tar { from, at: 0 };
    if let Err(e) = tar.entries(pile, level) {
        pile.gap("", format!("at byte {} of the archive: {e}; the part before that was used", tar.at));
    }
}

struct Tar<'a> {
    from: &'a mut dyn Read,
    at: u64,
}

/// What extension headers say of the entry behind them.
#[derive(Default)]
struct Extended {
    name: Option<Vec<u8>>,
    size: Option<u64>,
}

impl Tar<'_> {
    fn entries(&mut self, pile: &mut Pile, level: u32) -> io::Result<()> {
        let mut extended = Extended::default();
        let mut damaged = false;
        loop {
            let at = self.at;
            let Some(block) = self.block()? else {
                pile.gap("", format!("it ends at byte {at} without an end marker; it may be truncated"));
                return Ok(());
            };
            if block.iter().all(|b| *b == 0) {
                // To the end, so that the checksum of the compression around it is checked; zeros cost nothing.
                io::copy(self, &mut io::sink())?;
                return Ok(());
            }
            if !tar_header(&block) {
                // The next good header is looked for, block by block.
                if !damaged {
                    pile.gap("", format!("the header at byte {at} is damaged; its entry was not read"));
                }
                damaged = true;
                continue;
            }
            if !pile.entry() {
                return Err(io::Error::other(format!(
                    "it has more than {MAX_ENTRIES} entries; unpack it and pass only the relevant files"
                )));
            }
            let header = Header::from_byte_slice(&block);
            let kind = header.entry_type().as_byte();
            // Links, devices, folders and FIFOs have no content, whatever their header says.
            let has_content = !matches!(kind, b'1'..=b'6');
            let size = match extended.size {
                Some(size) => size,
                None if has_content => header.entry_size()?,
                None => 0,
            };
            let mut content = (&mut *self).take(size);
            match kind {
                b'L' => extended.name = Some(bounded(&mut content)?),
                b'x' => extended.pax(&bounded(&mut content)?),
                // Names of links, global attributes, volume labels.
                b'K' | b'g' | b'V' | b'D' => {}
                _ => {
                    let name = extended.name.take().unwrap_or_else(|| header.path_bytes().into_owned());
                    extended = Extended::default();
                    match kind {
                        b'0' | b'\0' | b'7' => pile.entry_file(&name, &mut content, level),
                        b'5' => {}
                        b'1' | b'2' => pile.entry_gap(&name, "it is a link and was not followed"),
                        b'3' | b'4' => pile.entry_gap(&name, "it is a device and was not read"),
                        b'6' => pile.entry_gap(&name, "it is a named pipe and was not read"),
                        b'S' => pile.entry_gap(
                            &name,
                            "it is a sparse file, which is not supported; unpack the archive",
                        ),
                        _ => pile.entry_gap(&name, "its entry type is not supported"),
                    }
                }
            }
            let left = content.limit();
            let sparse = kind == b'S' && header.as_gnu().is_some_and(tar::GnuHeader::is_extended);
            self.skip(left)?;
            self.skip(size.wrapping_neg() % HEAD_LEN)?;
            // Its map goes on in blocks of its own before the content: the search for the next header passes over them.
            damaged = sparse;
        }
    }

    /// A whole block; none at the end.
    fn block(&mut self) -> io::Result<Option<Vec<u8>>> {
        let mut block = Vec::new();
        (&mut *self).take(HEAD_LEN).read_to_end(&mut block)?;
        match block.len() as u64 {
            0 => Ok(None),
            HEAD_LEN => Ok(Some(block)),
            _ => Err(io::Error::new(io::ErrorKind::UnexpectedEof, "it ends inside a header")),
        }
    }

    fn skip(&mut self, n: u64) -> io::Result<()> {
        if io::copy(&mut (&mut *self).take(n), &mut io::sink())? < n {
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "it ends inside an entry"));
        }
        Ok(())
    }
}

impl Read for Tar<'_> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let n = self.from.read(buf)?;
        self.at += n as u64;
        Ok(n)
    }
}

fn bounded(from: &mut dyn Read) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    from.take(MAX_EXTENSION).read_to_end(&mut bytes)?;
    while bytes.last() == Some(&0) {
        bytes.pop();
    }
    Ok(bytes)
}

impl Extended {
    fn pax(&mut self, bytes: &[u8]) {
        for record in PaxExtensions::new(bytes).flatten() {
            match record.key_bytes() {
                b"path" => self.name = Some(record.value_bytes().to_vec()),
                b"size" => self.size = record.value().ok().and_then(|v| v.parse().ok()),
                _ => {}
            }
        }
    }
}
