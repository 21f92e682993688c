//! Words of a command line: what a shell would make of a text, and flags with their values.

/// No command line has more words; a longer one is broken or hostile.
pub const MAX_WORDS: usize = 4096;

/// How many values a flag takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Take {
    /// None; `--no-<name>` turns it off.
    Switch,
    /// One.
    Value,
    /// All words up to the next flag.
    Many,
}

/// A flag of an engine: its name with dashes, other names, and what it takes.
pub type Known = (&'static str, &'static [&'static str], Take);

/// A flag as it was given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Given {
    /// The engine's own name for it, or as given where it is not known.
    pub name: String,
    /// As it was spelled, with dashes and without values.
    pub spelled: String,
    /// What stands behind a dot: `num_speculative_tokens` of `--speculative-config.num_speculative_tokens`.
    pub path: Option<String>,
    /// Values.
    pub values: Vec<String>,
    /// Turned on or off, where it is a switch.
    pub on: bool,
    /// Whether the engine's table holds it.
    pub known: bool,
}

impl Given {
    /// The first value.
    #[must_use]
    pub fn value(&self) -> &str {
        self.values.first().map_or("", String::as_str)
    }

    /// As a person would find it.
    #[must_use]
    pub fn flag(&self) -> String {
        format!("--{}", self.name)
    }
}

/// Flags and the words that are none.
#[derive(Debug, Default)]
pub struct Words {
    /// Flags in the order in which they were given.
    pub flags: Vec<Given>,
    /// Words that neither are flags nor belong to one.
    pub loose: Vec<String>,
}

/// Splits words into flags and loose words by an engine's table.
///
/// Dashes and underscores are one, `--a=b` and `--a b` too; a prefix that only one known flag has is that flag, as
/// Python's argparse reads it.
#[must_use]
pub fn flags(words: &[String], table: &[Known]) -> Words {
    read(words, table, false)
}

/// As [`flags`], for a parser that pairs each switch `--enable-x` with `--disable-x`, whichever of the two its table holds.
#[must_use]
pub fn flags_in_pairs(words: &[String], table: &[Known]) -> Words {
    read(words, table, true)
}

fn read(words: &[String], table: &[Known], pairs: bool) -> Words {
    let mut out = Words::default();
    let mut rest = words.iter().take(MAX_WORDS).peekable();
    while let Some(word) = rest.next() {
        let Some(body) = name_of(word) else {
            out.loose.push(word.clone());
            continue;
        };
        let (raw, attached) = match body.split_once('=') {
            Some((n, v)) => (n, Some(v.to_owned())),
            None => (body, None),
        };
        let (raw, path) = match raw.split_once('.') {
            Some((n, p)) => (n, Some(p.to_owned())),
            None => (raw, None),
        };
        let spelled = raw.replace('_', "-");
        let (name, take, on) = resolve(&spelled, table, pairs);
        let known = take.is_some();
        let mut values: Vec<String> = attached.into_iter().collect();
        if values.is_empty() && (path.is_some() || take != Some(Take::Switch)) {
            let most = if take == Some(Take::Many) && path.is_none() { usize::MAX } else { 1 };
            while values.len() < most
                && let Some(value) = rest.next_if(|w| name_of(w).is_none())
            {
                values.push(value.clone());
            }
        }
        // A switch may still be spelled `--switch=false`.
        let off = values
            .first()
            .is_some_and(|v| matches!(v.to_ascii_lowercase().as_str(), "false" | "0" | "no" | "off"));
        let on = if take == Some(Take::Switch) { on && !off } else { on };
        out.flags.push(Given { name, spelled, path, values, on, known });
    }
    out
}

/// What stands behind the dashes; a negative number is a value.
fn name_of(word: &str) -> Option<&str> {
    let name = word.strip_prefix("--").or_else(|| word.strip_prefix('-'))?;
    (name.starts_with(|c: char| c.is_ascii_alphabetic())).then_some(name)
}

/// The flag that a spelling means, what it takes, and whether it turns it on.
fn resolve(dashed: &str, table: &[Known], pairs: bool) -> (String, Option<Take>, bool) {
    let exact = |name: &str| {
        table.iter().find(|(n, others, _)| *n == name || others.contains(&name)).map(|(n, _, t)| (*n, *t))
    };
    if let Some((name, take)) = exact(dashed) {
        return (name.to_owned(), Some(take), true);
    }
    let off = dashed.strip_prefix("no-").map(str::to_owned).or_else(|| inverse(dashed).filter(|_| pairs));
    if let Some((name, take)) = off.as_deref().and_then(exact)
        && take == Take::Switch
    {
        return (name.to_owned(), Some(take), false);
    }
    let mut starts = table.iter().filter(|(n, ..)| dashed.len() > 3 && n.starts_with(dashed));
    match (starts.next(), starts.next()) {
        (Some((name, _, take)), None) => ((*name).to_owned(), Some(*take), true),
        _ => (dashed.to_owned(), None, true),
    }
}

/// `disable-x` of `enable-x`, and the other way round.
#[must_use]
pub fn inverse(name: &str) -> Option<String> {
    let swap = |from: &str, to: &str| name.strip_prefix(from).map(|rest| format!("{to}{rest}"));
    swap("enable-", "disable-").or_else(|| swap("disable-", "enable-"))
}

/// Splits a text as a shell does: blanks, quotes, backslashes, `$NAME`, `${NAME}` and Kubernetes' `$(NAME)` from
/// `env`. Commands end at `;`, `&&`, `||`, `|` and line ends; each is a list of its own.
#[must_use]
pub fn shell(text: &str, env: &[(String, String)]) -> Vec<Vec<String>> {
    let mut commands = vec![Vec::new()];
    let mut word = String::new();
    let mut begun = false;
    let mut quote = None;
    let mut chars = text.chars().peekable();
    let mut total = 0;
    let push = |word: &mut String, begun: &mut bool, commands: &mut Vec<Vec<String>>| {
        if std::mem::take(begun)
            && let Some(last) = commands.last_mut()
        {
            last.push(std::mem::take(word));
        }
    };
    while let Some(c) = chars.next() {
        if total > MAX_WORDS {
            break;
        }
        match (quote, c) {
            (None, '\\') => match chars.next() {
                Some('\n') | None => {}
                Some(next) => {
                    word.push(next);
                    begun = true;
                }
            },
            (Some('"'), '\\') if chars.peek().is_some_and(|n| matches!(n, '"' | '\\' | '$' | '`')) => {
                word.extend(chars.next());
            }
            (None, '\'' | '"') => {
                quote = Some(c);
                begun = true;
            }
            (Some(q), c) if q == c => quote = None,
            (Some('\''), c) => word.push(c),
            (_, '$') => {
                word.push_str(&variable(&mut chars, env));
                begun = true;
            }
            (None, ';' | '|' | '&' | '\n') => {
                push(&mut word, &mut begun, &mut commands);
                if commands.last().is_some_and(|c| !c.is_empty()) {
                    commands.push(Vec::new());
                }
            }
            (None, c) if c.is_whitespace() => {
                total += 1;
                push(&mut word, &mut begun, &mut commands);
            }
            (_, c) => {
                word.push(c);
                begun = true;
            }
        }
    }
    push(&mut word, &mut begun, &mut commands);
    commands.retain(|c| !c.is_empty());
    commands
}

/// The value behind `$`; what is not known stays as it stands.
fn variable(chars: &mut std::iter::Peekable<std::str::Chars<'_>>, env: &[(String, String)]) -> String {
    let close = match chars.peek() {
        Some('{') => Some('}'),
        Some('(') => Some(')'),
        _ => None,
    };
    let mut name = String::new();
    let mut shown = String::from("$");
    if close.is_some() {
        shown.extend(chars.next());
    }
    while let Some(c) =
        chars.next_if(|c| close.map_or(c.is_ascii_alphanumeric() || *c == '_', |end| *c != end))
    {
        name.push(c);
    }
    shown.push_str(&name);
    if close.is_some() {
        shown.extend(chars.next());
    }
    let (plain, default) = name.split_once(":-").map_or((name.as_str(), None), |(n, d)| (n, Some(d)));
    env.iter()
        .rev()
        .find(|(k, _)| k == plain)
        .map(|(_, v)| v.clone())
        .or_else(|| default.map(str::to_owned))
        .unwrap_or(shown)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &[Known] = &[
        ("tensor-parallel-size", &["tp"], Take::Value),
        ("enforce-eager", &[], Take::Switch),
        ("cudagraph-capture-sizes", &[], Take::Many),
        ("speculative-config", &["sc"], Take::Value),
    ];

    fn words(text: &str) -> Vec<String> {
        shell(text, &[]).concat()
    }

    #[test]
    fn all_spellings_are_one_flag() {
        for text in
            ["--tensor-parallel-size 2", "--tensor_parallel_size=2", "-tp 2", "-tp=2", "--tensor-par 2"]
        {
            let w = flags(&words(text), TABLE);
            assert_eq!(
                (w.flags[0].name.as_str(), w.flags[0].value()),
                ("tensor-parallel-size", "2"),
                "{text}"
            );
        }
        let w = flags(&words("--no-enforce-eager m --cudagraph_capture_sizes 1 2 4 --x -1 --y"), TABLE);
        assert!(!w.flags[0].on);
        assert_eq!(w.loose, ["m"]);
        assert_eq!(w.flags[1].values, ["1", "2", "4"]);
        assert_eq!((w.flags[2].value(), w.flags[2].known), ("-1", false));
        let w = flags(&words("--enforce-eager=false --speculative-config.num_speculative_tokens 3"), TABLE);
        assert!(!w.flags[0].on);
        assert_eq!((w.flags[1].path.as_deref(), w.flags[1].value()), (Some("num_speculative_tokens"), "3"));
    }

    #[test]
    fn switches_come_in_pairs_only_where_the_parser_makes_them() {
        let table: &[Known] = &[
            ("enable-a", &["a"], Take::Switch),
            ("disable-b", &[], Take::Switch),
            ("enable-c", &[], Take::Value),
        ];
        let text = words("--disable-a --enable_b --no-disable-b --disable-c");
        let read = |w: Words| w.flags.into_iter().map(|g| (g.name, g.on, g.known)).collect::<Vec<_>>();
        let off = |n: &str| (n.to_owned(), false, true);
        let unknown = |n: &str| (n.to_owned(), true, false);
        let pairs = read(flags_in_pairs(&text, table));
        assert_eq!(pairs, [off("enable-a"), off("disable-b"), off("disable-b"), unknown("disable-c")]);
        let alone = read(flags(&text, table));
        let want = [unknown("disable-a"), unknown("enable-b"), off("disable-b"), unknown("disable-c")];
        assert_eq!(alone, want);
    }

    #[test]
    fn a_shell_line_becomes_words() {
        let env = [("MODEL".to_owned(), "a/b".to_owned())];
        let commands =
            shell("export X=1 && exec vllm serve $MODEL \\\n --a '{\"b\": 1}' \"${N:-4}\" $(MODEL) $Q", &env);
        assert_eq!(commands[0], ["export", "X=1"]);
        assert_eq!(commands[1], ["exec", "vllm", "serve", "a/b", "--a", "{\"b\": 1}", "4", "a/b", "$Q"]);
    }
}
