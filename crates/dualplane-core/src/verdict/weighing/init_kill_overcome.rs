//! Init containers that were OOM-killed, ran again and completed are told, and explain nothing that came later.

use super::Weighing;
use crate::text::name;
use crate::verdict::case::Case;
use crate::verdict::{Class, Decided, Phase, Step};

pub(in crate::verdict) const RULE: Weighing = Weighing {
    id: "init_kill_overcome",
    adds: "a step for an init container that was OOM-killed, ran again and completed",
    because: "the server started after it: it is worth knowing but explains nothing later",
    source: "Kubernetes init containers",
    apply,
};

fn apply(case: &Case<'_>, decided: &mut Decided) {
    let all = case.bundle.pods.iter().flat_map(|p| &p.containers);
    for (c, t) in all.filter_map(|c| Some((c, c.overcame().filter(|t| t.oom_killed())?))) {
        let at = t.finished.map_or(String::new(), |s| format!(" at {}", s.show()));
        decided.sequence.push(Step {
            class: Class::HostOomKilled,
            phase: Phase::Load,
            what: format!("init container {} was OOM-killed{at}, ran again and completed", name(&c.name)),
            trigger: None,
        });
    }
}
