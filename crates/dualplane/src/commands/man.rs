//! Manual pages, made from the definition of the command line.

use clap_mangen::Man;

use super::Failure;
use crate::args::{ManArgs, command};
use crate::exit;

pub(super) fn run(args: &ManArgs) -> Result<exit::Code, Failure> {
    let mut whole = command();
    if let Some(dir) = &args.dir {
        let failed = |source| Failure::Unwritable { path: dir.clone(), source };
        std::fs::create_dir_all(dir).map_err(failed)?;
        clap_mangen::generate_to(whole, dir).map_err(failed)?;
        return Ok(exit::OK);
    }
    // Names of pages hold those of the commands above.
    whole.build();
    let mut page = &whole;
    for name in &args.command {
        page = page.find_subcommand(name).ok_or_else(|| Failure::Flag {
            flag: "man",
            why: format!("dualplane has no command `{}`; see `dualplane --help`", args.command.join(" ")),
        })?;
    }
    let mut out = Vec::new();
    Man::new(page.clone()).render(&mut out).map_err(Failure::Output)?;
    crate::output::write(&String::from_utf8_lossy(&out))?;
    Ok(exit::OK)
}
