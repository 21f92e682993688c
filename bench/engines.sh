#!/usr/bin/env bash
# Processor time of asking engines for their metrics, each with a page of 200 KiB.
# Usage: bench/engines.sh [ENGINES=8] [TIMES=200]
set -euo pipefail
cd "$(dirname "$0")/.."
cargo build --release --locked --quiet -p dualplane-agent --example engines
target/release/examples/engines "${1:-8}" "${2:-200}"
