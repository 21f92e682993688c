//! Waits for the driver's events in a thread of its own: NVML tells each only once, and only to who waits.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

use nvml_wrapper::Nvml;
use nvml_wrapper::bitmasks::event::EventTypes;
use nvml_wrapper::enums::event::XidError;
use nvml_wrapper::error::NvmlError;

use super::Event;
use crate::clock::Moment;

/// Events that wait to be taken; more of them at once is a card that writes in a loop, whose count the kernel's lines tell.
const MAX_WAITING: usize = 1024;
/// How long one wait is: after it the thread sees whether anybody still listens.
const WAIT_MS: u32 = 1000;

/// The receiving end.
pub(super) struct Listener {
    events: Receiver<Event>,
}

impl Listener {
    /// Registers at all cards; `None` where no card gives events (MIG parents without the right, virtual GPUs).
    pub(super) fn start(library: &'static Nvml) -> Option<Self> {
        let mut set = library.create_event_set().ok()?;
        let mut any = false;
        for index in 0..library.device_count().ok()? {
            let Ok(device) = library.device_by_index(index) else { continue };
            let wanted = EventTypes::CRITICAL_XID_ERROR | EventTypes::DOUBLE_BIT_ECC_ERROR;
            let Ok(supported) = device.supported_event_types() else { continue };
            let wanted = wanted & supported;
            if wanted.is_empty() {
                continue;
            }
            // A card that refuses takes the set with it: those before it register anew.
            match device.register_events(wanted, set) {
                Ok(s) => {
                    set = s;
                    any = true;
                }
                Err(_) => return None,
            }
        }
        if !any {
            return None;
        }
        let (send, events) = sync_channel(MAX_WAITING);
        thread::Builder::new().name("nvml-events".into()).spawn(move || wait(&set, &send)).ok()?;
        Some(Self { events })
    }

    pub(super) fn take(&self, out: &mut Vec<Event>) {
        out.extend(self.events.try_iter());
    }
}

fn wait(set: &nvml_wrapper::EventSet<'static>, send: &SyncSender<Event>) {
    loop {
        match set.wait(WAIT_MS) {
            Ok(e) => {
                let xid = match e.event_data {
                    Some(XidError::Value(n)) => Some(n),
                    Some(XidError::Unknown) => Some(999),
                    None => None,
                };
                let event = Event { uuid: e.device.uuid().unwrap_or_default(), at: Moment::now(), xid };
                match send.try_send(event) {
                    Err(std::sync::mpsc::TrySendError::Disconnected(_)) => return,
                    // Full: the kernel's lines have it.
                    Ok(()) | Err(std::sync::mpsc::TrySendError::Full(_)) => {}
                }
            }
            Err(NvmlError::Timeout) => {}
            // A lost GPU answers at once, again and again; the kernel's lines go on.
            Err(_) => return,
        }
    }
}
