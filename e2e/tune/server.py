#!/usr/bin/env python3
"""A small server that batches as model servers do: a bound on what runs, blocks of a KV cache that is really allocated, preemption, and vLLM's
metrics. Its steps take time by the clock, not by the processor, so that what it serves does not depend on what else the machine does.

    server.py --port 18000 --max-num-seqs 8 --num-gpu-blocks-override 64 --weights 96
"""
import argparse, json, random, threading, time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

P = argparse.ArgumentParser()
P.add_argument("serve", nargs="*")
P.add_argument("--port", type=int, default=18000)
P.add_argument("--host", default="127.0.0.1")
P.add_argument("--max-num-seqs", type=int, default=256)
P.add_argument("--num-gpu-blocks-override", type=int, default=512)
P.add_argument("--weights", type=float, default=64, help="MiB")
P.add_argument("--noise", type=float, default=1, help="MiB that differ from start to start")
P.add_argument("--leak", type=float, default=0, help="MiB an hour that are never given back")
P.add_argument("--step", type=float, default=0.02, help="seconds of a step")
P.add_argument("--each", type=float, default=0.0004, help="seconds more for each sequence")
a = P.parse_args()

BLOCK = 16
MIB = 1 << 20


def touched(n):
    memory = bytearray(int(n))
    for i in range(0, len(memory), 4096):
        memory[i] = 1
    return memory


WEIGHTS = touched(a.weights * MIB + random.random() * a.noise * MIB)
KV = touched(a.num_gpu_blocks_override * 16384)
LOCK = threading.Condition()
WAITING, RUNNING, COUNT = [], [], {"preemptions": 0}


class Sequence:
    def __init__(self, prompt, want):
        self.prompt, self.want, self.made, self.computed, self.event = prompt, want, 0, 0, threading.Condition()

    def blocks(self):
        return -(-(self.prompt + self.made + 1) // BLOCK)


def used():
    return sum(s.blocks() for s in RUNNING)


def steps():
    while True:
        with LOCK:
            while not RUNNING and not WAITING:
                LOCK.wait()
            while WAITING and len(RUNNING) < a.max_num_seqs and used() + WAITING[0].blocks() <= a.num_gpu_blocks_override:
                RUNNING.append(WAITING.pop(0))
            # The last one loses its place and begins anew.
            while len(RUNNING) > 1 and used() > a.num_gpu_blocks_override:
                last = RUNNING.pop()
                last.computed = 0
                WAITING.insert(0, last)
                COUNT["preemptions"] += 1
            batch = list(RUNNING)
        time.sleep(a.step + a.each * len(batch))
        with LOCK:
            for s in batch:
                with s.event:
                    # What was lost is computed again, a step for every eight tokens.
                    if s.computed < s.made:
                        s.computed = min(s.made, s.computed + 8)
                    else:
                        s.made += 1
                        s.computed = s.made
                    s.event.notify()
                if s.made >= s.want:
                    RUNNING.remove(s)


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.0"

    def log_message(self, *_):
        pass

    def do_GET(self):
        with LOCK:
            text = (f"vllm:num_requests_running {len(RUNNING)}\nvllm:num_requests_waiting {len(WAITING)}\n"
                    f"vllm:kv_cache_usage_perc {min(used() / a.num_gpu_blocks_override, 1)}\nvllm:num_preemptions_total {COUNT['preemptions']}\n")
        self.send_response(200)
        self.end_headers()
        self.wfile.write(text.encode() if self.path == "/metrics" else b"")

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        s = Sequence(len(body["prompt"]), body["max_tokens"])
        with LOCK:
            WAITING.append(s)
            LOCK.notify()
        self.send_response(200)
        self.end_headers()
        sent = 0
        while sent < s.want:
            with s.event:
                while s.made == sent:
                    s.event.wait()
                now = s.made
            self.wfile.write(b'data: {"choices": [{"text": "x"}]}\n\n' * (now - sent))
            sent = now
        self.wfile.write(b"data: [DONE]\n\n")


def leak():
    """By the clock: a page at a time would be a system call each, so what is due is taken by the second."""
    begun, taken, lost = time.monotonic(), 0, []
    while True:
        time.sleep(1)
        due = int((time.monotonic() - begun) * a.leak * MIB / 3600) - taken
        if due >= 4096:
            lost.append(touched(due))
            taken += due


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 512


threading.Thread(target=steps, daemon=True).start()
if a.leak:
    threading.Thread(target=leak, daemon=True).start()
Server((a.host, a.port), Handler).serve_forever()
