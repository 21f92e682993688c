//! Cookies of who signed in on the page. They hold what they say, sealed by a key of the server: replicas that share the key know them,
//! and a restart forgets none. Where cookies are only for this host and TLS, their names say so (`__Host-`).

use std::fmt;
use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::{HeaderMap, header};
use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::rand::{SecureRandom, SystemRandom};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::app::now;
use crate::auth::sha256;
use crate::ended::Session;

/// Bytes of a key.
const KEY: usize = 32;
/// Browsers keep a cookie of up to 4096 bytes, its name and attributes counted in some.
const LONGEST: usize = 3800;

/// What a cookie is for: one does not pass for another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Use {
    /// A login that is under way.
    Login,
    /// Who signed in.
    Session,
}

impl Use {
    fn name(self) -> &'static str {
        match self {
            Self::Login => "dualplane-login",
            Self::Session => "dualplane-session",
        }
    }
}

#[derive(Serialize, Deserialize)]
struct Kept<T> {
    /// Seconds since 1970 after which it is nothing.
    until: i64,
    what: T,
}

/// Seals and opens cookies.
pub(super) struct Cookies {
    key: LessSafeKey,
    /// Part of each seal: another issuer's or another client's session is none here.
    of: String,
    /// The page is reached by TLS.
    tls: bool,
}

impl fmt::Debug for Cookies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cookies").field("of", &self.of).finish_non_exhaustive()
    }
}

/// Random bytes, in letters that an address holds.
pub(super) fn random() -> Result<String, String> {
    Ok(URL_SAFE_NO_PAD.encode(bytes::<32>()?))
}

fn bytes<const N: usize>() -> Result<[u8; N], String> {
    let mut out = [0; N];
    SystemRandom::new().fill(&mut out).map_err(|_| "this machine has no randomness".to_owned())?;
    Ok(out)
}

/// The key of a file, which is made where there is none. It appears whole: of two servers that make it one wins, and both use that.
fn key(file: &Path) -> Result<Vec<u8>, String> {
    let failed = |e: std::io::Error| format!("{}: {e}", file.display());
    if !file.exists() {
        let fresh_key = random()?;
        let made = file.with_extension(format!("{}.new", std::process::id()));
        let fresh = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&made);
        fresh
            .and_then(|mut f| f.write_all(fresh_key.as_bytes()).and_then(|()| f.sync_all()))
            .map_err(failed)?;
        let linked = fs::hard_link(&made, file);
        let _ = fs::remove_file(&made);
        match linked {
            Err(e) if e.kind() != std::io::ErrorKind::AlreadyExists => return Err(failed(e)),
            _ => {}
        }
    }
    let text = fs::read_to_string(file).map_err(failed)?;
    let bytes = URL_SAFE_NO_PAD.decode(text.trim()).ok().filter(|b| b.len() == KEY);
    bytes.ok_or_else(|| {
        format!(
            "{} is no key of sessions (32 bytes in base64url): remove it, and one is made",
            file.display()
        )
    })
}

impl Cookies {
    pub(super) fn open(file: &Path, of: String, tls: bool) -> Result<Self, String> {
        let key = UnboundKey::new(&CHACHA20_POLY1305, &key(file)?);
        let key = key.map_err(|_| "the key of sessions has a wrong length".to_owned())?;
        Ok(Self { key: LessSafeKey::new(key), of, tls })
    }

    fn name(&self, of: Use) -> String {
        format!("{}{}", if self.tls { "__Host-" } else { "" }, of.name())
    }

    fn sealed_for(&self, of: Use) -> Aad<Vec<u8>> {
        Aad::from(format!("{}\n{}", of.name(), self.of).into_bytes())
    }

    fn attributes(&self) -> &'static str {
        // Lax: it comes along when the issuer sends the browser back, and with no request that another site makes unseen.
        if self.tls { "; Path=/; HttpOnly; SameSite=Lax; Secure" } else { "; Path=/; HttpOnly; SameSite=Lax" }
    }

    /// A `Set-Cookie` that holds this for so many seconds.
    pub(super) fn set(&self, of: Use, what: &impl Serialize, seconds: i64) -> Result<String, String> {
        let kept = Kept { until: now().ms() / 1000 + seconds, what };
        let mut text = crate::app::pack(&serde_json::to_vec(&kept).map_err(|e| e.to_string())?);
        let nonce = bytes::<NONCE_LEN>()?;
        let sealed = self.key.seal_in_place_append_tag(
            Nonce::assume_unique_for_key(nonce),
            self.sealed_for(of),
            &mut text,
        );
        sealed.map_err(|_| "it cannot be sealed".to_owned())?;
        let value = URL_SAFE_NO_PAD.encode([&nonce[..], &text].concat());
        if value.len() > LONGEST {
            return Err("the issuer names more groups than a cookie holds: let it name fewer to this client"
                .to_owned());
        }
        Ok(format!("{}={value}; Max-Age={seconds}{}", self.name(of), self.attributes()))
    }

    /// A `Set-Cookie` that removes it.
    pub(super) fn end(&self, of: Use) -> String {
        format!("{}=; Max-Age=0{}", self.name(of), self.attributes())
    }

    /// What a browser sends, if it was sealed here for this and is not over.
    pub(super) fn get<T: DeserializeOwned>(&self, of: Use, headers: &HeaderMap) -> Option<T> {
        self.opened(of, headers).map(|(what, _)| what)
    }

    /// The same, and how the database knows it.
    pub(super) fn opened<T: DeserializeOwned>(&self, of: Use, headers: &HeaderMap) -> Option<(T, Session)> {
        let name = self.name(of);
        let all = headers.get_all(header::COOKIE).iter().filter_map(|v| v.to_str().ok());
        let mut found = all.flat_map(|v| v.split(';')).filter_map(|c| c.trim().split_once('='));
        let value = found.find(|(n, _)| *n == name).map(|(_, v)| v).filter(|v| v.len() <= LONGEST)?;
        let bytes = URL_SAFE_NO_PAD.decode(value).ok()?;
        let mark = sha256(&bytes);
        let (nonce, sealed) = bytes.split_at_checked(NONCE_LEN)?;
        let nonce = Nonce::try_assume_unique_for_key(nonce).ok()?;
        let mut sealed = sealed.to_vec();
        let opened = self.key.open_in_place(nonce, self.sealed_for(of), &mut sealed).ok()?;
        let kept: Kept<T> = serde_json::from_slice(&crate::app::unpack(opened)?).ok()?;
        (now().ms() / 1000 < kept.until).then_some((kept.what, Session { mark, over: kept.until }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_sealed_here_for_this_use_is_opened() {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join("session.key");
        let open = |of: &str, tls| Cookies::open(&file, of.to_owned(), tls).unwrap();
        let ours = open("issuer client", true);
        let sent = |set: &str| {
            let mut headers = HeaderMap::new();
            let pair = format!("other=1; {}", set.split(';').next().unwrap());
            headers.insert(header::COOKIE, pair.parse().unwrap());
            headers
        };
        let get = |c: &Cookies, of, set: &str| c.get::<String>(of, &sent(set));
        let set = ours.set(Use::Session, &"mia", 60).unwrap();
        assert!(set.starts_with("__Host-dualplane-session=") && set.contains("; Secure"), "{set}");
        assert!(set.contains("; HttpOnly; SameSite=Lax"), "{set}");
        assert_eq!(get(&ours, Use::Session, &set).as_deref(), Some("mia"));
        // Another server with the same key; another issuer; another use; over; each byte changed.
        assert_eq!(get(&open("issuer client", true), Use::Session, &set).as_deref(), Some("mia"));
        assert_eq!(get(&open("issuer other", true), Use::Session, &set), None);
        assert_eq!(get(&ours, Use::Session, &set.replace("-session=", "-login=")), None);
        assert_eq!(get(&ours, Use::Login, &set.replace("-session=", "-login=")), None);
        assert_eq!(get(&ours, Use::Session, &ours.set(Use::Session, &"mia", -1).unwrap()), None);
        assert_eq!(get(&ours, Use::Session, &ours.end(Use::Session)), None);
        let (name, value) = set.split(';').next().unwrap().split_once('=').unwrap();
        for at in 0..value.len() {
            let mut bytes = value.as_bytes().to_vec();
            bytes[at] = if bytes[at] == b'A' { b'B' } else { b'A' };
            let changed = format!("{name}={}", String::from_utf8(bytes).unwrap());
            assert_eq!(get(&ours, Use::Session, &changed), None, "{at}");
        }
        assert!(
            ours.set(Use::Session, &random().unwrap().repeat(200), 60).is_ok(),
            "the same again is small"
        );
        let long: Vec<String> = (0..200).map(|_| random().unwrap()).collect();
        assert!(ours.set(Use::Session, &long, 60).unwrap_err().contains("groups"));
        fs::write(&file, "short").unwrap();
        assert!(Cookies::open(&file, String::new(), true).unwrap_err().contains("remove it"));
    }

    /// What values.yaml of the chart says about replicas, as a shell runs it.
    #[test]
    fn the_charts_command_makes_a_key() {
        let home = tempfile::tempdir().unwrap();
        let values =
            std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/helm/dualplane/values.yaml");
        let values = fs::read_to_string(values).unwrap();
        let (_, rest) = values.split_once("session.key=\"$(").unwrap();
        let (command, _) = rest.split_once(")\"").unwrap();
        let said = std::process::Command::new("sh").args(["-c", command]).output().unwrap();
        assert!(said.status.success(), "{said:?}");
        let file = home.path().join("session.key");
        fs::write(&file, &said.stdout).unwrap();
        assert!(Cookies::open(&file, String::new(), true).is_ok());
    }
}
