"""Prints SIZE bytes of what a busy vLLM server logs, then its death; numbers differ from line to line.

Usage: serving_log.py SIZE_MIB [SEED]"""

import random
import sys

DEATH = """\
(EngineCore_DP0 pid=610) ERROR 11-21 23:33:10 [core.py:718] EngineCore encountered a fatal error.
(EngineCore_DP0 pid=610) ERROR 11-21 23:33:10 [core.py:718] Traceback (most recent call last):
(EngineCore_DP0 pid=610) ERROR 11-21 23:33:10 [core.py:718]   File "/app/vllm/v1/worker/gpu_model_runner.py", line 2000, in execute_model
(EngineCore_DP0 pid=610) ERROR 11-21 23:33:10 [core.py:718] torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 616.00 MiB. GPU 0 has a total capacity of 79.11 GiB of which 501.19 MiB is free. Including non-PyTorch memory, this process has 78.61 GiB memory in use. Of the allocated memory 76.01 GiB is allocated by PyTorch, and 899.74 MiB is reserved by PyTorch but unallocated.
"""


def block(rng: random.Random, at: int) -> str:
    lines = []
    for i in range(at, at + 7000):
        stamp = f"11-21 {i // 360000 % 24:02}:{i // 6000 % 60:02}:{i // 100 % 60:02}"
        kind = rng.random()
        if kind < 0.1:
            lines.append(
                f"(APIServer pid=1) INFO {stamp} [loggers.py:127] Engine 000: Avg prompt throughput: {rng.uniform(0, 9000):.1f} tokens/s, "
                f"Avg generation throughput: {rng.uniform(0, 3000):.1f} tokens/s, Running: {rng.randrange(64)} reqs, Waiting: {rng.randrange(9)} reqs, "
                f"GPU KV cache usage: {rng.uniform(0, 100):.1f}%, Prefix cache hit rate: {rng.uniform(0, 100):.1f}%"
            )
        elif kind < 0.4:
            lines.append(f"INFO {stamp} [async_llm.py:261] Added request chatcmpl-{rng.getrandbits(128):032x}.")
        else:
            lines.append(
                f'(APIServer pid=1) INFO:     10.0.{rng.randrange(256)}.{rng.randrange(256)}:{rng.randrange(30000, 60000)} - "POST /v1/chat/completions HTTP/1.1" 200 OK'
            )
    return "\n".join(lines) + "\n"


def main() -> None:
    left = int(float(sys.argv[1]) * (1 << 20))
    rng = random.Random(int(sys.argv[2]) if len(sys.argv) > 2 else 1)
    # Some real variety, repeated: drawing each line anew would take longer than what is measured.
    blocks = [block(rng, i * 7000) for i in range(8)]
    i = 0
    left -= len(DEATH)
    while left > 0:
        text = blocks[i % 8][:left]
        sys.stdout.write(text if text.endswith("\n") else text[: text.rfind("\n") + 1] or "\n")
        left -= len(blocks[i % 8])
        i += 1
    sys.stdout.write(DEATH)


main()
