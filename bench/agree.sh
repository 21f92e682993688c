#!/usr/bin/env bash
# Whether `measure` and aiperf say the same of one server: in turns, the same load (closed loop, equal prompts and answers).
# The server is one that is up already (URL), else the one with known delays. aiperf comes from PyPI into a folder of its own.
# Usage: bench/agree.sh [URL] [TURNS=3] [CONCURRENCY=4] [REQUESTS=60]. DUALPLANE, TRIVIAL and AIPERF name programs; MODEL and
# TOKENIZER (a folder) what the server has.
set -euo pipefail
cd "$(dirname "$0")/.."
url=${1:-} turns=${2:-3} concurrency=${3:-4} requests=${4:-60}
work=$(mktemp -d)
server=''
trap 'kill $server 2>/dev/null || true; rm -rf "$work"' EXIT
[ -n "${DUALPLANE:-}" ] || { cargo build --release --locked --quiet -p dualplane; DUALPLANE=target/release/dualplane; }
if [ -z "$url" ]; then
  [ -n "${TRIVIAL:-}" ] || { cargo build --release --locked --quiet -p dualplane-measure --example trivial; TRIVIAL=target/release/examples/trivial; }
  url=http://127.0.0.1:18475
  "$TRIVIAL" 18475 120 20 &
  server=$!
  sleep 1
fi
if [ -z "${AIPERF:-}" ]; then
  python3 -m venv "$work/venv" && "$work/venv/bin/pip" -q install aiperf
  AIPERF=$work/venv/bin/aiperf
fi
model=${MODEL:-$(python3 -c 'import json,sys,urllib.request as u; print(json.load(u.urlopen(sys.argv[1] + "/v1/models"))["data"][0]["id"])' "$url")}
printf 'schema = "dualplane.shape/v1"\nname = "equal"\nconcurrency = %s\nrequests = [{ input = 128, output = 32 }]\n' "$concurrency" >"$work/shape.toml"
for turn in $(seq "$turns"); do
  "$DUALPLANE" measure --target "$url" --shape "$work/shape.toml" --concurrency "$concurrency" --requests "$requests" --duration 10m \
    --warmup 0s -o json >"$work/ours-$turn.json" 2>/dev/null
  "$AIPERF" profile --model "$model" --url "$url" --endpoint-type chat --streaming --concurrency "$concurrency" \
    --request-count "$requests" --synthetic-input-tokens-mean 128 --synthetic-input-tokens-stddev 0 --output-tokens-mean 32 \
    --output-tokens-stddev 0 --extra-inputs ignore_eos:true --extra-inputs min_tokens:32 --use-server-token-count --tokenizer "${TOKENIZER:-gpt2}" \
    --artifact-dir "$work/aiperf-$turn" --ui none >"$work/aiperf-$turn.log" 2>&1 || { tail -20 "$work/aiperf-$turn.log" >&2; exit 1; }
done
python3 - "$work" "$turns" <<'P'
import glob, json, statistics, sys
work, turns = sys.argv[1], int(sys.argv[2])
ours, theirs = {"ttft": [], "itl": []}, {"ttft": [], "itl": []}
for t in range(1, turns + 1):
    run = json.load(open(f"{work}/ours-{t}.json"))["runs"][0]
    ours["ttft"].append(run["ttft"]["mean"] * 1000); ours["itl"].append(run["itl"]["mean"] * 1000)
    a = json.load(open(glob.glob(f"{work}/aiperf-{t}/**/profile_export_aiperf.json", recursive=True)[0]))
    theirs["ttft"].append(a["time_to_first_token"]["avg"]); theirs["itl"].append(a["inter_token_latency"]["avg"])
for name in ours:
    o, a = statistics.median(ours[name]), statistics.median(theirs[name])
    print(f"{name:<6} ours {o:9.3f} ms   aiperf {a:9.3f} ms   {(o / a - 1) * 100:+.2f} %   turns {[round(x, 2) for x in ours[name]]} {[round(x, 2) for x in theirs[name]]}")
P
