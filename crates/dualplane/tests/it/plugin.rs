//! The same binary as a plugin of kubectl.
#![cfg(unix)]

use std::process::{Command, Output};

use crate::harness::{code, stderr, stdout};

fn as_plugin(args: &[&str]) -> Output {
    let dir = tempfile::tempdir().unwrap();
    let link = dir.path().join("kubectl-dualplane");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_dualplane"), &link).unwrap();
    Command::new(link).args(args).env_clear().output().unwrap()
}

#[test]
fn help_and_errors_show_the_name_that_kubectl_gives_it() {
    let help = stdout(&as_plugin(&["--help"]));
    assert!(help.contains("Usage: kubectl dualplane <COMMAND>"), "{help}");
    let help = stdout(&as_plugin(&["apply", "--help"]));
    assert!(help.contains("Usage: kubectl dualplane apply [OPTIONS] <FILE>"), "{help}");
    let version = stdout(&as_plugin(&["--version"]));
    assert!(version.starts_with("kubectl dualplane "), "{version}");
    let o = as_plugin(&["apply"]);
    assert_eq!(code(&o), 2);
    assert!(stderr(&o).contains("Usage: kubectl dualplane apply <FILE>"), "{}", stderr(&o));
    // Called by its own name it shows that.
    let help = stdout(&crate::harness::run(&["--help"]));
    assert!(help.contains("Usage: dualplane <COMMAND>"), "{help}");
}
