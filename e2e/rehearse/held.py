"""Real runs (`real.py`, kept by `thin.py` in `testdata/rehearse/real.jsonl`) against `dualplane rehearse`.

    held.py RUNS DUALPLANE [--every N] [--out N]

1. By steps: each request comes before the step before which it really came. No speed of a machine is in that, so each round of each run
   must be the same: steps, most blocks held, preemptions.
2. By the clock: each request comes at its time, and the time of a step is fitted to other runs than those that are judged: to the second
   half of the list for its first half, and the other way round. The engine itself does not repeat such a run: a rehearsal is right where
   it lies within what its rounds held, and the bounds around it: high-water 2 %, preemptions 5 %. Beside it stands how often a round
   of the engine lies within the bounds of another one. --out says how many runs may be out of them, as these were when they were kept.
"""

import argparse
import itertools
import json
import os
import subprocess
import sys
import tempfile

WATER, LOST = 0.02, 0.05


def fitted(runs):
    """Seconds of a step: base, a token, a request, a token looked back on; least squares, none below 0."""
    gram = [[sum(r["fit"]["gram"][i][j] for r in runs) for j in range(4)] for i in range(4)]
    right = [sum(r["fit"]["right"][i] for r in runs) for i in range(4)]
    x = [0.0] * 4
    for _ in range(20000):
        for i in range(4):
            x[i] = max(0.0, (right[i] - sum(gram[i][j] * x[j] for j in range(4) if j != i)) / gram[i][i])
    return x


def rehearsed(dualplane, r, step, at):
    s = r["settings"]
    with tempfile.NamedTemporaryFile("w", suffix=".jsonl", delete=False) as f:
        for q, t in zip(r["requests"], at):
            d = {"at": t, "input": q["input"], "output": q["output"]}
            if "prefix" in q:
                d["prefix"] = {"group": q["prefix"][0], "tokens": q["prefix"][1]}
            f.write(json.dumps(d) + "\n")
    caching = "--enable-prefix-caching" if s["prefix_caching"] else "--no-enable-prefix-caching"
    # Which model it is decides the bytes of a block only: the pool is set in blocks.
    command = [dualplane, "rehearse", "--gpu", "H100-80GB", "--engine-version", "0.32.0", "--trace", f.name, "--no-search",
               "-o", "json", "--step-time", step, "--",
               "vllm", "serve", "Qwen/Qwen3-8B", "--max-model-len", str(max(q["input"] + q["output"] for q in r["requests"])),
               "--block-size", str(s["groups"][0]["block_size"]), "--num-gpu-blocks-override", str(s["blocks"]),
               "--max-num-seqs", str(s["max_num_seqs"]), "--max-num-batched-tokens", str(s["max_num_batched_tokens"]),
               "--no-async-scheduling", caching]
    o = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)["launch"]["outcome"]
    os.unlink(f.name)
    return o


def by_steps(dualplane, runs):
    """Rounds that are not the same where every step takes one second."""
    other = count = 0
    for r in runs:
        for n, held in enumerate(r["rounds"], 1):
            before = list(itertools.accumulate(held["came"]))
            o = rehearsed(dualplane, r, "base=1", [max(0.0, b - 0.5) for b in before])
            count += 1
            wrong = [f"{k} {held[k]}, rehearsed {o[k]}" for k in ("steps", "peak_blocks", "preemptions", "longest_queue") if o[k] != held[k]]
            if wrong:
                other += 1
                print(f"run {r['seed']}, round {n}, by steps: {'; '.join(wrong)}")
    print(f"by steps: {count - other} of {count} rounds of {len(runs)} runs are the same")
    return other


def within(x, rounds, key, share):
    """Whether a figure lies in what rounds held, and a share around it."""
    all_held = [h[key] for h in rounds]
    return min(all_held) * (1 - share) <= x <= max(all_held) * (1 + share)


def by_clock(dualplane, parts):
    bad, sums, pairs, alike = [0, 0, 0], [0.0, 0.0], 0, [0, 0, 0]
    span = lambda rounds, key: "-".join(str(x) for x in sorted({min(h[key] for h in rounds), max(h[key] for h in rounds)}))
    count = 0
    for judged, x in parts:
        step = "base=%.8f,token=%.10f,request=%.10f,context=%.12f" % tuple(x)
        print("a step:", step)
        for r in judged:
            o, rounds = rehearsed(dualplane, r, step, [q["at"] for q in r["requests"]]), r["rounds"]
            water, lost = not within(o["peak_blocks"], rounds, "peak_blocks", WATER), not within(o["preemptions"], rounds, "preemptions", LOST)
            bad = [bad[0] + water, bad[1] + lost, bad[2] + (water or lost)]
            sums = [sums[0] + sum(h["preemptions"] for h in rounds) / len(rounds), sums[1] + o["preemptions"]]
            for a, b in itertools.permutations(rounds, 2):
                w, l = within(a["peak_blocks"], [b], "peak_blocks", WATER), within(a["preemptions"], [b], "preemptions", LOST)
                pairs, alike = pairs + 1, [alike[0] + w, alike[1] + l, alike[2] + (w and l)]
            count += 1
            print(f"run {r['seed']:>2} {r['kind']:<6} pool {r['settings']['blocks'] - 1:>3}: held {span(rounds, 'peak_blocks')}, rehearsed "
                  f"{o['peak_blocks']}; preemptions {span(rounds, 'preemptions')}, rehearsed {o['preemptions']}; queue "
                  f"{span(rounds, 'longest_queue')}, {o['longest_queue']}; steps {span(rounds, 'steps')}, {o['steps']}; "
                  f"{min(h['seconds'] for h in rounds):.1f}-{max(h['seconds'] for h in rounds):.1f} s, {o['seconds']:.1f} s"
                  f"{'  HIGH-WATER OUT OF BOUNDS' if water else ''}{'  PREEMPTIONS OUT OF BOUNDS' if lost else ''}")
    print(f"by the clock: {count} runs, high-water out of bounds in {bad[0]}, preemptions in {bad[1]}, either in {bad[2]}; "
          f"{sums[0]:.1f} preemptions, rehearsed {sums[1]} ({100 * (sums[1] / max(sums[0], 1) - 1):+.1f} %)")
    if pairs:
        shares = [100 * n / pairs for n in alike]
        print("a round of the engine lies within the bounds of another: high-water %.1f %%, preemptions %.1f %%, both %.1f %%" % tuple(shares))
    # All together they must hold whatever single runs do.
    return bad[2], abs(sums[1] - sums[0]) > LOST * sums[0]


def main():
    p = argparse.ArgumentParser()
    p.add_argument("runs")
    p.add_argument("dualplane")
    p.add_argument("--every", type=int, default=1, help="judge each Nth run only")
    p.add_argument("--out", type=int, default=0, help="so many runs may be out of bounds by the clock")
    a = p.parse_args()
    with open(a.runs) as f:
        runs = [json.loads(line) for line in f]
    half = len(runs) // 2
    parts = [(runs[:half], fitted(runs[half:])), (runs[half:], fitted(runs[:half]))]
    other = by_steps(a.dualplane, runs[:: a.every])
    out, sums = by_clock(a.dualplane, [(judged[:: a.every], x) for judged, x in parts])
    sys.exit(other > 0 or out > a.out or sums)


main()
