//! Incidents for the tests of this folder: recorded ones, and one with both planes over time.
#![allow(dead_code)]

pub(crate) mod payloads;
#[path = "../../../dualplane-report/tests/common/mod.rs"]
mod testdata;

use dualplane_core::evidence::RawFile;
use dualplane_core::knowledge::Knowledge;
use dualplane_incidents::{Gpu, Incident, Time, Where, Xid, of_report};
use dualplane_pages::incident::{Death, page};
use dualplane_pages::{Frame, Scene, Verdict};
use dualplane_report::{Report, json, mask, triage_all};
use serde_json::Value;

/// A recorded incident.
pub(crate) fn recorded(name: &str) -> Vec<RawFile> {
    testdata::files(&testdata::root().join("testdata/incidents").join(name))
}

/// 2026-11-20T10:05:00Z.
pub(crate) const END: i64 = 1_795_169_100_000;

/// A server whose shared memory grows with its traffic until the kernel kills it: series of both planes, its log, its object.
pub(crate) fn both_planes() -> Vec<RawFile> {
    recorded("vllm-both-planes-to-the-kill")
}

/// All that a page needs of one incident.
pub(crate) struct Kept {
    pub(crate) incident: Incident,
    pub(crate) report: Value,
    pub(crate) verdict: Verdict,
    pub(crate) scene: Scene,
}

pub(crate) fn kept(id: &str, files: Vec<RawFile>, place: &Where, knowledge: &Knowledge) -> Kept {
    let mut report: Report = triage_all(id, files, Vec::new(), knowledge).into_iter().next().unwrap();
    mask(&mut report, knowledge);
    let scene = Scene::of(&report, knowledge);
    let report: Value = serde_json::from_str(&json::render(std::slice::from_ref(&report)).unwrap()).unwrap();
    let incident = of_report(id, &report, place, Time::from_ms(END + 90_000)).unwrap();
    let verdict = Verdict::read(&report).unwrap();
    Kept { incident, report, verdict, scene }
}

pub(crate) fn place() -> Where {
    let card = |uuid: &str| Gpu {
        uuid: uuid.to_owned(),
        name: Some("NVIDIA H100 80GB HBM3".to_owned()),
        driver: Some("570.133.20".to_owned()),
        ecc_uncorrected: Some(0),
    };
    Where {
        cluster: Some("eu-west-1".to_owned()),
        image: Some("vllm/vllm-openai:v0.9.1".to_owned()),
        model: Some("Qwen/Qwen3-32B".to_owned()),
        gpus: vec![
            card("GPU-5f1c9a52-6d0e-4a7b-9c1e-2f60c1b7a101"),
            card("GPU-a90b77d4-31c2-4be8-8a55-90c3d7e2b202"),
        ],
        vram_total_bytes: Some(81_559 << 20),
        vram_held_bytes: Some(75_400 << 20),
        ..Where::default()
    }
}

pub(crate) fn xid(code: u32, gpu: &str) -> Xid {
    Xid { code, gpu: Some(gpu.to_owned()) }
}

pub(crate) fn frame() -> Frame<'static> {
    Frame {
        base: "",
        viewer: Some("anna@example.com"),
        now_ms: END + 600_000,
        events: Some("/v1/events"),
        sign_out: Some("/logout"),
    }
}

pub(crate) fn page_of(k: &Kept, again: &[Incident], print: bool) -> String {
    let death = Death {
        incident: &k.incident,
        verdict: Ok(&k.verdict),
        scene: Some(&k.scene),
        again,
        bundle: Some("/v1/incidents/x/bundle"),
        rehearsed: true,
        away: None,
    };
    page(&frame(), &death, print)
}
