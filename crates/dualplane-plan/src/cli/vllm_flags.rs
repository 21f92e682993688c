//! Flags of `vllm serve`: those that change memory are read in `vllm.rs`, the others are known to change none.

use std::sync::LazyLock;

use dualplane_base::packed::Block;

use super::words::Known;
use super::words::Take::{Many, Switch, Value};

static TEXT: Block = include!(concat!(env!("OUT_DIR"), "/vllm_flags.rs"));

/// What `knowledge/flags/vllm.txt` holds.
pub(super) static FLAGS: LazyLock<Vec<Known>> =
    LazyLock::new(|| TEXT.text().lines().filter(|l| l.starts_with('-')).filter_map(flag).collect());

/// A flag's line: spellings, and what it takes.
fn flag(line: &'static str) -> Option<Known> {
    let (spellings, takes) = line.rsplit_once(' ')?;
    let take = match takes {
        "|" => Switch,
        "VALUE" => Value,
        "..." => Many,
        _ => return None,
    };
    let mut names = spellings.split(' ').map(|n| n.trim_start_matches('-'));
    let first = names.next()?;
    // The table lives as long as the program.
    Some((first, names.collect::<Vec<_>>().leak(), take))
}

/// Those with memory of their own that no formula here follows.
pub(super) const NOT_FOLLOWED: &[&str] = &[
    "additional-config",
    "config",
    "cp-kv-cache-interleave-size",
    "cpu-offload-params",
    "dcp-q-replicate",
    "default-mm-loras",
    "diffusion-config",
    "disable-sliding-window",
    "ec-transfer-config",
    "enable-batch-sharded-sampling",
    "enable-dbo",
    "enable-elastic-ep",
    "enable-hc-sp",
    "enable-prompt-embeds",
    "enable-return-routed-experts",
    "enable-shm-tensor-arena",
    "enable-tower-connector-lora",
    "engram-config",
    "kernel-config",
    "kv-cache-dtype-skip-layers",
    "kv-sharing-fast-prefill",
    "kv-transfer-config",
    "linear-backend",
    "lora-dtype",
    "mamba-backend",
    "mamba-block-size",
    "mamba-cache-dtype",
    "max-num-scheduled-tokens",
    "mm-encoder-only",
    "mm-ipc-gpu-memory-gb",
    "mm-processor-kwargs",
    "model-class-overrides",
    "model-impl",
    "moe-backend",
    "offload-group-size",
    "offload-num-in-group",
    "offload-params",
    "offload-prefetch-step",
    "performance-mode",
    "prefix-cache-retention-interval",
    "quantization-config",
    "replayssm-buffer-len",
    "swa-bounded-replay",
    "ubatch-size",
    "use-replayssm",
];

/// Every flag that `vllm serve` of a release takes, as its own parser lists them.
#[cfg(test)]
pub(super) const OF_0_33: &str = include_str!("../../../../knowledge/flags/vllm-0.33.0.txt");

#[cfg(test)]
mod tests {
    use super::super::words::{flags_in_pairs, plain};
    use super::*;

    /// Spellings of a flag, whether words follow that turn it off, those words, and what it takes.
    fn lines() -> impl Iterator<Item = (Vec<&'static str>, Vec<&'static str>, super::super::words::Take)> {
        OF_0_33.lines().filter(|l| !l.starts_with('#')).map(|line| {
            let (on, off) = line.split_once(" |").map_or((line, None), |(on, off)| (on, Some(off)));
            let take = match off {
                Some(_) => Switch,
                None if line.ends_with("...") => Many,
                None => Value,
            };
            let words = |t: &'static str| t.split_ascii_whitespace().filter(|w| w.starts_with('-')).collect();
            (words(on), words(off.unwrap_or_default()), take)
        })
    }

    #[test]
    fn every_flag_of_a_release_means_what_its_parser_says() {
        assert!(TEXT.is_whole());
        assert_eq!(FLAGS.len(), TEXT.text().lines().filter(|l| !l.starts_with('#')).count());
        let mut wrong = Vec::new();
        for (on, off, take) in lines() {
            let name = |word: &str| flags_in_pairs(&[word.to_owned()], &FLAGS).flags.swap_remove(0);
            let first = name(on[0]).name;
            let held = FLAGS.iter().find(|(n, ..)| *n == first).map(|(_, _, t)| *t);
            if held != Some(take) {
                wrong.push(format!("{}: {held:?} for {take:?}", on[0]));
            }
            for (word, want) in on.iter().map(|w| (w, true)).chain(off.iter().map(|w| (w, false))) {
                let given = name(word);
                // Short spellings that change no memory are not listed.
                let short = plain(word).len() < 5 && !given.known;
                // Early releases had this one as a flag of its own.
                let own = *word == "--disable-log-requests";
                if !short && !own && (given.name != first || !given.known || given.on != want) {
                    wrong.push(format!("{word}: {given:?}"));
                }
            }
        }
        assert!(wrong.is_empty(), "{wrong:#?}");
        assert!(
            NOT_FOLLOWED
                .iter()
                .all(|n| FLAGS.iter().any(|(name, others, _)| name == n || others.contains(n)))
        );
    }
}
