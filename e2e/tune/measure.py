#!/usr/bin/env python3
"""Starts $SERVER in a memory cgroup of its own, sends it requests in a closed loop, and writes dualplane.measure/v1.

Another load tool than `dualplane measure`, by docs/measure.schema.json alone: what a team's own tool would write for `gate` and
`tune`. It speaks to OpenAI-compatible servers that have vLLM's metrics.

    SERVER='vllm serve ./tiny --port 18000' measure.py --port 18000 --concurrency 16 --seconds 20 --e2e 5 > report.json

With --again N --into FOLDER one start is measured N times, each time in a report of its own: FOLDER/NAME-1.json and so on.
"""
import argparse, http.client, json, os, signal, statistics, subprocess, sys, threading, time

ARGS = argparse.ArgumentParser()
ARGS.add_argument("--port", type=int, default=18000)
ARGS.add_argument("--concurrency", type=int, default=16)
ARGS.add_argument("--seconds", type=float, default=20)
ARGS.add_argument("--warmup", type=float, default=3)
ARGS.add_argument("--window", type=float, default=2)
ARGS.add_argument("--input-tokens", type=int, default=64)
ARGS.add_argument("--output-tokens", type=int, default=64)
ARGS.add_argument("--e2e", type=float, help="the SLO: seconds of a request")
ARGS.add_argument("--start-timeout", type=float, default=600)
ARGS.add_argument("--runs", type=int, default=1, help="each from a start on")
ARGS.add_argument("--again", type=int, default=0, help="so many reports of one start")
ARGS.add_argument("--into", default=".")
ARGS.add_argument("--name", default="run")
ARGS.add_argument("--build")
ARGS.add_argument("--model")
a = ARGS.parse_args()


def group():
    """A memory cgroup, and how it is read; none where none can be made."""
    for root, v2 in (("/sys/fs/cgroup/memory", False), ("/sys/fs/cgroup", True)):
        path = f"{root}/dualplane-measure-{os.getpid()}"
        try:
            os.mkdir(path)
        except OSError:
            continue
        if os.path.exists(f"{path}/memory.stat"):
            return path, v2
        os.rmdir(path)
    return None, False


GROUP, V2 = group()


def held():
    """Bytes that the kernel cannot take back, by kind."""
    if not GROUP:
        return None
    with open(f"{GROUP}/memory.stat") as f:
        stat = dict(line.split() for line in f)
    pick = lambda *names: next((int(stat[n]) for n in names if n in stat), None)
    return {"anon": pick("total_rss", "anon"), "shmem": pick("total_shmem", "shmem") or 0, "file": pick("total_cache", "file")}


def seconds_of_cpu(pids):
    total = 0
    for pid in pids:
        try:
            with open(f"/proc/{pid}/stat") as f:
                part = f.read().rsplit(") ", 1)[1].split()
            total += int(part[11]) + int(part[12])
        except (OSError, IndexError):
            pass
    return total / os.sysconf("SC_CLK_TCK")


def members():
    try:
        with open(f"{GROUP}/cgroup.procs") as f:
            return [int(p) for p in f.read().split()]
    except (OSError, TypeError):
        return []


def get(path, timeout=5):
    c = http.client.HTTPConnection("127.0.0.1", a.port, timeout=timeout)
    try:
        c.request("GET", path)
        r = c.getresponse()
        return r.status, r.read().decode(errors="replace")
    except OSError:
        return 0, ""
    finally:
        c.close()


def metrics():
    status, text = get("/metrics")
    out = {}
    if status == 200:
        for line in text.splitlines():
            if line.startswith("vllm:"):
                name = line.split("{")[0].split(" ")[0][5:]
                out[name] = out.get(name, 0.0) + float(line.rsplit(" ", 1)[1])
                if name == "cache_config_info":
                    said = dict(pair.split("=", 1) for pair in line[line.index("{") + 1 : line.rindex("}")].split(",") if "=" in pair)
                    blocks, size = (said.get(k, "").strip('"') for k in ("num_gpu_blocks", "block_size"))
                    if blocks.isdigit() and size.isdigit():
                        out["capacity_tokens"] = int(blocks) * int(size)
    return out


def percentile(values, share):
    values = sorted(values)
    at = share * (len(values) - 1)
    low = int(at)
    return values[low] + (values[min(low + 1, len(values) - 1)] - values[low]) * (at - low)


def distribution(values):
    if not values:
        return None
    p = lambda s: percentile(values, s)
    return {"n": len(values), "mean": statistics.fmean(values), "p50": p(0.5), "p90": p(0.9), "p95": p(0.95), "p99": p(0.99), "max": max(values)}


class Load:
    """A closed loop: each client sends its next request when the last one ended."""

    def __init__(self):
        self.done, self.failed, self.sent, self.lock, self.until = [], {}, 0, threading.Lock(), None

    def client(self, number, stop):
        sent = 0
        while not stop.is_set():
            sent += 1
            body = json.dumps({
                "model": a.model or "m", "stream": True, "max_tokens": a.output_tokens, "min_tokens": a.output_tokens, "ignore_eos": True, "temperature": 0,
                "prompt": [(number * 7919 + sent * 104729 + i * 31) % 1500 + 10 for i in range(a.input_tokens)],
            })
            began, first, tokens, why = time.monotonic(), None, 0, None
            with self.lock:
                self.sent += 1
            try:
                c = http.client.HTTPConnection("127.0.0.1", a.port, timeout=300)
                c.request("POST", "/v1/completions", body, {"Content-Type": "application/json"})
                r = c.getresponse()
                if r.status != 200:
                    why = f"http {r.status}"
                    r.read()
                else:
                    for line in r:
                        if line.startswith(b"data: {"):
                            first = first or time.monotonic()
                            tokens += 1
                        elif line.startswith(b"data: [DONE]"):
                            break
                    else:
                        why = "cut off"
                c.close()
            except OSError as e:
                why = type(e).__name__
            ended = time.monotonic()
            with self.lock:
                if why:
                    self.failed[why] = self.failed.get(why, 0) + 1
                else:
                    self.done.append((began, ended, (first or ended) - began, (ended - (first or ended)) / max(tokens - 1, 1), tokens))
            if why:
                time.sleep(0.2)


def start():
    """The server, when it answers."""
    enter = f"echo $$ > {GROUP}/cgroup.procs; " if GROUP else ""
    log = open(os.environ.get("SERVER_LOG", os.devnull), "ab")
    began = time.monotonic()
    server = subprocess.Popen(["sh", "-c", f"{enter}exec {os.environ['SERVER']}"], stdout=log, stderr=log, start_new_session=True)
    try:
        while get("/health", 2)[0] != 200:
            if server.poll() is not None or time.monotonic() - began > a.start_timeout:
                sys.exit("the server did not start")
            time.sleep(0.2)
    except BaseException:
        end(server)
        raise
    return server, time.monotonic() - began, held()


def end(server):
    try:
        os.killpg(server.pid, signal.SIGTERM)
        server.wait(20)
    except (OSError, subprocess.TimeoutExpired):
        pass
    try:
        os.killpg(server.pid, signal.SIGKILL)
    except OSError:
        pass
    server.wait()
    for _ in range(100):
        if not members():
            break
        time.sleep(0.1)


def one_run(number, server, started, start_up):
    load, stop = Load(), threading.Event()
    clients = [threading.Thread(target=load.client, args=(i, stop), daemon=True) for i in range(a.concurrency)]
    [c.start() for c in clients]
    time.sleep(a.warmup)
    base, first = time.monotonic(), metrics()
    cpu = seconds_of_cpu(members())
    samples = []
    while time.monotonic() - base < a.seconds and server.poll() is None:
        samples.append((time.monotonic() - base, held(), metrics()))
        time.sleep(0.25)
    measured = time.monotonic() - base
    cpu = seconds_of_cpu(members()) - cpu
    last = metrics() or (samples[-1][2] if samples else {})
    died = server.poll() is not None
    with load.lock:
        done = [d for d in load.done if d[1] >= base]
        failed = dict(load.failed)
    stop.set()
    if a.again:
        # The next run begins with a server that has nothing to do.
        [c.join(60) for c in clients]
    good = lambda d: a.e2e is None or d[1] - d[0] <= a.e2e
    total = lambda h: h["anon"] + h["shmem"] if h else None
    hosts = [total(h) for _, h, _ in samples if h]
    most = max((h for _, h, _ in samples if h), key=total, default=None)
    series = lambda name: [m[name] for _, _, m in samples if name in m]
    running, waiting, kv = series("num_requests_running"), series("num_requests_waiting"), series("kv_cache_usage_perc")
    preempted = last.get("num_preemptions_total", 0) - first.get("num_preemptions_total", 0) if last else None
    windows = []
    for i in range(int(measured / a.window)):
        inside = [d for d in done if i * a.window <= d[1] - base < (i + 1) * a.window]
        memory = [total(h) for t, h, _ in samples if h and i * a.window <= t < (i + 1) * a.window]
        windows.append({"from_seconds": i * a.window, "seconds": a.window, "host_bytes": max(memory, default=None), "succeeded": len(inside), "good": sum(map(good, inside)),
                        "e2e_p50": percentile([d[1] - d[0] for d in inside], 0.5) if inside else None})
    n_good = sum(map(good, done))
    limit = None
    return {
        "name": str(number), "load": {"mode": "closed", "concurrency": a.concurrency, "seconds": a.seconds + a.warmup, "warmup_seconds": a.warmup},
        "start_seconds": started, "measured_seconds": measured, "cut_short": died,
        "host": {"start_up_bytes": min(total(start_up), max(hosts)), "steady_bytes": int(statistics.median(hosts)), "peak_bytes": max(hosts), "limit_bytes": limit, "without_page_cache": True} if hosts else None,
        "host_split": {"anon_bytes": most["anon"], "shmem_bytes": most["shmem"], "file_bytes": most["file"]} if most else None,
        "kv": {"high_water_share": min(max(kv), 1.0), "mean_share": min(statistics.fmean(kv), 1.0), "preemptions": int(preempted), "capacity_tokens": last.get("capacity_tokens")} if kv else None,
        "queue": {"waiting_peak": max(waiting), "waiting_mean": statistics.fmean(waiting), "running_peak": max(running), "running_mean": statistics.fmean(running)} if waiting and running else None,
        "ttft": distribution([d[2] for d in done]), "itl": distribution([d[3] for d in done]), "e2e": distribution([d[1] - d[0] for d in done]),
        "requests": {"sent": len(done) + sum(failed.values()), "succeeded": len(done), "good": n_good, "failed": [{"reason": k, "count": v} for k, v in failed.items()]},
        "throughput": {"requests_per_second": len(done) / measured, "good_requests_per_second": n_good / measured,
                       "input_tokens_per_second": len(done) * a.input_tokens / measured, "output_tokens_per_second": sum(d[4] for d in done) / measured},
        "use": {"cpu_cores": max(cpu, 0) / measured}, "restarts": [{"exit_code": server.returncode}] if died else [], "windows": windows,
    }


def report(runs):
    return {
        "schema": "dualplane.measure/v1", "tool": {"name": "dualplane", "version": "0.1.0", "load_tool": "e2e/tune/measure.py"},
        "subject": {"engine": "vllm", "model": a.model or "m", "build": a.build, "command": os.environ["SERVER"].split()},
        "hardware": {"gpus": [], "cpus": os.cpu_count()},
        "shape": {"name": f"{a.input_tokens}+{a.output_tokens}", "longest_input_tokens": a.input_tokens, "longest_output_tokens": a.output_tokens},
        "slo": {"e2e_seconds": a.e2e} if a.e2e else None, "runs": runs,
    }


def main():
    try:
        if a.again:
            server, started, start_up = start()
            try:
                for i in range(a.again):
                    with open(f"{a.into}/{a.name}-{i + 1}.json", "w") as f:
                        json.dump(report([one_run(i + 1, server, started, start_up)]), f, indent=1)
                    if server.poll() is not None:
                        sys.exit("the server died")
            finally:
                end(server)
            return
        runs = []
        for i in range(a.runs):
            server, started, start_up = start()
            try:
                runs.append(one_run(i + 1, server, started, start_up))
            finally:
                end(server)
    finally:
        if GROUP:
            os.rmdir(GROUP)
    json.dump(report(runs), sys.stdout, indent=1)


main()
