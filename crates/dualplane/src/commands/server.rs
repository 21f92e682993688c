//! `dualplane server`: runs the program `dualplane-server`, which is installed by itself (docs/adr/0009-a-server-of-its-own.md).

use std::path::PathBuf;
use std::process::Command;

use super::Failure;
use crate::args::ServerArgs;
use crate::exit::Code;

const PROGRAM: &str = "dualplane-server";

/// Beside this program, else where the shell would find it.
fn program() -> Option<PathBuf> {
    let name = format!("{PROGRAM}{}", std::env::consts::EXE_SUFFIX);
    let here = std::env::current_exe().ok().and_then(|p| Some(p.parent()?.join(&name)));
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut places = here.into_iter().chain(std::env::split_paths(&path).map(|p| p.join(&name)));
    places.find(|p| p.is_file())
}

fn missing(why: String) -> Failure {
    Failure::NotRead {
        path: PROGRAM.into(),
        why,
        hint: "it is installed by itself, once for a fleet: `cargo install --path crates/dualplane-server`, see docs/server.md",
    }
}

/// Becomes it: signals and the exit code are its own.
pub(crate) fn run(args: &ServerArgs) -> Result<Code, Failure> {
    let program =
        program().ok_or_else(|| missing("it lies neither beside dualplane nor in PATH".to_owned()))?;
    let mut command = Command::new(&program);
    command.args(&args.args);
    #[cfg(unix)]
    let failed = std::os::unix::process::CommandExt::exec(&mut command);
    #[cfg(not(unix))]
    let failed = match command.status() {
        Ok(done) if done.success() => return Ok(crate::exit::OK),
        Ok(_) => return Ok(crate::exit::BUG),
        Err(e) => e,
    };
    Err(missing(format!("{} cannot be run: {failed}", program.display())))
}
