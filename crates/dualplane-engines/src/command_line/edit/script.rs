//! Words of a shell text with the bytes where they stand, so that one of them can be changed and all else stays.
//!
//! It understands what start scripts in manifests consist of: quotes, backslashes, comments, variables, redirections, and
//! what separates commands. A here-document or an open quote is not read: the words behind it may be no words.

/// A word of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Token {
    /// First byte of it in the text.
    pub start: usize,
    /// The byte behind it.
    pub end: usize,
    /// What the shell makes of it; a variable stays as it stands.
    pub text: String,
    /// It is one variable and nothing else.
    pub variable: Option<Variable>,
}

/// A word that is one variable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Variable {
    /// Name; `@` for all positional parameters.
    pub name: String,
    /// In double quotes its value is one word.
    pub quoted: bool,
    /// Written `$(NAME)`, which Kubernetes fills in before the shell reads the text.
    pub kubernetes: bool,
}

/// The words of each command; `None` for a text that is not read.
pub(super) fn commands(text: &str) -> Option<Vec<Vec<Token>>> {
    let mut reader =
        Reader { text, chars: text.char_indices().collect(), at: 0, out: vec![Vec::new()], target: false };
    reader.read()?;
    reader.out.retain(|c| !c.is_empty());
    Some(reader.out)
}

struct Reader<'t> {
    text: &'t str,
    chars: Vec<(usize, char)>,
    at: usize,
    out: Vec<Vec<Token>>,
    /// The next word is what a redirection leads to.
    target: bool,
}

impl Reader<'_> {
    fn peek(&self, ahead: usize) -> Option<char> {
        self.chars.get(self.at + ahead).map(|c| c.1)
    }

    /// Byte offset of the character that comes next.
    fn offset(&self) -> usize {
        self.chars.get(self.at).map_or(self.text.len(), |c| c.0)
    }

    fn read(&mut self) -> Option<()> {
        while let Some(c) = self.peek(0) {
            match c {
                '\\' if self.peek(1) == Some('\n') => self.at += 2,
                '\n' | ';' | '(' | ')' | '|' => self.separate()?,
                '&' if self.peek(1) == Some('>') => self.redirect()?,
                '&' => self.separate()?,
                c if c.is_whitespace() => self.at += 1,
                '#' => {
                    while self.peek(0).is_some_and(|c| c != '\n') {
                        self.at += 1;
                    }
                }
                '<' | '>' => self.redirect()?,
                _ => self.word()?,
            }
        }
        (!self.target).then_some(())
    }

    /// A redirection that leads nowhere is no script.
    fn separate(&mut self) -> Option<()> {
        self.at += 1;
        if self.target {
            return None;
        }
        if self.out.last().is_some_and(|c| !c.is_empty()) {
            self.out.push(Vec::new());
        }
        Some(())
    }

    fn redirect(&mut self) -> Option<()> {
        if self.peek(0) == Some('<') && self.peek(1) == Some('<') {
            return None;
        }
        while self.peek(0).is_some_and(|c| matches!(c, '<' | '>' | '&' | '|')) {
            self.at += 1;
        }
        self.target = true;
        Some(())
    }

    fn word(&mut self) -> Option<()> {
        let start = self.offset();
        let mut text = String::new();
        while let Some(c) = self.peek(0) {
            match c {
                '\\' => {
                    match self.peek(1)? {
                        '\n' => {}
                        c => text.push(c),
                    }
                    self.at += 2;
                }
                '\'' => {
                    self.at += 1;
                    loop {
                        let c = self.peek(0)?;
                        self.at += 1;
                        if c == '\'' {
                            break;
                        }
                        text.push(c);
                    }
                }
                '"' => self.double(&mut text)?,
                '$' => self.dollar(&mut text)?,
                '`' => self.backticks(&mut text)?,
                c if c.is_whitespace() || matches!(c, ';' | '|' | '&' | '<' | '>' | '(' | ')') => break,
                c => {
                    text.push(c);
                    self.at += 1;
                }
            }
        }
        let end = self.offset();
        let raw = self.text.get(start..end)?;
        // `2>&1`: the digits are no word.
        let descriptor =
            self.peek(0).is_some_and(|c| c == '<' || c == '>') && raw.bytes().all(|b| b.is_ascii_digit());
        if !descriptor && !std::mem::take(&mut self.target) {
            let token = Token { start, end, text, variable: variable(raw) };
            self.out.last_mut()?.push(token);
        }
        Some(())
    }

    fn double(&mut self, text: &mut String) -> Option<()> {
        self.at += 1;
        loop {
            match self.peek(0)? {
                '"' => {
                    self.at += 1;
                    return Some(());
                }
                '\\' => {
                    match self.peek(1)? {
                        '\n' => {}
                        c @ ('"' | '\\' | '$' | '`') => text.push(c),
                        c => text.extend(['\\', c]),
                    }
                    self.at += 2;
                }
                '$' => self.dollar(text)?,
                '`' => self.backticks(text)?,
                c => {
                    text.push(c);
                    self.at += 1;
                }
            }
        }
    }

    /// A variable or a command's output stays as it stands; quotes inside of it do not end the word.
    fn dollar(&mut self, text: &mut String) -> Option<()> {
        let close = match self.peek(1) {
            Some('(') => ')',
            Some('{') => '}',
            _ => {
                text.push('$');
                self.at += 1;
                return Some(());
            }
        };
        let open = self.peek(1)?;
        let mut depth = 0;
        loop {
            let c = self.peek(0)?;
            text.push(c);
            self.at += 1;
            if c == open {
                depth += 1;
            } else if c == close {
                depth -= 1;
                if depth == 0 {
                    return Some(());
                }
            }
        }
    }

    fn backticks(&mut self, text: &mut String) -> Option<()> {
        text.push('`');
        self.at += 1;
        loop {
            let c = self.peek(0)?;
            text.push(c);
            self.at += 1;
            if c == '`' {
                return Some(());
            }
        }
    }
}

/// The variable that a word as it is written consists of.
pub(super) fn variable(raw: &str) -> Option<Variable> {
    let inner = raw.strip_prefix('"').and_then(|r| r.strip_suffix('"'));
    let (body, quoted) = inner.map_or((raw, false), |i| (i, true));
    let body = body.strip_prefix('$')?;
    let braces = body.strip_prefix('{').and_then(|b| b.strip_suffix('}'));
    let parens = body.strip_prefix('(').and_then(|b| b.strip_suffix(')'));
    let name = parens.or(braces).unwrap_or(body);
    let named = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    let all = parens.is_none() && (name == "@" || name == "*");
    let name = if all { "@" } else { name };
    (named || all).then(|| Variable { name: name.to_owned(), quoted, kubernetes: parens.is_some() })
}

/// A value as a word of a shell text. What needs no quotes gets none.
pub(super) fn quote(value: &str) -> String {
    if is_safe(value) { value.to_owned() } else { format!("'{}'", value.replace('\'', "'\\''")) }
}

/// Whether it means the same with quotes of either kind, and without.
pub(super) fn is_safe(value: &str) -> bool {
    !value.is_empty() && value.bytes().all(|b| b.is_ascii_alphanumeric() || b"_.,:/@%+=-".contains(&b))
}

/// A word as it is written with another value, in the quotes that it had.
pub(super) fn rewrite(raw: &str, value: &str) -> String {
    let quotes = ['"', '\''].into_iter().find(|q| raw.len() > 1 && raw.starts_with(*q) && raw.ends_with(*q));
    match quotes.filter(|_| is_safe(value)) {
        Some(q) => format!("{q}{value}{q}"),
        None => quote(value),
    }
}

/// The same for `--flag=value`: what stands before the value keeps its quotes.
pub(super) fn rewrite_attached(raw: &str, value: &str) -> String {
    let Some((name, old)) = raw.split_once('=') else { return quote(value) };
    let quotes: Vec<char> = name.chars().filter(|c| matches!(c, '"' | '\'')).collect();
    match quotes.as_slice() {
        // The quote that the name opened ends behind the value.
        [q] if is_safe(value) && name.starts_with(*q) => format!("{name}={value}{q}"),
        // Closed before the value.
        quotes if quotes.len() % 2 == 0 => format!("{name}={}", rewrite(old, value)),
        _ => quote(&format!("{}={value}", name.replace(['"', '\''], ""))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(text: &str) -> Option<Vec<Vec<String>>> {
        Some(commands(text)?.into_iter().map(|c| c.into_iter().map(|t| t.text).collect()).collect())
    }

    #[test]
    fn words_of_a_start_script() {
        let text = "#!/bin/sh\nset -e # vllm serve x\nexport A='b c' && exec vllm serve \"$MODEL\" \\\n  --max-model-len \
            ${LEN:-\"4096\"} 2>&1 | tee /tmp/log >/dev/null & wait";
        let got = texts(text).unwrap();
        assert_eq!(got[0], ["set", "-e"]);
        assert_eq!(got[1], ["export", "A=b c"]);
        assert_eq!(got[2], ["exec", "vllm", "serve", "$MODEL", "--max-model-len", "${LEN:-\"4096\"}"]);
        assert_eq!(got[3..], [vec!["tee", "/tmp/log"], vec!["wait"]]);
        for not in ["cat <<E\nx\nE\nvllm serve", "vllm serve 'a", "vllm serve \"a", "vllm $(a"] {
            assert_eq!(commands(not), None, "{not}");
        }
    }

    #[test]
    fn a_word_that_is_a_variable() {
        let of = |raw: &str| variable(raw).map(|v| (v.name, v.quoted, v.kubernetes));
        assert_eq!(of("\"$@\""), Some(("@".into(), true, false)));
        assert_eq!(of("${VLLM_ARGS}"), Some(("VLLM_ARGS".into(), false, false)));
        assert_eq!(of("$(VLLM_ARGS)"), Some(("VLLM_ARGS".into(), false, true)));
        for none in ["$(cat x)", "${A:-1}", "a$B", "'$A'", "$", "$1"] {
            assert_eq!(of(none), None, "{none}");
        }
    }

    #[test]
    fn quotes_stay() {
        for (raw, want) in [("1", "8"), ("'1'", "'8'"), ("\"$X\"", "\"8\""), ("a\"b\"", "8")] {
            assert_eq!(rewrite(raw, "8"), want);
        }
        assert_eq!(rewrite("'1'", "it's"), "'it'\\''s'");
        for (raw, want) in [
            ("--a=1", "--a=8"),
            ("--a=\"1\"", "--a=\"8\""),
            ("\"--a=1\"", "\"--a=8\""),
            ("'--a'=1", "'--a'=8"),
            ("-\"-a=1\"", "--a=8"),
        ] {
            assert_eq!(rewrite_attached(raw, "8"), want);
        }
    }
}
