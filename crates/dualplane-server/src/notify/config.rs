//! The file of `--notify`: who is told what. Secrets stand in files of their own and never in it.

use std::path::{Path, PathBuf};

use dualplane_incidents::Filter;
use dualplane_notify::{Channel, Policy, guard};
use serde::Deserialize;

/// Bytes of a secret.
const SECRET: u64 = 4096;

/// What the file says, checked.
#[derive(Debug, Clone)]
pub struct Config {
    /// Where people reach this server.
    pub url: String,
    /// Hosts that may lie inside, and be spoken to without TLS.
    pub allow_hosts: Vec<String>,
    /// Who is told.
    pub channels: Vec<Target>,
}

/// A channel.
#[derive(Debug, Clone)]
pub struct Target {
    /// Its name.
    pub name: String,
    /// Its service.
    pub kind: Channel,
    /// When it is told.
    pub policy: Policy,
    /// Of what.
    pub filter: Filter,
    /// For e-mail.
    pub email: Option<Email>,
    url: Option<String>,
    url_file: Option<PathBuf>,
    secret_file: Option<PathBuf>,
}

/// How mail is sent.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Email {
    /// HOST:PORT; 465 speaks TLS from the start, all others by STARTTLS.
    pub server: String,
    /// From whom.
    pub from: String,
    /// To whom.
    pub to: Vec<String>,
    /// Who logs in, with the secret as password.
    #[serde(default)]
    pub user: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    url: String,
    #[serde(default)]
    allow_hosts: Vec<String>,
    #[serde(default)]
    channel: Vec<Row>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    name: String,
    kind: Channel,
    url: Option<String>,
    url_file: Option<PathBuf>,
    secret_file: Option<PathBuf>,
    #[serde(default)]
    filter: String,
    repeat_after_hours: Option<u32>,
    per_hour: Option<usize>,
    #[serde(default)]
    quiet: Vec<String>,
    hardware_always: Option<bool>,
    email: Option<Email>,
}

impl Config {
    /// Reads and checks the file; the secrets' files must be there.
    ///
    /// # Errors
    /// A sentence: what is wrong where.
    pub fn load(path: &Path) -> Result<Self, String> {
        let text =
            std::fs::read_to_string(path).map_err(|e| format!("cannot read {}: {e}", path.display()))?;
        Self::parse(&text).map_err(|e| format!("{}: {e}", path.display()))
    }

    /// The same of a text.
    ///
    /// # Errors
    /// As [`Self::load`].
    pub fn parse(text: &str) -> Result<Self, String> {
        let file: File = toml::from_str(text).map_err(|e| e.to_string())?;
        if !(file.url.starts_with("https://") || file.url.starts_with("http://")) {
            return Err(
                "url: give the address at which people reach this server, like https://dualplane.example.com"
                    .to_owned(),
            );
        }
        let mut channels: Vec<Target> = Vec::new();
        for row in file.channel {
            let name = row.name.clone();
            if channels.iter().any(|c| c.name == name) {
                return Err(format!("two channels are called {name}: give each its own name"));
            }
            let target = Target::of(row).map_err(|e| format!("channel {name}: {e}"))?;
            target.check(&file.allow_hosts).map_err(|e| format!("channel {name}: {e}"))?;
            channels.push(target);
        }
        if channels.is_empty() {
            return Err("it names no channel: add a [[channel]] with name, kind and where to send".to_owned());
        }
        Ok(Self { url: file.url, allow_hosts: file.allow_hosts, channels })
    }
}

impl Target {
    fn of(row: Row) -> Result<Self, String> {
        let usual = Policy::default();
        let quiet =
            row.quiet.iter().map(|q| q.parse().map_err(|e: dualplane_notify::QuietError| e.to_string()));
        let hours = |h: u32| i64::from(h).saturating_mul(3_600_000);
        let policy = Policy {
            repeat_after_ms: row.repeat_after_hours.map_or(usual.repeat_after_ms, hours),
            per_hour: row.per_hour.unwrap_or(usual.per_hour),
            quiet: quiet.collect::<Result<_, _>>()?,
            hardware_always: row.hardware_always.unwrap_or(usual.hardware_always),
        };
        let filter = Filter::parse(&row.filter).map_err(|e| format!("filter: {e}"))?;
        let Row { name, kind, url, url_file, secret_file, email, .. } = row;
        match (kind, &email, &url, &url_file) {
            (Channel::Email, None, ..) => {
                return Err("add [channel.email] with server, from and to".to_owned());
            }
            (Channel::Email, Some(e), ..) if e.to.is_empty() => return Err("email: to is empty".to_owned()),
            (Channel::Email, Some(e), ..) if e.to.iter().chain([&e.from]).any(|a| !is_address(a)) => {
                return Err("email: write addresses as NAME@HOST".to_owned());
            }
            (Channel::Email, ..) => {}
            (_, _, Some(_), Some(_)) => return Err("give url or url_file, not both".to_owned()),
            (k, _, None, None) if k.default_url().is_none() => {
                return Err("give url_file (the address of a webhook is its secret), or url where the address tells nothing".to_owned());
            }
            _ => {}
        }
        if matches!(kind, Channel::Pagerduty | Channel::Opsgenie) && secret_file.is_none() {
            return Err("give secret_file: the key of the integration".to_owned());
        }
        Ok(Self { name, kind, policy, filter, email, url, url_file, secret_file })
    }

    fn check(&self, allowed: &[String]) -> Result<(), String> {
        self.secret()?;
        if self.kind != Channel::Email {
            guard::host(&self.url()?, allowed).map_err(|e| e.to_string())?;
        }
        Ok(())
    }

    /// Where to send; read anew each time, as secrets are renewed.
    ///
    /// # Errors
    /// Its file cannot be read.
    pub fn url(&self) -> Result<String, String> {
        match (&self.url, &self.url_file) {
            (Some(url), _) => Ok(url.clone()),
            (None, Some(file)) => read(file),
            (None, None) => Ok(self.kind.default_url().unwrap_or_default().to_owned()),
        }
    }

    /// Its secret.
    ///
    /// # Errors
    /// Its file cannot be read.
    pub fn secret(&self) -> Result<Option<String>, String> {
        self.secret_file.as_deref().map(read).transpose()
    }

    /// Where it sends, without telling a secret.
    #[must_use]
    pub fn told(&self) -> String {
        match (&self.email, &self.url, &self.url_file) {
            (Some(e), ..) => e.to.join(", "),
            (_, Some(url), _) => url.clone(),
            (_, _, Some(file)) => format!("the address in {}", file.display()),
            _ => self.kind.default_url().unwrap_or_default().to_owned(),
        }
    }
}

fn is_address(text: &str) -> bool {
    let fits = |c: char| c.is_ascii_graphic() && !matches!(c, '<' | '>' | ',' | ';' | '"' | '(' | ')' | '\\');
    text.split_once('@').is_some_and(|(name, host)| !name.is_empty() && !host.is_empty())
        && text.chars().all(fits)
}

fn read(path: &Path) -> Result<String, String> {
    let told = |e: &dyn std::fmt::Display| format!("cannot read the secret in {}: {e}", path.display());
    if std::fs::metadata(path).map_err(|e| told(&e))?.len() > SECRET {
        return Err(told(&"it is larger than any secret"));
    }
    let text = std::fs::read_to_string(path).map_err(|e| told(&e))?;
    let text = text.trim().to_owned();
    if text.is_empty() || text.chars().any(char::is_control) {
        return Err(told(&"it holds no secret, or more than one line"));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_is_said() {
        let base = "url = \"https://d.example\"\n";
        for (text, want) in [
            ("", "missing field `url`"),
            ("url = \"d.example\"", "give the address at which people"),
            (base, "names no channel"),
            (&format!("{base}[[channel]]\nname = \"a\"\nkind = \"slack\""), "give url_file"),
            (&format!("{base}[[channel]]\nname = \"a\"\nkind = \"icq\""), "unknown variant"),
            (
                &format!("{base}[[channel]]\nname = \"a\"\nkind = \"slack\"\nurl = \"http://127.0.0.1/\""),
                "only https",
            ),
            (
                &format!("{base}[[channel]]\nname = \"a\"\nkind = \"webhook\"\nurl = \"https://u:p@h/\""),
                "must not hold a user",
            ),
            (&format!("{base}[[channel]]\nname = \"a\"\nkind = \"pagerduty\""), "give secret_file"),
            (&format!("{base}[[channel]]\nname = \"a\"\nkind = \"email\""), "add [channel.email]"),
            (
                &format!(
                    "{base}[[channel]]\nname = \"a\"\nkind = \"webhook\"\nurl = \"https://h/\"\nfilter = \"nodes=x\""
                ),
                "no filter is called",
            ),
            (
                &format!(
                    "{base}[[channel]]\nname = \"a\"\nkind = \"webhook\"\nurl = \"https://h/\"\nquiet = [\"night\"]"
                ),
                "quiet hours are written",
            ),
            (
                &format!(
                    "{base}[[channel]]\nname = \"a\"\nkind = \"webhook\"\nurl = \"https://h/\"\nsecret_file = \"/no/such\""
                ),
                "/no/such",
            ),
        ] {
            let told = Config::parse(text).unwrap_err();
            assert!(told.contains(want), "{told}, not {want}");
        }
        let good = format!(
            "{base}allow_hosts = [\"am\"]\n[[channel]]\nname = \"a\"\nkind = \"alertmanager\"\nurl = \"http://am:9093/api/v2/alerts\"\nquiet = [\"mo-fr 22:00-07:00\"]"
        );
        assert_eq!(Config::parse(&good).unwrap().channels.len(), 1);
    }
}
