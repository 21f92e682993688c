#!/bin/sh
# rehearse.sh [REQUESTS] [BINARY]: seconds of processor for a rehearsal of a trace of so many requests, alone and with the search.
# Bound: a million requests in 10 s.
set -eu
requests=${1:-1000000}
binary=${2:-${CARGO_TARGET_DIR:-target}/release/dualplane}
[ -n "${2:-}" ] || cargo build --release --quiet -p dualplane
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 - "$requests" >"$work/trace.jsonl" <<'PY'
import random, sys
r, at = random.Random(1), 0.0
for i in range(int(sys.argv[1])):
    at += r.expovariate(30)
    inp, out = int(20 * 100 ** r.random()), int(10 * 50 ** r.random())
    prefix = f', "prefix": {{"group": {r.randrange(50)}, "tokens": 200}}' if r.random() < 0.5 else ""
    print(f'{{"at": {at:.4f}, "input": {inp}, "output": {out}{prefix}}}')
PY
measure() {
    command time -f '%U s of processor, %e s, %M KiB' "$binary" rehearse --gpu H100-80GB --trace "$work/trace.jsonl" \
        --step-time base=0.02,token=0.00002 "$@" -- vllm serve Qwen/Qwen3-8B --max-model-len 8192 >"$work/out"
    sed -n 2,6p "$work/out"
}
echo "four rehearsals (as expected, faster, slower, smaller pool):"
measure --no-search
echo "and the search:"
measure
