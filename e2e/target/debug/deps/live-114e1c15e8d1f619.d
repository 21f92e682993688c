/work/main/e2e/target/debug/deps/live-114e1c15e8d1f619.d: /work/main/clippy.toml tests/live/main.rs tests/live/agent.rs tests/live/apply.rs tests/live/daemonset.rs tests/live/faults.rs tests/live/fleet.rs tests/live/harness.rs tests/live/in_cluster.rs tests/live/map.rs tests/live/patches.rs tests/live/permissions.rs tests/live/pressure.rs tests/live/real_vllm.rs tests/live/rotated.rs tests/live/secrets.rs tests/live/series.rs tests/live/static_pod.rs tests/live/verdicts.rs Cargo.toml

/work/main/e2e/target/debug/deps/liblive-114e1c15e8d1f619.rmeta: /work/main/clippy.toml tests/live/main.rs tests/live/agent.rs tests/live/apply.rs tests/live/daemonset.rs tests/live/faults.rs tests/live/fleet.rs tests/live/harness.rs tests/live/in_cluster.rs tests/live/map.rs tests/live/patches.rs tests/live/permissions.rs tests/live/pressure.rs tests/live/real_vllm.rs tests/live/rotated.rs tests/live/secrets.rs tests/live/series.rs tests/live/static_pod.rs tests/live/verdicts.rs Cargo.toml

/work/main/clippy.toml:
tests/live/main.rs:
tests/live/agent.rs:
tests/live/apply.rs:
tests/live/daemonset.rs:
tests/live/faults.rs:
tests/live/fleet.rs:
tests/live/harness.rs:
tests/live/in_cluster.rs:
tests/live/map.rs:
tests/live/patches.rs:
tests/live/permissions.rs:
tests/live/pressure.rs:
tests/live/real_vllm.rs:
tests/live/rotated.rs:
tests/live/secrets.rs:
tests/live/series.rs:
tests/live/static_pod.rs:
tests/live/verdicts.rs:
Cargo.toml:

# env-dep:CARGO_MANIFEST_DIR=/work/main/e2e
# env-dep:CLIPPY_ARGS=-D__CLIPPY_HACKERY__warnings__CLIPPY_HACKERY__
# env-dep:CLIPPY_CONF_DIR
