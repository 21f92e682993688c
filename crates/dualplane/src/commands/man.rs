//! Manual pages, made from the definition of the command line.

use clap::CommandFactory;
use clap_mangen::Man;

use super::Failure;
use crate::args::{Args, ManArgs};
use crate::exit;

pub(super) fn run(args: &ManArgs) -> Result<exit::Code, Failure> {
    let mut whole = Args::command();
    if let Some(dir) = &args.dir {
        let failed = |source| Failure::Unwritable { path: dir.clone(), source };
        std::fs::create_dir_all(dir).map_err(failed)?;
        clap_mangen::generate_to(whole, dir).map_err(failed)?;
        return Ok(exit::OK);
    }
    // Names of pages hold those of the commands above.
    whole.build();
    let mut command = &whole;
    for name in &args.command {
        command = command.find_subcommand(name).ok_or_else(|| Failure::Flag {
            flag: "man",
            why: format!("dualplane has no command `{}`; see `dualplane --help`", args.command.join(" ")),
        })?;
    }
    let mut out = Vec::new();
    Man::new(command.clone()).render(&mut out).map_err(Failure::Output)?;
    crate::output::write(&String::from_utf8_lossy(&out))?;
    Ok(exit::OK)
}
