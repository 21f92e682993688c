//! What goes with a later release, said where it is used: in the help of a flag and when it is given, of a file's keys when it
//! is read, of a document when it is written. The table is `dualplane_base::deprecation`.

use std::collections::BTreeSet;

use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Command};
use dualplane_base::deprecation::{Deprecation, Thing};
use serde_json::Value;

/// A command line whose help says which flags go.
pub(crate) fn marked(command: Command, table: &[Deprecation]) -> Command {
    let flags = table.iter().filter(|d| d.thing == Thing::Flag);
    flags.fold(command, |c, d| mark(c, &d.of.split(' ').collect::<Vec<_>>(), d))
}

fn mark(command: Command, path: &[&str], d: &Deprecation) -> Command {
    let Some((first, rest)) = path.split_first() else {
        return command.mut_args(|arg| if is(&arg, d) { said(arg, d) } else { arg });
    };
    let first = (*first).to_owned();
    command.mut_subcommands(|sub| if sub.get_name() == first { mark(sub, rest, d) } else { sub })
}

fn is(arg: &Arg, d: &Deprecation) -> bool {
    arg.get_long().is_some_and(|long| d.name.strip_prefix("--") == Some(long))
}

fn said(arg: Arg, d: &Deprecation) -> Arg {
    let with = |help: String| format!("{help} [{}]", d.mark()).trim_start().to_owned();
    let short = arg.get_help().map(ToString::to_string).unwrap_or_default();
    let long = arg.get_long_help().map(ToString::to_string);
    let arg = arg.help(with(short));
    match long {
        Some(long) => arg.long_help(with(long)),
        None => arg,
    }
}

/// Flags that go and were given, on the command line or by their variable.
pub(crate) fn flags<'t>(
    command: &Command,
    matches: &ArgMatches,
    table: &'t [Deprecation],
) -> Vec<&'t Deprecation> {
    table.iter().filter(|d| d.thing == Thing::Flag && given(command, matches, d).unwrap_or(false)).collect()
}

fn given(command: &Command, matches: &ArgMatches, d: &Deprecation) -> Option<bool> {
    let (mut command, mut matches) = (command, matches);
    for name in d.of.split(' ') {
        (command, matches) = (command.find_subcommand(name)?, matches.subcommand_matches(name)?);
    }
    let id = command.get_arguments().find(|a| is(a, d))?.get_id().as_str();
    let source = matches.value_source(id)?;
    Some(matches!(source, ValueSource::CommandLine | ValueSource::EnvVariable))
}

/// What goes of documents that are printed: one, or one on each line. Other output is nobody's document.
pub(crate) fn written<'t>(text: &str, table: &'t [Deprecation]) -> Vec<&'t Deprecation> {
    // Reports are large, and mostly nothing goes: only then are they parsed.
    let any = table.iter().any(|d| matches!(d.thing, Thing::Field | Thing::Version));
    if !any || !text.starts_with('{') {
        return Vec::new();
    }
    // What people read says what it says in words.
    of(serde_json::Deserializer::from_str(text).into_iter().map_while(Result::ok), table)
}

/// What goes of a file that is read, TOML by its name and else JSON.
pub(crate) fn read<'t>(toml: bool, text: &str, table: &'t [Deprecation]) -> Vec<&'t Deprecation> {
    if table.is_empty() {
        return Vec::new();
    }
    let document: Option<Value> =
        if toml { toml::from_str(text).ok() } else { serde_json::from_str(text).ok() };
    of(document.into_iter(), table)
}

fn of(documents: impl Iterator<Item = Value>, table: &[Deprecation]) -> Vec<&Deprecation> {
    let mut found = BTreeSet::new();
    for document in documents {
        found.extend(table.iter().enumerate().filter(|(_, d)| d.is_in(&document)).map(|(i, _)| i));
    }
    found.into_iter().filter_map(|i| table.get(i)).collect()
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;
    use dualplane_base::deprecation::{DEPRECATED, Release};

    use super::*;
    use crate::args::Args;

    const fn goes(thing: Thing, of: &'static str, name: &'static str) -> Deprecation {
        Deprecation { thing, of, name, since: Release(0, 2), gone: Release(0, 3), instead: "use --new" }
    }

    /// Things that exist, as if they went.
    const TABLE: &[Deprecation] = &[
        goes(Thing::Flag, "plan", "--gpu-memory"),
        goes(Thing::Flag, "incidents ls", "--output"),
        goes(Thing::Field, "upgrade", "items.why"),
        goes(Thing::Version, "map", "v1"),
        goes(Thing::Key, "gate-policy", "headroom.host"),
    ];

    fn names(found: &[&Deprecation]) -> Vec<&'static str> {
        found.iter().map(|d| d.name).collect()
    }

    fn used(line: &str) -> Vec<&'static str> {
        let mut command = marked(Args::command(), TABLE);
        let matches = command.try_get_matches_from_mut(line.split(' ')).unwrap();
        names(&flags(&command, &matches, TABLE))
    }

    #[test]
    fn a_flag_that_goes_is_told_when_it_is_given() {
        assert_eq!(used("dualplane plan m --gpu-memory 80GiB"), ["--gpu-memory"]);
        assert_eq!(used("dualplane incidents ls -o json"), ["--output"]);
        // A default is nobody's word, and another command's flag of that name stays.
        for line in [
            "dualplane plan m --gpu L4",
            "dualplane incidents ls",
            "dualplane triage . -o json",
            "dualplane fit m --gpu-memory 80GiB --input-tokens 1 --output-tokens 1 --concurrency 1",
        ] {
            assert_eq!(used(line), [""; 0], "{line}");
        }
    }

    #[test]
    fn the_help_of_a_flag_that_goes_says_so() {
        let mut command = marked(Args::command(), TABLE);
        let mut help = |path: &[&str]| {
            let sub = path.iter().fold(&mut command, |c, name| c.find_subcommand_mut(name).unwrap());
            sub.render_long_help().to_string().split_whitespace().collect::<Vec<_>>().join(" ")
        };
        let mark = "[deprecated since 0.2, gone with 0.3: use --new]";
        assert_eq!(help(&["plan"]).matches(mark).count(), 1);
        assert_eq!(help(&["incidents", "ls"]).matches(mark).count(), 1);
        assert_eq!(help(&["fit"]).matches(mark).count(), 0);
    }

    #[test]
    fn a_document_that_is_written_is_asked_for_what_goes() {
        let upgrade = r#"{"schema": "dualplane.upgrade/v1", "items": [{"path": "a"}, {"why": null}]}"#;
        assert_eq!(names(&written(upgrade, TABLE)), ["items.why"]);
        let lines = format!("{}\n{{\"schema\": \"dualplane.map/v1\"}}\n", upgrade.replace("why", "x"));
        assert_eq!(names(&written(&lines, TABLE)), ["v1"]);
        for other in ["", "text", "{cut", "{}", "[1]", r#"{"schema": "dualplane.plan/v1"}"#] {
            assert_eq!(names(&written(other, TABLE)), [""; 0], "{other}");
        }
        assert_eq!(names(&written(upgrade, &[])), [""; 0]);
    }

    #[test]
    fn a_file_that_is_read_is_asked_for_what_goes() {
        let policy = "schema = \"dualplane.gate-policy/v1\"\n[headroom]\nhost = 0.1\n";
        assert_eq!(names(&read(true, policy, TABLE)), ["headroom.host"]);
        assert_eq!(names(&read(false, policy, TABLE)), [""; 0]);
        assert_eq!(names(&read(true, &policy.replace("host", "kv"), TABLE)), [""; 0]);
    }

    /// What the table calls a flag of a command is one.
    #[test]
    fn the_table_names_flags_that_exist() {
        for d in DEPRECATED.iter().chain(TABLE).filter(|d| d.thing == Thing::Flag) {
            let whole = Args::command();
            let command = d.of.split(' ').try_fold(&whole, |c, name| c.find_subcommand(name));
            assert!(command.is_some_and(|c| c.get_arguments().any(|a| is(a, d))), "{d}");
        }
    }
}
