//! One suite of checks as JUnit's XML, as strict readers want it: every attribute and element that the schema of Ant's task
//! asks for, in its order, and none that Jenkins' schema does not know.

use std::fmt::Write as _;

use jiff::Timestamp;

use crate::text::markup;

/// What a check gave.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// It holds.
    Pass,
    /// It does not hold.
    Failure {
        /// Sort of failure, one word.
        kind: String,
        /// In a sentence.
        message: String,
        /// More lines.
        body: String,
    },
    /// It could not be asked.
    Error {
        /// Sort of error, one word.
        kind: String,
        /// In a sentence.
        message: String,
    },
    /// It does not apply.
    Skipped {
        /// Why.
        message: String,
    },
}

/// A check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Case {
    /// Its name.
    pub name: String,
    /// What readers group by: a file, a program.
    pub class: String,
    /// What it gave.
    pub outcome: Outcome,
}

/// The suite as XML. `said` are lines that belong to no failure. A suite without a case reads as one that nobody ran, so that the
/// caller gives one.
#[must_use]
pub fn junit(suite: &str, at: Timestamp, cases: &[Case], said: &[String]) -> String {
    let count = |test: fn(&Outcome) -> bool| cases.iter().filter(|c| test(&c.outcome)).count();
    let mut out = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n");
    // Writing into a String cannot fail. Nothing here is timed, and the machine is nobody's business.
    let _ = writeln!(
        out,
        "  <testsuite package=\"dualplane\" id=\"0\" name=\"{}\" timestamp=\"{}\" hostname=\"localhost\" tests=\"{}\" failures=\"{}\" errors=\"{}\" skipped=\"{}\" time=\"0\">\n    <properties/>",
        markup(suite),
        at.strftime("%Y-%m-%dT%H:%M:%S"),
        cases.len(),
        count(|o| matches!(o, Outcome::Failure { .. })),
        count(|o| matches!(o, Outcome::Error { .. })),
        count(|o| matches!(o, Outcome::Skipped { .. })),
    );
    for c in cases {
        let _ = write!(
            out,
            "    <testcase name=\"{}\" classname=\"{}\" time=\"0\"",
            markup(&c.name),
            markup(&c.class)
        );
        let _ = match &c.outcome {
            Outcome::Pass => writeln!(out, "/>"),
            Outcome::Failure { kind, message, body } => writeln!(
                out,
                "><failure type=\"{}\" message=\"{}\">{}</failure></testcase>",
                markup(kind),
                markup(message),
                markup(body)
            ),
            Outcome::Error { kind, message } => writeln!(
                out,
                "><error type=\"{}\" message=\"{}\"/></testcase>",
                markup(kind),
                markup(message)
            ),
            Outcome::Skipped { message } => {
                writeln!(out, "><skipped message=\"{}\"/></testcase>", markup(message))
            }
        };
    }
    let _ = writeln!(
        out,
        "    <system-out>{}</system-out>\n    <system-err/>\n  </testsuite>\n</testsuites>",
        markup(&said.join("\n"))
    );
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_suite_has_all_that_strict_readers_ask_for() {
        let case = |name: &str, outcome| Case { name: name.into(), class: "a.yaml".into(), outcome };
        let cases = [
            case("one", Outcome::Pass),
            case(
                "<two>",
                Outcome::Failure { kind: "error".into(), message: "a \"b\"".into(), body: "1\n2".into() },
            ),
            case("three", Outcome::Error { kind: "unread".into(), message: "\u{1b}[31m\u{ffff}".into() }),
            case("four", Outcome::Skipped { message: "no".into() }),
        ];
        let at = "2026-11-25T19:00:01.5Z".parse().unwrap();
        let want = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n  <testsuite package=\"dualplane\" id=\"0\" name=\"dualplane lint\" timestamp=\"2026-11-25T19:00:01\" hostname=\"localhost\" tests=\"4\" failures=\"1\" errors=\"1\" skipped=\"1\" time=\"0\">\n    <properties/>\n    <testcase name=\"one\" classname=\"a.yaml\" time=\"0\"/>\n    <testcase name=\"&lt;two&gt;\" classname=\"a.yaml\" time=\"0\"><failure type=\"error\" message=\"a &quot;b&quot;\">1&#10;2</failure></testcase>\n    <testcase name=\"three\" classname=\"a.yaml\" time=\"0\"><error type=\"unread\" message=\"\\u{1b}[31m\\u{ffff}\"/></testcase>\n    <testcase name=\"four\" classname=\"a.yaml\" time=\"0\"><skipped message=\"no\"/></testcase>\n    <system-out>a&#10;b</system-out>\n    <system-err/>\n  </testsuite>\n</testsuites>\n";
        assert_eq!(junit("dualplane lint", at, &cases, &["a".into(), "b".into()]), want);
    }
}
