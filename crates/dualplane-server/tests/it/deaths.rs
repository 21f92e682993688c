//! Made-up deaths with few different values, so that they meet.

use dualplane_incidents::{Gpu, Incident, Time, Where, Xid, of_report};
use dualplane_server::store::Death;
use proptest::prelude::*;
use serde_json::{Value, json};

/// When everything is received.
pub(crate) fn now() -> Time {
    Time::parse("2026-11-25T03:00:00Z").unwrap()
}

/// A report of a class.
pub(crate) fn report(class: &str, summary: &str) -> Value {
    json!({
        "schema": "dualplane.verdict/v2",
        "incident": "x",
        "verdict": {"class": class, "phase": "traffic", "confidence": "high", "title": "t", "summary": summary},
        "trigger": null, "causes": [], "actions": [], "subject": {"engine": "vllm"},
    })
}

/// A death as a store takes it.
pub(crate) fn death(id: &str, report: &Value, place: &Where) -> Death {
    let incident = of_report(id, report, place, now()).unwrap();
    Death {
        incident,
        report: report.to_string().into_bytes(),
        digest: format!("{report}{place:?}"),
        sender: "me".to_owned(),
    }
}

/// Any of them.
pub(crate) fn some() -> impl Strategy<Value = Death> {
    let name = || prop::sample::select(vec!["a", "b", "ü%_'\"", "c"]);
    let class = prop::sample::select(vec!["xid_hardware", "host_oom_killed", "cuda_oom_runtime"]);
    let summary = prop::sample::select(vec!["VRAM ran out", "the kernel killed it", "100 % _x_ \\ ÄÖ"]);
    let cards = prop::collection::btree_map(0u8..4, (any::<bool>(), proptest::option::of(0u64..9)), 0..3);
    let xids = prop::collection::btree_set((prop::sample::select(vec![31u32, 79, 94]), any::<bool>()), 0..3);
    (0u32..60, (name(), name(), name()), class, summary, 0i64..96, cards, xids).prop_map(
        |(id, (ns, owner, node), class, summary, hour, cards, xids)| {
            let gpu = |(n, (named, ecc)): (u8, (bool, Option<u64>))| Gpu {
                uuid: format!("GPU-{n}"),
                name: named.then(|| "H100".to_owned()),
                driver: Some(format!("570.{hour}")),
                ecc_uncorrected: ecc,
            };
            let place = Where {
                cluster: Some("k".into()),
                namespace: Some(ns.into()),
                owner: Some(owner.into()),
                node: Some(node.into()),
                gpus: cards.into_iter().map(gpu).collect(),
                xids: xids
                    .into_iter()
                    .map(|(code, on)| Xid { code, gpu: on.then(|| "GPU-1".into()) })
                    .collect(),
                died_at: Some(Time::from_ms(now().ms() - hour * 1_800_000)),
                ..Where::default()
            };
            death(&format!("i{id}"), &report(class, summary), &place)
        },
    )
}

/// What a store that was given these holds: of one name, the first.
pub(crate) fn kept(all: &[Death]) -> Vec<Incident> {
    let mut seen = std::collections::BTreeSet::new();
    all.iter().filter(|d| seen.insert(d.incident.id.clone())).map(|d| d.incident.clone()).collect()
}
