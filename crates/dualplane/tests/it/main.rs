//! Integration tests: the real binary, as a user runs it.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice
)]
#![allow(clippy::print_stderr, missing_docs)]

mod advice;
mod agent;
mod apply;
mod archive;
mod capture_url;
mod dashboards;
mod deploy;
mod dist;
mod docs;
mod engines;
mod fake_api;
#[cfg(feature = "live")]
mod fleet;
mod gate;
mod golden;
mod guard;
mod harness;
mod hostile;
mod incidents;
mod inside;
mod know;
mod large;
mod layers;
mod lint;
mod lint_hook;
mod live;
mod map;
#[cfg(feature = "live")]
mod measure;
mod offline;
mod pages;
mod plan;
mod plan_cli;
mod plan_gguf;
mod plan_named;
mod plan_pods;
mod plan_releases;
mod plan_shape;
mod plugin;
mod preflight;
#[cfg(target_os = "linux")]
mod privileges;
mod profile;
mod proofs;
mod real_oom;
mod recorded;
mod recorded_load;
mod rehearse;
mod releases;
mod resources;
mod rules_alerts;
mod schema;
mod secret;
#[cfg(unix)]
mod server;
mod tidy;
mod top;
mod triage;
mod tune_workload;
mod words;
