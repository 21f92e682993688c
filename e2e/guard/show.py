"""Load on a real vLLM with a small KV cache, without and with `dualplane guard`; see `run`. Standard library only."""
import asyncio, json, os, random, re, signal, ssl, subprocess, sys, tempfile, time, urllib.request
from load import WORDS, all_of, for_seconds, post, request, until

ENGINE, GUARD, NAMES = sys.argv[1], sys.argv[2], sys.argv[3:]
LONG = NAMES != ["short"]
SECONDS = float(os.environ.get("E2E_GUARD_SECONDS", "240"))
# Blocks of 128 tokens: one prompt of 8,000 tokens takes most of them.
BLOCKS = 72
LIMIT = int(os.environ.get("E2E_GUARD_LIMIT", str(5 << 30)))
GROUP = f"/sys/fs/cgroup/memory/dualplane-guard-{os.getpid()}"
PORT, FRONT, ADMIN = 18561, 18562, 18563
rng = random.Random(int(os.environ.get("E2E_GUARD_SEED", "21")))
failed = []


def say(**row): print(json.dumps(row), flush=True)


def check(name, holds, what):
    if not holds: failed.append(name)
    say(check=name, holds=bool(holds), what=what)


def get(port, path):
    with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=60) as answer: return answer.read().decode()


def metric(name):
    found = re.findall(rf"^{re.escape(name)}(?:{{[^}}]*}})? ([0-9.e+]+)$", get(PORT, "/metrics"), re.M)
    return sum(map(float, found))


def kills():
    with open(f"{GROUP}/memory.oom_control") as f: return int(re.search(r"oom_kill (\d+)", f.read())[1])


def status(): return json.loads(get(ADMIN, "/status"))


def enter():
    with open(f"{GROUP}/cgroup.procs", "w") as f: f.write(str(os.getpid()))


class World:
    def __init__(self):
        self.work, self.engine, self.guard = tempfile.mkdtemp(prefix="dualplane-guard-"), None, None

    def start_engine(self):
        env = {"PATH": os.environ["PATH"], "HOME": self.work, "HF_HUB_OFFLINE": "1", "VLLM_NO_USAGE_STATS": "1", "VLLM_HOST_IP": "127.0.0.1",
               "GLOO_SOCKET_IFNAME": "lo", "VLLM_LOGGING_COLOR": "0", "VLLM_CPU_KVCACHE_SPACE": "1", "VLLM_CPU_OMP_THREADS_BIND": "nobind"}
        command = [f"{ENGINE}/venv/bin/python", f"{ENGINE}/venv/bin/vllm", "serve", f"{ENGINE}/tiny", "--port", str(PORT),
                   "--served-model-name", "m", "--num-gpu-blocks-override", str(BLOCKS), "--block-size", "128", "--max-model-len", "8192",
                   "--no-enable-prefix-caching", "--enforce-eager"]
        log = open(f"{self.work}/vllm.log", "w")
        began = time.time()
        self.engine = subprocess.Popen(command, env=env, stdout=log, stderr=log, cwd=self.work, start_new_session=True, preexec_fn=enter)
        up = until(float(os.environ.get("E2E_GUARD_START", "300")), lambda: self.engine.poll() is not None or get(PORT, "/health") is not None)
        if not up or self.engine.poll() is not None: sys.exit("vLLM does not answer:\n" + open(f"{self.work}/vllm.log").read()[-3000:])
        say(phase="start", seconds=round(time.time() - began, 1))

    def write(self, extra="", queue="", server=""):
        with open(f"{self.work}/guard.toml", "w") as f:
            f.write(f'listen = "127.0.0.1:{FRONT}"\nadmin = "127.0.0.1:{ADMIN}"\naccess_log = "{self.work}/access.log"\n{extra}[queue]\n{queue}[tenants]\nby = "header:x-tenant"\n'
                    f'[[server]]\nname = "vllm"\nurl = "http://127.0.0.1:{PORT}"\ncgroup = "{GROUP}"\n{server}')

    def start_guard(self):
        command = [GUARD, "guard", "--config", f"{self.work}/guard.toml"]
        self.guard = subprocess.Popen(command, stderr=open(f"{self.work}/guard.log", "a"))
        if not until(30, lambda: status()["servers"][0]["kv_tokens"]): sys.exit("the guard does not see the KV cache:\n" + self.log())

    def want_guard(self):
        if not self.guard or self.guard.poll() is not None: self.start_guard()

    def make(self): return request(rng, self.per_word)

    def stream(self, most): return request(rng, self.per_word, 200) | {"max_tokens": most, "stream": True, "stream_options": {"include_usage": True}}

    def log(self): return open(f"{self.work}/guard.log").read()

    def said(self, words, before): return until(20, lambda: self.log().count(words) > before)

    def reload(self):
        before = self.log().count("reloaded")
        self.guard.send_signal(signal.SIGHUP)
        return self.said("reloaded", before)

    def stop_guard(self):
        self.guard.send_signal(signal.SIGTERM)
        check("the guard ends in order", self.guard.wait(60) == 0, self.guard.returncode)

    def end(self):
        for p in (self.guard, self.engine):
            if p and p.poll() is None:
                try: os.killpg(p.pid, signal.SIGKILL) if p is self.engine else p.kill()
                except ProcessLookupError: pass
                p.wait()
        time.sleep(0.5)
        for pid in open(f"{GROUP}/cgroup.procs").read().split():
            try: os.kill(int(pid), signal.SIGKILL)
            except ProcessLookupError: pass
        for _ in range(50):
            try: os.rmdir(GROUP); break
            except OSError: time.sleep(0.1)


def idle(): return metric("vllm:num_requests_running") + metric("vllm:num_requests_waiting") == 0


def phase(name, port, seconds, make, tenants):
    before = (metric("vllm:num_preemptions_total"), metric("vllm:generation_tokens_total") + metric("vllm:prompt_tokens_total"), kills())
    began = time.time()
    row = asyncio.run(for_seconds(port, seconds, make, tenants))
    until(20, idle)
    took, words = time.time() - began, [w for t in row["by"].values() for w in t]
    row |= {"phase": name, "requests": sum(sum(t.values()) for t in row["by"].values()), "done": sum(t.get("done", 0) for t in row["by"].values()),
            "preemptions": metric("vllm:num_preemptions_total") - before[0], "kills": kills() - before[2], "seconds": round(took, 1),
            "tokens_per_second": round((metric("vllm:generation_tokens_total") + metric("vllm:prompt_tokens_total") - before[1]) / took, 1), "words": sorted(set(words))}
    say(**row)
    return row


REFUSALS = {"done", "kv_never_fits", "wait_too_long", "queue_timeout", "queue_full", "pushed_out"}


def bounded(row, bare):
    check("no kill", row["kills"] == 0, row["kills"])
    check("preemptions", row["preemptions"] <= max(1, 0.01 * row["requests"]),
          f'{row["preemptions"]} in {row["seconds"]} s with {row["requests"]} answers; without guard {bare["preemptions"]} in {bare["seconds"]} s with {bare["requests"]}')
    # In a few seconds of a busy machine there is none to see.
    if LONG: check("a storm without guard", bare["preemptions"] > max(1, 0.01 * bare["requests"]), bare["preemptions"])
    check("each refusal says why", set(row["words"]) <= REFUSALS, row["words"] + row["odd"])


def fair(row, weights):
    """Tokens that were done within the time, by tenant. All of them always had more to send."""
    all_tokens, all_weights = sum(row["tokens"].values()), sum(weights.values())
    parts = {t: round(row["tokens"][t] / max(1, all_tokens) / (w / all_weights), 2) for t, w in weights.items()}
    if not LONG and row["done"] < 60: return say(skipped="fair share", what=f'{row["done"]} requests were done: single ones decide', parts=parts)
    check("fair share", min(parts.values()) >= 0.8, f"{parts} of the fair share; {row['tokens']} tokens")


def flood(w):
    """One tenant sends three times as much. Small requests and a small budget: each tenant always has more to send than its share, and single
    requests weigh little."""
    w.write(server="kv_tokens = 2048\n")
    w.reload()
    row = phase("one tenant floods", FRONT, SECONDS / 6 if LONG else 12, lambda: request(rng, w.per_word, 400, 32), {"flood": 60, "quiet": 20})
    fair(row, {"flood": 1, "quiet": 1})
    w.write()
    w.reload()


async def cancelled(make, n):
    bodies = [make() | {"max_tokens": 256, "stream": True} for _ in range(n)]
    return await asyncio.gather(*(post(FRONT, b, "cancel", stop_after=rng.uniform(0.05, 1.5)) for b in bodies))


def contrast(w):
    """Five times what it can hold, without and with the guard."""
    bare = phase("without guard", PORT, SECONDS / 6 if LONG else 6, w.make, {"a": 20, "b": 20})
    w.want_guard()
    row = phase("with guard", FRONT, SECONDS / 2 if LONG else 10, w.make, {"a": 20, "b": 20})
    bounded(row, bare)
    if LONG: fair(row, {"a": 1, "b": 1})


def cancels(w):
    """Storms of callers that go away, one after another."""
    for storm in range(5 if LONG else 1):
        asyncio.run(cancelled(w.make, 40))
        began = time.time()
        until(15, idle)
        took = round(time.time() - began, 2)
        nothing_held = until(5, lambda: status()["servers"][0]["kv_held"] == 0)
        check("cancels", took < 15 and nothing_held, f"callers went away; after {took} s the server works on none")


def reload(w):
    """The configuration is read again under streams."""
    async def during():
        streams = [asyncio.create_task(post(FRONT, w.stream(600))) for _ in range(4)]
        await asyncio.sleep(0.5)
        w.write("drain_seconds = 20\n")
        taken = await asyncio.to_thread(w.reload)
        new = await asyncio.gather(*(post(FRONT, request(rng, w.per_word, 200)) for _ in range(8)))
        return taken, [a.word for a in await asyncio.gather(*streams)], [a.word for a in new]
    taken, streams, new = asyncio.run(during())
    check("reload", taken and set(streams + new) == {"done"}, {"streams": streams, "new": new})
    w.write()
    w.reload()


def tokens(w):
    """The model's own tokenizer.json beside the guard: what is paid for a prompt, beside what the server counts of it."""
    w.write(server=f'[[tokenizer]]\nfile = "{ENGINE}/tiny/tokenizer.json"\n')
    if not w.reload():
        say(phase="tokens", skipped=w.log().splitlines()[-1:])
        return w.write()
    before = len(open(f"{w.work}/access.log").readlines())
    def send(path, body):
        ask = urllib.request.Request(f"http://127.0.0.1:{FRONT}{path}", json.dumps(body | {"model": "m", "max_tokens": 1}).encode(), {"Content-Type": "application/json"})
        with urllib.request.urlopen(ask, timeout=120) as answer: return json.load(answer)["usage"]["prompt_tokens"]
    for _ in range(40):
        text = request(rng, w.per_word, 6000)["prompt"] + rng.choice(["", " \u00e4\u4f60\U0001f600", "\n\n  x = {'a': 1}"])
        send("/v1/completions", {"prompt": text})
        words = text.split(" ")
        turns = [{"role": rng.choice(["user", "assistant"]), "content": " ".join(words[i::4])} for i in range(4)]
        send("/v1/chat/completions", {"messages": turns + [{"role": "user", "content": "end"}]})
    until(10, lambda: len(open(f"{w.work}/access.log").readlines()) >= before + 80)
    rows = [json.loads(line) for line in open(f"{w.work}/access.log").readlines()[before:]]
    # Blocks of 128 tokens are paid whole, and one token is generated.
    least = [-(-(r["prompt_tokens"] + 1) // 128) * 128 for r in rows]
    over = [r["kv_tokens"] - n for r, n in zip(rows, least)]
    page = get(ADMIN, "/metrics")
    counted = {by: int(n) for by, n in re.findall(r'prompts_total\{counted_by="(\w+)"\} (\d+)', page)}
    say(phase="tokens", prompts=len(rows), counted_by=counted, exact=over.count(0), blocks_over=sum(over) // 128)
    check("prompts are counted by the tokenizer", counted["tokenizer"] >= 80 and not status()["other_tokenizer"], counted)
    check("nobody pays less than the server counts", min(over) >= 0, min(over))
    check("nobody pays two blocks too much", max(over) <= 128, max(over))
    w.write()
    w.reload()


def death(w):
    """kill -9 of the server in the middle of streams; then it comes back."""
    async def killed():
        streams = [asyncio.create_task(post(FRONT, w.stream(4000))) for _ in range(4)]
        await asyncio.sleep(1)
        os.killpg(w.engine.pid, signal.SIGKILL)
        return [a.code for a in await asyncio.gather(*streams)]
    codes = asyncio.run(killed())
    check("streams of a dead server end with an answer", set(codes) <= {"server_died", "server_down"}, codes)
    until(5, lambda: not status()["servers"][0]["up"])
    late = asyncio.run(post(FRONT, request(rng, w.per_word, 100)))
    check("a dead server is answered for", late.status == 503, late.word)
    if LONG:
        w.engine.wait()
        w.start_engine()
        check("it comes back", until(20, lambda: status()["servers"][0]["up"]), "")
        answers = [asyncio.run(post(FRONT, request(rng, w.per_word, 100))).word for _ in range(4)]
        check("and is asked again", set(answers) == {"done"}, answers)


def goodput(w):
    """The same work by a limit of requests at a time, and by the guard with all callers at once. The limits are tried with half of it; then
    the guard and the best of them take all of it, twice each. The guard has seen the first half once, as it has whatever came before. What
    the limits let pass fills the cache, for which the guard gives out less, and more again only slowly: it is waited for."""
    bodies = [w.make() for _ in range(2 * max(24, int(SECONDS / 8)))]
    half = bodies[:len(bodies) // 2]
    def by(callers, port, what, work):
        row = asyncio.run(all_of(port, work, callers))
        until(20, idle)
        say(phase=what, **row)
        return row["tokens_per_second"]
    hand = {n: by(n, PORT, "a limit by hand", half) for n in (2, 4, 8, 16)}
    best = max(hand, key=hand.get)
    w.write(queue="wait_seconds = 600\n")
    w.reload()
    until(150, lambda: re.search(r"server_budget_ratio{[^}]*} 1$", get(ADMIN, "/metrics"), re.M))
    by(len(half), FRONT, "the guard learns", half)
    guarded = [by(len(bodies), FRONT, "the same by the guard", bodies) for _ in range(2)]
    limited = [by(best, PORT, "the best limit by hand", bodies) for _ in range(2)]
    mine, theirs = sum(guarded) / 2, sum(limited) / 2
    check("goodput", mine >= 0.95 * theirs, f"{guarded} tokens/s; the best limit by hand ({best}) {limited}: {mine / theirs:.2f}")
    w.write()
    w.reload()


def squeeze(w):
    """Another process in the server's cgroup takes the RAM that is left but for 100 MiB."""
    before = status()["servers"][0]
    left = LIMIT - before["host_held"] - (100 << 20)
    grab = subprocess.Popen([sys.executable, "-c", f"import time; b = bytearray(b'x') * {left}; print('there', flush=True); time.sleep(60)"],
                            stdout=subprocess.PIPE, preexec_fn=enter)
    grab.stdout.readline()
    until(5, lambda: status()["servers"][0]["host_free"] < (64 << 20))
    seen = status()["servers"][0]
    row = phase("squeezed", FRONT, 8, w.make, {"a": 10})
    grab.kill()
    grab.wait()
    check("squeeze", row["kills"] == 0 and seen["host_free"] < before["host_free"] and set(row["words"]) <= REFUSALS,
          f'{before["host_free"] >> 20} MiB free before, {seen["host_free"] >> 20} then; {row["by"]}')
    check("after the squeeze", "done" in phase("released", FRONT, 20, w.make, {"a": 10})["words"], "")


def tls(w):
    """Certificate and key are renewed under a stream."""
    def new(name):
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "1", "-subj", f"/CN={name}",
                        "-keyout", f"{w.work}/new.key", "-out", f"{w.work}/new.crt"], check=True, stderr=subprocess.DEVNULL)
        for end in ("key", "crt"): os.replace(f"{w.work}/new.{end}", f"{w.work}/tls.{end}")
    w.stop_guard()
    new("one")
    w.write(f'[tls]\ncertificate = "{w.work}/tls.crt"\nkey = "{w.work}/tls.key"\n')
    w.start_guard()
    any_name = ssl.create_default_context()
    any_name.check_hostname, any_name.verify_mode = False, ssl.CERT_NONE
    async def renewed():
        stream = asyncio.create_task(post(FRONT, w.stream(1000), tls=any_name))
        await asyncio.sleep(0.5)
        first = ssl.get_server_certificate(("127.0.0.1", FRONT))
        new("two")
        await asyncio.to_thread(w.reload)
        second = ssl.get_server_certificate(("127.0.0.1", FRONT))
        return first != second, (await stream).word, (await post(FRONT, request(rng, w.per_word, 100), tls=any_name)).word
    got = asyncio.run(renewed())
    check("TLS is renewed under a stream", got == (True, "done", "done"), got)
    w.stop_guard()
    w.write()
    w.start_guard()


def bodies(w):
    """Bodies that would fill the host RAM of the server, through the guard and past it."""
    body = {"model": "m", "prompt": "hello world " * (2 << 20), "max_tokens": 1}
    async def flood(port): return [a.word for a in await asyncio.gather(*(post(port, body, "flood", timeout=120) for _ in range(24)))]
    words = sorted(set(asyncio.run(flood(FRONT))))
    check("large bodies", kills() == 0 and w.engine.poll() is None, words)
    # Without the guard the same bodies reach the server, while callers of the guard have streams open.
    async def both():
        streams = [post(FRONT, w.stream(2000)) for _ in range(4)]
        return await asyncio.gather(flood(PORT), *streams)
    streams = [a.word for a in asyncio.run(both())[1:]]
    time.sleep(2)
    said = status()["servers"][0]
    say(phase="large bodies without guard", kills=kills(), engine=w.engine.poll(), guard_says=said["last_death"], up=said["up"], streams=streams)
    if kills():
        check("its death is named", said["last_death"] == "host_oom_killed", said["last_death"])
        check("streams of a killed server end with an answer", set(streams) <= {"done", "server_died", "server_down", "no_server"}, streams)
        os.killpg(w.engine.pid, signal.SIGKILL) if w.engine.poll() is None else None
        w.engine.wait()
        w.start_engine()
        check("it comes back", until(20, lambda: status()["servers"][0]["up"]), "")


# Each needs a server and a guard and leaves both as they were, within the time of its own.
PHASES = {"contrast": contrast, "flood": flood, "squeeze": squeeze, "goodput": goodput, "tls": tls, "bodies": bodies, "cancels": cancels, "reload": reload, "tokens": tokens, "death": death}
SHORT = ["contrast", "flood", "cancels", "reload", "tokens", "death"]
MOST = 600 * max(1, SECONDS / 240)


def too_long(*_): raise TimeoutError(f"a phase took more than {MOST} s")


def main():
    names = {"short": SHORT, "long": list(PHASES)}.get(" ".join(NAMES), NAMES)
    if unknown := set(names) - set(PHASES): sys.exit(f"no phase {', '.join(sorted(unknown))}; there are {', '.join(PHASES)}")
    # Who is told to end takes the server along.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(124))
    signal.signal(signal.SIGALRM, too_long)
    os.mkdir(GROUP)
    with open(f"{GROUP}/memory.limit_in_bytes", "w") as f: f.write(str(LIMIT))
    w = World()
    try:
        w.start_engine()
        sample = " ".join(WORDS)
        ask = urllib.request.Request(f"http://127.0.0.1:{PORT}/tokenize", json.dumps({"model": "m", "prompt": sample}).encode(), {"Content-Type": "application/json"})
        w.per_word = json.load(urllib.request.urlopen(ask))["count"] / len(WORDS)
        w.write()
        for name in names:
            began = time.time()
            signal.alarm(int(MOST))
            try:
                if name != "contrast": w.want_guard()
                PHASES[name](w)
            except (OSError, KeyError) as e: check(name, False, f"{type(e).__name__}: {e}; {w.log()[-500:]}")
            finally: signal.alarm(0)
            say(over=name, seconds=round(time.time() - began, 1), kills=kills())
        w.stop_guard()
    finally: w.end()
    say(failed=failed, log=w.work)
    sys.exit(1 if failed else 0)


main()
