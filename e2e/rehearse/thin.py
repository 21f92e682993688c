"""Keeps of real runs (`real.py`) what `held.py` asks for: what was held and who was preempted, and sums over the steps that give their time.

    thin.py <runs.jsonl >kept.jsonl
"""

import json
import sys


def row(step):
    """What a step's time depends on: itself, its tokens, its requests, the tokens that it looks back on."""
    return [1.0, *step[6:9]]


def fit(steps):
    """Sums for least squares over steps that the next followed at once."""
    gram, right, n = [[0.0] * 4 for _ in range(4)], [0.0] * 4, 0
    for a, b in zip(steps, steps[1:]):
        if b[0] - a[1] >= 0.005:
            continue
        x, y = row(a), b[0] - a[0]
        n += 1
        for i in range(4):
            right[i] += x[i] * y
            for j in range(4):
                gram[i][j] += x[i] * x[j]
    return {"steps": n, "gram": gram, "right": [round(r, 9) for r in right]}


for line in sys.stdin:
    r = json.loads(line)
    steps = r.pop("steps")
    r["held"] = {
        "peak_blocks": max(k[2] for k in steps),
        "preemptions": sum(k[5] for k in steps),
        "longest_queue": max(k[4] for k in steps),
        "steps": len(steps),
        "seconds": steps[-1][1],
    }
    r["fit"] = fit(steps)
    print(json.dumps(r, separators=(",", ":")))
