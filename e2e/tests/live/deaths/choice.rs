//! Which deaths of the table a run dies: a sample drawn by a seed, all of them, or those that are asked for by name.

use std::io::Write;

use super::pods::Death;

/// Of a run that asks for nothing else. The whole table takes minutes.
const SAMPLE: usize = 20;

pub(super) struct Choice {
    pub(super) deaths: Vec<Death>,
    pub(super) whole: bool,
}

/// `$DEATHS` is `all`, or parts of names; without it a sample by `$DEATHS_SEED`, which else is the commit's.
pub(super) fn choice(table: Vec<Death>) -> Choice {
    let of = table.len();
    match std::env::var("DEATHS").as_deref() {
        Ok("all") => {
            say(&format!("deaths: all {of}"));
            Choice { deaths: table, whole: true }
        }
        Ok(words) => {
            let asked = |d: &Death| words.split_whitespace().any(|w| d.name.contains(w));
            let deaths: Vec<Death> = table.into_iter().filter(asked).collect();
            say(&format!("deaths: {} of {of}, whose name contains one of {words:?}", deaths.len()));
            Choice { deaths, whole: false }
        }
        Err(_) => {
            let seed = seed();
            let deaths = drawn(table, &seed);
            let names: Vec<&str> = deaths.iter().map(|d| d.name.as_str()).collect();
            say(&format!(
                "deaths: a sample of {} of {of}, DEATHS_SEED={seed} (DEATHS=all for all of them): {}",
                deaths.len(),
                names.join(" ")
            ));
            Choice { deaths, whole: false }
        }
    }
}

/// `$DEATHS_SEED`, else the commit's.
pub(crate) fn seed() -> String {
    std::env::var("DEATHS_SEED").unwrap_or_else(|_| commit())
}

/// The commit that is tested: two runs of it die the same deaths, the next one others.
fn commit() -> String {
    let git = std::process::Command::new("git")
        .args(["-C", env!("CARGO_MANIFEST_DIR"), "rev-parse", "--short=12", "HEAD"])
        .output();
    git.ok()
        .filter(|o| o.status.success())
        .map_or_else(|| "none".to_owned(), |o| String::from_utf8_lossy(&o.stdout).trim().to_owned())
}

/// FNV-1a: a name's place in the order that the seed gives.
pub(crate) fn place(seed: &str, name: &str) -> u64 {
    let bytes = seed.bytes().chain([0]).chain(name.bytes());
    let hash =
        bytes.fold(0xcbf2_9ce4_8422_2325_u64, |h, b| (h ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3));
    // The last bytes reach the upper bits only by another turn.
    (hash ^ (hash >> 32)).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// Those that die alone are left to a run that is: other tests run beside a sample.
fn drawn(mut table: Vec<Death>, seed: &str) -> Vec<Death> {
    table.retain(|d| !d.alone);
    table.sort_by_key(|d| place(seed, &d.name));
    table.truncate(SAMPLE);
    table
}

/// Past the test harness, which keeps the output of a test that passes: which deaths were drawn belongs to the result.
pub(crate) fn say(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}
