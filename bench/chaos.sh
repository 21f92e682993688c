#!/usr/bin/env bash
# 1,000 crash loops of 0.3 s, three deaths each, against the release build: kills by the kernel, from outside and by exit,
# with rotated logs, the agent killed with -9 every 7 s and its disk full for a second every 11 s.
# Usage: bench/chaos.sh [LOOPS=1000]. Needs root and a memory cgroup.
set -euo pipefail
cd "$(dirname "$0")/.."
cargo build --release --locked --quiet
DUALPLANE=$PWD/target/release/dualplane DUALPLANE_CHAOS=${1:-1000} DUALPLANE_REAL_OOM=1 \
  cargo test --locked --quiet -p dualplane --test chaos -- --nocapture
