"""Load on a real vLLM with a small KV cache, without and with `dualplane guard`; see `run`. Standard library only."""
import asyncio, json, math, os, random, re, signal, subprocess, sys, tempfile, time, urllib.request

ENGINE, GUARD = sys.argv[1], sys.argv[2]
SECONDS = float(os.environ.get("E2E_GUARD_SECONDS", "12"))
# Blocks of 128 tokens: one prompt of 8,000 tokens takes most of them.
BLOCKS = 72
LIMIT = int(os.environ.get("E2E_GUARD_LIMIT", str(5 << 30)))
GROUP = f"/sys/fs/cgroup/memory/dualplane-guard-{os.getpid()}"
PORT, FRONT, ADMIN = 18561, 18562, 18563
WORKERS = 40
random.seed(int(os.environ.get("E2E_GUARD_SEED", "21")))
failed = []


def say(**row): print(json.dumps(row), flush=True)


def check(name, holds, what):
    if not holds: failed.append(name)
    say(check=name, holds=bool(holds), what=what)


def get(port, path):
    with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=30) as answer: return answer.read().decode()


def metric(name):
    found = re.findall(rf"^{re.escape(name)}(?:{{[^}}]*}})? ([0-9.e+]+)$", get(PORT, "/metrics"), re.M)
    return sum(map(float, found))


def kills():
    with open(f"{GROUP}/memory.oom_control") as f: return int(re.search(r"oom_kill (\d+)", f.read())[1])


def start_engine(work):
    env = {"PATH": os.environ["PATH"], "HOME": work, "HF_HUB_OFFLINE": "1", "VLLM_NO_USAGE_STATS": "1", "VLLM_HOST_IP": "127.0.0.1",
           "GLOO_SOCKET_IFNAME": "lo", "VLLM_LOGGING_COLOR": "0", "VLLM_CPU_KVCACHE_SPACE": "1"}
    command = [f"{ENGINE}/venv/bin/python", f"{ENGINE}/venv/bin/vllm", "serve", f"{ENGINE}/tiny", "--port", str(PORT),
               "--served-model-name", "m", "--num-gpu-blocks-override", str(BLOCKS), "--block-size", "128", "--max-model-len", "8192",
               "--no-enable-prefix-caching", "--enforce-eager"]
    log = open(f"{work}/vllm.log", "w")
    def enter():
        with open(f"{GROUP}/cgroup.procs", "w") as f: f.write(str(os.getpid()))
    p = subprocess.Popen(command, env=env, stdout=log, stderr=log, cwd=work, start_new_session=True, preexec_fn=enter)
    began = time.time()
    while time.time() - began < float(os.environ.get("E2E_GUARD_START", "300")):
        if p.poll() is not None: sys.exit("vLLM ended:\n" + open(f"{work}/vllm.log").read()[-3000:])
        try:
            get(PORT, "/health")
            say(phase="start", seconds=round(time.time() - began, 1))
            return p
        except OSError: time.sleep(0.5)
    sys.exit("vLLM does not answer:\n" + open(f"{work}/vllm.log").read()[-3000:])


WORDS = "the model server holds tokens of every request in its cache until it ends".split()


def prompt(tokens, per_word): return " ".join(random.choice(WORDS) for _ in range(max(1, int(tokens / per_word))))


async def post(port, body, tenant, stop_after=None, timeout=240):
    """Status, code of a refusal, finish, seconds. `stop_after`: goes away after so many seconds."""
    raw = json.dumps(body).encode()
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 24)
    began = time.time()
    try:
        writer.write(f"POST /v1/completions HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-type: application/json\r\n"
                     f"x-tenant: {tenant}\r\ncontent-length: {len(raw)}\r\n\r\n".encode() + raw)
        async def answer():
            await writer.drain()
            return await reader.read()
        async def whole():
            parts = [await answer()]
            while parts[-1]: parts.append(await reader.read(1 << 20))
            return b"".join(parts)
        try: got = await asyncio.wait_for(whole(), stop_after or timeout)
        except asyncio.TimeoutError: return (0, "gone" if stop_after else "timeout", False, time.time() - began)
        status = int(got.split(b" ", 2)[1]) if got.startswith(b"HTTP/1.1 ") else 0
        code = re.search(rb'"code": ?"([a-z_]+)"', got)
        done = b"[DONE]" in got if body.get("stream") else b'"usage"' in got
        return (status, code[1].decode() if code else "", done, time.time() - began)
    except (OSError, asyncio.IncompleteReadError) as e: return (0, type(e).__name__, False, time.time() - began)
    finally: writer.close()


def request(per_word, most=7800):
    tokens = math.exp(random.uniform(math.log(10), math.log(most)))
    return {"model": "m", "prompt": prompt(tokens, per_word), "max_tokens": random.randint(16, 256), "ignore_eos": True,
            "stream": random.random() < 0.5}


async def load(port, seconds, per_word, tenants):
    """Workers that send one request after another; what became of them by tenant."""
    until, out = time.time() + seconds, {t: {} for t in tenants}
    async def worker(tenant):
        while time.time() < until:
            status, code, done, _ = await post(port, request(per_word), tenant)
            word = "done" if status == 200 and done else code or f"status {status}"
            out[tenant][word] = out[tenant].get(word, 0) + 1
            if status == 429: await asyncio.sleep(0.2)
    await asyncio.gather(*(worker(t) for t, n in tenants.items() for _ in range(n)))
    return out


def phase(name, port, per_word, tenants):
    before = (metric("vllm:num_preemptions_total"), metric("vllm:generation_tokens_total"), kills())
    began = time.time()
    by = asyncio.run(load(port, SECONDS, per_word, tenants))
    took = time.time() - began
    done = sum(t.get("done", 0) for t in by.values())
    row = {"phase": name, "requests": sum(sum(t.values()) for t in by.values()), "done": done,
           "preemptions": metric("vllm:num_preemptions_total") - before[0],
           "tokens_per_second": round((metric("vllm:generation_tokens_total") - before[1]) / took, 1),
           "kills": kills() - before[2], "seconds": round(took, 1), "by": by}
    say(**row)
    return row


async def cancels(port, per_word):
    bodies = [dict(request(per_word), max_tokens=256, stream=True) for _ in range(60)]
    return await asyncio.gather(*(post(port, b, "cancel", stop_after=random.uniform(0.05, 1.5)) for b in bodies))


async def flood(port, n, size):
    body = {"model": "m", "prompt": "hello world " * (size // 12), "max_tokens": 1}
    return await asyncio.gather(*(post(port, body, "flood", timeout=120) for _ in range(n)))


def main():
    os.mkdir(GROUP)
    with open(f"{GROUP}/memory.limit_in_bytes", "w") as f: f.write(str(LIMIT))
    work, engine, guard = tempfile.mkdtemp(prefix="dualplane-guard-"), None, None
    try:
        engine = start_engine(work)
        sample = " ".join(WORDS)
        counted = json.load(urllib.request.urlopen(urllib.request.Request(
            f"http://127.0.0.1:{PORT}/tokenize", json.dumps({"model": "m", "prompt": sample}).encode(), {"Content-Type": "application/json"})))
        per_word = counted["count"] / len(WORDS)
        config = f"{work}/guard.toml"
        def write(extra=""):
            with open(config, "w") as f:
                f.write(f'listen = "127.0.0.1:{FRONT}"\nadmin = "127.0.0.1:{ADMIN}"\n{extra}[tenants]\nby = "header:x-tenant"\n'
                        f'[[server]]\nname = "vllm"\nurl = "http://127.0.0.1:{PORT}"\ncgroup = "{GROUP}"\n')
        write()
        bare = phase("without guard", PORT, per_word, {"a": WORKERS // 2, "b": WORKERS // 2})
        guard = subprocess.Popen([GUARD, "guard", "--config", config], stderr=open(f"{work}/guard.log", "w"))
        began = time.time()
        while True:
            try:
                if json.loads(get(ADMIN, "/status"))["servers"][0]["kv_tokens"]: break
            except OSError: pass
            if time.time() - began > 30: sys.exit("the guard does not see the KV cache:\n" + open(f"{work}/guard.log").read())
            time.sleep(0.2)
        held = phase("with guard", FRONT, per_word, {"a": WORKERS // 2, "b": WORKERS // 2})
        check("no kill", held["kills"] == 0, held["kills"])
        check("preemptions", held["preemptions"] <= max(1, 0.01 * held["requests"]), f'{held["preemptions"]} of {held["requests"]} requests; without guard {bare["preemptions"]} of {bare["requests"]}')
        check("a storm without guard", bare["preemptions"] > 0.01 * bare["requests"], bare["preemptions"])
        check("goodput", held["tokens_per_second"] >= 0.6 * bare["tokens_per_second"], f'{held["tokens_per_second"]} tokens/s, without guard {bare["tokens_per_second"]}')
        words = {w for t in held["by"].values() for w in t}
        check("each refusal says why", words <= {"done", "kv_never_fits", "wait_too_long", "queue_timeout", "queue_full", "pushed_out"}, sorted(words))
        flooded = phase("one tenant floods", FRONT, per_word, {"flood": 30, "quiet": 10})
        quiet, noisy = (flooded["by"][t].get("done", 0) for t in ("quiet", "flood"))
        check("fair share", quiet >= 0.8 * (quiet + noisy) / 2, f"{quiet} of {quiet + noisy} went to the tenant with a quarter of the callers")
        asyncio.run(cancels(FRONT, per_word))
        began = time.time()
        while metric("vllm:num_requests_running") + metric("vllm:num_requests_waiting") > 0 and time.time() - began < 15: time.sleep(0.1)
        took = round(time.time() - began, 2)
        status = json.loads(get(ADMIN, "/status"))
        check("cancels", status["servers"][0]["kv_held"] == 0 and took < 15, f"60 callers went away; after {took} s the server works on none, {status['servers'][0]['kv_held']} tokens held")
        write("drain_seconds = 20\n")
        guard.send_signal(signal.SIGHUP)
        row = asyncio.run(load(FRONT, 2, per_word, {"a": 4}))["a"]
        check("reload", set(row) <= {"done", "wait_too_long", "queue_timeout"}, row)
        floods = asyncio.run(flood(FRONT, 24, 24 << 20))
        codes = sorted({c or str(s) for s, c, _, _ in floods})
        check("large bodies", kills() == 0 and engine.poll() is None, codes)
        # Without the guard the same bodies reach the server, while the guard's callers have streams open.
        async def both():
            streams = [post(FRONT, dict(request(per_word, 200), max_tokens=2000, stream=True), "a") for _ in range(4)]
            return await asyncio.gather(flood(PORT, 24, 24 << 20), *streams)
        answers = asyncio.run(both())[1:]
        time.sleep(2)
        status = json.loads(get(ADMIN, "/status"))["servers"][0]
        say(phase="large bodies without guard", kills=kills(), engine=engine.poll(), guard_says=status["last_death"], up=status["up"], streams=[a[:3] for a in answers])
        if kills() == 0:
            os.killpg(engine.pid, signal.SIGKILL)
            time.sleep(2)
        late = asyncio.run(post(FRONT, request(per_word, 100), "a"))
        check("a dead server is answered for", late[0] == 503, late[:2])
        check("streams of a dead server end with an answer", all(d or c in ("server_died", "server_down") for _, c, d, _ in answers), [a[:3] for a in answers])
        if kills(): check("its death is named", json.loads(get(ADMIN, "/status"))["servers"][0]["last_death"] == "host_oom_killed", status["last_death"])
        guard.send_signal(signal.SIGTERM)
        check("the guard ends in order", guard.wait(30) == 0, guard.returncode)
    finally:
        for p in (guard, engine):
            if p and p.poll() is None:
                try: os.killpg(p.pid, signal.SIGKILL) if p is engine else p.kill()
                except ProcessLookupError: pass
                p.wait()
        time.sleep(0.5)
        for pid in open(f"{GROUP}/cgroup.procs").read().split():
            try: os.kill(int(pid), signal.SIGKILL)
            except ProcessLookupError: pass
        for _ in range(50):
            try: os.rmdir(GROUP); break
            except OSError: time.sleep(0.1)
    say(failed=failed, log=work)
    sys.exit(1 if failed else 0)


main()
