//! A million requests, alone: `cargo test --release -p dualplane-rehearse --test million -- --ignored --nocapture`.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::disallowed_macros
)]

use dualplane_rehearse::{Prefix, Request, Settings, StepTime, rehearse};

#[test]
#[ignore = "a measurement, not a test: seconds depend on the machine"]
fn a_million_requests() {
    let mut x = 1_u64;
    let mut next = |n: u64| {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        (x % n) as u32
    };
    let requests: Vec<Request> = (0..1_000_000)
        .map(|i| Request {
            at: f64::from(i) / 30.0,
            input: 20 + next(1000),
            output: 10 + next(300),
            prefix: (i % 2 == 0).then(|| Prefix { group: next(50), tokens: 200 }),
            ..Request::default()
        })
        .collect();
    let time = StepTime { base: 0.02, token: 2e-5, request: 0.0, context: 0.0 };
    let begin = std::time::Instant::now();
    let o = rehearse(&Settings::plain(30_000, 16), &requests, &time, |_, _, _| {});
    println!(
        "{} requests, {} steps, {} tokens, {} preemptions, at most {} run: {:.2} s",
        o.finished,
        o.steps,
        o.computed_tokens,
        o.preemptions,
        o.most_running,
        begin.elapsed().as_secs_f64()
    );
    assert_eq!(o.finished, 1_000_000);
}
