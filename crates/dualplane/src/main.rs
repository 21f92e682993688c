//! `dualplane`: says which memory plane killed a GPU model-serving pod, which line came first, why, and what to change.
//!
//! This crate alone knows arguments, files, terminals and exit codes; the judging is in `dualplane-core`.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing))]

mod args;
mod commands;
mod exit;
mod model;
mod output;
mod own_knowledge;
mod target;

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    let args = match args::Args::try_parse() {
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
