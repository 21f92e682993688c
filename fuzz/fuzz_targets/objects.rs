//! Kubernetes objects as JSON, JSON lines and YAML.
#![no_main]

use dualplane_core::evidence::{Bundle, RawFile};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let name = if data.first().is_some_and(|b| matches!(b, b'{' | b'[')) { "pod.json" } else { "pod.yaml" };
    let _ = Bundle::from_files(vec![RawFile::new(name, data.to_vec())]);
});
