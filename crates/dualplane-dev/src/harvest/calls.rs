//! Collects the message of a call: strings in a row are one text, and what is computed between them is a hole.

use std::collections::HashMap;

use super::heads::{Head, Severity, Shape, head};
use super::lex::{Kind, Language, Token, tokens};
use super::template::Template;

/// A call whose arguments go on longer than this many tokens is no message.
const LONGEST_CALL: usize = 800;
/// A message that was put into a variable is raised within so many lines.
const NEAR: u32 = 40;
/// Parentheses in a message that are nested deeper are not followed.
const DEEPEST: u32 = 16;
/// Calls that give their strings on: what they are given is part of the message.
const TRANSPARENT: &[&str] = &[
    "str",
    "string",
    "format",
    "Sprintf",
    "Sprint",
    "dedent",
    "fmtstr",
    "StrCat",
    "String",
    "msg",
    "c_str",
    "runtime_error",
    "_",
    "stringstream",
    "concat",
    "join",
    "PSTR",
    "KERN_ERR",
    "Errorf",
    "Msg",
    "f",
];

/// A message of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) line: u32,
    pub(super) severity: Severity,
    pub(super) template: String,
}

/// All messages of a source text.
pub(super) fn messages(source: &str, language: Language) -> Vec<Found> {
    let all = tokens(source, language);
    let mut found = Vec::new();
    // Messages that wait in variables: name, line, template.
    let mut waiting: HashMap<&str, (u32, Template)> = HashMap::new();
    for (i, token) in all.iter().enumerate() {
        let Some(word) = token.word() else { continue };
        if let Some(text) = assigned(&all, i, language) {
            waiting.insert(word, (token.line, text));
        }
        let Some(head) = head(&all, i, language) else { continue };
        let mut message = collect(&all, &head, language);
        if message.is_empty()
            && let Some((line, text)) = alone(&all, head.at).and_then(|name| waiting.get(name))
            && token.line.saturating_sub(*line) <= NEAR
        {
            message = text.clone();
        }
        if message.says_something() {
            found.push(Found { line: token.line, severity: head.severity, template: message.written() });
        }
    }
    found
}

/// `name = "..."` or `name = ("..." "...")`.
fn assigned(all: &[Token], i: usize, language: Language) -> Option<Template> {
    let is = |n: usize, c: char| all.get(i + n).is_some_and(|t| t.is(c));
    let mut from = i + 1;
    if is(1, ':') && is(2, '=') {
        from += 1;
    }
    if !all.get(from)?.is('=') {
        return None;
    }
    from += 1;
    let wrapped = all.get(from)?.is('(');
    let first = all.get(from + usize::from(wrapped))?;
    let transparent = first.word().is_some_and(|w| TRANSPARENT.contains(&w));
    if first.text().is_none() && !transparent {
        return None;
    }
    let head = Head { severity: Severity::Raise, shape: Shape::Format, at: from };
    let text = if wrapped { collect(all, &head, language) } else { statement(all, from, language, false, 0) };
    text.says_something().then_some(text)
}

/// The only argument of a call, if it is a name.
fn alone(all: &[Token], at: usize) -> Option<&str> {
    let name = all.get(at + 1)?.word()?;
    let closed = all.get(at + 2)?;
    (closed.is(')') || closed.is(',')).then_some(name)
}

fn collect(all: &[Token], head: &Head, language: Language) -> Template {
    match head.shape {
        Shape::Format | Shape::Joined => arguments(all, head.at, head.shape, language, 0).0,
        Shape::Assert => {
            let mut open = 0_u32;
            for (n, token) in all.iter().enumerate().skip(head.at).take(LONGEST_CALL) {
                match token.kind {
                    Kind::Sign('(' | '[' | '{') => open += 1,
                    Kind::Sign(')' | ']' | '}') => open = open.saturating_sub(1),
                    Kind::Sign('\n') if open == 0 => break,
                    Kind::Sign(',') if open == 0 => return statement(all, n + 1, language, false, 0),
                    _ => {}
                }
            }
            Template::default()
        }
        Shape::Stream => {
            let call = all.get(head.at).is_some_and(|t| t.is('('));
            let from = if call { balanced(all, head.at) } else { head.at };
            statement(all, from, language, true, 0)
        }
    }
}

/// Index behind the bracket that closes the one at `open`.
fn balanced(all: &[Token], open: usize) -> usize {
    let mut depth = 0_u32;
    for (n, token) in all.iter().enumerate().skip(open).take(LONGEST_CALL) {
        match token.kind {
            Kind::Sign('(' | '[' | '{') => depth += 1,
            Kind::Sign(')' | ']' | '}') => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return n + 1;
                }
            }
            _ => {}
        }
    }
    open + LONGEST_CALL
}

/// A text up to the end of its statement.
fn statement(all: &[Token], from: usize, language: Language, stream: bool, depth: u32) -> Template {
    let mut message = Template::default();
    let mut n = from;
    while let Some(token) = all.get(n).filter(|_| n < from + LONGEST_CALL) {
        if matches!(token.kind, Kind::Sign(';' | '\n' | '}')) {
            break;
        }
        n = piece(all, n, &mut message, language, !stream, depth);
    }
    if !stream {
        return message;
    }
    // A macro behind which nothing is streamed runs into what follows.
    if all.get(from).is_some_and(|t| t.is('<')) { message } else { Template::default() }
}

/// The message in the arguments of a call, and the index behind them.
fn arguments(all: &[Token], open: usize, shape: Shape, language: Language, depth: u32) -> (Template, usize) {
    let mut message = Template::default();
    let mut has_text = false;
    let mut done = false;
    let mut n = open + 1;
    while let Some(token) = all.get(n).filter(|_| n < open + LONGEST_CALL) {
        if token.is(')') {
            n += 1;
            break;
        }
        if token.is(',') {
            if !has_text {
                // A condition, a stream, a level: what stands before the message.
                message = Template::default();
            } else if shape == Shape::Format || message.is_format() {
                done = true;
            }
            n += 1;
            continue;
        }
        if done {
            n = step(all, n);
            continue;
        }
        n = piece(all, n, &mut message, language, true, depth);
        has_text = message.has_text();
    }
    // `CHECK(x) << "..."`: more behind the parenthesis.
    if all.get(n).is_some_and(|t| t.is('<'))
        && all.get(n + 1).is_some_and(|t| t.is('<'))
        && shape == Shape::Joined
    {
        let more = statement(all, n, language, true, depth);
        return (more, n);
    }
    (if has_text { message } else { Template::default() }, n)
}

/// Index behind one token, or behind the brackets that it opens.
fn step(all: &[Token], n: usize) -> usize {
    if all.get(n).is_some_and(|t| matches!(t.kind, Kind::Sign('(' | '[' | '{'))) {
        balanced(all, n)
    } else {
        n + 1
    }
}

/// Adds one piece of an expression, and says where the next begins.
fn piece(
    all: &[Token],
    n: usize,
    message: &mut Template,
    language: Language,
    format: bool,
    depth: u32,
) -> usize {
    let Some(token) = all.get(n) else { return n + 1 };
    let next = |c: char| all.get(n + 1).is_some_and(|t| t.is(c));
    match &token.kind {
        Kind::Text(literal) => {
            message.add(literal, format);
            if next('.') && all.get(n + 3).is_some_and(|t| t.is('(')) {
                // `.format(...)`, `.strip()`, `.to_string()`.
                return balanced(all, n + 3);
            }
            if next('%') && language == Language::Python {
                let named = all.get(n + 2).is_some_and(|t| t.is('('));
                return if named { balanced(all, n + 2) } else { n + 3 };
            }
            n + 1
        }
        Kind::Word(word) => {
            let macro_call = next('!') && all.get(n + 2).is_some_and(|t| t.is('('));
            let open = if macro_call { n + 2 } else { n + 1 };
            if all.get(open).is_some_and(|t| t.is('(')) {
                if depth < DEEPEST && TRANSPARENT.contains(&word.as_str()) {
                    let (inner, end) = arguments(all, open, Shape::Joined, language, depth + 1);
                    if !inner.is_empty() {
                        message.extend(inner);
                        return end.max(open + 1);
                    }
                }
                message.hole();
                return balanced(all, open);
            }
            // `std::endl`, and the qualification of a name.
            if word == "endl" || next(':') {
                return n + 1;
            }
            if !next('.') && word != "std" {
                message.hole();
            }
            n + 1
        }
        Kind::Sign('(') if depth < DEEPEST => {
            let (inner, end) = arguments(all, n, Shape::Joined, language, depth + 1);
            if inner.is_empty() {
                message.hole()
            } else {
                message.extend(inner)
            }
            end.max(n + 1)
        }
        Kind::Sign('(' | '[' | '{') => balanced(all, n),
        Kind::Sign(_) => n + 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(source: &str, language: Language) -> Vec<(&'static str, String)> {
        messages(source, language).into_iter().map(|m| (m.severity.as_str(), m.template)).collect()
    }

    fn one(source: &str, language: Language, severity: &str, template: &str) {
        assert_eq!(all(source, language), [(severity_of(severity), template.to_owned())], "{source}");
    }

    fn severity_of(name: &str) -> &'static str {
        [Severity::Panic, Severity::Exit, Severity::Raise, Severity::Error, Severity::Warning]
            .map(Severity::as_str)
            .into_iter()
            .find(|s| *s == name)
            .unwrap()
    }

    #[test]
    fn python() {
        for (source, severity, template) in [
            (
                "raise ValueError(\"No available memory for the cache blocks. \"\n  f\"Try {x!r} now\") from e\n",
                "raise",
                "No available memory for the cache blocks. Try {} now",
            ),
            (
                "raise torch.OutOfMemoryError(\"not enough memory: %d of %s\" % (a, b))\n",
                "raise",
                "not enough memory: {d} of {s}",
            ),
            (
                "msg = (\"memory is {} full, \"\n  \"again\".format(x))\nraise E(msg)\n",
                "raise",
                "memory is {} full, again",
            ),
            ("logger.error(\"Worker %d died with %s\", a, \"b\")\n", "error", "Worker {d} died with {s}"),
            (
                "logging.getLogger(__name__).warning(\"something odd: \" + str(x) + \" here\")\n",
                "warning",
                "something odd: {} here",
            ),
            (
                "warnings.warn(\n  f\"max_num {a['k']} too large\", stacklevel=2)\n",
                "warning",
                "max_num {} too large",
            ),
            ("assert a == (b, c), f\"sizes differ: {a}\"\nx = 1\n", "raise", "sizes differ: {}"),
            ("sys.exit(\"cannot start the server\")\n", "exit", "cannot start the server"),
            ("self.logger.critical('engine core %s failed', n)\n", "exit", "engine core {s} failed"),
        ] {
            one(source, Language::Python, severity, template);
        }
        assert!(
            all("logger.info('all is well here')\nassert x\nprint('raise this error')\n", Language::Python)
                .is_empty()
        );
    }

    #[test]
    fn c() {
        for (source, severity, template) in [
            (
                "TORCH_CHECK(x > 0, \"CUDA out of memory. Tried \", format_size(n), \" more\");",
                "raise",
                "CUDA out of memory. Tried {} more",
            ),
            ("GGML_ABORT(\"failed to allocate %zu bytes\", n);", "panic", "failed to allocate {d} bytes"),
            (
                "LLAMA_LOG_ERROR(\"%s: failed at %\" PRIu64 \" bytes\\n\", __func__, n);",
                "error",
                "{s}: failed at {} bytes",
            ),
            ("TLLM_CHECK_WITH_INFO(a, \"no %s free, \" \"sorry\", b);", "raise", "no {s} free, sorry"),
            (
                "LOG(FATAL) << \"Check \" << a->b() << \" failed again\"; f(\"x\");",
                "exit",
                "Check {} failed again",
            ),
            ("RAY_CHECK(ok) << \"store is full: \" << n;", "raise", "store is full: {}"),
            ("throw std::runtime_error(fmtstr(\"cannot load %s\", p));", "raise", "cannot load {s}"),
            (
                "throw OomError(std::string(\"no memory for \") + name + \" left\");",
                "raise",
                "no memory for {} left",
            ),
            ("fprintf(stderr, \"%s: out of host memory\\n\", __func__);", "error", "{s}: out of host memory"),
            (
                "dev_err(adev->dev, \"ring %s timeout, signaled seq=%u\", a, b);",
                "error",
                "ring {s} timeout, signaled seq={d}",
            ),
            ("drm_warn(&xe->drm, \"GT%d: reset failed\", id);", "warning", "GT{d}: reset failed"),
            ("NV_PRINTF(LEVEL_ERROR, \"GPU lost from the bus\");", "error", "GPU lost from the bus"),
            ("LOG_ERROR << \"something is \" << x << std::endl;", "error", "something is {}"),
            ("WARN(\"Cuda failure %d '%s'\", err, s);", "warning", "Cuda failure {d} '{s}'"),
            (
                "LOG_MESSAGE(TRITONSERVER_LOG_ERROR, (std::string(\"failed to stop: \") + e).c_str());",
                "error",
                "failed to stop: {}",
            ),
        ] {
            one(source, Language::C, severity, template);
        }
        assert!(all("NV_PRINTF(LEVEL_INFO, \"all is well\"); printf(\"all is well\"); LOG(INFO) << \"all is well\";", Language::C).is_empty());
    }

    #[test]
    fn go_rust_java() {
        for (language, source, severity, template) in [
            (Language::Go, "return fmt.Errorf(\"OOM killed: %w\", err)", "raise", "OOM killed: {}"),
            (
                Language::Go,
                "klog.ErrorS(err, \"Failed to evict the pod\", \"pod\", p)",
                "error",
                "Failed to evict the pod",
            ),
            (Language::Go, "slog.Warn(\"model too large\", \"n\", n)", "warning", "model too large"),
            (Language::Go, "log.Fatalf(\"cannot listen: %v\", err)", "exit", "cannot listen: {}"),
            (
                Language::Go,
                "c.recorder.Eventf(ref, v1.EventTypeWarning, \"OOM\", \"System OOM encountered, pid: %d\", p)",
                "error",
                "OOM",
            ),
            (Language::Rust, "bail!(\"no memory for {n:?} {}\", x)", "raise", "no memory for {} {}"),
            (
                Language::Rust,
                "tracing::error!(\"Shard {rank} failed to start\")",
                "error",
                "Shard {} failed to start",
            ),
            (Language::Rust, "#[error(\"Model is overloaded: {0}\")]", "raise", "Model is overloaded: {}"),
            (
                Language::Java,
                "throw new WorkerInitializationException(\"worker died: \" + name, e);",
                "raise",
                "worker died: {}",
            ),
            (
                Language::Java,
                "logger.error(\"Backend worker error {}\", e);",
                "error",
                "Backend worker error {}",
            ),
        ] {
            let found = all(source, language);
            if template == "OOM" {
                assert!(found.iter().all(|(s, _)| *s == severity), "{found:?}");
            } else {
                assert_eq!(found, [(severity_of(severity), template.to_owned())], "{source}");
            }
        }
    }

    #[test]
    fn hostile_input_ends() {
        let deep = "(".repeat(20_000);
        for language in [Language::Python, Language::C, Language::Go, Language::Rust, Language::Java] {
            for source in [
                format!("raise E{deep}\"a"),
                format!("logger.error({deep}"),
                format!("assert {deep}"),
                format!("throw E{deep}"),
            ] {
                messages(&source, language);
            }
        }
    }
}
