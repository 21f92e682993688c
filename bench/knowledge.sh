#!/usr/bin/env bash
# What the knowledge costs at each start: instructions of one report with it, and without what builds it
# (`Knowledge::embedded`: tables read, literals of all signatures sorted). Counted by valgrind: the same on a busy machine.
# Usage: bench/knowledge.sh [BINARY [INCIDENT [MOST]]]; fails where the start takes more than MOST instructions.
set -euo pipefail
cd "$(dirname "$0")/.."
command -v valgrind >/dev/null || { echo "valgrind is needed: apt-get install valgrind" >&2; exit 2; }
if [ -z "${1:-}" ]; then cargo build --release --locked --quiet; fi
bin=${1:-target/release/dualplane} incident=${2:-testdata/incidents/real-k8s-pid1-oom} most=${3:-}
count() {
  taskset -c 0 valgrind --tool=callgrind --callgrind-out-file=/dev/null "$@" "$bin" triage "$incident" 2>&1 >/dev/null |
    sed -n 's/.*Collected : //p'
}
all=$(count)
start=$(count --toggle-collect=dualplane_core::knowledge::Knowledge::embedded)
# A function that was inlined is never entered.
[ "${start:-0}" -gt 0 ] || { echo "$bin does not tell where its knowledge is built" >&2; exit 2; }
entries=$(grep -rc '^\[\[signature\]\]' knowledge --include='*.toml' | awk -F: '{ n += $2 } END { print n }')
awk -v a="$all" -v s="$start" -v n="$entries" 'BEGIN {
  printf "%-34s %14d\n%-34s %14d\n%-34s %14d  %5.1f %%  %d signatures, %.0f each\n",
    "with the knowledge", a, "without", a - s, "its start", s, s * 100 / a, n, s / n
}'
if [ -n "$most" ] && [ "$start" -gt "$most" ]; then exit 1; fi
