#!/usr/bin/env bash
# The whole agent beside Debian's node exporter, on the same machine at the same time: processor and memory. The exporter
# is asked once a second, which is what it takes to see with it what the agent keeps; it knows the machine only, neither
# containers nor GPUs nor deaths. /metrics of the agent is asked every 15 s, as Prometheus does.
# Usage: bench/agent.sh [CONTAINERS=110] [GPUS=8] [SECONDS=60]. NODE_EXPORTER names its program; else Debian's package is
# fetched and unpacked.
set -euo pipefail
cd "$(dirname "$0")/.."
containers=${1:-110} gpus=${2:-8} seconds=${3:-60}
cargo build --release --locked --quiet
# shellcheck source=bench/groups.sh
. bench/groups.sh
agent='' exporter='' askers=()
work=$(mktemp -d)
clean() {
  for p in $agent $exporter "${askers[@]}"; do kill "$p" 2>/dev/null || true; done
  clean_groups
  rm -rf "$work"
}
trap clean EXIT
make_groups "$containers"

node_exporter=${NODE_EXPORTER:-$(command -v prometheus-node-exporter || true)}
if [ -z "$node_exporter" ]; then
  (cd "$work" && apt-get download -q prometheus-node-exporter >/dev/null 2>&1 && dpkg -x ./*.deb .) || true
  node_exporter=$work/usr/bin/prometheus-node-exporter
fi

# Cards of which each second another reading comes.
python3 - "$gpus" >"$work/gpus.json" <<'PY'
import json, sys
n, gib = int(sys.argv[1]), 1 << 30
devices = [{"uuid": f"GPU-{i:08x}-0000-0000-0000-000000000000", "index": i, "name": "NVIDIA H100 80GB HBM3", "pci": f"0000:{i:02x}:00"} for i in range(n)]
reading = lambda i, s: {"device": i, "total": 80 * gib, "used": 40 * gib + s * (1 << 26), "free": 40 * gib - s * (1 << 26), "reserved": gib // 2, "busy": 50 + s, "memory_busy": 30 + s, "power_mw": 400000 + 1000 * s, "celsius": 60 + s, "throttle": 0}
steps = [{"at_ms": 1000 * s, "readings": [reading(i, s) for i in range(n)], "processes": [{"device": i, "pid": 900000 + i, "used": 39 * gib} for i in range(n)], "health": [{"device": i, "ecc_corrected": 0, "ecc_uncorrected": 0, "pcie_replays": 0} for i in range(n)]} for s in range(10)]
print(json.dumps({"devices": devices, "steps": steps, "repeat_ms": 10000}))
PY
mkdir -p "$work/log/pods" "$work/log/containers"
"$PWD/target/release/dualplane" agent --no-cluster --node bench --state "$work/state" --cgroups "$base" \
  --var-log "$work/log" --gpu-table "$work/gpus.json" --listen 127.0.0.1:10989 2>"$work/agent.err" &
agent=$!
if [ -x "$node_exporter" ]; then
  "$node_exporter" --web.listen-address 127.0.0.1:10988 2>/dev/null &
  exporter=$!
  (while :; do curl -s 127.0.0.1:10988/metrics >/dev/null || true; sleep 1; done) &
  askers+=($!)
else
  echo "no node exporter here: the agent alone"
fi
(while :; do sleep 15; curl -s 127.0.0.1:10989/metrics >/dev/null || true; done) &
askers+=($!)
# The first walk, tables and the account of fast rounds are no steady state.
sleep 10

ticks() { awk '{ sub(/.*\) /, ""); print $12 + $13 }' "/proc/$1/stat"; }
rss() { awk '/^VmRSS/ { r = $2 } /^VmHWM/ { h = $2 } END { printf "%.1f MiB (at most %.1f)", r / 1024, h / 1024 }' "/proc/$1/status"; }
a0=$(ticks "$agent") e0=0
[ -z "$exporter" ] || e0=$(ticks "$exporter")
sleep "$seconds"
a1=$(ticks "$agent") e1=0
[ -z "$exporter" ] || e1=$(ticks "$exporter")
hz=$(getconf CLK_TCK)
echo "agent: $(awk -v d=$((a1 - a0)) -v hz="$hz" -v s="$seconds" 'BEGIN { printf "%.2f %% of a core", 100 * d / hz / s }'), $(rss "$agent")"
if [ -n "$exporter" ]; then
  echo "node exporter: $(awk -v d=$((e1 - e0)) -v hz="$hz" -v s="$seconds" 'BEGIN { printf "%.2f %% of a core", 100 * d / hz / s }'), $(rss "$exporter")"
  awk -v a=$((a1 - a0)) -v e=$((e1 - e0)) 'BEGIN { printf "agent / node exporter: %.2fx processor\n", a / (e > 0 ? e : 1) }'
fi
curl -s 127.0.0.1:10989/metrics | grep -E '^dualplane_agent_(round_duration_seconds|plane_skew_seconds|containers|ring_bytes|round_seconds_total|rounds_total|gpu_late_total)' | sed 's/{[^}]*}//'
cat "$work/agent.err"
