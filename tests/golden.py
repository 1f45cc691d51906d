"""Golden files: the reviewed output of the program."""

from __future__ import annotations

import difflib
from itertools import islice
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
MOST_LINES, MOST_COLUMNS = 40, 300


def compare_with_golden_file(golden: Path, text: str, config: pytest.Config) -> None:
    """Compare a text with a golden file. A failure names the command that rewrites the file."""
    if config.getoption("--update-golden"):
        golden.parent.mkdir(parents=True, exist_ok=True)
        golden.write_text(text)
    known = golden.read_text() if golden.is_file() else None
    if text == known:
        return
    name = golden.relative_to(ROOT) if golden.is_relative_to(ROOT) else golden
    what = f"{name} is missing" if known is None else f"{name} is not what is written now"
    lines = difflib.unified_diff((known or "").splitlines(), text.splitlines(), "golden", "now", lineterm="", n=1)
    shown = "\n".join(line[:MOST_COLUMNS] for line in islice(lines, MOST_LINES))
    pytest.fail(f"{what}: run this test with --update-golden, and read the difference\n{shown}", pytrace=False)
