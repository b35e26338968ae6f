"""Limit the time of a learner's code.

Limits can be nested, so there is a stack of limits and one handler of the interrupt. A limit that
runs out raises `Late` in the main thread. With one handler for all limits, an interrupt that
arrives while a limit is being set up or removed is not mistaken for a learner who stops the cell.
"""

import _thread
import contextlib
import signal
import threading
import time
import traceback
from collections.abc import Iterator
from types import FrameType
from typing import Any

# how many times as long a block may take on the wall clock, if other programs use the processor
PATIENCE = 6.0
TICK = 0.05  # seconds between two checks of the limits
# seconds until we interrupt again, because a bare `except` in the learner's code may have caught
# the first interrupt
AGAIN = 1.0


class Limit:
    """Count the processor seconds of one block, and the seconds on the wall clock.

    On the wall clock, the block may take `patience` times as many seconds.
    """

    def __init__(self, seconds: float, patience: float):
        self.seconds, self.patience, self.done = seconds, patience, False
        self.start()

    def start(self) -> None:
        """Start counting, or start again from zero."""
        self.began, self.ends = time.thread_time(), time.monotonic() + self.patience * self.seconds

    def left(self) -> float:
        """Return the seconds until the limit has run out, if the block uses all processor time.

        Call this only in the main thread.
        """
        wall = self.ends - time.monotonic()
        if self.patience <= 1:
            return wall
        return min(wall, self.seconds - (time.thread_time() - self.began))


class Late(BaseException):
    """Stop a learner's code whose time limit has run out.

    This is raised in the learner's code. An `except Exception` there does not catch it.
    """

    def __init__(self, limit: Limit):
        super().__init__()
        self.limit = limit


class Clocks:
    """Hold all running limits, the outermost first, and the one handler of the interrupt."""

    def __init__(self) -> None:
        self.limits: list[Limit] = []
        self.before: Any = None  # the handler of the interrupt before the first limit
        self.next = float("inf")  # the time of the next alarm on the wall clock
        self.rang = self.changing = False
        self.lock = threading.Condition()
        self.watcher: threading.Thread | None = None

    def push(self, limit: Limit) -> None:
        """Start a new limit inside the limits that are already running."""
        self.changing = True
        if not self.limits:
            self.before = signal.signal(signal.SIGINT, self.handle)
        self.limits.append(limit)
        self.ring()
        self.changing = False

    def pop(self, limit: Limit) -> None:
        """Remove a limit and all limits that are still inside it."""
        self.changing = True
        if limit in self.limits:
            del self.limits[self.limits.index(limit) :]
        self.ring()
        if not self.limits:
            time.sleep(0)  # a pending signal arrives now, and not in later code
            signal.signal(signal.SIGINT, self.before)
        self.changing = False

    def ring(self, after: float | None = None) -> None:
        """Set the alarm to ring after this many seconds.

        By default it rings at the earliest time at which a limit may have run out.
        """
        if after is None:
            after = min(
                (limit.left() for limit in self.limits if not limit.done), default=float("inf")
            )
        with self.lock:
            idle, self.next = self.next == float("inf"), time.monotonic() + max(after, 0.0)
            if self.watcher is None or not self.watcher.is_alive():
                self.watcher = threading.Thread(
                    target=self.watch, daemon=True, name="limits of exercises"
                )
                self.watcher.start()
            elif idle:
                self.lock.notify()

    def watch(self) -> None:
        """Interrupt the main thread from another thread whenever a limit may have run out."""
        with self.lock:
            while True:
                wait = self.next - time.monotonic()
                if wait <= 0:
                    self.next, self.rang = float("inf"), True
                    _thread.interrupt_main()
                elif wait == float("inf"):
                    self.lock.wait()
                else:
                    self.lock.wait(min(wait, TICK))

    def handle(self, sign: int, frame: FrameType | None) -> None:
        """Raise `Late` for the outermost limit that has run out.

        If the interrupt came from the learner, it is passed on. We never interrupt an import,
        because an incomplete module would then remain for the rest of the session. A limit that
        runs out during an import starts again.
        """
        if not self.rang:
            signal.default_int_handler(sign, frame)
        self.rang = False
        late = [limit for limit in self.limits if not limit.done and limit.left() < TICK]
        if not late:
            self.ring()
        elif self.changing:
            self.ring(TICK)
        elif any(
            "importlib._bootstrap" in caller.f_code.co_filename
            for caller, _ in traceback.walk_stack(frame)
        ):
            for limit in late:
                limit.start()
            self.ring()
        else:
            self.ring(AGAIN)
            raise Late(late[0])


CLOCKS = Clocks()


@contextlib.contextmanager
def limited(seconds: float, patience: float = 1) -> Iterator[Limit]:
    """Raise `Late` in the block if it takes too long. This works only in the main thread.

    Args:
        seconds: the limit. If `patience` is above 1, it is in processor seconds, so that other
            programs do not count. Otherwise it is in seconds on the wall clock.
        patience: how many times as many seconds are allowed on the wall clock.
    """
    limit = Limit(seconds, patience)
    if threading.current_thread() is not threading.main_thread():
        yield limit
        return
    try:
        try:
            CLOCKS.push(limit)
            yield limit
        finally:
            limit.done = True
    finally:
        limit.done = True  # once more, because it may have run out in the line before
        CLOCKS.pop(limit)
