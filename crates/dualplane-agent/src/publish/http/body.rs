//! Bodies of answers: bytes, or a file that is read as it is sent.

use std::fs::File;
use std::io::{self, Read};
use std::pin::Pin;
use std::task::{Context, Poll};

use hyper::body::{Body, Bytes, Frame, SizeHint};

/// Read at once. The file is on a local disk and the thread has nothing else to do in a hurry.
const CHUNK: u64 = 64 << 10;

/// A body.
pub(super) enum Content {
    /// All of it, once.
    Whole(Option<Bytes>),
    /// So many bytes of a file that are left.
    Rest(File, u64),
}

impl Body for Content {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        Poll::Ready(match &mut *self {
            Self::Whole(bytes) => bytes.take().filter(|b| !b.is_empty()).map(|b| Ok(Frame::data(b))),
            Self::Rest(_, 0) => None,
            Self::Rest(file, left) => {
                let mut chunk = Vec::new();
                match file.take((*left).min(CHUNK)).read_to_end(&mut chunk) {
                    // It became shorter: the connection ends, so that half a file is not taken for a whole one.
                    Ok(0) => Some(Err(io::ErrorKind::UnexpectedEof.into())),
                    Ok(n) => {
                        *left = left.saturating_sub(n as u64);
                        Some(Ok(Frame::data(chunk.into())))
                    }
                    Err(e) => Some(Err(e)),
                }
            }
        })
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Whole(bytes) => bytes.as_ref().is_none_or(Bytes::is_empty),
            Self::Rest(_, left) => *left == 0,
        }
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(match self {
            Self::Whole(bytes) => bytes.as_ref().map_or(0, |b| b.len() as u64),
            Self::Rest(_, left) => *left,
        })
    }
}
