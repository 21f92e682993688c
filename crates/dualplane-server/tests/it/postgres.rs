//! A Postgres of our own: started from Debian's package in a temporary folder, ended with the test.

use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// The server and its folder.
pub(crate) struct Postgres {
    bin: PathBuf,
    home: tempfile::TempDir,
    server: Option<Child>,
    /// Settings beyond ours.
    extra: Vec<String>,
    /// Its folder is a file system of its own.
    mounted: bool,
}

/// Newest of Debian's folders, else where the shell finds it.
fn bin() -> Option<PathBuf> {
    let mut found: Vec<PathBuf> = std::fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten()
        .filter_map(|e| Some(e.ok()?.path().join("bin")))
        .filter(|p| p.join("initdb").exists())
        .collect();
    found.sort();
    let path = std::env::var_os("PATH").unwrap_or_default();
    found.pop().or_else(|| std::env::split_paths(&path).find(|p| p.join("initdb").exists()))
}

/// It refuses to run as root.
fn as_somebody(command: &mut Command) -> &mut Command {
    if std::fs::metadata("/proc/self").is_ok_and(|m| std::os::unix::fs::MetadataExt::uid(&m) == 0) {
        command.uid(65_534).gid(65_534);
    }
    command.stdout(Stdio::null()).stderr(Stdio::null()).stdin(Stdio::null())
}

impl Postgres {
    /// `None` where it is not installed; `DUALPLANE_POSTGRES=1` makes that a failure.
    pub(crate) fn start() -> Option<Self> {
        Self::with(|_| Vec::new())
    }

    /// On a disk of this size, in memory; `None` also where nothing can be mounted.
    pub(crate) fn small(size: &str) -> Option<Self> {
        // What it writes ahead grows to a gigabyte by default.
        let settings = ["max_wal_size=32MB", "min_wal_size=32MB"].map(str::to_owned);
        Self::made(Some(size), |_| settings.to_vec())
    }

    /// The disk is full, or has room again.
    pub(crate) fn fill(&self, full: bool) {
        let file = self.folder().join("somebody");
        if full {
            let mut file = std::fs::File::create(file).unwrap();
            while std::io::Write::write_all(&mut file, &[0; 4096]).is_ok() {}
        } else {
            std::fs::remove_file(file).unwrap();
        }
    }

    /// Whether it has ended by itself.
    pub(crate) fn has_ended(&mut self) -> bool {
        if self.server.as_mut().is_some_and(|s| s.try_wait().unwrap().is_some()) {
            self.server = None;
        }
        self.server.is_none()
    }

    /// With these settings, which may name files of the folder that is handed over.
    pub(crate) fn with(extra: impl FnOnce(&Path) -> Vec<String>) -> Option<Self> {
        Self::made(None, extra)
    }

    fn made(size: Option<&str>, extra: impl FnOnce(&Path) -> Vec<String>) -> Option<Self> {
        let Some(bin) = bin() else {
            assert!(
                std::env::var_os("DUALPLANE_POSTGRES").is_none(),
                "no Postgres here: apt-get install postgresql"
            );
            eprintln!("skipped: no Postgres here (Debian's package postgresql)");
            return None;
        };
        let home = tempfile::Builder::new().prefix("pg").tempdir_in("/tmp").unwrap();
        if size.is_some_and(|size| crate::faults::small(home.path(), size).is_none()) {
            eprintln!("skipped: no file system can be mounted here");
            return None;
        }
        if std::fs::metadata("/proc/self").is_ok_and(|m| std::os::unix::fs::MetadataExt::uid(&m) == 0) {
            std::os::unix::fs::chown(home.path(), Some(65_534), Some(65_534)).unwrap();
        }
        let data = home.path().join("data");
        let made = as_somebody(Command::new(bin.join("initdb")).arg("-D").arg(&data))
            .args(["-U", "dualplane", "-A", "trust", "-E", "UTF8", "--locale=C.UTF-8", "-N"])
            .current_dir(home.path())
            .status()
            .unwrap();
        assert!(made.success(), "initdb");
        let extra = extra(home.path());
        let mut it = Self { bin, home, server: None, extra, mounted: size.is_some() };
        it.go();
        Some(it)
    }

    pub(crate) fn folder(&self) -> &Path {
        self.home.path()
    }

    /// Starts it, also after [`Self::kill`].
    pub(crate) fn go(&mut self) {
        let server =
            as_somebody(Command::new(self.bin.join("postgres")).arg("-D").arg(self.folder().join("data")))
                .args(["-c", "listen_addresses=", "-c", "max_connections=100", "-k"])
                .arg(self.folder())
                .args(self.extra.iter().flat_map(|s| ["-c", s]))
                .current_dir(self.folder())
                .spawn()
                .unwrap();
        self.server = Some(server);
        let began = Instant::now();
        let ready = || {
            let mut c = Command::new(self.bin.join("pg_isready"));
            if let Some(port) = self.extra.iter().find_map(|s| s.strip_prefix("port=")) {
                c.args(["-p", port]);
            }
            as_somebody(c.arg("-h").arg(self.folder()).args(["-U", "dualplane"])).status().unwrap().success()
        };
        while !ready() {
            assert!(began.elapsed() < Duration::from_secs(60), "Postgres does not come up");
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    /// Ends it at once: what it has not written is recovered at its next start.
    pub(crate) fn kill(&mut self) {
        if let Some(mut server) = self.server.take() {
            let quit = Command::new("kill").args(["-QUIT", &server.id().to_string()]).status().unwrap();
            assert!(quit.success());
            server.wait().unwrap();
        }
    }

    /// An address in a schema of its own.
    pub(crate) fn url(&self, schema: &str) -> String {
        let made = as_somebody(Command::new(self.bin.join("psql")).arg("-h").arg(self.folder()))
            .args([
                "-U",
                "dualplane",
                "-d",
                "postgres",
                "-c",
                &format!("CREATE SCHEMA IF NOT EXISTS {schema}"),
            ])
            .status()
            .unwrap();
        assert!(made.success(), "psql");
        format!(
            "host={} user=dualplane dbname=postgres options='-c search_path={schema}'",
            self.folder().display()
        )
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        self.kill();
        if self.mounted {
            let _ = Command::new("umount").arg(self.folder()).status();
        }
    }
}
