//! Readings from metrics, and rules of them that hold for any figures.

use super::signals::{Admitted, Failed, Halves, Queue, Signals, Usage};
use super::{Held, State, read};
use crate::facts::Place;
use crate::verdict::proof::Untold;
use crate::verdict::rules::testing::{File, file, judged};

fn at() -> Place {
    Place { file: "metrics.prom".into(), line: Some(1) }
}

/// Every combination of these figures, told or not.
fn all(mut each: impl FnMut(&Signals)) {
    let told = |values: &[f64]| -> Vec<Option<f64>> {
        std::iter::once(None).chain(values.iter().copied().map(Some)).collect()
    };
    for usage in told(&[0.05, 0.5, 0.97]) {
        for (first, last) in
            [(None, None), (Some(0.0), Some(0.0)), (Some(2.0), Some(40.0)), (Some(9.0), Some(9.0))]
        {
            for token in told(&[0.2, 6.0]) {
                for rate in told(&[0.5, 0.85, 1.1]) {
                    for failed in told(&[0.0, 12.0]) {
                        for (throttled, storage, dropped) in [
                            (None, None, None),
                            (Some(0.6), None, None),
                            (None, Some(0.4), Some(0.0)),
                            (Some(0.0), Some(0.0), Some(80.0)),
                        ] {
                            each(&Signals {
                                usage: usage.map(|mean| Usage {
                                    gpu: "0".into(),
                                    mean,
                                    samples: 9,
                                    place: at(),
                                }),
                                queue: first.zip(last).map(|(first, last)| Queue {
                                    first,
                                    last,
                                    place: at(),
                                }),
                                first_token: token.map(|after| Halves {
                                    before: Some(0.2),
                                    after,
                                    place: at(),
                                }),
                                generated: rate.map(|r| Halves {
                                    before: 1000.0,
                                    after: 1000.0 * r,
                                    place: at(),
                                }),
                                failed: failed.map(|count| Failed {
                                    name: "failed".into(),
                                    count,
                                    place: at(),
                                }),
                                throttled: throttled.map(|v| (v, at())),
                                storage: storage.map(|v| (v, at())),
                                dropped: dropped.map(|v| (v, at())),
                                admitted: None,
                            });
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn healthy_is_said_only_where_all_that_decides_is_told() {
    let mut healthy = 0;
    all(|s| {
        let Some((State::Saturated, untold)) = read(s) else { return };
        healthy += 1;
        assert!(untold.is_empty());
        assert!(s.usage.as_ref().unwrap().mean >= super::BUSY, "{s:#?}");
        assert!(s.failed.as_ref().unwrap().count < 1.0, "{s:#?}");
        let rate = s.generated.as_ref().unwrap();
        assert!(rate.after >= super::HOLDS * rate.before, "{s:#?}");
    });
    assert!(healthy > 0);
}

#[test]
fn without_a_figure_nothing_becomes_healthy() {
    all(|s| {
        let before = read(s).map(|(state, _)| state);
        let without: [fn(&mut Signals); 7] = [
            |s| s.usage = None,
            |s| s.queue = None,
            |s| s.first_token = None,
            |s| s.generated = None,
            |s| s.failed = None,
            |s| s.throttled = None,
            |s| s.storage = None,
        ];
        for drop in without {
            let mut fewer = s.clone();
            drop(&mut fewer);
            let after = read(&fewer).map(|(state, _)| state);
            assert!(after != Some(State::Saturated) || before == after, "{s:#?}\n{fewer:#?}");
        }
    });
}

#[test]
fn what_is_untold_names_what_would_decide() {
    all(|s| match read(s) {
        Some((State::Untold, untold)) => assert!(!untold.is_empty(), "{s:#?}"),
        Some((_, untold)) => assert!(untold.is_empty(), "{s:#?}"),
        None => {}
    });
}

#[test]
fn a_busy_card_that_fails_is_overloaded_and_an_idle_one_waits() {
    all(|s| {
        let Some((state, _)) = read(s) else { return };
        let usage = s.usage.as_ref().map(|u| u.mean);
        match state {
            State::Overloaded | State::Saturated => assert!(usage >= Some(super::BUSY)),
            State::Held(_) => assert!(usage.is_some_and(|u| u <= super::IDLE)),
            State::Untold => {}
        }
        if usage >= Some(super::BUSY) && s.failed.as_ref().is_some_and(|f| f.count >= 1.0) {
            assert_eq!(state, State::Overloaded);
        }
    });
}

#[test]
fn a_launch_that_admits_no_more_holds_its_card_idle() {
    let mut s = Signals {
        usage: Some(Usage { gpu: "0".into(), mean: 0.2, samples: 5, place: at() }),
        queue: Some(Queue { first: 3.0, last: 30.0, place: at() }),
        admitted: Some(Admitted { running: 4.0, most: 4.0, place: at() }),
        ..Signals::default()
    };
    assert_eq!(read(&s).unwrap().0, State::Held(Held::Admission));
    s.admitted = Some(Admitted { running: 3.0, most: 256.0, place: at() });
    assert_eq!(read(&s).unwrap(), (State::Untold, vec![Untold::Host]));
}

/// Six scrapes, half a minute apart.
fn scrapes(line: impl Fn(u64) -> Vec<(&'static str, f64)>) -> File {
    let mut text = String::new();
    for i in 0..6 {
        for (series, value) in line(i) {
            let ms = 1_795_170_600_000 + i * 30_000;
            text += &format!("{series} {value} {ms}\n");
        }
    }
    file("metrics.prom", &text)
}

#[test]
fn figures_are_read_from_pages_of_metrics() {
    let page = |fails: f64| {
        scrapes(move |i| {
            let n = i as f64;
            vec![
                ("DCGM_FI_DEV_GPU_UTIL{gpu=\"0\"}", 97.0),
                ("vllm:num_requests_running{engine=\"0\"}", 64.0),
                ("vllm:num_requests_waiting{engine=\"0\"}", 4.0 * n),
                ("vllm:kv_cache_usage_perc{engine=\"0\"}", 0.7),
                ("vllm:generation_tokens_total{engine=\"0\"}", 90_000.0 * n),
                ("vllm:time_to_first_token_seconds_count{engine=\"0\"}", 100.0 * n),
                ("vllm:time_to_first_token_seconds_sum{engine=\"0\"}", 80.0 * n * n),
                ("http_requests_total{status=\"2xx\"}", 100.0 * n),
                ("http_requests_total{status=\"5xx\"}", fails * n),
            ]
        })
    };
    let state = |f: File| judged(&[f]).busy.map(|b| b.state);
    assert_eq!(state(page(0.0)), Some(State::Saturated));
    assert_eq!(state(page(3.0)), Some(State::Overloaded));
}

#[test]
fn a_restarted_counter_begins_anew() {
    let text = "http_requests_total{status=\"5xx\"} 90\nhttp_requests_total{status=\"5xx\"} 94\nhttp_requests_total{status=\"5xx\"} 1\nhttp_requests_total{status=\"5xx\"} 3\n";
    let (samples, _) = crate::evidence::metrics::parse(text, "m");
    let rise = super::counters::rise(samples.iter()).unwrap();
    assert!((rise.by - 7.0).abs() < 1e-9, "{rise:?}");
}
