//! How to get what is missing where systemd runs the server: its files and processes are the host's.

use crate::evidence::Gap;

/// Tells the command of a gap for a unit; one that only a cluster knows goes.
pub(super) fn told(gap: &mut Gap, unit: &str) {
    let Some(command) = gap.command.take_if(|c| c.contains("kubectl")) else { return };
    gap.command = match command.split_once(" -- ") {
        // What `kubectl exec` runs in the container.
        Some((_, inside)) => Some(inside.to_owned()),
        None if command.contains("kubectl logs") => {
            Some(format!("journalctl -u {unit} -n 5000 --no-pager > {unit}.log"))
        }
        None => None,
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_container_would_run_the_host_runs() {
        for (command, there) in [
            ("kubectl exec -n a p -c c -- nvidia-smi > nvidia-smi.csv", Some("nvidia-smi > nvidia-smi.csv")),
            (
                "kubectl logs p -n a --previous > previous.log",
                Some("journalctl -u vllm.service -n 5000 --no-pager > vllm.service.log"),
            ),
            ("kubectl get events -n a", None),
            ("dmesg -T", Some("dmesg -T")),
        ] {
            let mut gap = Gap { what: "x".into(), why: "y".into(), command: Some(command.into()) };
            told(&mut gap, "vllm.service");
            assert_eq!(gap.command.as_deref(), there, "{command}");
        }
    }
}
