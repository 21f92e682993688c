//! `dualplane server` becomes the program beside it: arguments and exit code are that program's.

use std::os::unix::fs::PermissionsExt;
use std::process::Command;

#[test]
fn arguments_and_exit_code_pass_through_and_what_is_missing_is_said() {
    let home = tempfile::tempdir().unwrap();
    let own = home.path().join("dualplane");
    std::fs::copy(env!("CARGO_BIN_EXE_dualplane"), &own).unwrap();
    let ask = || {
        let mut c = Command::new(&own);
        c.args(["server", "serve", "--listen", "x y", "--help"]).env("PATH", home.path());
        loop {
            match c.output() {
                // A child of another test may still hold the copy open that was written just now, until it becomes its program.
                Err(e) if e.kind() == std::io::ErrorKind::ExecutableFileBusy => std::thread::yield_now(),
                done => break done.unwrap(),
            }
        }
    };
    let none = ask();
    let said = String::from_utf8_lossy(&none.stderr).into_owned();
    assert_eq!(none.status.code(), Some(3), "{said}");
    assert!(said.contains("cargo install --path crates/dualplane-server"), "{said}");
    let server = home.path().join("dualplane-server");
    std::fs::write(&server, "#!/bin/sh\nfor a in \"$@\"; do echo \"[$a]\"; done\nexit 42\n").unwrap();
    std::fs::set_permissions(&server, std::fs::Permissions::from_mode(0o755)).unwrap();
    let ran = ask();
    assert_eq!(String::from_utf8_lossy(&ran.stdout), "[serve]\n[--listen]\n[x y]\n[--help]\n");
    assert_eq!(ran.status.code(), Some(42));
}
