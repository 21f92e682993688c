"""Memory of a GPU model server, from inside: ask before each batch whether host RAM and VRAM have room."""

import sys

if sys.version_info < (3, 10):
    raise ImportError("MemoryGuard needs CPython 3.10 or later; the program `dualplane` beside it does not")

try:
    from .guard import Decision, MemoryGuard, MemoryPressure, Snapshot, should_process_next_batch
except ModuleNotFoundError as e:
    if e.name != "dualplane._memory":
        raise
    raise ImportError(
        "this wheel carries the program `dualplane` alone: MemoryGuard is in the wheels for Linux with glibc"
    ) from e

__all__ = ["Decision", "MemoryGuard", "MemoryPressure", "Snapshot", "should_process_next_batch"]
