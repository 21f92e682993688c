//! Documents that cannot lie: tables in `docs/` are what the program says.

use crate::harness::{root, run, stdout};

#[test]
fn the_table_of_exit_codes_is_what_help_says() {
    let help = stdout(&run(&["--help"]));
    let doc = std::fs::read_to_string(root().join("docs/exit-codes.md")).unwrap();
    let table = help.split("Exit codes:").nth(1).unwrap();
    for line in table.lines().map(str::trim).filter(|l| l.starts_with(|c: char| c.is_ascii_digit())) {
        let (code, meaning) = line.split_once("  ").unwrap();
        let row = doc.lines().find(|l| l.starts_with(&format!("| {code} |")));
        let row = row.or_else(|| doc.lines().find(|l| l.contains(&format!("| {code} |"))));
        assert!(row.is_some(), "docs/exit-codes.md has no row for {code} ({meaning})");
    }
}

#[test]
fn every_class_is_documented() {
    let doc = std::fs::read_to_string(root().join("docs/verdict.md")).unwrap();
    for class in dualplane_core::verdict::Class::ALL {
        assert!(doc.contains(class.as_str()), "docs/verdict.md does not name {class}");
    }
}

/// The README shows real output: it is compared with what the program prints.
#[test]
fn the_example_in_the_readme_is_real() {
    let readme = std::fs::read_to_string(root().join("README.md")).unwrap();
    let begin = readme.find("```text\n").expect("an example output in the README") + "```text\n".len();
    let shown = &readme[begin..begin + readme[begin..].find("\n```").unwrap()];
    let command = readme
        .lines()
        .find(|l| l.contains("triage testdata/incidents/"))
        .expect("the command of the example");
    let target = command.split_whitespace().find(|w| w.starts_with("testdata/incidents/")).unwrap();
    let real = stdout(&run(&["triage", root().join(target).to_str().unwrap()]));
    assert_eq!(shown.trim_end(), real.trim_end(), "refresh the example in README.md");
}
