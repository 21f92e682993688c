//! A server that is started here, and what is left of one that died.

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use dualplane_node::kmsg::{Follower, Source};
use rustix::process::{Pid, Signal, kill_process_group};

/// Of the end of a log.
const MAX_LOG: u64 = 8 << 20;
/// Of the kernel's lines.
const MAX_KERNEL: usize = 2 << 20;
/// To end in order, after which it is killed.
const GRACE: Duration = Duration::from_secs(15);

/// A server that was started here.
#[derive(Debug)]
pub struct Server {
    child: Child,
    log: PathBuf,
    /// Nobody waits for it to end in order.
    hurry: Arc<AtomicBool>,
}

/// What is left of a server.
#[derive(Debug, Default)]
pub struct Remains {
    /// Names and bytes of files, as triage takes them.
    pub files: Vec<(String, Vec<u8>)>,
}

impl Server {
    /// Starts a command line of a shell; what it prints goes to a file. It is a group of processes of its own: Ctrl-C ends the
    /// measurement, which ends the server, and all that it started ends with it. `hurry` ends it at once.
    ///
    /// # Errors
    /// It cannot be started, or the file cannot be made.
    pub fn start(line: &str, log: &Path, hurry: Arc<AtomicBool>) -> io::Result<Self> {
        let out = File::create(log)?;
        let errors = out.try_clone()?;
        // The shell becomes the command where it is one alone, so that its pid is the server's.
        let child = Command::new("/bin/sh")
            .arg("-c")
            .arg(line)
            .stdin(Stdio::null())
            .stdout(out)
            .stderr(errors)
            .process_group(0)
            .spawn()?;
        Ok(Self { child, log: log.to_owned(), hurry })
    }

    /// Its pid.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Whether it ended.
    pub fn ended(&mut self) -> bool {
        self.child.try_wait().is_ok_and(|s| s.is_some())
    }

    /// How it ended, as a shell tells it: 128 and the signal where one killed it. Waits a little for an end that comes.
    pub fn exit_code(&mut self, wait: Duration) -> Option<i32> {
        let began = Instant::now();
        loop {
            match self.child.try_wait() {
                Ok(Some(status)) => return Some(code(status)),
                Ok(None) if began.elapsed() < wait && !self.hurry.load(Ordering::Relaxed) => {
                    std::thread::park_timeout(Duration::from_millis(50))
                }
                _ => return None,
            }
        }
    }

    /// Where it prints to.
    #[must_use]
    pub fn log(&self) -> &Path {
        &self.log
    }

    /// Ends it, in order where it can.
    pub fn stop(&mut self) {
        if self.ended() {
            return;
        }
        self.signal(Signal::TERM);
        if self.exit_code(GRACE).is_none() {
            self.signal(Signal::KILL);
            let _ = self.child.wait();
        }
        // What it started and left behind.
        self.signal(Signal::KILL);
    }

    fn signal(&self, signal: Signal) {
        if let Some(pid) = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw) {
            let _ = kill_process_group(pid, signal);
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop();
    }
}

fn code(status: ExitStatus) -> i32 {
    status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0))
}

/// The file of [`remains`] that holds what the kernel said, of the whole machine.
pub const KERNEL_LOG: &str = "kernel.log";

/// What is left of a server that died: the end of its log, and what the kernel said since so many microseconds after boot.
#[must_use]
pub fn remains(log: Option<&Path>, kmsg: &Path, since_us: u64) -> Remains {
    let mut out = Remains::default();
    if let Some(text) = log.and_then(|l| tail(l).ok()).filter(|t| !t.is_empty()) {
        out.files.push(("previous.log".into(), text));
    }
    if let Some(text) = kernel(kmsg, since_us).filter(|t| !t.is_empty()) {
        out.files.push((KERNEL_LOG.into(), text.into_bytes()));
    }
    out
}

fn tail(path: &Path) -> io::Result<Vec<u8>> {
    let mut file = File::open(path)?;
    let size = file.metadata()?.len();
    file.seek(SeekFrom::Start(size.saturating_sub(MAX_LOG)))?;
    let mut text = Vec::new();
    file.take(MAX_LOG).read_to_end(&mut text)?;
    Ok(text)
}

/// Lines of the kernel as `dmesg` prints them.
fn kernel(path: &Path, since_us: u64) -> Option<String> {
    let mut follower = Follower::new(Source::device(path).ok()?, None);
    let mut out = String::new();
    while let Ok(Some(line)) = follower.take() {
        let r = line.record;
        if r.facility == 0 && r.us >= since_us && out.len() < MAX_KERNEL {
            out += &format!("[{:5}.{:06}] {}\n", r.us / 1_000_000, r.us % 1_000_000, r.text);
        }
    }
    Some(out)
}

/// Microseconds since boot on the clock of the kernel's messages.
#[must_use]
pub fn since_boot(proc_root: &Path) -> u64 {
    let text = fs::read_to_string(proc_root.join("uptime")).unwrap_or_default();
    let seconds = text.split_whitespace().next().and_then(|s| s.parse::<f64>().ok()).unwrap_or(0.0);
    (seconds * 1e6) as u64
}
