//! Streams out of compressed bytes, with a meter on what comes out.

use std::cell::Cell;
use std::io::{self, BufRead, BufReader, Read};
use std::rc::Rc;

use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};

/// Counts the bytes read through it and ends with an error where the budget of the TARGET is spent.
pub(super) struct Meter<R> {
    inner: R,
    left: Rc<Cell<u64>>,
}

impl<R: Read> Meter<R> {
    pub(super) fn new(inner: R, left: Rc<Cell<u64>>) -> Self {
        Self { inner, left }
    }
}

impl<R: Read> Read for Meter<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        if self.left.get() == 0 {
            return Err(io::Error::other(format!(
                "the archives of this target unpack to more than {} MiB; unpack them and pass only the \
                relevant files",
                super::limits::MAX_UNPACKED >> 20
            )));
        }
        let n = self.inner.read(buf)?;
        self.left.set(self.left.get().saturating_sub(n as u64));
        Ok(n)
    }
}

/// Gzip, also several members after another, as `logrotate` and `cat a.gz b.gz` make it.
pub(super) fn gzip<'a>(from: impl Read + 'a, left: Rc<Cell<u64>>) -> Box<dyn Read + 'a> {
    Box::new(Meter::new(flate2::read::MultiGzDecoder::new(from), left))
}

/// Zstandard, also several frames after another.
pub(super) fn zstd<'a>(from: impl Read + 'a, left: Rc<Cell<u64>>) -> Box<dyn Read + 'a> {
    Box::new(Meter::new(
        Zstd { from: BufReader::new(from), decoder: FrameDecoder::new(), inside: false, ended: None },
        left,
    ))
}

struct Zstd<R: Read> {
    from: BufReader<R>,
    decoder: FrameDecoder,
    inside: bool,
    /// What ended the frame early; told after the bytes that were decoded before it.
    ended: Option<io::Error>,
}

/// An empty last block and a checksum: ends a frame, so that the decoder gives out what it holds back as its window.
const LAST_BLOCK: [u8; 7] = [1, 0, 0, 0, 0, 0, 0];

impl<R: Read> Read for Zstd<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        if buf.is_empty() {
            return Ok(0);
        }
        loop {
            if self.inside {
                while self.decoder.can_collect() == 0 && !self.decoder.is_finished() {
                    let some = || BlockDecodingStrategy::UptoBlocks(1);
                    if let Err(e) = self.decoder.decode_blocks(&mut self.from, some()) {
                        self.ended = Some(broken(e));
                        self.decoder.decode_blocks(LAST_BLOCK.as_slice(), some()).map_err(broken)?;
                    }
                }
                let n = self.decoder.read(buf)?;
                if n > 0 {
                    return Ok(n);
                }
                self.inside = false;
                if let Some(why) = self.ended.take() {
                    return Err(why);
                }
                let said = self.decoder.get_checksum_from_data();
                if said.is_some() && said != self.decoder.get_calculated_checksum() {
                    return Err(broken("the checksum does not match"));
                }
            }
            if self.from.fill_buf()?.is_empty() {
                return Ok(0);
            }
            match self.decoder.reset(&mut self.from) {
                Ok(()) => self.inside = true,
                Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame {
                    length,
                    ..
                })) => {
                    io::copy(&mut (&mut self.from).take(length.into()), &mut io::sink())?;
                }
                Err(e) => return Err(broken(e)),
            }
        }
    }
}

fn broken(why: impl std::fmt::Display) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why.to_string())
}
