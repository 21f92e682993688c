//! What the first thread does for itself once a second: keeps how far the kernel was read, makes the state's folder again
//! where somebody removed it, opens the kernel's log again, and reports how all of it went.

use std::time::Duration;

use dualplane_node::clock::Moment;
use dualplane_node::kmsg::State as KernelState;
use dualplane_node::pod_resources::KubeletGap;

use super::Recorder;
use super::recorder::open_kernel;
use crate::health::Part;

/// Between two savings of how far the kernel was read, and two looks at the folder.
const SAVE: Duration = Duration::from_secs(1);
/// Between two tries to open the kernel's log.
const KERNEL_AGAIN: Duration = Duration::from_secs(60);

impl Recorder {
    pub(super) fn tend(&mut self) {
        let now = Moment::now();
        if now.since(self.saved) < SAVE && self.counts.rounds > 0 {
            return;
        }
        self.saved = now;
        let state = self.tend_state();
        self.health.report(&Part::State, state);
        let ring = self.tape.ring().trouble().map(ToOwned::to_owned);
        self.health.report(&Part::Ring, ring.map_or(Ok(()), Err));
        self.tend_kernel(now);
        self.look_at_sources();
    }

    fn tend_state(&self) -> Result<(), String> {
        let mut removed = Vec::new();
        let mut ring = self.tape.ring();
        if !ring.is_there() {
            removed.push(self.config.state.join("ring"));
            ring.remake()
                .map_err(|e| format!("{} is gone and cannot be made again: {e}", shown(&removed)))?;
        }
        drop(ring);
        // While a bundle is written the folder is there, or the write says so.
        if let Some(mut store) = self.shared.try_store()
            && !store.is_there()
        {
            removed.push(super::incidents_dir(&self.config.state));
            let lost = store.remake().map_err(|e| format!("{} is gone: {e}", shown(&removed)))?;
            self.shared.count(|c| c.lost += lost);
        }
        let saved = self.kernel.as_ref().map_or(Ok(()), |k| k.save(&self.config.state.join("kmsg.json")));
        match removed.is_empty() {
            true => saved.map_err(|e| e.to_string()),
            false => {
                Err(format!("{} was removed and is made again; what was kept there is lost", shown(&removed)))
            }
        }
    }

    /// The log cannot be read any more: it is tried again later.
    pub(super) fn lose_kernel(&mut self, why: &str) {
        self.counts.no_kernel = true;
        self.kernel = None;
        self.kernel_tried = Moment::now();
        self.health.report(
            &Part::KernelLog,
            Err(format!("cannot read the kernel log ({}): {why}", self.config.kmsg.display())),
        );
    }

    fn tend_kernel(&mut self, now: Moment) {
        let first = self.counts.rounds == 0;
        if self.kernel.is_some() || (!first && now.since(self.kernel_tried) < KERNEL_AGAIN) {
            return;
        }
        self.kernel_tried = now;
        let state = KernelState::load(&self.config.state.join("kmsg.json"), &self.boot);
        match open_kernel(&self.config, state) {
            Ok(kernel) => {
                self.kernel = Some(kernel);
                self.counts.no_kernel = false;
                self.health.report(&Part::KernelLog, Ok(()));
            }
            Err(e) => {
                let path = self.config.kmsg.display();
                let why = format!(
                    "cannot read the kernel log ({path}): {e}; OOM records and Xids will be missing (needs CAP_SYSLOG)"
                );
                self.health.report(&Part::KernelLog, Err(why));
            }
        }
    }

    /// What rounds read. A node without GPUs or without a kubelet has no fault; one that loses them has.
    fn look_at_sources(&mut self) {
        let view = self.observer.view();
        let cgroups = match self.observer.sampler().hierarchy() {
            Some(_) => Ok(()),
            None => {
                let path = self.config.observe.sample.cgroups.display();
                Err(format!("no memory cgroups below {path}: is the host's /sys/fs/cgroup mounted there?"))
            }
        };
        let gpus = match &view.gpu_gap {
            Some(gap) if self.gpus_before => Some(Err(gap.to_string())),
            Some(_) => None,
            None => Some(Ok(())),
        };
        let kubelet = match &view.kubelet {
            Some(Err(KubeletGap::NoSocket(_))) if !self.kubelet_before => None,
            Some(Err(gap)) => Some(Err(gap.to_string())),
            Some(Ok(())) => Some(Ok(())),
            None => None,
        };
        self.gpus_before |= view.gpu_gap.is_none() && !view.gpus.is_empty();
        self.kubelet_before |= kubelet == Some(Ok(()));
        self.health.report(&Part::Cgroups, cgroups);
        gpus.into_iter().for_each(|how| self.health.report(&Part::Gpus, how));
        kubelet.into_iter().for_each(|how| self.health.report(&Part::PodResources, how));
    }
}

fn shown(paths: &[std::path::PathBuf]) -> String {
    paths.iter().map(|p| p.display().to_string()).collect::<Vec<_>>().join(", ")
}
