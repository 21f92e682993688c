//! Ids of devices: one device has several, by the device plugin, the driver and the exporter.

/// What an id of a device plugin or a driver means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceId {
    /// The device without its replica.
    pub id: String,
    /// It is one of several replicas of the device (time-slicing or MPS).
    pub replica: bool,
    /// A MIG instance.
    pub mig: bool,
    /// The card of a MIG instance, where the id says so.
    pub parent: Option<String>,
}

/// Reads `GPU-…`, `GPU-…::3` (a replica of NVIDIA's plugin), `MIG-…`, `MIG-GPU-…/1/0` (drivers before 470),
/// `nvidia0/vgpu1` and `nvidia0/gi2` (GKE's plugin), or anything else as it is.
#[must_use]
pub fn read(raw: &str) -> DeviceId {
    let raw = raw.trim();
    let (id, replica) = match raw.rsplit_once("::") {
        Some((id, n)) if !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()) => (id, true),
        _ => match raw.split_once("/vgpu") {
            Some((id, _)) => (id, true),
            None => (raw, false),
        },
    };
    let parent = id.strip_prefix("MIG-").filter(|r| r.starts_with("GPU-")).and_then(|r| r.split('/').next());
    DeviceId {
        id: id.to_owned(),
        replica,
        mig: id.starts_with("MIG-") || id.contains("/gi"),
        parent: parent.map(str::to_owned),
    }
}

/// The id of a MIG instance of which only the card and the number are known.
#[must_use]
pub fn instance(card: &str, gpu_instance: &str) -> String {
    format!("{card}/gi/{gpu_instance}")
}

/// Whether the driver gave it: it names one device in the world.
#[must_use]
pub fn is_uuid(id: &str) -> bool {
    id.strip_prefix("GPU-").or_else(|| id.strip_prefix("MIG-")).is_some_and(|r| r.len() >= 8)
}

/// Extended resources that are GPUs or parts of them.
#[must_use]
pub fn is_gpu(resource: &str) -> bool {
    let nvidia = resource.strip_prefix("nvidia.com/");
    nvidia.is_some_and(|r| ["gpu", "mig-", "pgpu", "vgpu"].iter().any(|p| r.starts_with(p)))
        || ["amd.com/gpu", "gpu.intel.com/", "habana.ai/gaudi"].iter().any(|p| resource.starts_with(p))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_of_all_plugins() {
        let of = |raw: &str| {
            let d = read(raw);
            (d.id, d.replica, d.mig, d.parent)
        };
        let uuid = "GPU-9c1b0f7e-2d3a-4e5f-8a6b-7c8d9e0f1a2b";
        assert_eq!(of(uuid), (uuid.into(), false, false, None));
        assert_eq!(of(&format!("{uuid}::3")), (uuid.into(), true, false, None));
        assert_eq!(of("nvidia0/vgpu1"), ("nvidia0".into(), true, false, None));
        assert_eq!(of("nvidia0/gi2"), ("nvidia0/gi2".into(), false, true, None));
        assert_eq!(of("MIG-GPU-1/7/0"), ("MIG-GPU-1/7/0".to_owned(), false, true, Some("GPU-1".to_owned())));
        assert_eq!(of("0000:83:00.0"), ("0000:83:00.0".into(), false, false, None));
        assert!(is_uuid(uuid) && !is_uuid("GPU-1") && !is_uuid("nvidia0"));
    }
}
