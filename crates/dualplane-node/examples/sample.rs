//! What one round costs: time, processor, memory. For `bench/sample.sh`; no part of the product.
//!
//! `sample BASE ROUNDS GPUS [beat]`: rounds over the groups below BASE with so many fake GPUs; with `beat` at the agent's
//! own rate instead of one after another.
#![allow(clippy::print_stdout, clippy::unwrap_used, clippy::indexing_slicing)]

use std::time::Duration;

use dualplane_node::clock::Moment;
use dualplane_node::gpu::Fake;
use dualplane_node::sample::{Config, RateLimits, Sampler};
use rustix::time::{ClockId, clock_gettime};

fn cpu(clock: ClockId) -> Duration {
    let t = clock_gettime(clock);
    Duration::new(t.tv_sec.unsigned_abs(), u32::try_from(t.tv_nsec).unwrap())
}

fn kib(key: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|l| l.strip_prefix(key)).unwrap_or("0");
    line.trim_matches([':', '\t', ' ']).split(' ').next().unwrap().parse().unwrap()
}

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let _ = dualplane_node::descriptors::raise();
    let beat = args.get(4).is_some_and(|a| a == "beat");
    let calm = if beat { Duration::from_secs(1) } else { Duration::ZERO };
    let rate = RateLimits { calm, ..RateLimits::default() };
    let config = Config { cgroups: args[1].clone().into(), rate, ..Config::default() };
    let mut s = Sampler::new(config, Box::new(Fake::cards(args[3].parse().unwrap()))).unwrap();
    let (mut out, mut noticed) = (Vec::new(), Vec::new());
    let began = Moment::now();
    s.round(&mut out, &mut noticed);
    println!("first round with the walk: {:?}", Moment::now().since(began));
    let rounds: usize = args[2].parse().unwrap();
    let (mut times, mut skews) = (Vec::with_capacity(rounds), Vec::with_capacity(rounds));
    let mut owns = Vec::with_capacity(rounds);
    let (cpu_before, began) = (cpu(ClockId::ProcessCPUTime), Moment::now());
    for _ in 0..rounds {
        if beat {
            let wait = s.due().since(Moment::now());
            std::thread::park_timeout(wait);
        }
        let (from, own) = (Moment::now(), cpu(ClockId::ThreadCPUTime));
        let round = s.round(&mut out, &mut noticed);
        times.push(Moment::now().since(from));
        owns.push(cpu(ClockId::ThreadCPUTime).saturating_sub(own));
        skews.extend(round.skew());
    }
    let (used, wall) = (cpu(ClockId::ProcessCPUTime).saturating_sub(cpu_before), Moment::now().since(began));
    times.sort_unstable();
    owns.sort_unstable();
    skews.sort_unstable();
    let at = |v: &[Duration], share: f64| v.get((v.len() as f64 * share) as usize).or(v.last()).copied();
    let per = u32::try_from(rounds.max(1)).unwrap();
    println!("{} containers, {} records a round", s.containers().slots().len(), out.len());
    println!(
        "a round: median {:?}, 99 % {:?}, most {:?}; processor {:?}",
        at(&times, 0.5).unwrap(),
        at(&times, 0.99).unwrap(),
        times.last().unwrap(),
        used / per
    );
    println!(
        "its processor time without waiting: median {:?}, 99 % {:?}, most {:?}",
        at(&owns, 0.5).unwrap(),
        at(&owns, 0.99).unwrap(),
        owns.last().unwrap()
    );
    println!("skew: 99 % {:?}, most {:?}; late {}", at(&skews, 0.99), skews.last(), s.gpu_late());
    if beat {
        println!("processor: {:.3} % of one core", used.as_secs_f64() * 100.0 / wall.as_secs_f64());
    }
    println!("RSS: {} KiB, peak {} KiB", kib("VmRSS"), kib("VmHWM"));
}
