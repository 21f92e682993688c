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
    for class in dualplane_base::Class::ALL {
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

#[test]
fn the_plan_in_the_readme_is_real() {
    let readme = std::fs::read_to_string(root().join("README.md")).unwrap();
    let command =
        readme.lines().find(|l| l.starts_with("dualplane plan --gpu")).expect("the command of the plan");
    let args: Vec<&str> = command.split_whitespace().skip(1).collect();
    let behind = readme.split_once(command).unwrap().1;
    let shown = behind.split_once("```text\n").unwrap().1.split_once("\n```").unwrap().0;
    assert_eq!(shown.trim_end(), stdout(&run(&args)).trim_end(), "refresh the plan in README.md");
}

/// Every option of `plan` stands in its manual.
#[test]
fn every_option_of_plan_is_documented() {
    let doc = std::fs::read_to_string(root().join("docs/plan.md")).unwrap();
    let help = stdout(&run(&["plan", "--help"]));
    let options = help.lines().filter_map(|l| {
        let option = l.trim_start().trim_start_matches(|c: char| c != '-' && !c.is_whitespace());
        let long = option.split_whitespace().find(|w| w.starts_with("--"))?;
        l.trim_start().starts_with('-').then(|| long.trim_end_matches(',').to_owned())
    });
    let mut seen = 0;
    for option in options.filter(|o| !["--help", "--color", "--verbose", "--output"].contains(&o.as_str())) {
        assert!(doc.contains(&option), "docs/plan.md does not name {option}");
        seen += 1;
    }
    assert!(seen >= 10, "only {seen} options");
}
