//! Made trees of two AMD cards, an Intel card, and what is no card.

use std::fs;
use std::path::Path;

use dualplane_base::units::Bytes;

use super::*;

fn put(root: &Path, name: &str, text: &str) {
    let path = root.join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

fn uevent(driver: &str, id: &str, slot: &str) -> String {
    format!("DRIVER={driver}\nPCI_CLASS=38000\nPCI_ID={id}\nPCI_SLOT_NAME={slot}\nMODALIAS=pci:v0000\n")
}

/// An Instinct card with RAS and sensors, at an address behind the other one's.
fn amd(root: &Path) {
    let at = |f: &str| format!("class/drm/card1/device/{f}");
    put(root, &at("uevent"), &uevent("amdgpu", "1002:74A1", "0000:8a:00.0"));
    put(root, &at("mem_info_vram_total"), "206141652992\n");
    put(root, &at("mem_info_vram_used"), "103070826496\n");
    put(root, &at("product_name"), "Instinct MI300X\n");
    put(root, &at("unique_id"), "9246ab1c2d3e4f50\n");
    put(root, &at("gpu_busy_percent"), "97\n");
    put(root, &at("mem_busy_percent"), "41\n");
    put(root, &at("pcie_replay_count"), "2\n");
    put(root, &at("ras/umc_err_count"), "ue: 1\nce: 12\n");
    put(
        root,
        &at("ras/gpu_vram_bad_pages"),
        "0x027f5d43 : 0x00001000 : R\n0x027f5d4b : 0x00001000 : R\n0x027f5d53 : 0x00001000 : P\n",
    );
    let sensor = |f: &str| at(&format!("hwmon/hwmon7/{f}"));
    for (name, text) in [
        ("power1_input", "512000000"),
        ("temp1_label", "edge"),
        ("temp1_input", "41000"),
        ("temp2_label", "junction"),
        ("temp2_input", "58000"),
        ("temp3_label", "mem"),
        ("temp3_input", "46000"),
        ("freq1_label", "sclk"),
        ("freq1_input", "2100000000"),
        ("freq2_label", "mclk"),
        ("freq2_input", "1300000000"),
    ] {
        put(root, &sensor(name), &format!("{text}\n"));
    }
    put(root, "class/kfd/kfd/topology/nodes/0/properties", "cpu_cores_count 64\nlocation_id 0\ndomain 0\n");
    put(root, "class/kfd/kfd/topology/nodes/0/gpu_id", "0\n");
    put(root, "class/kfd/kfd/topology/nodes/1/properties", "simd_count 1216\nlocation_id 35328\ndomain 0\n");
    put(root, "class/kfd/kfd/topology/nodes/1/gpu_id", "51110\n");
    put(root, "class/kfd/kfd/proc/4711/vram_51110", "100000000000\n");
    put(root, "class/kfd/kfd/proc/4712/vram_51110", "0\n");
    put(root, "class/kfd/kfd/proc/4713/vram_999", "5\n");
}

fn all(root: &Path) -> (SysfsGpus, Vec<Device>, Vec<Reading>, Vec<GpuProcess>, Vec<Health>) {
    let mut g = SysfsGpus::below(root).unwrap();
    let (mut devices, mut r, mut p, mut h) = (vec![], vec![], vec![], vec![]);
    g.devices(&mut devices).unwrap();
    assert_eq!(g.read(&mut r), 0);
    g.processes(&mut p);
    g.health(&mut h);
    (g, devices, r, p, h)
}

#[test]
fn an_amd_card_tells_memory_sensors_errors_and_processes() {
    let d = tempfile::tempdir().unwrap();
    amd(d.path());
    // A card that has little more than its memory, before the other on the bus.
    put(d.path(), "class/drm/card0/device/uevent", &uevent("amdgpu", "1002:744C", "0000:03:00.0"));
    put(d.path(), "class/drm/card0/device/mem_info_vram_total", "25753026560\n");
    let (_, devices, r, p, h) = all(d.path());
    let names: Vec<_> =
        devices.iter().map(|d| (d.index, d.uuid.as_str(), d.name.as_str(), d.pci.as_str())).collect();
    assert_eq!(
        names,
        [
            (0, "0000:03:00", "AMD GPU 1002:744C", "0000:03:00"),
            (1, "0x9246ab1c2d3e4f50", "AMD Instinct MI300X", "0000:8a:00")
        ]
    );
    assert_eq!(r[0], Reading { total: Some(Bytes(25_753_026_560)), ..Reading::default() });
    let half = Some(Bytes(103_070_826_496));
    assert_eq!((r[1].used, r[1].free, r[1].busy, r[1].memory_busy), (half, half, Some(97), Some(41)));
    assert_eq!(
        (r[1].power_mw, r[1].celsius, r[1].sm_mhz, r[1].memory_mhz),
        (Some(512_000), Some(58), Some(2100), Some(1300))
    );
    assert_eq!((h[1].ecc_uncorrected, h[1].ecc_corrected, h[1].pcie_replays), (Some(1), Some(12), Some(2)));
    assert_eq!(
        (h[1].remapped_uncorrected, h[1].remap_pending, h[1].remap_failed),
        (Some(2), Some(true), Some(false))
    );
    assert_eq!((h[1].memory_celsius, h[0].ecc_corrected, h[0].remap_pending), (Some(46), None, None));
    let process =
        GpuProcess { device: DeviceId(1), pid: 4711, used: Some(Bytes(100_000_000_000)), other_kind: false };
    assert_eq!(p, [process], "a process without memory on a card is not on it");
}

#[test]
fn an_intel_card_tells_what_xe_tells() {
    let d = tempfile::tempdir().unwrap();
    let at = |f: &str| format!("class/drm/card0/device/{f}");
    put(d.path(), &at("uevent"), &uevent("xe", "8086:E20B", "0000:03:00.0"));
    put(d.path(), &at("tile0/physical_vram_size_bytes"), "12884901888\n");
    put(d.path(), &at("tile0/gt0/freq0/act_freq"), "2850\n");
    put(d.path(), &at("tile0/gt0/freq0/throttle/reason_pl1"), "1\n");
    put(d.path(), &at("tile0/gt0/freq0/throttle/reason_thermal"), "0\n");
    put(d.path(), &at("hwmon/hwmon3/temp2_label"), "pkg\n");
    put(d.path(), &at("hwmon/hwmon3/temp2_input"), "63000\n");
    put(d.path(), &at("hwmon/hwmon3/temp3_label"), "vram\n");
    put(d.path(), &at("hwmon/hwmon3/temp3_input"), "70000\n");
    put(d.path(), &at("hwmon/hwmon3/energy1_input"), "1000000000\n");
    let (mut g, devices, r, p, h) = all(d.path());
    assert_eq!((devices[0].name.as_str(), devices[0].uuid.as_str()), ("Intel GPU 8086:E20B", "0000:03:00"));
    assert_eq!((r[0].total, r[0].used, r[0].sm_mhz), (Some(Bytes(12 << 30)), None, Some(2850)));
    assert_eq!(
        (r[0].throttle, r[0].throttled(), r[0].celsius),
        (Some(4), Some(false), Some(63)),
        "a power cap is no fault"
    );
    assert_eq!((r[0].power_mw, h[0].memory_celsius), (None, Some(70)), "power needs two readings");
    assert!(p.is_empty());
    put(d.path(), &at("hwmon/hwmon3/energy1_input"), "1100000000\n");
    put(d.path(), &at("tile0/gt0/freq0/throttle/reason_thermal"), "1\n");
    let mut later = vec![];
    // The list is made anew now and then; the counter before it is kept.
    g.devices(&mut vec![]).unwrap();
    while later.first().is_none_or(|r: &Reading| r.power_mw.is_none()) {
        g.read(&mut later);
    }
    assert_eq!(later[0].throttled(), Some(true));
    // 100 J within at least a millisecond.
    assert!(later[0].power_mw.is_some_and(|mw| mw > 0 && mw <= 100_000_000), "{:?}", later[0].power_mw);
}

#[test]
fn i915_tells_its_clocks_beside_the_device() {
    let d = tempfile::tempdir().unwrap();
    put(d.path(), "class/drm/card2/device/uevent", &uevent("i915", "8086:56C0", "0000:4d:00.0"));
    put(d.path(), "class/drm/card2/lmem_total_bytes", "17179869184\n");
    put(d.path(), "class/drm/card2/gt/gt0/rps_act_freq_mhz", "1950\n");
    put(d.path(), "class/drm/card2/gt/gt0/throttle_reason_prochot", "1\n");
    let (_, _, r, _, _) = all(d.path());
    assert_eq!((r[0].total, r[0].sm_mhz, r[0].throttled()), (Some(Bytes(16 << 30)), Some(1950), Some(true)));
}

#[test]
fn what_is_no_card_is_left_out() {
    let d = tempfile::tempdir().unwrap();
    assert!(SysfsGpus::below(d.path()).is_none(), "no folder");
    // A unit within a processor, a card without memory of its own, another vendor's, a connector, and a card that is gone.
    put(d.path(), "class/drm/card0/device/uevent", &uevent("amdgpu", "1002:1638", "0000:04:00.0"));
    put(d.path(), "class/drm/card0/device/mem_info_vram_total", "536870912\n");
    put(d.path(), "class/drm/card1/device/uevent", &uevent("i915", "8086:9A49", "0000:00:02.0"));
    put(d.path(), "class/drm/card2/device/uevent", &uevent("ast", "1A03:2000", "0000:05:00.0"));
    put(d.path(), "class/drm/card0-DP-1/device/uevent", &uevent("amdgpu", "1002:744C", "0000:03:00.0"));
    fs::create_dir_all(d.path().join("class/drm/card3")).unwrap();
    put(d.path(), "class/drm/card4/device/uevent", "\u{0}\u{0}garbage");
    put(d.path(), "class/drm/card5/device/uevent", &uevent("amdgpu", "1002:744C", "nowhere"));
    put(d.path(), "class/drm/card5/device/mem_info_vram_total", "25753026560\n");
    assert!(SysfsGpus::below(d.path()).is_none());
}
