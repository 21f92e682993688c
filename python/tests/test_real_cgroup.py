"""A real memory cgroup, a real kernel: the loop that dies without the guard lives with it, at nearly the best safe speed."""

import os
import pathlib
import statistics
import subprocess
import sys

import pytest

LIMIT = 128 << 20
V1, V2 = pathlib.Path("/sys/fs/cgroup/memory"), pathlib.Path("/sys/fs/cgroup")
WORKER = pathlib.Path(__file__).with_name("worker.py")


def new_group(name):
    """A group of our own with a limit, or None where this machine gives none."""
    v1 = (V1 / "memory.usage_in_bytes").exists()
    base = V1 if v1 else V2
    group = base / f"dualplane-python-{name}-{os.getpid()}"
    try:
        group.mkdir()
        (group / ("memory.limit_in_bytes" if v1 else "memory.max")).write_text(str(LIMIT))
    except OSError:
        if group.exists():
            group.rmdir()
        return None
    return group


@pytest.fixture
def group(request):
    made = new_group(request.node.name[:24])
    if made is None:
        if os.environ.get("DUALPLANE_REAL_OOM") == "1":
            pytest.fail("this machine gives no memory cgroup, and DUALPLANE_REAL_OOM demands one")
        pytest.skip("this machine gives no memory cgroup")
    yield made
    made.rmdir()


def run(group, items, how):
    """Exit status and items a second of a worker in the group."""

    def enter():
        (group / "cgroup.procs").write_text("0")

    ran = subprocess.run(
        [sys.executable, str(WORKER), str(items), str(how)], preexec_fn=enter, capture_output=True, text=True, timeout=120
    )
    return ran.returncode, float(ran.stdout) if ran.returncode == 0 else ran.stderr


# Sizes that somebody would try who knows the limit: 56 items are 112 of 128 MiB.
SIZES = (44, 48, 52, 56)


def test_the_loop_that_dies_lives_with_the_guard(group):
    died, _ = run(group, 256, 256)
    assert died == -9, "without the guard the kernel kills it"
    # In turns, because other programs use the machine as well, and the middle of each one's rounds.
    speeds, unsafe = {how: [] for how in ("guard", *SIZES)}, set()
    for turn in range(6):
        for how in speeds:
            status, speed = run(group, 128 + 600 if how == "guard" else 128 + 300, how)
            assert status == 0 or how != "guard", speed
            if status == 0:
                speeds[how].append(speed)
            else:
                unsafe.add(how)
        middle = {how: statistics.median(s) for how, s in speeds.items() if s and how not in unsafe}
        best = max(speed for how, speed in middle.items() if how != "guard")
        if turn >= 2 and middle["guard"] >= 0.9 * best:
            break
    print(f"guard {100 * middle['guard'] / best:.0f} % of the best safe batch; items/s {middle}, killed {unsafe}")
    # Who else uses the machine moves the figure by a tenth; a guard that holds back what has room loses far more.
    assert middle["guard"] >= 0.75 * best, (speeds, unsafe)


def test_threads_that_only_ask_live(group):
    # 32 threads of 4 items are 256 MiB at once.
    status, speed = run(group, 1_000, "ask")
    assert status == 0, speed
