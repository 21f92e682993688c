//! An answer of HTTP/1.1, read as it comes: nothing of it is kept that is not needed.
//!
//! What two readers could understand in two ways is no answer: two lengths that differ, a coding of the transfer besides
//! `chunked`, a chunk without its line break. Whoever passes answers on must not guess.

/// Of a head, and of its lines.
const MAX_HEAD: usize = 64 << 10;
const MAX_HEADERS: usize = 128;
/// Of a line that says how long a chunk is, and of all that follow the last.
const MAX_LINE: usize = 8 << 10;

/// Why there is no whole answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Broken {
    /// The server closed the connection before its end.
    #[error("cut off")]
    CutOff,
    /// It is no HTTP/1.1, or not in one way alone.
    #[error("the answer is not HTTP/1.1")]
    NoHttp,
    /// Its head has more than 64 KiB or 128 lines.
    #[error("the head of the answer is too large")]
    HeadTooLarge,
}

impl Broken {
    /// The same as a fixed sentence.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::CutOff => "cut off",
            Self::NoHttp => "the answer is not HTTP/1.1",
            Self::HeadTooLarge => "the head of the answer is too large",
        }
    }
}

/// What takes an answer in.
pub trait Sink {
    /// Its head; those that only say that another comes are not told.
    ///
    /// # Errors
    /// It is not taken.
    fn head(&mut self, _head: &httparse::Response<'_, '_>) -> Result<(), Broken> {
        Ok(())
    }

    /// A part of its body.
    fn body(&mut self, part: &[u8]);

    /// A line behind its body.
    fn trailer(&mut self, _name: &[u8], _value: &[u8]) {}
}

impl<F: FnMut(&[u8])> Sink for F {
    fn body(&mut self, part: &[u8]) {
        self(part);
    }
}

/// Where an answer is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum At {
    Head,
    /// So many bytes of a body that are still to come.
    Body(u64),
    /// A body as long as the connection.
    UntilClose,
    /// The line that says how long a chunk is.
    Size,
    /// So many bytes of a chunk.
    Chunk(u64),
    /// The line break behind a chunk.
    Break,
    /// Lines behind the last chunk.
    Trailers,
    Whole,
}

/// An answer as far as it came.
#[derive(Debug)]
pub struct Answer {
    at: At,
    /// A head or a line that is not whole.
    rest: Vec<u8>,
    /// Bytes of the lines behind the last chunk.
    behind: usize,
    status: u16,
    keeps: bool,
    /// None has a body: it was asked for its head.
    bare: bool,
}

impl Default for Answer {
    fn default() -> Self {
        Self { at: At::Head, rest: Vec::new(), behind: 0, status: 0, keeps: true, bare: false }
    }
}

impl Answer {
    /// One to `HEAD`, whose length is that of a body which does not come.
    #[must_use]
    pub fn to_head() -> Self {
        Self { bare: true, ..Self::default() }
    }

    /// Bytes of its body that are still to come, where that is known.
    #[must_use]
    pub fn left(&self) -> Option<u64> {
        match self.at {
            At::Body(left) => Some(left),
            At::Whole => Some(0),
            _ => None,
        }
    }

    /// Its status, once its head is there.
    #[must_use]
    pub fn status(&self) -> Option<u16> {
        (self.at != At::Head).then_some(self.status)
    }

    /// Nothing of it is to come.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.at == At::Whole
    }

    /// Whether the connection is good for another request.
    #[must_use]
    pub fn keeps(&self) -> bool {
        self.is_whole() && self.keeps
    }

    /// The server closed the connection.
    pub(crate) fn ends(&mut self) -> Result<(), Broken> {
        self.keeps = false;
        match self.at {
            At::UntilClose | At::Whole => {
                self.at = At::Whole;
                Ok(())
            }
            _ => Err(Broken::CutOff),
        }
    }

    /// Takes bytes in.
    ///
    /// # Errors
    /// It is no answer.
    pub fn take(&mut self, mut bytes: &[u8], sink: &mut impl Sink) -> Result<(), Broken> {
        while !bytes.is_empty() {
            bytes = match self.at {
                At::Head => self.head(bytes, sink)?,
                At::Body(left) => {
                    let (own, rest) = split(bytes, left);
                    sink.body(own);
                    let left = left - own.len() as u64;
                    self.at = if left == 0 { At::Whole } else { At::Body(left) };
                    rest
                }
                At::UntilClose => {
                    sink.body(bytes);
                    &[]
                }
                At::Size => match self.line(bytes)? {
                    (None, rest) => rest,
                    (Some(line), rest) => {
                        let size = size(&line).ok_or(Broken::NoHttp)?;
                        self.at = if size == 0 { At::Trailers } else { At::Chunk(size) };
                        rest
                    }
                },
                At::Chunk(left) => {
                    let (own, rest) = split(bytes, left);
                    sink.body(own);
                    let left = left - own.len() as u64;
                    self.at = if left == 0 { At::Break } else { At::Chunk(left) };
                    rest
                }
                At::Break => match self.line(bytes)? {
                    (None, rest) => rest,
                    (Some(line), rest) if line.is_empty() => {
                        self.at = At::Size;
                        rest
                    }
                    _ => return Err(Broken::NoHttp),
                },
                At::Trailers => match self.line(bytes)? {
                    (None, rest) => rest,
                    (Some(line), rest) => {
                        self.trailer(&line, sink)?;
                        rest
                    }
                },
                // Who says more than its answer is not asked again on this connection.
                At::Whole => {
                    self.keeps = false;
                    &[]
                }
            };
        }
        Ok(())
    }

    fn trailer(&mut self, line: &[u8], sink: &mut impl Sink) -> Result<(), Broken> {
        if line.is_empty() {
            self.at = At::Whole;
            return Ok(());
        }
        self.behind += line.len();
        let colon = line.iter().position(|b| *b == b':').filter(|at| *at > 0).ok_or(Broken::NoHttp)?;
        if self.behind > MAX_LINE {
            return Err(Broken::NoHttp);
        }
        let (name, value) = line.split_at(colon);
        sink.trailer(name, value.get(1..).unwrap_or_default().trim_ascii());
        Ok(())
    }

    /// A head; what stands behind it.
    fn head<'a>(&mut self, bytes: &'a [u8], sink: &mut impl Sink) -> Result<&'a [u8], Broken> {
        let before = self.rest.len();
        // Most heads come whole, and are read where they are.
        let whole: &[u8] = if before == 0 {
            bytes
        } else {
            self.rest.extend_from_slice(bytes);
            &self.rest
        };
        let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
        let mut response = httparse::Response::new(&mut headers);
        let length = match response.parse(whole) {
            Ok(httparse::Status::Complete(n)) if n <= MAX_HEAD => n,
            Ok(httparse::Status::Partial) if whole.len() < MAX_HEAD => {
                if before == 0 {
                    self.rest.extend_from_slice(bytes);
                }
                return Ok(&[]);
            }
            Ok(_) | Err(httparse::Error::TooManyHeaders) => return Err(Broken::HeadTooLarge),
            Err(_) => return Err(Broken::NoHttp),
        };
        let framing = Framing::of(&response)?;
        let status = response.code.unwrap_or(0);
        self.at = match status {
            // Nobody asked for another protocol.
            101 => return Err(Broken::NoHttp),
            // One that only says that another comes.
            100..=199 => At::Head,
            _ if self.bare => At::Whole,
            204 | 304 => At::Whole,
            _ => framing.at,
        };
        if self.at != At::Head {
            sink.head(&response)?;
        }
        self.keeps = framing.keeps;
        self.status = status;
        self.rest = Vec::new();
        // The head ends within these bytes: before them it was not whole.
        Ok(bytes.get(length.saturating_sub(before)..).unwrap_or_default())
    }

    /// A line without its break, where it is whole; what stands behind it.
    fn line<'a>(&mut self, bytes: &'a [u8]) -> Result<(Option<Vec<u8>>, &'a [u8]), Broken> {
        let end = bytes.iter().position(|b| *b == b'\n');
        let (own, rest) = bytes.split_at(end.unwrap_or(bytes.len()));
        if self.rest.len() + own.len() > MAX_LINE {
            return Err(Broken::NoHttp);
        }
        self.rest.extend_from_slice(own);
        if end.is_none() {
            return Ok((None, rest));
        }
        let mut line = std::mem::take(&mut self.rest);
        if line.pop() != Some(b'\r') {
            return Err(Broken::NoHttp);
        }
        Ok((Some(line), rest.get(1..).unwrap_or_default()))
    }
}

/// What a head says of the body behind it.
struct Framing {
    at: At,
    keeps: bool,
}

impl Framing {
    fn of(response: &httparse::Response<'_, '_>) -> Result<Self, Broken> {
        let (mut length, mut chunked, mut closes, mut stays) = (None, false, false, false);
        let is_word = |w: &[u8], word: &str| w.trim_ascii().eq_ignore_ascii_case(word.as_bytes());
        for h in response.headers.iter() {
            if h.name.eq_ignore_ascii_case("content-length") {
                let digits = h.value.trim_ascii();
                let plain = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
                let n =
                    std::str::from_utf8(digits).ok().filter(|_| plain).and_then(|d| d.parse::<u64>().ok());
                let n = n.ok_or(Broken::NoHttp)?;
                if length.is_some_and(|other| other != n) {
                    return Err(Broken::NoHttp);
                }
                length = Some(n);
            } else if h.name.eq_ignore_ascii_case("transfer-encoding") {
                if chunked || !is_word(h.value, "chunked") {
                    return Err(Broken::NoHttp);
                }
                chunked = true;
            } else if h.name.eq_ignore_ascii_case("connection") {
                closes |= h.value.split(|b| *b == b',').any(|w| is_word(w, "close"));
                stays |= h.value.split(|b| *b == b',').any(|w| is_word(w, "keep-alive"));
            }
        }
        let at = match (chunked, length) {
            (true, _) => At::Size,
            (false, Some(0)) => At::Whole,
            (false, Some(n)) => At::Body(n),
            (false, None) => At::UntilClose,
        };
        // Who gives two lengths is believed once.
        let once = chunked && length.is_some();
        Ok(Self { at, keeps: !closes && !once && (response.version == Some(1) || stays) })
    }
}

fn split(bytes: &[u8], most: u64) -> (&[u8], &[u8]) {
    bytes.split_at(bytes.len().min(usize::try_from(most).unwrap_or(usize::MAX)))
}

/// The length of a chunk, in hexadecimal digits; what stands behind a semicolon says nothing.
fn size(line: &[u8]) -> Option<u64> {
    let digits = line.split(|b| *b == b';').next()?.trim_ascii();
    let plain = !digits.is_empty() && digits.len() <= 15 && digits.iter().all(u8::is_ascii_hexdigit);
    if !plain {
        return None;
    }
    u64::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Reads bytes in parts of these sizes, over and over.
    fn read(bytes: &[u8], parts: &[usize]) -> Result<(Answer, Vec<u8>), Broken> {
        let (answer, heard) = heard(Answer::default(), bytes, parts)?;
        Ok((answer, heard.body))
    }

    #[derive(Debug, Default, PartialEq)]
    struct Heard {
        heads: usize,
        body: Vec<u8>,
        trailers: Vec<(Vec<u8>, Vec<u8>)>,
    }

    impl Sink for Heard {
        fn head(&mut self, _: &httparse::Response<'_, '_>) -> Result<(), Broken> {
            self.heads += 1;
            Ok(())
        }
        fn body(&mut self, part: &[u8]) {
            self.body.extend_from_slice(part);
        }
        fn trailer(&mut self, name: &[u8], value: &[u8]) {
            self.trailers.push((name.to_vec(), value.to_vec()));
        }
    }

    fn heard(mut answer: Answer, bytes: &[u8], parts: &[usize]) -> Result<(Answer, Heard), Broken> {
        let mut heard = Heard::default();
        let (mut rest, mut sizes) = (bytes, parts.iter().copied().cycle());
        while !rest.is_empty() {
            let (own, behind) = rest.split_at(rest.len().min(sizes.next().unwrap().max(1)));
            answer.take(own, &mut heard)?;
            rest = behind;
        }
        Ok((answer, heard))
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(96))]

        /// However a body is chunked and however the stream is cut, it is the same body, and the connection is as good.
        #[test]
        fn a_body_is_read_however_it_comes(
            body in proptest::collection::vec(any::<u8>(), 0..300),
            chunks in proptest::collection::vec(1_usize..90, 1..8),
            parts in proptest::collection::vec(1_usize..40, 1..8),
            form in 0..3,
        ) {
            let mut bytes = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nServer: x\r\n".to_vec();
            match form {
                0 => {
                    bytes.extend(b"Transfer-Encoding: chunked\r\n\r\n");
                    let (mut rest, mut sizes) = (body.as_slice(), chunks.iter().copied().cycle());
                    while !rest.is_empty() {
                        let (own, behind) = rest.split_at(rest.len().min(sizes.next().unwrap()));
                        bytes.extend(format!("{:x};a=b\r\n", own.len()).bytes().chain(own.iter().copied()).chain(*b"\r\n"));
                        rest = behind;
                    }
                    bytes.extend(b"0\r\nX-Trailer: y\r\n\r\n");
                }
                1 => bytes.extend(format!("content-length: {}\r\n\r\n", body.len()).bytes().chain(body.iter().copied())),
                _ => bytes.extend(b"\r\n".iter().chain(&body)),
            }
            let (mut answer, got) = heard(Answer::default(), &bytes, &parts).unwrap();
            prop_assert_eq!(&got.body, &body);
            prop_assert_eq!((got.heads, got.trailers.len()), (1, usize::from(form == 0)));
            prop_assert_eq!((answer.status(), answer.keeps()), (Some(200), form < 2));
            prop_assert!(answer.ends().is_ok() && answer.is_whole());
        }

        /// What is no answer is refused or read, and never more than a little is kept of it.
        #[test]
        fn anything_may_come(bytes in proptest::collection::vec(any::<u8>(), 0..400), parts in proptest::collection::vec(1_usize..64, 1..4)) {
            let _ = read(&bytes, &parts);
            let mut answer = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n".to_vec();
            answer.extend(&bytes);
            let _ = read(&answer, &parts);
        }
    }

    #[test]
    fn what_is_cut_too_large_or_wrong_is_told() {
        let of = |text: &str| read(text.as_bytes(), &[7]);
        let (mut cut, _) = of("HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n1234").unwrap();
        assert!(cut.ends().is_err() && !cut.keeps());
        assert!(of("SSH-2.0-OpenSSH_9\r\n").is_err());
        assert!(of("HTTP/1.1 200 OK\r\ncontent-length: -1\r\n\r\n").is_err());
        assert!(of("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nxyz\r\n").is_err());
        assert!(of("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nffffffffffffffffff\r\n").is_err());
        assert!(of(&format!("HTTP/1.1 200 OK\r\nx: {}\r\n\r\n", "y".repeat(MAX_HEAD))).is_err());
        let (closes, _) =
            of("HTTP/1.1 200 OK\r\ncontent-length: 0\r\nConnection: keep-alive, Close\r\n\r\n").unwrap();
        assert!(closes.is_whole() && !closes.keeps());
        let (old, _) = of("HTTP/1.0 200 OK\r\ncontent-length: 0\r\n\r\n").unwrap();
        assert!(!old.keeps());
        let (more, _) = of("HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\n12").unwrap();
        assert!(more.is_whole() && !more.keeps());
        let lines: String = (0..200).map(|i| format!("x-{i}: y\r\n")).collect();
        assert_eq!(of(&format!("HTTP/1.1 200 OK\r\n{lines}\r\n")).unwrap_err(), Broken::HeadTooLarge);
    }

    #[test]
    fn what_could_be_read_in_two_ways_is_no_answer() {
        let of =
            |lines: &str, body: &str| read(format!("HTTP/1.1 200 OK\r\n{lines}\r\n{body}").as_bytes(), &[5]);
        for lines in [
            "content-length: 1\r\ncontent-length: 2\r\n",
            "content-length: +1\r\n",
            "content-length: 1, 1\r\n",
            "content-length:\r\n",
            "transfer-encoding: gzip, chunked\r\n",
            "transfer-encoding: chunked\r\ntransfer-encoding: chunked\r\n",
            "transfer-encoding: identity\r\n",
        ] {
            assert_eq!(of(lines, "1").unwrap_err(), Broken::NoHttp, "{lines}");
        }
        let chunked = "transfer-encoding: chunked\r\n";
        for body in [
            "1\nx\r\n0\r\n\r\n",
            "1\r\nxy\r\n0\r\n\r\n",
            "0\r\nno line\r\n\r\n",
            "0\r\n: y\r\n\r\n",
            "-1\r\n",
        ] {
            assert_eq!(of(chunked, body).unwrap_err(), Broken::NoHttp, "{body:?}");
        }
        let endless = format!("0\r\n{}", "x: yyyyyyyyyyyy\r\n".repeat(1000));
        assert_eq!(of(chunked, &endless).unwrap_err(), Broken::NoHttp);
        assert_eq!(read(b"HTTP/1.1 101 Switching Protocols\r\n\r\n", &[9]).unwrap_err(), Broken::NoHttp);
        // One length said twice is one; beside chunks it is not believed, nor is the connection used again.
        assert!(of("content-length: 1\r\ncontent-length: 1\r\n", "1").unwrap().0.keeps());
        let (both, body) =
            of("content-length: 9\r\ntransfer-encoding: chunked\r\n", "1\r\nx\r\n0\r\n\r\n").unwrap();
        assert!(both.is_whole() && !both.keeps() && body == b"x");
        let (head, got) =
            heard(Answer::to_head(), b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\n", &[4]).unwrap();
        assert!(
            head.is_whole()
                && head.keeps()
                && head.left() == Some(0)
                && got.heads == 1
                && got.body.is_empty()
        );
    }
}
