"""Names are the field's words, and sentences that people read have a subject, a verb and an object."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FOLDERS = (
    "admission",
    "cel",
    "cluster",
    "commands",
    "evaluation",
    "export",
    "manifests",
    "policy",
    "problems",
    "report",
    "schema",
    "server",
    "settings",
    "suites",
    "patch",
    "workloads",
)
FILES = [
    *(path for folder in FOLDERS for path in sorted((ROOT / "webhook" / folder).rglob("*.py"))),
    *sorted((ROOT / "webhook").glob("*.py")),
    *sorted((ROOT / "certs").glob("*.py")),
]
HOUSE_WORDS = {"desk", "tally", "purse", "room", "rooms", "beside", "around", "surroundings"}
RIDDLES = re.compile(r"(?<!there )\b(is|are) no (?!longer\b|such\b)|\b1 \w{3,}s\b")
"""`is no number` for `is not a number`, and a plural after 1."""


def names(tree):
    """Every name that a module gives to something."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name


def sentences(tree):
    """Every text of a module but its docstrings: what may be read by people who never see the code."""
    documentation = {
        id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in documentation:
            yield node.value


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_house_word_is_a_name(path):
    words = {word for name in names(ast.parse(path.read_text())) for word in name.lower().strip("_").split("_")}
    assert words & HOUSE_WORDS == set()
    if path.stem != "problem":  # a Problem says what was found
        assert "found" not in set(names(ast.parse(path.read_text())))


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_sentence_is_a_riddle(path):
    assert [text for text in sentences(ast.parse(path.read_text())) if RIDDLES.search(text)] == []
