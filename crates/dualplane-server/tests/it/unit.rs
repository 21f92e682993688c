//! The unit of the package starts the server with options that it has, and packages carry the unit.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

#[test]
fn the_unit_starts_the_server_with_options_that_it_has() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let read = |path: &str| std::fs::read_to_string(root.join(path)).unwrap();
    let unit = read("deploy/systemd/dualplane-server.service");
    let start =
        "\nExecStart=/usr/bin/dualplane-server serve --data=/var/lib/dualplane-server $DUALPLANE_SERVER\n";
    assert!(unit.contains(start));
    let help =
        Command::new(env!("CARGO_BIN_EXE_dualplane-server")).args(["serve", "--help"]).output().unwrap();
    let help = String::from_utf8(help.stdout).unwrap();
    let named = unit.split(['=', ' ', '\n']).filter_map(|w| w.strip_prefix("--"));
    let flags: BTreeSet<&str> = named.collect();
    assert!(flags.len() >= 5, "{flags:?}");
    for flag in flags {
        assert!(help.contains(&format!("--{flag} <")), "the server has no --{flag}");
    }
    // The address with the password of the database comes from a file that root alone reads, and no privilege is left.
    assert!(unit.contains("DUALPLANE_DATABASE_URL") && help.contains("DUALPLANE_DATABASE_URL"));
    assert!(!unit.contains("postgres://"));
    assert!(unit.contains("\nCapabilityBoundingSet=\n"));
    assert!(
        read("crates/dualplane-server/Cargo.toml").contains("\"deploy/systemd/dualplane-server.service\"")
    );
}
