"""Keeps of real runs (`real.py`) what `held.py` asks for, a line a run: what each round held and who was preempted, before which step
each request came, and sums over the steps that give their time.

    thin.py <runs.jsonl >kept.jsonl
"""

import json
import sys


def row(step):
    """What a step's time depends on: itself, its tokens, its requests, the tokens that it looks back on."""
    return [1.0, *step[6:9]]


def add(fit, steps):
    """Sums for least squares over steps that the next followed at once."""
    for a, b in zip(steps, steps[1:]):
        if b[0] - a[1] >= 0.005:
            continue
        x, y = row(a), b[0] - a[0]
        fit["steps"] += 1
        for i in range(4):
            fit["right"][i] += x[i] * y
            for j in range(4):
                fit["gram"][i][j] += x[i] * x[j]


runs = {}
for line in sys.stdin:
    r = json.loads(line)
    steps, came = r.pop("steps"), r.pop("came")
    kept = runs.setdefault(r["seed"], r | {"rounds": [], "fit": {"steps": 0, "gram": [[0.0] * 4 for _ in range(4)], "right": [0.0] * 4}})
    kept["rounds"].append({
        "peak_blocks": max(k[2] for k in steps),
        "preemptions": sum(k[5] for k in steps),
        "longest_queue": max(k[4] for k in steps),
        "steps": len(steps),
        "seconds": steps[-1][1],
        # How many steps later than the one before it.
        "came": [b - a for a, b in zip([0, *came], came)],
    })
    add(kept["fit"], steps)
for kept in runs.values():
    kept["fit"]["right"] = [round(r, 9) for r in kept["fit"]["right"]]
    print(json.dumps(kept, separators=(",", ":")))
