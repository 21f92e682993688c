//! Ctrl-C and its like: the first ends the measurement and keeps what was measured, the second ends what still takes its time.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::commands::Failure;
use crate::output;

/// What was asked for so far.
#[derive(Debug, Clone, Default)]
pub(super) struct Asked {
    /// To end.
    pub(super) stop: Arc<AtomicBool>,
    /// To end at once: nobody waits for a server that ends in order.
    pub(super) hurry: Arc<AtomicBool>,
    /// By somebody else than the terminal, which tells all that run in it.
    pub(super) alone: Arc<AtomicBool>,
}

impl Asked {
    pub(super) fn listen() -> Result<Self, Failure> {
        let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP]).map_err(Failure::Output)?;
        let asked = Self::default();
        let own = asked.clone();
        let listen = move || {
            for signal in signals.forever() {
                if signal != SIGINT {
                    own.alone.store(true, Ordering::Relaxed);
                }
                if own.stop.swap(true, Ordering::Relaxed) {
                    own.hurry.store(true, Ordering::Relaxed);
                } else {
                    output::note(
                        "ends, and keeps what was measured; once more ends it without waiting for the server",
                    );
                }
            }
        };
        std::thread::Builder::new().name("signals".into()).spawn(listen).map_err(Failure::Output)?;
        Ok(asked)
    }

    pub(super) fn stops(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    pub(super) fn hurries(&self) -> bool {
        self.hurry.load(Ordering::Relaxed)
    }
}
