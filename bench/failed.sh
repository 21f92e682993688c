#!/usr/bin/env bash
# Time of `triage -A --failed` where thirty pods of one node died and one of them left a log of 300 MB, against a cluster
# that exists only as answers (bench/failed_fleet.py). With OTHER, another binary takes turns with ours and the reports
# are held against each other: on a busy machine only the ratio says something, and of it the processor time.
# Usage: [OTHER=BINARY] bench/failed.sh [PODS=30] [LOG_MB=300] [TURNS=3]. DUALPLANE names our binary; else the release build.
set -euo pipefail
cd "$(dirname "$0")/.."
pods=${1:-30} log=${2:-300} turns=${3:-3}
own=${DUALPLANE:-$PWD/target/release/dualplane}
[ -x "$own" ] || cargo build --release --locked --quiet -p dualplane
dir=$(mktemp -d)
mkfifo "$dir/ends"
python3 bench/failed_fleet.py "$dir" "$pods" "$log" <"$dir/ends" >"$dir/ready" &
server=$!
exec 9>"$dir/ends"
trap 'exec 9>&-; kill $server 2>/dev/null || true; rm -rf "$dir"' EXIT
until [ -s "$dir/ready" ]; do kill -0 "$server"; sleep 0.2; done
export KUBECONFIG=$dir/config
for ((i = 1; i <= turns; i++)); do
  for bin in ${OTHER:+"$OTHER"} "$own"; do
    TIMEFORMAT="$(basename "$bin"): %R s wall, %U s user, %S s system"
    time "$bin" triage -A --failed -o json >"$dir/$(basename "$bin").json" 2>/dev/null
  done
done
if [ -n "${OTHER:-}" ]; then
  cmp "$dir/$(basename "$OTHER").json" "$dir/$(basename "$own").json" && echo "the reports are the same"
fi
