#!/usr/bin/env bash
# Cost of the ring on the disk: an append, bytes a second, a window, a start. On a real file system, not in memory.
# Usage: bench/ring.sh [CONTAINERS=110] [GPUS=8] [SECONDS=1800] [MOVING=11] [FOLDER=target]
set -euo pipefail
cd "$(dirname "$0")/.."
containers=${1:-110} gpus=${2:-8} seconds=${3:-1800} moving=${4:-11}
cargo build --release --locked --quiet -p dualplane-agent --example ring
folder=$(mktemp -d -p "${5:-target}")
trap 'rm -rf "$folder"' EXIT
echo "$containers containers of which $moving move, $gpus GPUs, one round a second for $seconds s; $(df --output=fstype "$folder" | tail -1)"
target/release/examples/ring "$folder" "$containers" "$gpus" "$seconds" "$moving"
