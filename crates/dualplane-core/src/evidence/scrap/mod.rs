//! The tolerant reader: what people really paste of a pod's status, however it was cut, stripped, quoted, joined or typed
//! off. One reader on a vocabulary of fields ([`field`]), not one parser a form.
//!
//! Lines are tidied, read as pairs of label and value, as rows, or as bare status words, and joined to pieces of pods.
//! Whatever does not stand in a piece is not known; see [`Extent`](crate::evidence::Extent).

mod asked;
mod field;
mod limits;
mod near;
mod pairs;
mod piece;
mod reader;
mod rows;
pub(in crate::evidence) mod tidy;
mod words;

use super::{Bundle, Event};
pub use limits::QuotedLimit;
use near::{is_logged, is_record};
use reader::Reader;
use words::Plane;

/// Larger texts are logs: of them only what stands near a state is read.
pub(in crate::evidence) const MAX_TEXT: usize = 256 << 10;
/// A described pod in one line fits.
const MAX_LINE: usize = 32 << 10;
/// A message with more lines is more than a message.
const MAX_MESSAGE: usize = 200;

/// Words of a person that name a plane.
#[derive(Debug, Clone)]
pub struct Quote {
    /// File.
    pub file: String,
    /// Line, from 1.
    pub line: u64,
    /// The line.
    pub text: String,
    /// They name VRAM, else host RAM.
    pub gpu: bool,
}

/// Reads the scraps of a block into the bundle; returns the lines they take, as (start, end). `large`: the block stands in
/// a text above [`MAX_TEXT`].
pub(in crate::evidence) fn read(
    bundle: &mut Bundle,
    lines: &[&str],
    first: u64,
    file: &str,
    command: Option<&str>,
    large: bool,
) -> Vec<(usize, usize)> {
    let asked = command.map(asked::asked).unwrap_or_default();
    if !large {
        bundle.limits.extend(limits::quoted(lines, first, file, &asked));
    }
    let near = near::lines(lines, large, !asked.fields.is_empty());
    if near.is_empty() {
        return Vec::new();
    }
    let mut reader = Reader::default();
    reader.assembly.about(&asked.pod, &asked.namespace);
    let mut tidied: Vec<(usize, String)> = Vec::with_capacity(near.len());
    for i in near {
        let worth = |l: &&&str| !l.trim().is_empty() && l.len() <= MAX_LINE && !near::is_levelled(l);
        let Some(line) = lines.get(i).filter(worth) else { continue };
        tidied.push((i, tidy::bare(line)));
    }
    for (at, (i, bare)) in tidied.iter().enumerate() {
        let raw = lines.get(*i).copied().unwrap_or_default();
        let next = tidied.get(at + 1).map_or("", |(_, l)| l.as_str());
        let number = first + *i as u64;
        if let Some(event) = rows::event(bare, number, file) {
            bundle.events.push(event);
            reader.taken.push(*i);
        } else if let Some(end) = rows::task_end(bare) {
            reader.task_end(end, *i);
        } else if !reader.row(raw, *i) && !is_record(raw) && !is_logged(bare, raw) {
            if !asked.fields.is_empty() && reader.printed(bare, &asked, *i) {
                continue;
            }
            reader.line(bare, next, *i);
        }
    }
    let Reader { assembly, mut taken, quotes, evictions, .. } = reader;
    for (i, message) in evictions {
        taken.push(i);
        bundle.events.push(Event {
            file: file.to_owned(),
            line: Some(first + i as u64),
            reason: "Evicted".to_owned(),
            message,
            warning: true,
            count: 1,
            ..Event::default()
        });
    }
    let (pods, used) = assembly.finish(file);
    let found = !pods.is_empty();
    bundle.pasted.extend(pods);
    taken.extend(used);
    if lines.len() <= MAX_MESSAGE {
        for (i, plane) in quotes {
            let text = lines.get(i).copied().unwrap_or_default().trim().to_owned();
            bundle.quotes.push(Quote {
                file: file.to_owned(),
                line: first + i as u64,
                text,
                gpu: plane == Plane::Gpu,
            });
        }
    }
    if found {
        near::around(lines, &mut taken);
    }
    taken.into_iter().map(|i| (i, i + 1)).collect()
}

#[cfg(test)]
mod tests {
    use crate::evidence::{Bundle, Pod, RawFile, State};

    fn pods(text: &str) -> Vec<Pod> {
        Bundle::from_files(vec![RawFile::new("stdin", text)]).pods
    }

    #[test]
    fn fields_belong_to_the_container_they_stand_with() {
        let text = "Pod: prod/llm-0\nContainer: main\nState: Terminated\nReason: Completed\nExit Code: 0\n\
            Container: tokenizer\nLast State: Terminated\nReason: OOMKilled\nExit Code: 137\nRestart Count: 3\n";
        let pods = pods(text);
        assert_eq!((pods.len(), pods[0].full_name().as_str()), (1, "prod/llm-0"));
        let [main, tokenizer] = pods[0].containers.as_slice() else { panic!("{pods:#?}") };
        let end = |c: &crate::evidence::Container| c.status.as_ref().unwrap().termination().unwrap().clone();
        assert_eq!((main.name.as_str(), end(main).exit_code), ("main", Some(0)));
        assert_eq!((tokenizer.name.as_str(), end(tokenizer).reason.as_str()), ("tokenizer", "OOMKilled"));
        assert_eq!(tokenizer.status.as_ref().unwrap().restarts, Some(3));
        assert!(!pods[0].whole());
    }

    #[test]
    fn a_container_that_waits_died_before() {
        let text = "Reason: CrashLoopBackOff\nReason: OOMKilled\nExit Code: 137\n";
        let status = pods(text)[0].containers[0].status.clone().unwrap();
        assert!(matches!(&status.state, State::Waiting { reason, .. } if reason == "CrashLoopBackOff"));
        assert!(matches!(&status.last, State::Terminated(t) if t.oom_killed() && t.exit_code == Some(137)));
    }

    #[test]
    fn a_log_speaks_of_its_own_matters() {
        for line in [
            "INFO 08-20 10:11:12 scheduler.py:88] evicting pod reason=OOMKilled exitCode=137",
            "2026-08-20T10:11:12Z controller saw Reason: OOMKilled",
            "{\"level\":\"info\",\"msg\":\"pod ended\",\"reason\":\"OOMKilled\"}",
            "--oom-handling=retry",
            "finish_reason: stop, exit code: none",
        ] {
            assert!(pods(line).is_empty(), "{line}");
        }
    }

    /// Twice the text takes about twice the time; what is quadratic would take hours here.
    #[test]
    fn hostile_scraps_are_bounded() {
        for unit in [
            "reason:",
            "State: Terminated ",
            "exit code 137 OOMKilled ",
            "Reason: OOMKilled\n",
            "> ",
            "| ",
            "- ",
            "\t\u{a0}",
            "Name: a\nContainers:\n",
            "lastState:\n  terminated:\n",
        ] {
            let text = unit.repeat((200 << 10) / unit.len());
            let b = Bundle::from_files(vec![RawFile::new("stdin", text)]);
            assert!(b.pods.iter().map(|p| p.containers.len()).sum::<usize>() <= 1000, "{unit}");
        }
    }
}
