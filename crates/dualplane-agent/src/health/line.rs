//! A line of the agent's log: `time=… level=… event=… key=value …`, which `grep`, Loki and Vector read as it is.

use std::fmt;

use dualplane_base::text::printable;

/// Characters of a value: a reason is a sentence, a first line of a log is cut before.
const MAX_VALUE: usize = 400;

/// How bad it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    /// It is what the agent is for.
    Info,
    /// Something is missing, the rest works.
    Warn,
    /// It does not do what it is asked to.
    Error,
}

/// One line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogLine {
    text: String,
}

impl LogLine {
    /// Time is milliseconds since 1970.
    #[must_use]
    pub fn new(wall_ms: i64, level: Level, event: &'static str) -> Self {
        let time = jiff::Timestamp::from_millisecond(wall_ms).unwrap_or(jiff::Timestamp::UNIX_EPOCH);
        let level = match level {
            Level::Info => "info",
            Level::Warn => "warn",
            Level::Error => "error",
        };
        Self { text: format!("time={time:.3} level={level} event={event}") }
    }

    /// One more value. Quoted where it is more than a word; controls become visible, so that a name cannot forge a line.
    #[must_use]
    pub fn with(mut self, key: &'static str, value: &str) -> Self {
        let value: String = printable(value).chars().take(MAX_VALUE).collect();
        let plain = !value.is_empty() && !value.contains([' ', '"', '=', '\\', '\n', '\t']);
        if plain {
            self.text.push_str(&format!(" {key}={value}"));
        } else {
            let escaped = value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
            self.text.push_str(&format!(" {key}=\"{escaped}\""));
        }
        self
    }

    /// The same where there is a value.
    #[must_use]
    pub fn with_some(self, key: &'static str, value: Option<&str>) -> Self {
        match value {
            Some(value) => self.with(key, value),
            None => self,
        }
    }
}

impl fmt::Display for LogLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_quoted_where_they_need_it_and_cannot_forge_a_line() {
        let line = LogLine::new(1_763_761_092_345, Level::Warn, "fault")
            .with("what", "state")
            .with("why", "a \"b\"\nlevel=error c")
            .with("none", "")
            .with_some("left", None);
        let text = line.to_string();
        assert!(text.starts_with("time=2025-11-21T21:38:12.345Z level=warn event=fault what=state why=\"a "));
        assert!(text.ends_with(" none=\"\"") && text.lines().count() == 1, "{text}");
    }
}
