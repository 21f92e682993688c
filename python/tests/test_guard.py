"""MemoryGuard over machines made of files: a cgroup, a /proc and a table of GPU samples."""

import asyncio
import json
import multiprocessing
import os
import threading
import time

import pytest

from dualplane import MemoryGuard, MemoryPressure, should_process_next_batch

MIB = 1 << 20


class Machine:
    """A container of cgroup v2 whose numbers a test sets."""

    def __init__(self, root):
        self.proc, self.cgroup = root / "proc", root / "cgroup"
        self.own = self.cgroup / "pod" / "server"
        self.own.mkdir(parents=True)
        (self.proc / str(os.getpid())).mkdir(parents=True)
        (self.proc / str(os.getpid()) / "cgroup").write_text("0::/pod/server\n")
        (self.proc / "meminfo").write_text("MemTotal: 67108864 kB\nMemFree: 33554432 kB\nMemAvailable: 33554432 kB\n")
        (self.cgroup / "cgroup.controllers").write_text("memory\n")
        (self.own / "memory.max").write_text(f"{1000 * MIB}\n")
        self.set(used=100)

    def set(self, used, cache=0, stalled=0.0):
        self._write("memory.stat", f"anon {(used - cache) * MIB}\ninactive_file {cache * MIB}\nactive_file 0\n")
        self._write("memory.pressure", f"some avg10=0.00 total=1\nfull avg10={stalled:.2f} avg60=0.00 total=1\n")
        self._write("memory.current", f"{used * MIB}\n")

    def _write(self, name, text):
        # In place, as the kernel does: the guard keeps its files open.
        with open(self.own / name, "r+" if (self.own / name).exists() else "w") as f:
            f.write(text)
            f.truncate()

    def guard(self, *args, **kwargs):
        kwargs.setdefault("vram", False)
        return MemoryGuard(*args, _proc=str(self.proc), _cgroup=str(self.cgroup), **kwargs)


@pytest.fixture
def machine(tmp_path):
    return Machine(tmp_path)


def settle():
    time.sleep(0.03)  # Longer than a look stays fresh.


def card(used, total=80 * 1024 * MIB, uuid="GPU-11111111-2222"):
    device = {"uuid": uuid, "index": 0, "name": "NVIDIA H100 80GB HBM3"}
    reading = {"device": 0, "used": used, "total": total, "free": total - used}
    return json.dumps({"devices": [device], "steps": [{"at_ms": 0, "readings": [reading]}]})


def test_there_is_room_below_the_threshold_and_none_above(machine):
    guard = machine.guard()
    assert guard.should_process_next_batch(threshold_percent=85)
    machine.set(used=851)
    settle()
    assert not guard.should_process_next_batch(threshold_percent=85)
    assert guard.should_process_next_batch(threshold_percent=90)


def test_a_rise_is_seen_at_once_and_not_when_the_last_look_is_old(machine):
    guard = machine.guard()
    assert guard.should_process_next_batch()
    machine.set(used=990)
    assert not guard.should_process_next_batch()


def test_page_cache_is_no_reason_to_wait(machine):
    machine.set(used=990, cache=700)
    guard = machine.guard()
    assert guard.should_process_next_batch()
    assert guard.snapshot().held == 290 * MIB
    assert guard.snapshot().percent == pytest.approx(29.0)


def test_the_container_counts_and_not_the_machine(machine):
    machine.set(used=900)
    snapshot = machine.guard().snapshot()
    assert (snapshot.scope, snapshot.limit) == ("cgroup", 1000 * MIB)


def test_a_limit_that_is_resized_counts_at_once(machine):
    machine.set(used=900)
    guard = machine.guard()
    assert not guard.should_process_next_batch()
    (machine.own / "memory.max").write_text(f"{2000 * MIB}\n")
    settle()
    assert guard.should_process_next_batch()


def test_the_reason_names_plane_and_numbers(machine):
    machine.set(used=900)
    answer = machine.guard().decide()
    assert not answer
    assert answer.plane == "host"
    assert answer.reason == (
        "host RAM would reach 900.00 MiB (0 B for this batch), more than 85 % of the cgroup's limit: 850.00 MiB of 1000.00 MiB"
    )


def test_a_group_that_reclaims_without_end_has_no_room(machine):
    machine.set(used=990, cache=700, stalled=40.0)
    answer = machine.guard().decide()
    assert not answer and "reclaims" in answer.reason


def test_a_batch_teaches_what_the_next_one_needs(machine):
    guard = machine.guard()
    assert guard.need(4) == (None, None)
    with guard.batch(items=4):
        machine.set(used=500)
        settle()
    machine.set(used=100)
    settle()
    assert guard.need(4) == (400 * MIB, None)
    assert guard.should_process_next_batch(items=4)
    # 100 held and 8 × 100 for the batch are more than 850.
    assert not guard.should_process_next_batch(items=8)
    assert guard.batch_size(64) == 7


def test_two_batches_that_begin_together_do_not_get_the_same_room(machine):
    guard = machine.guard()
    with guard.batch(items=1):
        machine.set(used=500)
        settle()
    machine.set(used=100)
    settle()
    # Each needs 400: the first leaves room for 350.
    with guard.batch(items=1):
        assert not guard.should_process_next_batch()
        with pytest.raises(MemoryPressure) as refused:
            with guard.batch(items=1, timeout=0.05):
                pass
        assert refused.value.plane == "host"
    settle()
    assert guard.should_process_next_batch()


def test_advice_begins_small(machine):
    assert machine.guard().batch_size(64) == 1
    assert machine.guard().batch_size(0) == 0
    machine.set(used=990)
    assert machine.guard().batch_size(64) == 0


def test_a_batch_that_fails_is_over(machine):
    guard = machine.guard()
    with pytest.raises(KeyError):
        with guard.batch(items=1):
            machine.set(used=500)
            settle()
            raise KeyError
    machine.set(used=100)
    settle()
    assert guard.need(1)[0] == 400 * MIB
    assert guard.should_process_next_batch()


def test_the_decorator_keeps_the_function(machine):
    guard = machine.guard()

    @guard.guarded(items=lambda batch: len(batch))
    def work(batch):
        """Works."""
        machine.set(used=100 + 10 * len(batch))
        settle()
        return sum(batch)

    assert work([1, 2, 3]) == 6
    assert (work.__name__, work.__doc__) == ("work", "Works.")
    assert guard.need(3)[0] == 30 * MIB


def test_asyncio_tasks_wait_without_blocking_the_loop(machine):
    guard = machine.guard()
    machine.set(used=990)
    ticks = 0

    async def waits():
        async with guard.batch_async(timeout=5):
            return "ran"

    async def story():
        nonlocal ticks
        task = asyncio.create_task(waits())
        for _ in range(10):
            await asyncio.sleep(0.01)
            ticks += 1
        assert not task.done()
        machine.set(used=100)
        return await task

    assert asyncio.run(story()) == "ran"
    assert ticks == 10

    @guard.guarded()
    async def coroutine():
        return 7

    assert asyncio.run(coroutine()) == 7


def test_wait_says_why_it_gave_up(machine):
    machine.set(used=990)
    answer = machine.guard().wait(timeout=0.05)
    assert not answer and answer.plane == "host"


def test_vram_is_the_other_plane(machine):
    full = machine.guard(vram=True, _gpu_table=card(used=79 * 1024 * MIB))
    answer = full.decide()
    assert not answer and answer.plane == "gpu" and "GPU-11111111-2222" in answer.reason
    assert machine.guard(vram=True, vram_threshold_percent=None, _gpu_table=card(used=79 * 1024 * MIB)).decide()
    assert machine.guard(vram=True, _gpu_table=card(used=40 * 1024 * MIB)).decide()


def test_what_the_servers_own_allocator_would_use_again_is_room(machine):
    full = dict(vram=True, _gpu_table=card(used=79 * 1024 * MIB))
    assert machine.guard(reusable_vram=lambda: 30 * 1024 * MIB, **full).decide()


def test_a_card_that_is_not_there_is_said(machine):
    with pytest.raises(RuntimeError, match=r"no GPU `7`; there are 0 \(GPU-11111111-2222\)"):
        machine.guard(vram=True, gpus=[7], _gpu_table=card(used=0))
    if not os.path.exists("/proc/driver/nvidia"):
        with pytest.raises(RuntimeError, match="VRAM: "):
            machine.guard(vram=True)
        snapshot = machine.guard(vram=None).snapshot()
        assert snapshot.vram_used is None and snapshot.vram_gap


@pytest.mark.parametrize("value", [0, -1, 101, float("nan"), float("inf")])
def test_what_is_no_percentage_is_refused_with_words(machine, value):
    with pytest.raises(ValueError, match="threshold_percent is a percentage"):
        machine.guard(threshold_percent=value)
    with pytest.raises(ValueError, match="threshold_percent is a percentage"):
        machine.guard().should_process_next_batch(threshold_percent=value)
    with pytest.raises(ValueError, match="number of items"):
        machine.guard().batch_size(-1)


def test_without_anything_to_read_it_says_so(tmp_path):
    with pytest.raises(RuntimeError, match="needs Linux"):
        MemoryGuard(_proc=str(tmp_path), _cgroup=str(tmp_path), vram=False)


def test_many_threads_share_one_guard(machine):
    guard = machine.guard()
    done = []

    def work():
        for _ in range(50):
            with guard.batch(items=1, timeout=10):
                pass
        done.append(True)

    threads = [threading.Thread(target=work) for _ in range(8)]
    [t.start() for t in threads]
    [t.join(timeout=30) for t in threads]
    assert len(done) == 8


def _child(guard, answers):
    answers.put((guard.should_process_next_batch(), guard.snapshot().scope))
    with guard.batch(items=1, timeout=5):
        answers.put("ran")


def test_a_child_of_fork_has_a_guard_of_its_own():
    guard = MemoryGuard(99.9, vram=False)
    with guard.batch(items=1):  # A batch of the parent, with its thread, is no batch of the child.
        context = multiprocessing.get_context("fork")
        answers = context.Queue()
        child = context.Process(target=_child, args=(guard, answers))
        child.start()
        assert answers.get(timeout=20)[1] in ("cgroup", "machine")
        assert answers.get(timeout=20) == "ran"
        child.join(timeout=20)
        assert child.exitcode == 0


def test_here():
    """On the machine as it is."""
    snapshot = MemoryGuard().snapshot()
    assert 0 < snapshot.held <= snapshot.limit
    assert isinstance(should_process_next_batch(99.9), bool)
