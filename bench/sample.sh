#!/usr/bin/env bash
# Cost of one sample of the node agent: containers and fake GPUs, in groups of our own (cgroup v1; else a fixture tree in
# /dev/shm). Time, processor, RSS; with valgrind also the allocations of one round.
# Usage: bench/sample.sh [CONTAINERS=110] [GPUS=8] [ROUNDS=2000] [BEAT_SECONDS=20]
set -euo pipefail
cd "$(dirname "$0")/.."
containers=${1:-110} gpus=${2:-8} rounds=${3:-2000} beat=${4:-20}
cargo build --release --locked --quiet -p dualplane-node --example sample
bin=$PWD/target/release/examples/sample
base=$(mktemp -d -p /dev/shm)
name=dualplane-bench-$$
v1=/sys/fs/cgroup/memory unified=/sys/fs/cgroup/unified
pids=()
# shellcheck disable=SC2329
clean() {
  for p in "${pids[@]}"; do kill "$p" 2>/dev/null || true; done
  wait 2>/dev/null || true
  for top in $v1 $unified; do
    [ -d "$top/$name" ] || continue
    # What the loops had started lives on in our own groups, for a second at most.
    for _ in 1 2 3 4 5 6 7 8; do
      if find "$top/$name" -depth -type d -exec rmdir {} + 2>/dev/null; then break; fi
      sleep 0.5
    done
  done
  rm -rf "$base"
}
trap clean EXIT

group() { # number: path of a container
  printf 'kubepods/burstable/pod%08x-0000-4000-8000-000000000000/%064x' "$1" "$1"
}
if [ -w "$v1" ] && mkdir "$v1/$name" 2>/dev/null; then
  echo "real groups of cgroup v1 below $v1/$name, every tenth with a process that works"
  ln -s "$v1/$name" "$base/memory"
  if mkdir "$unified/$name" 2>/dev/null; then ln -s "$unified/$name" "$base/unified"; fi
  for ((i = 1; i <= containers; i++)); do
    mkdir -p "$v1/$name/$(group $i)"
    [ ! -e "$base/unified" ] || mkdir -p "$unified/$name/$(group $i)"
    echo $((256 << 20)) >"$v1/$name/$(group $i)/memory.limit_in_bytes"
    if ((i % 10 == 0)); then
      # Takes and gives back 16 MiB, slowly: counters move, the processors stay free.
      sh -c "echo \$\$ >$v1/$name/$(group $i)/cgroup.procs; while :; do head -c 16000000 /dev/zero | tail -c 1 >/dev/null; sleep 1; done" &
      pids+=($!)
    fi
  done
else
  echo "fixture tree of cgroup v2 in $base"
  echo memory >"$base/cgroup.controllers"
  for ((i = 1; i <= containers; i++)); do
    d=$base/$(group $i)
    mkdir -p "$d"
    echo 104857600 >"$d/memory.current"
    echo 268435456 >"$d/memory.max"
    echo 200000000 >"$d/memory.peak"
    printf 'low 0\nhigh 0\nmax 0\noom 0\noom_kill 0\noom_group_kill 0\n' >"$d/memory.events"
    for k in anon file kernel kernel_stack pagetables sock shmem file_mapped inactive_anon active_anon inactive_file \
      active_file unevictable slab pgfault pgmajfault; do echo "$k 1048576"; done >"$d/memory.stat"
    printf 'some avg10=0.00 avg60=0.00 avg300=0.00 total=0\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=0\n' >"$d/memory.pressure"
  done
fi

echo "== rounds one after another"
"$bin" "$base" "$rounds" "$gpus"
echo "== at the agent's own beat, $beat rounds"
"$bin" "$base" "$beat" "$gpus" beat
if command -v valgrind >/dev/null; then
  allocs() {
    valgrind --log-fd=9 "$bin" "$base" "$1" "$gpus" 9>&1 >/dev/null 2>/dev/null |
      sed -n 's/.*total heap usage: \([0-9,]*\) allocs.*/\1/p' | tr -d ,
  }
  few=$(allocs 100) many=$(allocs 300)
  echo "== allocations a round: $(awk -v a="$few" -v b="$many" 'BEGIN { printf "%.2f", (b - a) / 200 }')"
fi
