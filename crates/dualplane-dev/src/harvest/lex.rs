//! Tokens of a source file, as far as messages need them: words, string literals, and everything else as single characters.
//!
//! Five languages in one lexer: they differ in comments and in how strings are written. Hostile or broken input gives
//! tokens that make no sense, never an error: what an unfinished string swallows is lost, and nothing else.

use super::literal::{self, Literal};

/// A language, by how its comments and strings look.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Language {
    Python,
    /// C, C++, CUDA, HIP.
    C,
    Go,
    Rust,
    Java,
}

impl Language {
    /// The language of a file name.
    pub(super) fn of(name: &str) -> Option<Self> {
        Some(match name.rsplit_once('.')?.1 {
            "py" => Self::Python,
            "c" | "cc" | "cpp" | "cxx" | "cu" | "cuh" | "h" | "hh" | "hpp" | "hip" | "inl" | "inc" => Self::C,
            "go" => Self::Go,
            "rs" => Self::Rust,
            "java" => Self::Java,
            _ => return None,
        })
    }
}

/// What stands in the source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Kind {
    /// A name or a number.
    Word(String),
    /// A string literal; what is computed in it is a hole.
    Text(Literal),
    /// Any other character; a new line in Python.
    Sign(char),
}

/// A token and its line, counted from 1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Token {
    pub(super) kind: Kind,
    pub(super) line: u32,
}

impl Token {
    pub(super) fn word(&self) -> Option<&str> {
        match &self.kind {
            Kind::Word(w) => Some(w),
            _ => None,
        }
    }

    pub(super) fn text(&self) -> Option<&Literal> {
        match &self.kind {
            Kind::Text(t) => Some(t),
            _ => None,
        }
    }

    pub(super) fn is(&self, sign: char) -> bool {
        self.kind == Kind::Sign(sign)
    }
}

/// A place in the text.
#[derive(Debug)]
pub(super) struct Cursor<'t> {
    rest: &'t str,
    pub(super) line: u32,
}

impl<'t> Cursor<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        Self { rest: text, line: 1 }
    }

    pub(super) fn peek(&self) -> Option<char> {
        self.rest.chars().next()
    }

    pub(super) fn ahead(&self, n: usize) -> Option<char> {
        self.rest.chars().nth(n)
    }

    pub(super) fn starts(&self, with: &str) -> bool {
        self.rest.starts_with(with)
    }

    pub(super) fn bump(&mut self) -> Option<char> {
        let mut chars = self.rest.chars();
        let c = chars.next()?;
        self.rest = chars.as_str();
        self.line += u32::from(c == '\n');
        Some(c)
    }

    pub(super) fn skip(&mut self, n: usize) {
        for _ in 0..n {
            self.bump();
        }
    }

    /// Goes past a text if it stands here.
    pub(super) fn eat(&mut self, what: &str) -> bool {
        let here = self.starts(what);
        if here {
            self.skip(what.chars().count());
        }
        here
    }

    pub(super) fn take_while(&mut self, is: impl Fn(char) -> bool) -> String {
        let mut taken = String::new();
        while let Some(c) = self.peek().filter(|c| is(*c)) {
            taken.push(c);
            self.bump();
        }
        taken
    }
}

/// The tokens of a text.
pub(super) fn tokens(text: &str, language: Language) -> Vec<Token> {
    let mut at = Cursor::new(text);
    let mut found = Vec::new();
    let mut depth = 0_u32;
    while let Some(c) = at.peek() {
        let line = at.line;
        if comment(&mut at, language) {
            continue;
        }
        let kind = match c {
            '\n' if language == Language::Python && depth == 0 => {
                at.bump();
                Kind::Sign('\n')
            }
            '\\' if language == Language::Python && at.ahead(1) == Some('\n') => {
                at.skip(2);
                continue;
            }
            c if c.is_whitespace() => {
                at.bump();
                continue;
            }
            c if c.is_alphanumeric() || c == '_' => {
                let word = at.take_while(|c| c.is_alphanumeric() || c == '_');
                match literal::prefixed(&mut at, &word, language) {
                    Some(text) => Kind::Text(text),
                    None => Kind::Word(word),
                }
            }
            '"' | '\'' | '`' => match literal::plain(&mut at, language) {
                Some(text) => Kind::Text(text),
                None => continue,
            },
            c => {
                at.bump();
                match c {
                    '(' | '[' | '{' => depth += 1,
                    ')' | ']' | '}' => depth = depth.saturating_sub(1),
                    _ => {}
                }
                Kind::Sign(c)
            }
        };
        found.push(Token { kind, line });
    }
    found
}

/// Goes past a comment.
fn comment(at: &mut Cursor<'_>, language: Language) -> bool {
    if language == Language::Python {
        let here = at.peek() == Some('#');
        if here {
            at.take_while(|c| c != '\n');
        }
        return here;
    }
    if at.starts("//") {
        at.take_while(|c| c != '\n');
        return true;
    }
    if !at.eat("/*") {
        return false;
    }
    let mut open = 1_u32;
    while open > 0 && at.peek().is_some() {
        if at.eat("*/") {
            open -= 1;
        } else if language == Language::Rust && at.eat("/*") {
            open += 1;
        } else {
            at.bump();
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(source: &str, language: Language) -> Vec<String> {
        tokens(source, language).iter().filter_map(|t| t.text()).map(Literal::plain).collect()
    }

    #[test]
    fn comments_hold_no_strings() {
        assert_eq!(texts("# \"a\"\nx = \"b\" # 'c'\n", Language::Python), ["b"]);
        assert_eq!(texts("// \"a\"\n/* \"b\" */ f(\"c\");", Language::C), ["c"]);
        assert_eq!(texts("/* /* \"a\" */ \"b\" */ f(\"c\")", Language::Rust), ["c"]);
        assert_eq!(texts("/* /* \"a\" */ f(\"c\")", Language::Go), ["c"]);
    }

    #[test]
    fn lines_are_counted_through_long_strings() {
        let all = tokens("a = \"\"\"x\ny\n\"\"\"\nb", Language::Python);
        assert_eq!(
            all.iter().filter_map(|t| t.word().map(|w| (w, t.line))).collect::<Vec<_>>(),
            [("a", 1), ("b", 4)]
        );
    }

    #[test]
    fn unfinished_input_ends() {
        for language in [Language::Python, Language::C, Language::Go, Language::Rust, Language::Java] {
            for source in
                ["\"a", "'a", "r#\"a", "R\"x(a", "f\"{a", "f\"{a:{", "/* a", "`a", "\"\"\"a", "'\\", "b'"]
            {
                tokens(source, language);
            }
        }
    }
}
