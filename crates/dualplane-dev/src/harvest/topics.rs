//! What a message is about: memory, a fault of the GPU, or the end of a process. Only these are kept.

use std::sync::LazyLock;

use regex::Regex;

/// Whether a template's words concern a topic.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Topics {
    pub(super) memory: bool,
    pub(super) fault: bool,
    pub(super) end: bool,
}

impl Topics {
    pub(super) fn any(self) -> bool {
        self.memory || self.fault || self.end
    }

    /// Of a template, by its words and by how it comes out.
    pub(super) fn of(template: &str, severity: &str) -> Self {
        static MEMORY: LazyLock<Option<Regex>> = LazyLock::new(|| {
            Regex::new(
                r"(?ix)\bmemory\b | out[\ _-]of[\ _-]?memory | \boom\b | oom[\ _-]?kill | \bv?ram\b | \bhbm\b | enomem | bad_?alloc
                | \b(?:re|cuda|hip|host|m|c)?alloc\w* | \bmmap\b | \bmlock\b | \bshm\b | no\ space\ left | \bswap(?:ped|ping|space)\b
                | \bkv[\ _-]?cache\b.*\b(?:full|enough|exhaust\w*|exceed\w*|capacity|insufficient|small|large|larger|free|fit)\b
                | (?:not\ enough|no\ (?:free|available|more)|insufficient|out\ of|exhausted|r[au]n(?:ning)?\ out)\b.*\b(?:blocks?|pages?|slots?|cache|pool|tokens?|space|buffers?|resources?)\b
                | mem_fraction | memory_(?:utilization|fraction)",
            )
            .ok()
        });
        static FAULT: LazyLock<Option<Regex>> = LazyLock::new(|| {
            Regex::new(
                r"(?ix)\bxid\b | \becc\b | uncorrect | \bpoison | (?:page|vm|memory|access|protection|mmu|l2)\ fault | fault(?:ed|y)?\ (?:on|at|by|addr)
                | illegal\ (?:memory|address|instruction|access) | misaligned\ addr | device-side\ assert | launch\ (?:failure|timed)
                | \b(?:gpu|device|ring|engine|hw|hardware|card)\b.{0,30}\b(?:hang|hung|reset|lost|fault|wedged|dead|timed?\ ?out|failure|error)\b
                | \b(?:hang|reset|timeout|lost)\b.{0,20}\b(?:gpu|device|ring|engine|job)\b
                | wedged | \bnvlink\b | thermal | overheat | fallen\ off | \bras\b | hardware\ error | bus\ error | unrecoverable",
            )
            .ok()
        });
        static END: LazyLock<Option<Regex>> = LazyLock::new(|| {
            Regex::new(
                r"(?ix)\b(?:died|dead|killed|exited|exiting|crash(?:ed|ing)?|terminat(?:ed|ing)|abort(?:ed|ing)?|shutting\ down|shut\ down|sigkill|sigterm|sigsegv|exit\ (?:code|status)|exitcode|unexpectedly|fatal)\b
                | failed\ to\ (?:start|initiali[sz]e|launch)\b.*\b(?:server|engine|worker|process|scheduler|backend|model|shard|executor|container|runner)\b",
            )
            .ok()
        });
        let is = |r: &LazyLock<Option<Regex>>| r.as_ref().is_some_and(|r| r.is_match(template));
        Self { memory: is(&MEMORY), fault: is(&FAULT), end: matches!(severity, "exit" | "panic") || is(&END) }
    }
}

#[cfg(test)]
mod tests {
    use super::Topics;

    #[test]
    fn words_decide() {
        for (template, severity, memory, fault, end) in [
            ("CUDA out of memory. Tried to allocate {}", "raise", true, false, false),
            ("No free KV cache blocks", "raise", true, false, false),
            ("ring {s} timeout, signaled seq={d}", "error", false, true, false),
            ("Worker {} died unexpectedly", "error", false, false, true),
            ("cannot parse the configuration", "exit", false, false, true),
            ("cannot parse the configuration", "raise", false, false, false),
            ("an allocator is needed", "raise", true, false, false),
            ("fallocation of ballots", "raise", false, false, false),
        ] {
            assert_eq!(Topics::of(template, severity), Topics { memory, fault, end }, "{template}");
        }
    }
}
