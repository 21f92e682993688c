//! Container id to names, from the links of `/var/log/containers`: `POD_NAMESPACE_CONTAINER-ID.log`.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

use super::folders::{instance_of, pod_folder};

/// Links that are read.
const MAX_LINKS: usize = 16_384;

/// Names of one container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Named {
    /// Namespace.
    pub namespace: String,
    /// Pod.
    pub pod: String,
    /// UID of the pod, where the link's target tells it.
    pub uid: Option<String>,
    /// Container.
    pub container: String,
    /// Which restart it is.
    pub restart: Option<u32>,
    /// Folder of its logs.
    pub folder: Option<PathBuf>,
}

/// Names of all containers by id. A container without a link is a sandbox, or is so new that the kubelet has not linked it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Names {
    by_id: HashMap<String, Named>,
}

impl Names {
    /// Reads the folder of links. `pods` is where `/var/log/pods` is mounted: links point to the host's paths.
    #[must_use]
    pub fn read(links: &Path, pods: &Path) -> Self {
        let entries = fs::read_dir(links).into_iter().flatten().filter_map(Result::ok);
        let by_id = entries.take(MAX_LINKS).filter_map(|e| {
            let name = e.file_name().into_string().ok()?;
            let (id, mut named) = parse(&name)?;
            if let Ok(target) = fs::read_link(e.path()) {
                place(&mut named, &target, pods);
            }
            Some((id, named))
        });
        Self { by_id: by_id.collect() }
    }

    /// Names of a container.
    #[must_use]
    pub fn of(&self, id: &str) -> Option<&Named> {
        self.by_id.get(id)
    }

    /// How many containers are named.
    #[must_use]
    pub fn len(&self) -> usize {
        self.by_id.len()
    }

    /// None is named.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.by_id.is_empty()
    }
}

fn parse(name: &str) -> Option<(String, Named)> {
    let stem = name.strip_suffix(".log")?;
    let (head, id) = stem.rsplit_once('-')?;
    if id.len() != 64 || !id.bytes().all(|b| b.is_ascii_hexdigit()) {
        return None;
    }
    let mut parts = head.splitn(3, '_');
    let (pod, namespace, container) = (parts.next()?, parts.next()?, parts.next()?);
    let named = Named {
        namespace: namespace.to_owned(),
        pod: pod.to_owned(),
        uid: None,
        container: container.to_owned(),
        restart: None,
        folder: None,
    };
    Some((id.to_owned(), named))
}

/// `/var/log/pods/NS_POD_UID/CONTAINER/N.log`
fn place(named: &mut Named, target: &Path, pods: &Path) {
    let mut parts = target.iter().rev().filter_map(|p| p.to_str());
    let (Some(file), Some(container), Some(pod)) = (parts.next(), parts.next(), parts.next()) else { return };
    let Some(folder) = pod_folder(pod).filter(|f| f.pod == named.pod && container == named.container) else {
        return;
    };
    named.uid = Some(folder.uid);
    named.restart = instance_of(file).map(|(n, _, _)| n);
    named.folder = Some(pods.join(pod).join(container));
}
