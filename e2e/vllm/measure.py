"""Starts a vLLM of the CPU for small random models and prints what it said and what its processes held.

Weights are drawn by the engine (`--load-format dummy`). RssAnon + RssShmem of each process is what the kernel cannot take back;
it is read five times a second, and kept at each line of the log that ends a stage.
"""
import json, os, re, shutil, signal, subprocess, sys, tempfile, threading, time, urllib.request

ENGINE, CASES, WANTED = sys.argv[1], sys.argv[2], sys.argv[3:]
PORT = int(os.environ.get("PORT", "18431"))
LIMIT = 600
MIB = 1 << 20
STAGES = [("load", r"Model loading took|Loading weights took|Loading model weights took"),
          ("kv_cache", r"KV cache size: "), ("ready", r"Application startup complete")]


def model_of(case, folder):
    """The configuration as its class writes it, and a tokenizer."""
    from transformers import CONFIG_MAPPING
    shutil.copytree(os.path.join(ENGINE, "tiny"), folder, ignore=lambda d, n: [f for f in n if f in ("config.json", "model.safetensors")])
    config = CONFIG_MAPPING[case["type"]](**case["config"], bos_token_id=0, eos_token_id=1, dtype="bfloat16")
    config.architectures = [case["architecture"]]
    config.save_pretrained(folder)
    with open(os.path.join(folder, "config.json")) as f: return json.load(f)


def processes(root):
    """The tree below a process: id -> name."""
    parents, names = {}, {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/stat") as f: text = f.read()
        except OSError: continue
        name, rest = text[text.index("(") + 1:text.rindex(")")], text[text.rindex(")") + 2:].split()
        parents[int(pid)], names[int(pid)] = int(rest[1]), name
    found, grown = {root}, True
    while grown:
        more = {p for p, up in parents.items() if up in found} - found
        found |= more
        grown = bool(more)
    return {p: names[p] for p in found if p in names}


def held(pid):
    out = {}
    try:
        with open(f"/proc/{pid}/status") as f:
            for line in f:
                key, _, value = line.partition(":")
                if key in ("RssAnon", "RssShmem", "RssFile"): out[key] = int(value.split()[0]) * 1024
        with open(f"/proc/{pid}/cmdline") as f: out["title"] = f.read().replace("\0", " ").strip()
    except (OSError, ValueError, IndexError): return None
    return out


def role(name, title):
    for word, kind in (("EngineCore", "engine_core"), ("Worker", "worker"), ("resource_tracker", "tracker"), ("vllm serve", "api_server")):
        if word in title or word in name: return kind
    return "other"


class Watch(threading.Thread):
    """Reads the tree until it is told to stop."""
    def __init__(self, root):
        super().__init__(daemon=True)
        self.root, self.now, self.peak, self.by, self.at_peak, self.done = root, 0, 0, {}, {}, False

    def run(self):
        while not self.done:
            total, by, programs = 0, {}, {}
            for pid, name in processes(self.root).items():
                h = held(pid)
                if not h: continue
                own = h.get("RssAnon", 0) + h.get("RssShmem", 0)
                kind = role(name, h["title"])
                r = by.setdefault(kind, [0, 0, 0])
                r[0] += 1; r[1] += own; r[2] += h.get("RssFile", 0)
                total += own
                # What is no process of the engine by its title is told by its program: a compiler, say.
                program = kind if kind != "other" else name.strip()
                programs[program] = programs.get(program, 0) + own
            if total > self.peak: self.peak, self.at_peak = total, programs
            self.now = total
            self.last = by
            for kind, (n, own, file) in by.items():
                k = self.by.setdefault(kind, {"count": 0, "peak": 0, "file_peak": 0})
                k["count"] = max(k["count"], n); k["peak"] = max(k["peak"], own); k["file_peak"] = max(k["file_peak"], file)
            time.sleep(0.2)


def ask(prompt, tokens):
    body = json.dumps({"model": "m", "prompt": prompt, "max_tokens": tokens, "ignore_eos": True}).encode()
    request = urllib.request.Request(f"http://127.0.0.1:{PORT}/v1/completions", body, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=300) as answer: return json.load(answer)["usage"]


def measure(case):
    work = tempfile.mkdtemp(prefix="dualplane-cpu-")
    folder = os.path.join(work, "m")
    row = {"name": case["name"], "args": case["args"], "env": case["env"]}
    try:
        row["config"] = model_of(case, folder)
        env = {"PATH": os.environ["PATH"], "HOME": work, "HF_HUB_OFFLINE": "1", "VLLM_NO_USAGE_STATS": "1", "VLLM_HOST_IP": "127.0.0.1",
               "GLOO_SOCKET_IFNAME": "lo", "VLLM_LOGGING_COLOR": "0", **case["env"]}
        command = [f"{ENGINE}/venv/bin/python", f"{ENGINE}/venv/bin/vllm", "serve", folder, "--port", str(PORT), "--served-model-name", "m",
                   "--load-format", "dummy", *case["args"]]
        started = time.time()
        p = subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=work, start_new_session=True)
        watch = Watch(p.pid); watch.start()
        killer = threading.Timer(LIMIT, lambda: os.killpg(p.pid, signal.SIGKILL)); killer.start()
        log, stages = [], {}
        for line in p.stdout:
            log.append(line.rstrip())
            for name, pattern in STAGES:
                if name not in stages and re.search(pattern, line): stages[name] = {"seconds": round(time.time() - started, 1), "held": watch.now}
            if "ready" in stages: break
        text = "\n".join(log)
        row["stages"] = stages
        if "ready" in stages:
            time.sleep(1.5)
            stages["ready"]["held"] = watch.now
            # The pipe must not fill while requests are answered.
            threading.Thread(target=lambda: [None for _ in p.stdout], daemon=True).start()
            try:
                threads = [threading.Thread(target=ask, args=("hello world " * 60, 64)) for _ in range(8)]
                for t in threads: t.start()
                for t in threads: t.join()
            except Exception as e: row["traffic_error"] = repr(e)
            time.sleep(0.5)
            stages["traffic"] = {"seconds": round(time.time() - started, 1), "held": watch.now}
            for kind, (n, own, file) in watch.last.items():
                watch.by[kind].update(serving=own)
        watch.done = True
        os.killpg(p.pid, signal.SIGKILL) if p.poll() is None else None
        p.wait(); killer.cancel()
        watch.join()
        answer = {"outcome": "fits" if "ready" in stages else "refused" if re.search(r"KV cache is needed|No available memory|larger than the maximum", text) else "error"}
        for key, pattern in (("kv_tokens", r"KV cache size: ([\d,]+) tokens"), ("concurrency", r"tokens per request: ([\d.,]+)x"),
                             ("num_blocks", r"# CPU blocks: ([\d,]+)"), ("pool", r"(?:Explicitly|Auto) set \(([\d.]+)/[\d.]+\) GiB"),
                             ("node", r"(?:Explicitly|Auto) set \([\d.]+/([\d.]+)\) GiB"), ("consumed", r"([\d.]+) GiB memory was consumed"),
                             ("weights_gib", r"Model loading took ([\d.]+) GiB")):
            found = re.search(pattern, text)
            if found: answer[key] = float(found[1].replace(",", ""))
        found = re.search(r"^.*?(?:ValueError|NotImplementedError|RuntimeError|AssertionError): (.*)$", text, re.M)
        if answer["outcome"] != "fits" and found: answer["refusal"] = found[1]
        row.update(answer=answer, processes=watch.by, peak=watch.peak, at_peak=watch.at_peak)
        if os.environ.get("LOGS"):
            os.makedirs(os.environ["LOGS"], exist_ok=True)
            with open(os.path.join(os.environ["LOGS"], case["name"] + ".log"), "w") as f: f.write(text)
    except Exception as e: row["error"] = repr(e)
    finally: shutil.rmtree(work, ignore_errors=True)
    return row


def main():
    with open(CASES) as f: cases = [json.loads(line) for line in f if line.strip()]
    for case in cases:
        if WANTED and not any(w in case["name"] for w in WANTED): continue
        row = measure(case)
        print(json.dumps(row), flush=True)
        print(f"{case['name']:24} {row.get('answer', row.get('error'))} peak {row.get('peak', 0) // MIB} MiB", file=sys.stderr, flush=True)


main()
