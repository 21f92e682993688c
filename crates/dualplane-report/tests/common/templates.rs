//! `testdata/commands.txt`: the templates of all commands that reports print. The end-to-end tests read it with this file.

/// One template.
pub(crate) struct Template {
    /// How the end-to-end test runs it.
    pub(crate) run: String,
    parts: Vec<Part>,
    /// As the file has it, with its openings spelt out.
    pub(crate) text: String,
}

enum Part {
    Words(String),
    Name(String),
}

/// What may stand in the place of a name.
const NAMES: &[(&str, &str)] = &[
    ("ns", "-."),
    ("pod", "-."),
    ("copy", "-."),
    ("container", "-."),
    ("node", "-."),
    ("workload", "-./"),
    ("object", "-."),
    ("unit", "-._"),
    ("quantity", ""),
    ("number", ""),
    ("port", ""),
    ("card", ":._"),
    ("series", ":_|"),
    ("value", "-._:,=/"),
    ("label", "-._/="),
    ("key", "-._"),
    ("name", ":_"),
    ("name2", ":_"),
];

const NODE: &str = "kubectl debug node/@node@ -q --attach --profile=sysadmin --image=busybox -- chroot /host sh -c 'sleep 2; ";
const EXEC: &str = "kubectl exec -n @ns@ @pod@ -c @container@ -- ";

/// All templates, in the order of the file.
pub(crate) fn read(text: &str) -> Vec<Template> {
    let lines = text.lines().filter(|l| !l.starts_with('#') && !l.trim().is_empty());
    lines
        .map(|l| {
            let (run, rest) = l.split_once(' ').unwrap();
            Template::of(run, rest.trim_start())
        })
        .collect()
}

impl Template {
    fn of(run: &str, text: &str) -> Self {
        let text = if let Some(command) = text.strip_prefix("node ") {
            let ends = [" | ", " > ", "   #"].iter().filter_map(|w| command.find(w));
            let (there, here) = command.split_at(ends.min().unwrap_or(command.len()));
            format!("{NODE}{there}'{here}")
        } else if let Some(command) = text.strip_prefix("exec ") {
            format!("{EXEC}{command}")
        } else {
            text.to_owned()
        };
        let mut parts = Vec::new();
        let mut words = String::new();
        let mut rest = text.as_str();
        while let Some((before, after)) = rest.split_once('@') {
            words.push_str(before);
            match after.split_once('@').filter(|(name, _)| NAMES.iter().any(|(n, _)| n == name)) {
                Some((name, after)) => {
                    parts.push(Part::Words(std::mem::take(&mut words)));
                    parts.push(Part::Name(name.to_owned()));
                    rest = after;
                }
                None => {
                    words.push('@');
                    rest = after;
                }
            }
        }
        words.push_str(rest);
        parts.push(Part::Words(words));
        Self { run: run.to_owned(), parts, text }
    }

    /// The command is of this template.
    pub(crate) fn is_of(&self, command: &str) -> bool {
        matches(&self.parts, command, &mut Vec::new())
    }

    /// The command with these names; a name that is not given panics.
    #[allow(dead_code)] // The end-to-end tests fill templates; the others only match.
    pub(crate) fn fill(&self, names: &[(&str, &str)]) -> String {
        let of = |part: &Part| match part {
            Part::Words(w) => w.clone(),
            Part::Name(n) => {
                names.iter().find(|(k, _)| k == n).unwrap_or_else(|| panic!("no {n}")).1.to_owned()
            }
        };
        self.parts.iter().map(of).collect()
    }
}

fn matches<'a>(parts: &'a [Part], text: &'a str, given: &mut Vec<(&'a str, &'a str)>) -> bool {
    let Some((first, rest)) = parts.split_first() else { return text.is_empty() };
    match first {
        Part::Words(w) => text.strip_prefix(w.as_str()).is_some_and(|t| matches(rest, t, given)),
        Part::Name(name) => {
            let (_, more) = NAMES.iter().find(|(n, _)| n == name).unwrap();
            let fits = |c: char| c.is_ascii_alphanumeric() || more.contains(c);
            let most = text.find(|c| !fits(c)).unwrap_or(text.len());
            // One name is one thing wherever it stands.
            let known = given.iter().find(|(n, _)| n == name).map(|(_, v)| *v);
            (1..=most).rev().any(|end| {
                let (value, after) = text.split_at(end);
                if name != "number" && name != "quantity" && known.is_some_and(|k| k != value) {
                    return false;
                }
                given.push((name, value));
                let ok = matches(rest, after, given);
                given.pop();
                ok
            })
        }
    }
}
