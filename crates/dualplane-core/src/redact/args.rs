//! Command lines as lists, where a value stands in the element behind its flag: `["--api-key", "…"]`, `["-u", "me:…"]`.

use serde_json::Value;

use super::Redactor;
use super::name::{is_harmless, judge};
use crate::knowledge::SecretName;

/// Keys of lists that hold a command line or an environment.
pub(super) fn is_command(key: &str) -> bool {
    const KEYS: &[&str] = &["command", "args", "argv", "cmd", "entrypoint", "env", "arguments"];
    KEYS.iter().any(|k| key.eq_ignore_ascii_case(k))
}

impl Redactor<'_> {
    /// The elements of one command line.
    pub(super) fn args(&mut self, items: &mut [Value]) {
        let names = self.knowledge.names();
        let mut pending: Option<&SecretName> = None;
        let mut user = false;
        for item in items {
            let Value::String(arg) = item else {
                pending = None;
                self.walk(item);
                continue;
            };
            if let Some(rule) = pending {
                // A flag may take several values: it ends with the next flag.
                if !arg.starts_with('-') {
                    if !is_harmless(arg, rule) {
                        self.mask(arg, &rule.id);
                    }
                    continue;
                }
                pending = None;
            }
            if user
                && let Some((name, password)) =
                    arg.split_once(':').filter(|(n, p)| !n.contains(' ') && !p.is_empty())
            {
                let user_only =
                    password.bytes().all(|b| b.is_ascii_digit()) || password.starts_with("[redacted:");
                if !user_only {
                    *arg = format!("{name}:[redacted:url_password]");
                    self.note("url_password");
                }
                user = false;
                continue;
            }
            user = arg == "-u" || arg == "--user";
            let (name, value) = match arg.split_once('=') {
                Some((name, value)) => (name, Some(value)),
                None => (arg.as_str(), None),
            };
            let plain = name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'));
            let flag = name.starts_with('-');
            let rule = if plain && (flag || value.is_some()) {
                judge(names, name.trim_start_matches('-'), true)
            } else {
                None
            };
            match (rule, value) {
                (Some(rule), Some(value)) if !is_harmless(value, rule) => {
                    *arg = format!("{name}=[redacted:{}]", rule.id);
                    self.note(&rule.id);
                }
                (Some(rule), None) => pending = Some(rule),
                _ => self.string(arg),
            }
        }
    }
}
