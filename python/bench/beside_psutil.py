"""What psutil and MemoryGuard say of a process in a group with a limit of 4 GiB: `python python/bench/beside_psutil.py`, as root."""

import os
from pathlib import Path

import psutil

from dualplane import MemoryGuard

GIB = 1 << 30
v1 = Path("/sys/fs/cgroup/memory")
base, limit = (v1, "memory.limit_in_bytes") if v1.is_dir() else (Path("/sys/fs/cgroup"), "memory.max")
group = base / f"dualplane-beside-psutil-{os.getpid()}"
group.mkdir()
(group / limit).write_text(str(4 * GIB))
child = os.fork()
if child == 0:
    (group / "cgroup.procs").write_text("0")
    guard = MemoryGuard(vram=False)
    held = bytearray(int(3.6 * GIB))
    print(f"psutil.virtual_memory().percent   {psutil.virtual_memory().percent:7.1f}")
    print(f"MemoryGuard().snapshot().percent  {guard.snapshot().percent:7.1f}")
    print(guard.decide().reason, flush=True)
    os._exit(0)
os.waitpid(child, 0)
group.rmdir()
