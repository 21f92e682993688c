//! How a step, or a server that runs, is measured: by a line of the shell, or by `dualplane measure`.

use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use dualplane_gate::document::{self, Measure};

use super::super::Failure;
use crate::args::TuneArgs;
use crate::output;

/// What a measuring program may write.
const MAX_REPORT: usize = 64 << 20;
const HINT: &str = "give a report of `dualplane measure -o json`; --run measures by itself";

/// Measures one command line, by what the arguments name; none where the measuring program fails or no request was answered: the server did not serve.
pub(super) fn step(args: &TuneArgs, command: &[String]) -> Result<Option<Measure>, Failure> {
    match (&args.measure, &args.target) {
        (Some(line), _) => read("--measure", &by_shell(line, command)?),
        (None, Some(target)) => {
            let server = shell(command);
            let mut words = vec!["measure", "--target", target, "-o", "json"];
            // The pods of a workload serve already; the way to new ones may take a moment.
            words.extend(if args.to.is_some() { ["--wait", "60s"] } else { ["--serve", &server] });
            words.extend(args.load.split_whitespace());
            read("--target", &by_itself(&words, Stdio::inherit())?)
        }
        (None, None) => Ok(None),
    }
}

/// Watches a server that runs, without sending it anything.
pub(super) fn live(args: &TuneArgs, url: &str) -> Result<Measure, Failure> {
    let metrics = match url.trim_end_matches('/') {
        base if base.ends_with("/metrics") => base.to_owned(),
        base => format!("{base}/metrics"),
    };
    let (pid, seconds) = (args.pid.map(|p| p.to_string()), args.seconds.to_string());
    let mut words = vec!["measure", "--metrics", &metrics, "-o", "json"];
    if let Some(pid) = &pid {
        words.extend(["--pid", pid]);
    }
    words.extend(["--", "sleep", &seconds]);
    // What it says of a load tool is not about `sleep`.
    let out = by_itself(&words, Stdio::piped())?;
    if !out.status.success() {
        output::note(String::from_utf8_lossy(&out.stderr).trim());
    }
    let found = read("--live", &out)?;
    let found = found.filter(|m| m.runs.iter().any(|r| r.queue.is_some() || r.kv.is_some()));
    found.ok_or_else(|| Failure::Online {
        what: metrics.clone(),
        why: "no numbers of an engine came from there; is it the address of the server, or of its metrics?"
            .into(),
    })
}

fn by_shell(line: &str, command: &[String]) -> Result<Output, Failure> {
    Command::new("sh")
        .args(["-c", line])
        .env("SERVER", shell(command))
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .map_err(|e| Failure::Flag { flag: "--measure", why: format!("the shell cannot be started: {e}") })
}

/// This program, as its users would call it.
fn by_itself(words: &[&str], errors: Stdio) -> Result<Output, Failure> {
    let own = std::env::current_exe().unwrap_or_else(|_| PathBuf::from("dualplane"));
    let failed = |source| Failure::Unreadable { path: own.clone(), source };
    Command::new(&own).args(words).stdin(Stdio::null()).stderr(errors).output().map_err(failed)
}

fn read(flag: &'static str, out: &Output) -> Result<Option<Measure>, Failure> {
    let failed = |why: String| Failure::Flag { flag, why };
    if out.stdout.len() > MAX_REPORT {
        return Err(failed(format!("it wrote more than {} MiB", MAX_REPORT >> 20)));
    }
    let text = String::from_utf8_lossy(&out.stdout);
    match document::read(&text) {
        Ok(m) => Ok(Some(m)),
        // The shell itself says that there is no such program, or that it must not run it.
        Err(_) if matches!(out.status.code(), Some(126 | 127)) => Err(failed(format!(
            "the shell could not run it (exit code {})",
            out.status.code().unwrap_or_default()
        ))),
        // `measure` has said what is wrong with its flags.
        Err(_) if flag != "--measure" && out.status.code() == Some(2) => {
            Err(failed("`dualplane measure` does not take these flags; see above".to_owned()))
        }
        Err(_) if !out.status.success() && text.trim().is_empty() => Ok(None),
        Err(e) => Err(Failure::NotRead {
            path: flag.into(),
            why: format!("what it wrote is no report: {e}"),
            hint: HINT,
        }),
    }
}

/// Words as a shell reads them back.
pub(super) fn shell(words: &[String]) -> String {
    let safe =
        |w: &str| !w.is_empty() && w.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_./:=,+@%".contains(&b));
    let quoted = |w: &String| if safe(w) { w.clone() } else { format!("'{}'", w.replace('\'', "'\\''")) };
    words.iter().map(quoted).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_come_back_from_the_shell() {
        let words: Vec<String> = ["vllm", "a b", "it's", "", "$HOME;`x`"].map(str::to_owned).to_vec();
        let out = Command::new("sh")
            .args(["-c", "eval \"printf '%s\\n' $SERVER\""])
            .env("SERVER", shell(&words))
            .output();
        let text = String::from_utf8(out.unwrap().stdout).unwrap();
        assert_eq!(text.lines().collect::<Vec<_>>(), words);
    }
}
