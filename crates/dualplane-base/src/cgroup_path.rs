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

/// The last part of a path, without systemd's suffix.
fn last(path: &str) -> &str {
    let last = path.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
    last.strip_suffix(".slice").unwrap_or(last)
}

/// The group of all pods of a node, or of all of one QoS class: `/kubepods`, `…/kubepods-burstable.slice`. What lies below it is
/// one pod's, also where its ids were blacked out.
#[must_use]
pub fn of_all_pods(path: &str) -> bool {
    let named = |name: &str| last(path).strip_suffix(name).is_some_and(|b| b.is_empty() || b.ends_with('-'));
    path.contains("kubepods") && ["kubepods", "besteffort", "burstable"].into_iter().any(named)
}

/// The group of one pod, with all its containers.
#[must_use]
pub fn of_a_pod(path: &str) -> bool {
    // A runtime's scope stands below it, `SLICE:RUNTIME:ID` beside it.
    let last = last(path);
    container_id(path).is_none() && !last.contains(':') && (last.starts_with("pod") || last.contains("-pod"))
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

    /// Kernel logs are pasted with ids blacked out or cut: which level a group is of shows all the same.
    #[test]
    fn levels_show_without_ids() {
        for uid in ["9ebd9238_4ea3_417e_975f_99e0d23c5718", "XXXX", "<redacted>", "1234"] {
            for id in ["cri-containerd-XXXX.scope", "crio-0a1b.scope", "docker-<id>.scope"] {
                for root in [
                    "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable",
                    "/kubepods.slice/kubepods",
                    "/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-besteffort",
                ] {
                    let pod = format!("{root}-pod{uid}.slice");
                    let container = format!("{pod}/{id}");
                    assert!(of_a_pod(&pod) && !of_all_pods(&pod), "{pod}");
                    assert!(!of_a_pod(&container) && !of_all_pods(&container), "{container}");
                }
            }
            let pod = format!("/kubepods/burstable/pod{uid}");
            assert!(of_a_pod(&pod) && !of_all_pods(&pod) && !of_all_pods(&format!("{pod}/abc")), "{pod}");
        }
        for all in [
            "/kubepods",
            "/kubepods/",
            "/kubepods.slice",
            "/kubepods/burstable",
            "/kubepods.slice/kubepods-besteffort.slice",
            "/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-burstable.slice",
        ] {
            assert!(of_all_pods(all) && !of_a_pod(all), "{all}");
        }
        for other in ["", "/", "/system.slice/burstable", "/user.slice", "/docker/abc"] {
            assert!(!of_all_pods(other) && !of_a_pod(other), "{other}");
        }
    }
}
