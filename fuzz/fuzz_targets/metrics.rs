//! Prometheus text.
#![no_main]

use dualplane_core::evidence::metrics;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let text = String::from_utf8_lossy(data);
    let (samples, dropped) = metrics::parse(&text, "f");
    assert!(samples.len() + dropped <= text.lines().count());
    for s in &samples {
        assert_eq!(text.lines().nth(s.line as usize - 1), Some(s.text.as_str()));
    }
});
