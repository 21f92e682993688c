"""What vLLM's own scheduler does with requests that come at given times: its code, its block pool, no model.

    oracle.py MODEL [--seed N] [--cases N] >testdata/rehearse/vllm.jsonl

Each case is drawn from its seed: a pool from starving to ample, limits of the scheduler, and requests with or without shared
beginnings, conversations, priorities and clients that hang up. The scheduler is driven as `vllm/v1/engine/core.py` drives it
(`step`, or `step_with_batch_queue` where scheduling is asynchronous), but with a clock of its own: a step takes as long as its
line says. So the answer is the same on every machine.
"""

import argparse
import copy
import functools
import json
import os
import random
import sys
from collections import deque

os.environ |= {"HF_HUB_OFFLINE": "1", "VLLM_NO_USAGE_STATS": "1", "VLLM_LOGGING_LEVEL": "ERROR"}

import torch
from vllm.engine.arg_utils import EngineArgs
from vllm.sampling_params import SamplingParams
from vllm.utils.hashing import sha256
from vllm.v1.core.kv_cache_utils import get_request_block_hasher, init_none_hash
from vllm.v1.core.sched.async_scheduler import AsyncScheduler
from vllm.v1.core.sched.scheduler import Scheduler
from vllm.v1.kv_cache_interface import (
    FullAttentionSpec,
    KVCacheConfig,
    KVCacheGroupSpec,
    SlidingWindowSpec,
)
from vllm.v1.outputs import ModelRunnerOutput
from vllm.v1.request import Request, RequestStatus
from vllm.v1.structured_output import StructuredOutputManager

VERSION = __import__("vllm").__version__
# Seconds: sums of powers of two, so that no machine rounds them.
BASE, TOKEN, REQUEST, CONTEXT = 1 / 128, 1 / 65536, 1 / 16384, 1 / 16777216


def length(r, low, high):
    """Short ones are more frequent."""
    return int(low * (high / low) ** r.random())


def draw(seed):
    """One case: settings and requests."""
    r = random.Random(seed)
    block = r.choice([16, 16, 16, 32, 64, 128])
    most = r.choice([512, 2048, 4096])
    n = r.choice([40, 80, 120])
    long_input, long_output = r.choice([(0.1, 0.3), (0.5, 0.2), (0.3, 0.05), (0.8, 0.15)])
    kind = r.choice(["alone", "alone", "prefix", "sessions"])
    sessions = {}
    requests = []
    rate = r.choice([2, 5, 10, 40])
    at = 0.0
    for i in range(n):
        # Half of them come by chance, half in bursts.
        at += r.expovariate(rate) if seed % 2 else (0.0 if r.random() < 0.8 else 5 * r.expovariate(rate))
        at = round(at * 4096) / 4096
        inp = length(r, 4, max(8, int(most * long_input)))
        out = length(r, 1, max(4, int(most * long_output)))
        q = {"at": at, "input": inp, "output": out}
        if kind == "prefix" and r.random() < 0.8:
            group = r.randrange(3)
            q["prefix"] = [group, (group + 1) * r.choice([24, 100, 170])]
            if r.random() < 0.2:
                q["input"] = q["prefix"][1]
        if kind == "sessions" and r.random() < 0.8:
            s = r.randrange(6)
            so_far = sessions.get(s, 0)
            if so_far + inp + out < most:
                q["session"], q["input"] = s, so_far + inp
                sessions[s] = so_far + inp + out
        if q["input"] + q["output"] > most:
            q["output"] = max(1, most - q["input"])
        if r.random() < 0.1 and seed % 3 == 0:
            q["cancel"] = round(r.expovariate(1 / 4) * 4096) / 4096
        if seed % 4 == 3:
            q["priority"] = r.randrange(-1, 2)
        requests.append(q)
    window = r.choice([0, 0, 0, 0, 64, 300])
    longest = max(q["input"] + q["output"] for q in requests)
    # The engine starts only where one request of the longest length fits.
    groups = [{"block_size": block, "window": 0}] + ([{"block_size": block, "window": window}] if window else [])
    budget = r.choice([64, 256, 512, 2048, 8192])
    asynchronous = r.random() < 0.6
    least = -(-longest // block) * len(groups) + 2
    mean = sum(q["input"] + q["output"] / 2 for q in requests) / n
    ample = int(mean / block * n * len(groups)) + least
    pool = int(least + (ample - least) * r.choice([0.0, 0.02, 0.05, 0.1, 0.2, 0.4, 1.0]))
    return {
        "seed": seed,
        "settings": {
            "blocks": pool,
            "groups": groups,
            "max_num_seqs": r.choice([4, 16, 64, 256]),
            "max_num_batched_tokens": max(budget, block),
            "max_model_len": most,
            "long_prefill_token_threshold": r.choice([0, 0, 0, 48, 200]),
            "chunked_prefill": True,
            "whole_prompt_must_fit": r.random() < 0.7,
            "watermark": r.choice([0.0, 0.0, 0.01, 0.05]),
            "prefix_caching": r.random() < 0.75,
            "policy": "priority" if seed % 4 == 3 else "fcfs",
            "asynchronous": asynchronous,
        },
        "time": {"base_seconds": BASE, "token_seconds": TOKEN, "request_seconds": REQUEST, "context_seconds": CONTEXT},
        "requests": requests,
    }


def prompts(requests):
    """Token ids: the same where requests share them, different where not."""
    out = []
    for i, q in enumerate(requests):
        own = (lambda i, s: lambda k: 1_000_000 + s * 100_000 + k)(i, q["session"]) if "session" in q else (
            lambda i: lambda k: 100_000_000 + i * 100_000 + k
        )(i)
        g, upto = q.get("prefix", [0, 0])
        # A shared beginning ends where the next token differs.
        out.append([(g * 100_000 + k) if k < upto else own(k) for k in range(q["input"])])
    return out


def answer_token(q, i, k):
    """The k-th token of a request, prompt and answer counted together."""
    return 1_000_000 + q["session"] * 100_000 + k if "session" in q else 100_000_000 + i * 100_000 + k


@functools.cache
def base(model):
    """One configuration for all cases: to look at the model takes vLLM a second process."""
    return EngineArgs(model=model, max_model_len=4096).create_engine_config()


def scheduler_of(model, case):
    s = case["settings"]
    config = copy.deepcopy(base(model))
    config.model_config.max_model_len = s["max_model_len"]
    for name in ("max_num_seqs", "max_num_batched_tokens", "long_prefill_token_threshold", "policy", "watermark"):
        setattr(config.scheduler_config, name, s[name])
    config.scheduler_config.max_num_scheduled_tokens = None
    config.scheduler_config.enable_chunked_prefill = s["chunked_prefill"]
    config.scheduler_config.async_scheduling = s["asynchronous"]
    config.scheduler_config.scheduler_reserve_full_isl = s["whole_prompt_must_fit"]
    config.cache_config.block_size = s["groups"][0]["block_size"]
    config.cache_config.enable_prefix_caching = s["prefix_caching"]
    groups = []
    for i, g in enumerate(s["groups"]):
        common = dict(block_size=g["block_size"], num_kv_heads=1, head_size=64, dtype=torch.bfloat16)
        spec = SlidingWindowSpec(sliding_window=g["window"], **common) if g["window"] else FullAttentionSpec(**common)
        groups.append(KVCacheGroupSpec([f"layer{i}"], spec))
    kv = KVCacheConfig(num_blocks=s["blocks"], kv_cache_tensors=[], kv_cache_groups=groups)
    config.cache_config.num_gpu_blocks = s["blocks"]
    kind = AsyncScheduler if s["asynchronous"] else Scheduler
    return kind(
        vllm_config=config,
        kv_cache_config=kv,
        structured_output_manager=StructuredOutputManager(config),
        block_size=s["groups"][0]["block_size"],
        log_stats=True,
    )


class Digest:
    """FNV-1a over what was seen of each step."""

    def __init__(self):
        self.value = 0xCBF29CE484222325

    def add(self, *numbers):
        for n in numbers:
            for b in int(n).to_bytes(4, "little"):
                self.value = ((self.value ^ b) * 0x100000001B3) & (2**64 - 1)


def play(model, case, trace=None):
    s = case["settings"]
    scheduler = scheduler_of(model, case)
    pool = scheduler.kv_cache_manager.block_pool
    requests, ids = case["requests"], prompts(case["requests"])
    hasher = get_request_block_hasher(s["groups"][0]["block_size"], sha256)
    live, generated = {}, [0] * len(requests)
    usable = s["blocks"] - 1
    used = lambda: usable - pool.get_num_free_blocks()
    found = dict(steps=0, preemptions=0, peak_blocks=0, peak_gauge_blocks=0, longest_queue=0, most_running=0)
    digest, finished, cancelled, rejected, hits = Digest(), 0, 0, 0, 0
    nxt, cancels, flying = 0, [], deque()
    now, busy = requests[0]["at"], 0.0
    depth = 2 if s["asynchronous"] else 1

    def hang_up(until):
        nonlocal cancelled
        for at, i in sorted(c for c in cancels if c[0] <= until):
            cancels.remove((at, i))
            if scheduler.finish_requests(str(i), RequestStatus.FINISHED_ABORTED):
                cancelled += 1

    def run(output):
        names, tokens = list(output.num_scheduled_tokens), []
        for name in names:
            q = scheduler.requests.get(name)
            i = int(name)
            # A token comes out where all that is known of the request is computed.
            if output.samples[name]:
                tokens.append([answer_token(requests[i], i, requests[i]["input"] + generated[i])])
                generated[i] += 1
            else:
                tokens.append([])
        return ModelRunnerOutput(
            req_ids=names, req_id_to_index={n: k for k, n in enumerate(names)}, sampled_token_ids=tokens
        )

    while True:
        while nxt < len(requests) and requests[nxt]["at"] <= now:
            q = requests[nxt]
            if q["input"] + q["output"] > s["max_model_len"]:
                rejected += 1
            else:
                params = SamplingParams(max_tokens=q["output"], ignore_eos=True)
                request = Request(
                    request_id=str(nxt),
                    prompt_token_ids=ids[nxt],
                    sampling_params=params,
                    pooling_params=None,
                    arrival_time=q["at"] + nxt * 1e-9,
                    priority=q.get("priority", 0),
                    block_hasher=hasher if s["prefix_caching"] else None,
                )
                live[str(nxt)] = request
                scheduler.add_request(request)
                if "cancel" in q:
                    cancels.append((q["at"] + q["cancel"], nxt))
            nxt += 1
        hang_up(now)
        if sum(scheduler.get_request_counts()):
            before = {n: q.num_preemptions for n, q in live.items()}
            # What the runner would know at the time of the step.
            output = scheduler.schedule()
            preempted = sum(q.num_preemptions - before[n] for n, q in live.items())
            found["preemptions"] += preempted
            found["peak_blocks"] = max(found["peak_blocks"], used())
            running, waiting = scheduler.get_request_counts()
            found["longest_queue"] = max(found["longest_queue"], waiting)
            found["most_running"] = max(found["most_running"], running)
            total = output.total_num_scheduled_tokens
            digest.add(used(), running, waiting, preempted, total)
            if trace is not None:
                trace.append((now, used(), running, waiting, preempted, total))
            if total:
                found["steps"] += 1
                context = 0
                output.samples = {}
                for name in output.num_scheduled_tokens:
                    q = scheduler.requests[name]
                    context += q.num_computed_tokens
                    output.samples[name] = not q.is_prefill_chunk
                seconds = BASE + TOKEN * total + REQUEST * len(output.num_scheduled_tokens) + CONTEXT * context
                busy = max(busy, now) + seconds
                flying.append((output, busy))
                if len(flying) < depth:
                    continue
        if flying:
            output, end = flying.popleft()
            now = max(now, end)
            hang_up(now)
            done = scheduler.update_from_output(output, run(output))
            for out in done.values():
                for o in out.outputs:
                    finished += o.finished
                if out.scheduler_stats and (p := out.scheduler_stats.prefix_cache_stats):
                    hits += p.hits
            found["peak_gauge_blocks"] = max(found["peak_gauge_blocks"], used())
            continue
        upcoming = [c[0] for c in cancels] + ([requests[nxt]["at"]] if nxt < len(requests) else [])
        if not upcoming:
            break
        now = max(now, min(upcoming))
    found |= dict(
        finished=finished,
        cancelled=cancelled,
        rejected=rejected,
        stuck=sum(scheduler.get_request_counts()),
        cached_tokens=hits,
        seconds=now - requests[0]["at"],
        digest=f"{digest.value:016x}",
    )
    return found


def main():
    p = argparse.ArgumentParser()
    p.add_argument("model")
    p.add_argument("--first", type=int, default=1)
    p.add_argument("--cases", type=int, default=60)
    p.add_argument("--trace", help="print every step of this one case", type=int)
    p.add_argument("--case", help="a file of one case, instead of one that is drawn")
    a = p.parse_args()
    init_none_hash(sha256)
    if a.trace is not None:
        trace = []
        case = draw(a.trace)
        print(json.dumps(play(a.model, case, trace)))
        for row in trace:
            print(*row)
        return
    for seed in range(a.first, a.first + a.cases):
        case = draw(seed)
        case["answer"] = play(a.model, case)
        case["vllm"] = VERSION
        print(json.dumps(case, separators=(",", ":")))
        print(seed, case["answer"], file=sys.stderr)


main()
