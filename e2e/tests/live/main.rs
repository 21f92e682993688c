//! The live commands against a real Kubernetes: `e2e/run test` sets the environment and runs them.

mod agent;
mod alerts;
mod apply;
mod commands;
mod crash_loop;
mod daemonset;
mod deaths;
mod faults;
mod fleet;
mod harness;
mod in_cluster;
mod lint_policies;
mod map;
mod model_server;
mod patches;
mod permissions;
mod pressure;
mod ranks;
mod real_vllm;
mod rotated;
mod secrets;
mod series;
mod service_unit;
mod settings_file;
mod static_pod;
#[path = "../../../crates/dualplane-report/tests/common/templates.rs"]
mod templates;
mod tune;
mod verdicts;
mod vllm_deaths;
mod watched;
