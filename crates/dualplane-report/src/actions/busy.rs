//! A server that lives and is slow, or busy: the lever that its figures point at. Memory is none of them.

use super::check::Rest;
use super::{Action, Context, Stage, names, promql};
use dualplane_core::verdict::busy::{Held, State};

pub(super) fn advise(cx: &Context<'_>) -> Vec<Action> {
    let Some(busy) = &cx.verdict.busy else { return Vec::new() };
    let batch = cx.flag(|f| &f.batch).unwrap_or("the number of requests at a time");
    let n = names(cx);
    let fix = |title: String| Action::new(Stage::Fix, title);
    let mut out = match busy.state {
        State::Saturated => vec![
            fix("There is nothing to repair: add replicas, or limit what is admitted, if the time to the first token is above \
                its target".to_owned()),
        ],
        State::Overloaded => vec![
            fix(format!(
                "Admit less: lower {batch} or limit the rate before the server, until no request fails; then add replicas"
            )),
        ],
        State::Held(Held::Cpu) => vec![
            fix("Raise the container's CPU limit, or leave it out: tokenizer, scheduler and network threads share it"
                .to_owned())
            .run(format!(
                "kubectl get pod {} -n {} -o jsonpath='{{.spec.containers[*].resources}}'",
                n.pod, n.ns
            )),
        ],
        State::Held(Held::Storage) => vec![
            fix("Move what is read while serving (models, adapters, caches, logs) to a faster volume or into RAM, and see \
                which it is".to_owned())
            .run(n.exec("sh -c 'cat /proc/1/io; df -h'")),
        ],
        State::Held(Held::Network) => vec![
            fix("Find where the pod's packets are dropped: its node's interface, the CNI's limits, a bandwidth annotation"
                .to_owned())
            .run(n.exec("cat /proc/net/dev")),
        ],
        State::Held(Held::Admission) => vec![
            fix(format!("Raise {batch}: the card is idle while requests wait for one to end")).rests(Rest::TwoPools),
        ],
        State::Untold => return Vec::new(),
    };
    let names = cx.engine().and_then(|d| d.metrics.as_ref()).map(|m| m.names());
    if let Some([_, _, Some(waiting), _]) = names {
        out.push(
            Action::new(Stage::Verify, "At the same traffic the queue is empty again, and no request fails")
                .run(promql(&format!("max_over_time({waiting}[10m]) == 0"))),
        );
    }
    out.push(Action::new(
        Stage::Avoid,
        "Do not change memory limits or the engine's share of the card for this: no memory is short",
    ));
    out
}
