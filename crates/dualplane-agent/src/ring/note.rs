//! Tables beside the records: which container a slot is, which card a place is. As JSON, one note a line.

use std::path::PathBuf;

use dualplane_base::process::of_path;
use dualplane_node::cgroup::{Group, Kind};
use dualplane_node::clock::Moment;
use dualplane_node::cri::Named;
use dualplane_node::gpu::{Device, DeviceId};
use serde::{Deserialize, Serialize};

/// Something that records refer to.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(clippy::large_enum_variant, reason = "nearly all are containers, and few are kept")]
pub enum Note {
    /// A container that appeared, or whose names became known.
    Container {
        /// Its number in records of this run.
        slot: u16,
        /// Which.
        group: Group,
        /// Its names.
        named: Option<Named>,
        /// Command of its first process, secrets masked; empty where it is not known.
        command: Vec<String>,
    },
    /// A group is gone and was dealt with. By path, not by slot: it may be one that only an earlier run of the agent knew.
    Gone {
        /// Path of its cgroup.
        path: String,
        /// When.
        at: Moment,
    },
    /// All devices, in the driver's order: places in records are places here.
    Devices(Vec<Device>),
    /// The engine of a container.
    Engine {
        /// The container's number in records of this run.
        slot: u16,
        /// Which.
        engine: Engine,
    },
}

/// What serves in a container.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Engine {
    /// `vllm`, `sglang`, `tgi`, `triton`, `llama.cpp`.
    pub engine: String,
    /// Name under which the model is served.
    pub model: Option<String>,
    /// Port of its metrics.
    pub port: u16,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Wire {
    Container(WireContainer),
    Gone { path: String, at: u64 },
    Devices(Vec<WireDevice>),
    Engine { slot: u16, engine: Engine },
}

#[derive(Serialize, Deserialize)]
struct WireContainer {
    slot: u16,
    path: String,
    cgroup: u8,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    service: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    named: Option<WireNamed>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    command: Vec<String>,
}

#[derive(Serialize, Deserialize)]
struct WireNamed {
    namespace: String,
    pod: String,
    uid: Option<String>,
    container: String,
    restart: Option<u32>,
    folder: Option<PathBuf>,
}

#[derive(Serialize, Deserialize)]
struct WireDevice {
    uuid: String,
    index: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    minor: Option<u32>,
    name: String,
    pci: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    card: Option<u16>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    instance: Option<(u32, u32)>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    mig: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    capability: Option<(u32, u32)>,
}

impl Note {
    /// Appends the note as a line. A name that is no UTF-8 is left out: the rest is worth more.
    pub(super) fn put(&self, out: &mut Vec<u8>) {
        let before = out.len();
        match serde_json::to_writer(&mut *out, &wire(self)) {
            Ok(()) => out.push(b'\n'),
            Err(_) => out.truncate(before),
        }
    }

    /// Reads lines; those of a later version are read over.
    pub(super) fn read(text: &[u8]) -> Vec<Self> {
        let lines = text.split(|b| *b == b'\n').filter(|l| !l.is_empty());
        lines.filter_map(|l| serde_json::from_slice(l).ok()).map(unwire).collect()
    }
}

fn wire(note: &Note) -> Wire {
    match note {
        Note::Container { slot, group, named, command } => Wire::Container(WireContainer {
            slot: *slot,
            path: group.path().to_owned(),
            cgroup: group.identity.version,
            service: group.kind == Kind::Service,
            named: named.as_ref().map(|n| WireNamed {
                namespace: n.namespace.clone(),
                pod: n.pod.clone(),
                uid: n.uid.clone(),
                container: n.container.clone(),
                restart: n.restart,
                folder: n.folder.clone().filter(|f| f.to_str().is_some()),
            }),
            command: command.clone(),
        }),
        Note::Gone { path, at } => Wire::Gone { path: path.clone(), at: at.0 },
        Note::Devices(all) => Wire::Devices(all.iter().map(wire_device).collect()),
        Note::Engine { slot, engine } => Wire::Engine { slot: *slot, engine: engine.clone() },
    }
}

fn wire_device(d: &Device) -> WireDevice {
    WireDevice {
        uuid: d.uuid.clone(),
        index: d.index,
        minor: d.minor,
        name: d.name.clone(),
        pci: d.pci.clone(),
        card: d.card.map(|c| c.0),
        instance: d.instance,
        mig: d.mig,
        capability: d.capability,
    }
}

fn unwire(wire: Wire) -> Note {
    match wire {
        Wire::Container(c) => Note::Container {
            slot: c.slot,
            group: Group {
                kind: if c.service { Kind::Service } else { Kind::Container },
                identity: of_path(&c.path, c.cgroup),
            },
            named: c.named.map(|n| Named {
                namespace: n.namespace,
                pod: n.pod,
                uid: n.uid,
                container: n.container,
                restart: n.restart,
                folder: n.folder,
            }),
            command: c.command,
        },
        Wire::Gone { path, at } => Note::Gone { path, at: Moment(at) },
        Wire::Devices(all) => Note::Devices(all.into_iter().map(device).collect()),
        Wire::Engine { slot, engine } => Note::Engine { slot, engine },
    }
}

fn device(d: WireDevice) -> Device {
    Device {
        uuid: d.uuid,
        index: d.index,
        minor: d.minor,
        name: d.name,
        pci: d.pci,
        card: d.card.map(DeviceId),
        instance: d.instance,
        mig: d.mig,
        capability: d.capability,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_come_back_and_unknown_ones_are_read_over() {
        let path = format!("/kubepods/burstable/pod9ebd9238-4ea3-417e-975f-99e0d23c5718/{}", "a".repeat(64));
        let named = Named {
            namespace: "serving".into(),
            pod: "llm-0".into(),
            uid: Some("9ebd9238-4ea3-417e-975f-99e0d23c5718".into()),
            container: "vllm\n\"x".into(),
            restart: Some(3),
            folder: Some("/var/log/pods/x".into()),
        };
        let group = Group { kind: Kind::Container, identity: of_path(&path, 2) };
        assert!(group.identity.container_id.is_some());
        let service = Group { kind: Kind::Service, identity: of_path("/system.slice/vllm.service", 1) };
        let mig = Device {
            uuid: "MIG-1".into(),
            minor: Some(3),
            card: Some(DeviceId(0)),
            instance: Some((1, 0)),
            ..Device::default()
        };
        let notes = [
            Note::Container { slot: 7, group, named: Some(named), command: vec!["vllm".into()] },
            Note::Container { slot: 8, group: service, named: None, command: Vec::new() },
            Note::Gone { path, at: Moment(u64::MAX) },
            Note::Devices(vec![mig, Device { mig: Some(true), ..Device::default() }]),
            Note::Engine { slot: 7, engine: Engine { engine: "vllm".into(), model: None, port: 8000 } },
        ];
        let mut out = b"{\"later\":{}}\nnonsense\n".to_vec();
        notes.iter().for_each(|n| n.put(&mut out));
        assert_eq!(Note::read(&out), notes);
    }
}
