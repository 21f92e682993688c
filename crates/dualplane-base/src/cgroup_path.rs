//! Ids in the path of a cgroup: the pod and the container that it was made for.

/// Pod UID with dashes (or a static pod's 32-digit hash) from a cgroup path.
#[must_use]
pub fn pod_uid(path: &str) -> Option<String> {
    let mut from = 0;
    while let Some(i) = path.get(from..)?.find("pod") {
        let rest = path.get(from + i + 3..)?;
        let id: String =
            rest.chars().take_while(|c| c.is_ascii_hexdigit() || matches!(c, '_' | '-')).collect();
        let id = id.replace('_', "-");
        let hex = id.chars().filter(char::is_ascii_hexdigit).count();
        if hex == 32 {
            return Some(id.trim_end_matches('-').to_owned());
        }
        from += i + 3;
    }
    None
}

/// The last run of 64 hex digits of a cgroup path; conmon's own scope is not the container.
#[must_use]
pub fn container_id(path: &str) -> Option<String> {
    path.split(['/', '-', '.', ':'])
        .rfind(|p| p.len() == 64 && p.bytes().all(|b| b.is_ascii_hexdigit()))
        .map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_in_all_path_shapes() {
        let id = "ae3f51710bd10e4e7a09590735cc1452886c13d90dd12b42f48cf5824fe722e5";
        for path in [
            format!(
                "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod9ebd9238_4ea3_417e_975f_99e0d23c5718.slice/cri-containerd-{id}.scope"
            ),
            format!("/kubepods/burstable/pod9ebd9238-4ea3-417e-975f-99e0d23c5718/{id}"),
            format!(
                "/system.slice/containerd.service/kubepods-burstable-pod9ebd9238_4ea3_417e_975f_99e0d23c5718.slice:cri-containerd:{id}"
            ),
            format!(
                "/kubepods.slice/kubepods-pod9ebd9238_4ea3_417e_975f_99e0d23c5718.slice/crio-{id}.scope/container"
            ),
        ] {
            assert_eq!(pod_uid(&path).as_deref(), Some("9ebd9238-4ea3-417e-975f-99e0d23c5718"), "{path}");
            assert_eq!(container_id(&path).as_deref(), Some(id), "{path}");
        }
        assert_eq!(pod_uid("/user.slice/pods"), None);
    }
}
