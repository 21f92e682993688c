//! Samples that are known only afterwards: a store of metrics scrapes each few seconds and tells minutes later.

use super::Gather;
use crate::sample::Sample;

impl Gather {
    /// Takes both planes of earlier moments in, each where it belongs. All else of these samples is left out.
    pub fn planes_later(&mut self, samples: &[Sample]) {
        for s in samples.iter().filter(|s| s.at.is_finite()) {
            let plane = Sample {
                at: s.at,
                host: s.host,
                vram: s.vram,
                vram_total: s.vram_total,
                ..Sample::default()
            };
            let held = self.takes_planes(&plane);
            let within = self.until.is_none_or(|until| s.at <= until);
            let of_window =
                self.windows.iter_mut().find(|w| s.at >= w.from_seconds && s.at < w.from_seconds + w.seconds);
            match of_window {
                Some(w) => {
                    w.host_bytes = w.host_bytes.max(held);
                    w.vram_bytes = w.vram_bytes.max(s.vram);
                }
                None if within && s.at >= self.window_from => {
                    self.window.host = self.window.host.max(held);
                    self.window.vram = self.window.vram.max(s.vram);
                }
                None => {}
            }
            self.series.place(plane);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use crate::gather::Setup;
    use crate::sample::Host;
    use crate::{Gather, Sample};

    fn host(at: f64, held: u64) -> Sample {
        let host = Host { anon: Some(held), shmem: Some(0), limit: Some(1 << 40), ..Host::default() };
        Sample { at, host: Some(host), vram: Some(held / 2), vram_total: Some(1 << 41), ..Sample::default() }
    }

    fn empty() -> Gather {
        let mut g = Gather::new(Setup::default());
        g.counts_from(0.0);
        g
    }

    proptest! {
        /// Planes that come afterwards, in whatever order, give the figures that they give when they come in time.
        #[test]
        fn what_comes_later_counts_as_if_it_had_come_in_time(
            held in proptest::collection::vec(1_u64..1 << 39, 1..90),
            seed in 0_usize..1_000,
        ) {
            let planes: Vec<Sample> = held.iter().enumerate().map(|(i, h)| host(i as f64 + 0.5, *h)).collect();
            let page = |i: usize| Sample { at: i as f64, kv: Some(0.5), ..Sample::default() };
            let mut in_time = empty();
            for p in &planes {
                in_time.sample(Sample { kv: Some(0.5), ..*p });
            }
            let mut later = empty();
            for i in 0..planes.len() {
                later.sample(page(i));
            }
            let mut shuffled = planes.clone();
            shuffled.rotate_left(seed % planes.len());
            later.planes_later(&shuffled);
            let end = planes.len() as f64;
            let (a, b) = (in_time.finish(end, false), later.finish(end, false));
            let (x, y) = (a.host.as_ref().unwrap(), b.host.as_ref().unwrap());
            prop_assert_eq!((x.peak_bytes, x.steady_bytes, x.limit_bytes), (y.peak_bytes, y.steady_bytes, y.limit_bytes));
            let (x, y) = (a.vram.as_ref().unwrap(), b.vram.as_ref().unwrap());
            prop_assert_eq!((x.peak_bytes, x.limit_bytes), (y.peak_bytes, y.limit_bytes));
            let of = |r: &dualplane_gate::document::Run| r.windows.iter().map(|w| (w.host_bytes, w.vram_bytes)).collect::<Vec<_>>();
            let (mut in_time, mut later) = (a.clone(), b.clone());
            in_time.windows.truncate(later.windows.len());
            later.windows.truncate(in_time.windows.len());
            prop_assert_eq!(of(&in_time), of(&later));
            let seconds = &b.series.unwrap().seconds;
            prop_assert!(seconds.windows(2).all(|w| w[0] < w[1]), "{:?}", seconds);
        }
    }

    #[test]
    fn a_run_of_which_nothing_else_is_known_has_its_planes() {
        let mut g = empty();
        g.planes_later(&[host(30.0, 5), host(15.0, 7), host(f64::NAN, 9)]);
        let run = g.finish(40.0, false);
        assert_eq!(run.host.unwrap().peak_bytes, Some(7));
        assert_eq!(run.series.unwrap().seconds, [15.0, 30.0]);
    }
}
