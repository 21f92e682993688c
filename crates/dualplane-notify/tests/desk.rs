//! When something is told, over any order of deaths and any time between them.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, missing_docs)]

use std::collections::BTreeMap;

use dualplane_incidents::Incident;
use dualplane_notify::{Decision, Desk, Notice, Policy};
use proptest::collection::vec;
use proptest::prelude::proptest;
use proptest::{prop_assert, prop_assert_eq};

const HOUR: i64 = 3_600_000;
/// 2026-11-27, a Friday, 12:00 UTC.
const NOON: i64 = 1_795_780_800_000;

fn notice(cause: &str, plane: &str) -> Notice {
    let text = format!(
        r#"{{"schema":"dualplane.fleet-incident/v1","id":"a","cluster":"","namespace":"s","owner":"o","pod":"p","container":"c","node":"","image":"","model":"","engine":"","engine_version":"","gpus":[],"xids":[],"class":"{}","plane":"{plane}","phase":"traffic","confidence":"high","title":"t","summary":"s","loop_key":"l","cause_key":"{cause}","died_at":"2026-11-20T10:05:00.000Z","died_at_from":"report","received_at":"2026-11-20T10:06:00.000Z","occurrences":1}}"#,
        if plane == "hardware" { "xid_hardware" } else { "host_oom_killed" }
    );
    let incident: Incident = serde_json::from_str(&text).unwrap();
    Notice::of(&incident, "")
}

#[test]
fn a_loop_is_told_once_and_its_next_message_counts_the_rest() {
    let (mut desk, policy) = (Desk::default(), Policy::default());
    let n = notice("a", "host");
    assert_eq!(desk.decide(&n, &policy, NOON), Decision::Send { folded: 0 });
    for minutes in 1..=30 {
        assert_eq!(desk.decide(&n, &policy, NOON + minutes * 60_000), Decision::Fold);
    }
    // Another cause of the same loop is news.
    assert_eq!(desk.decide(&notice("b", "gpu"), &policy, NOON + HOUR), Decision::Send { folded: 0 });
    assert_eq!(desk.decide(&n, &policy, NOON + 4 * HOUR), Decision::Send { folded: 30 });
}

#[test]
fn quiet_hours_wait_and_a_fault_of_hardware_does_not() {
    let mut desk = Desk::default();
    let policy = Policy {
        quiet: vec!["mo-fr 22:00-07:00".parse().unwrap(), "sa,su 00:00-24:00".parse().unwrap()],
        ..Policy::default()
    };
    let night = NOON + 11 * HOUR;
    // Friday's night touches the week's end, which touches nothing of Monday.
    let Decision::Wait { until } = desk.decide(&notice("a", "host"), &policy, night) else {
        panic!("it is quiet")
    };
    assert_eq!(until, NOON + 60 * HOUR, "Monday, 00:00");
    assert_eq!(desk.decide(&notice("x", "hardware"), &policy, night), Decision::Send { folded: 0 });
    let strict = Policy { hardware_always: false, ..policy };
    assert!(matches!(desk.decide(&notice("y", "hardware"), &strict, night), Decision::Wait { .. }));
}

#[test]
fn a_clock_that_is_set_back_silences_nobody() {
    let (mut desk, policy) = (Desk::default(), Policy::default());
    let n = notice("a", "host");
    assert_eq!(desk.decide(&n, &policy, NOON), Decision::Send { folded: 0 });
    assert!(matches!(desk.decide(&n, &policy, NOON - 48 * HOUR), Decision::Send { .. }));
}

#[test]
fn what_a_desk_remembers_outlives_a_restart() {
    let (mut desk, policy) = (Desk::default(), Policy::default());
    let n = notice("a", "host");
    desk.decide(&n, &policy, NOON);
    let mut again: Desk = serde_json::from_str(&serde_json::to_string(&desk).unwrap()).unwrap();
    assert_eq!(again.decide(&n, &policy, NOON + 1), Decision::Fold);
}

proptest! {
    /// A sender asks again when it is told to. Then each notice is sent or counted, no hour has more than its share, and no cause
    /// comes twice within its time.
    #[test]
    fn nothing_is_lost_and_nothing_floods(
        deaths in vec((0_usize..6, 0_i64..20 * 60_000), 1..120),
        per_hour in 1_usize..6,
        repeat in 1_i64..6,
    ) {
        let policy = Policy { repeat_after_ms: repeat * HOUR, per_hour, quiet: vec!["22:00-06:00".parse().unwrap()], ..Policy::default() };
        let mut desk = Desk::default();
        let (mut sent, mut folded, mut counted) = (Vec::new(), 0_u64, 0_u64);
        let mut queue: Vec<(i64, usize)> = Vec::new();
        let mut now = NOON;
        for (cause, later) in &deaths {
            now += later;
            queue.push((now, *cause));
        }
        let all = queue.len() as u64;
        let mut rounds = 0;
        while !queue.is_empty() {
            rounds += 1;
            prop_assert!(rounds < 20_000, "it waits for ever");
            queue.sort();
            let (at, cause) = queue.remove(0);
            let notice = notice(&format!("c{cause}"), "host");
            match desk.decide(&notice, &policy, at) {
                Decision::Send { folded: n } => { counted += n; sent.push((at, cause)); }
                Decision::Fold => folded += 1,
                Decision::Wait { until } => { prop_assert!(until > at); queue.push((until, cause)); }
            }
        }
        prop_assert_eq!(sent.len() as u64 + folded, all);
        prop_assert!(counted <= folded);
        let mut last: BTreeMap<usize, i64> = BTreeMap::new();
        for (i, (at, cause)) in sent.iter().enumerate() {
            prop_assert!(sent[i..].iter().take_while(|(t, _)| t - at < HOUR).count() <= per_hour);
            if let Some(before) = last.insert(*cause, *at) {
                prop_assert!(at - before >= repeat * HOUR);
            }
            let hour = (at.rem_euclid(24 * HOUR)) / HOUR;
            prop_assert!((6..22).contains(&hour), "{at} is quiet");
        }
    }
}
