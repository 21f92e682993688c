//! A tree of lines with their sources. Everything printed here comes from a cluster, so it is made harmless here.

use dualplane_base::style::Style;
use dualplane_base::text::printable;

/// How a line is shown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Tone {
    #[default]
    Plain,
    /// What the eye should find: pods, devices, nodes.
    Name,
    /// What is wrong.
    Bad,
}

/// A line and what hangs on it.
#[derive(Debug, Default)]
pub(super) struct Branch {
    pub(super) label: String,
    pub(super) text: String,
    pub(super) tone: Tone,
    /// Who told it.
    pub(super) source: String,
    pub(super) children: Vec<Branch>,
}

impl Branch {
    pub(super) fn new(label: &str, text: impl Into<String>) -> Self {
        Self { label: label.to_owned(), text: text.into(), ..Self::default() }
    }

    pub(super) fn name(label: &str, text: impl Into<String>) -> Self {
        Self { tone: Tone::Name, ..Self::new(label, text) }
    }

    pub(super) fn told(mut self, source: impl Into<String>) -> Self {
        self.source = source.into();
        self
    }
}

/// Draws a tree; its root stands at the edge.
pub(super) fn draw(root: &Branch, style: Style, out: &mut String) {
    line(root, ("", ""), 0, style, out);
    children(root, "", style, out);
}

fn children(of: &Branch, before: &str, style: Style, out: &mut String) {
    // Values of one level begin in one column; names of devices and pods are no values.
    let values = of.children.iter().filter(|c| c.tone != Tone::Name);
    let pad = values.map(|c| printable(&c.label).chars().count()).max().unwrap_or(0).min(24);
    for (i, c) in of.children.iter().enumerate() {
        let last = i + 1 == of.children.len();
        let first = format!("{before}{}", if last { "└─ " } else { "├─ " });
        let next = format!("{before}{}", if last { "   " } else { "│  " });
        // A line of its own below still hangs above the children.
        let below = format!("{next}{}", if c.children.is_empty() { "   " } else { "│  " });
        line(c, (&first, &below), if c.tone == Tone::Name { 0 } else { pad }, style, out);
        children(c, &next, style, out);
    }
}

fn line(b: &Branch, (first, below): (&str, &str), pad: usize, style: Style, out: &mut String) {
    let (label, text, source) = (printable(&b.label), printable(&b.text), printable(&b.source));
    let gap = if label.is_empty() {
        0
    } else {
        pad.saturating_sub(label.chars().count()) + if b.tone == Tone::Name { 1 } else { 2 }
    };
    let painted = match b.tone {
        Tone::Plain => text.clone().into_owned(),
        Tone::Name => style.bold(&text),
        Tone::Bad => style.bad(&text),
    };
    out.push_str(&style.dim(first));
    out.push_str(&style.dim(&label));
    out.push_str(&" ".repeat(gap));
    out.push_str(&painted);
    if !source.is_empty() {
        let source = format!("[{source}]");
        let used = first.chars().count() + label.chars().count() + gap + text.chars().count();
        // A source that does not fit stands below its value, so that values stay whole and can be copied.
        if used + 2 + source.chars().count() > style.width {
            out.push('\n');
            out.push_str(&style.dim(below));
            out.push_str(&style.dim(&source));
        } else {
            out.push_str("  ");
            out.push_str(&style.dim(&source));
        }
    }
    out.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn branches_hang_together_and_escapes_are_shown() {
        let mut pod = Branch::name("pod", "a/b\u{1b}[31m");
        let mut c = Branch::name("container", "c");
        c.children.push(Branch::new("model", "m").told("x"));
        c.children
            .push(Branch::new("engine", "vLLM").told("a source that is much too long for one line of sixty"));
        pod.children.push(c);
        pod.children.push(Branch::name("node", "n"));
        let mut out = String::new();
        draw(&pod, Style { width: 60, ..Style::default() }, &mut out);
        let want = "pod a/b\\u{1b}[31m\n\
                    ├─ container c\n\
                    │  ├─ model   m  [x]\n\
                    │  └─ engine  vLLM\n\
                    │        [a source that is much too long for one line of sixty]\n\
                    └─ node n\n";
        assert_eq!(out, want);
    }
}
