//! Sifting keeps every line that says something, whatever surrounds it and however the log is cut into regions.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    missing_docs,
    clippy::disallowed_methods,
    clippy::disallowed_types
)]

use std::fs;
use std::path::{Path, PathBuf};

use dualplane_core::evidence::{Bundle, RawFile};
use dualplane_core::facts;
use dualplane_core::knowledge::{Knowledge, Mark, Match, Scope};
use dualplane_core::sift::{AFTER, BEFORE, Feed, Merge, Reading, Sifted, Sifter, reading};
use dualplane_report::{self as report, triage_all};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../knowledge")
}

fn everyday() -> String {
    fs::read_to_string(root().join("everyday.log")).unwrap()
}

/// Sifts a text in regions of `size` bytes, as the edge does.
fn sift(sifter: &Sifter, text: &[u8], size: usize, budget: usize) -> Sifted {
    let mut merge = Merge::new(budget);
    for start in (0..text.len()).step_by(size) {
        let end = (start + size).min(text.len());
        let (from, to) = (start.saturating_sub(BEFORE), (end + AFTER).min(text.len()));
        merge.push(sifter.part(&text[from..to], start - from..end - from, &[]));
    }
    merge.finish()
}

fn examples() -> Vec<(String, String)> {
    let mut out = Vec::new();
    let mut folders = vec![root()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|e| e == "toml") {
                let doc: toml::Table = fs::read_to_string(&path).unwrap().parse().unwrap();
                for s in doc.get("signature").and_then(|s| s.as_array()).into_iter().flatten() {
                    for example in s.get("examples").and_then(|e| e.as_array()).into_iter().flatten() {
                        out.push((
                            s["id"].as_str().unwrap().to_owned(),
                            example.as_str().unwrap().to_owned(),
                        ));
                    }
                }
            }
        }
    }
    out
}

#[test]
fn what_healthy_servers_print_all_day_selects_nothing_and_proves_nothing() {
    let knowledge = Knowledge::embedded().unwrap();
    let sifter = Sifter::new(&knowledge).unwrap();
    let text = everyday().repeat(20);
    let sifted = sift(&sifter, text.as_bytes(), 1 << 20, 1 << 20);
    let kept = String::from_utf8_lossy(&sifted.text).into_owned();
    assert!(kept.is_empty(), "{}", &kept[kept.len() / 2..][..300.min(kept.len() / 2)]);
    assert_eq!(sifted.lines as usize, text.lines().count());
    let facts = facts::extract(&Bundle::from_files(vec![RawFile::new("a.log", text)]), &knowledge);
    let bad: Vec<_> = facts
        .hits
        .iter()
        .filter(|h| !matches!(h.mark, Mark::Info | Mark::Benign | Mark::UserText | Mark::Phase))
        .collect();
    assert!(bad.is_empty(), "{bad:?}");
}

#[test]
fn every_example_that_decides_is_kept_at_any_place() {
    let knowledge = Knowledge::embedded().unwrap();
    let sifter = Sifter::new(&knowledge).unwrap();
    let healthy = everyday();
    let mut tried = 0;
    let mut lost = Vec::new();
    for (id, example) in examples() {
        let s = knowledge.signatures().iter().find(|s| s.id == id).unwrap();
        let frame = s.mark == Mark::Phase && s.scope == Scope::Frame;
        let daily = s.literals.iter().all(|l| healthy.contains(l.as_ref()) || l.len() < 6);
        let quiet = matches!(s.mark, Mark::Benign | Mark::UserText) || s.of_objects() || s.of_exceptions();
        if frame || quiet || daily || matches!(s.mark, Mark::Info | Mark::Phase) {
            continue;
        }
        tried += 1;
        // At each place relative to the looks of the pass.
        for shift in 0..4 {
            let text = format!("{}{healthy}{example}\n{healthy}", &"abc\n"[4 - shift..]);
            let sifted = sift(&sifter, text.as_bytes(), 1 << 20, 1 << 20);
            let kept = String::from_utf8_lossy(&sifted.text).into_owned();
            if !example.lines().all(|l| kept.contains(l)) {
                lost.push((id.clone(), shift, example.clone()));
            }
        }
    }
    assert!(tried > 600, "{tried}");
    assert!(lost.is_empty(), "{} lost: {:#?}", lost.len(), &lost[..lost.len().min(12)]);
}

#[test]
fn how_the_log_is_cut_does_not_matter() {
    let sifter = Sifter::new(&Knowledge::embedded().unwrap()).unwrap();
    let healthy = everyday();
    let mut text = String::new();
    for i in 0..6 {
        text.push_str(&healthy);
        text.push_str(&format!(
            "ERROR {i} torch.OutOfMemoryError: CUDA out of memory. Tried to allocate {i}.00 GiB\n"
        ));
    }
    text.push_str("no end of line");
    let whole = sift(&sifter, text.as_bytes(), text.len(), 1 << 20);
    assert_eq!(whole.text.split(|b| *b == b'\n').count(), whole.numbers.len() + 1);
    for (line, number) in String::from_utf8_lossy(&whole.text).lines().zip(whole.numbers.iter()) {
        assert_eq!(text.lines().nth(*number as usize - 1), Some(line));
    }
    for size in [64 << 10, 20_000, 9_999, 4_097, 1_000, 150] {
        let cut = sift(&sifter, text.as_bytes(), size, 1 << 20);
        assert_eq!(cut.numbers, whole.numbers, "{size}");
        assert_eq!(String::from_utf8_lossy(&cut.text), String::from_utf8_lossy(&whole.text), "{size}");
        assert_eq!(cut.lines, whole.lines, "{size}");
    }
}

#[test]
fn a_flood_stays_within_the_budget_and_hides_nothing() {
    let sifter = Sifter::new(&Knowledge::embedded().unwrap()).unwrap();
    let mut text =
        "ERROR 1 torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB\n".repeat(50_000);
    text.push_str("NVRM: Xid (PCI:0000:4a:00): 79, GPU has fallen off the bus.\n");
    text.push_str(&"INFO gpu_worker.py:298] Available KV cache memory: 12.00 GiB\n".repeat(50_000));
    let sifted = sift(&sifter, text.as_bytes(), 256 << 10, 64 << 10);
    assert!(sifted.text.len() < 80 << 10, "{}", sifted.text.len());
    assert!(sifted.omitted > 90_000, "{}", sifted.omitted);
    let kept = String::from_utf8_lossy(&sifted.text).into_owned();
    assert!(kept.contains("Xid") && kept.starts_with("ERROR 1 torch"), "{}", &kept[..200]);
}

#[test]
fn one_endless_line_costs_no_more_than_its_head() {
    let sifter = Sifter::new(&Knowledge::embedded().unwrap()).unwrap();
    let text = format!("CUDA out of memory {}", "x CUDA out of memory ".repeat(100_000));
    let sifted = sift(&sifter, text.as_bytes(), 128 << 10, 1 << 20);
    assert_eq!((sifted.lines, sifted.numbers.len()), (1, 1));
    assert!(sifted.text.len() <= (64 << 10) + 1, "{}", sifted.text.len());
}

/// Of head and tail so much is kept whole here; of a large log it is 74 times as much.
const ENDS: usize = (256 << 10) / 74;
/// More than what is kept around a find, so that no find keeps the next one.
const TIMES: usize = 60;

/// The log as a server writes it that says over days what it says here in minutes: each line that means nothing stands
/// there many times. What a kernel writes of one kill stays together.
fn blown_up(knowledge: &Knowledge, sifter: &Sifter, file: &RawFile) -> Option<RawFile> {
    let head = &file.bytes[..file.bytes.len().min(64 << 10)];
    let text = std::str::from_utf8(&file.bytes).ok()?;
    if reading(&file.name, head) != Reading::Lines {
        return None;
    }
    // What people paste around or instead of a log is read as a whole, and is never this large.
    let read = Bundle::from_files(vec![file.clone()]);
    if read.logs.len() != 1 || read.logs[0].bytes.len() + 1 < file.bytes.len() || !read.pods.is_empty() {
        return None;
    }
    let kill = text.contains("invoked oom-killer");
    // A prompt over several lines stays as its user wrote it, up to the next record.
    let mut prompt = None;
    let mut out = String::new();
    for line in text.split_inclusive('\n') {
        let begin: String = line.chars().take(4).collect();
        let matches = knowledge.matches(line.trim_end(), |_| true);
        let of_user = |m: &Match| knowledge.signature(m.id).is_some_and(|s| s.mark == Mark::UserText);
        prompt = prompt.filter(|p| *p != begin);
        let means_nothing = !kill
            && prompt.is_none()
            && !line.starts_with(char::is_whitespace)
            && matches.is_empty()
            && sift(sifter, line.as_bytes(), 1 << 20, 1 << 20).text.is_empty();
        if matches.iter().any(of_user) {
            prompt = Some(begin);
        }
        out.push_str(&line.repeat(if means_nothing { TIMES } else { 1 }));
    }
    let out = RawFile::new(file.name.clone(), out);
    // Equal lines can look as if a terminal had broken one line into them; of a terminal nobody copies this much.
    let joined = |f: &RawFile| {
        Bundle::from_files(vec![f.clone()]).logs.iter().any(|l| l.bytes.len() + 1 < f.bytes.len())
    };
    (!joined(&out)).then_some(out)
}

fn sifted(sifter: &Sifter, file: &RawFile) -> RawFile {
    let mut feed = Feed::new(sifter, 3 << 20).with_ends(ENDS);
    feed.push(&file.bytes);
    RawFile::sifted(file.name.clone(), feed.finish())
}

/// The files of a folder, without the label.
fn evidence(folder: &Path, below: &Path, out: &mut Vec<RawFile>) {
    for entry in fs::read_dir(below).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            evidence(folder, &path, out);
        } else if !path.ends_with("truth.json") {
            let name = path.strip_prefix(folder).unwrap().to_str().unwrap().replace('\\', "/");
            out.push(RawFile::new(name, fs::read(&path).unwrap()));
        }
    }
}

#[test]
fn an_incident_is_judged_alike_in_small_logs_and_in_large_ones() {
    let knowledge = Knowledge::embedded().unwrap();
    let sifter = Sifter::new(&knowledge).unwrap();
    let style = report::Style { verbose: true, width: 100, ..report::Style::default() };
    let (mut tried, mut shorter, mut other) = (0, 0, Vec::new());
    for entry in fs::read_dir(root().join("../testdata/incidents")).unwrap() {
        let folder = entry.unwrap().path();
        if !folder.is_dir() {
            continue;
        }
        let mut files = Vec::new();
        evidence(&folder, &folder, &mut files);
        files.sort_by(|a, b| a.name.cmp(&b.name));
        let mut large = Vec::new();
        for file in &mut files {
            let Some(log) = blown_up(&knowledge, &sifter, file) else {
                large.push(file.clone());
                continue;
            };
            *file = log;
            large.push(sifted(&sifter, file));
        }
        tried += 1;
        shorter += usize::from(large.iter().zip(&files).any(|(l, f)| l.bytes.len() < f.bytes.len()));
        let told = |files: Vec<RawFile>| {
            let reports = triage_all("incident", files, Vec::new(), &knowledge);
            let text: String = reports.iter().map(|r| report::text(r, style)).collect();
            text + &report::json::render(&reports).unwrap()
        };
        // Of a flood some lines are left out; the report then says that it counts at least so many.
        let flood = large.iter().any(|f| f.sifted.as_ref().is_some_and(|s| s.omitted > 0));
        let (small, large) = (told(files), told(large));
        let first = |report: &str| report.lines().take(2).map(str::to_owned).collect::<Vec<_>>();
        if if flood { first(&small) != first(&large) } else { small != large } {
            let lines = small.lines().zip(large.lines()).filter(|(a, b)| a != b).take(3);
            let lines: Vec<String> = lines.map(|(a, b)| format!("small {a}\nlarge {b}")).collect();
            other.push(format!("{}\n{}", folder.display(), lines.join("\n")));
        }
    }
    assert!(tried > 300 && shorter > 100, "{tried} incidents, {shorter} of them with lines left out");
    assert!(other.is_empty(), "{} of {tried} differ:\n{}", other.len(), other.join("\n\n"));
}
