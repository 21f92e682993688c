//! Flags that a release of vLLM has no more, or not yet: it ends at its start where one is given.

use dualplane_base::Version;

use super::words::{Given, inverse};
use crate::launch::Changed;

const CHANGES: &str = include_str!("../../../../knowledge/flags/vllm-changes.txt");

/// The first release that pairs `--enable-x` with `--disable-x` (vLLM utils/argparse_utils.py `EnableDisableAction`).
const PAIRS: Version = Version(0, 33, 0);

/// What releases say of a flag, where they differ.
pub(super) fn of(given: &Given) -> Option<Changed> {
    let flag = format!("--{}", given.spelled);
    let listed = |l: &str| {
        let mut words = l.splitn(4, ' ');
        let sign = words.next().filter(|s| matches!(*s, "+" | "-"))?;
        let when = Version::parse(words.next()?)?;
        let name = words.next()?.trim_start_matches('-');
        let instead = words.next().map(str::to_owned);
        // An alias that went is told from the flag that stayed by its spelling.
        let meant = given.name == name || given.spelled == name;
        meant.then(|| Changed { flag: flag.clone(), when, gone: sign == "-", instead })
    };
    let paired = || {
        let other =
            inverse(&given.spelled).filter(|other| given.known && !given.on && *other == given.name)?;
        Some(Changed { flag: flag.clone(), when: PAIRS, gone: false, instead: Some(format!("--no-{other}")) })
    };
    CHANGES.lines().find_map(listed).or_else(paired)
}

#[cfg(test)]
mod tests {
    use super::super::vllm_flags::{FLAGS, OF_0_33};
    use super::super::words::flags_in_pairs;
    use super::*;

    fn first(word: &str) -> Given {
        flags_in_pairs(&[word.to_owned()], &FLAGS).flags.swap_remove(0)
    }

    #[test]
    fn a_flag_that_went_is_refused_from_its_release_on() {
        let gone = of(&first("--rope_scaling={}")).unwrap();
        assert!(gone.lacks(Version(0, 11, 1)) && !gone.lacks(Version(0, 11, 0)));
        assert!(gone.why().contains("--hf-overrides"), "{}", gone.why());
        let pair = of(&first("--disable-prefix-caching")).unwrap();
        assert!(pair.lacks(Version(0, 32, 0)) && !pair.lacks(Version(0, 33, 0)));
        assert_eq!(pair.instead.as_deref(), Some("--no-enable-prefix-caching"));
        assert!(
            of(&first("--cuda-graph-sizes")).is_some() && of(&first("--cudagraph-capture-sizes")).is_none()
        );
        for word in ["--no-enable-prefix-caching", "--disable-log-stats", "-tp", "--unheard-of"] {
            assert_eq!(of(&first(word)), None, "{word}");
        }
    }

    /// What no list of a release holds has a line, and no line is of a flag that both releases have.
    #[test]
    fn what_the_newest_release_lacks_has_a_line() {
        let has = |n: &str| OF_0_33.split_ascii_whitespace().any(|w| w.trim_start_matches('-') == n);
        for (name, ..) in FLAGS.iter().filter(|(n, ..)| !has(n)) {
            assert!(of(&first(&format!("--{name}"))).is_some_and(|c| c.gone), "{name}");
        }
        for line in CHANGES.lines().filter(|l| l.starts_with('-')) {
            let name = line.split(' ').nth(2).unwrap().trim_start_matches('-');
            assert!(!has(name), "{line}");
            let instead =
                line.split(' ').nth(3).map(|i| i.trim_start_matches('-').split('.').next().unwrap());
            assert!(instead.is_none_or(has), "{line}");
        }
    }
}
