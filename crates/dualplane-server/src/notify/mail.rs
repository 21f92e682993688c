//! A message by SMTP (RFC 5321), always over TLS unless the configuration allows the host inside.

use std::time::Duration;

use base64::Engine as _;
use dualplane_notify::guard;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::time::timeout;

use super::config::{Config, Email};
use super::net::{SendError, Wire, connect, tls};
use crate::app::now;

const WHOLE: Duration = Duration::from_secs(60);
/// TLS from the start.
const SMTPS: u16 = 465;
/// Lines of one answer.
const LINES: usize = 64;

struct Talk {
    wire: BufReader<Box<dyn Wire>>,
    host: String,
}

impl Talk {
    /// Says a line and expects an answer of this kind; answers its text.
    async fn say(&mut self, line: Option<&str>, kind: char) -> Result<String, SendError> {
        let lost = |e: std::io::Error| SendError::Away(format!("the mail server: {e}"));
        if let Some(line) = line {
            self.wire.get_mut().write_all(format!("{line}\r\n").as_bytes()).await.map_err(lost)?;
            self.wire.get_mut().flush().await.map_err(lost)?;
        }
        let mut all = String::new();
        for _ in 0..LINES {
            let mut line = String::new();
            if self.wire.read_line(&mut line).await.map_err(lost)? == 0 {
                return Err(SendError::Away(format!("{} hung up", self.host)));
            }
            all.push_str(&line);
            if line.get(3..4) != Some("-") {
                let told = || dualplane_base::text::printable(line.trim()).into_owned();
                return match line.chars().next() {
                    Some(c) if c == kind => Ok(all),
                    Some('5') => Err(SendError::Refused(format!("{} answered {}", self.host, told()))),
                    _ => Err(SendError::Away(format!("{} answered {}", self.host, told()))),
                };
            }
        }
        Err(SendError::Away(format!("{} answers without end", self.host)))
    }
}

pub(super) async fn send(
    config: &Config,
    email: &Email,
    secret: Option<&str>,
    message: &str,
    id: &str,
) -> Result<(), SendError> {
    timeout(WHOLE, talk(config, email, secret, message, id))
        .await
        .map_err(|_| SendError::Away("the mail server does not answer within 60 s".to_owned()))?
}

async fn talk(
    config: &Config,
    email: &Email,
    secret: Option<&str>,
    message: &str,
    id: &str,
) -> Result<(), SendError> {
    let (host, port) = email
        .server
        .rsplit_once(':')
        .and_then(|(h, p)| Some((h, p.parse::<u16>().ok()?)))
        .ok_or_else(|| SendError::Config("email: write server as HOST:PORT".to_owned()))?;
    let stream = connect(config, host, port).await?;
    let secure = port == SMTPS;
    let wire: Box<dyn Wire> = if secure { Box::new(tls(stream, host).await?) } else { Box::new(stream) };
    let mut t = Talk { wire: BufReader::new(wire), host: host.to_owned() };
    t.say(None, '2').await?;
    let mut can = t.say(Some("EHLO dualplane-server"), '2').await?;
    let inside = guard::is_allowed(host, &config.allow_hosts);
    if !secure && can.to_uppercase().contains("STARTTLS") {
        t.say(Some("STARTTLS"), '2').await?;
        // What was sent before TLS began must not be taken for what is said within it.
        if !t.wire.buffer().is_empty() {
            return Err(SendError::Away(format!("{host} said more than it was asked before TLS")));
        }
        let wire = tls(t.wire.into_inner(), host).await?;
        t = Talk { wire: BufReader::new(Box::new(wire)), host: host.to_owned() };
        can = t.say(Some("EHLO dualplane-server"), '2').await?;
    } else if !secure && !inside {
        return Err(SendError::Config(format!(
            "{host} offers no TLS: name it in allow_hosts where that is meant"
        )));
    }
    if let (Some(user), Some(secret)) = (&email.user, secret) {
        if !can.to_uppercase().contains("AUTH") {
            return Err(SendError::Config(format!("{host} takes no login")));
        }
        let plain = base64::engine::general_purpose::STANDARD.encode(format!("\0{user}\0{secret}"));
        // A password that was renewed is read again: this is no fault of the message.
        let login = t.say(Some(&format!("AUTH PLAIN {plain}")), '2').await;
        login.map_err(|e| SendError::Away(e.to_string()))?;
    }
    t.say(Some(&format!("MAIL FROM:<{}>", email.from)), '2').await?;
    for to in &email.to {
        t.say(Some(&format!("RCPT TO:<{to}>")), '2').await?;
    }
    t.say(Some("DATA"), '3').await?;
    let head = format!(
        "From: {}\r\nTo: {}\r\nDate: {}\r\nMessage-ID: <{id}@dualplane>\r\n",
        email.from,
        email.to.join(", "),
        date()
    );
    // No line of the message is a lone dot: its body is encoded.
    t.say(Some(&format!("{head}{message}.")), '2').await?;
    let _ = t.say(Some("QUIT"), '2').await;
    Ok(())
}

/// Now, as RFC 5322 writes it.
fn date() -> String {
    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let text = now().to_string();
    let part = |from: usize, to: usize| text.get(from..to).unwrap_or_default();
    let month = part(5, 7)
        .parse::<usize>()
        .ok()
        .and_then(|m| MONTHS.get(m.checked_sub(1)?).copied())
        .unwrap_or("Jan");
    format!("{} {month} {} {} +0000", part(8, 10), part(0, 4), part(11, 19))
}
