#!/usr/bin/env bash
# What the driver of `measure` costs: a server that computes nothing and whose delays are known is asked at a rate, and what the
# driver says of them is held against what they are; beside it the driver's own memory and processor time.
# Usage: bench/driver.sh [RATE=5000] [SECONDS=20] [FIRST_MS=200] [EACH_MS=50]. DRIVER and TRIVIAL name examples of dualplane-measure
# that are built; DUALPLANE the whole program, which then drives instead.
set -euo pipefail
cd "$(dirname "$0")/.."
rate=${1:-5000} seconds=${2:-20} first=${3:-200} each=${4:-50} port=18473
if [ -z "${TRIVIAL:-}" ] || [ -z "${DRIVER:-}${DUALPLANE:-}" ]; then
  cargo build --release --locked --quiet -p dualplane-measure --examples
  TRIVIAL=target/release/examples/trivial DRIVER=target/release/examples/driver
fi
ulimit -n "$(ulimit -Hn)"
work=$(mktemp -d)
server=''
trap 'kill $server 2>/dev/null || true; rm -rf "$work"' EXIT
"$TRIVIAL" $port "$first" "$each" &
server=$!
url=http://127.0.0.1:$port
printf 'schema = "dualplane.shape/v1"\nname = "five tokens"\narrival_per_second = %s\nrequests = [{ input = 32, output = 5 }]\n' "$rate" >"$work/shape.toml"
sleep 1
if [ -n "${DUALPLANE:-}" ]; then
  command=("$DUALPLANE" measure --target "$url" --shape "$work/shape.toml" --duration "$seconds" --warmup 3s --plain -o json)
else
  command=("$DRIVER" "$url" "$rate" "$seconds")
fi
"${command[@]}" >"$work/report.json" 2>"$work/notes" &
driver=$!
most=0 ticks=0
while [ -r /proc/$driver/status ]; do
  now=$(awk '/^VmHWM/ {print $2}' /proc/$driver/status 2>/dev/null || true)
  [ -n "$now" ] && most=$now
  now=$(awk '{print $14 + $15}' /proc/$driver/stat 2>/dev/null || true)
  [ -n "$now" ] && ticks=$now
  sleep 0.2
done
wait $driver
python3 - "$work/report.json" "$rate" "$first" "$each" "$most" "$ticks" <<'P'
import json, sys
run = json.load(open(sys.argv[1]))["runs"][0]
rate, first, each, most, ticks = map(float, sys.argv[2:])
r = run["requests"]
got = r["succeeded"] / run["measured_seconds"]
row = lambda name, want, is_: print(f"{name:<28}{want:>12.3f}{is_:>12.3f}{(is_ / want - 1) * 100:>+9.2f} %")
print(f"{'':<28}{'is':>12}{'measured':>12}{'error':>11}")
row("requests a second", rate, got)
row("first token, ms, mean", first, run["ttft"]["mean"] * 1000)
row("first token, ms, p50", first, run["ttft"]["p50"] * 1000)
row("between tokens, ms, mean", each, run["itl"]["mean"] * 1000)
print(f"failed {sum(f['count'] for f in r['failed'])}, memory of the driver {most / 1024:.1f} MiB, {ticks / 100:.1f} s of processor")
P
cat "$work/notes"
