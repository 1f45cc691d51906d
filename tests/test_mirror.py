"""ARCHITECTURE.md names the suites of each folder, and these suites import the folder."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "webhook"
TABLE = re.search(r"<!-- suites: .*?-->\n(.*?)<!-- end -->", (ROOT / "ARCHITECTURE.md").read_text(), re.DOTALL)
ROWS = re.findall(r"^\| `(\w+)/` \| (.+) \|$", TABLE[1] if TABLE else "", re.MULTILINE)
SUITES = {folder: re.findall(r"`([\w./]+)`", suites) for folder, suites in ROWS}


def files_of(suite: str) -> list[Path]:
    """Return the files that pytest collects in a suite, or the modules that another test runs."""
    path = ROOT / suite
    return [path] if path.is_file() else sorted(path.rglob("*.py"))


def imported(file: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("webhook"):
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.startswith("webhook"))


def test_every_folder_has_a_row() -> None:
    folders = {path.parent.name for path in PACKAGE.glob("*/*.py")}
    assert set(SUITES) == folders


@pytest.mark.parametrize("folder", SUITES)
def test_the_suites_of_a_folder_test_it(folder: str) -> None:
    """Tests of commands import the command line, `cli`."""
    wanted = {"commands": "webhook.cli"}.get(folder, f"webhook.{folder}")
    for suite in SUITES[folder]:
        assert files_of(suite), suite
    names = {name for suite in SUITES[folder] for file in files_of(suite) for name in imported(file)}
    assert any(name == wanted or name.startswith(f"{wanted}.") for name in names)


def test_every_folder_of_tests_is_named() -> None:
    """A folder of tests is in the table or in the list below it, or has benchmarks."""
    others = {"tests/bench", "tests/certs", "tests/data", "tests/deploy", "tests/e2e", "tests/policies"}
    others.add("tests/precision")
    folders = {
        f"tests/{path.name}" for path in (ROOT / "tests").iterdir() if path.is_dir() and path.name[0] not in "._"
    }
    named = {suite for suites in SUITES.values() for suite in suites if not suite.endswith(".py")}
    assert folders - others - named == set()
