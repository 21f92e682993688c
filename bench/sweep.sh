#!/bin/sh
# How long 100,000 plans take: well below a second each model. Usage: bench/sweep.sh [CONFIG.json ...]
set -eu
cd "$(dirname "$0")/.."
cargo build --release --locked -q
[ $# -gt 0 ] || set -- testdata/plan/configs/Qwen--Qwen3-0.6B_config.json testdata/plan/configs/openai--gpt-oss-20b_config.json \
    testdata/plan/configs/deepseek-ai--DeepSeek-V3_config.json testdata/plan/configs/Qwen--Qwen3.5-35B-A3B_config.json
for config; do
    echo "$config"
    time ./target/release/dualplane dev sweep "$config" --points 100000
done
