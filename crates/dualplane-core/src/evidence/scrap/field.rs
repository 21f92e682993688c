//! The vocabulary of scraps: labels that tools, consoles and people write, and the field of a container's status that
//! each of them stands for; the values that a field can have.

/// What a value says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Field {
    /// The state of now; a console puts the reason there, too.
    State,
    /// The state before.
    LastState,
    /// `terminated:` of an object, where the state's name is a key.
    Terminated,
    /// `waiting:`
    Waiting,
    /// `running:`
    Running,
    Reason,
    ExitCode,
    /// Docker's flag.
    OomKilled,
    Restarts,
    Ready,
    /// `name:` of an object: of a container, a pod or something else.
    Name,
    Pod,
    Container,
    Namespace,
    Node,
    Image,
    ContainerId,
    Started,
    Finished,
    Limits,
    Requests,
    Memory,
    /// Free text; names in it are of whatever it speaks of.
    Message,
}

/// Labels without blanks, dashes and case. A synonym is one more row.
const LABELS: &[(&str, Field)] = &[
    ("state", Field::State),
    ("containerstate", Field::State),
    ("currentstate", Field::State),
    ("status", Field::State),
    ("laststate", Field::LastState),
    ("laststatus", Field::LastState),
    ("lastterminationstate", Field::LastState),
    ("previousstate", Field::LastState),
    ("terminated", Field::Terminated),
    ("waiting", Field::Waiting),
    ("running", Field::Running),
    ("reason", Field::Reason),
    ("lastreason", Field::Reason),
    ("terminatedreason", Field::Reason),
    ("terminationreason", Field::Reason),
    ("lastterminatedreason", Field::Reason),
    ("lastterminationreason", Field::Reason),
    ("laststatereason", Field::Reason),
    ("stopreason", Field::Reason),
    ("stoppedreason", Field::Reason),
    ("exit", Field::ExitCode),
    ("code", Field::ExitCode),
    ("exitcode", Field::ExitCode),
    ("exitstatus", Field::ExitCode),
    ("lastexit", Field::ExitCode),
    ("lastexitcode", Field::ExitCode),
    ("oomkilled", Field::OomKilled),
    ("restarts", Field::Restarts),
    ("restartcount", Field::Restarts),
    ("ready", Field::Ready),
    ("name", Field::Name),
    ("pod", Field::Pod),
    ("podname", Field::Pod),
    ("container", Field::Container),
    ("containername", Field::Container),
    ("ns", Field::Namespace),
    ("namespace", Field::Namespace),
    ("node", Field::Node),
    ("image", Field::Image),
    ("containerid", Field::ContainerId),
    ("started", Field::Started),
    ("startedat", Field::Started),
    ("finished", Field::Finished),
    ("finishedat", Field::Finished),
    ("limits", Field::Limits),
    ("requests", Field::Requests),
    ("memory", Field::Memory),
    ("message", Field::Message),
];

/// Reasons that the runtime and the kubelet give for an end.
const ENDS: &[&str] = &[
    "OOMKilled",
    "Error",
    "Completed",
    "StartError",
    "ContainerCannotRun",
    "ContainerStatusUnknown",
    "DeadlineExceeded",
];
/// Reasons of a container that waits.
const WAITS: &[&str] = &[
    "CrashLoopBackOff",
    "ImagePullBackOff",
    "ErrImagePull",
    "InvalidImageName",
    "CreateContainerConfigError",
    "CreateContainerError",
    "RunContainerError",
    "ContainerCreating",
    "PodInitializing",
];

/// What the runtime says of an end that the kernel's OOM killer brought.
pub(super) const OOM_KILLED: &str = "OOMKilled";

/// What the kubelet says of exit code 0.
pub(super) const ENDED_CLEANLY: &str = "Completed";

/// A word of a status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Word {
    Terminated,
    Waiting,
    Running,
    /// Ended for this reason; blurred where letters had to be guessed.
    End(&'static str, bool),
    Wait(&'static str),
}

/// The field of a label.
pub(super) fn field(label: &str) -> Option<Field> {
    if label.len() > 40 {
        return None;
    }
    let bare: String = label.chars().filter(char::is_ascii_alphanumeric).collect();
    LABELS.iter().find(|(l, _)| l.eq_ignore_ascii_case(&bare)).map(|(_, f)| *f)
}

/// The status word that a text is, in any case, and with the slips of a machine that reads pictures.
pub(super) fn word(text: &str) -> Option<Word> {
    let text = text.trim_matches(|c: char| !c.is_ascii_alphanumeric() && c != '|');
    if !(4..=26).contains(&text.len()) {
        return None;
    }
    for (name, word) in [
        ("terminated", Word::Terminated),
        ("exited", Word::Terminated),
        ("waiting", Word::Waiting),
        ("running", Word::Running),
    ] {
        if text.eq_ignore_ascii_case(name) {
            return Some(word);
        }
    }
    let same = |names: &[&'static str]| names.iter().find(|n| text.eq_ignore_ascii_case(n)).copied();
    if let Some(end) = same(ENDS) {
        return Some(Word::End(end, false));
    }
    if let Some(wait) = same(WAITS) {
        return Some(Word::Wait(wait));
    }
    (text.len() == OOM_KILLED.len() && folded(text) == folded(OOM_KILLED))
        .then_some(Word::End(OOM_KILLED, true))
}

/// `OOM Killed`, as consoles write it, anywhere in a line.
pub(super) fn in_two(line: &str) -> Option<Word> {
    let lower = line.to_ascii_lowercase();
    ["oom killed", "oom-killed"].iter().any(|w| lower.contains(w)).then_some(Word::End(OOM_KILLED, false))
}

/// Letters and digits that look alike become one.
fn folded(text: &str) -> String {
    text.chars()
        .map(|c| match c.to_ascii_lowercase() {
            '0' => 'o',
            '1' | 'i' | '|' | '!' => 'l',
            '5' => 's',
            c => c,
        })
        .collect()
}

/// An exit code, and whether digits had to be guessed.
pub(super) fn code(text: &str) -> Option<(i64, bool)> {
    let text = text.trim_matches(|c: char| !c.is_ascii_alphanumeric() && c != '|' && c != '-');
    if text.is_empty() || text.len() > 4 {
        return None;
    }
    if let Ok(code) = text.parse() {
        return Some((code, false));
    }
    let guessed: String = text
        .chars()
        .map(|c| match c {
            'O' | 'o' => '0',
            'l' | 'I' | 'i' | '|' => '1',
            'S' | 's' => '5',
            c => c,
        })
        .collect();
    let some_digit = text.bytes().any(|b| b.is_ascii_digit());
    guessed.parse().ok().filter(|_| some_digit).map(|code| (code, true))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_of_tools_and_consoles() {
        for (label, want) in [
            ("Last State", Field::LastState),
            ("lastState", Field::LastState),
            ("LAST_EXIT", Field::ExitCode),
            ("Exit code", Field::ExitCode),
            ("Restart Count", Field::Restarts),
            ("Stopped reason", Field::Reason),
        ] {
            assert_eq!(field(label), Some(want), "{label}");
        }
        for other in ["finish_reason", "http status", "", "because"] {
            assert_eq!(field(other), None, "{other}");
        }
    }

    #[test]
    fn slips_of_the_pen_are_blurred() {
        for (text, want) in [
            ("OOMKilled,", Some(Word::End("OOMKilled", false))),
            ("oomkilled", Some(Word::End("OOMKilled", false))),
            ("OOMKi11ed", Some(Word::End("OOMKilled", true))),
            ("0OMKilled", Some(Word::End("OOMKilled", true))),
            ("OOMKiIled", Some(Word::End("OOMKilled", true))),
            ("(Completed)", Some(Word::End("Completed", false))),
            ("OOMKilling", None),
            ("killed", None),
        ] {
            assert_eq!(word(text), want, "{text}");
        }
        assert_eq!(
            (code("l37"), code("I37,"), code("137"), code("all")),
            (Some((137, true)), Some((137, true)), Some((137, false)), None)
        );
    }
}
