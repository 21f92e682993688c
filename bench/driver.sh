#!/usr/bin/env bash
# What the driver of `measure` costs: a server that computes nothing is asked at a rate, and what the driver says of its delays is
# held against what they were by the server's own clock, from a request that was read to tokens that were written; beside it the
# driver's own memory and processor time.
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
kept() { curl -sf "$url/kept" >"$work/$1"; }
"${command[@]}" >"$work/report.json" 2>"$work/notes" &
driver=$!
# What counts begins behind the warm-up.
(sleep 3 && kept from) &
most=0 ticks=0
while [ -r /proc/$driver/status ]; do
  now=$(awk '/^VmHWM/ {print $2}' /proc/$driver/status 2>/dev/null || true)
  [ -n "$now" ] && most=$now
  now=$(awk '{print $14 + $15}' /proc/$driver/stat 2>/dev/null || true)
  [ -n "$now" ] && ticks=$now
  sleep 0.2
done
wait $driver
kept until
python3 - "$work" "$rate" "$most" "$ticks" <<'P'
import json, sys
work = sys.argv[1]
run = json.load(open(f"{work}/report.json"))["runs"][0]
a, b = (json.load(open(f"{work}/{name}")) for name in ("from", "until"))
rate, most, ticks = map(float, sys.argv[2:])
mean = lambda n, sum_: (b[sum_] - a[sum_]) / (b[n] - a[n]) / 1e6
first, each = mean("answers", "first_ns"), mean("of_several", "each_ns")
r = run["requests"]
got = r["succeeded"] / run["measured_seconds"]
row = lambda name, want, is_: print(f"{name:<28}{want:>12.3f}{is_:>12.3f}{(is_ / want - 1) * 100:>+9.2f} %")
print(f"{'':<28}{'is':>12}{'measured':>12}{'error':>11}")
row("requests a second", rate, got)
row("first token, ms, mean", first, run["ttft"]["mean"] * 1000)
row("between tokens, ms, mean", each, run["itl"]["mean"] * 1000)
print(f"failed {sum(f['count'] for f in r['failed'])}, memory of the driver {most / 1024:.1f} MiB, {ticks / 100:.1f} s of processor")
P
cat "$work/notes"
