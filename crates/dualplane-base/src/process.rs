//! A process of a node: its cgroup tells the pod and the container.

use crate::cgroup_path::{container_id, pod_uid};

/// Characters of `/proc/PID/cgroup` that are read: cgroup v1 has a dozen lines of some hundred characters.
const MAX_CGROUP: usize = 64 << 10;

/// What the cgroup of a process says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Process {
    /// Its id on the machine that was asked.
    pub pid: u32,
    /// Its name, at most 15 characters.
    pub comm: String,
    /// Path of the cgroup that names the pod, else of the memory controller.
    pub path: String,
    /// `1` or `2`: the hierarchy that the path is of.
    pub version: u8,
    /// `systemd` or `cgroupfs`: who made the path.
    pub driver: Option<&'static str>,
    /// `containerd`, `cri-o`, `docker`: where the path names it.
    pub runtime: Option<&'static str>,
    /// `Guaranteed`, `Burstable`, `BestEffort`.
    pub qos: Option<&'static str>,
    /// UID of the pod; of a static pod the hash of its manifest.
    pub pod_uid: Option<String>,
    /// Container id, 64 hex digits.
    pub container_id: Option<String>,
}

/// Reads `/proc/PID/cgroup`: one line `0::PATH` for v2, `N:CONTROLLERS:PATH` for v1, both on hybrid machines.
#[must_use]
pub fn process(pid: u32, comm: &str, cgroup: &str) -> Process {
    let text = crate::text::shorten(cgroup, MAX_CGROUP);
    let lines: Vec<(u8, &str, &str)> = text
        .lines()
        .filter_map(|l| {
            let mut parts = l.splitn(3, ':');
            let (number, controllers, path) = (parts.next()?, parts.next()?, parts.next()?);
            let version = if number == "0" && controllers.is_empty() { 2 } else { 1 };
            Some((version, controllers, path))
        })
        .collect();
    // The memory controller's line is the one by which the process would be killed; any that names a pod will do.
    let of_memory = |(_, c, _): &&(u8, &str, &str)| c.split(',').any(|c| c == "memory");
    let names_pod = |(_, _, p): &&(u8, &str, &str)| pod_uid(p).is_some();
    let chosen = lines
        .iter()
        .filter(of_memory)
        .find(names_pod)
        .or_else(|| lines.iter().find(names_pod))
        .or_else(|| lines.iter().find(of_memory))
        .or_else(|| lines.iter().find(|l| l.0 == 2))
        .or_else(|| lines.first());
    let comm = comm.trim().to_owned();
    let Some((version, _, path)) = chosen else { return Process { pid, comm, ..Process::default() } };
    Process { pid, comm, ..of_path(path, *version) }
}

/// What the path of a cgroup says of its processes, where no process is at hand: a directory below the hierarchy's root.
#[must_use]
pub fn of_path(path: &str, version: u8) -> Process {
    let pod = pod_uid(path);
    Process {
        pid: 0,
        comm: String::new(),
        path: path.to_owned(),
        version,
        driver: pod.as_ref().map(|_| if path.contains(".slice") { "systemd" } else { "cgroupfs" }),
        runtime: runtime(path),
        qos: pod.as_ref().map(|_| qos(path)),
        container_id: container_id(path),
        pod_uid: pod,
    }
}

fn runtime(path: &str) -> Option<&'static str> {
    // The pod's own part decides: a node in a container stands behind `docker-ID.scope`.
    let own = path.rfind("pod").and_then(|at| path.get(at..)).unwrap_or(path);
    [("cri-containerd", "containerd"), ("crio-", "cri-o"), ("docker-", "docker")]
        .into_iter()
        .find(|(word, _)| own.contains(word))
        .map(|(_, name)| name)
}

fn qos(path: &str) -> &'static str {
    if path.contains("besteffort") {
        "BestEffort"
    } else if path.contains("burstable") {
        "Burstable"
    } else {
        "Guaranteed"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const UID: &str = "9ebd9238-4ea3-417e-975f-99e0d23c5718";

    #[test]
    fn all_drivers_runtimes_and_versions() {
        let id = "a".repeat(64);
        let under = UID.replace('-', "_");
        for (text, want) in [
            (
                format!("9:name=systemd:/\n4:memory:/kubepods/burstable/pod{UID}/{id}\n0::/\n"),
                (1, Some("cgroupfs"), None, Some("Burstable")),
            ),
            (
                format!("0::/kubepods.slice/kubepods-pod{under}.slice/cri-containerd-{id}.scope\n"),
                (2, Some("systemd"), Some("containerd"), Some("Guaranteed")),
            ),
            (
                format!(
                    "0::/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod{under}.slice/crio-{id}.scope/container\n"
                ),
                (2, Some("systemd"), Some("cri-o"), Some("BestEffort")),
            ),
            (
                format!(
                    "0::/system.slice/docker-{}.scope/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-burstable-pod{under}.slice/cri-containerd-{id}.scope",
                    "b".repeat(64)
                ),
                (2, Some("systemd"), Some("containerd"), Some("Burstable")),
            ),
        ] {
            let p = process(7, "vllm\n", &text);
            assert_eq!((p.version, p.driver, p.runtime, p.qos), want, "{text}");
            assert_eq!((p.pod_uid.as_deref(), p.container_id.as_deref()), (Some(UID), Some(id.as_str())));
            assert_eq!(p.comm, "vllm");
        }
    }

    #[test]
    fn a_process_of_no_pod_and_no_text() {
        let p = process(1, "systemd", "4:memory:/init.scope\n0::/init.scope\n");
        assert_eq!((p.path.as_str(), p.pod_uid, p.driver, p.qos), ("/init.scope", None, None, None));
        assert_eq!(process(1, "", "odd"), Process { pid: 1, ..Process::default() });
    }
}
