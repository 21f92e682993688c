//! Colour for terminals, nothing elsewhere.

/// Whether to colour.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Style {
    /// Write ANSI colours.
    pub colour: bool,
    /// All citations instead of one screen.
    pub verbose: bool,
    /// Columns to wrap at.
    pub width: usize,
}

impl Style {
    fn paint(self, code: &str, text: &str) -> String {
        if self.colour { format!("\u{1b}[{code}m{text}\u{1b}[0m") } else { text.to_owned() }
    }

    /// Bold.
    #[must_use]
    pub fn bold(self, text: &str) -> String {
        self.paint("1", text)
    }

    /// Dim.
    #[must_use]
    pub fn dim(self, text: &str) -> String {
        self.paint("2", text)
    }

    /// Host, GPU and hardware have colours of their own, so that the plane is seen before it is read.
    #[must_use]
    pub fn plane(self, plane: crate::Plane, text: &str) -> String {
        use crate::Plane;
        let code = match plane {
            Plane::Host => "1;33",
            Plane::Gpu => "1;35",
            Plane::Hardware => "1;31",
            Plane::None => "1;36",
        };
        self.paint(code, text)
    }

    /// Green.
    #[must_use]
    pub fn good(self, text: &str) -> String {
        self.paint("32", text)
    }

    /// Red.
    #[must_use]
    pub fn bad(self, text: &str) -> String {
        self.paint("31", text)
    }
}

/// Wraps at blanks; continuation lines are indented. Words longer than a line stay whole, so that they can be copied.
#[must_use]
pub fn wrap(text: &str, width: usize, first: &str, next: &str) -> String {
    let mut out = String::from(first);
    let mut column = first.chars().count();
    let mut fresh = true;
    for word in text.split_whitespace() {
        let len = word.chars().count();
        if !fresh && column + 1 + len > width {
            out.push('\n');
            out.push_str(next);
            column = next.chars().count();
            fresh = true;
        }
        if !fresh {
            out.push(' ');
            column += 1;
        }
        out.push_str(word);
        column += len;
        fresh = false;
    }
    out
}

/// Breaks behind blanks and keeps every one of them: for quoted lines. A word longer than a line is cut.
#[must_use]
pub fn hard_wrap(text: &str, columns: usize, first: &str, next: &str) -> String {
    let columns = columns.max(1);
    let mut out = String::from(first);
    let mut used = 0;
    for word in text.split_inclusive(' ') {
        let visible = word.trim_end_matches(' ').chars().count();
        if used > 0 && used + visible > columns {
            out.push('\n');
            out.push_str(next);
            used = 0;
        }
        for c in word.chars() {
            if used >= columns && c != ' ' {
                out.push('\n');
                out.push_str(next);
                used = 0;
            }
            out.push(c);
            used += 1;
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrapping_keeps_words_and_quotes_keep_blanks() {
        assert_eq!(wrap("aa bb  cc", 6, "- ", "  "), "- aa\n  bb\n  cc");
        assert_eq!(wrap("a-very-long-word b", 6, "", " "), "a-very-long-word\n b");
        assert_eq!(hard_wrap("ab  cd", 4, ">", " "), ">ab  \n cd");
        assert_eq!(hard_wrap("abcdef gh", 4, "", ""), "abcd\nef \ngh");
    }
}
