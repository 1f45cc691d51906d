"""Names are the field's words, and sentences that people read have a subject, a verb and an object."""

import ast
import re
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
FILES = [*sorted((ROOT / "webhook").rglob("*.py")), *sorted((ROOT / "certs").glob("*.py"))]
HOUSE_WORDS = {"desk", "tally", "purse", "room", "rooms", "beside", "around", "surroundings"}
RIDDLES = re.compile(r"(?<![Tt]here )\b(is|are) no (?!longer\b|such\b)|(?<!\.)\b1 \w{3,}s\b")
"""Phrases such as `is no number` in place of `is not a number`, and a plural after 1."""
SAYS_WHAT_IS_FOUND = {"problem", "rule", "check", "explanation", "train_job_claims"}
"""Modules with a field or parameter `found`, as in a Problem. Elsewhere, a variable says what was found."""

NAMED_BY_CEL = {"webhook/cel/library/optional.py"}
"""optional.ofNonZeroValue is a function of CEL."""


def names(tree):
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name


def sentences(tree):
    """Yield the texts of a module without docstrings, because people read the other texts without the code."""
    documentation = {
        id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in documentation:
            yield node.value


def functions(tree):
    return (node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


@cache
def written():
    """Return the names, sentences and functions of each module, by its path. Every module is parsed once."""
    trees = ((path, ast.parse(path.read_text())) for path in FILES)
    return {
        path.relative_to(ROOT): (set(names(tree)), list(sentences(tree)), list(functions(tree))) for path, tree in trees
    }


def test_no_house_word_is_a_name():
    words = {
        str(path): {word for name in named for word in name.lower().strip("_").split("_")} & HOUSE_WORDS
        for path, (named, _, _) in written().items()
    }
    assert {path: house for path, house in words.items() if house} == {}


def test_a_variable_has_a_name_for_what_it_holds():
    unnamed = [path for path, (named, _, _) in written().items() if "found" in named]
    assert [str(path) for path in unnamed if path.stem not in SAYS_WHAT_IS_FOUND] == []


def test_no_sentence_is_a_riddle():
    assert [
        (str(path), text) for path, (_, said, _) in written().items() for text in said if RIDDLES.search(text)
    ] == []


def test_no_function_is_named_after_its_argument_alone():
    """`record_of_finding` says what is returned, and `of_finding` does not. CEL names some functions so."""
    named = ((str(path), name) for path, (_, _, made) in written().items() for name in made)
    assert [(path, name) for path, name in named if re.match("_?of_", name) and path not in NAMED_BY_CEL] == []
