//! Sifting: what is kept are lines of the log under their numbers, however the log is cut.
#![no_main]

use std::sync::LazyLock;

use dualplane_core::knowledge::Knowledge;
use dualplane_core::sift::{AFTER, BEFORE, Merge, Sifted, Sifter};
use libfuzzer_sys::fuzz_target;

static SIFTER: LazyLock<Sifter> = LazyLock::new(|| Sifter::new(&Knowledge::embedded().unwrap()).unwrap());

fn sift(text: &[u8], size: usize) -> Sifted {
    let mut merge = Merge::new(1 << 20);
    for start in (0..text.len()).step_by(size) {
        let end = (start + size).min(text.len());
        let (from, to) = (start.saturating_sub(BEFORE), (end + AFTER).min(text.len()));
        merge.push(SIFTER.part(&text[from..to], start - from..end - from, &[]));
    }
    merge.finish()
}

fuzz_target!(|data: &[u8]| {
    let Some((size, text)) = data.split_first() else { return };
    let whole = sift(text, text.len().max(1));
    let lines: Vec<&[u8]> = text.split(|b| *b == b'\n').collect();
    let kept: Vec<&[u8]> = whole.text.split_inclusive(|b| *b == b'\n').collect();
    assert_eq!(kept.len(), whole.numbers.len());
    for (line, number) in kept.iter().zip(whole.numbers.iter()) {
        assert_eq!(line.strip_suffix(b"\n"), lines.get(*number as usize - 1).copied());
    }
    let cut = sift(text, usize::from(*size) + 1);
    assert_eq!(cut.lines, whole.lines);
    if whole.omitted == 0 && cut.omitted == 0 {
        assert_eq!(cut.numbers, whole.numbers);
        assert_eq!(cut.text, whole.text);
    }
});
