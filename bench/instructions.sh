#!/usr/bin/env bash
# Instructions of typical cases, counted by valgrind: the same on a busy machine. Compares with bench/instructions.txt and
# fails where a case takes over 3 % more. `bench/instructions.sh --keep` writes the new figures (say why in the commit).
set -euo pipefail
cd "$(dirname "$0")/.."
command -v valgrind >/dev/null || { echo "valgrind is needed: apt-get install valgrind" >&2; exit 2; }
cargo build --release --locked --quiet
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
python3 bench/serving_log.py 32 >"$dir/serving-32MiB.log"
bin=$PWD/target/release/dualplane
cases=(testdata/incidents/sglang-hicache-over-limit testdata/incidents/real-k8s-pid1-oom "$dir/serving-32MiB.log")
status=0
: >"$dir/new"
for case in "${cases[@]}"; do
  name=$(basename "$case")
  # One processor: how threads share the work must not count.
  count=$(taskset -c 0 valgrind --tool=callgrind --callgrind-out-file=/dev/null "$bin" triage "$case" 2>&1 >/dev/null |
    sed -n 's/.*Collected : //p')
  echo "$name $count" >>"$dir/new"
  kept=$(awk -v n="$name" '$1 == n { print $2 }' bench/instructions.txt 2>/dev/null || true)
  if [ -z "$kept" ]; then printf '%-32s %14s (not kept yet)\n' "$name" "$count"; continue; fi
  change=$(awk -v a="$kept" -v b="$count" 'BEGIN { printf "%+.2f", (b - a) * 100 / a }')
  printf '%-32s %14s %8s %%\n' "$name" "$count" "$change"
  if awk -v c="$change" 'BEGIN { exit !(c > 3) }'; then status=1; fi
done
if [ "${1:-}" = --keep ]; then cp "$dir/new" bench/instructions.txt; exit 0; fi
exit $status
