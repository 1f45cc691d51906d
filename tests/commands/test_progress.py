"""A bar appears after a second, on a terminal, and never in CI."""

from __future__ import annotations

import sys
from itertools import chain, repeat

import pytest

from webhook.commands.progress import Progress


class Terminal:
    def __init__(self) -> None:
        self.text = ""

    encoding = "utf-8"

    def isatty(self) -> bool:
        return True

    def write(self, text: str) -> int:
        self.text += text
        return len(text)

    def flush(self) -> None:
        pass


def written(monkeypatch: pytest.MonkeyPatch, elapsed_s: float, ci: str = "") -> str:
    monkeypatch.setattr(sys, "stderr", terminal := Terminal())
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("CI", ci)
    times = chain([0.0], repeat(elapsed_s))
    with Progress(100, "objects", clock=lambda: next(times)) as bar:
        bar.advance(50, 2000)
    return terminal.text


def test_a_progress_bar_appears_after_a_second_and_not_in_ci(monkeypatch: pytest.MonkeyPatch) -> None:
    assert written(monkeypatch, 0.9) == ""
    assert "2,000 objects" in written(monkeypatch, 2.0)
    assert written(monkeypatch, 2.0, ci="true") == ""
