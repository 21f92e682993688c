//! What holds for every shape: what is written is read, and what is drawn is what it says.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

use crate::*;

/// A number with a short form in both numeral systems: JSON's reader is off by one in the last place of others.
fn number(range: std::ops::Range<u64>) -> impl Strategy<Value = f64> {
    range.prop_map(|n| n as f64 / 64.0)
}

prop_compose! {
    fn cell()(input in 0_u64..200_000, output in 0_u64..20_000, weight in number(1..64_000_000)) -> Requests {
        Requests { input, output, weight }
    }
}

prop_compose! {
    fn arrival()(cv in number(0..320), rates in vec(number(1..640), 0..20), peak in option::of(number(1..640_000))) -> Arrival {
        let slice_seconds = (!rates.is_empty()).then_some(60.0);
        Arrival { cv, rates, slice_seconds, peak_per_second: peak }
    }
}

prop_compose! {
    fn shape()(
        name in ".{0,20}",
        source in ".{0,40}",
        requests in vec(cell(), 1..40),
        concurrency in option::of(1_u64..1000),
        rate in number(1..128_000),
        arrival in option::of(arrival()),
        prefix_share in number(0..65),
        prefixes in option::of(1_u64..50),
        cancelled in option::of((number(0..65), number(0..65))),
        tenants in vec(number(0..65), 0..5),
    ) -> Shape {
        Shape {
            name, source, requests, concurrency, arrival, prefix_share, prefixes,
            arrival_per_second: Some(rate),
            cancelled: cancelled.map(|(share, after)| Cancelled { share, after }),
            tenants: tenants.into_iter().map(|share| Tenant { share, input: None, output: Some(3) }).collect(),
            long: Some(Long { above: 8192, share: 0.25, tokens_share: 0.75 }),
            ..Shape::default()
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn what_is_written_is_read_again(shape in shape()) {
        let back: Shape = serde_json::from_str(&shape.json().unwrap()).unwrap();
        prop_assert_eq!(&back, &shape);
        let back: Shape = toml::from_str(&shape.toml()).unwrap_or_else(|e| panic!("{e}\n{}", shape.toml()));
        prop_assert_eq!(&back, &shape);
    }

    #[test]
    fn the_same_seed_draws_the_same_and_each_request_is_one_of_the_shape(shape in shape(), seed: u64) {
        let all: Vec<Request> = shape.draw(seed, Play::default()).unwrap().take(300).collect();
        let again: Vec<Request> = shape.draw(seed, Play::default()).unwrap().take(300).collect();
        prop_assert_eq!(&all, &again);
        for (i, r) in all.iter().enumerate() {
            prop_assert_eq!(r.index, i as u64);
            let known = shape.requests.iter().any(|c| c.input.max(1) == r.input && c.output.max(1) == r.output);
            prop_assert!(known, "{:?}", r);
            prop_assert!(r.prefix_tokens <= r.input && r.prefix < shape.prefixes.unwrap_or(1));
            prop_assert!(r.cancel_after.is_none_or(|n| n < r.output));
            prop_assert!((r.tenant as usize) < shape.tenants.len().max(1));
        }
        prop_assert!(all.windows(2).all(|w| w[0].at <= w[1].at && w[1].at.is_finite()));
    }

    #[test]
    fn another_rate_or_cancellations_do_not_move_the_lengths(shape in shape(), seed: u64) {
        let lengths = |s: &Shape, play| -> Vec<(u64, u64)> {
            s.draw(seed, play).unwrap().take(100).map(|r| (r.input, r.output)).collect()
        };
        let first = lengths(&shape, Play::default());
        let faster = Play { rate: Some(77.0), ..Play::default() };
        prop_assert_eq!(&first, &lengths(&shape, faster));
        let other = Shape { cancelled: None, tenants: Vec::new(), arrival: None, prefix_share: 0.5, ..shape };
        prop_assert_eq!(&first, &lengths(&other, Play::default()));
    }

    #[test]
    fn no_pattern_hangs_or_leaves_its_time(
        shape in shape(), seed: u64, seconds in 0.0_f64..200.0, a in 0.0_f64..3.0, b in 0.0_f64..3.0,
    ) {
        for pattern in [
            Pattern::Steady,
            Pattern::Ramp { from: a, to: b },
            Pattern::Burst { factor: a * 5.0, every: b * 10.0, lasts: b },
            Pattern::LongPrompts { tokens: Some(300_000) },
            Pattern::CancelStorm { share: 0.9 },
        ] {
            let play = Play { pattern, seconds: Some(seconds), rate: Some(20.0) };
            for r in shape.draw(seed, play).unwrap().take(10_000) {
                prop_assert!(r.at < seconds);
            }
        }
    }
}

fn of(more: &str) -> Shape {
    let text = format!(r#"{{"schema": "dualplane.shape/v1", {more}}}"#);
    serde_json::from_str(&text).unwrap()
}

const EQUAL: &str =
    r#""requests": [{"input": 100, "output": 20, "weight": 3}, {"input": 900, "output": 60}]"#;

#[test]
fn shares_rates_and_bursts_are_met() {
    for cv in [0.0, 0.5, 1.0, 3.0] {
        let shape = of(&format!(
            r#"{EQUAL}, "arrival_per_second": 50, "arrival": {{"cv": {cv}}}, "prefix_share": 0.5, "prefixes": 4,
               "cancelled": {{"share": 0.2, "after": 0.3}}, "tenants": [{{"share": 0.7}}, {{"share": 0.3}}]"#
        ));
        let all: Vec<Request> = shape.draw(5, Play::default()).unwrap().take(50_000).collect();
        let n = all.len() as f64;
        let share = |f: &dyn Fn(&Request) -> bool| all.iter().filter(|r| f(r)).count() as f64 / n;
        assert!((share(&|r| r.input == 100) - 0.75).abs() < 0.01);
        assert!((share(&|r| r.tenant == 0) - 0.7).abs() < 0.01);
        assert!((share(&|r| r.cancel_after.is_some()) - 0.2).abs() < 0.01);
        assert!((share(&|r| r.prefix == 2) - 0.25).abs() < 0.01);
        assert!((n / all.last().unwrap().at - 50.0).abs() < 50.0 * 0.02 * (1.0 + cv), "cv {cv}");
        let gaps: Vec<f64> = all.windows(2).map(|w| w[1].at - w[0].at).collect();
        let mean = gaps.iter().sum::<f64>() / n;
        let deviation = (gaps.iter().map(|g| (g - mean).powi(2)).sum::<f64>() / n).sqrt();
        assert!((deviation / mean - cv).abs() < 0.15 + cv * 0.05, "cv {cv}: {}", deviation / mean);
    }
}

#[test]
fn two_points_are_met_by_what_is_drawn() {
    let shape =
        of(r#""concurrency": 1, "input": {"p50": 1000, "p99": 8000}, "output": {"p50": 200, "p99": 900}"#);
    let draw = shape.draw(9, Play::default()).unwrap();
    assert!(!draw.open());
    let mut inputs: Vec<u64> = draw.take(40_000).map(|r| r.input).collect();
    inputs.sort_unstable();
    assert!(inputs[20_000].abs_diff(1000) < 40, "{}", inputs[20_000]);
    assert!(inputs[39_600].abs_diff(8000) < 600, "{}", inputs[39_600]);
}

#[test]
fn a_pattern_moves_the_load_where_it_says() {
    let shape = of(&format!(r#"{EQUAL}, "arrival_per_second": 100"#));
    let times = |pattern| -> Vec<Request> {
        shape.draw(3, Play { pattern, seconds: Some(100.0), rate: None }).unwrap().collect()
    };
    let between = |all: &[Request], from: f64, to: f64| {
        all.iter().filter(|r| (from..to).contains(&r.at)).count() as f64 / (to - from)
    };
    let ramp = times(Pattern::Ramp { from: 0.0, to: 2.0 });
    assert!(
        (between(&ramp, 0.0, 50.0) - 50.0).abs() < 5.0 && (between(&ramp, 50.0, 100.0) - 150.0).abs() < 8.0
    );
    let burst = times(Pattern::Burst { factor: 5.0, every: 20.0, lasts: 2.0 });
    assert!(
        (between(&burst, 18.0, 20.0) - 500.0).abs() < 60.0
            && (between(&burst, 20.0, 38.0) - 100.0).abs() < 15.0
    );
    let long = times(Pattern::LongPrompts { tokens: None });
    let inside = |r: &&Request| (30.0..50.0).contains(&r.at);
    assert!(long.iter().filter(inside).all(|r| r.input == 900));
    assert!(long.iter().filter(|r| !inside(r)).any(|r| r.input == 100));
    let storm = times(Pattern::CancelStorm { share: 1.0 });
    assert!(storm.iter().all(|r| r.cancel_after.is_some() == inside(&r)));
}

#[test]
fn a_day_has_its_hours() {
    let shape = of(&format!(
        r#"{EQUAL}, "arrival_per_second": 100, "arrival": {{"rates": [1, 3], "slice_seconds": 10}}"#
    ));
    let play = Play { seconds: Some(40.0), ..Play::default() };
    let all: Vec<Request> = shape.draw(1, play).unwrap().collect();
    let count = |from: f64| all.iter().filter(|r| (from..from + 10.0).contains(&r.at)).count();
    for (from, want) in [(0.0, 500), (10.0, 1500), (20.0, 500), (30.0, 1500)] {
        assert!(count(from).abs_diff(want) < 130, "{from}: {}", count(from));
    }
}
