//! The DCGM exporter's labels: it asks the kubelet which pod holds a card, and the driver what the card is.

use super::assembly::{Assembly, Held, OfNode, Source};
use super::link::Link;
use dualplane_base::Confidence;
use dualplane_base::device_id as id;
use dualplane_base::units::{Bytes, MIB};
use dualplane_core::evidence::metrics::Sample;

/// One exporter's samples.
#[derive(Debug, Default)]
pub struct Exporter {
    /// The node that it runs on.
    pub node: String,
    /// What `/metrics` answered.
    pub samples: Vec<Sample>,
}

/// How it is cited.
const SOURCE: &str = "DCGM exporter's labels";

/// The first label that is set.
fn label<'a>(s: &'a Sample, names: &[&str]) -> &'a str {
    names.iter().find_map(|n| s.label(n).filter(|v| !v.is_empty())).unwrap_or_default()
}

/// The exporter's names of today, then those of `--use-old-namespace`.
fn about<'a>(s: &'a Sample, name: &str, old: &str) -> &'a str {
    s.about(name).or_else(|| s.about(old)).unwrap_or_default()
}

pub(super) fn read(a: &mut Assembly, exporter: &Exporter) {
    let mut drivers: Vec<&str> = Vec::new();
    for s in exporter.samples.iter().filter(|s| s.name.starts_with("DCGM_") || s.name.starts_with("dcgm_")) {
        let card = label(s, &["UUID", "uuid"]);
        if card.is_empty() {
            continue;
        }
        // The exporter's own word for its host is its pod's name on some set-ups; the API knows the node.
        let host = label(s, &["Hostname", "hostname"]);
        let node = if exporter.node.is_empty() { host } else { exporter.node.as_str() };
        let instance = label(s, &["GPU_I_ID"]);
        let device = match (instance, label(s, &["dra_mig_device_uuid"])) {
            ("", "") => card.to_owned(),
            (instance, "") => id::instance(card, instance),
            (_, uuid) => uuid.to_owned(),
        };
        let is_mig = device != card;
        for name in [label(s, &["device"]), label(s, &["gpu"])].into_iter().filter(|n| !n.is_empty()) {
            a.local.insert((node.to_owned(), name.to_owned()), card.to_owned());
        }
        let driver = label(s, &["DCGM_FI_DRIVER_VERSION", "DCGM_FI_SYSTEM_DRIVER_VERSION"]);
        if !driver.is_empty() && !drivers.contains(&driver) && drivers.len() < 8 {
            drivers.push(driver);
            let link = Link::new(driver, SOURCE, Confidence::High);
            a.of_nodes.push(OfNode { node: node.to_owned(), name: "driver", link });
        }
        describe(a, s, &device, (card, is_mig, node));
        let pod = about(s, "pod", "pod_name");
        if !pod.is_empty() {
            let held = Held {
                device: device.clone(),
                namespace: about(s, "namespace", "pod_namespace").to_owned(),
                pod: pod.to_owned(),
                container: about(s, "container", "container_name").to_owned(),
                // It passes on what it heard from the kubelet at its last scrape.
                link: Link::new(&device, SOURCE, Confidence::Medium),
                health: None,
                from: Source::Exporter,
            };
            // Each of some forty metrics tells it again.
            let told = a.held.iter().any(|h| {
                h.from == Source::Exporter
                    && (&h.device, &h.namespace, &h.pod, &h.container)
                        == (&held.device, &held.namespace, &held.pod, &held.container)
            });
            if !told {
                a.hold(held, node);
            }
        }
    }
}

fn describe(a: &mut Assembly, s: &Sample, id: &str, (card, is_mig, node): (&str, bool, &str)) {
    let Some(d) = a.device(id, node) else { return };
    d.mig |= is_mig;
    let mut tell = |name, value: &str| d.attributes.tell(name, value, SOURCE, Confidence::High);
    tell("card", label(s, &["modelName"]));
    tell("index", label(s, &["gpu"]));
    tell("PCI address", label(s, &["pci_bus_id"]));
    if is_mig {
        tell("parent", card);
        tell("profile", label(s, &["GPU_I_PROFILE"]));
        tell("GPU instance", label(s, &["GPU_I_ID"]));
    }
    // With virtual GPUs a pod's row is the pod's own use; the row without `vgpu` is the device's.
    let what = match s.name.as_str() {
        "DCGM_FI_DEV_FB_USED" => "used",
        "DCGM_FI_DEV_FB_FREE" => "free",
        _ => return,
    };
    if s.label("vgpu").is_none_or(str::is_empty) && s.value.is_finite() && s.value >= 0.0 {
        let bytes = Bytes::from_f64(s.value * MIB as f64);
        tell(what, &bytes.to_string());
        if what == "used" {
            d.used = d.used.or(Some(bytes));
        }
    }
}
