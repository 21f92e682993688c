//! What holds for every run: a document that its reader takes, figures that are those of the samples, and pages that are safe.

use dualplane_gate::document::{Cost, Load, Measure, Restart, Run, Slo, Tool, read, write};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

use crate::*;

prop_compose! {
    fn sample()(
        anon in option::of(0_u64..1 << 40), shmem in option::of(0_u64..1 << 38), current in option::of(0_u64..1 << 41),
        vram in option::of(0_u64..1 << 37), kv in option::of(0.0_f64..=1.0), waiting in option::of(0.0_f64..100.0),
        preemptions in option::of(0.0_f64..50.0), step in 0.0_f64..20.0,
    ) -> (f64, Sample) {
        let host = Host { anon, shmem, current, working_set: current, limit: Some(1 << 41), ..Host::default() };
        (step, Sample { host: Some(host), vram, vram_total: Some(1 << 38), kv, waiting, running: waiting, preemptions, ..Sample::default() })
    }
}

prop_compose! {
    fn outcome()(wait in 0.0_f64..30.0, first in option::of(0.0_f64..10.0), rest in 0.0_f64..50.0, output in 0_u64..500, how in 0..5) -> Outcome {
        let state = [State::Done, State::Done, State::Cancelled, State::Failed("timeout"), State::Status(503)][how as usize];
        let sent = wait;
        let begun = first.map(|f| sent + f);
        Outcome { due: wait, sent, first: begun, end: begun.unwrap_or(sent) + rest, input: 10, output, state }
    }
}

fn gather(samples: &[(f64, Sample)], outcomes: &[Outcome], warm: f64) -> (Run, Option<u64>) {
    let slo = Slo { ttft_seconds: Some(1.0), itl_seconds: Some(0.1), e2e_seconds: None };
    let load = Load { mode: "open".into(), seconds: Some(100.0), ..Load::default() };
    let mut g = Gather::new(Setup {
        name: "1".into(),
        load,
        slo: Some(slo),
        price_per_hour: Some(3.0),
        ..Setup::default()
    });
    let mut at = 0.0;
    let mut peak = None;
    g.ready(warm / 2.0);
    for (i, (step, s)) in samples.iter().enumerate() {
        at += step + 1e-3;
        if at >= warm {
            g.counts_from(warm);
        }
        g.sample(Sample { at, ..*s });
        peak = peak.max(s.host.and_then(|h| h.held()).map(|h| h.0));
        if let Some(o) = outcomes.get(i) {
            let o = Outcome {
                due: o.due + at,
                sent: o.sent + at,
                first: o.first.map(|f| f + at),
                end: o.end + at,
                ..*o
            };
            g.sent(o.sent);
            g.outcome(&o);
        }
    }
    (g.finish(at + 200.0, false), peak)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn every_run_is_a_document_that_is_read_again(samples in vec(sample(), 1..60), outcomes in vec(outcome(), 0..60), warm in 0.0_f64..30.0) {
        let (run, peak) = gather(&samples, &outcomes, warm);
        if let Some(host) = &run.host {
            prop_assert_eq!(host.peak_bytes, peak);
        }
        let mut m = Measure::new(Tool { name: "dualplane".into(), version: "1".into(), load_tool: None });
        m.runs.push(run);
        let text = write(&m).unwrap();
        let back = read(&text).map_err(|e| TestCaseError::fail(e.to_string()))?;
        let windows = &back.runs[0].windows;
        prop_assert!(windows.windows(2).all(|w| w[0].from_seconds + w[0].seconds <= w[1].from_seconds + 1e-6));
        if let Some(r) = &back.runs[0].requests {
            prop_assert_eq!(r.sent, r.succeeded + r.cancelled + r.failures());
        }
    }

    #[test]
    fn no_text_of_a_server_becomes_markup(name in ".{0,30}", line in "[<>&\"'a-z\u{1b}\u{202e}|`\n]{0,40}") {
        let (mut run, _) = gather(&[(1.0, Sample { host: Some(Host { anon: Some(1), shmem: Some(1), ..Host::default() }), ..Sample::default() })], &[], 0.0);
        run.restarts = Some(vec![Restart { class: Some(line.clone()), trigger: Some(line.clone()), exit_code: Some(137), ..Restart::default() }]);
        run.name = name.clone();
        let mut m = Measure::new(Tool { name: line.clone(), version: name, load_tool: Some(line.clone()) });
        m.subject.model = Some(format!("<script>{line}"));
        m.cost = Some(Cost { per_hour: 1.0, currency: line });
        m.runs.push(run);
        let page = render::html(&m);
        let unsafe_text = ["<script", "\u{1b}", "\u{202e}"];
        prop_assert!(unsafe_text.iter().all(|t| !page.contains(t)));
        let style = dualplane_base::style::Style { colour: false, verbose: true, width: 100 };
        let text = render::text(&m, style);
        prop_assert!(unsafe_text.iter().skip(1).all(|t| !text.contains(t)));
        prop_assert!(!render::markdown(&m).contains("<script"));
    }

    #[test]
    fn a_distribution_is_within_half_a_percent(mut values in vec(1e-5_f64..1e4, 1..300)) {
        let mut h = Histo::default();
        values.iter().for_each(|v| h.add(*v));
        values.sort_by(f64::total_cmp);
        let d = h.distribution().unwrap();
        for (share, got) in [(0.5, d.p50), (0.9, d.p90), (0.99, d.p99)] {
            let want = values[((values.len() as f64 * share).ceil() as usize).max(1) - 1];
            prop_assert!((got / want - 1.0).abs() < 0.005, "{share}: {got} {want}");
        }
        prop_assert!(d.p50 <= d.p90 && d.p90 <= d.p99 && d.p99 <= d.max && d.n == values.len() as u64);
    }

    #[test]
    fn a_long_run_stays_small_and_keeps_its_peak(peak_at in 0_usize..8_000) {
        let mut g = Gather::new(Setup::default());
        g.counts_from(0.0);
        for i in 0..8_000 {
            let anon = if i == peak_at { 1 << 40 } else { 1 << 30 };
            g.sample(Sample { at: i as f64, host: Some(Host { anon: Some(anon), shmem: Some(0), ..Host::default() }), ..Sample::default() });
        }
        let run = g.finish(8_000.0, false);
        let series = run.series.unwrap();
        prop_assert!(series.seconds.len() <= 3_601);
        let most = series.lines[0].values.iter().flatten().copied().fold(0.0, f64::max);
        prop_assert_eq!(most as u64, 1 << 40);
        prop_assert_eq!(run.host.unwrap().peak_bytes, Some(1 << 40));
    }

    #[test]
    fn no_file_of_a_tool_breaks_it(text in ".{0,200}") {
        let _ = tools::read(&text);
        let _ = tools::read(&format!("{{\"benchmarks\":[{{\"metrics\":{{\"x\":\"{}\"}}}}]}}", text.escape_default()));
    }
}

#[test]
fn a_good_request_meets_every_bound_and_is_paid_for() {
    let (run, _) = gather(
        &vec![(1.0, Sample::default()); 20],
        &[
            Outcome {
                due: 0.0,
                sent: 0.0,
                first: Some(0.5),
                end: 2.4,
                input: 5,
                output: 20,
                state: State::Done,
            },
            Outcome {
                due: 0.0,
                sent: 0.0,
                first: Some(1.5),
                end: 2.4,
                input: 5,
                output: 20,
                state: State::Done,
            },
            Outcome {
                due: 0.0,
                sent: 0.0,
                first: Some(0.5),
                end: 9.0,
                input: 5,
                output: 20,
                state: State::Done,
            },
            Outcome {
                due: 0.0,
                sent: 0.0,
                first: Some(0.5),
                end: 0.5,
                input: 5,
                output: 1,
                state: State::Done,
            },
        ],
        0.0,
    );
    let r = run.requests.unwrap();
    assert_eq!((r.succeeded, r.good), (4, Some(2)));
    let t = run.throughput.unwrap();
    let cost = t.cost_per_good_request.unwrap();
    assert!((cost - 3.0 / 3600.0 * run.measured_seconds / 2.0).abs() < 1e-12);
}
