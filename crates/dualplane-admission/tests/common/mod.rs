//! Servers and requests for the tests; not each of them needs all.
#![allow(dead_code)]

use dualplane_admission::Request;
use dualplane_admission::cost::{Range, Shape};
use dualplane_admission::server::{Limits, Server};
use dualplane_admission::unpaged::Bucket;

pub(crate) fn server(kv: u64) -> Server {
    Server::new(Limits { kv: Some(kv), ceiling: 1.0, ..Limits::default() }, 0.1, 10_000)
}

pub(crate) fn request(tenant: &str, prompt: u64, most: Option<u64>) -> Request {
    Request {
        tenant: tenant.into(),
        path: "chat",
        shape: Shape {
            prompt: Range::exact(prompt),
            max_output: most,
            generates: true,
            sequences: 1,
            body_bytes: prompt * 4,
            ..Shape::default()
        },
        bucket: Bucket::of(prompt, 0, 1, 0, prompt * 4),
        pool: 0,
        priority: 0,
        max_wait: None,
        bytes: prompt * 4,
    }
}
