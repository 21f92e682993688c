#!/usr/bin/env bash
# Wall time of `triage` of one incident by two binaries, in turns in one run; and that of `--version`, which is the process alone.
# Usage: bench/start.sh OLD NEW [TURNS=30] [INCIDENT=testdata/incidents/sglang-hicache-over-limit]
set -euo pipefail
old=$(realpath "$1") new=$(realpath "$2") turns=${3:-30}
cd "$(dirname "$0")/.."
python3 - "$old" "$new" "$turns" "${4:-testdata/incidents/sglang-hicache-over-limit}" <<'PY'
import statistics, subprocess, sys, time

old, new, turns, incident = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4]
cases = [(name, how, [binary, *args]) for how, args in (("triage", ["triage", incident]), ("--version", ["--version"]))
         for name, binary in (("old", old), ("new", new))]
taken = {(name, how): [] for name, how, _ in cases}
for turn in range(turns + 3):
    for name, how, command in cases if turn % 2 else reversed(cases):
        start = time.perf_counter()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        # The first turns fill the page cache.
        if turn >= 3:
            taken[name, how].append(1000 * (time.perf_counter() - start))
for (name, how), ms in taken.items():
    print(f"{name} {how:<10} median {statistics.median(ms):6.2f} ms, least {min(ms):6.2f} ms")
PY
