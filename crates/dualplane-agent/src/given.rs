//! Which card or MIG device stands behind what the kubelet gave: an id of a device plugin, or a device of a claim.
//!
//! Names of claimed devices: `CanonicalName` in `cmd/gpu-kubelet-plugin/deviceinfo.go` and `mig.go` of NVIDIA's driver for
//! dynamic resource allocation.

use dualplane_core::facts::pci_address;

use crate::view::{AllocatedDevice, GpuView};

/// The driver whose claimed devices are called by the number of the card.
const NVIDIA_CLAIMS: &str = "gpu.nvidia.com";

/// The device, with its place; `None` where nothing certain leads there.
pub(crate) fn device_of<'g>(gpus: &'g [GpuView], given: &AllocatedDevice) -> Option<(u16, &'g GpuView)> {
    let place = by_uuid(gpus, given).or_else(|| by_claim(gpus, given)).or_else(|| by_address(gpus, given))?;
    Some((u16::try_from(place).ok()?, gpus.get(place)?))
}

fn by_uuid(gpus: &[GpuView], given: &AllocatedDevice) -> Option<usize> {
    let uuid = given.uuid.as_deref()?;
    gpus.iter().position(|g| g.device.uuid == uuid)
}

/// AMD's plugin gives addresses.
fn by_address(gpus: &[GpuView], given: &AllocatedDevice) -> Option<usize> {
    let address = pci_address(&given.id)?;
    gpus.iter().position(|g| g.device.card.is_none() && g.device.pci == address)
}

/// `gpu.nvidia.com/POOL/gpu-3`, and `gpu-3-mig-…` of a MIG device. Its numbers are of the driver's table of profiles, or the
/// profile's name without its dot: `gpu-3-mig-1g10gb-19-0`.
fn by_claim(gpus: &[GpuView], given: &AllocatedDevice) -> Option<usize> {
    let name = given
        .id
        .strip_prefix(NVIDIA_CLAIMS)
        .filter(|_| given.resource == NVIDIA_CLAIMS)?
        .rsplit('/')
        .next()?;
    let (number, part) = match name.strip_prefix("gpu-")?.split_once("-mig-") {
        Some((number, part)) => (number, Some(part)),
        None => (name.strip_prefix("gpu-")?, None),
    };
    let number: u32 = number.parse().ok()?;
    let card = gpus.iter().position(|g| g.device.card.is_none() && g.device.minor == Some(number))?;
    // Its first releases counted as NVML does: where the two counts differ, nobody knows which is meant.
    if gpus.get(card)?.device.index != number {
        return None;
    }
    let Some(part) = part else { return Some(card) };
    let profile = part.split('-').next().unwrap_or_default();
    let fits = |g: &&(usize, &GpuView)| {
        let own = g.1.device.profile().map(|p| p.replace('.', "").replace('+', "-"));
        !profile.contains('g') || own.is_some_and(|o| o.split('-').next() == Some(profile))
    };
    let parts =
        gpus.iter().enumerate().filter(|(_, g)| g.device.card.is_some_and(|c| usize::from(c.0) == card));
    let all: Vec<(usize, &GpuView)> = parts.collect();
    // Several of one profile differ in where they lie on the card, which NVML does not tell.
    let mut fitting = all.iter().filter(fits);
    match (fitting.next(), fitting.next()) {
        (Some((place, _)), None) => Some(*place),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use dualplane_node::gpu::{Device, DeviceId};

    use super::*;

    fn view(device: Device) -> GpuView {
        GpuView { device, ..GpuView::default() }
    }

    fn card(index: u32, minor: u32, pci: &str) -> GpuView {
        view(Device {
            uuid: format!("GPU-{index:08}"),
            index,
            minor: Some(minor),
            pci: pci.into(),
            ..Device::default()
        })
    }

    fn part(of: u16, uuid: &str, profile: &str) -> GpuView {
        let name = format!("NVIDIA H100 80GB HBM3 MIG {profile}");
        view(Device {
            uuid: uuid.into(),
            name,
            card: Some(DeviceId(of)),
            instance: Some((7, 0)),
            ..Device::default()
        })
    }

    fn found(gpus: &[GpuView], resource: &str, id: &str, uuid: Option<&str>) -> Option<u16> {
        let given =
            AllocatedDevice { resource: resource.into(), id: id.into(), uuid: uuid.map(str::to_owned) };
        device_of(gpus, &given).map(|(place, _)| place)
    }

    #[test]
    fn ids_of_plugins_and_claims_lead_to_devices() {
        let gpus = [
            card(0, 0, "0000:4a:00"),
            part(0, "MIG-00000001", "1g.10gb"),
            part(0, "MIG-00000002", "3g.40gb"),
            card(1, 1, "0000:8a:00"),
            part(3, "MIG-00000003", "1g.10gb"),
            part(3, "MIG-00000004", "1g.10gb"),
        ];
        let claim =
            |name: &str| found(&gpus, "gpu.nvidia.com", &format!("gpu.nvidia.com/node-1/{name}"), None);
        assert_eq!((claim("gpu-0"), claim("gpu-1"), claim("gpu-7")), (Some(0), Some(3), None));
        assert_eq!((claim("gpu-0-mig-1g10gb-19-0"), claim("gpu-0-mig-3g40gb-9-4")), (Some(1), Some(2)));
        assert_eq!(claim("gpu-1-mig-1g10gb-19-0"), None, "two of one profile");
        assert_eq!(claim("gpu-0-mig-19-3-1"), None, "a number of a profile among two parts");
        assert_eq!((claim("channel-0"), claim("gpu-x")), (None, None));
        assert_eq!(found(&gpus, "other.com", "other.com/node-1/gpu-0", None), None);
        assert_eq!(found(&gpus, "nvidia.com/mig-1g.10gb", "MIG-00000003", Some("MIG-00000003")), Some(4));
        assert_eq!(found(&gpus, "amd.com/gpu", "0000:8a:00.0", None), Some(3));
        assert_eq!((gpus[1].device.profile(), gpus[0].device.profile()), (Some("1g.10gb"), None));
    }

    #[test]
    fn where_two_counts_differ_nothing_is_certain() {
        let gpus = [card(0, 1, "0000:4a:00"), card(1, 0, "0000:8a:00")];
        assert_eq!(found(&gpus, "gpu.nvidia.com", "gpu.nvidia.com/node-1/gpu-0", None), None);
    }
}
