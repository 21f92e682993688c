# Containers to measure on, for bench/sample.sh and bench/agent.sh: groups of our own on cgroup v1, every tenth with a
# process that works; else a fixture tree in /dev/shm. `make_groups COUNT` sets $base; `clean_groups` removes all.
# shellcheck shell=bash
base=$(mktemp -d -p /dev/shm)
groups_name=dualplane-bench-$$
groups_v1=/sys/fs/cgroup/memory groups_unified=/sys/fs/cgroup/unified
groups_pids=()

clean_groups() {
  for p in "${groups_pids[@]}"; do kill "$p" 2>/dev/null || true; done
  wait 2>/dev/null || true
  for top in $groups_v1 $groups_unified; do
    [ -d "$top/$groups_name" ] || continue
    # What the loops had started lives on in our own groups, for a second at most.
    for _ in 1 2 3 4 5 6 7 8; do
      if find "$top/$groups_name" -depth -type d -exec rmdir {} + 2>/dev/null; then break; fi
      sleep 0.5
    done
  done
  rm -rf "$base"
}

group() { # number: path of a container
  printf 'kubepods/burstable/pod%08x-0000-4000-8000-000000000000/%064x' "$1" "$1"
}

make_groups() {
  local i d k
  if [ -w "$groups_v1" ] && mkdir "$groups_v1/$groups_name" 2>/dev/null; then
    echo "real groups of cgroup v1 below $groups_v1/$groups_name, every tenth with a process that works"
    ln -s "$groups_v1/$groups_name" "$base/memory"
    if mkdir "$groups_unified/$groups_name" 2>/dev/null; then ln -s "$groups_unified/$groups_name" "$base/unified"; fi
    for ((i = 1; i <= $1; i++)); do
      mkdir -p "$groups_v1/$groups_name/$(group $i)"
      [ ! -e "$base/unified" ] || mkdir -p "$groups_unified/$groups_name/$(group $i)"
      echo $((256 << 20)) >"$groups_v1/$groups_name/$(group $i)/memory.limit_in_bytes"
      if ((i % 10 == 0)); then
        # Takes and gives back 16 MiB, slowly: counters move, the processors stay free.
        sh -c "echo \$\$ >$groups_v1/$groups_name/$(group $i)/cgroup.procs; while :; do head -c 16000000 /dev/zero | tail -c 1 >/dev/null; sleep 1; done" &
        groups_pids+=($!)
      fi
    done
    return
  fi
  echo "fixture tree of cgroup v2 in $base"
  echo memory >"$base/cgroup.controllers"
  for ((i = 1; i <= $1; i++)); do
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
}
