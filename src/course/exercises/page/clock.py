"""Limit the time of a learner's code in a web page, which has no threads.

In a notebook, `course.exercises.clock` does this. Here, Python reports each jump and each call
(`sys.monitoring`), and at such a point a limit that has run out raises `Late`. A call of a built-in
function cannot be interrupted. If such a call takes too long, the page stops the whole worker.
"""

import contextlib
import sys
import time
import traceback
from collections.abc import Iterator
from typing import Any

PATIENCE = 6.0  # the same name as in a notebook, but here all seconds are on the wall clock
# seconds until we interrupt again, because a bare `except` in the learner's code may have caught
# the first interrupt
AGAIN = 1.0
TOOL = 4  # a number that no debugger uses


class Limit:
    """Count the seconds of one block."""

    def __init__(self, seconds: float):
        self.seconds = seconds
        self.start()

    def start(self) -> None:
        self.ends = time.perf_counter() + self.seconds


class Late(BaseException):
    """Stop a learner's code whose time limit has run out.

    This is raised in the learner's code. An `except Exception` there does not catch it.
    """

    def __init__(self, limit: Limit):
        super().__init__()
        self.limit = limit


limits: list[Limit] = []  # the running limits, the outermost first


@contextlib.contextmanager
def limited(seconds: float, patience: float = 1) -> Iterator[Limit]:
    """Raise `Late` in the block if it takes too long."""
    limit = Limit(seconds)
    if not limits:
        watch()
    limits.append(limit)
    try:
        yield limit
    finally:
        del limits[limits.index(limit) :]
        if not limits:
            rest()


def watch() -> None:
    events = sys.monitoring.events
    sys.monitoring.use_tool_id(TOOL, "limits of exercises")
    for event in (events.JUMP, events.PY_START):
        sys.monitoring.register_callback(TOOL, event, ask)
    sys.monitoring.set_events(TOOL, events.JUMP | events.PY_START)


def rest() -> None:
    sys.monitoring.set_events(TOOL, 0)
    sys.monitoring.free_tool_id(TOOL)


def ask(*_: Any) -> None:
    """Raise `Late` for the outermost limit that has run out, but never during an import."""
    time_now = time.perf_counter()
    for limit in limits:
        if time_now > limit.ends:
            if any(
                "importlib._bootstrap" in frame.f_code.co_filename
                for frame, _ in traceback.walk_stack(None)
            ):
                limit.start()
            else:
                limit.ends = time_now + AGAIN
                raise Late(limit)
