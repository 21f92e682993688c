//! A table of samples played, and a machine without a driver.

use dualplane_base::units::Bytes;

use super::*;

const TABLE: &str = r#"{
  "devices": [
    {"uuid": "GPU-a", "index": 0, "name": "NVIDIA H100 80GB HBM3", "pci": "0000:4a:00", "mig": true},
    {"uuid": "MIG-b", "index": 0, "name": "1g.10gb", "pci": "0000:4a:00", "card": 0, "instance": [7, 0]}
  ],
  "steps": [
    {"at_ms": 0, "readings": [{"device": 0, "total": 85520809984, "used": 1048576, "throttle": 4},
                              {"device": 1, "total": 10737418240, "used": 0}], "processes": []},
    {"at_ms": 1000, "readings": [{"device": 1, "total": 10737418240, "used": 9663676416}],
     "processes": [{"device": 1, "pid": 77, "used": 9663676416}, {"device": 1, "pid": 78, "used": null}]},
    {"at_ms": 2000, "xids": [[0, 94]], "health": [{"device": 0, "ecc_uncorrected": 1}]},
    {"at_ms": 3000, "lost": [0]}
  ]
}"#;

#[test]
fn a_table_is_played() {
    let mut g: Box<dyn Gpus> = Box::new(Fake::from_json(TABLE).unwrap());
    let (mut devices, mut r, mut p, mut h, mut e) = (vec![], vec![], vec![], vec![], vec![]);
    g.devices(&mut devices).unwrap();
    assert_eq!(devices[1].card, Some(DeviceId(0)));
    assert_eq!(
        (g.read(&mut r), r[1].used, r[0].busy, r[0].throttled()),
        (0, Some(Bytes(0)), None, Some(false))
    );
    g.processes(&mut p);
    assert!(p.is_empty());
    g.advance(Duration::from_millis(1500));
    g.read(&mut r);
    g.processes(&mut p);
    assert_eq!((r[1].used, r[0].used), (Some(Bytes(9 << 30)), Some(Bytes(1 << 20))));
    assert_eq!((p[0].pid, p[0].used, p[1].used), (77, Some(Bytes(9 << 30)), None));
    g.events(&mut e);
    assert!(e.is_empty());
    g.advance(Duration::from_millis(500));
    g.events(&mut e);
    g.events(&mut e);
    assert_eq!((e.len(), e[0].uuid.as_str(), e[0].xid), (1, "GPU-a", Some(94)));
    g.health(&mut h);
    assert_eq!((h[0].ecc_uncorrected, h[0].ecc_corrected), (Some(1), None));
    g.advance(Duration::from_secs(60));
    assert_eq!((g.read(&mut r), r.len()), (1, 1), "a lost card is counted, not told as 0");
}

#[test]
fn tables_that_cannot_be_played() {
    assert!(matches!(Fake::from_json("{"), Err(ScriptError::Form(_))));
    let odd = r#"{"devices": [], "steps": [{"at_ms": 0, "xids": [[3, 79]]}]}"#;
    assert!(matches!(Fake::from_json(odd), Err(ScriptError::Device(3, 0))));
    let told = r#"{"devices": [], "driver": {"version": "570.133.20", "cuda": [12, 8]}}"#;
    let driver = Fake::from_json(told).unwrap().driver();
    assert_eq!((driver.version.as_deref(), driver.cuda), (Some("570.133.20"), Some((12, 8))));
    let mut none = Fake::from_json(r#"{"devices": [], "gap": "Driver Not Loaded"}"#).unwrap();
    assert_eq!(none.devices(&mut vec![]), Err(GpuGap::NoDriver("Driver Not Loaded".into())));
}

#[test]
fn without_a_library_there_is_a_reason() {
    let gap = Nvml::load(Some(std::path::Path::new("/nonexistent/libnvidia-ml.so.1"))).unwrap_err();
    assert!(matches!(&gap, GpuGap::NoLibrary(why) if why.contains("libnvidia-ml")), "{gap}");
    let mut none = NoGpus(gap.clone());
    assert_eq!(none.driver(), Driver::default());
    assert_eq!(none.devices(&mut vec![]), Err(gap));
    assert_eq!(none.read(&mut vec![]), 0);
}

/// On a machine with a driver: what it says is of use.
#[test]
fn real_gpus_where_there_are_any() {
    let Ok(mut g) = Nvml::load(None) else {
        eprintln!("no NVML here; skipped");
        return;
    };
    let (mut devices, mut r, mut p, mut h) = (vec![], vec![], vec![], vec![]);
    g.devices(&mut devices).unwrap();
    assert_eq!(g.read(&mut r), 0);
    g.processes(&mut p);
    g.health(&mut h);
    eprintln!("{:?}", g.driver());
    eprintln!("{devices:#?}\n{r:#?}\n{p:#?}\n{h:#?}");
    assert!(devices.iter().all(|d| d.uuid.starts_with("GPU-") || d.uuid.starts_with("MIG-")));
    assert!(r.iter().all(|r| r.total > r.used));
}
