"""What a call costs: `python python/bench/calls.py`. Nanoseconds a call over some seconds, the looks at the kernel included."""

import time

from dualplane import MemoryGuard


def cost(call, seconds=2.0):
    calls, began = 0, time.perf_counter()
    while (passed := time.perf_counter() - began) < seconds:
        for _ in range(1_000):
            call()
        calls += 1_000
    return passed / calls * 1e9


guard = MemoryGuard(99.9, vram=False)


def batch():
    with guard.batch(timeout=5):
        pass


rows = [
    ("guard.should_process_next_batch()", guard.should_process_next_batch),
    ("guard.should_process_next_batch(85)", lambda: guard.should_process_next_batch(85)),
    ("with guard.batch(): pass", batch),
]

try:
    import psutil

    rows.append(("psutil.virtual_memory()", psutil.virtual_memory))
except ImportError:
    pass
for name, call in rows:
    print(f"{cost(call):10.0f} ns  {name}")
