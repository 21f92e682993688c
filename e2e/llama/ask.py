#!/usr/bin/env python3
"""Small random models of many architectures and random flags, asked of llama.cpp itself (oracle.cpp).

    ask.py ORACLE_PROGRAM --models 70 --count 350 --seed 1 > answers.jsonl

A model is a header: which tensors an architecture wants, and of which shape, is what the library itself demands while it
loads; what it misses is added until it is content. A line of the output is a model (keys and tensors) or the answer to a
request that names one.
"""
import argparse, json, os, random, re, struct, subprocess, sys, tempfile

# Name: (id, elements of a block, bytes of a block).
TYPES = {"f32": (0, 1, 4), "f16": (1, 1, 2), "q4_0": (2, 32, 18), "q5_0": (6, 32, 22), "q8_0": (8, 32, 34), "q3_K": (11, 256, 110),
         "q4_K": (12, 256, 144), "q5_K": (13, 256, 176), "q6_K": (14, 256, 210), "iq4_xs": (23, 256, 136), "bf16": (30, 1, 2),
         "mxfp4": (39, 32, 17)}
U32, F32, BOOL, STRING, ARRAY = 4, 6, 7, 8, 9


def text(s): return struct.pack("<Q", len(s.encode())) + s.encode()


def value(v):
    if isinstance(v, bool): return struct.pack("<I?", BOOL, v)
    if isinstance(v, int): return struct.pack("<II", U32, v)
    if isinstance(v, float): return struct.pack("<If", F32, v)
    if isinstance(v, str): return struct.pack("<I", STRING) + text(v)
    of = BOOL if isinstance(v[0], bool) else U32
    return struct.pack("<IIQ", ARRAY, of, len(v)) + b"".join(struct.pack("<?" if of == BOOL else "<I", x) for x in v)


def size(shape, kind):
    _, block, count = TYPES[kind]
    n = 1
    for d in shape: n *= d
    return n // block * count


def write(path, keys, tensors):
    """The header, and as much nothing behind it as the tensors are long: a sparse file."""
    out = [b"GGUF", struct.pack("<IQQ", 3, len(tensors), len(keys))]
    for k, v in keys.items(): out += [text(k), value(v)]
    at = 0
    for name, (shape, kind) in tensors.items():
        out += [text(name), struct.pack("<I", len(shape)), struct.pack(f"<{len(shape)}Q", *shape), struct.pack("<IQ", TYPES[kind][0], at)]
        at += (size(shape, kind) + 31) // 32 * 32
    head = b"".join(out)
    with open(path, "wb") as f:
        f.write(head)
        f.truncate((len(head) + 31) // 32 * 32 + at)


class Oracle:
    def __init__(self, program):
        self.p = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)

    def ask(self, request):
        self.p.stdin.write(json.dumps(request) + "\n"); self.p.stdin.flush()
        # The library may print dots while it loads.
        line = "."
        while line and "{" not in line: line = self.p.stdout.readline()
        if not line: raise RuntimeError("the library died")
        return json.loads(line[line.index("{"):])


# What an architecture wants beside the sizes that all have. Names as in llama.cpp's gguf-py/gguf/constants.py.
def plain(**more): return lambda r, m: dict(more)


def experts(ffn="expert_feed_forward_length", **more):
    def keys(r, m):
        out = {"expert_count": r.choice([4, 8, 16]), "expert_used_count": r.choice([2, 4]), **more}
        if ffn: out[ffn] = r.choice([256, 512, 768])
        return out
    return keys


def windows(choices, **more):
    return lambda r, m: {"attention.sliding_window": r.choice(choices), **more}


def latent(r, m):
    return {"attention.q_lora_rank": r.choice([256, 512]), "attention.kv_lora_rank": 512, "rope.dimension_count": 64,
            "attention.head_count_kv": 1, "attention.key_length": 576, "attention.value_length": 512,
            "attention.key_length_mla": 192, "attention.value_length_mla": 128, "leading_dense_block_count": 1,
            "expert_count": 8, "expert_used_count": 2, "expert_shared_count": 1, "expert_feed_forward_length": 256,
            "expert_weights_scale": 1.0, "vocab_size": m["vocab_size"]}


def states(r, m, inner=2, groups=0, rank=True):
    out = {"ssm.conv_kernel": 4, "ssm.inner_size": inner * m["embedding_length"], "ssm.state_size": r.choice([16, 64, 128])}
    out["ssm.time_step_rank"] = m["embedding_length"] // 16 if rank else inner * m["embedding_length"] // 64
    if groups: out["ssm.group_count"] = groups
    return out


def hybrid(every, **more):
    """State spaces, and attention on every so many layers: by the number of KV heads of a layer."""
    def keys(r, m):
        kv = [m["attention.head_count_kv"] if i % every == every - 1 else 0 for i in range(m["block_count"])]
        return {**states(r, m, groups=1, rank=False), "attention.head_count_kv": kv, **more}
    return keys


def nemotron_h(r, m):
    n = m["block_count"]
    kv = [m["attention.head_count_kv"] if i % 4 == 2 else 0 for i in range(n)]
    ff = [m["feed_forward_length"] if i % 4 == 3 else 0 for i in range(n)]
    return {**states(r, m, groups=2, rank=False), "attention.head_count_kv": kv, "feed_forward_length": ff, **LAYER_NORM}


def lfm2(r, m):
    kv = [m["attention.head_count_kv"] if i % 3 == 2 else 0 for i in range(m["block_count"])]
    return {"shortconv.l_cache": r.choice([3, 4]), "attention.head_count_kv": kv}


def qwen3next(r, m):
    return {**experts(expert_shared_feed_forward_length=256)(r, m), "ssm.conv_kernel": 4, "ssm.inner_size": 1024, "ssm.state_size": 128,
            "ssm.time_step_rank": 8, "ssm.group_count": 4, "full_attention_interval": 4, "attention.key_length": 256,
            "attention.value_length": 256, "rope.dimension_count": 64}


LAYER_NORM = {"attention.layer_norm_epsilon": 1e-5}
ARCHITECTURES = {
    "llama": plain(), "qwen2": plain(), "qwen3": plain(), "gemma": plain(), "phi3": plain(), "granite": plain(logit_scale=1.0, residual_scale=1.0, embedding_scale=1.0, **{"attention.scale": 1.0}), "internlm2": plain(),
    "minicpm": plain(), "smollm3": plain(), "glm4": plain(), "ernie4_5": plain(), "hunyuan-dense": plain(), "mistral3": plain(),
    "seed_oss": plain(), "exaone": plain(), "olmo2": plain(), "baichuan": plain(), "xverse": plain(), "arcee": plain(), "deci": plain(),
    "olmo": plain(**LAYER_NORM), "stablelm": plain(**LAYER_NORM), "nemotron": plain(**LAYER_NORM), "command-r": plain(logit_scale=1.0, **LAYER_NORM),
    "starcoder2": plain(**LAYER_NORM), "phi2": plain(**LAYER_NORM), "gptneox": plain(use_parallel_residual=True, **LAYER_NORM),
    "gpt2": plain(**LAYER_NORM), "bloom": plain(**LAYER_NORM), "falcon": plain(**LAYER_NORM), "mpt": plain(**LAYER_NORM),
    "qwen3moe": experts(), "qwen2moe": experts(expert_shared_feed_forward_length=512), "olmoe": experts(ffn=None), "granitemoe": experts(ffn=None, logit_scale=1.0, residual_scale=1.0, embedding_scale=1.0, **{"attention.scale": 1.0}),
    "dbrx": experts(ffn=None, **LAYER_NORM, **{"attention.clamp_kqv": 8.0}), "ernie4_5-moe": experts(interleave_moe_layer_step=1, leading_dense_block_count=1),
    "glm4moe": experts(leading_dense_block_count=1, expert_shared_count=1, nextn_predict_layers=0), "phimoe": experts(ffn=None, **LAYER_NORM),
    "gemma2": windows([512, 1024]), "gemma3": windows([512, 1024]), "cohere2": windows([1024, 4096], logit_scale=1.0, **LAYER_NORM),
    "exaone4": windows([1024]), "gpt-oss": lambda r, m: {**experts()(r, m), "attention.sliding_window": 128, "attention.key_length": 64,
                                                        "attention.value_length": 64},
    "deepseek2": latent, "mamba": lambda r, m: states(r, m), "mamba2": lambda r, m: states(r, m, groups=1, rank=False),
    "jamba": lambda r, m: {**states(r, m), "attention.head_count_kv": [m["attention.head_count_kv"] if i % 4 == 3 else 0 for i in range(m["block_count"])]},
    "granitehybrid": hybrid(4), "falcon-h1": lambda r, m: states(r, m, groups=1, rank=False), "nemotron_h": nemotron_h, "lfm2": lfm2,
    "qwen3next": qwen3next,
}


def draw_keys(arch, r):
    head = r.choice([64, 64, 128])
    heads = r.choice([4, 8, 16])
    m = {"block_count": r.choice([4, 5, 6, 8, 12]), "context_length": r.choice([2048, 8192, 32768]), "embedding_length": r.choice([512, 1024, 1536, 2048]),
         "feed_forward_length": r.choice([1024, 1536, 3072, 4096]), "attention.head_count": heads,
         "attention.head_count_kv": r.choice([h for h in (1, 2, 4, 8, heads) if heads % h == 0]),
         "attention.layer_norm_rms_epsilon": 1e-5, "vocab_size": r.choice([2048, 32000, 50304, 128256, 151936])}
    free = arch not in ("bloom", "mpt", "gpt2", "gptneox", "falcon", "baichuan", "phi2", "olmo2", "olmoe", "qwen2moe", "xverse")
    if free and r.random() < 0.5:
        m |= {"attention.key_length": head, "attention.value_length": head, "rope.dimension_count": head}
    else:
        m["embedding_length"] = heads * head
        m["rope.dimension_count"] = head
    if arch in ("bloom", "mpt", "gpt2", "gptneox", "phi2", "baichuan"): m["attention.head_count_kv"] = heads
    m |= ARCHITECTURES[arch](r, m)
    keys = {"general.architecture": arch, "general.file_type": 1, "tokenizer.ggml.model": "no_vocab"}
    return keys | {f"{arch}.{k}": v for k, v in m.items()}


def discover(oracle, path, keys, r):
    """Tensors that the library demands for these keys."""
    tensors, kind = {}, r.choice(["f16", "bf16", "q8_0", "q4_0", "q4_K", "q5_K", "q6_K", "iq4_xs", "mxfp4"])
    arch = keys["general.architecture"]
    vocab, hidden = keys[f"{arch}.vocab_size"], keys[f"{arch}.embedding_length"]
    wide = "q6_K" if kind.endswith("_K") and r.random() < 0.5 else kind

    def typed(name, shape):
        if len(shape) < 2 or name.endswith(".bias") or "norm" in name or "ssm_" in name or "inp" in name or "shortconv" in name or "position" in name:
            return "f32"
        want = wide if name in ("token_embd.weight", "output.weight") else kind
        return want if shape[0] % TYPES[want][1] == 0 else "f16"
    untied = r.random() < 0.5
    if untied: tensors["output.weight"] = ([hidden, vocab], typed("output.weight", [hidden, vocab]))
    for _ in range(4000):
        write(path, keys, tensors)
        a = oracle.ask({"id": "discover", "model": path, "ngl": 0, "ctx": 256})
        if a["outcome"] == "fits": return tensors, None
        why = a.get("error", "")
        missing, wrong = re.search(r"(?:missing tensor '|tensor ')([^']+)'(?: not found)?(?! has)", why), re.search(r"tensor '([^']+)' has wrong shape; expected ([\d, ]+), got", why)
        if missing:
            name = missing.group(1)
            same = re.sub(r"^blk\.\d+\.", "blk.0.", name)
            tensors[name] = tensors.get(same, ([1], "f32"))
        elif wrong:
            shape = [int(x) for x in wrong.group(2).split(",")]
            while len(shape) > 1 and shape[-1] == 1: shape.pop()
            tensors[wrong.group(1)] = (shape, typed(wrong.group(1), shape))
        elif "wrong number of tensors" in why and untied and "output.weight" in tensors:
            del tensors["output.weight"]; untied = False
        else: return None, why.strip()[-300:]
    return None, "never content"


def flags(r, keys):
    arch = keys["general.architecture"]
    layers = keys[f"{arch}.block_count"]
    f = {"ngl": r.choice([99, 99, 99, layers, layers // 2, 1, 0]), "cards": r.choice([1, 1, 1, 2])}
    if f["cards"] == 2 and r.random() < 0.5: f["split"] = r.choice([[3, 1], [1, 1], [1, 2]])
    if r.random() < 0.8: f["ctx"] = r.choice([512, 1000, 4096, 8192, 16384])
    if r.random() < 0.5: f["parallel"] = r.choice([1, 1, 2, 4, 8])
    if "parallel" in f and r.random() < 0.2: f["unified"] = True
    if r.random() < 0.3: f["ubatch"] = r.choice([128, 256, 1024])
    if r.random() < 0.1: f["batch"] = r.choice([256, 4096])
    if r.random() < 0.3:
        f["ctk"] = r.choice(["q8_0", "q4_0", "bf16", "f32"])
        if r.random() < 0.7: f["ctv"] = f["ctk"]
    f["fa"] = r.choice(["auto", "auto", "on", "off"])
    if r.random() < 0.15: f["swa_full"] = True
    if r.random() < 0.1: f["kv_in_ram"] = True
    if keys.get(f"{arch}.expert_count") and r.random() < 0.4: f["experts_in_ram"] = r.choice([1, 2, layers])
    return f


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("oracle"); ap.add_argument("--models", type=int, default=70); ap.add_argument("--count", type=int, default=350)
    ap.add_argument("--seed", type=int, default=1); ap.add_argument("--only")
    a = ap.parse_args()
    oracle, r = Oracle(a.oracle), random.Random(a.seed)
    names = [n for n in ARCHITECTURES if not a.only or n in a.only.split(",")]
    made = []
    with tempfile.TemporaryDirectory() as folder:
        for i in range(a.models):
            arch = names[i % len(names)]
            keys, path = draw_keys(arch, r), os.path.join(folder, f"m{i}.gguf")
            try: tensors, why = discover(oracle, path, keys, r)
            except (RuntimeError, ValueError) as e: tensors, why, oracle = None, str(e), Oracle(a.oracle)
            if tensors is None:
                print(f"{arch}: {why}", file=sys.stderr); continue
            print(f"{arch}: {len(tensors)} tensors", file=sys.stderr)
            name = f"{arch}#{a.seed}.{i}"
            print(json.dumps({"model": name, "keys": keys, "tensors": [[n, s, t] for n, (s, t) in tensors.items()]}, separators=(",", ":")), flush=True)
            made.append((name, keys, path))
        for i in range(a.count if made else 0):
            name, keys, path = made[i % len(made)]
            f = flags(r, keys)
            try: out = oracle.ask({"id": f"{name}/{i}", "model": path, **f})
            except (RuntimeError, ValueError) as e: out, oracle = {"id": f"{name}/{i}", "outcome": "error", "error": str(e)}, Oracle(a.oracle)
            out.pop("log", None) if out["outcome"] == "fits" else None
            print(json.dumps({"of": name, **out, "flags": f}, separators=(",", ":")), flush=True)


if __name__ == "__main__": main()
