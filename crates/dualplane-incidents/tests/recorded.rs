//! Every recorded incident as a fleet keeps it: nothing of its report is lost or changed on the way.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    missing_docs
)]

use dualplane_incidents::{
    Clock, Cursor, Dimension, Filter, FilterError, Fleet, Gpu, Incident, ReportError, Time, Where, Xid,
    of_report,
};
use proptest::prelude::*;
use serde_json::{Value, json};

const NOW: &str = "2026-11-25T03:00:00Z";

fn now() -> Time {
    Time::parse(NOW).unwrap()
}

fn report() -> Value {
    json!({
        "schema": "dualplane.verdict/v2",
        "incident": "x",
        "verdict": {"class": "xid_hardware", "phase": "traffic", "confidence": "high", "title": "t", "summary": "s"},
        "trigger": {"text": "NVRM: \u{1b}[31mXid", "file": "kernel.log", "line": 3, "signature": "xid.79"},
        "causes": [
            {"rejected": false, "for": [
                {"proof": "xid.event", "text": "Xid 79 on 0000:4a:00: GPU has fallen off the bus"},
                {"proof": "xid.further", "text": "Xid 154 GPU Recovery Action Changed"},
            ]},
            {"rejected": true, "for": [{"proof": "xid.event", "text": "Xid 31 on 0000:4b:00: x"}]},
        ],
        "actions": [{"stage": "stop_the_bleeding", "title": "drain"}, {"stage": "fix", "title": "replace the card"}],
        "subject": {"namespace": "serving", "pod": "vllm-6c9f7d5b48-x2kqm", "container": "server",
            "died_at": "2026-11-25T02:00:00Z", "memory_limit_bytes": 5},
    })
}

fn made(id: &str, place: &Where) -> Incident {
    of_report(id, &report(), place, now()).unwrap()
}

#[test]
fn a_report_becomes_an_incident() {
    let i = made("a", &Where::default());
    assert_eq!((i.namespace.as_str(), i.owner.as_str(), i.plane.as_str()), ("serving", "vllm", "hardware"));
    assert_eq!(i.loop_key, "/serving/vllm/server");
    assert_eq!(i.cause_key, "/serving/vllm/server/xid_hardware");
    assert_eq!(i.xids, [Xid { code: 79, gpu: Some("0000:4a:00".into()) }, Xid { code: 154, gpu: None }]);
    assert_eq!(i.top_action.as_deref(), Some("replace the card"));
    assert_eq!((i.died_at.to_string().as_str(), i.died_at_from), ("2026-11-25T02:00:00.000Z", Clock::Report));
    assert!(!i.trigger.as_ref().unwrap().text.contains('\u{1b}'));
    let text = serde_json::to_string(&i).unwrap();
    assert_eq!(serde_json::from_str::<Incident>(&text).unwrap(), i);
}

#[test]
fn what_the_sender_knows_stands_before_the_report() {
    let place = Where { namespace: Some("other".into()), owner: Some("mine".into()), ..Where::default() };
    let i = made("a", &place);
    assert_eq!(
        (i.namespace.as_str(), i.owner.as_str(), i.pod.as_str()),
        ("other", "mine", "vllm-6c9f7d5b48-x2kqm")
    );
}

#[test]
fn a_clock_ahead_does_not_put_a_death_on_top_forever() {
    let place = Where { died_at: Time::parse("2031-01-01T00:00:00Z"), ..Where::default() };
    let i = made("a", &place);
    assert_eq!((i.died_at, i.died_at_from), (now(), Clock::Receipt));
}

#[test]
fn what_is_no_report_is_refused_with_what_to_do() {
    let refused = |v: Value| of_report("a", &v, &Where::default(), now()).unwrap_err();
    assert_eq!(refused(json!({})), ReportError::NoReport);
    assert_eq!(refused(json!([1])), ReportError::NoReport);
    assert_eq!(refused(json!({"schema": "dualplane.plan/v1"})), ReportError::NoReport);
    assert_eq!(refused(json!({"schema": "dualplane.verdicts/v2"})), ReportError::Several);
    assert!(matches!(refused(json!({"schema": "dualplane.verdict/v9"})), ReportError::Schema(_)));
    let mut unknown = report();
    unknown["verdict"]["class"] = json!("gpu_on_fire");
    assert!(refused(unknown).to_string().contains("update the server"));
    assert_eq!(of_report("../a", &report(), &Where::default(), now()).unwrap_err(), ReportError::Id);
}

#[test]
fn deaths_that_name_nothing_are_not_taken_for_one_loop() {
    let mut nameless = report();
    nameless["subject"] = json!({});
    let of = |id| of_report(id, &nameless, &Where::default(), now()).unwrap();
    assert_ne!(of("a").loop_key, of("b").loop_key);
}

/// A report that the program itself wrote, of every recorded incident whose golden test keeps one as JSON.
#[test]
fn documents_of_releases_are_read() {
    let dir = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/releases");
    let mut read = 0;
    let mut folders = vec![dir];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let Ok(document) = serde_json::from_slice::<Value>(&std::fs::read(&path).unwrap()) else {
                continue;
            };
            if document["schema"].as_str().is_some_and(|s| s.starts_with("dualplane.verdict/")) {
                let i = of_report("a", &document, &Where::default(), now()).unwrap();
                assert_eq!(Some(i.class.as_str()), document["verdict"]["class"].as_str());
                assert_eq!(Some(i.summary.as_str()), document["verdict"]["summary"].as_str());
                read += 1;
            }
        }
    }
    assert!(read > 0);
}

#[test]
fn a_filter_that_is_misread_is_refused() {
    for (query, word) in [
        ("clas=xid_hardware", "no filter is called"),
        ("class=oom", "no such value"),
        ("since=yesterday", "RFC 3339"),
        ("each=1", "true or false"),
        ("q=%", "%25"),
        ("xid=079", "no such value"),
    ] {
        let e = Filter::parse(query).unwrap_err().to_string();
        assert!(e.contains(word), "{query}: {e}");
    }
    let many: Vec<String> = (0..65).map(|n| format!("node=n{n}")).collect();
    assert_eq!(Filter::parse(&many.join("&")), Err(FilterError::TooMany));
    assert!(Filter::parse("?class=&q=&since=").unwrap().is_empty());
    let (f, rest) = Filter::parse_with("plane=gpu&after=1~a", &["after", "limit"]).unwrap();
    assert!(f.has(Dimension::Plane, "gpu"));
    assert_eq!(rest.get("after").map(String::as_str), Some("1~a"));
}

#[test]
fn a_fleet_counts_each_death_once_and_shows_the_worst_first() {
    let gpu = |n: u32| Gpu { uuid: format!("GPU-{n}"), name: Some("H100".into()), ..Gpu::default() };
    let mut all: Vec<Incident> = (0..3)
        .map(|n| made(&format!("loop-{n}"), &Where { gpus: vec![gpu(0)], ..Where::default() }))
        .collect();
    all.push(made(
        "other",
        &Where { owner: Some("other".into()), gpus: vec![gpu(1), gpu(2)], ..Where::default() },
    ));
    let fleet = Fleet::of(&all);
    assert_eq!((fleet.incidents, fleet.causes), (4, 2));
    assert_eq!(fleet.worst[0].occurrences, 3);
    assert_eq!(fleet.worst[0].latest.id, "loop-2");
    assert_eq!(fleet.by["gpu_name"][0].count, 4);
    assert_eq!(fleet.gpus[0].uuid, "GPU-0");
    assert_eq!((fleet.gpus[0].faults, fleet.gpus[0].xids[&79]), (3, 3));
    // The Xid names a bus address, and the pod had two cards: neither is blamed.
    assert_eq!((fleet.gpus[1].faults, fleet.gpus[1].xids.len()), (0, 0));
    assert_eq!(fleet.days["2026-11-25"]["hardware"], 4);
}

fn some_incident() -> impl Strategy<Value = Incident> {
    let name = prop::sample::select(vec!["a", "b", "c"]);
    let class = prop::sample::select(vec!["xid_hardware", "host_oom_killed", "cuda_oom_runtime"]);
    (0u32..1000, name.clone(), name.clone(), name, class, 0i64..5).prop_map(
        |(id, ns, owner, node, class, hour)| {
            let mut r = report();
            r["verdict"]["class"] = json!(class);
            let place = Where {
                namespace: Some(ns.into()),
                owner: Some(owner.into()),
                node: Some(node.into()),
                died_at: Some(Time::from_ms(now().ms() - hour * 3_600_000)),
                ..Where::default()
            };
            of_report(&format!("i{id}"), &r, &place, now()).unwrap()
        },
    )
}

fn some_filter() -> impl Strategy<Value = Filter> {
    let key = prop::sample::select(Dimension::ALL.to_vec());
    let value = "[a-c]|.{1,8}";
    let times = (proptest::option::of(any::<i64>()), proptest::option::of(any::<i64>()));
    (
        prop::collection::vec((key, value), 0..4),
        times,
        proptest::option::of(".{1,9}"),
        proptest::option::of("[a-z/%]{1,9}"),
        any::<bool>(),
    )
        .prop_map(|(pairs, (since, until), text, loop_key, each)| {
            let mut f = Filter { text, loop_key, each, ..Filter::default() };
            f.since = since.map(Time::from_ms);
            f.until = until.map(Time::from_ms);
            for (d, v) in pairs {
                let free = !matches!(
                    d,
                    Dimension::Class
                        | Dimension::Plane
                        | Dimension::Phase
                        | Dimension::Confidence
                        | Dimension::Xid
                );
                if free {
                    f = f.with(d, &v);
                }
            }
            f
        })
}

proptest! {
    #[test]
    fn every_filter_is_a_link(filter in some_filter()) {
        let query = filter.to_query();
        prop_assert_eq!(Filter::parse(&query), Ok(filter));
    }

    #[test]
    fn any_query_is_read_or_refused(query in ".*") {
        if let Ok(f) = Filter::parse(&query) {
            prop_assert_eq!(Filter::parse(&f.to_query()), Ok(f));
        }
    }

    /// Whatever collapses: a cause of which any death matches stands in the list.
    #[test]
    fn a_list_misses_no_cause(all in prop::collection::vec(some_incident(), 0..30), query in prop::sample::select(vec![
        "", "namespace=a", "node=a", "owner=b&class=xid_hardware", "since=2026-11-25T01:00:00Z",
        "until=2026-11-25T01:00:00Z", "node=a&node=b&plane=host", "q=s", "each=true",
    ])) {
        let filter = Filter::parse(query).unwrap();
        let shown: std::collections::BTreeSet<&str> =
            filter.select(&all).iter().map(|i| i.cause_key.as_str()).collect();
        let wanted: std::collections::BTreeSet<&str> =
            all.iter().filter(|i| filter.matches(i)).map(|i| i.cause_key.as_str()).collect();
        prop_assert_eq!(shown, wanted);
    }

    /// Pages that follow each other show everything once, in order, whatever their size.
    #[test]
    fn cursors_cut_a_list_without_a_seam(all in prop::collection::vec(some_incident(), 0..30), size in 1usize..7) {
        let mut all = all;
        all.sort_by(|a, b| a.id.cmp(&b.id));
        all.dedup_by(|a, b| a.id == b.id);
        let filter = Filter { each: true, ..Filter::default() };
        let whole = filter.select(&all);
        let mut pages: Vec<&Incident> = Vec::new();
        let mut after: Option<Cursor> = None;
        loop {
            let page: Vec<&Incident> = whole.iter().copied()
                .filter(|i| after.as_ref().is_none_or(|c| c.is_before(i))).take(size).collect();
            let Some(last) = page.last() else { break };
            after = Cursor::parse(&Cursor::behind(last).to_string());
            pages.extend(page);
        }
        prop_assert_eq!(pages, whole);
    }

    /// Reports of any content become an incident or an error, never more text than is kept.
    #[test]
    fn a_hostile_report_is_bounded(text in ".{0,3000}", line in any::<u64>()) {
        let mut r = report();
        r["verdict"]["summary"] = json!(text);
        r["trigger"]["text"] = json!(text);
        r["trigger"]["line"] = json!(line);
        r["subject"]["pod"] = json!(text);
        let i = of_report("a", &r, &Where::default(), now()).unwrap();
        prop_assert!(i.summary.chars().count() <= 1000 && i.pod.chars().count() <= 253);
        prop_assert!(!i.summary.chars().any(char::is_control));
    }
}
