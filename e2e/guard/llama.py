"""The real llama.cpp server behind `dualplane guard`; see `llama`."""
import asyncio, json, os, random, re, signal, subprocess, sys, tempfile, time, urllib.request
from load import WORDS, for_seconds, post, request, until

if sys.argv[1] == "serve":
    import xllamacpp
    p = xllamacpp.CommonParams()
    p.model.path, p.hostnames, p.port, p.n_ctx, p.n_parallel, p.endpoint_metrics, p.warmup = sys.argv[2], ["127.0.0.1"], int(sys.argv[3]), 8192, 4, True, False
    p.cpuparams.n_threads = p.cpuparams_batch.n_threads = 1
    server = xllamacpp.Server(p)
    signal.pause()

GUARD, SECONDS = sys.argv[1], float(sys.argv[2])
PORT, FRONT, ADMIN = 18571, 18572, 18573
rng = random.Random(int(os.environ.get("E2E_GUARD_SEED", "21")))
failed = []


def check(name, holds, what):
    if not holds: failed.append(name)
    print(json.dumps({"check": name, "holds": bool(holds), "what": what}), flush=True)


def get(port, path):
    with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=30) as answer: return answer.read().decode()


def metric(name): return float(re.search(rf"^llamacpp:{name} ([0-9.e+]+)$", get(PORT, "/metrics"), re.M)[1])


def status(): return json.loads(get(ADMIN, "/status"))


def model(path):
    """Two layers of random weights, and a vocabulary of bytes and a few words."""
    import gguf, numpy as np
    random_weights, layers, width, heads, inner = np.random.default_rng(21), 2, 64, 4, 128
    tokens = list(dict.fromkeys(["<unk>", "<s>", "</s>"] + [f"<0x{b:02X}>" for b in range(256)] + ["\u2581"] + ["\u2581" + w for w in WORDS] + [chr(c) for c in range(33, 127)]))
    w = gguf.GGUFWriter(path, "llama")
    w.add_context_length(8192); w.add_embedding_length(width); w.add_block_count(layers); w.add_feed_forward_length(inner)
    w.add_head_count(heads); w.add_head_count_kv(heads); w.add_layer_norm_rms_eps(1e-5); w.add_rope_dimension_count(width // heads); w.add_vocab_size(len(tokens))
    w.add_tokenizer_model("llama"); w.add_token_list(tokens); w.add_token_scores([0.0] * 259 + [-1.0] * (len(tokens) - 259))
    w.add_token_types([2, 3, 3] + [6] * 256 + [1] * (len(tokens) - 259)); w.add_bos_token_id(1); w.add_eos_token_id(2); w.add_unk_token_id(0)
    def put(name, *shape): w.add_tensor(name, (random_weights.standard_normal(shape) * 0.05).astype(np.float32))
    put("token_embd.weight", len(tokens), width); put("output.weight", len(tokens), width)
    w.add_tensor("output_norm.weight", np.ones(width, np.float32))
    for i in range(layers):
        for n in ("attn_norm", "ffn_norm"): w.add_tensor(f"blk.{i}.{n}.weight", np.ones(width, np.float32))
        for n in ("attn_q", "attn_k", "attn_v", "attn_output"): put(f"blk.{i}.{n}.weight", width, width)
        put(f"blk.{i}.ffn_gate.weight", inner, width); put(f"blk.{i}.ffn_up.weight", inner, width); put(f"blk.{i}.ffn_down.weight", width, inner)
    w.write_header_to_file(); w.write_kv_data_to_file(); w.write_tensors_to_file(); w.close()


def main():
    work = tempfile.mkdtemp(prefix="dualplane-llama-")
    model(f"{work}/tiny.gguf")
    with open(f"{work}/guard.toml", "w") as f:
        # Four slots of 2,048 tokens each: what it can hold, and how many at a time.
        f.write(f'listen = "127.0.0.1:{FRONT}"\nadmin = "127.0.0.1:{ADMIN}"\n[queue]\nwait_seconds = 5\n[tenants]\nby = "header:x-tenant"\n'
                f'[[server]]\nname = "llama"\nurl = "http://127.0.0.1:{PORT}"\nkv_tokens = 8192\nrequests = 4\n')
    log = open(f"{work}/llama.log", "w")
    server = subprocess.Popen([sys.executable, "-B", __file__, "serve", f"{work}/tiny.gguf", str(PORT)], stdout=log, stderr=log)
    guard = subprocess.Popen([GUARD, "guard", "--config", f"{work}/guard.toml"], stderr=open(f"{work}/guard.log", "w"))
    try:
        if not until(60, lambda: get(PORT, "/health")): sys.exit("llama.cpp does not answer:\n" + open(f"{work}/llama.log").read()[-2000:])
        if not until(30, lambda: status()["servers"][0]["up"]): sys.exit("the guard does not see it:\n" + open(f"{work}/guard.log").read()[-2000:])
        check("its engine is known", status()["servers"][0]["engine"] == "llama.cpp", status()["servers"][0]["engine"])
        sample = json.dumps({"content": " ".join(WORDS)}).encode()
        counted = json.load(urllib.request.urlopen(f"http://127.0.0.1:{PORT}/tokenize", sample))["tokens"]
        deferred = 0
        async def watched():
            nonlocal deferred
            load = asyncio.create_task(for_seconds(FRONT, SECONDS, lambda: request(rng, len(counted) / len(WORDS), 700, 32), {"a": 20, "b": 20}))
            while not load.done():
                await asyncio.sleep(0.25)
                deferred = max(deferred, await asyncio.to_thread(metric, "requests_deferred"))
            return await load
        row = asyncio.run(watched())
        words = {w for t in row["by"].values() for w in t}
        done = sum(t.get("done", 0) for t in row["by"].values())
        print(json.dumps(row | {"deferred": deferred}), flush=True)
        check("answers are whole or say why not", done > 0 and words <= {"done", "wait_too_long", "queue_timeout", "queue_full", "pushed_out"}, sorted(words))
        check("it never has more than its slots", deferred == 0, deferred)
        async def cancelled():
            body = request(rng, 1, 200) | {"max_tokens": 1500, "stream": True}
            return await asyncio.gather(*(post(FRONT, body, "cancel", stop_after=rng.uniform(0.2, 1)) for _ in range(12)))
        asyncio.run(cancelled())
        began = time.time()
        check("callers that went away", until(20, lambda: metric("requests_processing") + metric("requests_deferred") == 0), f"it works on none after {time.time() - began:.2f} s")
        check("nothing is held", until(5, lambda: status()["servers"][0]["kv_held"] == 0), status()["servers"][0])
        async def killed():
            streams = [asyncio.create_task(post(FRONT, request(rng, 1, 100) | {"max_tokens": 1500, "stream": True})) for _ in range(4)]
            await asyncio.sleep(1)
            server.kill()
            return [a.code for a in await asyncio.gather(*streams)]
        codes = asyncio.run(killed())
        check("streams of a dead server end with an answer", set(codes) <= {"server_died", "server_down"}, codes)
        guard.send_signal(signal.SIGTERM)
        check("the guard ends in order", guard.wait(30) == 0, guard.returncode)
    finally:
        for p in (guard, server):
            if p.poll() is None: p.kill()
            p.wait()
    print(json.dumps({"failed": failed, "log": work}), flush=True)
    sys.exit(1 if failed else 0)


main()
