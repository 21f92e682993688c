//! The course of one death: its pod is made, dies, is judged in three ways, and goes.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::Namespace;
use super::choice::say;
use super::judged::Judged;
use super::kernel;
use super::pods::Death;
use crate::harness::{Ran, create, succeeds};

/// A node with two busy cores; the slowest is a kubelet that measures volumes every ten seconds before it evicts.
const PATIENCE: Duration = Duration::from_secs(240);
/// How long the agent may take from the last death until its judgement.
const AGENT: Duration = Duration::from_secs(90);
/// How often a death is died again of which the evidence was lost.
const AGAIN: u32 = 4;

pub(super) fn die(
    death: &Death,
    namespace: &Namespace,
    dir: &Path,
    kept: &(dyn Fn() -> Vec<Value> + Sync),
) -> Judged {
    for again in 0.. {
        let pod = happen(death, namespace);
        let mut judged = Judged::look(death, &pod, namespace.0, dir);
        judged.again = again;
        judged.wait_for_the_agent(kept, AGENT);
        if judged.faults.is_empty() {
            gone(death, namespace);
            return judged;
        }
        // Other kills came at the same moment, of this test or of this machine: whose this one was, the log does not say.
        // Or the agent came too late to the only copy of what is gone a second later, on a node that has no time for it.
        // What was said then must still be nobody else's death.
        let cut = !kernel::tells_of(&pod, death.kills()) && judged.open();
        if again == AGAIN || !(cut || judged.only_the_agent_lacks_it()) {
            return judged;
        }
        say(&format!("deaths: {} again: {:?}", death.name, judged.faults));
        gone(death, namespace);
    }
    unreachable!("each death is judged")
}

/// Makes the pod and waits until it has died as the table says.
fn happen(death: &Death, namespace: &Namespace) -> Value {
    create(&death.manifest(namespace.0));
    let began = Instant::now();
    let mut told = death.then.is_none();
    loop {
        if let Some(pod) = namespace.pods().remove(&death.name) {
            told = told || death.tell(&pod, namespace.0);
            if told && death.happened(&pod, namespace) {
                return pod;
            }
        }
        assert!(
            began.elapsed() < PATIENCE,
            "{} is not dead within {PATIENCE:?}\n{}",
            death.name,
            Ran::of(Command::new("kubectl").args(["get", "pods", "-n", namespace.0])).text()
        );
        std::thread::sleep(Duration::from_secs(1));
    }
}

/// A crash loop that goes on kills beside the next deaths.
fn gone(death: &Death, namespace: &Namespace) {
    if std::env::var_os("KEEP").is_none_or(|k| k != "pods") {
        let what = death.object();
        let _ = succeeds(&["delete", &what, "-n", namespace.0, "--ignore-not-found", "--wait"]);
    }
}
