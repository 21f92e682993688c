//! Rehearsals of fixes: `dualplane rehearse`, run beside this program on the bundle of a death. It is a program of its own, so that
//! what a stranger's bundle makes it do is bounded: in time, in what it says, and in how many run.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use dualplane_pages::rehearsal::{Asked, TRAFFIC};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::Command;
use tokio::sync::Semaphore;
use tokio::time::timeout;

/// At a time: each takes the processors while it runs.
const AT_ONCE: usize = 1;
/// Who waits longer is told to come again.
const PATIENCE: Duration = Duration::from_secs(20);
/// Of what it says.
const MAX_SAID: u64 = 128 << 10;
/// Answers that are kept for the next reader.
const KEPT: usize = 64;

type Kept = Arc<Mutex<VecDeque<((String, Asked), Result<String, String>)>>>;

/// See the module.
#[derive(Debug, Clone)]
pub struct Rehearse {
    program: Option<PathBuf>,
    places: Arc<Semaphore>,
    kept: Kept,
}

/// Reads what is asked; `card` is what the incident knows of its own.
///
/// # Errors
///
/// What cannot be asked, and what can.
pub fn asked(query: &str, card: Option<&str>) -> Result<Asked, String> {
    let mut out = Asked { gpu: card.unwrap_or_default().to_owned(), ..Asked::default() };
    for pair in query.split('&').filter(|p| !p.is_empty()) {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        let value =
            dualplane_incidents::decode(value).ok_or("the query is not properly encoded: write % as %25")?;
        let value = value.trim();
        match key {
            "gpu" if value.is_empty() => {}
            "gpu"
                if value.len() <= 80
                    && value.chars().all(|c| c.is_ascii_alphanumeric() || " ._:-".contains(c)) =>
            {
                value.clone_into(&mut out.gpu);
            }
            "gpu" => return Err("a card is named like H100-80GB or \"NVIDIA L40S\"".to_owned()),
            "traffic" if value.is_empty() || TRAFFIC.contains(&value) => value.clone_into(&mut out.traffic),
            "traffic" => return Err(format!("requests are of the bundle or one of {}", TRAFFIC.join(", "))),
            "rate" if value.is_empty() => {}
            "rate" if value.len() <= 12 && value.parse().is_ok_and(|n: f64| n > 0.0 && n <= 10_000.0) => {
                value.clone_into(&mut out.rate);
            }
            "rate" => return Err("requests a second are a number above 0 and up to 10000".to_owned()),
            _ => return Err("a rehearsal is asked by gpu, traffic and rate".to_owned()),
        }
    }
    Ok(out)
}

/// Arguments, the bundle under this name.
#[must_use]
pub fn arguments(asked: &Asked, bundle: &str) -> Vec<String> {
    let mut out = vec!["rehearse".to_owned(), "--incident".to_owned(), bundle.to_owned()];
    for (flag, value) in [("--gpu", &asked.gpu), ("--traffic", &asked.traffic), ("--rate", &asked.rate)] {
        if !value.is_empty() {
            out.push(format!("{flag}={value}"));
        }
    }
    out
}

/// As a person types it.
#[must_use]
pub fn typed(asked: &Asked) -> String {
    let quoted = |a: String| if a.contains(' ') { format!("'{a}'") } else { a };
    let all: Vec<String> = arguments(asked, "bundle.tar.gz").into_iter().map(quoted).collect();
    format!("dualplane {}", all.join(" "))
}

impl Default for Rehearse {
    fn default() -> Self {
        Self { program: program(), places: Arc::new(Semaphore::new(AT_ONCE)), kept: Kept::default() }
    }
}

/// Beside this program, else where the shell would find it.
fn program() -> Option<PathBuf> {
    let name = format!("dualplane{}", std::env::consts::EXE_SUFFIX);
    let here = std::env::current_exe().ok().and_then(|p| Some(p.parent()?.join(&name)));
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut places = here.into_iter().chain(std::env::split_paths(&path).map(|p| p.join(&name)));
    places.find(|p| p.is_file())
}

impl Rehearse {
    /// The text of a rehearsal of this bundle, whose sum tells it from others.
    ///
    /// # Errors
    ///
    /// Why there is none, and what to do.
    pub async fn play(&self, bundle: &Path, sum: &str, asked: &Asked) -> Result<String, String> {
        let key = (sum.to_owned(), asked.clone());
        let kept = || self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, answer)) = kept().iter().find(|(k, _)| *k == key) {
            return answer.clone();
        }
        let Some(program) = &self.program else {
            return Err("the program dualplane lies neither beside this server nor in its PATH: run the command below where it is".to_owned());
        };
        let busy = || "the machine is busy with other rehearsals: try again in a moment".to_owned();
        let place = timeout(PATIENCE, self.places.acquire()).await.map_err(|_| busy())?;
        let _place = place.map_err(|_| busy())?;
        let answer = run(program, bundle, asked).await?;
        let mut all = kept();
        all.push_back((key, answer.clone()));
        if all.len() > KEPT {
            all.pop_front();
        }
        answer
    }
}

/// What it answered, or why it could not be asked.
async fn run(program: &Path, bundle: &Path, asked: &Asked) -> Result<Result<String, String>, String> {
    let mut command = Command::new(program);
    command.args(arguments(asked, &bundle.to_string_lossy())).args(["--no-search", "--color", "never"]);
    // Nothing of this server's surroundings: its address of the database holds a password.
    command.env_clear().env("PATH", "").env("HOME", "/nonexistent").env("COLUMNS", "100");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    let failed = |e: std::io::Error| format!("{} cannot be run: {e}", program.display());
    let mut child = command.spawn().map_err(failed)?;
    let (out, err) = (child.stdout.take(), child.stderr.take());
    let all = async { tokio::join!(said(out), said(err), child.wait()) };
    let Ok((out, err, status)) = timeout(PATIENCE, all).await else {
        return Ok(Err(format!(
            "the rehearsal took longer than {} s: run the command below, or ask for fewer requests a second",
            PATIENCE.as_secs()
        )));
    };
    if status.map_err(failed)?.success() {
        return Ok(Ok(out));
    }
    // It speaks of its bundle by the path that it was given.
    let why = err.replace(&*bundle.to_string_lossy(), "the bundle");
    Ok(Err(why.trim().trim_start_matches("error: ").to_owned()))
}

async fn said(pipe: Option<impl AsyncRead + Unpin>) -> String {
    let mut out = Vec::new();
    if let Some(mut pipe) = pipe {
        let _ = (&mut pipe).take(MAX_SAID).read_to_end(&mut out).await;
        // Whoever writes more must not wait for a reader.
        let _ = tokio::io::copy(&mut pipe, &mut tokio::io::sink()).await;
    }
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_asked_is_a_flag_s_value_and_never_a_flag_of_its_own() {
        let a = asked("gpu=NVIDIA%20H100%2080GB%20HBM3&traffic=chat&rate=2.5", None).unwrap();
        assert_eq!(
            typed(&a),
            "dualplane rehearse --incident bundle.tar.gz '--gpu=NVIDIA H100 80GB HBM3' --traffic=chat --rate=2.5"
        );
        assert_eq!(asked("", Some("L40S")).unwrap().gpu, "L40S");
        assert_eq!(asked("gpu=&rate=&traffic=", Some("L40S")).unwrap().gpu, "L40S");
        let evil = asked("gpu=--trace", None).unwrap();
        assert_eq!(arguments(&evil, "b")[3..], ["--gpu=--trace"]);
        for bad in [
            "gpu=a/b",
            "gpu=%00",
            "gpu=$(id)",
            "traffic=--with",
            "rate=0",
            "rate=inf",
            "rate=nan",
            "trace=/etc/passwd",
            "gpu=%",
        ] {
            assert!(asked(bad, None).is_err(), "{bad}");
        }
    }
}
