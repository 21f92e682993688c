//! A systemd unit that the agent recorded: it stands as a pod in a bundle, and the kernel knows it by its group alone.

use super::model::Pod;

/// Label of the pod that stands for a unit.
pub const UNIT_LABEL: &str = "dualplane.dev/unit";

impl Pod {
    /// The unit's name, `vllm.service`.
    #[must_use]
    pub fn unit(&self) -> Option<&str> {
        self.labels.iter().find(|(k, _)| k == UNIT_LABEL).map(|(_, v)| v.as_str()).filter(|v| !v.is_empty())
    }

    /// Its group below the root of all, `system.slice/vllm.service`: the container bears it as its name.
    #[must_use]
    pub fn unit_group(&self) -> Option<&str> {
        let unit = self.unit()?;
        self.containers.iter().map(|c| c.name.as_str()).find(|name| name.ends_with(unit))
    }
}

/// Whether the path of a cgroup is that of a group, or of one below it.
#[must_use]
pub fn in_group(path: &str, group: &str) -> bool {
    let group = group.trim_matches('/');
    let below = path.trim_matches('/').strip_prefix(group);
    !group.is_empty() && below.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use super::in_group;

    #[test]
    fn a_group_holds_itself_and_what_is_below() {
        let group = "system.slice/vllm.service";
        for path in ["/system.slice/vllm.service", "/system.slice/vllm.service/worker-0"] {
            assert!(in_group(path, group), "{path}");
        }
        for path in
            ["/system.slice/vllm.service2", "/system.slice", "/", "/kubepods/x/system.slice/vllm.service"]
        {
            assert!(!in_group(path, group), "{path}");
        }
        assert!(!in_group("/system.slice/vllm.service", ""));
    }
}
