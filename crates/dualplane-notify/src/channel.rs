//! The channels: each has a template in `knowledge/notify/`, and texts are escaped as the service that shows them needs.

use crate::fill::{Fills, fill};
use crate::mail;
use crate::notice::Notice;
use dualplane_base::text::{printable, shorten};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Where a secret stands in a body that needs one; the sender fills it in from a file, and a dry run shows it as it is.
const SECRET: &str = "{secret}";

/// A service that takes messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Channel {
    /// An incoming webhook of Slack, or of what understands its form (Mattermost, Rocket.Chat).
    Slack,
    /// A workflow of Microsoft Teams that takes an adaptive card.
    Teams,
    /// A webhook of Discord.
    Discord,
    /// Any address: `dualplane.notification/v1`.
    Webhook,
    /// `/api/v2/alerts` of Alertmanager.
    Alertmanager,
    /// Events v2 of PagerDuty.
    Pagerduty,
    /// Alerts v2 of Opsgenie.
    Opsgenie,
    /// A message as RFC 5322 writes it.
    Email,
}

/// What is sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Body {
    /// Its media type.
    pub media_type: &'static str,
    /// The text. A secret stands as `{secret}` in it, see [`Body::with_secret`].
    pub text: String,
    /// It has a place for a secret.
    pub needs_secret: bool,
}

impl Body {
    /// With its secret, as the text of a JSON string holds it; as it is where it has no place for one.
    #[must_use]
    pub fn with_secret(&self, secret: &str) -> Self {
        if !self.needs_secret {
            return self.clone();
        }
        let escaped = Value::from(secret.trim()).to_string();
        let inner = escaped.get(1..escaped.len().saturating_sub(1)).unwrap_or_default();
        // Braces of values are escaped where there is this place, so that the first is the place.
        Self { text: self.text.replacen(SECRET, inner, 1), ..self.clone() }
    }
}

impl Channel {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::Slack,
        Self::Teams,
        Self::Discord,
        Self::Webhook,
        Self::Alertmanager,
        Self::Pagerduty,
        Self::Opsgenie,
        Self::Email,
    ];

    /// Its name in a configuration.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Slack => "slack",
            Self::Teams => "teams",
            Self::Discord => "discord",
            Self::Webhook => "webhook",
            Self::Alertmanager => "alertmanager",
            Self::Pagerduty => "pagerduty",
            Self::Opsgenie => "opsgenie",
            Self::Email => "email",
        }
    }

    /// Where the service is reached when nothing else is said; an address that is the secret itself has none.
    #[must_use]
    pub fn default_url(self) -> Option<&'static str> {
        match self {
            Self::Pagerduty => Some("https://events.pagerduty.com/v2/enqueue"),
            Self::Opsgenie => Some("https://api.opsgenie.com/v2/alerts"),
            _ => None,
        }
    }

    /// The scheme of the header `Authorization` that carries its secret.
    #[must_use]
    pub fn authorization(self) -> Option<&'static str> {
        match self {
            Self::Opsgenie => Some("GenieKey"),
            Self::Webhook | Self::Alertmanager => Some("Bearer"),
            _ => None,
        }
    }

    fn template(self) -> &'static str {
        match self {
            Self::Slack => include_str!("../../../knowledge/notify/slack.json"),
            Self::Teams => include_str!("../../../knowledge/notify/teams.json"),
            Self::Discord => include_str!("../../../knowledge/notify/discord.json"),
            Self::Webhook => include_str!("../../../knowledge/notify/webhook.json"),
            Self::Alertmanager => include_str!("../../../knowledge/notify/alertmanager.json"),
            Self::Pagerduty => include_str!("../../../knowledge/notify/pagerduty.json"),
            Self::Opsgenie => include_str!("../../../knowledge/notify/opsgenie.json"),
            Self::Email => include_str!("../../../knowledge/notify/email.json"),
        }
    }

    /// The most characters of a placeholder's value, by what each service takes.
    fn longest(self, name: &str) -> usize {
        match (self, name) {
            (Self::Slack, "headline") => 150,
            (Self::Discord, "headline") => 256,
            (Self::Opsgenie, "headline") => 130,
            (Self::Pagerduty, "cause_key" | "loop_key") => 255,
            (Self::Opsgenie, "cause_key" | "loop_key") => 512,
            (_, "headline") => 200,
            (_, "summary" | "action") => 700,
            _ => 2_000,
        }
    }

    /// The message.
    ///
    /// # Errors
    /// Where a template is no JSON or has an unknown placeholder; a test holds all of them.
    pub fn message(self, notice: &Notice) -> Result<Body, String> {
        let template: Value = serde_json::from_str(self.template()).map_err(|e| e.to_string())?;
        let filled = fill(&template, &Values { channel: self, notice })?;
        if self == Self::Email {
            return Ok(Body {
                media_type: "message/rfc822",
                text: mail::message(&filled),
                needs_secret: false,
            });
        }
        let mut filled = filled;
        if self == Self::Webhook
            && let (Some(body), Ok(incident)) =
                (filled.as_object_mut(), serde_json::to_value(&notice.incident))
        {
            body.insert("incident".to_owned(), incident);
        }
        let text = dualplane_base::json::pretty(&filled).map_err(|e| e.to_string())?;
        Ok(Body { media_type: "application/json", text, needs_secret: self.template().contains(SECRET) })
    }

    /// A text as the service shows it, and takes it for nothing else.
    fn escape(self, text: &str) -> String {
        let text = printable(text);
        let behind = |special: &[char]| {
            let mut out = String::with_capacity(text.len() + 8);
            for c in text.chars() {
                if special.contains(&c) {
                    out.push('\\');
                }
                out.push(c);
            }
            out
        };
        match self {
            // A mention is written with angle brackets, and they are the only way to write one.
            Self::Slack => text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;"),
            Self::Teams => behind(&['\\', '*', '_', '[', ']', '(', ')', '#', '`', '<', '>', '-']),
            Self::Discord => behind(&['\\', '*', '_', '~', '|', '>', '`', '[', ']', '<', '#', '@', ':']),
            Self::Pagerduty => text.replace('{', "(").replace('}', ")"),
            Self::Webhook | Self::Alertmanager | Self::Opsgenie | Self::Email => text.into_owned(),
        }
    }
}

struct Values<'a> {
    channel: Channel,
    notice: &'a Notice,
}

impl Fills for Values<'_> {
    fn fill(&self, name: &str) -> Option<String> {
        // Plain: in places where the service shows text as it is, like an address, a fact of an alert, a block of code.
        // Code: the same within a block of code, which a backtick would end.
        let (kind, name) = name.split_once(':').unwrap_or(("", name));
        if name == "secret" {
            return Some(SECRET.to_owned());
        }
        let value = self.notice.value(name)?;
        let value = shorten(&value, self.channel.longest(name).saturating_sub(1)).into_owned();
        Some(match kind {
            "plain" => printable(&value).into_owned(),
            "code" => self.channel.escape(&value.replace('`', "'")),
            "" => self.channel.escape(&value),
            _ => return None,
        })
    }
}
