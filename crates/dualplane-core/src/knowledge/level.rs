//! At which level a logger printed a line. What its own logger calls a warning, information or debugging did not end the
//! process; vLLM says so of a length above the model's, where an environment variable allows it, and goes on.

/// So far from its beginning a line names its level.
const HEAD: usize = 120;
/// Above this, a word in brackets is no level.
const LONGEST: usize = 9;

/// What a level says of the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Level {
    /// It goes on: warnings, information, debugging.
    Quiet,
    /// Errors and worse.
    Error,
}

const QUIET: &[&str] = &["DEBUG", "INFO", "NOTICE", "TRACE", "VERBOSE", "WARN", "WARNING"];
const ERROR: &[&str] = &["ALERT", "CRITICAL", "EMERG", "ERR", "ERROR", "FATAL", "PANIC", "SEVERE"];
/// Keys of structured records.
const KEYS: &[&str] = &[
    "level",
    "levelname",
    "lvl",
    "severity",
    "log.level",
    "severitytext",
    "severity_text",
    "log_level",
    "loglevel",
];

/// The level that a line names in its head, before `until`. A line that relays another names two: the inner one is of the
/// program that printed it.
pub(crate) fn level(text: &str, until: usize) -> Option<Level> {
    let mut found = line_start(text);
    for (at, word) in words(text) {
        if at > until || at > HEAD || is_exception(text, at, word) {
            break;
        }
        found = in_capitals(text, at, word)
            .or_else(|| warning_of_python(text, at, word))
            .or_else(|| valued(text, at, word))
            .or(found);
    }
    found
}

/// The level of a structured record, wherever in the line it stands.
pub(crate) fn level_of_record(raw: &str) -> Option<Level> {
    words(raw).find_map(|(at, word)| valued(raw, at, word))
}

/// Words of letters, digits and underscores, and where they begin.
fn words(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let is_word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.');
    let mut rest = 0;
    std::iter::from_fn(move || {
        let from = rest + text.get(rest..)?.find(is_word)?;
        let behind = text.get(from..)?;
        let end = behind.find(|c| !is_word(c)).unwrap_or(behind.len());
        rest = from + end;
        Some((from, behind.get(..end)?))
    })
}

fn named(word: &str) -> Option<Level> {
    let is = |all: &[&str]| all.iter().any(|l| l.eq_ignore_ascii_case(word));
    if word.len() > LONGEST {
        None
    } else if is(QUIET) {
        Some(Level::Quiet)
    } else {
        is(ERROR).then_some(Level::Error)
    }
}

/// `WARNING`, `[WARN ]`, `| INFO |`: loggers write their levels in capitals, sentences do not.
fn in_capitals(text: &str, at: usize, word: &str) -> Option<Level> {
    if word.bytes().all(|b| b.is_ascii_uppercase()) && word.len() > 1 {
        return named(word);
    }
    letter(text, at, word)
}

/// `W0424 17:25:31` of glog, `[W]` of TensorRT, `, W 123 123]` of Ray, `0.01.234 W ` of llama.cpp, `43.221004: W ` of TensorFlow.
fn letter(text: &str, at: usize, word: &str) -> Option<Level> {
    let level = match word.chars().next()? {
        'D' | 'I' | 'V' | 'W' => Level::Quiet,
        'E' | 'F' => Level::Error,
        _ => return None,
    };
    let before = text.get(..at)?;
    let behind = text.get(at + word.len()..)?;
    let glog = word.len() == 5 && word.bytes().skip(1).all(|b| b.is_ascii_digit()) && behind.starts_with(' ');
    let alone = word.len() == 1
        && (before.ends_with('[') && behind.starts_with(']')
            || before.ends_with(", ") | before.ends_with(' ')
                && before.trim_end().trim_end_matches([',', ':']).ends_with(|c: char| c.is_ascii_digit())
                && behind.starts_with(' '));
    (glog || alone).then_some(level)
}

/// `UserWarning: …`, as Python's own module of warnings prints them.
fn warning_of_python(text: &str, at: usize, word: &str) -> Option<Level> {
    let colon = text.get(at + word.len()..)?.starts_with(": ");
    (colon && word.len() > "Warning".len() && word.ends_with("Warning")).then_some(Level::Quiet)
}

/// `level=warn`, `"severity": "INFO"`.
fn valued(text: &str, at: usize, word: &str) -> Option<Level> {
    if !KEYS.iter().any(|k| k.eq_ignore_ascii_case(word)) {
        return None;
    }
    // A record within a record has its quotes escaped.
    let behind = text.get(at + word.len()..)?.trim_start_matches(['"', '\\']);
    let value = behind.strip_prefix(['=', ':'])?.trim_start_matches([' ', '"', '\\']);
    named(value.split(|c: char| !c.is_ascii_alphabetic()).next()?)
}

/// `warning: …` at the beginning, as programs without a logger print.
fn line_start(text: &str) -> Option<Level> {
    let (head, _) = text.trim_start().split_once(':')?;
    named(head)
}

/// The message begins where an exception is named; what stands behind it is no head.
fn is_exception(text: &str, at: usize, word: &str) -> bool {
    let behind = text.get(at + word.len()..).unwrap_or_default();
    behind.starts_with(": ")
        && ["Error", "Exception"].iter().any(|e| word.len() > e.len() && word.ends_with(e))
}

#[cfg(test)]
mod tests {
    use super::{Level, level, level_of_record};

    fn of(text: &str) -> Option<Level> {
        level(text, text.find("the end").unwrap_or(text.len()))
    }

    #[test]
    fn what_goes_on() {
        for line in [
            "WARNING 11-22 18:16:33 [model.py:2660] the end",
            "(APIServer pid=1) INFO 11-22 18:16:33 [model.py:2660] the end",
            "INFO:     the end",
            "WARNING:root:the end",
            "2025-01-01 10:00:00.000 | WARNING  | mod:fn:12 - the end",
            "2025-01-01T10:00:00,123 [WARN ] main org.pytorch.serve.Server - the end",
            "time=2025-01-01T10:00:00Z level=WARN source=x.go:1 msg=\"the end",
            "W0424 17:25:31.123456 1 file.cc:12] the end",
            "[04/02/2025-10:11:12] [TRT-LLM] [W] the end",
            "[TensorRT-LLM][WARNING] the end",
            "(raylet) [2025-01-01 10:00:00,000 W 123 123] (raylet) file.cc:12: the end",
            "/usr/lib/python3.12/x.py:12: UserWarning: the end",
            "2025-01-01T10:00:00.000000Z  WARN router: the end",
            "0.00.123.456 W srv the end",
            "2026-08-24 10:11:43.221004: W external/local_xla/xla/a.cc:83] the end",
            "warning: the end",
            "WARNING 11-22 18:16:33 [model.py:2660] ValueError: the end",
        ] {
            assert_eq!(of(line), Some(Level::Quiet), "{line}");
        }
        assert_eq!(level_of_record("{\"message\":\"the end\",\"level\":\"warning\"}"), Some(Level::Quiet));
        assert_eq!(level_of_record("{\"message\":\"the end\",\"severity\": \"ERROR\"}"), Some(Level::Error));
    }

    #[test]
    fn what_ends() {
        for line in [
            "ERROR 11-22 18:16:33 [model.py:2660] the end",
            "E0424 17:25:31.123456 1 file.cc:12] the end",
            "[TensorRT-LLM][ERROR] the end",
            // The launcher relays what a shard printed.
            "2025-01-01T10:00:00.000000Z  INFO text_generation_launcher: ERROR the end",
            "2025-01-01T10:00:00,123 [INFO ] W-9000-m-stdout MODEL_LOG - CRITICAL the end",
        ] {
            assert_eq!(of(line), Some(Level::Error), "{line}");
        }
    }

    #[test]
    fn what_says_no_level() {
        for line in [
            "ValueError: the end",
            "RuntimeError: DEBUG build: the end",
            "api_server.py: error: the end",
            "[2025-03-12 08:25:21 TP2] the end",
            "the INFORMATION is the end",
            "[rank0]: the end",
            "I the end",
        ] {
            assert_eq!(of(line), None, "{line}");
        }
        assert_eq!(level("the end. WARNING", 0), None, "a word behind the message is none of its head");
    }
}
