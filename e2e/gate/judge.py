"""Reports of `e2e/gate/vllm` judged by `dualplane gate` against five runs of five starts: each repeat alone, three of three other
starts, and three in a row, which share whatever the machine did in that half minute.

    judge.py FOLDER|KEPT DUALPLANE POLICY
    judge.py --keep FOLDER >KEPT        a line each, without what nothing here asks for
"""

import collections
import glob
import json
import os
import re
import subprocess
import sys
import tempfile


def number(path):
    return [int(n) for n in re.findall(r"start(\d+)-(\d+)", path)[0]]


def reports(work, kind):
    return sorted(glob.glob(f"{work}/{kind}/*.json"), key=number)


def keep(work):
    for kind in ("clean", "more"):
        for path in reports(work, kind):
            with open(path) as f:
                report = json.load(f)
            for run in report["runs"]:
                run["windows"] = []
            report["subject"]["command"] = []
            print(json.dumps({"kind": kind, "name": os.path.basename(path), "report": report}, separators=(",", ":")))


def unpacked(kept):
    work = tempfile.mkdtemp()
    with open(kept) as f:
        for line in f:
            d = json.loads(line)
            os.makedirs(f"{work}/{d['kind']}", exist_ok=True)
            with open(f"{work}/{d['kind']}/{d['name']}", "w") as out:
                json.dump(d["report"], out)
    return work


if sys.argv[1] == "--keep":
    keep(sys.argv[2])
    sys.exit()
work, dualplane, policy = sys.argv[1:]
if os.path.isfile(work):
    work = unpacked(work)


def gate(candidate, base):
    command = [dualplane, "gate", "--policy", policy, "-o", "json", "--candidate", *candidate, "--baseline", *base]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode not in (0, 50, 51):
        sys.exit(done.stderr or done.stdout)
    said = json.loads(done.stdout)
    return done.returncode, [c for c in said["checks"] if c["outcome"] not in ("pass", "not_applicable")]


clean, more = reports(work, "clean"), reports(work, "more")
base = [p for p in clean if number(p)[1] == 1][:5]
rest = [p for p in clean if p not in base]
names = {0: "pass", 50: "fail", 51: "not shown"}


def count(title, groups):
    codes, why = collections.Counter(), collections.Counter()
    for g in groups:
        code, checks = gate(g, base)
        codes[names[code]] += 1
        for c in checks:
            why[f"{c['id']} {c['outcome']}"] += 1
    print(f"{title}: {len(groups)}: {dict(codes)} {dict(why)}", flush=True)
    return codes


alone = count("clean, a run each", [[p] for p in rest])
spread = sorted(rest, key=lambda p: number(p)[::-1])
three = count("clean, three runs of three starts", [spread[i:i + 3] for i in range(0, len(spread) - 2, 3)])
count("clean, three runs in a row", [rest[i:i + 3] for i in range(0, len(rest) - 2, 3)])
worse = count("more RAM, a run each", [[p] for p in more])
worse3 = count("more RAM, three runs in a row", [more[i:i + 3] for i in range(0, len(more) - 2, 3)])
peak = lambda paths: [json.load(open(p))["runs"][0]["host"]["peak_bytes"] for p in paths]
mean = lambda x: sum(x) / len(x)
if more:
    print(f"more RAM at the peak: {100 * (mean(peak(more)) / mean(peak(clean)) - 1):.2f} % on average")
few = lambda codes: codes["fail"] * 100 < sum(codes.values())
sys.exit(not few(alone) or not more or worse["pass"] + worse3["pass"] > 0)
