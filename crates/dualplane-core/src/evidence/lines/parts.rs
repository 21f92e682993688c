//! Lines that a container runtime cut: which parts make one line. Facts and redaction join them alike, so that what is read
//! as one line is masked as one.
//!
//! CRI runtimes and Docker cut at 16 KiB. Standard output and standard error interleave, and each has its own open line.

/// What a line of the file is.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Joined<L, T> {
    /// A whole line.
    Whole(L),
    /// A part behind which more will come.
    Open,
    /// The last part of a line; all of them in order, this one among them.
    Line(Vec<T>),
}

/// How a line stands to the one before it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cut {
    /// Its stream: standard error or output.
    pub(crate) stderr: bool,
    /// It goes on in the next line of its stream.
    pub(crate) partial: bool,
    /// Length of its message.
    pub(crate) bytes: usize,
}

/// Open lines of both streams.
#[derive(Debug)]
pub(crate) struct Parts<T> {
    streams: [Stream<T>; 2],
}

#[derive(Debug)]
struct Stream<T> {
    parts: Vec<T>,
    bytes: usize,
}

impl<T> Default for Stream<T> {
    fn default() -> Self {
        Self { parts: Vec::new(), bytes: 0 }
    }
}

impl<T> Default for Parts<T> {
    fn default() -> Self {
        Self { streams: [Stream::default(), Stream::default()] }
    }
}

impl<T> Parts<T> {
    /// Takes the next line; of a part, `keep` makes what is kept. It is told how many bytes came before.
    pub(crate) fn take<L>(&mut self, cut: Cut, line: L, keep: impl FnOnce(L, usize) -> T) -> Joined<L, T> {
        let Cut { stderr, partial, bytes } = cut;
        let [out, err] = &mut self.streams;
        let stream = if stderr { err } else { out };
        if !partial && stream.parts.is_empty() {
            return Joined::Whole(line);
        }
        stream.parts.push(keep(line, stream.bytes));
        stream.bytes = stream.bytes.saturating_add(bytes);
        if partial { Joined::Open } else { Joined::Line(std::mem::take(stream).parts) }
    }

    /// Whether a line of either stream is open.
    pub(crate) fn any_open(&self) -> bool {
        self.streams.iter().any(|s| !s.parts.is_empty())
    }

    /// Ends a line whose parts hold more than this.
    pub(crate) fn longer_than(&mut self, bytes: usize) -> Option<Vec<T>> {
        self.streams.iter_mut().find(|s| s.bytes > bytes).map(|s| std::mem::take(s).parts)
    }

    /// Lines that the end of the log left open.
    pub(crate) fn left(self) -> impl Iterator<Item = Vec<T>> {
        self.streams.into_iter().map(|s| s.parts).filter(|p| !p.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Takes lines of (standard error, partial, text).
    fn joined(lines: &[(bool, bool, &'static str)]) -> (Vec<Vec<&'static str>>, Vec<Vec<&'static str>>) {
        let mut parts = Parts::default();
        let mut whole = Vec::new();
        for (stderr, partial, text) in lines {
            let cut = Cut { stderr: *stderr, partial: *partial, bytes: text.len() };
            match parts.take(cut, *text, |text, _| text) {
                Joined::Whole(text) => whole.push(vec![text]),
                Joined::Open => {}
                Joined::Line(line) => whole.push(line),
            }
        }
        (whole, parts.left().collect())
    }

    #[test]
    fn streams_interleave() {
        let lines = [
            (false, true, "a"),
            (true, false, "e"),
            (false, true, "b"),
            (true, true, "f"),
            (false, false, "c"),
        ];
        assert_eq!(joined(&lines), (vec![vec!["e"], vec!["a", "b", "c"]], vec![vec!["f"]]));
    }

    #[test]
    fn what_came_before_is_told_and_a_long_line_can_be_ended() {
        let cut = |partial| Cut { stderr: false, partial, bytes: 3 };
        let mut parts = Parts::default();
        assert_eq!(parts.take(cut(true), (), |(), before| before), Joined::Open);
        assert_eq!(parts.longer_than(3), None);
        assert_eq!(parts.take(cut(true), (), |(), before| before), Joined::Open);
        assert!(parts.any_open());
        assert_eq!(parts.longer_than(3), Some(vec![0, 3]));
        assert!(!parts.any_open());
        assert_eq!(parts.take(cut(false), (), |(), before| before), Joined::Whole(()));
    }
}
