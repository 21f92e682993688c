//! The driver alone, as `measure` uses it, for `bench/driver.sh`: it compiles in a tenth of the program's time.
//!
//! `driver URL RATE SECONDS`: requests of 32 tokens that ask for five, open loop; the run is printed as `dualplane.measure/v1`.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::disallowed_methods
)]

use std::sync::atomic::AtomicBool;
use std::sync::mpsc::channel;
use std::time::Instant;

use dualplane_gate::document::{Load, Measure, Tool};
use dualplane_measure::{Api, Calibration, Target, Work, drive};
use dualplane_runs::{Gather, Setup};
use dualplane_shape::{Play, Shape};

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [url, rate, seconds] = words.as_slice() else { panic!("driver URL RATE SECONDS") };
    let (rate, seconds): (f64, f64) = (rate.parse().expect("a rate"), seconds.parse().expect("seconds"));
    let shape = format!(
        r#"{{"schema":"dualplane.shape/v1","name":"five tokens","arrival_per_second":{rate},"requests":[{{"input":32,"output":5}}]}}"#
    );
    let mut target = Target::new(url, Api::Chat, "trivial", None).unwrap();
    target.exact = false;
    let work = Work {
        shape: serde_json::from_str::<Shape>(&shape).unwrap(),
        seed: 1,
        play: Play::default(),
        closed: None,
        requests: None,
        warmup: 3.0,
        seconds,
        drain: 30.0,
        longest: None,
        calibration: Calibration::default(),
    };
    let load = Load { mode: "open".into(), rate: Some(rate), seconds: Some(seconds), ..Load::default() };
    let gather = Gather::new(Setup { name: "1".into(), load, ..Setup::default() });
    let (_to, mut readings) = channel();
    let clock = Instant::now();
    let (gather, _, ended) =
        drive(target, &work, gather, clock, &mut readings, &AtomicBool::new(false), &mut |_| {}).unwrap();
    let mut m = Measure::new(Tool {
        name: "dualplane".into(),
        version: env!("CARGO_PKG_VERSION").into(),
        load_tool: None,
    });
    m.runs.push(gather.finish(ended.at, ended.early));
    eprintln!("late by at most {:.1} ms, 99 of 100", ended.late_p99 * 1e3);
    println!("{}", dualplane_gate::document::write(&m).unwrap());
}
