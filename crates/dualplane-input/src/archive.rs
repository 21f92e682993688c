//! Packed files: unpacks a stream into a pile, one level of archives inside archives, never onto the disk.

use std::fs::File;
use std::io::{self, Cursor, Read, Seek};
use std::path::Path;

use super::form::{Form, Peeked};
use dualplane_core::sift::{Reading, reading};

use super::file::{LOOK, broken};
use super::limits::{
    HEAD, MAX_FILE, MAX_FILES, MAX_NESTING, MAX_TOTAL, SIFTED_OF_ONE, WHOLE_STREAM, cut, sifted_share,
};
use super::names::{self, Name};
use super::pile::{Content, Pile};
use super::{sieve, stream, tar, zip};

/// What a packed file held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Held {
    /// A file.
    File,
    /// A tree of files.
    Archive,
}

impl Pile<'_> {
    /// Unpacks a file of the disk into the pile.
    pub(super) fn unpack_file(&mut self, name: &str, path: &Path) -> io::Result<Held> {
        let mut file = File::open(path)?;
        let (form, _) = Peeked::new(&mut file);
        file.rewind()?;
        if form == Form::Zip {
            self.zip(name, &mut file, 0);
            return Ok(Held::Archive);
        }
        Ok(self.feed(name, &mut file, 0))
    }

    /// Takes in a stream, unpacked where it is packed. `level`: how many archives it lies in.
    pub(super) fn feed(&mut self, name: &str, from: &mut dyn Read, level: u32) -> Held {
        let (form, mut whole) = Peeked::new(from);
        let left = std::rc::Rc::clone(&self.budget.unpack);
        match form {
            Form::Gzip => self.inner(name, &mut *stream::gzip(whole, left), level),
            Form::Zstd => self.inner(name, &mut *stream::zstd(whole, left), level),
            Form::Tar => {
                let mut metered = stream::Meter::new(whole, left);
                self.tar(name, &mut metered, level)
            }
            Form::Zip => {
                // Its directory stands at the end: it must be held.
                let mut bytes = Vec::new();
                let max = MAX_FILE.min(self.budget.keep.get());
                match whole.take(max).read_to_end(&mut bytes) {
                    Err(e) => {
                        self.gap(name, format!("only its first {} bytes could be read ({e})", bytes.len()))
                    }
                    Ok(n) if n as u64 == max => {
                        self.gap(name, format!("only its first {} MiB were read", max >> 20))
                    }
                    Ok(_) => {}
                }
                self.zip(name, &mut Cursor::new(bytes), level)
            }
            Form::Plain | Form::Foreign(..) => {
                self.keep(name, form, &mut whole);
                Held::File
            }
        }
    }

    /// What lies in a compressed file.
    fn inner(&mut self, name: &str, from: &mut dyn Read, level: u32) -> Held {
        let (form, mut whole) = Peeked::new(from);
        match form {
            Form::Tar => return self.tar(name, &mut whole, level),
            Form::Gzip | Form::Zstd | Form::Zip => {
                self.gap(name, "it is compressed twice and was not read; decompress it once");
            }
            Form::Plain | Form::Foreign(..) => self.keep(&names::unpacked(name), form, &mut whole),
        }
        Held::File
    }

    fn tar(&mut self, name: &str, from: &mut dyn Read, level: u32) -> Held {
        self.archive(name, level, |child| tar::read(child, from, level + 1))
    }

    fn zip(&mut self, name: &str, from: &mut dyn zip::ReadSeek, level: u32) -> Held {
        self.archive(name, level, |child| zip::read(child, from, level + 1))
    }

    fn archive(&mut self, name: &str, level: u32, read: impl FnOnce(&mut Self)) -> Held {
        if level > MAX_NESTING {
            self.gap(name, "it is nested more than one archive deep and was not read; unpack it first");
            return Held::File;
        }
        let mut child = self.child();
        read(&mut child);
        self.merge(name, &names::stem(name), child);
        Held::Archive
    }

    /// A file of an archive.
    pub(super) fn entry_file(&mut self, raw: &[u8], content: &mut dyn Read, level: u32) {
        match names::sanitise(raw) {
            Name::Skip => {}
            Name::Bad(why) => self.entry_gap(raw, why),
            Name::File { name, odd } => {
                if let Some(odd) = odd {
                    self.gap(
                        &name,
                        format!("its name in the archive contains {odd}; it was read under this name"),
                    );
                }
                self.feed(&name, content, level);
            }
        }
    }

    /// An entry that is not read.
    pub(super) fn entry_gap(&mut self, raw: &[u8], why: &str) {
        let name = match names::sanitise(raw) {
            Name::File { name, .. } => name,
            Name::Skip => return,
            Name::Bad(_) => String::from_utf8_lossy(raw).chars().take(80).collect(),
        };
        self.gap(&name, why);
    }

    /// Keeps the bytes of a stream as a file, within the limits.
    fn keep(&mut self, name: &str, form: Form, from: &mut dyn Read) {
        if let Form::Foreign(what, command) = form {
            return self.gap(
                name,
                format!(
                    "it is compressed with {what}, which is not supported; decompress it first: \
                {command}"
                ),
            );
        }
        if !self.has_room() {
            return self.gap(
                name,
                format!(
                    "it contains more than {MAX_FILES} files; unpack it and pass \
            only the relevant files"
                ),
            );
        }
        let look = WHOLE_STREAM.min(self.budget.whole.get()).max(LOOK);
        let mut head = Vec::new();
        if let Err(e) = from.take(look).read_to_end(&mut head) {
            let why = format!(
                "it is truncated after {} bytes ({e}); the part before that was \
            used",
                head.len()
            );
            self.gap(name, why);
            if !head.is_empty() {
                self.hold(name, head);
            }
            return;
        }
        if (head.len() as u64) < look {
            return self.hold(name, head);
        }
        match (reading(name, head.get(..LOOK as usize).unwrap_or(&head)), self.sieve.get()) {
            (Reading::Lines, Some(sifter)) => {
                let left = self.budget.sifted.get();
                let share = sifted_share(1).min(left / 4).max(*SIFTED_OF_ONE.start());
                let (sifted, error) = sieve::stream(sifter, head, from, share);
                self.budget.sifted.set(left.saturating_sub(sifted.text.len()));
                if let Some(e) = error {
                    self.gap(name, broken(sifted.lines, &e));
                }
                self.insert(name, Content::Sifted(sifted));
            }
            (Reading::Head, _) => {
                head.truncate(LOOK as usize);
                self.insert(name, Content::Bytes(head));
            }
            _ => self.document(name, &mut head.chain(from)),
        }
    }

    /// Keeps a small file.
    fn hold(&mut self, name: &str, bytes: Vec<u8>) {
        let (whole, keep) = (&self.budget.whole, &self.budget.keep);
        whole.set(whole.get().saturating_sub(bytes.len() as u64));
        keep.set(keep.get().saturating_sub(bytes.len() as u64));
        self.insert(name, Content::Bytes(bytes));
    }

    /// Keeps what has no meaning line by line.
    fn document(&mut self, name: &str, from: &mut dyn Read) {
        let room = self.budget.keep.get();
        let mut kept = Kept::default();
        let result = kept.read(from, room.min(MAX_FILE));
        let total = kept.total;
        let whole = result.is_ok();
        if let Err(e) = result {
            self.gap(
                name,
                format!(
                    "it is truncated after {total} bytes ({e}); the part before that was \
            used"
                ),
            );
        }
        if total > room && room < MAX_FILE {
            return self.gap(
                name,
                format!("the archives before it already contain {} MiB; unpack it", (MAX_TOTAL - room) >> 20),
            );
        }
        if total > MAX_FILE {
            self.gap(name, cut(total));
        }
        let bytes = kept.finish();
        self.budget.keep.set(room.saturating_sub(bytes.len() as u64));
        if total > 0 || whole {
            self.insert(name, Content::Bytes(bytes));
        }
    }
}

/// The head and the tail of a stream of unknown length; what lies behind the head is a ring.
#[derive(Default)]
struct Kept {
    bytes: Vec<u8>,
    /// Where the ring goes on, counted from its begin.
    next: usize,
    total: u64,
}

impl Kept {
    fn read(&mut self, from: &mut dyn Read, max: u64) -> io::Result<()> {
        let mut buf = vec![0; 64 << 10];
        let max = usize::try_from(max).unwrap_or(usize::MAX);
        loop {
            let n = match from.read(&mut buf) {
                Ok(0) => return Ok(()),
                Ok(n) => n,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
                Err(e) => return Err(e),
            };
            self.total += n as u64;
            let mut new = buf.get(..n).unwrap_or_default();
            let (fits, rest) = new.split_at(new.len().min(max.saturating_sub(self.bytes.len())));
            self.bytes.extend_from_slice(fits);
            new = rest;
            // Where not even a whole file's limit is free, it will be dropped: nothing more to keep.
            while !new.is_empty() && max as u64 == MAX_FILE {
                let ring = self.bytes.get_mut(HEAD as usize..).unwrap_or_default();
                let Some(place) = ring.get_mut(self.next..) else { break };
                let (now, later) = new.split_at(new.len().min(place.len()));
                place.iter_mut().zip(now).for_each(|(to, from)| *to = *from);
                self.next =
                    if later.is_empty() && now.len() < place.len() { self.next + now.len() } else { 0 };
                new = later;
            }
        }
    }

    fn finish(mut self) -> Vec<u8> {
        if self.total > MAX_FILE
            && let Some(ring) = self.bytes.get_mut(HEAD as usize..)
        {
            ring.rotate_left(self.next.min(ring.len()));
            // A whole line end, so that the cut does not make one line of two halves.
            if let Some(first) = ring.first_mut() {
                *first = b'\n';
            }
        }
        self.bytes
    }
}
