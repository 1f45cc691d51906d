"""Logs are JSON lines."""

import io
import json
import logging
import sys

import pytest

from webhook.logs.structured import LEVELS, LINES_PER_S, Log, capture_library_logs
from webhook.text.terminal import one_line


def lines(stream):
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_a_line_has_time_level_message_and_fields():
    stream = io.StringIO()
    Log(stream=stream, clock=lambda: 1.5).info("review", uid="a", name=None, path=("x",), message="kept out")
    expected = '{"time": "1970-01-01T00:00:01.500Z", "level": "info", "message": "review", "uid": "a", "path": ["x"]}\n'
    assert stream.getvalue() == expected


@pytest.mark.parametrize("level", LEVELS)
def test_lines_below_the_level_are_left_out(level):
    stream = io.StringIO()
    log = Log(level, stream)
    for name in LEVELS:
        getattr(log, name)("said")
    assert [line["level"] for line in lines(stream)] == list(LEVELS[LEVELS.index(level) :])


def test_the_default_stream_is_stderr(capsys):
    Log().warning("to stderr", odd=object)
    captured = capsys.readouterr()
    assert captured.out == ""
    assert json.loads(captured.err)["odd"] == "<class 'object'>"


def test_an_error_keeps_its_traceback():
    stream = io.StringIO()
    Log(stream=stream).exception("broken", ValueError("why"), phase="mutate")
    (line,) = lines(stream)
    assert (line["error"], line["phase"]) == ("why", "mutate")
    assert "ValueError: why" in line["traceback"]


def test_library_logs_become_lines(monkeypatch):
    stream = io.StringIO()
    root = logging.getLogger()
    before = root.handlers[:], root.level
    monkeypatch.setattr(sys, "unraisablehook", sys.unraisablehook)  # which `capture` replaces
    try:
        capture_library_logs(Log("info", stream))
        logging.getLogger("library").warning("said %s", "x")
        logging.getLogger("library").debug("unheard")
        logging.getLogger("library").critical("failed", exc_info=ValueError("why"))
        logging.getLogger("library").log(5, "unheard")
        _Failing()
    finally:
        root.handlers, root.level = before
    first, second, third = lines(stream)
    assert (first["level"], first["message"], first["logger"]) == ("warning", "said x", "library")
    assert (second["level"], second["traceback"]) == ("error", "ValueError: why\n")
    assert (third["level"], third["message"], third["error"]) == ("error", "internal fault", "KeyError")
    assert "__del__" in third["traceback"][0]
    assert "hunter2" not in stream.getvalue()


class _Failing:
    def __del__(self) -> None:
        raise KeyError("hunter2")


@pytest.mark.parametrize(
    "name", ["\x1b[2J", "\x85", "a\u202eb", "\u2028", "\u200b", "\ud800", "\x7f", "\U000e0041", "é漢 \u3000"]
)
def test_a_log_line_parses_exactly_and_has_no_terminal_control_characters(name):
    stream = io.StringIO()
    Log(stream=stream).info("review", name=name)
    (line,) = lines(stream)
    assert line["name"] == name
    assert one_line(stream.getvalue()[:-1]) == stream.getvalue()[:-1]


def test_repeated_lines_of_a_library_are_limited(monkeypatch):
    stream, now = io.StringIO(), [100.0]
    monkeypatch.setattr(sys, "unraisablehook", sys.unraisablehook)
    root = logging.getLogger()
    before = root.handlers[:], root.level
    try:
        capture_library_logs(Log("info", stream, clock=lambda: now[0]))
        for second in (100.0, 101.5):
            now[0] = second
            for _ in range(20):
                logging.getLogger("library").warning("invalid request")
    finally:
        root.handlers[:], root.level = before
    said = lines(stream)
    assert [line.get("left_out") for line in said] == [None] * LINES_PER_S + [15] + [None] * 4
