"""MemoryGuard: what a batch loop asks before it takes the next batch.

Host RAM is that of the container: its memory cgroup (v1 or v2) and every group above it that has a limit, without page cache,
which the kernel takes back before it kills. VRAM is that of the fullest card, asked of the driver. What a batch needs is
learnt from the batches before it, so the answer is about the end of the next batch and not about this moment.
"""

from __future__ import annotations

import asyncio
import ctypes
import functools
import inspect
import os
import sys
import threading
import time
import weakref
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import Any, AsyncIterator, Callable, Iterator, Sequence, TypeVar

from ._memory import Meter, check_percent

F = TypeVar("F", bound=Callable[..., Any])

# Between two looks while somebody waits for room.
_BEAT = 0.02

# Between two requests to the allocator to give back what it keeps, which takes milliseconds.
_TRIM_APART = 0.25


def _trimmer() -> Callable[[int], Any] | None:
    """glibc's malloc keeps what is freed, in each thread's arena: without this a process that freed all could be refused for
    ever. None where the C library keeps nothing, or is another one."""
    try:
        return ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError, TypeError):
        return None


_trim = _trimmer()


class MemoryPressure(RuntimeError):
    """No room for a batch within the time that the caller gave. `plane` is "host" or "gpu", `reason` a sentence with numbers."""

    def __init__(self, plane: str, reason: str) -> None:
        super().__init__(reason)
        self.plane = plane
        self.reason = reason


@dataclass(frozen=True)
class Decision:
    """An answer with its reason. True where there is room."""

    ok: bool
    plane: str | None = None
    reason: str | None = None

    def __bool__(self) -> bool:
        return self.ok


@dataclass(frozen=True)
class Snapshot:
    """Both planes at one moment, in bytes. None: not told."""

    scope: str
    """"cgroup" or "machine": what limits this process."""
    limit: int
    held: int
    """What the kernel cannot take back; page cache is not in it, tmpfs and pinned memory are."""
    used: int
    stalled_percent: float | None
    oom_kills: int | None
    growth_per_second: float | None
    vram_device: str | None
    vram_used: int | None
    vram_total: int | None
    vram_gap: str | None
    """Why VRAM is not known."""
    asked: int
    refused: int

    @property
    def percent(self) -> float:
        """Held host RAM, percent of the limit."""
        return 100.0 * self.held / self.limit

    @property
    def vram_percent(self) -> float | None:
        return 100.0 * self.vram_used / self.vram_total if self.vram_used is not None and self.vram_total else None


def _torch_reusable() -> int:
    """Bytes that torch's allocator holds on the current device and would use again. 0 where torch is not in use."""
    torch = sys.modules.get("torch")
    try:
        if torch is None or not torch.cuda.is_initialized():
            return 0
        return max(0, int(torch.cuda.memory_reserved()) - int(torch.cuda.memory_allocated()))
    except Exception:  # A torch that is still being imported, or one without CUDA.
        return 0


_guards: "weakref.WeakSet[MemoryGuard]" = weakref.WeakSet()


class MemoryGuard:
    """Asks both memory planes before a batch.

    >>> guard = MemoryGuard()
    >>> for batch in batches:
    ...     while not guard.should_process_next_batch(threshold_percent=85):
    ...         time.sleep(0.05)
    ...     work(batch)

    or, so that it learns what a batch needs:

    >>> with guard.batch(items=len(batch)):
    ...     work(batch)

    threshold_percent: of the host RAM limit; vram_threshold_percent: of a card's memory, None does not ask; pressure_percent: of
    the last ten seconds that all tasks may wait for memory. vram: None asks the driver where there is one, True insists, False
    does not. trim: a refusal lets glibc's malloc give back what it keeps, at most four times a second. gpus: UUIDs or indices, all cards that the driver shows where it is empty. reusable_vram: a callable that says how
    many bytes the server's own allocator would use again; torch is asked by itself.
    """

    def __init__(
        self,
        threshold_percent: float = 85.0,
        *,
        vram_threshold_percent: float | None = 95.0,
        pressure_percent: float = 20.0,
        vram: bool | None = None,
        gpus: Sequence[str | int] = (),
        reusable_vram: Callable[[], int] | None = None,
        trim: bool = True,
        _gpu_table: str | None = None,
        _proc: str = "/proc",
        _cgroup: str = "/sys/fs/cgroup",
    ) -> None:
        self._threshold = check_percent("threshold_percent", float(threshold_percent))
        self._vram_threshold = (
            None
            if vram_threshold_percent is None
            else check_percent("vram_threshold_percent", float(vram_threshold_percent))
        )
        self._stall = check_percent("pressure_percent", float(pressure_percent))
        self._reusable = reusable_vram or _torch_reusable
        self._made_of = (vram, [str(g) for g in gpus], _gpu_table, _proc, _cgroup)
        self._trim = _trim if trim else None
        self._trimmed = 0.0
        self._turn = threading.Lock()
        self._renew()
        _guards.add(self)

    def _renew(self) -> None:
        # Also in a child after a fork: it is another process, perhaps in another group, and the parent's thread is not there.
        self._meter = Meter(*self._made_of)
        self._asks_vram = self._vram_threshold is not None and self._meter.look()["vram_used"] is not None
        self._turn = threading.Lock()

    def _limits(self, threshold: float | None) -> tuple[float, float | None, float, int]:
        host = self._threshold if threshold is None else check_percent("threshold_percent", float(threshold))
        return host, self._vram_threshold, self._stall, self._reusable() if self._asks_vram else 0

    def should_process_next_batch(self, threshold_percent: float | None = None, items: int = 1) -> bool:
        """Whether the next batch has room on both planes now. Does not wait."""
        if threshold_percent is None and not self._asks_vram:
            room = self._meter.has_room(items, self._threshold, None, self._stall, 0)
        else:
            room = self._meter.has_room(items, *self._limits(threshold_percent))
        if not room:
            self._give_back()
        return room

    def _give_back(self) -> None:
        """Free memory that malloc keeps goes back to the kernel; the next question sees it."""
        if self._trim is not None and (now := time.monotonic()) - self._trimmed >= _TRIM_APART:
            self._trimmed = now
            self._trim(0)

    def decide(self, items: int = 1, threshold_percent: float | None = None) -> Decision:
        """The same with the plane and the reason."""
        refused = self._meter.refusal(items, *self._limits(threshold_percent))
        if refused is not None and refused[0] == "host":
            self._give_back()
        return Decision(True) if refused is None else Decision(False, *refused)

    def batch_size(self, wanted: int, threshold_percent: float | None = None) -> int:
        """The most items, at most `wanted`, that have room. It begins with 1 and doubles while it learns; 0: no room at all."""
        if wanted < 0:
            raise ValueError(f"wanted is a number of items, not {wanted}")
        size = self._meter.advise(wanted, *self._limits(threshold_percent))
        if size == 0 and wanted:
            self._give_back()
        return size

    def need(self, items: int = 1) -> tuple[int | None, int | None]:
        """Bytes of host RAM and of VRAM that a batch of `items` needs, as learnt; None before the first batch."""
        return self._meter.need(items)

    def snapshot(self) -> Snapshot:
        """Both planes now."""
        return Snapshot(**self._meter.look())

    def wait(self, timeout: float | None = None, items: int = 1) -> Decision:
        """Waits until there is room, at most `timeout` seconds; the last answer."""
        until = None if timeout is None else time.monotonic() + timeout
        while not (answer := self.decide(items)):
            if until is not None and time.monotonic() >= until:
                break
            time.sleep(_BEAT)
        return answer

    def _begin(self, items: int) -> tuple[int | None, Decision]:
        # Asked and begun at once: of two threads that ask together only one gets the last room.
        with self._turn:
            answer = self.decide(items)
            return (self._meter.begin(items), answer) if answer else (None, answer)

    @contextmanager
    def batch(self, items: int = 1, timeout: float | None = None) -> Iterator[None]:
        """Waits for room, then runs the batch and learns what it took. Raises MemoryPressure after `timeout` seconds."""
        until = None if timeout is None else time.monotonic() + timeout
        while True:
            number, answer = self._begin(items)
            if number is not None:
                break
            if until is not None and time.monotonic() >= until:
                raise MemoryPressure(answer.plane or "host", answer.reason or "no room")
            time.sleep(_BEAT)
        try:
            yield
        finally:
            self._meter.end(number)

    @asynccontextmanager
    async def batch_async(self, items: int = 1, timeout: float | None = None) -> AsyncIterator[None]:
        """As `batch`; other tasks go on while it waits."""
        until = None if timeout is None else time.monotonic() + timeout
        while True:
            number, answer = self._begin(items)
            if number is not None:
                break
            if until is not None and time.monotonic() >= until:
                raise MemoryPressure(answer.plane or "host", answer.reason or "no room")
            await asyncio.sleep(_BEAT)
        try:
            yield
        finally:
            self._meter.end(number)

    def guarded(self, items: int | Callable[..., int] = 1, timeout: float | None = None) -> Callable[[F], F]:
        """Decorator: each call is a batch. `items` is a number, or a callable that gets the call's arguments."""

        def count(args: tuple[Any, ...], kwargs: dict[str, Any]) -> int:
            return items(*args, **kwargs) if callable(items) else items

        def decorate(function: F) -> F:
            if inspect.iscoroutinefunction(function):

                @functools.wraps(function)
                async def call_async(*args: Any, **kwargs: Any) -> Any:
                    async with self.batch_async(count(args, kwargs), timeout):
                        return await function(*args, **kwargs)

                return call_async  # type: ignore[return-value]

            @functools.wraps(function)
            def call(*args: Any, **kwargs: Any) -> Any:
                with self.batch(count(args, kwargs), timeout):
                    return function(*args, **kwargs)

            return call  # type: ignore[return-value]

        return decorate


def _after_fork() -> None:
    for guard in list(_guards):
        guard._renew()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)

_default: MemoryGuard | None = None
_default_lock = threading.Lock()


def should_process_next_batch(threshold_percent: float = 85.0) -> bool:
    """`MemoryGuard().should_process_next_batch(...)` with one guard for the process."""
    global _default
    if _default is None:
        with _default_lock:
            if _default is None:
                _default = MemoryGuard()
    return _default.should_process_next_batch(threshold_percent)
