#!/usr/bin/env python3
"""Requests for oracle.py: models of the catalogue with random flags on several cards.

    ask.py COUNT SEED > requests.jsonl
"""
import glob, json, os, random, sys, tomllib

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../..")
GIB = 1 << 30
# Sizes as CUDA and as the driver print them (knowledge/gpus.toml), and how often a card is asked.
CARDS = [(6, "NVIDIA H100 80GB HBM3", [9, 0], 79.19, 81559), (2, "NVIDIA B200", [10, 0], 178.35, 183359),
         (1, "NVIDIA A100-SXM4-80GB", [8, 0], 79.25, 81920), (1, "NVIDIA GeForce RTX 4090", [8, 9], 23.55, 24564)]


def catalogue():
    """Configurations by id, each once; a type that a hand-written one lacks is that of others of its architecture."""
    entries = [m for f in sorted(glob.glob(os.path.join(ROOT, "knowledge/models/*.toml")))
               for m in tomllib.load(open(f, "rb")).get("model", []) if "config" in m]
    seen, types, out = set(), {}, []
    for m in entries:
        c = json.loads(m["config"])
        for a in c.get("architectures", [])[:1]:
            if "model_type" in c: types.setdefault(a, c["model_type"])
    for m in entries:
        c = json.loads(m["config"])
        a = (c.get("architectures") or [None])[0]
        if a is None: continue
        if c.get("n_routed_experts"): c.setdefault("scoring_func", "sigmoid")       # read, and no memory
        if a in types: c.setdefault("model_type", types[a])     # else transformers knows it
        key = json.dumps(c, sort_keys=True) + m.get("hf_quant_config", "")
        if key not in seen:
            seen.add(key)
            out.append((m["id"], c, json.loads(m["hf_quant_config"]) if "hf_quant_config" in m else None))
    return out


def flags(r, config):
    text = config.get("text_config") or config
    own = text.get("max_position_embeddings") or 4096
    out, tp = [], r.choice([1, 1, 2, 4, 8])
    def some(p, *words):
        if r.random() < p: out.extend(map(str, words))
    some(1, "--tp", tp)
    if tp > 1: some(0.2, "--dp", r.choice([2, tp]), "--enable-dp-attention")
    some(0.3, "--kv-cache-dtype", r.choice(["fp8_e4m3", "fp8_e5m2", "bf16"]))
    some(0.35, "--mem-fraction-static", r.choice([0.7, 0.8, 0.85, 0.9]))
    some(0.2, "--page-size", r.choice([1, 16, 64, 128]))
    some(0.4, "--context-length", min(own, r.choice([4096, 8192, 32768])))
    some(0.25, "--max-running-requests", r.choice([8, 64, 256, 1024]))
    some(0.2, "--chunked-prefill-size", r.choice([-1, 2048, 4096, 16384]))
    some(0.15, "--max-total-tokens", r.choice([20000, 100000, 500000]))
    some(0.1, "--cuda-graph-max-bs-decode", r.choice([16, 128, 512]))
    some(0.06, "--disable-cuda-graph")
    some(0.1, "--disable-radix-cache")
    if text.get("sliding_window") or text.get("attention_chunk_size"):
        some(0.3, "--swa-full-tokens-ratio", r.choice([0.3, 0.5, 1.0]))
        some(0.1, "--disable-hybrid-swa-memory")
    if any(k.startswith(("mamba", "linear_")) for k in text):
        some(0.3, "--mamba-full-memory-ratio", r.choice([0.3, 0.5, 2.0]))
        some(0.15, "--max-mamba-cache-size", r.choice([64, 400]))
        some(0.2, "--mamba-ssm-dtype", r.choice(["float32", "bfloat16"]))
    if text.get("num_nextn_predict_layers") or text.get("mtp_num_hidden_layers"):
        some(0.3, "--speculative-algorithm", "EAGLE", "--speculative-num-steps", 3, "--speculative-eagle-topk", 1,
             "--speculative-num-draft-tokens", 4)
    return " ".join(out)


def main():
    count, r = int(sys.argv[1]), random.Random(int(sys.argv[2]))
    models = catalogue()
    # Every architecture as often as any other, so that the plain ones do not drown the rest.
    kinds = {}
    for m in models: kinds.setdefault(m[1]["architectures"][0], []).append(m)
    asked, names = 0, sorted(kinds)
    while asked < count:
        for name in names:
            id, config, quant = r.choice(kinds[name])
            weight, card, capability, gib, mib = r.choices(CARDS, [c[0] for c in CARDS])[0]
            total = int(gib * GIB)
            before = int(total - r.uniform(0.4, 2.0) * GIB)
            print(json.dumps(dict(
                id=f"{id}/{asked}", config=id, model=config, quant=quant, flags=flags(r, config), before=before,
                after=[None, int(before * r.uniform(0.3, 0.8))],
                card=dict(name=card, capability=capability, total_bytes=total, driver_mib=mib))))
            asked += 1
            if asked == count: break


if __name__ == "__main__": main()
