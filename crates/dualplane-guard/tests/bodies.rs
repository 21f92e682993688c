//! Bodies that are broken at random: no panic, and nothing is counted that did not come.
//!
//! `GUARD_INPUTS=10000000 cargo test --release -p dualplane-guard --test bodies` tries as many; `fuzz/` searches with coverage.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use dualplane_admission::tokens::Calibration;
use dualplane_guard::ask::{Api, read};

const SEEDS: &[&str] = &[
    r#"{"model":"m","messages":[{"role":"system","content":"abc"},{"role":"user","content":[{"type":"text","text":"d"},{"type":"image_url","image_url":{"url":"data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJ"}}]}],"max_tokens":16,"n":2,"stream":true,"tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object"}}}]}"#,
    r#"{"prompt":["a","b",[1,2,3]],"max_tokens":null,"max_completion_tokens":1e3,"best_of":"4","suffix":"x"}"#,
    r#"{"inputs":"abc","parameters":{"max_new_tokens":9,"best_of":2,"num_beams":-1}}"#,
    r#"{"inputs":[{"name":"x","shape":[1,2],"datatype":"INT32","data":[[1,2],[3.5,-4]]}],"outputs":[]}"#,
    r#"{"model":"m","input":[{"type":"message","content":[{"type":"input_image","image_url":"https://x/y.png"},{"type":"input_audio","input_audio":{"data":"UklGRg==","format":"wav"}}]}],"max_output_tokens":18446744073709551615}"#,
    r#"{"prompt":"cat","size":"1024x99999999999","width":1.5,"height":null,"num_inference_steps":30}"#,
];
const PARTS: &[&str] = &[
    "[",
    "]",
    "{",
    "}",
    "\"",
    ",",
    ":",
    "null",
    "true",
    "-1",
    "1e999",
    "18446744073709551616",
    "0.1e-999",
    "\\ud800",
    "\\u0000",
    "\"max_tokens\":",
    "\"messages\":",
    "\"prompt\":",
    "\"image_url\":",
    "data:image/jpeg;base64,/9j/4AAQSkZJRgABAQAAAQABAAD/wAARCP//",
    "\u{feff}",
    "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[",
    "{\"a\":{\"a\":{\"a\":{\"a\":",
];

#[test]
fn broken_bodies_neither_panic_nor_count_what_did_not_come() {
    let inputs: u64 = std::env::var("GUARD_INPUTS").map_or(30_000, |n| n.parse().unwrap());
    let mut state = 21_u64;
    let mut below = |n: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % n.max(1)
    };
    let apis = [
        Api::Chat,
        Api::Completions,
        Api::Responses,
        Api::Messages,
        Api::Generate,
        Api::Infer,
        Api::Images,
        Api::Rerank,
    ];
    let mut taken = 0_u64;
    for _ in 0..inputs {
        let mut bytes = SEEDS[below(SEEDS.len())].as_bytes().to_vec();
        for _ in 0..below(4) {
            let at = below(bytes.len());
            match below(4) {
                0 => drop(bytes.splice(at..at, PARTS[below(PARTS.len())].bytes())),
                1 => bytes[at] = u8::try_from(below(256)).unwrap(),
                2 => drop(bytes.drain(at..(at + below(12)).min(bytes.len()))),
                _ => {
                    let part = bytes[at..(at + below(40)).min(bytes.len())].to_vec();
                    let to = below(bytes.len());
                    drop(bytes.splice(to..to, part));
                }
            }
            if bytes.is_empty() {
                bytes.push(b'{');
            }
        }
        let api = apis[below(apis.len())];
        let Ok(ask) = read(api, &bytes) else { continue };
        taken += 1;
        assert!(
            ask.text_bytes + ask.numbers + ask.media_bytes <= bytes.len() as u64,
            "{}",
            String::from_utf8_lossy(&bytes)
        );
        let shape = ask.shape(api, bytes.len() as u64, &Calibration::default(), None);
        assert!(shape.prompt.low <= shape.prompt.high && shape.sequences >= 1);
        let _ = ask.bucket(bytes.len() as u64);
    }
    assert!(taken > inputs / 10, "{taken} of {inputs} were read: the test tries little");
}
