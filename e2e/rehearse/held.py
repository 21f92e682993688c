"""Real runs (`real.py`, `testdata/rehearse/real.jsonl`) against `dualplane rehearse`, with the time of a step fitted to all their steps.

    held.py RUNS DUALPLANE
"""

import json
import os
import subprocess
import sys
import tempfile


def fitted(runs):
    """Seconds of a step: base, a token, a request; least squares over steps that the next followed at once, none below 0."""
    rows = [
        (1.0, a[6], a[7], b[0] - a[0])
        for r in runs
        for a, b in zip(r["steps"], r["steps"][1:])
        if b[0] - a[1] < 0.005
    ]
    x = [0.0] * 3
    for _ in range(3000):
        for i in range(3):
            top = sum(a[i] * (a[3] - sum(a[j] * x[j] for j in range(3) if j != i)) for a in rows)
            x[i] = max(0.0, top / sum(a[i] ** 2 for a in rows))
    print(f"{len(rows)} steps: base {x[0]:.6f} s, a token {x[1]:.8f} s, a request {x[2]:.8f} s")
    return x


def main():
    with open(sys.argv[1]) as f:
        runs = [json.loads(line) for line in f]
    x, worst = fitted(runs), 0
    for r in runs:
        s = r["settings"]
        with tempfile.NamedTemporaryFile("w", suffix=".jsonl", delete=False) as f:
            for q in r["requests"]:
                d = {k: q[k] for k in ("at", "input", "output")}
                if "prefix" in q:
                    d["prefix"] = {"group": q["prefix"][0], "tokens": q["prefix"][1]}
                f.write(json.dumps(d) + "\n")
        caching = "--enable-prefix-caching" if s["prefix_caching"] else "--no-enable-prefix-caching"
        # Which model it is decides the bytes of a block only: the pool is set in blocks.
        command = [sys.argv[2], "rehearse", "--gpu", "H100-80GB", "--engine-version", "0.32.0", "--trace", f.name, "--no-search",
                   "-o", "json", "--step-time", f"base={x[0]:.7f},token={x[1]:.9f},request={x[2]:.9f}", "--", "vllm", "serve",
                   "Qwen/Qwen3-8B", "--max-model-len", str(max(q["input"] + q["output"] for q in r["requests"])),
                   "--block-size", str(s["groups"][0]["block_size"]), "--num-gpu-blocks-override", str(s["blocks"]),
                   "--max-num-seqs", str(s["max_num_seqs"]), "--max-num-batched-tokens", str(s["max_num_batched_tokens"]),
                   "--no-async-scheduling", caching]
        o = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)["launch"]["outcome"]
        os.unlink(f.name)
        peak, preempted = max(k[2] for k in r["steps"]), sum(k[5] for k in r["steps"])
        off = abs(o["peak_blocks"] - peak) / peak
        bad = off > 0.02 or abs(o["preemptions"] - preempted) > 0.05 * preempted
        worst += bad
        print(f"run {r['seed']:>2} {r['kind']:<6} pool {s['blocks'] - 1:>3}: held {peak:>3}, rehearsed {o['peak_blocks']:>3}; "
              f"preemptions {preempted}, rehearsed {o['preemptions']}; queue {max(k[4] for k in r['steps'])}, {o['longest_queue']}; "
              f"steps {len(r['steps'])}, {o['steps']}{'  OUT OF BOUNDS' if bad else ''}")
    sys.exit(worst > 0)


main()
