"""Real runs (`real.py`, kept by `thin.py` in `testdata/rehearse/real.jsonl`) against `dualplane rehearse`.

    held.py RUNS DUALPLANE [--every N] [--own] [--out N]

The time of a step is fitted to other runs than those that are judged: to the second half of the list for its first half, and the
other way round; with --own to the run itself, which shows what is left where the machine's speed is known. Bounds: high-water within
2 %, preemptions within 5 %; --out says how many runs may be out of them, as these were when they were kept.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile


def fitted(runs):
    """Seconds of a step: base, a token, a request, a token looked back on; least squares, none below 0."""
    gram = [[sum(r["fit"]["gram"][i][j] for r in runs) for j in range(4)] for i in range(4)]
    right = [sum(r["fit"]["right"][i] for r in runs) for i in range(4)]
    x = [0.0] * 4
    for _ in range(20000):
        for i in range(4):
            x[i] = max(0.0, (right[i] - sum(gram[i][j] * x[j] for j in range(4) if j != i)) / gram[i][i])
    return x


def rehearsed(dualplane, r, x):
    s = r["settings"]
    with tempfile.NamedTemporaryFile("w", suffix=".jsonl", delete=False) as f:
        for q in r["requests"]:
            d = {k: q[k] for k in ("at", "input", "output")}
            if "prefix" in q:
                d["prefix"] = {"group": q["prefix"][0], "tokens": q["prefix"][1]}
            f.write(json.dumps(d) + "\n")
    caching = "--enable-prefix-caching" if s["prefix_caching"] else "--no-enable-prefix-caching"
    # Which model it is decides the bytes of a block only: the pool is set in blocks.
    command = [dualplane, "rehearse", "--gpu", "H100-80GB", "--engine-version", "0.32.0", "--trace", f.name, "--no-search",
               "-o", "json", "--step-time", f"base={x[0]:.8f},token={x[1]:.10f},request={x[2]:.10f},context={x[3]:.12f}", "--",
               "vllm", "serve", "Qwen/Qwen3-8B", "--max-model-len", str(max(q["input"] + q["output"] for q in r["requests"])),
               "--block-size", str(s["groups"][0]["block_size"]), "--num-gpu-blocks-override", str(s["blocks"]),
               "--max-num-seqs", str(s["max_num_seqs"]), "--max-num-batched-tokens", str(s["max_num_batched_tokens"]),
               "--no-async-scheduling", caching]
    o = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)["launch"]["outcome"]
    os.unlink(f.name)
    return o


def main():
    p = argparse.ArgumentParser()
    p.add_argument("runs")
    p.add_argument("dualplane")
    p.add_argument("--every", type=int, default=1, help="judge each Nth run only")
    p.add_argument("--own", action="store_true")
    p.add_argument("--out", type=int, default=0, help="so many runs may be out of bounds")
    a = p.parse_args()
    with open(a.runs) as f:
        runs = [json.loads(line) for line in f]
    half = len(runs) // 2
    parts = [(runs[:half], fitted(runs[half:])), (runs[half:], fitted(runs[:half]))]
    parts = [(judged[:: a.every], x) for judged, x in parts]
    if a.own:
        parts = [([r], fitted([r])) for judged, _ in parts for r in judged]
    bad, sums = [0, 0, 0], [0, 0]
    count = 0
    for judged, x in parts:
        if not a.own:
            print("a step: base %.6f s, a token %.8f s, a request %.8f s, a token looked back on %.10f s" % tuple(x))
        for r in judged:
            o, held = rehearsed(a.dualplane, r, x), r["held"]
            water = abs(o["peak_blocks"] - held["peak_blocks"]) / held["peak_blocks"] > 0.02
            lost = abs(o["preemptions"] - held["preemptions"]) > 0.05 * held["preemptions"]
            bad = [bad[0] + water, bad[1] + lost, bad[2] + (water or lost)]
            sums = [sums[0] + held["preemptions"], sums[1] + o["preemptions"]]
            count += 1
            print(f"run {r['seed']:>2} {r['kind']:<6} pool {r['settings']['blocks'] - 1:>3}: held {held['peak_blocks']:>3}, rehearsed "
                  f"{o['peak_blocks']:>3}; preemptions {held['preemptions']}, rehearsed {o['preemptions']}; queue {held['longest_queue']}, "
                  f"{o['longest_queue']}; steps {held['steps']}, {o['steps']}; {held['seconds']:.1f} s, {o['seconds']:.1f} s"
                  f"{'  HIGH-WATER OUT OF BOUNDS' if water else ''}{'  PREEMPTIONS OUT OF BOUNDS' if lost else ''}")
    print(f"{count} runs: high-water out of 2 % in {bad[0]}, preemptions out of 5 % in {bad[1]}; {sums[0]} preemptions, rehearsed {sums[1]} "
          f"({100 * (sums[1] / max(sums[0], 1) - 1):+.1f} %)")
    # All together they must hold whatever single runs do.
    sys.exit(bad[2] > a.out or abs(sums[1] - sums[0]) > 0.05 * sums[0])


main()
