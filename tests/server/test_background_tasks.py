"""A background task that fails is logged, counted, and started again. The error is reported for some time."""

from __future__ import annotations

import asyncio
import io
import json
from collections.abc import Callable

import pytest

from webhook.logs.structured import Log
from webhook.server.background_tasks import REMEMBERED_S, Supervisor
from webhook.server.counters import Counters


class Clock:
    def __init__(self) -> None:
        self.now = 0.0
        self.slept: list[float] = []

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds


def supervisor(clock: Clock, stream: io.StringIO | None = None) -> Supervisor:
    log = Log(stream=stream or io.StringIO())
    return Supervisor(Counters(), log, sleep=clock.sleep, clock=lambda: clock.now)


def failing(clock: Clock, *durations_s: float) -> Callable[[], object]:
    left = list(durations_s)

    async def work() -> None:
        if left:
            clock.now += left.pop(0)
            raise KeyError("a secret of an object")

    return work


def test_finished_background_work_is_not_reported() -> None:
    clock = Clock()
    made = supervisor(clock)
    asyncio.run(made.restart_after_failures("warm-up", failing(clock))())
    assert (made.describe_recent_failures(), clock.slept, made.counters.background) == ("", [], {})


def test_work_that_fails_is_started_again_after_longer_and_longer_waits() -> None:
    clock, stream = Clock(), io.StringIO()
    made = supervisor(clock, stream)
    asyncio.run(made.restart_after_failures("policies", failing(clock, *[0.0] * 7))())
    assert clock.slept == [1, 2, 4, 8, 16, 30, 30]
    assert made.counters.background == {("policies",): 7}
    line = json.loads(stream.getvalue().splitlines()[0])
    assert (line["message"], line["task"], line["error"]) == ("background task failed", "policies", "KeyError")
    assert line["traceback"][-1].endswith(" work")
    assert "secret" not in stream.getvalue() + made.describe_recent_failures()


def test_work_that_ran_well_for_long_waits_as_after_its_first_failure() -> None:
    clock = Clock()
    made = supervisor(clock)
    asyncio.run(made.restart_after_failures("policies", failing(clock, 0.0, 0.0, 3600.0))())
    assert clock.slept == [1, 2, 1]


def test_a_failed_task_is_reported_until_it_ran_well_for_ten_minutes() -> None:
    clock = Clock()
    made = supervisor(clock)
    asyncio.run(made.restart_after_failures("context", failing(clock, 0.0))())
    asyncio.run(made.restart_after_failures("policies", failing(clock, 0.0, 0.0))())
    first, second = made.describe_recent_failures().split("; ")
    assert first.startswith("context: KeyError at test_background_tasks.py:")
    assert first.endswith(" in work, restarted once")
    assert second.endswith(" in work, restarted 2 times")
    clock.now += REMEMBERED_S + 1
    assert made.describe_recent_failures() == ""


def test_cancelling_ends_background_work() -> None:
    async def run() -> None:
        task = asyncio.create_task(supervisor(Clock()).restart_after_failures("policies", asyncio.Event().wait)())  # type: ignore[arg-type]
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(run())
