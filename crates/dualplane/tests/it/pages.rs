//! The manual as pages: links lead somewhere, the contents name every page, commands are commands, and what stands in a page
//! for a class or for the command line is what the program says.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use dualplane_base::{Class, Plane};

use crate::harness::{code, dualplane, incidents_dir, root, run, stderr, stdout};
use crate::words::{files, helps};

#[allow(dead_code)] // How the end-to-end test runs a template is of no matter here.
#[path = "../../../dualplane-report/tests/common/templates.rs"]
mod templates;

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// All pages of `docs/`, the contents among them.
pub(crate) fn pages() -> Vec<PathBuf> {
    files(&root().join("docs"), ".md")
}

/// Path of a page as people say it.
fn name(page: &Path) -> String {
    page.strip_prefix(root()).unwrap_or(page).display().to_string()
}

/// A line of a page and the mark of the block that it stands in; prose has none. Lines count from 1, fences are left out.
fn lines(text: &str) -> Vec<(usize, Option<&str>, &str)> {
    let mut mark = None;
    let mut out = Vec::new();
    for (i, line) in text.lines().enumerate() {
        match line.trim_start().strip_prefix("```") {
            Some(_) if mark.is_some() => mark = None,
            Some(of) => mark = Some(of),
            None => out.push((i + 1, mark, line)),
        }
    }
    out
}

/// Where the links of a line of prose lead. What stands in backticks is quoted.
fn links(line: &str) -> Vec<String> {
    let quoted = line.split('`').step_by(2).collect::<Vec<_>>().join("`");
    quoted.split("](").skip(1).filter_map(|l| l.split_once(')')).map(|(to, _)| to.to_owned()).collect()
}

/// The anchors that GitHub and mdBook give to the headings of a page.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut seen: BTreeMap<String, u32> = BTreeMap::new();
    let mut out = BTreeSet::new();
    for (_, mark, line) in lines(text) {
        let Some(heading) = line.strip_prefix('#').filter(|_| mark.is_none()) else { continue };
        let of = |c: char| match c {
            ' ' => Some('-'),
            c if c.is_alphanumeric() || matches!(c, '-' | '_') => Some(c.to_ascii_lowercase()),
            _ => None,
        };
        let id: String = heading.trim_start_matches('#').trim().chars().filter_map(of).collect();
        let times = seen.entry(id.clone()).or_default();
        out.insert(if *times == 0 { id } else { format!("{id}-{times}") });
        *times += 1;
    }
    out
}

#[test]
fn every_link_leads_to_a_file_and_a_heading() {
    let docs = root().join("docs");
    let others =
        ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "knowledge/README.md", "bench/README.md"];
    let book = read(&root().join("book.toml"));
    let mut complaints = String::new();
    let mut seen = 0;
    for page in pages().into_iter().chain(others.map(|o| root().join(o))) {
        for (at, mark, line) in lines(&read(&page)) {
            for to in links(line).into_iter().filter(|to| mark.is_none() && !to.contains("://")) {
                seen += 1;
                let (path, anchor) = to.split_once('#').map_or((to.as_str(), None), |(p, a)| (p, Some(a)));
                let target = if path.is_empty() { page.clone() } else { page.parent().unwrap().join(path) };
                let real = target.canonicalize().ok();
                // The site holds docs/ and nothing else.
                let here = real.as_ref().is_some_and(|t| !page.starts_with(&docs) || t.starts_with(&docs));
                let heading =
                    anchor.is_none_or(|a| real.as_ref().is_some_and(|t| anchors(&read(t)).contains(a)));
                // A folder's page has another name in the site.
                let folder = to.strip_suffix("/README.md").filter(|_| page.starts_with(&docs));
                let known = folder.is_none_or(|f| book.contains(&format!("\"/{f}/README.html\"")));
                if !here || !heading || !known {
                    let _ = writeln!(complaints, "{}:{at}: {to}", name(&page));
                }
            }
        }
    }
    assert!(seen >= 150, "only {seen} links");
    assert!(
        complaints.is_empty(),
        "these links lead nowhere, out of docs/, or lack a redirect in book.toml:\n{complaints}"
    );
}

#[test]
fn the_contents_name_every_page_once() {
    let contents = root().join("docs/SUMMARY.md");
    let mut named: Vec<String> = read(&contents).lines().flat_map(links).collect();
    let mut pages: Vec<String> = pages()
        .iter()
        .filter(|p| **p != contents)
        .map(|p| p.strip_prefix(root().join("docs")).unwrap().display().to_string())
        .collect();
    named.sort();
    pages.sort();
    assert_eq!(named, pages, "docs/SUMMARY.md on the left, the pages on the right");
}

/// What a person reads in a hurry stays short.
#[test]
fn pages_for_a_hurry_are_short() {
    for (page, most) in [("on-call.md", 120), ("pick-a-gpu.md", 120), ("platform.md", 120)] {
        let lines = read(&root().join("docs").join(page)).lines().count();
        assert!(lines <= most, "docs/{page}: {lines} lines");
    }
    for page in files(&root().join("docs/runbooks"), ".md") {
        let lines = read(&page).lines().count();
        assert!(lines <= 70, "{}: {lines} lines", name(&page));
    }
}

/// What every runbook has, in this order.
const SECTIONS: [&str; 6] = [
    "## What it means",
    "## First command",
    "## What to change",
    "## What not to change",
    "## Verify and prevent",
    "## Example",
];

/// The code of `triage --exit-code` for a class, as the help has it.
fn exit_code(help: &str, class: Class) -> String {
    let row = help.lines().find(|l| l.split_whitespace().nth(1) == Some(class.as_str()));
    row.unwrap_or_else(|| panic!("no exit code of {class}")).split_whitespace().next().unwrap().to_owned()
}

/// Commands that the kept reports of a class print.
fn printed(class: Class) -> Vec<String> {
    let reports = files(&incidents_dir(), "expected.txt").into_iter().map(|f| read(&f));
    let own = reports.filter(|r| {
        let first = r.lines().next().unwrap_or_default();
        first.split_whitespace().any(|w| w == class.as_str())
    });
    own.flat_map(|r| {
        r.lines().filter_map(|l| l.trim_start().strip_prefix("$ ").map(str::to_owned)).collect::<Vec<_>>()
    })
    .collect()
}

#[test]
fn every_class_has_its_runbook() {
    let templates = templates::read(&read(&root().join("testdata/commands.txt")));
    let help = stdout(&run(&["--help"]));
    let mut names: BTreeSet<String> = BTreeSet::from(["README".to_owned()]);
    for class in Class::ALL {
        let page = root().join(format!("docs/runbooks/{class}.md"));
        let text = read(&page);
        names.insert(class.to_string());
        assert_eq!(text.lines().next().unwrap(), format!("# {class}: {}", class.title()));
        let plane = match class.plane() {
            Plane::Host => "Plane: **host RAM**",
            Plane::Gpu => "Plane: **VRAM**",
            Plane::Hardware => "Plane: **hardware**",
            Plane::None => "Plane: **none**",
        };
        assert!(text.contains(plane), "{class}: not \"{plane}\"");
        let gives = format!("`triage --exit-code` gives {}", exit_code(&help, *class));
        assert!(text.contains(&gives), "{class}: not \"{gives}\"");
        let at: Vec<Option<usize>> = SECTIONS.iter().map(|s| text.find(&format!("\n{s}\n"))).collect();
        assert!(at.iter().all(Option::is_some) && at.is_sorted(), "{class}: {SECTIONS:?} at {at:?}");
        // The first command is one that a report of this class prints.
        let own = &text[at[1].unwrap()..];
        let all = lines(own);
        let first = all.iter().find(|(_, mark, _)| *mark == Some("sh")).map(|(_, _, l)| *l).unwrap();
        let template = templates.iter().find(|t| t.is_of(first));
        let template = template.unwrap_or_else(|| panic!("{class}: not in testdata/commands.txt: {first}"));
        assert!(printed(*class).iter().any(|c| template.is_of(c)), "{class}: no report prints this: {first}");
    }
    let pages = files(&root().join("docs/runbooks"), ".md");
    let there: BTreeSet<String> =
        pages.iter().map(|p| p.file_stem().unwrap().to_string_lossy().into_owned()).collect();
    assert_eq!(there, names);
}

/// Each row of the runbooks' index names an incident of its class.
#[test]
fn the_index_of_the_runbooks_names_incidents_of_each_class() {
    let text = read(&root().join("docs/runbooks/README.md"));
    let mut seen = BTreeSet::new();
    for row in text.lines().filter(|l| l.starts_with("| ") && l.contains("](")) {
        let cells: Vec<&str> = row.trim_matches('|').split(" | ").map(str::trim).collect();
        let incident = cells.last().unwrap().trim_matches('`');
        let truth = read(&incidents_dir().join(incident).join("truth.json"));
        let truth: serde_json::Value = serde_json::from_str(&truth).unwrap();
        let class = links(row).first().unwrap().trim_end_matches(".md").to_owned();
        assert_eq!(truth["class"], class.as_str(), "{row}");
        seen.insert(class);
    }
    assert_eq!(seen, Class::ALL.iter().map(ToString::to_string).collect());
}

/// The arguments of `dualplane` in a line of a shell, without what the shell does with them.
fn arguments(line: &str) -> Vec<&str> {
    let line = line.strip_prefix("sudo ").unwrap_or(line);
    let line = line.split_once("| dualplane ").map_or(line, |(_, l)| l).trim_start_matches("dualplane ");
    let ends = [" | ", " > ", " #"].iter().filter_map(|w| line.find(w));
    let line = &line[..ends.min().unwrap_or(line.len())];
    line.split_whitespace().collect()
}

/// It reads nothing but what is in the checkout, or nothing at all.
fn runs_here(args: &[&str]) -> bool {
    let reads = ["--from-log", "--calibration", "--manifest", "--from-incident", "--shape", "--prices"];
    match args.first() {
        Some(&"explain") => true,
        Some(&"plan" | &"fit") => !args.iter().any(|a| reads.contains(a)),
        Some(&"triage") => args.iter().any(|a| a.starts_with("testdata/")),
        _ => false,
    }
}

/// Commands of blocks marked `sh`: what needs no cluster runs, the rest is parsed.
#[test]
fn commands_of_the_manual_are_commands() {
    let (mut ran, mut parsed) = (0, 0);
    for page in pages().into_iter().chain([root().join("README.md")]) {
        for (at, mark, line) in lines(&read(&page)) {
            let ours = ["dualplane ", "sudo dualplane "].iter().any(|w| line.starts_with(w))
                || line.contains("| dualplane ");
            if mark != Some("sh") || !ours {
                continue;
            }
            let mut args = arguments(line);
            let place = format!("{}:{at}: {line}", name(&page));
            let here = runs_here(&args);
            if here {
                ran += 1;
            } else {
                // Behind `--` stand another program's words. Help comes after what is before it was understood.
                let end = args.iter().position(|a| *a == "--").unwrap_or(args.len());
                args.insert(end, "--help");
                parsed += 1;
            }
            let o = dualplane().args(&args).current_dir(root()).output().unwrap();
            assert_eq!(code(&o), 0, "{place}\n{}", stderr(&o));
            assert!(!o.stdout.is_empty(), "{place}");
        }
    }
    assert!(ran >= 8 && parsed >= 40, "{ran} ran, {parsed} were parsed");
}

/// Commands of other tools in the pages that are read at night are those that reports print, which run against a real
/// cluster in the end-to-end test.
#[test]
fn commands_of_other_tools_are_known() {
    let templates = templates::read(&read(&root().join("testdata/commands.txt")));
    let runbooks = files(&root().join("docs/runbooks"), ".md");
    let mut seen = 0;
    for page in runbooks.into_iter().chain([root().join("docs/on-call.md")]) {
        for (at, mark, line) in lines(&read(&page)) {
            if mark != Some("sh") || line.starts_with("dualplane ") {
                continue;
            }
            seen += 1;
            assert!(templates.iter().any(|t| t.is_of(line)), "{}:{at}: {line}", name(&page));
        }
    }
    assert!(seen >= 20, "only {seen} commands");
}

/// `EXPECTORATE=overwrite cargo test -p dualplane --test it pages` writes the page anew.
#[test]
fn the_reference_of_the_command_line_is_what_help_says() {
    let mut all = Vec::new();
    helps(&[], &mut all);
    let mut page =
        "# The command line\n\nThis page is generated from the help of the program. A test keeps both in \
        sync.\n\n| command | what it does |\n|---|---|\n"
            .to_owned();
    let title = |name: &str| name.trim_end_matches(" --help").to_owned();
    for (name, help) in &all {
        let about: Vec<&str> = help.lines().take_while(|l| !l.is_empty()).map(str::trim).collect();
        let title = title(name);
        let _ = writeln!(page, "| [`{title}`](#{}) | {} |", title.replace(' ', "-"), about.join(" "));
    }
    for (name, help) in &all {
        let _ = write!(page, "\n## {}\n\n```text\n", title(name));
        for line in help.trim_end().lines() {
            page.push_str(line.trim_end());
            page.push('\n');
        }
        page.push_str("```\n");
    }
    expectorate::assert_contents(root().join("docs/reference/cli.md"), &page);
}

#[test]
fn links_and_anchors_are_found() {
    assert_eq!(links("see [a](b.md#c) and `[not](this)` and [`d`](e.md)"), ["b.md#c", "e.md"]);
    let page = "# Title\n## What proves `not_memory`\n```\n# no heading\n```\n## Twice\n## Twice\n";
    let want = ["title", "what-proves-not_memory", "twice", "twice-1"];
    assert_eq!(anchors(page), want.iter().map(|w| (*w).to_owned()).collect());
    assert_eq!(arguments("sudo dualplane top -o json | jq x"), ["top", "-o", "json"]);
    assert_eq!(arguments("kubectl logs P | dualplane triage -"), ["triage", "-"]);
}
