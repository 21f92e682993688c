#!/usr/bin/env bash
# The whole agent beside Debian's node exporter, on the same machine at the same time: processor and memory. The exporter
# is asked once a second, which is what it takes to see with it what the agent keeps; it knows the machine only, neither
# containers nor GPUs nor deaths. /metrics of the agent is asked every 15 s, as Prometheus does. Where CADVISOR names the
# program of cAdvisor, it runs too, looking at each container once a second and asked every 15 s: it knows the containers,
# neither GPUs nor what died.
# Usage: bench/agent.sh [CONTAINERS=110] [GPUS=8] [SECONDS=60]. NODE_EXPORTER names its program; else Debian's package is
# fetched and unpacked. DUALPLANE names a binary to measure instead of a release build of this checkout.
set -euo pipefail
cd "$(dirname "$0")/.."
containers=${1:-110} gpus=${2:-8} seconds=${3:-60}
[ -n "${DUALPLANE:-}" ] || cargo build --release --locked --quiet
# shellcheck source=bench/groups.sh
. bench/groups.sh
agent='' exporter='' cadvisor='' askers=()
work=$(mktemp -d)
clean() {
  for p in $agent $exporter $cadvisor "${askers[@]}"; do kill "$p" 2>/dev/null || true; done
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
"${DUALPLANE:-$PWD/target/release/dualplane}" agent --no-cluster --node bench --state "$work/state" --cgroups "$base" \
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
if [ -x "${CADVISOR:-}" ]; then
  "$CADVISOR" -port 10987 -listen_ip 127.0.0.1 -housekeeping_interval 1s -max_housekeeping_interval 1s \
    -allow_dynamic_housekeeping=false -store_container_labels=false 2>/dev/null &
  cadvisor=$!
  (while :; do sleep 15; curl -s 127.0.0.1:10987/metrics >/dev/null || true; done) &
  askers+=($!)
fi
(while :; do sleep 15; curl -s 127.0.0.1:10989/metrics >/dev/null || true; done) &
askers+=($!)
# The first walk, tables and the account of fast rounds are no steady state.
sleep 10

ticks() { awk '{ sub(/.*\) /, ""); print $12 + $13 }' "/proc/$1/stat"; }
rss() { awk '/^VmRSS/ { r = $2 } /^VmHWM/ { h = $2 } END { printf "%.1f MiB (at most %.1f)", r / 1024, h / 1024 }' "/proc/$1/status"; }
names=(agent) pids=("$agent")
[ -z "$exporter" ] || { names+=("node exporter"); pids+=("$exporter"); }
[ -z "$cadvisor" ] || { names+=(cAdvisor); pids+=("$cadvisor"); }
rounds() { curl -s 127.0.0.1:10989/metrics | awk '/^dualplane_agent_round_seconds_total/ { s = $2 } /^dualplane_agent_rounds_total/ { n = $2 } END { print s, n }'; }
before=() first=$(rounds)
for p in "${pids[@]}"; do before+=("$(ticks "$p")"); done
sleep "$seconds"
hz=$(getconf CLK_TCK) own=
echo "$first $(rounds)" | awk '{ printf "a round with all that belongs to it: %.2f ms at the mean of %d, wall\n", 1000 * ($3 - $1) / ($4 - $2), $4 - $2 }'
for i in "${!pids[@]}"; do
  spent=$(($(ticks "${pids[$i]}") - ${before[$i]}))
  own=${own:-$spent}
  echo "${names[$i]}: $(awk -v d=$spent -v hz="$hz" -v s="$seconds" 'BEGIN { printf "%.2f %% of a core", 100 * d / hz / s }'), $(rss "${pids[$i]}")"
  [ "$i" = 0 ] || awk -v a="$own" -v e=$spent -v n="${names[$i]}" 'BEGIN { printf "agent / %s: %.2fx processor\n", n, a / (e > 0 ? e : 1) }'
done
[ -z "$cadvisor" ] || echo "containers that cAdvisor sees here: $(curl -s 127.0.0.1:10987/metrics | grep -c "^container_memory_working_set_bytes{.*$groups_name/kubepods/burstable/pod[^/]*/" || true)"
# Behind the account of processors, for asking costs the agent as well.
for _ in $(seq 30); do
  curl -s 127.0.0.1:10989/metrics | awk '/^dualplane_agent_round_duration_seconds/ { print 1000 * $2 }'
  sleep 1
done | sort -n | awk '{ v[NR] = $1 } END { printf "a round, 30 of them: median %.2f ms, most %.2f ms\n", v[int((NR + 1) / 2)], v[NR] }'
curl -s 127.0.0.1:10989/metrics | grep -E '^dualplane_agent_(round_duration_seconds|plane_skew_seconds|containers|ring_bytes|round_seconds_total|rounds_total|gpu_late_total)' | sed 's/{[^}]*}//'
cat "$work/agent.err"
