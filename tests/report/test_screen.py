"""Environment variables and the terminal set colours, signs and width of the output."""

import io
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from webhook.report.screen import PLAIN, Screen, screen_of
from webhook.report.text_findings import lines_of_message


class Terminal(io.StringIO):
    encoding = "utf-8"

    def isatty(self):
        return True


class Latin(io.StringIO):
    encoding = "iso-8859-1"


@pytest.mark.parametrize(
    ("stream", "variables", "expected"),
    [
        pytest.param(io.StringIO(), {}, PLAIN, id="a pipe"),
        pytest.param(io.StringIO(), {"COLUMNS": "60"}, Screen(width=60), id="a pipe with a width"),
        pytest.param(io.StringIO(), {"FORCE_COLOR": "1"}, Screen(is_colored=True), id="a pipe with colours"),
        pytest.param(io.StringIO(), {"FORCE_COLOR": "0"}, PLAIN, id="no colours requested"),
        pytest.param(Terminal(), {"TERM": "xterm"}, Screen(is_colored=True), id="a terminal"),
        pytest.param(Terminal(), {"TERM": "xterm", "NO_COLOR": "1"}, PLAIN, id="NO_COLOR"),
        pytest.param(Terminal(), {"NO_COLOR": ""}, Screen(is_colored=True), id="NO_COLOR that is empty"),
        pytest.param(Terminal(), {"FORCE_COLOR": "1", "NO_COLOR": "1"}, PLAIN, id="NO_COLOR wins over FORCE_COLOR"),
        pytest.param(Terminal(), {"TERM": "dumb"}, Screen(is_unicode=False), id="a dumb terminal"),
        pytest.param(Terminal(), {"TERM": "linux"}, Screen(is_colored=True, is_unicode=False), id="a console"),
        pytest.param(Latin(), {}, Screen(is_unicode=False), id="an encoding without the signs"),
        pytest.param(io.StringIO(), {"COLUMNS": "wide"}, PLAIN, id="COLUMNS that is not a number"),
    ],
)
def test_a_screen_is_detected_from_stream_and_variables(stream, variables, expected):
    assert screen_of(stream, variables) == expected


def test_unicode_symbols_are_used_if_the_screen_supports_them():
    assert [Screen(is_unicode=is_unicode).symbol_of_result("fail") for is_unicode in (True, False)] == ["✖", "x"]


def test_words_are_never_cut():
    assert Screen(width=40).wrapped(f"a {'b' * 50} c", "  ", "  ") == ["  a", f"    {'b' * 50}", "    c"]


@pytest.mark.parametrize(
    ("message", "lines"),
    [
        ("one  \n\n  two", ["one two"]),
        ("at:\n | spec\n | x", ["at:", " | spec", " | x"]),
        ("all of\n* a\n* b\nand more", ["all of", "* a", "* b and more"]),
        (" \n ", ["no message"]),
        # A policy may write a message of blanks only; a search that begins at each blank would never end here.
        (f"a{' ' * 300_000}b", [f"a{' ' * 300_000}b"]),
    ],
    ids=["wrapped", "source", "items", "nothing", "many blanks"],
)
def test_a_message_is_not_wrapped_twice(message, lines):
    assert lines_of_message(message) == lines


DATA = Path(__file__).parents[1] / "data" / "commands"


def shown(*, width, **variables):
    """Run an audit on a terminal of this width, and return stdout and stderr together."""
    import fcntl
    import struct
    import termios

    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, width, 0, 0))
    command = [sys.executable, "-m", "webhook", "audit", "--only", str(DATA / "policies"), "objects"]
    kept = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "NO_COLOR", "FORCE_COLOR")}
    with subprocess.Popen(command, cwd=DATA, stdout=theirs, stderr=theirs, env={**kept, **variables}) as audit:
        os.close(theirs)
        text = b""
        while block := _read(ours):
            text += block
    os.close(ours)
    assert audit.returncode == 1
    return text.decode().replace("\r\n", "\n")


def _read(terminal):
    try:
        return os.read(terminal, 1 << 16)
    except OSError:  # the other end of the terminal is closed
        return b""


def test_an_audit_on_a_terminal_is_in_colours():
    text = shown(width=60, TERM="xterm")
    assert "\x1b[1mPod team/bad\x1b[0m\n  \x1b[31m✖\x1b[0m" in text
    assert "7 objects in 3 files: 1 without findings, 5 with findings (3\n  fail, 1 warn, 1 error), 1 not read" in text


def test_an_audit_on_a_dumb_terminal_has_no_colours():
    text = shown(width=200, TERM="dumb")
    assert "Pod team/bad\n  x fail  objects/list.yaml:13:7  policy denies\n" in text
    assert "\x1b" not in text
