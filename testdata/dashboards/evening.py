#!/usr/bin/env python3
"""Writes evening.yaml: eight hours of one cluster, one value a minute, in promtool's notation (`a+bxn` is n + 1 values).

  chat-0   vLLM on two cards of n1; the evening's peak from minute 280 on
  chat-1   the same launch, added at minute 200: it waits for a place, loads, and serves
  chat-2   one more, at minute 430: no card is left for it
  code-0   SGLang on two cards of n2, with a tier of the KV cache in host RAM that grows until the kernel kills it at minute 402
  draft-0  TGI on the third card of n2, which gets too hot
"""

import math
from pathlib import Path

END, STEP = 480, 20
out = []


def labels(**kw):
    return ",".join(f'{k}="{v}"' for k, v in {"cluster": "prod", **kw}.items())


def num(x):
    """Without an exponent, which the notation does not have."""
    text = f"{x:.4f}".rstrip("0").rstrip(".") if abs(x) < 1e6 else f"{x:.0f}"
    return "0" if text in ("", "-0") else text


def slope(x):
    text = f"{x:+.6f}".rstrip("0").rstrip(".") if abs(x) < 1e5 else f"{x:+.0f}"
    return "+0" if text in ("+", "-", "-0") else text


def add(name, values, **kw):
    out.append(f"- {{series: '{name}{{{labels(**kw)}}}', values: '{values}'}}")


def flat(v, since=0, until=END):
    return (f"_x{since} " if since else "") + f"{num(v)}x{until - since - 1}"


def steps(*pieces):
    """(value, minutes) after one another; None is a gap."""
    return " ".join(f"_x{n}" if v is None else f"{num(v)}x{n - 1}" for v, n in pieces)


def gauge(f, since=0, until=END, step=STEP, floor=0.0, digits=None):
    """Straight lines between the values of f."""
    text, t = [f"_x{since}"] if since else [], since
    while t < until:
        n = min(step, until - t)
        a, b = max(floor, f(t)), max(floor, f(t + n))
        if digits is not None:
            a, b = round(a, digits), round(b, digits)
        text.append(f"{num(a)}x{n - 1}" if a == b else f"{num(a)}{slope((b - a) / n)}x{n - 1}")
        t += n
    return " ".join(text)


def counter(rate, since=0, until=END, step=STEP, start=0.0):
    """A counter whose rate per minute is rate(t)."""
    text, t, c = [f"_x{since}"] if since else [], since, start
    while t < until:
        n = min(step, until - t)
        r = max(0.0, rate(t + n / 2))
        text.append(f"{c:.4f}{slope(r)}x{n - 1}")
        c += r * n
        t += n
    return " ".join(text)


def wave(base, swing, phase=0.0, period=170.0):
    return lambda t: base + swing * math.sin(2 * math.pi * (t + phase) / period) + 0.25 * swing * math.sin(t / 11.0 + phase)


def peak(t, at=315, width=28.0):
    return math.exp(-(((t - at) / width) ** 2))


S = {"namespace": "serving", "container": "server"}
GIB = 2**30
LIMITS = {"chat-0": (2, 200, 0, END, "n1"), "chat-1": (2, 200, 200, END, "n1"), "chat-2": (2, 200, 430, END, ""), "code-0": (2, 320, 0, END, "n2"), "draft-0": (1, 96, 0, END, "n2")}
IMAGES = {"chat-0": "vllm/vllm-openai:v0.20.2", "chat-1": "vllm/vllm-openai:v0.33.0", "code-0": "lmsysorg/sglang:v0.5.23", "draft-0": "ghcr.io/huggingface/text-generation-inference:3.3.6"}
KILL, BACK = 402, 416

# kube-state-metrics
for pod, (gpus, gib, since, until, node) in LIMITS.items():
    on = {"node": node} if node else {}
    add("kube_pod_container_resource_limits", flat(gpus, since, until), **S, pod=pod, **on, resource="nvidia_com_gpu", unit="integer")
    add("kube_pod_container_resource_limits", flat(gib * GIB, since, until), **S, pod=pod, **on, resource="memory", unit="byte")
for pod, image in IMAGES.items():
    since = LIMITS[pod][2]
    add("kube_pod_container_info", flat(1, since), **S, pod=pod, image=image)
    if pod == "code-0":
        ready = steps((1, KILL), (0, BACK - KILL), (1, END - BACK))
    else:
        ready = steps((None, since), (0, 18), (1, END - since - 18)) if since else flat(1)
    add("kube_pod_container_status_ready", ready, **S, pod=pod, uid=f"u-{pod}")
    add("kube_pod_container_status_restarts_total", steps((1, KILL), (2, END - KILL)) if pod == "code-0" else flat(0, since), **S, pod=pod, uid=f"u-{pod}")
add("kube_pod_container_status_last_terminated_reason", steps((None, KILL), (1, END - KILL)), **S, pod="code-0", uid="u-code-0", reason="OOMKilled")
add("kube_pod_status_phase", steps((None, 200), (1, 5), (0, END - 205)), namespace="serving", pod="chat-1", phase="Pending", uid="u-chat-1")
add("kube_pod_status_phase", flat(1, 430), namespace="serving", pod="chat-2", phase="Pending", uid="u-chat-2")
for node, cards in (("n1", 5), ("n2", 4)):
    add("kube_node_status_allocatable", flat(cards), node=node, resource="nvidia_com_gpu", unit="integer")
add("kube_node_status_allocatable", flat(7), node="n3", resource="nvidia_com_mig_1g_10gb", unit="integer")
add("kube_statefulset_replicas", steps((1, 200), (2, 230), (3, END - 430)), namespace="serving", statefulset="chat")
add("kube_statefulset_replicas", flat(1), namespace="serving", statefulset="code")
add("kube_statefulset_replicas", flat(1), namespace="serving", statefulset="draft")
for pod, (_, _, since, _, _) in LIMITS.items():
    add("kube_pod_owner", flat(1, since), namespace="serving", pod=pod, owner_kind="StatefulSet", owner_name=pod[:-2])

# cAdvisor, and the agent for what cAdvisor does not tell
code_ram = lambda t: GIB * (198 + 4 * math.sin(t / 40) + max(0, t - 215) * 0.655)
code = gauge(code_ram, 0, KILL, 17) + " " + gauge(lambda t: GIB * min(196.0, 8 + (t - KILL) * 13.0), KILL, END, 6).split(" ", 1)[1]
add("container_memory_working_set_bytes", code, **S, pod="code-0", id="/a")
add("container_memory_working_set_bytes", gauge(lambda t: GIB * wave(118, 6)(t)), **S, pod="chat-0", id="/b")
add("container_memory_working_set_bytes", gauge(lambda t: GIB * min(112, 6 + (t - 205) * 8), 205, END, 7), **S, pod="chat-1", id="/c")
add("container_memory_working_set_bytes", gauge(lambda t: GIB * wave(41, 3, 60)(t)), **S, pod="draft-0", id="/d")
for pod, mean in (("chat-0", 0.002), ("code-0", 0.004), ("draft-0", 0.001)):
    more = (lambda t: 22 * max(0, t - 320) / 82 if t < KILL else 0) if pod == "code-0" else (lambda t: 0)
    add("dualplane_container_memory_pressure_waiting_seconds_total", counter(lambda t: 60 * mean + more(t)), **S, pod=pod, node=LIMITS[pod][4])
for pod, used, size in (("chat-0", 5.5, 16), ("code-0", 9.0, 32), ("draft-0", 0.9, 1)):
    add("dualplane_container_shm_size_bytes", flat(size * GIB), **S, pod=pod, node=LIMITS[pod][4])
    add("dualplane_container_shm_used_bytes", gauge(lambda t: GIB * (used + 0.03 * used * math.sin(t / 30))), **S, pod=pod, node=LIMITS[pod][4])
add("dualplane_container_last_incident", flat(1, KILL), **S, pod="code-0", node="n2", **{"class": "host_oom_killed"}, plane="host", kind="death")
add("dualplane_node_memory_size_bytes", flat(1000 * GIB), node="n1")
add("dualplane_node_memory_size_bytes", flat(400 * GIB), node="n2")
add("dualplane_node_memory_available_bytes", gauge(lambda t: GIB * wave(700, 25)(t)), node="n1")
add("dualplane_node_memory_available_bytes", gauge(lambda t: GIB * (130 - (max(0, t - 215) * 0.655 if t < KILL else -30))), node="n2")

# DCGM
CARDS = [("n1", 0, "chat-0"), ("n1", 1, "chat-0"), ("n1", 2, "chat-1"), ("n1", 3, "chat-1"), ("n1", 4, ""), ("n2", 0, "code-0"), ("n2", 1, "code-0"), ("n2", 2, "draft-0"), ("n2", 3, "")]
for node, gpu, pod in CARDS:
    uuid = f"GPU-{node}-{gpu}"
    card = {"gpu": gpu, "UUID": uuid, "Hostname": node, "modelName": "NVIDIA H100 80GB HBM3" if node == "n1" else "NVIDIA A100-SXM4-80GB", "DCGM_FI_DRIVER_VERSION": "570.124.06" if node == "n1" else "550.163.01"}
    of = {**card, "namespace": "serving", "pod": pod, "container": "server"} if pod else card
    phase = gpu * 23 + (70 if node == "n2" else 0)
    if pod == "chat-0":
        busy, used = lambda t: min(0.99, wave(0.72, 0.14, phase)(t) + 0.2 * peak(t)), flat(74500)
    elif pod == "chat-1":
        busy, used = lambda t: 0.02 if t < 220 else min(0.97, wave(0.6, 0.12, phase)(t)), steps((5, 205), (21000, 4), (52000, 5), (74500, END - 214))
    elif pod == "code-0":
        busy = lambda t: 0.0 if KILL <= t < BACK else min(0.97, wave(0.66, 0.16, phase)(t))
        used = steps((72400, KILL), (420, 4), (34000, 5), (72400, END - KILL - 9))
    elif pod == "draft-0":
        busy, used = wave(0.45, 0.2, phase), gauge(lambda t: 52000 + 38 * t, step=60, digits=0)
    else:
        busy, used = lambda t: 0.0, flat(5)
    free = {"chat-0": flat(6480), "code-0": steps((8640, KILL), (80620, 4), (47040, 5), (8640, END - KILL - 9)), "draft-0": gauge(lambda t: 29040 - 38 * t, step=60, digits=0), "chat-1": steps((80975, 205), (59980, 4), (28980, 5), (6480, END - 214)), "": flat(80975)}[pod]
    hot = (lambda t: 46 * peak(t, 355, 40)) if pod == "draft-0" else (lambda t: 0)
    work = [
        ("DCGM_FI_DEV_GPU_UTIL", gauge(lambda t: 100 * busy(t), digits=1)),
        ("DCGM_FI_PROF_SM_ACTIVE", gauge(lambda t: 0.74 * busy(t), digits=4)),
        ("DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", gauge(lambda t: 0.36 * busy(t) ** 2, digits=4)),
        ("DCGM_FI_PROF_DRAM_ACTIVE", gauge(lambda t: 0.62 * busy(t), digits=4)),
        ("DCGM_FI_DEV_POWER_USAGE", gauge(lambda t: (75 if node == "n1" else 55) + (610 if node == "n1" else 330) * busy(t), digits=1)),
        ("DCGM_FI_DEV_SM_CLOCK", gauge(lambda t: (1980 if node == "n1" else 1410) - 60 * busy(t) - 7.5 * hot(t), digits=0)),
        ("DCGM_FI_DEV_GPU_TEMP", gauge(lambda t: 34 + 33 * busy(t) + 0.72 * hot(t), digits=1)),
        ("DCGM_FI_PROF_PCIE_TX_BYTES", gauge(lambda t: 1e6 + 9e7 * busy(t) + (1.9e9 * max(0, t - 215) / 185 if pod == "code-0" and t < KILL else 0), digits=0)),
        ("DCGM_FI_PROF_PCIE_RX_BYTES", gauge(lambda t: 1e6 + 1.3e8 * busy(t) + (6e9 if pod == "chat-1" and 205 <= t < 218 else 0), digits=0)),
        ("DCGM_FI_DEV_FB_USED", used),
        ("DCGM_FI_DEV_FB_FREE", free),
    ]
    if pod in ("chat-0", "chat-1", "code-0"):
        work += [(f"DCGM_FI_PROF_NVLINK_{d}_BYTES", gauge(lambda t: 4.1e10 * busy(t) * (1 if d == "TX" else 0.97), digits=0)) for d in ("TX", "RX")]
    for name, values in work:
        add(name, values, **of)
    for name, values in [
        ("DCGM_FI_DEV_CLOCK_THROTTLE_REASONS", steps((0, 330), (64, 52), (0, END - 382)) if pod == "draft-0" else flat(4 if pod else 1)),
        ("DCGM_FI_DEV_XID_ERRORS", steps((0, KILL), (45, END - KILL)) if uuid == "GPU-n2-0" else steps((0, 150), (63, END - 150)) if uuid == "GPU-n2-3" else flat(0)),
        ("DCGM_FI_DEV_ECC_DBE_VOL_TOTAL", steps((0, 150), (1, END - 150)) if uuid == "GPU-n2-3" else flat(0)),
        ("DCGM_FI_DEV_ECC_SBE_VOL_TOTAL", counter(lambda t: 0.08) if uuid == "GPU-n2-3" else flat(2 if gpu == 1 else 0)),
        ("DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS", steps((0, 150), (1, END - 150)) if uuid == "GPU-n2-3" else flat(0)),
        ("DCGM_FI_DEV_ROW_REMAP_FAILURE", flat(0)),
        ("DCGM_FI_DEV_PCIE_REPLAY_COUNTER", counter(lambda t: 0.05, start=3) if uuid == "GPU-n1-4" else flat(0)),
    ]:
        add(name, values, **of)
    add("DCGM_EXP_GPU_HEALTH_STATUS", steps((0, 150), (10, END - 150)) if uuid == "GPU-n2-3" else flat(0), **of, health_watch="MEM")
    add("dualplane_gpu_memory_unassigned_bytes", steps((0, 260), (3.2 * GIB, 90), (0, END - 350)) if uuid == "GPU-n1-4" else flat(0), node=node, gpu=gpu, UUID=uuid, model="GPU")


def histogram(name, rate, fractions, since=0, until=END, scale=1.0, **kw):
    """Buckets `le`: the share of requests below it at t. With its sum and its count."""
    def total(share):
        return counter(lambda t: rate(t) * min(1.0, share(t)), since, until)
    for le, share in fractions:
        add(f"{name}_bucket", total(share), **kw, le=le)
    add(f"{name}_bucket", total(lambda t: 1.0), **kw, le="+Inf")
    add(f"{name}_count", total(lambda t: 1.0), **kw)
    add(f"{name}_sum", total(lambda t: scale), **kw)


def vllm(pod, rate, load, since, until=END):
    kw = {**S, "pod": pod, "model_name": "llama-70b", "engine": "0"}
    add("vllm:num_requests_running", gauge(lambda t: 6 + 26 * load(t), since, until, digits=0), **kw)
    add("vllm:num_requests_waiting", gauge(lambda t: 38 * peak(t) if pod == "chat-0" else 1, since, until, 10, digits=0), **kw)
    add("vllm:kv_cache_usage_perc", gauge(lambda t: min(0.995, 0.25 + 0.62 * load(t) + (0.3 * peak(t) if pod == "chat-0" else 0)), since, until, digits=3), **kw)
    add("vllm:num_preemptions_total", counter(lambda t: 7 * peak(t) if pod == "chat-0" and peak(t) > 0.2 else 0, since, until), **kw)
    add("vllm:generation_tokens_total", counter(lambda t: 260 * rate(t), since, until), **kw)
    add("vllm:prompt_tokens_total", counter(lambda t: 1900 * rate(t) * (1 + 0.5 * peak(t)), since, until), **kw)
    for reason, share in (("stop", 0.957), ("length", 0.03), ("abort", 0.012), ("error", 0.0)):
        extra = (lambda t: 0.08 * peak(t)) if reason == "abort" and pod == "chat-0" else (lambda t: 0)
        add("vllm:request_success_total", counter(lambda t: rate(t) * (share + extra(t)), since, until), **kw, finished_reason=reason)
    add("vllm:admission_rejections_total", counter(lambda t: 0.09 * rate(t) * peak(t) if pod == "chat-0" and peak(t) > 0.3 else 0, since, until), **S, pod=pod, model_name="llama-70b", reason="queue_full")
    late = (lambda t: peak(t)) if pod == "chat-0" else (lambda t: 0.0)
    histogram("vllm:time_to_first_token_seconds", rate, [("0.5", lambda t: 0.62 - 0.5 * late(t)), ("1.0", lambda t: 0.9 - 0.5 * late(t)), ("2.5", lambda t: 0.994 - 0.4 * late(t)), ("10.0", lambda t: 1.0 - 0.16 * late(t)), ("20.0", lambda t: 1.0 - 0.004 * late(t))], since, until, 0.7, **kw)
    histogram("vllm:e2e_request_latency_seconds", rate, [("5.0", lambda t: 0.35 - 0.2 * late(t)), ("10.0", lambda t: 0.82 - 0.4 * late(t)), ("20.0", lambda t: 0.97 - 0.25 * late(t)), ("40.0", lambda t: 0.997 - 0.03 * late(t)), ("60.0", lambda t: 1.0)], since, until, 8.0, **kw)
    for name, seconds in (("queue", lambda t: 0.05 + 6 * late(t)), ("prefill", lambda t: 0.45 + 0.3 * late(t)), ("decode", lambda t: 6.1 + 2.2 * late(t))):
        add(f"vllm:request_{name}_time_seconds_sum", counter(lambda t: rate(t) * seconds(t), since, until), **kw)
        add(f"vllm:request_{name}_time_seconds_count", counter(rate, since, until), **kw)
    add("vllm:request_prompt_tokens_bucket", counter(lambda t: rate(t) * (0.97 - 0.22 * late(t)), since, until), **kw, le="10000.0")
    add("vllm:request_prompt_tokens_count", counter(rate, since, until), **kw)


# Requests a minute
vllm("chat-0", lambda t: wave(130, 35)(t) * (1 if t < 220 else 0.62) + 60 * peak(t), lambda t: wave(0.55, 0.15)(t) * (1 if t < 220 else 0.8), 0)
vllm("chat-1", lambda t: wave(80, 18, 40)(t), lambda t: wave(0.4, 0.1, 40)(t), 219)

kw = {**S, "pod": "code-0", "model_name": "qwen-32b"}
alive = lambda t: 0.0 if KILL <= t < BACK else 1.0
def sgl(name, values_of, **more):
    """Gone while it is not there."""
    text = values_of(0, KILL) + " " + values_of(BACK, END).replace(f"_x{BACK}", f"_x{BACK - KILL}")
    add(name, text, **kw, **more)
for rank in ("0", "1"):
    sgl("sglang:num_running_reqs", lambda a, b: gauge(lambda t: wave(14, 5, 30)(t), a, b, digits=0), tp_rank=rank)
    sgl("sglang:num_queue_reqs", lambda a, b: gauge(lambda t: max(0, (t - 330) / 9) if t < KILL else 0, a, b, digits=0), tp_rank=rank)
    sgl("sglang:token_usage", lambda a, b: gauge(lambda t: min(0.98, 0.6 + max(0, t - 150) / 500), a, b, digits=3), tp_rank=rank)
rate = lambda t: wave(50, 14, 30)(t)
for name, f in (("num_requests_total", rate), ("generation_tokens_total", lambda t: 420 * rate(t)), ("prompt_tokens_total", lambda t: 3100 * rate(t)), ("num_aborted_requests_total", lambda t: 0.02 * rate(t)), ("num_retracted_requests_total", lambda t: 0.02 * max(0, t - 330) if t < KILL else 0)):
    sgl(f"sglang:{name}", lambda a, b: counter(f, a, b))
sgl("sglang:hicache_dropped_tokens_total", lambda a, b: counter(lambda t: 90 * max(0, t - 340) if t < KILL else 0, a, b), reason="host_pressure", pool="kv")
slow = lambda t: min(1.0, max(0, t - 330) / 70) if t < KILL else 0.0
for name, edges in (("time_to_first_token_seconds", [("1", 0.85, 0.5), ("2", 0.97, 0.4), ("4", 0.998, 0.3), ("10", 1.0, 0.15), ("20", 1.0, 0.004)]), ("e2e_request_latency_seconds", [("10", 0.6, 0.3), ("20", 0.93, 0.25), ("30", 0.996, 0.2), ("60", 1.0, 0.005)]), ):
    for le, share, less in edges + [("+Inf", 1.0, 0.0)]:
        sgl(f"sglang:{name}_bucket", lambda a, b: counter(lambda t: rate(t) * (share - less * slow(t)), a, b), le=le)
    if name.startswith("time"):
        sgl(f"sglang:{name}_count", lambda a, b: counter(rate, a, b))
sgl("sglang:queue_time_seconds_sum", lambda a, b: counter(lambda t: rate(t) * (0.1 + 3 * slow(t)), a, b))
sgl("sglang:queue_time_seconds_count", lambda a, b: counter(rate, a, b))

kw = {**S, "pod": "draft-0"}
rate = lambda t: wave(34, 12, 90)(t)
add("tgi_batch_current_size", gauge(lambda t: wave(5, 2, 90)(t), digits=0), **kw)
add("tgi_queue_size", gauge(lambda t: 3 * peak(t, 355, 40), digits=0), **kw)
add("tgi_batch_current_max_tokens", gauge(lambda t: 1000 * wave(16, 6, 90)(t), digits=0), **kw)
add("tgi_batch_max_total_tokens", flat(48000), **kw)
add("tgi_request_success", counter(rate), **kw)
add("tgi_request_failure", counter(lambda t: 0.03 * rate(t)), **kw, err="validation")
add("tgi_request_failure", counter(lambda t: 0.02 * rate(t)), **kw, err="overloaded")
add("tgi_batch_inference_failure", steps((0, 300), (1, 60), (2, END - 360)), **kw, method="decode")
add("tgi_request_generated_tokens_sum", counter(lambda t: 180 * rate(t)), **kw)
add("tgi_request_input_length_sum", counter(lambda t: 700 * rate(t)), **kw)
histogram("tgi_request_queue_duration", rate, [("0.1", lambda t: 0.8 - 0.4 * peak(t, 355, 40)), ("1", lambda t: 0.97 - 0.2 * peak(t, 355, 40)), ("5", lambda t: 1.0)], scale=0.2, **kw)
histogram("tgi_request_duration", rate, [("5", lambda t: 0.7 - 0.3 * peak(t, 355, 40)), ("10", lambda t: 0.98 - 0.2 * peak(t, 355, 40)), ("30", lambda t: 1.0)], scale=4.5, **kw)
for name, seconds in (("validation", 0.01), ("inference", 4.2)):
    add(f"tgi_request_{name}_duration_sum", counter(lambda t: rate(t) * seconds), **kw)
    add(f"tgi_request_{name}_duration_count", counter(rate), **kw)

head = "\n".join(f"# {line}".rstrip() for line in __doc__.strip().splitlines()).replace("Writes evening.yaml: e", "E", 1)
Path(__file__).with_name("evening.yaml").write_text(f"{head}\n# evening.py writes this file.\ninput_series:\n" + "\n".join(out) + "\n")
