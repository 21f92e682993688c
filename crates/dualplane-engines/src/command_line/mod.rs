//! Reads command lines: what a shell would make of a text, which words name the program, and flags with their values.
//! Facts, plans, maps and the node agent all read them here.

pub mod edit;
mod words;

pub use words::{Given, Known, MAX_WORDS, Take, Words, flags, flags_in_pairs, inverse, shell};

/// Words at the head of a command that may name the program: `python3 -X … -m vllm.entrypoints.openai.api_server`.
const HEAD: usize = 8;

/// The commands that words or one text stand for: the text behind `sh -c`, and a single text with blanks, are split as a
/// shell would; Kubernetes expands `$(NAME)` in each word, and only that.
#[must_use]
pub fn split(words: &[String], env: &[(String, String)]) -> Vec<Vec<String>> {
    let script = words.iter().position(|w| w.starts_with('-') && w.ends_with('c') && w.len() <= 4);
    let shell_name = words.first().is_some_and(|w| matches!(base(w), "sh" | "bash" | "ash" | "dash"));
    if let (true, Some(at)) = (shell_name, script) {
        let text = words.get(at + 1..).unwrap_or_default().join(" ");
        return shell(&text, env);
    }
    if let [one] = words
        && one.contains(char::is_whitespace)
    {
        return shell(one, env);
    }
    let expand = |w: &String| {
        if w.contains("$(") { shell(&format!("\"{w}\""), env).concat().join("") } else { w.clone() }
    };
    vec![words.iter().take(MAX_WORDS).flat_map(|w| several(w)).map(|w| expand(&w)).collect()]
}

/// Several flags in one word, as templates write them: `--port 8000 --max-model-len 4096`.
fn several(word: &str) -> Vec<String> {
    if word.starts_with('-') && word.contains(" --") {
        shell(word, &[]).concat()
    } else {
        vec![word.to_owned()]
    }
}

/// Last part of a path.
#[must_use]
pub fn base(word: &str) -> &str {
    word.rsplit('/').next().unwrap_or(word)
}

/// The words of a command that may name its program. Values behind flags are names of models and paths.
pub fn program_words(command: &[String]) -> impl Iterator<Item = &str> {
    let head = command.iter().take(HEAD).take_while(|w| !w.starts_with("--"));
    head.filter(|w| !w.starts_with('-')).map(String::as_str)
}

/// The value of a flag by any of its names, with their dashes: the last that is given counts.
#[must_use]
pub fn value<'w>(given: &'w Words, names: &[&str]) -> Option<&'w str> {
    let names: Vec<String> = names.iter().map(|n| plain(n)).collect();
    let found = given.flags.iter().rev().find(|g| names.contains(&g.name))?;
    found.values.first().map(|v| v.trim_matches(['"', '\'']))
}

/// A flag's name as it is compared: without leading dashes, with dashes for underscores.
#[must_use]
pub fn plain(name: &str) -> String {
    name.trim_start_matches('-').replace('_', "-")
}

/// `NAME=value` before a command, or behind `-e`.
#[must_use]
pub fn assignment(word: &str) -> Option<(String, String)> {
    let (name, value) = word.split_once('=')?;
    let good =
        !name.is_empty() && name.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_');
    good.then(|| (name.to_owned(), value.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(words: &[&str]) -> Vec<String> {
        words.iter().map(|w| (*w).to_owned()).collect()
    }

    #[test]
    fn wrappers_are_unwrapped_once() {
        let want = list(&["vllm", "serve", "m", "--max-num-seqs", "16"]);
        for words in [
            &["sh", "-c", "vllm serve m --max-num-seqs 16"][..],
            &["/bin/bash", "-lc", "vllm serve m --max-num-seqs \"16\""],
            &["vllm serve m --max-num-seqs 16"],
            &["vllm", "serve", "m", "--max-num-seqs", "16"],
            &["vllm", "serve", "$(M)", "--max-num-seqs 16 --x"],
        ] {
            let env = [("M".to_owned(), "m".to_owned())];
            let got = split(&list(words), &env);
            assert_eq!(got[0][..5], want[..], "{words:?}");
        }
        let got = split(&list(&["bash", "-c", "export A=1; cd /x && exec vllm serve m"]), &[]);
        assert_eq!(got.last().unwrap(), &list(&["exec", "vllm", "serve", "m"]));
        let json = list(&["vllm", "--speculative-config", "{\"a\": \"x --y\"}"]);
        assert_eq!(split(&json, &[]), [json]);
    }

    #[test]
    fn values_of_all_spellings() {
        let of = |text: &str| {
            let given = flags(&shell(text, &[]).concat(), &[]);
            value(&given, &["--served-model-name", "--port"]).map(str::to_owned)
        };
        for text in ["s --port 9000", "s --port=9000", "s -port '9000'", "s --port 1 --port \"9000\""] {
            assert_eq!(of(text).as_deref(), Some("9000"), "{text}");
        }
        assert_eq!(of("s --served_model_name a").as_deref(), Some("a"));
        assert_eq!(of("s --portal 1"), None);
    }

    #[test]
    fn what_may_name_the_program() {
        let of = |text: &str| {
            let words = shell(text, &[]).concat();
            program_words(&words).map(str::to_owned).collect::<Vec<_>>()
        };
        assert_eq!(of("python3 -u -m vllm.x --model vllm"), ["python3", "vllm.x"]);
        assert!(of("--model vllm").is_empty());
    }
}
