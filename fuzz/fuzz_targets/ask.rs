//! The body of a request, as the guard reads it.
#![no_main]

use dualplane_admission::tokens::Calibration;
use dualplane_guard::ask::{Api, read};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    for api in [Api::Chat, Api::Completions, Api::Responses, Api::Messages, Api::Generate, Api::Infer, Api::Images] {
        let Ok(ask) = read(api, data) else { continue };
        // What is decoded is never longer than what came, and each number took a byte.
        assert!(ask.text_bytes + ask.numbers <= data.len() as u64);
        let shape = ask.shape(api, data.len() as u64, &Calibration::default(), None);
        assert!(shape.prompt.low <= shape.prompt.high && shape.sequences >= 1);
        assert!(serde_json::from_slice::<serde_json::Value>(data).is_ok_and(|v| v.is_object()), "read what is no JSON");
    }
});
