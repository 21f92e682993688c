//! One region of a log: its finds, and what is kept around them.

use dualplane_base::order::Order as _;
use std::collections::HashMap;
use std::ops::Range;

use memchr::{memchr, memchr_iter, memrchr, memrchr_iter};

use super::{MAX_LINE, Sifter};

/// Of one word in one region, so many of the first finds and as many of the last are kept.
const KEPT: usize = 8;
/// Lines before a find that are kept: as far as `facts` looks back.
const BEFORE_LINES: usize = crate::facts::CONTEXT_LINES;
/// And bytes.
const BEFORE_BYTES: usize = 8 << 10;
/// Bytes kept behind a find.
const AFTER_BYTES: usize = 96 << 10;

/// What one region gave.
#[derive(Debug, Default)]
pub struct Part {
    /// Lines that begin in the region's own range.
    pub(super) lines: u64,
    pub(super) passages: Vec<Passage>,
    pub(super) omitted: u64,
}

/// Lines that follow each other, kept for the finds in them.
#[derive(Debug)]
pub(super) struct Passage {
    /// The number of the first line, from 0, counted from the first line of the region's own range; what stands before
    /// that has a number below 0.
    pub(super) first: i64,
    /// Whole lines, each with its end.
    pub(super) text: Vec<u8>,
    /// The words found, one for each find.
    pub(super) words: Vec<u32>,
    /// The highest rank of its words.
    pub(super) rank: u8,
    /// It stays in any case.
    pub(super) always: bool,
}

struct Find {
    /// Where its line lies.
    line: Range<usize>,
    /// Lines behind it.
    after: u32,
}

impl Sifter {
    /// Sifts a region. `own`: the bytes whose lines this call judges, those that begin there; what lies around them in
    /// `region` is for context (see [`super::BEFORE`], [`super::AFTER`]). `whole`: where lines are kept in any case.
    #[must_use]
    pub fn part(&self, region: &[u8], own: Range<usize>, whole: &[Range<usize>]) -> Part {
        let begin = match own.start.checked_sub(1) {
            None => 0,
            // A line that began before belongs to whoever owns its begin.
            Some(before) => next_line(region, before),
        };
        let end = own.end.min(region.len());
        if begin >= end {
            return Part::default();
        }
        // The last own line goes on behind the range.
        let end = match end.checked_sub(1).and_then(|last| region.get(last)) {
            Some(b'\n') => end,
            _ => next_line(region, end).min(region.len()),
        };
        let text = region.get(begin..end).unwrap_or_default();
        let open = usize::from(text.last().is_some_and(|b| *b != b'\n'));
        let lines = (memchr_iter(b'\n', text).count() + open) as u64;
        let found = self.finds(region, begin..end);
        let (mut kept, omitted) = found.thinned();
        for whole in whole.iter().filter(|w| w.start < w.end) {
            // Whole lines only.
            let from = if whole.start > begin { next_line(region, whole.start - 1) } else { begin };
            let to = if whole.end < end { next_line(region, whole.end) } else { end };
            if from < to {
                kept.push((from..to, 0, None));
            }
        }
        Part { lines, passages: self.passages(region, begin, kept), omitted }
    }

    fn finds(&self, region: &[u8], own: Range<usize>) -> Finds {
        let mut finds = Finds::default();
        let mut judged = own.start;
        let mut places = self.grams.places(region, own.clone());
        while let Some(at) = places.next() {
            let start = memrchr(b'\n', region.get(judged..at).unwrap_or_default());
            let start = start.map_or(judged, |n| judged + n + 1);
            let stop = memchr(b'\n', region.get(at..own.end).unwrap_or_default());
            let stop = stop.map_or(own.end, |n| at + n);
            judged = stop + 1;
            places.skip_to(judged);
            self.judge(region, start..stop, &mut finds);
        }
        finds
    }

    fn judge(&self, region: &[u8], line: Range<usize>, finds: &mut Finds) {
        let cut = line.start..line.end.min(line.start + MAX_LINE);
        let before = finds.words.len();
        let number = u32::try_from(finds.lines.len()).unwrap_or(u32::MAX);
        let mut after = 0;
        let text = region.get(cut).unwrap_or_default();
        for hit in self.automaton.find_overlapping_iter(text) {
            let word = hit.pattern().as_u32();
            let other = self.worth.get(word as usize).and_then(|w| w.unless);
            if other.zip(text.get(hit.end()..)).is_some_and(|(o, behind)| behind.starts_with(o.as_bytes())) {
                continue;
            }
            if finds.words.get(before..).is_some_and(|w| !w.contains(&(word, number))) {
                finds.words.push((word, number));
                after = after.max(self.worth.get(word as usize).map_or(0, |w| w.after));
            }
        }
        if finds.words.len() > before {
            finds.lines.push(Find { line, after });
        }
    }

    /// Passages around the kept finds, overlapping ones as one.
    fn passages(&self, region: &[u8], begin: usize, mut kept: Vec<Kept>) -> Vec<Passage> {
        kept.order_by_key(|(line, ..)| line.start);
        let mut spans: Vec<(Range<usize>, Vec<u32>, bool)> = Vec::new();
        for (line, after, words) in kept {
            let always = words.is_none();
            let span = match &words {
                Some(_) => before(region, line.start)..behind(region, line.end, after),
                None => line,
            };
            match spans.last_mut().filter(|(last, ..)| span.start <= last.end) {
                Some((last, all, stays)) => {
                    last.end = last.end.max(span.end);
                    all.extend(words.into_iter().flatten());
                    *stays |= always;
                }
                None => spans.push((span, words.unwrap_or_default(), always)),
            }
        }
        let mut at = begin;
        let mut line: i64 = 0;
        let mut passages = Vec::new();
        for (span, words, always) in spans {
            let between = |a: usize, b: usize| {
                i64::try_from(memchr_iter(b'\n', region.get(a..b).unwrap_or_default()).count()).unwrap_or(0)
            };
            line += if span.start >= at { between(at, span.start) } else { -between(span.start, at) };
            at = span.start;
            let rank = words.iter().filter_map(|w| self.worth.get(*w as usize)).map(|w| w.rank).max();
            let text = cut_lines(region.get(span).unwrap_or_default());
            passages.push(Passage { first: line, text, words, rank: rank.unwrap_or(0), always });
        }
        passages
    }
}

/// A line, how many lines behind it, and the words for which it is kept; none: in any case.
type Kept = (Range<usize>, u32, Option<Vec<u32>>);

#[derive(Default)]
struct Finds {
    lines: Vec<Find>,
    /// Word and find.
    words: Vec<(u32, u32)>,
}

impl Finds {
    /// The first and the last finds of each word, and how many finds that drops.
    fn thinned(&self) -> (Vec<Kept>, u64) {
        let mut of_word: HashMap<u32, Vec<u32>> = HashMap::new();
        for (word, find) in &self.words {
            of_word.entry(*word).or_default().push(*find);
        }
        let mut keep: HashMap<u32, Vec<u32>> = HashMap::new();
        for (word, finds) in of_word {
            let tail = finds.len().saturating_sub(KEPT).max(KEPT.min(finds.len()));
            let head = finds.iter().take(KEPT);
            for find in head.chain(finds.get(tail..).unwrap_or_default()) {
                keep.entry(*find).or_default().push(word);
            }
        }
        let omitted = self.lines.len().saturating_sub(keep.len()) as u64;
        let kept = keep.into_iter().filter_map(|(find, mut words)| {
            words.sort_unstable();
            self.lines.get(find as usize).map(|f| (f.line.clone(), f.after, Some(words)))
        });
        (kept.collect(), omitted)
    }
}

/// Where the line after the one at `at` begins.
fn next_line(region: &[u8], at: usize) -> usize {
    memchr(b'\n', region.get(at..).unwrap_or_default()).map_or(region.len(), |n| at + n + 1)
}

/// Where the context before a line begins.
fn before(region: &[u8], line: usize) -> usize {
    let from = line.saturating_sub(BEFORE_BYTES);
    let window = region.get(from..line).unwrap_or_default();
    // The line end of the line before is the first that is met.
    let ends: Vec<usize> = memrchr_iter(b'\n', window).take(BEFORE_LINES + 1).collect();
    match ends.last() {
        Some(n) if ends.len() > BEFORE_LINES => from + n + 1,
        _ if from == 0 => 0,
        // The first line of the window is cut.
        Some(_) => memchr(b'\n', window).map_or(line, |n| from + n + 1),
        None => line,
    }
}

/// Where the context behind a line ends.
fn behind(region: &[u8], line_end: usize, lines: u32) -> usize {
    let to = region.len().min(line_end + AFTER_BYTES);
    let window = region.get(line_end..to).unwrap_or_default();
    let mut end = line_end;
    for n in memchr_iter(b'\n', window).take(lines as usize + 1) {
        end = line_end + n + 1;
    }
    if end == line_end { to.min(line_end + MAX_LINE) } else { end }
}

/// Lines up to [`MAX_LINE`] each.
fn cut_lines(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len() + 1);
    for line in text.split_inclusive(|b| *b == b'\n') {
        if line.len() <= MAX_LINE {
            out.extend_from_slice(line);
        } else {
            out.extend_from_slice(line.get(..MAX_LINE).unwrap_or(line));
            out.push(b'\n');
        }
    }
    if out.last().is_some_and(|b| *b != b'\n') {
        out.push(b'\n');
    }
    out
}
