"""A thread writes lines in batches. In any state of stderr, a caller neither waits nor fails."""

from __future__ import annotations

import contextlib
import json
import os
import select
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from webhook.logs.structured import MOST_LINES, REMARK_S, Log, LogWriter

ROOT = Path(__file__).parents[2]


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    reader, writer = os.pipe()
    yield reader, writer
    for end in (reader, writer):
        try:
            os.close(end)
        except OSError:
            continue


def read_all(reader: int) -> bytes:
    return b"".join(iter(lambda: os.read(reader, 65536), b""))


def until(is_true: Callable[[], bool]) -> None:
    end = time.monotonic() + 20
    while not is_true():
        assert time.monotonic() < end
        time.sleep(0.001)


def test_lines_come_out_in_order_and_a_stop_flushes(pipe: tuple[int, int]) -> None:
    made = LogWriter(pipe[1])
    for number in range(1000):
        made.write(f"{number}\n")
    assert made.stop()
    os.close(pipe[1])
    assert read_all(pipe[0]).split() == [b"%d" % number for number in range(1000)]
    assert (made.dropped, made.describe_dropped_lines()) == (0, "")
    made.write("after the end\n")
    assert made.dropped == 1


def test_lines_that_arrive_together_are_written_in_one_system_call(tmp_path: Path) -> None:
    with (tmp_path / "log").open("wb") as file:
        made = LogWriter(file.fileno())
        batches: list[int] = []
        put = made._write_bytes
        made._write_bytes = lambda data: (batches.append(data.count(b"\n")), put(data))[1]  # type: ignore[method-assign]
        for _ in range(3):
            for _ in range(50):
                made.write("line\n")
            until(lambda: not made._waiting_lines)
        made.stop()
    assert sum(batches) == 150
    assert len(batches) < 15


def test_a_full_pipe_loses_only_log_lines(pipe: tuple[int, int]) -> None:
    now = [0.0]
    made = LogWriter(pipe[1], clock=lambda: now[0])
    log = Log(writer=made)
    for _ in range(100_000):  # a blocking write would stop after a few hundred
        log.info("review", uid="a" * 300)
    assert 100_000 - made.dropped <= MOST_LINES + 65536 // 300
    late = (
        f"stderr is not read as fast as lines are written: {log.dropped_line_count} log lines dropped since the start"
    )
    assert made.describe_dropped_lines().startswith(late)
    assert log.describe_dropped_lines() == made.describe_dropped_lines()
    assert not made.stop(0.1)
    now[0] += REMARK_S + 1
    assert made.describe_dropped_lines() == ""
    os.set_blocking(pipe[0], False)
    kept = b""
    # the reader reads again, so waiting lines arrive
    while made._thread.is_alive() or select.select([pipe[0]], [], [], 0)[0]:
        if select.select([pipe[0]], [], [], 0.01)[0]:
            kept += os.read(pipe[0], 1 << 20)
    lines = [json.loads(line) for line in kept.splitlines()]
    assert len(lines) == 100_000 - made.dropped


def test_a_full_disk_is_named() -> None:
    with Path("/dev/full").open("wb") as file:
        made = LogWriter(file.fileno())
        made.write("line\n")
        until(lambda: made.dropped)
    told = made.describe_dropped_lines()
    start = "stderr cannot be written: no space left on device: 1 log line dropped since the start, the last one at "
    assert told.startswith(start)
    when, _, ago = told.removeprefix(start).partition(", ")
    assert abs(datetime.now(UTC) - datetime.fromisoformat(when)) < timedelta(minutes=1)
    assert ago == "0 s ago"
    made.stop()


def test_waiting_log_lines_are_bounded_in_characters_too(pipe: tuple[int, int]) -> None:
    made = LogWriter(pipe[1], most_characters=1000)
    made.write("x" * 2000)
    assert made.dropped == 1
    made.write("x" * 900)
    assert made.dropped == 1
    assert made.stop()


def test_a_non_blocking_pipe_is_waited_for(pipe: tuple[int, int]) -> None:
    os.set_blocking(pipe[1], False)
    made = LogWriter(pipe[1])
    made.write("x" * 200_000 + "\n")
    until(lambda: bool(select.select([pipe[0]], [], [], 0)[0]))
    time.sleep(0.05)  # the pipe is full, so the thread waits
    kept = b""
    while len(kept) < 200_001:
        kept += os.read(pipe[0], 65536)
    assert made.stop()
    assert (kept, made.dropped) == (b"x" * 200_000 + b"\n", 0)


def test_log_lines_lost_on_a_closed_stderr_are_counted(pipe: tuple[int, int]) -> None:
    os.close(pipe[0])
    for descriptor in (pipe[1], None):
        made = LogWriter(descriptor)
        made.write("a\n")
        made.write("b\n")
        made.stop()
        assert made.dropped == 2


def test_a_child_does_not_write_buffered_lines_of_its_parent(pipe: tuple[int, int]) -> None:
    made = LogWriter(pipe[1])
    made._process = -1  # as in a process that was forked off
    assert made.stop()
    assert made._thread.is_alive()
    made._process = os.getpid()
    assert made.stop()


def test_lines_go_to_stderr_and_a_missing_stderr_counts_as_closed(capfd: pytest.CaptureFixture[str]) -> None:
    made = LogWriter.to_stderr()
    made.write("line\n")
    assert made.stop()
    assert capfd.readouterr().err == "line\n"
    with contextlib.redirect_stderr(None):
        made = LogWriter.to_stderr()
    made.write("line\n")
    assert made.stop()
    assert made.dropped == 1


ENDINGS = {"normal": "", "a crash": "raise KeyError('x')"}


@pytest.mark.parametrize("ending", ENDINGS.values(), ids=ENDINGS)
def test_the_last_lines_are_flushed_when_the_process_ends(ending: str) -> None:
    code = (
        "from webhook.logs.structured import LogWriter; from webhook.logs.structured import Log\n"
        f"Log(writer=LogWriter.to_stderr()).info('last')\n{ending}"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert '"message": "last"' in done.stderr


def test_a_process_without_stderr_loses_its_log() -> None:
    code = (
        "import sys; from webhook.logs.structured import LogWriter; from webhook.logs.structured import Log\n"
        "writer = LogWriter.to_stderr(); Log(writer=writer).info('lost'); writer.stop(); print(writer.dropped)"
    )
    done = subprocess.run(
        ["bash", "-c", f'exec "{sys.executable}" -c "$0" 2>&-', code],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "1\n"
