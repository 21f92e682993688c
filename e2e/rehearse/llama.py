"""A real llama-server against `dualplane rehearse`: same requests at the same times, most cells held, and how each request ended.

    llama.py SERVER MODEL DUALPLANE [--runs N]

SERVER is llama.cpp's llama-server, MODEL a small .gguf (`--write MODEL` makes one, with the package gguf). The time of a step is
measured with two requests before each run. Held is what the server's own log says of its slots. Bounds: most cells within 2 %, and
the same number of requests refused, cut short and broken off.
"""

import argparse
import json
import random
import re
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request


def write(path):
    import numpy as np
    import gguf

    wide, vocab = 64, 300
    w = gguf.GGUFWriter(path, "llama")
    w.add_context_length(8192)
    w.add_embedding_length(wide)
    w.add_block_count(2)
    w.add_feed_forward_length(128)
    w.add_head_count(2)
    w.add_head_count_kv(2)
    w.add_rope_dimension_count(32)
    w.add_layer_norm_rms_eps(1e-5)
    w.add_vocab_size(vocab)
    w.add_tokenizer_model("llama")
    w.add_token_list(["<unk>", "<s>", "</s>"] + [f"<0x{i:02X}>" for i in range(256)] + [f"w{i}" for i in range(vocab - 259)])
    w.add_token_scores([0.0] * vocab)
    w.add_token_types([2, 3, 3] + [6] * 256 + [1] * (vocab - 259))
    rng = np.random.default_rng(1)
    def tensor(name, *shape):
        w.add_tensor(name, (rng.standard_normal(shape) * 0.05).astype(np.float32))
    tensor("token_embd.weight", vocab, wide)
    tensor("output.weight", vocab, wide)
    tensor("output_norm.weight", wide)
    for i in range(2):
        for name, shape in [("attn_norm", (wide,)), ("ffn_norm", (wide,)), ("attn_q", (wide, wide)), ("attn_k", (wide, wide)),
                            ("attn_v", (wide, wide)), ("attn_output", (wide, wide)), ("ffn_gate", (128, wide)), ("ffn_up", (128, wide)),
                            ("ffn_down", (wide, 128))]:
            tensor(f"blk.{i}.{name}.weight", *shape)
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()


def ask(port, prompt, answer, seed):
    chance = random.Random(seed)
    body = {"prompt": [chance.randrange(259, 300) for _ in range(prompt)], "n_predict": answer, "ignore_eos": True,
            "cache_prompt": False}
    r = urllib.request.Request(f"http://127.0.0.1:{port}/completion", json.dumps(body).encode(), {"Content-Type": "application/json"})
    try:
        return json.load(urllib.request.urlopen(r, timeout=300))
    except urllib.error.HTTPError as e:
        return {"error": e.read().decode()}


def held(log, cells):
    """The most tokens that slots at work had together, by the log from the first request on."""
    slots, most = {}, 0
    for line in log.splitlines():
        slot = re.search(r"id +(\d+) \|", line)
        n = re.search(r"n_tokens = (\d+)", line)
        if not slot or not n:
            continue
        if "slot decode token" in line:
            slots[slot[1]] = int(n[1]) + 1
        elif "stop processing" in line or "cached n_tokens" in line:
            slots[slot[1]] = int(n[1])
        # A batch that does not fit is counted by its slots before it is tried.
        most = max(most, min(sum(slots.values()), cells))
        if "stop processing" in line:
            slots.pop(slot[1])
    return most


def run(a, number):
    chance = random.Random(number)
    parallel, shared = chance.choice([2, 4, 8]), number % 2 == 0
    context = parallel * chance.choice([256, 512])
    batch = chance.choice([64, 256, 2048])
    longest = context if shared else context // parallel
    count, gap = 24, chance.choice([0.0, 0.05, 0.3])
    requests = []
    for i in range(count):
        requests.append({"at": round(i * gap, 3), "input": chance.randrange(5, longest // 2), "output": chance.randrange(5, longest // 3)})
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    flags = ["-m", a.model, "-c", str(context), "--parallel", str(parallel), "-b", str(batch), "-ub", str(min(batch, 512)),
             "--kv-unified" if shared else "--no-kv-unified"]
    log = tempfile.NamedTemporaryFile("w+", suffix=".log")
    server = subprocess.Popen([a.server, *flags, "--port", str(port), "-t", "1", "-lv", "6", "--no-warmup"], stdout=log, stderr=log)
    try:
        for _ in range(300):
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=1)
                break
            except OSError:
                time.sleep(0.1)
        one = ask(port, 5, min(100, longest // 3), 1)["timings"]
        two = ask(port, longest // 2, 1, 2)["timings"]
        base, token = one["predicted_ms"] / one["predicted_n"] / 1e3, two["prompt_ms"] / two["prompt_n"] / 1e3
        log.seek(0, 2)
        before = log.tell()
        answers = [None] * count
        begin = time.monotonic()
        def client(i):
            time.sleep(max(0.0, requests[i]["at"] - (time.monotonic() - begin)))
            answers[i] = ask(port, requests[i]["input"], requests[i]["output"], i)
        threads = [threading.Thread(target=client, args=(i,)) for i in range(count)]
        for t in threads:
            t.start()
            # At one time they still come in their order.
            time.sleep(0.002)
        for t in threads:
            t.join()
        log.flush()
        with open(log.name, errors="replace") as f:
            f.seek(before)
            most = held(f.read(), context)
    finally:
        server.terminate()
        server.wait()
    errors = [x.get("error", "") for x in answers]
    real = {"peak_blocks": most, "broken_off": sum("Context size has been exceeded" in str(e) for e in errors),
            "rejected": sum("exceeds the available context" in str(e) for e in errors),
            "cut_short": sum(bool(x.get("truncated")) for x in answers)}
    with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as f:
        f.write("".join(json.dumps(r) + "\n" for r in requests))
        f.flush()
        command = [a.dualplane, "rehearse", "--gpu", "H100-80GB", "--trace", f.name, "--no-search", "-o", "json", "--step-time",
                   f"base={base:.8f},token={token:.10f}", "--", "llama-server", *flags]
        done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        sys.exit(done.stderr)
    found = json.loads(done.stdout)["launch"]["outcome"]
    off = abs(found["peak_blocks"] - most) > 0.02 * most or any(found[k] != v for k, v in real.items() if k != "peak_blocks")
    print(f"run {number}: {parallel} slots, {'one cache' if shared else 'own caches'} of {context}, batch {batch}, every {gap} s: "
          + ", ".join(f"{k} {v}, rehearsed {found[k]}" for k, v in real.items()) + ("  OUT OF BOUNDS" if off else ""), flush=True)
    return off


def main():
    p = argparse.ArgumentParser()
    p.add_argument("server")
    p.add_argument("model", nargs="?")
    p.add_argument("dualplane", nargs="?")
    p.add_argument("--runs", type=int, default=12)
    p.add_argument("--out", type=int, default=0, help="so many runs may be out of bounds")
    p.add_argument("--write", action="store_true", help="SERVER is the path of a model to write")
    a = p.parse_args()
    if a.write:
        write(a.server)
        return
    bad = sum(run(a, n) for n in range(a.runs))
    print(f"{a.runs} runs, {bad} out of bounds")
    sys.exit(bad > a.out)


main()
