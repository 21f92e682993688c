"""Real runs of vLLM on the CPU: a real model, real steps, requests that come by the clock on the wall.

    real.py MODEL [--runs N] [--rounds N] [--first SEED] [--scale TIMES] [--seconds S] [--lock FILE] >runs.jsonl

One engine is started, in this process. Each run gets a scheduler of its own, with a pool from starving to ample and limits of
its own, as `--num-gpu-blocks-override`, `--max-num-seqs` and `--max-num-batched-tokens` would give it. Written are the
requests, what the scheduler held at each step, how long the step took, and before which step each request came; `thin.py` keeps
what `held.py` needs of it. With --rounds all runs are made so many times, with the same requests at the same times: what then
differs is the engine's own.
"""

import argparse
import copy
import fcntl
import json
import os
import random
import sys
import time

os.environ |= {
    "HF_HUB_OFFLINE": "1",
    "VLLM_NO_USAGE_STATS": "1",
    "VLLM_LOGGING_LEVEL": "ERROR",
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
    "VLLM_CPU_KVCACHE_SPACE": "1",
    # One thread that may move: two that wait for one another stand still where others compute as well.
    "OMP_NUM_THREADS": "1",
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
}

from vllm import LLM, SamplingParams
from vllm.v1.core.sched.scheduler import Scheduler
from vllm.v1.request import Request

BLOCK, MOST, SEQS, TOKENS = 32, 2048, 64, 2048


def length(r, low, high):
    return int(low * (high / low) ** r.random())


def draw(seed, pace, scale=1):
    """A run: its limits, and requests whose arrival loads the engine by a known share of what it can do."""
    r = random.Random(seed)
    kind = ["short", "mixed", "long", "prefix"][seed % 4]
    n = scale * {"short": 16, "mixed": 12, "long": 8, "prefix": 12}[kind]
    lengths = {"short": (20, 120, 10, 60), "mixed": (20, 500, 8, 60), "long": (300, 900, 20, 60), "prefix": (200, 400, 10, 60)}
    a, b, c, d = lengths[kind]
    gap = pace * r.choice([0.1, 0.3, 1, 2])
    seqs = r.choice([4, 8, 32, 64])
    at, requests = 0.0, []
    for _ in range(n):
        at += r.expovariate(1 / gap)
        q = {"at": round(at, 4), "input": length(r, a, b), "output": length(r, c, d)}
        if kind == "prefix" and r.random() < 0.8:
            q["prefix"] = [r.randrange(2), r.choice([96, 170])]
        requests.append(q)
    blocks = sorted((-(-(q["input"] + q["output"]) // BLOCK) for q in requests), reverse=True)
    # From the longest request alone to all that may run at once.
    least, ample = blocks[0] + 2, sum(blocks[:seqs]) + 2
    share = [0.0, 0.1, 0.2, 0.35, 0.6, 1.0][seed % 6]
    settings = {
        "blocks": int(least + (ample - least) * share),
        "groups": [{"block_size": BLOCK, "window": 0}],
        "max_num_seqs": seqs,
        "max_num_batched_tokens": r.choice([128, 512, 2048]),
        "max_model_len": MOST,
        "long_prefill_token_threshold": 0,
        "chunked_prefill": True,
        "whole_prompt_must_fit": True,
        "watermark": 0.0,
        "prefix_caching": r.random() < 0.7 or kind == "prefix",
        "policy": "fcfs",
        "asynchronous": False,
    }
    return {"seed": seed, "kind": kind, "settings": settings, "requests": requests}


def token(*parts):
    return 3 + hash(parts) % 2000


def prompt(seed, i, q):
    group, upto = q.get("prefix", [0, 0])
    return [token("shared", group, k) if k < upto else token(seed, i, k) for k in range(q["input"])]


def play(core, case):
    s, requests = case["settings"], case["requests"]
    config = copy.copy(core.vllm_config)
    config.scheduler_config = copy.copy(config.scheduler_config)
    config.cache_config = copy.copy(config.cache_config)
    for name in ("max_num_seqs", "max_num_batched_tokens"):
        setattr(config.scheduler_config, name, s[name])
    config.scheduler_config.max_num_scheduled_tokens = None
    config.cache_config.enable_prefix_caching = s["prefix_caching"]
    config.cache_config.num_gpu_blocks = s["blocks"]
    kv = copy.copy(core.scheduler.kv_cache_config)
    kv.num_blocks = s["blocks"]
    scheduler = Scheduler(
        vllm_config=config,
        kv_cache_config=kv,
        structured_output_manager=core.structured_output_manager,
        block_size=BLOCK,
        log_stats=True,
    )
    core.scheduler = scheduler
    pool = scheduler.kv_cache_manager.block_pool
    steps, live, seen, came = [], {}, {}, []
    schedule = scheduler.schedule

    def watched(*args):
        before = {n: q.num_preemptions for n, q in live.items()}
        output = schedule(*args)
        preempted = sum(q.num_preemptions - before[n] for n, q in live.items())
        running, waiting = scheduler.get_request_counts()
        context = sum(scheduler.requests[n].num_computed_tokens for n in output.num_scheduled_tokens)
        seen["step"] = [s["blocks"] - 1 - pool.get_num_free_blocks(), running, waiting, preempted,
                        output.total_num_scheduled_tokens, len(output.num_scheduled_tokens), context]
        return output

    scheduler.schedule = watched
    prompts = [prompt(case["seed"], i, q) for i, q in enumerate(requests)]
    nxt, begin = 0, time.perf_counter()
    clock = lambda: time.perf_counter() - begin
    while nxt < len(requests) or scheduler.has_requests():
        while nxt < len(requests) and requests[nxt]["at"] <= clock():
            q = requests[nxt]
            request = Request(
                request_id=f"{case['seed']}-{nxt}",
                prompt_token_ids=prompts[nxt],
                sampling_params=SamplingParams(max_tokens=q["output"], ignore_eos=True, temperature=0.0),
                pooling_params=None,
                arrival_time=q["at"],
                block_hasher=core.request_block_hasher if s["prefix_caching"] else None,
            )
            live[request.request_id] = request
            core.add_request(request)
            came.append(len(steps))
            nxt += 1
        if not scheduler.has_requests():
            time.sleep(max(0.0, requests[nxt]["at"] - clock()))
            continue
        started = clock()
        core.step()
        if seen["step"][4]:
            steps.append([round(started, 6), round(clock(), 6), *seen["step"]])
    return steps, came


def main():
    p = argparse.ArgumentParser()
    p.add_argument("model")
    p.add_argument("--first", type=int, default=1)
    p.add_argument("--runs", type=int, default=12)
    p.add_argument("--rounds", type=int, default=1)
    p.add_argument("--scale", type=int, default=1, help="times as many requests")
    p.add_argument("--seconds", type=float, default=540)
    p.add_argument("--lock", help="a file that whoever measures locks")
    a = p.parse_args()
    llm = LLM(
        model=a.model, max_model_len=MOST, max_num_seqs=SEQS, max_num_batched_tokens=TOKENS, block_size=BLOCK, enforce_eager=True
    )
    core = llm.llm_engine.engine_core.engine_core
    # A block hasher is made where prefixes are cached, which they are by default.
    assert core.request_block_hasher is not None
    if a.lock:
        # Others measure too: what was started waits for its turn.
        held = open(a.lock, "w")
        fcntl.flock(held, fcntl.LOCK_EX)
    stop = time.time() + a.seconds
    # How long a request takes, so that the load is a load on this machine.
    warm = draw(0, 1e-6)
    warm["requests"] = warm["requests"][:8]
    warm["settings"] |= {"blocks": 400, "max_num_seqs": 8}
    play(core, warm)
    # The fastest of three: others may compute meanwhile.
    pace = min(play(core, warm | {"seed": -n})[0][-1][1] for n in (1, 2, 3)) / 8
    print("seconds of a request", pace, file=sys.stderr)
    # In rounds: repeats of a run meet the machine at other times.
    for seed in [*range(a.first, a.first + a.runs)] * a.rounds:
        if time.time() > stop:
            break
        case = draw(seed, pace, a.scale)
        case["steps"], case["came"] = play(core, case)
        print(json.dumps(case, separators=(",", ":")), flush=True)
        print(seed, len(case["steps"]), case["steps"][-1], file=sys.stderr, flush=True)


main()
