#!/usr/bin/env python3
"""kvfit beside us on the engine's own answers: `beside_kvfit.py ROWS.jsonl`, with kvfit 0.3.0 from PyPI installed.

ROWS is what `dualplane dev mutate --rows FILE` wrote: the engine's answer, the config, and what was planned. Compared is what
both estimate: the bytes of one request of the full length, on one rank. A figure is right within 1 %.
"""
import collections, json, sys
from kvfit.architectures import estimate_cache

WIDTH = {"float32": 4.0, "float16": 2.0, "bfloat16": 2.0}


def peer(row):
    config = row["config"]
    text = next((config[k] for k in ("text_config", "llm_config", "language_config") if isinstance(config.get(k), dict)), config)
    own = text.get("torch_dtype") or text.get("dtype") or config.get("torch_dtype") or config.get("dtype") or "bfloat16"
    bytes_ = 1.0 if str(row["request"].get("kv_cache_dtype", "auto")).startswith("fp8") else WIDTH.get(own, 2.0)
    e = estimate_cache(config, context_tokens=row["max_model_len"], kv_bytes=bytes_)
    for name in ("total_bytes", "bytes_per_sequence", "total_bytes_per_sequence", "sequence_bytes"):
        v = getattr(e, name, None)
        if v is not None: return float(v() if callable(v) else v)
    raise ValueError(f"no total in {[n for n in dir(e) if not n.startswith('_')]}")


def main():
    table = collections.defaultdict(lambda: [0] * 6)
    for line in open(sys.argv[1]):
        row = json.loads(line)
        if row.get("outcome") not in ("fits", "refused") or row["request"].get("tp", 1) != 1 or not row.get("needed_bytes"): continue
        want = sum(row["needed_bytes"])
        t = table[(row["config"].get("architectures") or ["?"])[0]]
        t[0] += 1
        ours = row["planned"].get("needed_bytes")
        if ours is not None:
            t[1] += 1
            t[2] += abs(ours - want) <= 0.01 * want
        try: theirs = peer(row)
        except Exception: continue
        t[3] += 1
        t[4] += abs(theirs - want) <= 0.01 * want
        t[5] += ours is not None and abs(ours - want) > abs(theirs - want)
    print(f"{'architecture':<44}{'rows':>6}{'ours':>6}{'right':>6}{'kvfit':>7}{'right':>6}{'nearer':>7}")
    for name, t in sorted(table.items()): print(f"{name:<44}{t[0]:>6}{t[1]:>6}{t[2]:>6}{t[3]:>7}{t[4]:>6}{t[5]:>7}")
    s = [sum(t[i] for t in table.values()) for i in range(6)]
    print(f"{'all ' + str(len(table)):<44}{s[0]:>6}{s[1]:>6}{s[2]:>6}{s[3]:>7}{s[4]:>6}{s[5]:>7}")
    behind = [n for n, t in table.items() if t[3] and t[4] > t[2]]
    print("architectures in which kvfit is right more often:", ", ".join(behind) or "none")


if __name__ == "__main__": main()
