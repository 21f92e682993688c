//! The rules as `knowledge/redaction.toml` holds them: shapes of secrets, names that hold secrets, fields that users fill.

use std::sync::OnceLock;

use regex::Regex;
use serde::Deserialize;

/// A secret that is known by its shape.
#[derive(Debug, Deserialize)]
pub struct Redaction {
    /// Stable id.
    pub id: String,
    /// Any of these must stand in the text, in whatever case.
    pub literals: Vec<String>,
    /// Its groups `secret` and `secret2` are masked.
    pub pattern: String,
    /// A value that matches this is no secret (a number, `None`).
    #[serde(default)]
    pub unless_value: Option<String>,
    #[serde(skip)]
    regex: OnceLock<Option<(Regex, Option<Regex>)>>,
}

impl Redaction {
    fn regex(&self) -> Option<&(Regex, Option<Regex>)> {
        self.regex
            .get_or_init(|| {
                let unless = match &self.unless_value {
                    Some(p) => Some(Regex::new(p).ok()?),
                    None => None,
                };
                Some((Regex::new(&ascii(&self.pattern)).ok()?, unless))
            })
            .as_ref()
    }

    /// Calls back with the range of each secret in the text.
    pub(crate) fn each(&self, text: &str, mut found: impl FnMut(usize, usize)) {
        let Some((regex, unless)) = self.regex() else { return };
        for groups in regex.captures_iter(text) {
            let Some(secret) = groups.name("secret").or_else(|| groups.name("secret2")) else { continue };
            if !unless.as_ref().is_some_and(|u| u.is_match(secret.as_str())) {
                found(secret.start(), secret.end());
            }
        }
    }
}

/// The pattern with ASCII classes: those of all Unicode make automata a hundred times as large, and a word boundary that knows
/// Unicode sends them to their slow twin at the first umlaut.
fn ascii(pattern: &str) -> String {
    pattern
        .replace(r"\b", r"(?-u:\b)")
        .replace(r"\s", r"[ \t\r\n]")
        .replace(r"\S", r"[^ \t\r\n]")
        .replace(r"\W", "[^0-9A-Za-z_]")
        .replace("(?i:", "(?i-u:")
}

/// Names whose values are secrets.
#[derive(Debug, Deserialize)]
pub struct SecretName {
    /// Stable id.
    pub id: String,
    /// Parts of a name in small letters, joined by `_`; one of them makes the name secret.
    pub words: Vec<String>,
    /// Whole names that are secret while the word alone says nothing.
    #[serde(default)]
    pub exact: Vec<String>,
    /// Only where the name is an environment variable's (`DB_PASS`), a flag's or a key of a ConfigMap: the word is ordinary
    /// in running text.
    #[serde(default)]
    pub shouted: bool,
    /// A number behind it may be the secret.
    #[serde(default)]
    pub numbers: bool,
    /// The value is the rest of the line or of the quoted text, blanks and all.
    #[serde(default)]
    pub rest: bool,
    /// Parts of a name that make it harmless in spite of the word.
    #[serde(default)]
    pub harmless: Vec<String>,
}

/// Names that hold such a word and no secret.
#[derive(Debug, Deserialize)]
pub struct HarmlessName {
    /// Stable id.
    pub id: String,
    /// Last parts of names: `…_FILE` holds a path.
    #[serde(default)]
    pub endings: Vec<String>,
    /// Whole names; `*` stands for anything.
    #[serde(default)]
    pub names: Vec<String>,
}

/// Fields of JSON bodies that hold what users wrote.
#[derive(Debug, Deserialize)]
pub struct UserField {
    /// Stable id.
    pub id: String,
    /// Keys.
    pub names: Vec<String>,
}

/// All rules but the shapes.
#[derive(Debug, Default)]
pub(crate) struct Names {
    pub(crate) secret: Vec<SecretName>,
    pub(crate) harmless: Vec<HarmlessName>,
    pub(crate) fields: Vec<UserField>,
}
