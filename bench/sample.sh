#!/usr/bin/env bash
# Cost of one sample of the node agent: containers and fake GPUs, in groups of our own (cgroup v1; else a fixture tree in
# /dev/shm). Time, processor, RSS; with valgrind also the allocations of one round.
# Usage: bench/sample.sh [CONTAINERS=110] [GPUS=8] [ROUNDS=2000] [BEAT_SECONDS=20]
set -euo pipefail
cd "$(dirname "$0")/.."
containers=${1:-110} gpus=${2:-8} rounds=${3:-2000} beat=${4:-20}
cargo build --release --locked --quiet -p dualplane-node --example sample
bin=$PWD/target/release/examples/sample
# shellcheck source=bench/groups.sh
. bench/groups.sh
trap clean_groups EXIT
make_groups "$containers"

echo "== rounds one after another"
"$bin" "$base" "$rounds" "$gpus"
echo "== at the agent's own beat, $beat rounds"
"$bin" "$base" "$beat" "$gpus" beat
if command -v valgrind >/dev/null; then
  allocs() {
    valgrind --log-fd=9 "$bin" "$base" "$1" "$gpus" 9>&1 >/dev/null 2>/dev/null |
      sed -n 's/.*total heap usage: \([0-9,]*\) allocs.*/\1/p' | tr -d ,
  }
  few=$(allocs 100) many=$(allocs 300)
  echo "== allocations a round: $(awk -v a="$few" -v b="$many" 'BEGIN { printf "%.2f", (b - a) / 200 }')"
fi
