#!/usr/bin/env bash
# Speed and memory of triage on large logs against `grep -c -F -f` with the same literals, in turns in one run.
# Usage: bench/scan.sh [SIZE_MIB=1024] [TURNS=5] [FILES=1]   FILES > 1: so many rotated files of SIZE_MIB each.
set -euo pipefail
cd "$(dirname "$0")/.."
size=${1:-1024} turns=${2:-5} files=${3:-1}
cargo build --release --locked --quiet
bin=$PWD/target/release/dualplane
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
"$bin" dev literals >"$dir/literals"
mkdir "$dir/logs"
python3 bench/serving_log.py "$size" >"$dir/logs/0.log"
# Copies without the death: only the newest log has it.
for ((i = 1; i < files; i++)); do grep -v 'core.py:718' "$dir/logs/0.log" >"$dir/logs/0.log.$i"; done
cat "$dir"/logs/* >/dev/null # both find it in the page cache, as far as that holds it

seconds() { # command…: wall seconds, then peak KiB
  /usr/bin/time -f '%e %M' -o "$dir/time" "$@" >"$dir/out" # grep stops at the first hit where its output is /dev/null
  cat "$dir/time"
}
echo "$files file(s) of $size MiB, $(wc -l <"$dir/literals") literals, $(nproc) processors"
printf '%-6s %12s %12s %8s %14s\n' turn 'grep s' 'triage s' ratio 'triage MiB'
for ((i = 1; i <= turns; i++)); do
  read -r grep _ < <(seconds sh -c "LC_ALL=C grep -c -F -f $dir/literals $dir/logs/*")
  read -r own peak < <(seconds "$bin" triage "$dir/logs")
  printf '%-6s %12s %12s %8s %14s\n' "$i" "$grep" "$own" \
    "$(awk -v a="$grep" -v b="$own" 'BEGIN { printf "%.1fx", a / b }')" "$(awk -v k="$peak" 'BEGIN { printf "%.1f", k / 1024 }')"
done
"$bin" triage "$dir/logs" | head -2
