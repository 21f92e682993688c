//! A volume with medium Memory that is full: host RAM, and no disk.

use super::{Candidate, Source};
use crate::evidence::{Bundle, Pod};
use crate::facts::{Hit, Place};
use crate::units::Bytes;
use crate::verdict::proof::Status;
use crate::verdict::rules::first;
use crate::verdict::{Cited, Class, Subject};

/// Signature of an emptyDir that grew past its size limit.
pub(in crate::verdict) const EMPTY_DIR: &str = "kubelet.evicted_emptydir_limit";

/// "No space left on device" below the mount of a Memory-medium volume: the tmpfs of that size is full, not a disk.
pub(super) fn full(hit: &Hit, bundle: &Bundle) -> Option<Candidate> {
    if !hit.text.contains("No space left on device") {
        return None;
    }
    let (pod, path, size) = bundle.pods.iter().find_map(|p| {
        let mounts = p.containers.iter().flat_map(|c| p.memory_mounts(c));
        mounts
            .into_iter()
            .find(|(m, _)| !m.is_empty() && hit.text.contains(&format!("{m}/")))
            .map(|(m, s)| (p, m, s))
    })?;
    let summary = format!("the Memory volume{} at {path} is full: it uses host RAM, not a disk", of(size));
    let mut c = candidate(hit, Source::Log, summary, pod, path.to_owned(), size);
    c.role = hit.role;
    c.phase = hit.phase;
    Some(c)
}

/// The kubelet evicted the pod for a volume that lies in RAM.
pub(super) fn evicted(hit: &Hit, bundle: &Bundle, subject: &Subject) -> Option<Candidate> {
    let name = (hit.id == EMPTY_DIR).then(|| hit.word("volume")).flatten()?;
    let other = |e| !subject.concerned_by(e, bundle);
    if subject.pod.is_some() && hit.event(bundle).is_some_and(other) {
        return None;
    }
    let pod = subject.pod_of(bundle)?;
    let size = pod.volume(&name).filter(|v| v.memory_medium)?.size_limit;
    let mut mounts = pod.containers.iter().flat_map(|c| &c.mounts);
    let path = mounts.find(|(of, _)| *of == name).map(|(_, path)| path.clone());
    let summary =
        format!("the pod was evicted for the Memory volume {name}{}: it uses host RAM, not a disk", of(size));
    Some(candidate(hit, Source::Event, summary, pod, path.unwrap_or(name), size))
}

fn of(size: Option<Bytes>) -> String {
    size.map_or(String::new(), |s| format!(" of {}", s.k8s()))
}

fn candidate(
    hit: &Hit,
    from: Source,
    summary: String,
    pod: &Pod,
    path: String,
    size: Option<Bytes>,
) -> Candidate {
    let of_class = Class::HostAllocFailure;
    let mut c = Candidate::new(first::memory_volume_full::ID, of_class, from, summary, "volume.memory_full")
        .at(&hit.place, &hit.text, hit.stamp);
    c.supports = vec![
        Cited::of(crate::text::shorten(hit.text.trim(), 240), hit),
        Cited::at(Status::MemoryVolume { path, size }, &Place { file: pod.file.clone(), line: None }),
    ];
    c
}
