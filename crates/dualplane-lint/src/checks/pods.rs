//! The life of a pod: probes against the load, the grace against the drain.

use dualplane_base::json::{list, str_at, text_of};
use dualplane_base::units::{Bytes, GIB};
use serde_json::Value;

use super::{Said, Server};

/// No disk or network of a node reads a checkpoint faster: 8 NVMe drives, or 100 GbE at line rate.
const READ_AT_MOST: u64 = 12 * GIB;
/// Python, torch, CUDA's context: no engine listens earlier.
const START_AT_LEAST: u64 = 15;

fn seconds(probe: &Value) -> u64 {
    let of = |key: &str, default: u64| probe.get(key).and_then(Value::as_u64).unwrap_or(default);
    of("initialDelaySeconds", 0)
        .saturating_add(of("periodSeconds", 10).saturating_mul(of("failureThreshold", 3)))
}

pub(super) fn probe_shorter_than_load(s: &Server<'_>) -> Option<Said> {
    let plan = s.plan.as_ref()?;
    let gpu = &plan.answer.as_ref()?.plan.as_ref().ok()?.gpu;
    let (name, at, probe) = match (s.c.get("startupProbe"), s.c.get("livenessProbe")) {
        (Some(p), _) => ("startup", "/startupProbe", p),
        (None, Some(p)) => ("liveness", "/livenessProbe", p),
        _ => return None,
    };
    let all = gpu.weights_bytes.low.saturating_mul(plan.line().launch.tp.max(1));
    let need = START_AT_LEAST + all / READ_AT_MOST;
    let have = seconds(probe);
    if have >= need {
        return None;
    }
    let period = probe.get("periodSeconds").and_then(Value::as_u64).unwrap_or(10).max(1);
    // What disks of clouds read: 1 GiB/s, and five minutes for compilation.
    let threshold = (300 + all / GIB).div_ceil(period);
    let message = format!(
        "the {name} probe kills the server after {have} s, and loading {} of weights takes {need} s on the fastest disk",
        Bytes(all)
    );
    let fix = format!("add a startupProbe with periodSeconds {period} and failureThreshold {threshold}");
    Some(Said::new(message, fix).at(at))
}

/// `sleep N` of a script.
fn slept(script: &str) -> Option<u64> {
    let mut words = script.split(|c: char| c.is_whitespace() || c == ';' || c == '&');
    let mut most = None;
    while let Some(w) = words.next() {
        if w == "sleep" || w == "/bin/sleep" {
            let n = words.next().and_then(|n| n.trim_end_matches('s').parse().ok());
            most = most.max(n);
        }
    }
    most
}

pub(super) fn stop_longer_than_grace(s: &Server<'_>) -> Option<Said> {
    let stop = s.c.pointer("/lifecycle/preStop")?;
    let slept = stop.pointer("/sleep/seconds").and_then(Value::as_u64).or_else(|| {
        let words: Vec<String> = list(stop, "/exec/command").iter().map(text_of).collect();
        slept(&words.join(" "))
    })?;
    let grace = s.pod.spec.get("terminationGracePeriodSeconds").and_then(Value::as_u64).unwrap_or(30);
    if slept < grace {
        return None;
    }
    let name = str_at(s.c, "/name");
    let message = format!(
        "preStop of {name} sleeps {slept} s, and the pod is killed after {grace} s: the server never drains its requests"
    );
    let fix = format!("set terminationGracePeriodSeconds to {}", slept.saturating_add(60));
    Some(Said::new(message, fix).at("/lifecycle/preStop"))
}

#[cfg(test)]
mod tests {
    use super::slept;

    #[test]
    fn sleeps_of_scripts() {
        assert_eq!(slept("sh -c sleep 30; curl localhost"), Some(30));
        assert_eq!(slept("sleep 5 && sleep 40s"), Some(40));
        assert_eq!(slept("asleep 40"), None);
    }
}
