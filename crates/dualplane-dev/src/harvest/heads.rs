//! Which calls print a message, how bad it is, and where in their arguments the message stands.

use std::sync::LazyLock;

use regex::Regex;

use super::lex::{Language, Token};

/// How a message comes out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Severity {
    /// The process ends with it, and the language says so: Go's and Rust's panic, C's abort.
    Panic,
    /// The process ends with it.
    Exit,
    /// An exception or a returned error.
    Raise,
    /// Logged as an error.
    Error,
    /// Logged as a warning.
    Warning,
}

impl Severity {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Panic => "panic",
            Self::Exit => "exit",
            Self::Raise => "raise",
            Self::Error => "error",
            Self::Warning => "warning",
        }
    }
}

/// Where the message stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    /// In the first argument with a string, which is a format.
    Format,
    /// In all arguments from the first string on, one after the other.
    Joined,
    /// Behind `<<`, up to the semicolon; before it may stand a call.
    Stream,
    /// Behind the second comma-separated part of a statement: `assert x, "..."`.
    Assert,
}

/// A call that prints.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) severity: Severity,
    pub(super) shape: Shape,
    /// Index of the token behind the name: a parenthesis or `<<`.
    pub(super) at: usize,
}

/// The call that begins at a token.
pub(super) fn head(all: &[Token], i: usize, language: Language) -> Option<Head> {
    let word = all.get(i)?.word()?;
    match language {
        Language::Python => python(all, i, word),
        Language::C => c(all, i, word),
        Language::Go => go(all, i, word),
        Language::Rust => rust(all, i, word),
        Language::Java => java(all, i, word),
    }
}

fn sign(all: &[Token], i: usize, c: char) -> bool {
    all.get(i).is_some_and(|t| t.is(c))
}

/// The word before a dot before this token: `logger` of `logger.error`.
fn owner(all: &[Token], i: usize) -> Option<&str> {
    if !sign(all, i.checked_sub(1)?, '.') {
        return None;
    }
    let before = all.get(i.checked_sub(2)?)?;
    // `logging.getLogger(__name__).error(...)`, `log.WithError(err).Error(...)`.
    if before.is(')') { Some("log()") } else { before.word() }
}

fn is_log(name: &str) -> bool {
    name.to_ascii_lowercase().contains("log")
}

/// The end of a dotted name, and whether a call follows: `torch.OutOfMemoryError(`.
fn dotted(all: &[Token], mut i: usize) -> Option<usize> {
    all.get(i)?.word()?;
    i += 1;
    while (sign(all, i, '.') || sign(all, i, ':'))
        && all.get(i + 1).is_some_and(|t| t.word().is_some() || t.is(':'))
    {
        i += 1;
        if all.get(i)?.word().is_some() {
            i += 1;
        }
    }
    Some(i)
}

fn python(all: &[Token], i: usize, word: &str) -> Option<Head> {
    let call = sign(all, i + 1, '(');
    let at = |severity, shape| Some(Head { severity, shape, at: i + 1 });
    match word {
        "raise" => {
            let end = dotted(all, i + 1)?;
            sign(all, end, '(').then_some(Head { severity: Severity::Raise, shape: Shape::Format, at: end })
        }
        "assert" => at(Severity::Raise, Shape::Assert),
        "exit" | "_exit" if call && matches!(owner(all, i), None | Some("sys" | "os")) => {
            at(Severity::Exit, Shape::Format)
        }
        "warn" if call && owner(all, i) == Some("warnings") => at(Severity::Warning, Shape::Format),
        _ if call && owner(all, i).is_some_and(is_log) => match word {
            "critical" | "fatal" => at(Severity::Exit, Shape::Format),
            "error" | "exception" | "error_once" => at(Severity::Error, Shape::Format),
            "warning" | "warn" | "warning_once" | "warning_rank0" => at(Severity::Warning, Shape::Format),
            _ => None,
        },
        _ => None,
    }
}

fn c(all: &[Token], i: usize, word: &str) -> Option<Head> {
    // Names of macros and functions, by their parts: every project has its own prefix.
    static NAMES: LazyLock<Option<Regex>> = LazyLock::new(|| {
        Regex::new(
            r"(?x)^(?:
            (?P<exit>panic|abort_with_message|\w*_?ABORT|(?:\w+_)?BUG|FATAL|(?:pr|dev)_emerg)
            |(?P<check>\w*(?:CHECK|ENFORCE|ENSURE)[A-Z_]*|\w*ASSERT[A-Z_]*|\w*_THROW|AT_ERROR|guarantee|FAIL|RETURN_ERROR\w*|TRITONSERVER_ErrorNew|TRITONBACKEND_\w*Error)
            |(?P<error>(?:pr|dev|drm|netdev|gt|guc|huc|xe|nv)(?:_\w+)?_(?:err|crit|alert)(?:_\w+)?|DRM_(?:DEV_)?ERROR(?:_\w+)?|\w*_?(?:LOG_?ERR(?:OR)?|SRV_ERR|SLT_ERR|QUE_ERR|ERR|ERROR)(?:_ONCE|_IF)?|LogPrintfError|ReportProcessingFailure|log_error|ib_err)
            |(?P<warning>(?:pr|dev|drm|netdev|gt|guc|xe)(?:_\w+)?_warn(?:ing)?(?:_\w+)?|\w*_?(?:WARN|WRN|WARNING)(?:_ONCE|_IF)?|DRM_WARN|LogPrintfWarning|WARN_ONCE|log_warning)
            |(?P<level>nv_printf|NV_PRINTF|portDbgPrintf|nvErrorLog_va|LOG_MESSAGE|RAY_LOG_EVERY_MS|printk|dev_printk)
            )$",
        )
        .ok()
    });
    let call = sign(all, i + 1, '(');
    let stream = sign(all, i + 1, '<') && sign(all, i + 2, '<');
    let at = |severity, shape| Some(Head { severity, shape, at: i + 1 });
    if word == "throw" {
        let end = dotted(all, i + 1)?;
        return sign(all, end, '(').then_some(Head {
            severity: Severity::Raise,
            shape: Shape::Joined,
            at: end,
        });
    }
    if word == "fprintf" && call {
        let error = all.get(i + 2).and_then(Token::word) == Some("stderr");
        return error.then_some(Head { severity: Severity::Error, shape: Shape::Format, at: i + 1 });
    }
    if word == "cerr" && stream {
        return at(Severity::Error, Shape::Stream);
    }
    // `LOG(ERROR) << ...`, `RAY_LOG(FATAL) << ...`.
    if call && word.ends_with("LOG") && sign(all, i + 3, ')') {
        let severity = match all.get(i + 2).and_then(Token::word)? {
            "FATAL" => Severity::Exit,
            "ERROR" | "DFATAL" => Severity::Error,
            "WARNING" => Severity::Warning,
            _ => return None,
        };
        return at(severity, Shape::Stream);
    }
    if !call && !stream {
        return None;
    }
    let found = NAMES.as_ref()?.captures(word)?;
    let (severity, shape) = if found.name("exit").is_some() {
        (Severity::Panic, Shape::Format)
    } else if found.name("check").is_some() {
        (Severity::Raise, Shape::Joined)
    } else if found.name("error").is_some() {
        (Severity::Error, Shape::Joined)
    } else if found.name("level").is_some() {
        // The level is an argument.
        let level = all.iter().skip(i + 2).take(12).take_while(|t| t.text().is_none());
        let bad = level
            .filter_map(Token::word)
            .any(|w| w.contains("ERR") || w.contains("WARN") || w == "ROBUST_CHANNEL" || w.contains("CRIT"));
        return if bad || word == "nvErrorLog_va" { at(Severity::Error, Shape::Format) } else { None };
    } else {
        (Severity::Warning, Shape::Joined)
    };
    at(severity, if stream { Shape::Stream } else { shape })
}

fn go(all: &[Token], i: usize, word: &str) -> Option<Head> {
    if !sign(all, i + 1, '(') {
        return None;
    }
    let at = |severity| Some(Head { severity, shape: Shape::Format, at: i + 1 });
    let owner = owner(all, i);
    match word {
        "panic" if owner.is_none() => at(Severity::Panic),
        "Errorf" if owner.is_some_and(|o| o == "fmt" || o == "errors" || o == "status" || o == "xerrors") => {
            at(Severity::Raise)
        }
        "New" if owner == Some("errors") => at(Severity::Raise),
        "Wrap" | "Wrapf" | "Errorf" if owner == Some("errors") => at(Severity::Raise),
        "Eventf" | "Event" => at(Severity::Error),
        _ => {
            owner.filter(|o| is_log(o) || *o == "L" || *o == "slog")?;
            if word.starts_with("Fatal") || word.starts_with("Panic") {
                at(Severity::Exit)
            } else if word.starts_with("Error") {
                at(Severity::Error)
            } else if word.starts_with("Warn") {
                at(Severity::Warning)
            } else {
                None
            }
        }
    }
}

fn rust(all: &[Token], i: usize, word: &str) -> Option<Head> {
    let at = |severity, at| Some(Head { severity, shape: Shape::Format, at });
    if sign(all, i + 1, '!') && sign(all, i + 2, '(') {
        return match word {
            "panic" | "unreachable" => at(Severity::Panic, i + 2),
            "bail" | "anyhow" | "ensure" | "eyre" => at(Severity::Raise, i + 2),
            "error" | "eprintln" => at(Severity::Error, i + 2),
            "warn" => at(Severity::Warning, i + 2),
            _ => None,
        };
    }
    if !sign(all, i + 1, '(') {
        return None;
    }
    match word {
        "expect" if sign(all, i.checked_sub(1)?, '.') => at(Severity::Panic, i + 1),
        "context" | "with_context" if sign(all, i.checked_sub(1)?, '.') => at(Severity::Raise, i + 1),
        "error" if sign(all, i.checked_sub(1)?, '[') => at(Severity::Raise, i + 1),
        _ => None,
    }
}

fn java(all: &[Token], i: usize, word: &str) -> Option<Head> {
    if word == "throw" && all.get(i + 1).and_then(Token::word) == Some("new") {
        let end = dotted(all, i + 2)?;
        return sign(all, end, '(').then_some(Head {
            severity: Severity::Raise,
            shape: Shape::Format,
            at: end,
        });
    }
    if !sign(all, i + 1, '(') || !owner(all, i).is_some_and(is_log) {
        return None;
    }
    let severity = match word {
        "error" => Severity::Error,
        "warn" => Severity::Warning,
        _ => return None,
    };
    Some(Head { severity, shape: Shape::Format, at: i + 1 })
}
