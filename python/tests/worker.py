"""A server that works in batches: items take 2 MiB each while their batch runs. `worker.py ITEMS BATCH|guard|ask`.

BATCH: a fixed size. guard: the size that the guard advises. ask: a fixed size of 4, in threads that only ask
should_process_next_batch() before each batch. Prints items a second, in the first two cases without the first 128 items: a
server runs for days, and what is compared is how it runs once it has learnt.
"""

import sys
import threading
import time

ITEM = 2 << 20
WARM_UP = 128


def work(items):
    held = [bytearray(ITEM) for _ in range(items)]
    time.sleep(0.03 + 0.004 * items)
    del held


def main():
    total, how = int(sys.argv[1]), sys.argv[2]
    began, counted = time.monotonic(), total
    if how == "guard":
        from dualplane import MemoryGuard

        guard = MemoryGuard(vram=False)
        left = total
        while left:
            size = guard.batch_size(min(left, 256)) or 1
            with guard.batch(items=size, timeout=20):
                work(size)
            left -= size
            if counted == total and total - left >= WARM_UP:
                began, counted = time.monotonic(), left
    elif how == "ask":
        from dualplane import MemoryGuard

        guard, turn, left = MemoryGuard(vram=False), threading.Lock(), [total]

        def loop():
            while True:
                with turn:
                    if left[0] <= 0:
                        return
                    if not guard.should_process_next_batch(threshold_percent=70):
                        batch = 0
                    else:
                        batch, left[0] = 4, left[0] - 4
                        held = [bytearray(ITEM) for _ in range(batch)]
                if not batch:
                    time.sleep(0.005)
                    continue
                time.sleep(0.05)
                del held

        threads = [threading.Thread(target=loop) for _ in range(32)]
        [t.start() for t in threads]
        [t.join() for t in threads]
    else:
        left = total
        while left:
            size = min(left, int(how))
            work(size)
            left -= size
            if counted == total and total - left >= WARM_UP:
                began, counted = time.monotonic(), left
    print(f"{counted / (time.monotonic() - began):.1f}")


main()
