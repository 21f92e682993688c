//! `dualplane`: says which memory plane killed a GPU model-serving pod, which line came first, why, and what to change.
//!
//! This crate alone knows arguments, files, terminals and exit codes; the judging is in `dualplane-core`.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing))]
// The commands of a node are for Linux, and a build without `live` asks nobody: their flags and errors stay, for the same
// help everywhere.
#![cfg_attr(not(all(feature = "live", target_os = "linux")), allow(dead_code, unused_imports))]

mod args;
mod commands;
mod deprecated;
mod document;
mod exit;
mod files;
mod invoked;
mod model;
mod output;
mod own_knowledge;
#[cfg(feature = "live")]
mod secret;

use std::process::ExitCode;

use clap::FromArgMatches;
use dualplane_base::deprecation::DEPRECATED;

/// The arguments, under the name that the program was called by.
fn parse() -> Result<args::Args, clap::Error> {
    let name = invoked::name();
    let mut command = args::command().bin_name(name).display_name(name);
    let matches = command.try_get_matches_from_mut(std::env::args_os()).map_err(args::with_place_of_flags)?;
    let args = args::Args::from_arg_matches(&matches).map_err(|e| e.format(&mut command))?;
    output::deprecated(&deprecated::flags(&command, &matches, DEPRECATED));
    Ok(args)
}

fn main() -> ExitCode {
    let args = match parse() {
        Ok(args) => args,
        Err(error) => {
            // clap prints help and version to standard output with success, errors to standard error.
            let _ = error.print();
            return if error.use_stderr() { exit::USAGE.into() } else { ExitCode::SUCCESS };
        }
    };
    // A panic is a bug, and has the exit code that the table promises for one.
    match std::panic::catch_unwind(|| commands::run(args)) {
        Ok(Ok(code)) => code.into(),
        Ok(Err(failure)) => {
            output::error(&failure);
            failure.code().into()
        }
        Err(_) => {
            output::note(
                "this is a bug in dualplane; please report it with the command and, if you can, the evidence",
            );
            exit::BUG.into()
        }
    }
}
