//! Zip archives: by their directory, or header by header where the directory is cut off.
//! Our own walk: the `zip` crate folds entries of one name into the last and holds a whole directory of any size.

use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};

use flate2::Crc;
use flate2::bufread::DeflateDecoder;

use super::bytes::{take, u16_at, u32_at, u64_at};
use super::limits::{MAX_ENTRIES, MAX_ZIP_DIRECTORY};
use super::pile::Pile;
use super::stream::{self, Meter};

/// Something to read a zip from.
pub(super) trait ReadSeek: Read + Seek {}
impl<T: Read + Seek> ReadSeek for T {}

/// The longest comment, and the record before it.
const END_SEARCH: u64 = 65_535 + 22;
const LOCAL: &[u8] = b"PK\x03\x04";

/// What a header says of an entry.
#[derive(Debug, Default)]
struct Entry {
    name: Vec<u8>,
    flags: u16,
    method: u16,
    crc: u32,
    packed: u64,
    size: u64,
    /// Of its local header.
    at: u64,
    unix_mode: u32,
}

/// Reads all entries into the pile; what breaks is a gap.
pub(super) fn read(pile: &mut Pile, from: &mut dyn ReadSeek, level: u32) {
    let result = match directory(from) {
        Ok(Some(entries)) => by_directory(pile, from, level, &entries),
        Ok(None) => {
            pile.gap(
                "",
                "its central directory is missing (it may be truncated); the part before that was used",
            );
            by_headers(pile, from, level)
        }
        Err(e) => Err(e),
    };
    if let Err(e) = result {
        let at = from.stream_position().unwrap_or_default();
        pile.gap("", format!("near byte {at} of the archive: {e}; the part before that was used"));
    }
}

/// The central directory and how many bytes stand before the archive.
fn directory(from: &mut dyn ReadSeek) -> io::Result<Option<(Vec<u8>, u64)>> {
    let len = from.seek(SeekFrom::End(0))?;
    let tail_at = len.saturating_sub(END_SEARCH);
    let tail = bytes_at(from, tail_at, END_SEARCH)?;
    let Some(end) = tail.windows(4).rposition(|w| w == b"PK\x05\x06") else { return Ok(None) };
    let end_at = tail_at + end as u64;
    let record = tail.get(end..).unwrap_or_default();
    let (mut size, mut offset, mut before) =
        (u64::from(u32_at(record, 12)), u64::from(u32_at(record, 16)), end_at);
    if size == u64::from(u32::MAX) || offset == u64::from(u32::MAX) {
        let locator = bytes_at(from, end_at.saturating_sub(20), 20)?;
        before = u64_at(&locator, 8);
        let record = bytes_at(from, before, 56)?;
        if !locator.starts_with(b"PK\x06\x07") || !record.starts_with(b"PK\x06\x06") {
            return Ok(None);
        }
        (size, offset) = (u64_at(&record, 40), u64_at(&record, 48));
    }
    if size > MAX_ZIP_DIRECTORY {
        return Err(io::Error::other(format!(
            "its central directory is larger than {} MiB",
            MAX_ZIP_DIRECTORY >> 20
        )));
    }
    let Some(start) = before.checked_sub(size) else { return Ok(None) };
    Ok(Some((bytes_at(from, start, size)?, start.saturating_sub(offset))))
}

fn by_directory(
    pile: &mut Pile,
    from: &mut dyn ReadSeek,
    level: u32,
    (directory, base): &(Vec<u8>, u64),
) -> io::Result<()> {
    let mut rest = directory.as_slice();
    while rest.starts_with(b"PK\x01\x02") {
        if !pile.entry() {
            return Err(io::Error::other(format!("more than {MAX_ENTRIES} entries")));
        }
        let lens = [28, 30, 32].map(|at| usize::from(u16_at(rest, at)));
        let [name, extra, comment] = lens;
        let mut entry = Entry {
            name: rest.get(46..46 + name).unwrap_or_default().to_vec(),
            flags: u16_at(rest, 8),
            method: u16_at(rest, 10),
            crc: u32_at(rest, 16),
            packed: u32_at(rest, 20).into(),
            size: u32_at(rest, 24).into(),
            at: u32_at(rest, 42).into(),
            unix_mode: if u16_at(rest, 4) >> 8 == 3 { u32_at(rest, 38) >> 16 } else { 0 },
        };
        entry.wide(rest.get(46 + name..46 + name + extra).unwrap_or_default());
        rest = rest.get(46 + name + extra + comment..).unwrap_or_default();
        let at = base.saturating_add(entry.at);
        let local = bytes_at(from, at, 30)?;
        if !local.starts_with(LOCAL) {
            pile.entry_gap(
                &entry.name,
                &format!(
                    "the central directory points to byte {at}, but the \
            entry is not there"
                ),
            );
            continue;
        }
        let data = at + 30 + u64::from(u16_at(&local, 26)) + u64::from(u16_at(&local, 28));
        from.seek(SeekFrom::Start(data))?;
        let packed = entry.packed;
        entry.read(pile, &mut BufReader::new(from.take(packed)), level);
    }
    if rest.is_empty() {
        return Ok(());
    }
    Err(io::Error::other("its central directory is damaged"))
}

/// One entry after another from the start.
fn by_headers(pile: &mut Pile, from: &mut dyn ReadSeek, level: u32) -> io::Result<()> {
    from.seek(SeekFrom::Start(0))?;
    let mut from = BufReader::new(from);
    while find_local(&mut from)? && pile.entry() {
        let head = [LOCAL, &take(&mut from, 26)?].concat();
        let name = take(&mut from, u16_at(&head, 26).into())?;
        let extra = take(&mut from, u16_at(&head, 28).into())?;
        let mut entry = Entry {
            name,
            flags: u16_at(&head, 6),
            method: u16_at(&head, 8),
            crc: u32_at(&head, 14),
            packed: u32_at(&head, 18).into(),
            size: u32_at(&head, 22).into(),
            ..Entry::default()
        };
        entry.wide(&extra);
        if entry.flags & 8 == 0 {
            let mut data = (&mut from).take(entry.packed);
            entry.read(pile, &mut data, level);
            io::copy(&mut data, &mut io::sink())?;
        } else if entry.method == 8 {
            // Its size stands behind it; deflate knows its own end.
            entry.read(pile, &mut from, level);
        } else {
            pile.entry_gap(&entry.name, "without the central directory its size is unknown");
        }
    }
    Ok(())
}

/// Goes behind the next signature of a local header: over descriptors of four sizes, and over damage.
fn find_local(from: &mut dyn BufRead) -> io::Result<bool> {
    let mut seen = 0;
    for byte in from.bytes() {
        let byte = byte?;
        seen = if LOCAL.get(seen) == Some(&byte) { seen + 1 } else { usize::from(byte == b'P') };
        if seen == LOCAL.len() {
            return Ok(true);
        }
    }
    Ok(false)
}

impl Entry {
    /// Sizes and places that need more than 32 bits stand in an extra field, in this order, where the header has ones.
    fn wide(&mut self, mut extra: &[u8]) {
        while extra.len() >= 4 {
            let len = usize::from(u16_at(extra, 2));
            let mut field = extra.get(4..4 + len).unwrap_or_default();
            if u16_at(extra, 0) == 1 {
                for value in [&mut self.size, &mut self.packed, &mut self.at] {
                    if *value == u64::from(u32::MAX) && field.len() >= 8 {
                        *value = u64_at(field, 0);
                        field = field.get(8..).unwrap_or_default();
                    }
                }
            }
            extra = extra.get(4 + len..).unwrap_or_default();
        }
    }

    /// Reads its content from where it begins.
    fn read(&self, pile: &mut Pile, from: &mut dyn BufRead, level: u32) {
        // Zips from Windows may separate folders so.
        let name: Vec<u8> = self.name.iter().map(|b| if *b == b'\\' { b'/' } else { *b }).collect();
        match self.unix_mode & 0o170_000 {
            0 | 0o100_000 | 0o040_000 => {}
            0o120_000 => return pile.entry_gap(&name, "it is a link and was not followed"),
            _ => return pile.entry_gap(&name, "it is a device or a pipe and was not read"),
        }
        if self.flags & 1 != 0 {
            return pile.entry_gap(&name, "it is encrypted; unpack it first");
        }
        let left = std::rc::Rc::clone(&pile.budget.unpack);
        let content: Box<dyn Read + '_> = match self.method {
            0 => Box::new(Meter::new(from, left)),
            8 => Box::new(Meter::new(DeflateDecoder::new(from), left)),
            93 => stream::zstd(from, left),
            other => {
                return pile.entry_gap(
                    &name,
                    &format!("it is packed with method {other}, which is not read; unpack it first"),
                );
            }
        };
        let mut content = Summed { from: content, crc: Crc::new(), ended: false };
        pile.entry_file(&name, &mut content, level);
        // With the sizes behind the entry its checksum stands there too, or in the directory.
        let known = self.flags & 8 == 0 || self.packed > 0;
        if content.ended && known && content.crc.sum() != self.crc {
            pile.entry_gap(&name, "its checksum does not match; it was used, but it may be damaged");
        }
    }
}

/// Computes the checksum of what is read through it.
struct Summed<'a> {
    from: Box<dyn Read + 'a>,
    crc: Crc,
    ended: bool,
}

impl Read for Summed<'_> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let n = self.from.read(buf)?;
        self.crc.update(buf.get(..n).unwrap_or_default());
        self.ended = n == 0 && !buf.is_empty();
        Ok(n)
    }
}

fn bytes_at(from: &mut dyn ReadSeek, at: u64, len: u64) -> io::Result<Vec<u8>> {
    from.seek(SeekFrom::Start(at))?;
    take(from, len)
}
