//! String literals: what stands in them, with what is computed as holes.

use super::lex::{Cursor, Language};

/// Nested expressions in f-strings deeper than this are not followed.
const DEEPEST: u32 = 16;

/// What fills a hole.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Hole {
    Any,
    Whole,
    Decimal,
    Word,
    Hex,
}

/// Text or a hole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Part {
    Text(String),
    Hole(Hole),
}

/// A string literal.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Literal(pub(super) Vec<Part>);

impl Literal {
    fn text(text: String) -> Self {
        Self(vec![Part::Text(text)])
    }

    /// As it is printed in tests.
    #[cfg(test)]
    pub(super) fn plain(&self) -> String {
        self.0.iter().map(|p| if let Part::Text(t) = p { t.as_str() } else { "{}" }).collect()
    }
}

/// The string whose prefix (`f`, `rb`, `R`, `u8`, `r` with `#`) was just read, if it was one.
pub(super) fn prefixed(at: &mut Cursor<'_>, word: &str, language: Language) -> Option<Literal> {
    let quote = at.peek().filter(|c| matches!(c, '"' | '\'' | '#'))?;
    match language {
        Language::Python if quote != '#' && word.len() <= 2 => {
            let low = word.to_ascii_lowercase();
            low.chars()
                .all(|c| "rbuft".contains(c))
                .then(|| python(at, low.contains('r'), low.contains(['f', 't']), 0))
        }
        Language::C if quote == '"' && matches!(word, "R" | "LR" | "uR" | "UR" | "u8R") => Some(cpp_raw(at)),
        Language::C if quote == '"' && matches!(word, "L" | "u" | "U" | "u8") => Some(escaped(at)),
        // `1'000`, and a character with a prefix.
        Language::C if quote == '\'' && word.starts_with(|c: char| c.is_ascii_digit()) => {
            at.bump();
            None
        }
        Language::Rust if quote != '\'' && matches!(word, "r" | "br" | "cr") => Some(rust_raw(at)),
        Language::Rust if quote == '"' && matches!(word, "b" | "c") => Some(escaped(at)),
        _ => None,
    }
}

/// A string without a prefix, or a character, which is none.
pub(super) fn plain(at: &mut Cursor<'_>, language: Language) -> Option<Literal> {
    match (language, at.peek()?) {
        (Language::Python, '"' | '\'') => Some(python(at, false, false, 0)),
        (Language::Go, '`') => {
            at.bump();
            let text = at.take_while(|c| c != '`');
            at.bump();
            Some(Literal::text(text))
        }
        (Language::Java, '"') if at.starts("\"\"\"") => Some(triple(at)),
        (_, '"') => Some(escaped(at)),
        (Language::Rust, '\'') => {
            let character = at.ahead(1) == Some('\\') || at.ahead(2) == Some('\'');
            if character {
                character_of(at)
            } else {
                at.skip(1)
            };
            None
        }
        (_, '\'') => {
            character_of(at);
            None
        }
        _ => {
            at.bump();
            None
        }
    }
}

fn character_of(at: &mut Cursor<'_>) {
    at.bump();
    // No character is longer than `'\u{10FFFF}'`; a lone quote in a macro or a comment of assembler ends with its line.
    for _ in 0..12 {
        match at.peek() {
            Some('\\') => at.skip(2),
            Some('\'') => {
                at.bump();
                return;
            }
            Some('\n') | None => return,
            Some(_) => at.skip(1),
        }
    }
}

/// `"..."` with escapes.
fn escaped(at: &mut Cursor<'_>) -> Literal {
    at.bump();
    let mut text = String::new();
    while let Some(c) = at.bump() {
        match c {
            '"' => break,
            '\\' => escape(at, &mut text),
            // An unfinished one: what follows is code again. Rust's may span lines.
            c => text.push(c),
        }
    }
    Literal::text(text)
}

/// What follows a backslash.
fn escape(at: &mut Cursor<'_>, text: &mut String) {
    match at.bump() {
        Some('n') => text.push('\n'),
        Some('t' | 'r') => text.push(' '),
        // A string that goes on in the next line: Rust leaves out the indentation.
        Some('\n') => drop(at.take_while(|c| c == ' ' || c == '\t')),
        Some('x') => at.skip(2),
        Some('u') if at.peek() == Some('{') => {
            at.take_while(|c| c != '}' && c != '"');
            at.eat("}");
        }
        Some('u') => at.skip(4),
        Some('0'..='7') => drop(at.take_while(|c| c.is_digit(8))),
        Some('a' | 'b' | 'e' | 'f' | 'v') | None => {}
        Some(c) => text.push(c),
    }
}

fn triple(at: &mut Cursor<'_>) -> Literal {
    at.skip(3);
    let mut text = String::new();
    while at.peek().is_some() && !at.eat("\"\"\"") {
        if at.eat("\\") { escape(at, &mut text) } else { text.extend(at.bump()) }
    }
    Literal::text(text)
}

/// `R"delimiter(...)delimiter"`.
fn cpp_raw(at: &mut Cursor<'_>) -> Literal {
    at.bump();
    let delimiter = at.take_while(|c| c != '(' && c != '\n' && c != '"');
    at.bump();
    until(at, &format!("){delimiter}\""))
}

/// `r##"..."##`; `r#name` is a name.
fn rust_raw(at: &mut Cursor<'_>) -> Literal {
    let hashes = at.take_while(|c| c == '#');
    if !at.eat("\"") {
        return Literal::default();
    }
    until(at, &format!("\"{hashes}"))
}

fn until(at: &mut Cursor<'_>, end: &str) -> Literal {
    let mut text = String::new();
    while at.peek().is_some() && !at.eat(end) {
        text.extend(at.bump());
    }
    Literal::text(text)
}

/// Python's strings: one or three quotes, raw or not, with expressions or not.
fn python(at: &mut Cursor<'_>, raw: bool, expressions: bool, depth: u32) -> Literal {
    let Some(quote) = at.peek() else { return Literal::default() };
    let long: String = std::iter::repeat_n(quote, 3).collect();
    let end = if at.eat(&long) { long } else { quote.to_string() };
    if end.len() == 1 {
        at.bump();
    }
    let mut parts = Vec::new();
    let mut text = String::new();
    while let Some(c) = at.peek() {
        if at.eat(&end) || (end.len() == 1 && c == '\n') {
            break;
        }
        match c {
            '\\' if raw => {
                text.push(c);
                at.bump();
                text.extend(at.bump());
            }
            '\\' => {
                at.bump();
                if at.eat("N{") {
                    at.take_while(|c| c != '}' && c != '\n');
                    at.eat("}");
                } else {
                    escape(at, &mut text);
                }
            }
            '{' if expressions && !at.eat("{{") => {
                at.bump();
                parts.push(Part::Text(std::mem::take(&mut text)));
                parts.push(Part::Hole(expression(at, &end, depth)));
            }
            '{' if expressions => text.push('{'),
            '}' if expressions => {
                text.push('}');
                at.bump();
                at.eat("}");
            }
            c => {
                text.push(c);
                at.bump();
            }
        }
    }
    parts.push(Part::Text(text));
    parts.retain(|p| *p != Part::Text(String::new()));
    Literal(parts)
}

/// Goes past `expression:format}` of an f-string. `end` closes the string around it.
fn expression(at: &mut Cursor<'_>, end: &str, depth: u32) -> Hole {
    let mut open = 0_u32;
    let mut format: Option<String> = None;
    while let Some(c) = at.peek() {
        match c {
            '}' if open == 0 => {
                at.bump();
                break;
            }
            // The string ends within an expression: it is broken, or of an old Python.
            _ if format.is_some() && at.starts(end) => break,
            '"' | '\'' if format.is_none() && depth < DEEPEST => {
                python(at, false, true, depth + 1);
                continue;
            }
            '\n' if end.len() == 1 && depth == 0 && open == 0 && format.is_some() => break,
            '(' | '[' | '{' => open += 1,
            ')' | ']' | '}' => open = open.saturating_sub(1),
            ':' if open == 0 && format.is_none() => format = Some(String::new()),
            c => format.iter_mut().for_each(|f| f.push(c)),
        }
        at.bump();
    }
    match format.as_deref().and_then(|f| f.chars().last()) {
        Some('d' | ',' | 'b') => Hole::Whole,
        Some('f' | 'e' | 'g' | '%' | 'F' | 'G') => Hole::Decimal,
        Some('x' | 'X') => Hole::Hex,
        _ => Hole::Any,
    }
}

#[cfg(test)]
mod tests {
    use super::super::lex::{Language, tokens};
    use super::*;

    fn one(source: &str, language: Language) -> String {
        let all = tokens(source, language);
        all.iter().filter_map(|t| t.text()).map(Literal::plain).collect::<Vec<_>>().join("|")
    }

    #[test]
    fn python_strings() {
        for (source, text) in [
            (r#"f"a {x} b""#, "a {} b"),
            (r#"f"a {x['k']!r:>{w}} {{b}} {y:.2f}""#, "a {} {b} {}"),
            (r#"f"{f"{x}"} c""#, "{} c"),
            (r#"f'{", ".join(a)} d'"#, "{} d"),
            (r#"rb'\d' "e""#, r"\d|e"),
            ("'''a\n\"b\" 'c' ''' 'd'", "a\n\"b\" 'c' |d"),
            (r#""a \"b\" \u00e9 \N{DASH}c""#, "a \"b\"  c"),
            ("f'{a:{b}.{c}f} end'", "{} end"),
            ("'unfinished\nx = 'b'", "unfinished|b"),
        ] {
            assert_eq!(one(source, Language::Python), text, "{source}");
        }
    }

    #[test]
    fn the_others() {
        for (language, source, text) in [
            (Language::C, r#"f("a \"b\"" L"c", 'x', '"', 1'000, "d")"#, "a \"b\"|c|d"),
            (Language::C, r#"R"x(a "b" )" )x" "c""#, "a \"b\" )\" |c"),
            (Language::C, "\"a \\\n b\"", "a b"),
            (Language::Go, "`a\"b` \"c\" '\"' \"d\"", "a\"b|c|d"),
            (
                Language::Rust,
                r###"r#"a "b""# "c" 'x' fn f<'a>(x: &'a str) "d" b"e" '\'' "f""###,
                "a \"b\"|c|d|e|f",
            ),
            (Language::Rust, "\"a \\\n     b\"", "a b"),
            (Language::Java, "\"\"\"\na \"b\" \"\"\" \"c\"", "\na \"b\" |c"),
        ] {
            assert_eq!(one(source, language), text, "{source}");
        }
    }
}
