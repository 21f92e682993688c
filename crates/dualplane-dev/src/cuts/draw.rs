//! What is taken from an incident: files, all but a window of each log, or single lines, drawn with a seed.

use dualplane_core::evidence::RawFile;

use crate::chance::Rng;

/// A way to take evidence away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cut {
    /// Some of the files, as they were not fetched or have expired.
    Files,
    /// All but 10 to 70 % of the lines of each log or text, as `tail`, `head` and the screen leave them.
    Window,
    /// Lines here and there, as `grep` and a log pipeline under load leave them.
    Lines,
    /// Files, and of the rest a window.
    Both,
    /// All but a window of one object in JSON or YAML, as a screen or `grep -A` leaves it; the other files stay.
    Object,
}

impl Cut {
    pub(super) const ALL: [Self; 5] = [Self::Files, Self::Window, Self::Lines, Self::Both, Self::Object];

    pub(super) fn title(self) -> &'static str {
        match self {
            Self::Files => "files dropped",
            Self::Window => "a window of lines",
            Self::Lines => "lines dropped",
            Self::Both => "files and a window",
            Self::Object => "a window of an object",
        }
    }

    /// What is left of the incident; `None` where this cut takes nothing away.
    pub(super) fn of(self, files: &[RawFile], rng: &mut Rng) -> Option<Vec<RawFile>> {
        match self {
            Self::Files => some_of(files, rng),
            Self::Window => texts(files, rng, window),
            Self::Lines => texts(files, rng, thinned),
            Self::Both => texts(&some_of(files, rng)?, rng, window),
            Self::Object => object(files, rng),
        }
    }
}

/// A part of the files, at least one and not all.
fn some_of(files: &[RawFile], rng: &mut Rng) -> Option<Vec<RawFile>> {
    if files.len() < 2 {
        return None;
    }
    let kept = 1 + rng.below(files.len() - 1);
    let mut order: Vec<&RawFile> = files.iter().collect();
    for i in (1..order.len()).rev() {
        order.swap(i, rng.below(i + 1));
    }
    order.truncate(kept);
    // In the order in which they were read.
    order.sort_by(|a, b| a.name.cmp(&b.name));
    Some(order.into_iter().cloned().collect())
}

/// Cuts each text of lines; objects in JSON or YAML and counters stay as they are.
fn texts(
    files: &[RawFile],
    rng: &mut Rng,
    mut cut: impl FnMut(&[&str], &mut Rng) -> String,
) -> Option<Vec<RawFile>> {
    let mut less = false;
    let mut rest = Vec::with_capacity(files.len());
    for file in files {
        let name = file.name.as_str();
        let of_lines = [".log", ".txt", ".md"].iter().any(|e| name.ends_with(e));
        let text = String::from_utf8_lossy(&file.bytes);
        let lines: Vec<&str> = text.split_inclusive('\n').collect();
        if !of_lines || file.sifted.is_some() || lines.len() < 2 {
            rest.push(file.clone());
            continue;
        }
        let left = cut(&lines, rng);
        less |= left.len() < text.len();
        rest.push(RawFile::new(name, left));
    }
    less.then_some(rest)
}

/// A window of one of the objects.
fn object(files: &[RawFile], rng: &mut Rng) -> Option<Vec<RawFile>> {
    let is_object = |f: &RawFile| f.name.ends_with(".json") || f.name.ends_with(".yaml");
    let objects: Vec<usize> =
        files.iter().enumerate().filter(|(_, f)| is_object(f)).map(|(i, _)| i).collect();
    let at = *objects.get(rng.below(objects.len()))?;
    let text = String::from_utf8_lossy(&files.get(at)?.bytes).into_owned();
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    if lines.len() < 10 {
        return None;
    }
    let mut rest = files.to_vec();
    if let Some(f) = rest.get_mut(at) {
        *f = RawFile::new(f.name.clone(), window(&lines, rng));
    }
    Some(rest)
}

/// A window of 10 to 70 % of the lines, at least one.
fn window(lines: &[&str], rng: &mut Rng) -> String {
    let share = 0.1 + 0.6 * rng.share();
    let kept = ((lines.len() as f64 * share).round() as usize).clamp(1, lines.len());
    let from = rng.below(lines.len() - kept + 1);
    lines.iter().skip(from).take(kept).copied().collect()
}

/// Without 10 to 70 % of the lines.
fn thinned(lines: &[&str], rng: &mut Rng) -> String {
    let share = 0.1 + 0.6 * rng.share();
    lines.iter().filter(|_| rng.share() >= share).copied().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn incident() -> Vec<RawFile> {
        let log: String = (0..100).map(|i| format!("line {i}\n")).collect();
        vec![RawFile::new("a.log", log), RawFile::new("pod.json", "{\n}\n"), RawFile::new("z.txt", "one\n")]
    }

    fn names(files: &[RawFile]) -> Vec<&str> {
        files.iter().map(|f| f.name.as_str()).collect()
    }

    #[test]
    fn files_are_a_true_part() {
        let mut rng = Rng::of(1, "", 0);
        for _ in 0..100 {
            let left = Cut::Files.of(&incident(), &mut rng).unwrap();
            assert!((1..3).contains(&left.len()), "{:?}", names(&left));
        }
        assert!(Cut::Files.of(&incident()[..1], &mut rng).is_none(), "nothing is left of one file");
    }

    #[test]
    fn a_window_is_whole_lines_in_a_row() {
        let mut rng = Rng::of(2, "", 0);
        for _ in 0..100 {
            let left = Cut::Window.of(&incident(), &mut rng).unwrap();
            let text = String::from_utf8(left[0].bytes.clone()).unwrap();
            let numbers: Vec<u32> =
                text.lines().map(|l| l.trim_start_matches("line ").parse().unwrap()).collect();
            assert!((10..=70).contains(&numbers.len()), "{}", numbers.len());
            assert!(numbers.windows(2).all(|w| w[1] == w[0] + 1));
            assert_eq!(left[1].bytes, b"{\n}\n", "objects are not cut here");
        }
    }

    #[test]
    fn the_same_seed_draws_the_same() {
        let of = |seed| Cut::Lines.of(&incident(), &mut Rng::of(seed, "", 0)).unwrap().remove(0).bytes;
        assert_eq!(of(3), of(3));
        assert_ne!(of(3), of(4));
    }
}
