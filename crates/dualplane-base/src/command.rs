//! Commands that a person pastes.

/// How long a command waits on the node before it prints. `kubectl debug` attaches only after the container runs: what was
/// printed before that is lost, and nothing says so. Without input it ends with the command, also in a script.
const UNTIL_ATTACHED: &str = "sleep 2";

/// A command to run on the node, through the API so that it pastes anywhere. What stands behind the first pipe, redirection
/// or comment stays here.
#[must_use]
pub fn on_node(node: &str, command: &str) -> String {
    let ends = [" | ", " > ", "   #"].iter().filter_map(|w| command.find(w));
    let (there, here) = command.split_at(ends.min().unwrap_or(command.len()));
    let there = there.replace('\'', r"'\''");
    format!(
        "kubectl debug node/{node} -q --attach --profile=sysadmin --image=busybox -- chroot /host sh -c '{UNTIL_ATTACHED}; {there}'{here}"
    )
}

/// A shell's command that changes into the folder of the container's own memory cgroup, of either version.
const OWN_CGROUP: &str = "cd /sys/fs/cgroup; [ -d memory ] && cd memory";

/// Prints these files of the container's own memory cgroup as `NAME:VALUE`. Files of both versions may be named: what one
/// does not have is left out.
#[must_use]
pub fn own_cgroup(files: &str) -> String {
    format!("sh -c '{OWN_CGROUP}; grep -s . {files} | cat'")
}

/// Prints how often and how far the container's own memory cgroup filled, and the kills in it.
#[must_use]
pub fn own_kills() -> String {
    own_cgroup("memory.events memory.oom_control memory.peak memory.max_usage_in_bytes")
}

/// Prints these files, and lines of `memory.stat` by their keys.
#[must_use]
pub fn own_cgroup_and_stat(files: &str, keys: &str) -> String {
    format!("sh -c '{OWN_CGROUP}; grep -s . {files} | cat; grep -E \"^({keys}) \" memory.stat'")
}

#[cfg(test)]
mod tests {
    use super::on_node;

    #[test]
    fn what_is_behind_a_pipe_runs_here() {
        for (command, there, here) in [
            ("dmesg -T > kernel.log", "dmesg -T", " > kernel.log"),
            ("dmesg -T | grep -E 'NVRM|Xid' | tail", "dmesg -T", " | grep -E 'NVRM|Xid' | tail"),
            ("cat /proc/PID/cgroup   # the pod", "cat /proc/PID/cgroup", "   # the pod"),
            ("echo 'a b'", r"echo '\''a b'\''", ""),
            ("systemctl reboot", "systemctl reboot", ""),
        ] {
            let want = format!("chroot /host sh -c 'sleep 2; {there}'{here}");
            assert!(on_node("n", command).ends_with(&want), "{}", on_node("n", command));
        }
    }
}
