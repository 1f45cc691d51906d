"""Every cache is declared: docs/caches.md names its key, its bound, and why it cannot change an answer."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "caches.md").read_text()
DECORATORS = ("cache", "lru_cache", "cache_for_short_texts")
TABLE = "TwoGenerationCache"
IMPLEMENTS = "caches"
"""The module of `cache_for_short_texts`, which creates a cache for every decorated function"""


def name_of(node: ast.expr) -> str:
    """Return the name of a decorator: `lru_cache` for `lru_cache`, `lru_cache(maxsize=4)` and `functools.lru_cache`."""
    if isinstance(node, ast.Call):
        return name_of(node.func)
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def caches_of(tree: ast.Module) -> Iterator[str]:
    """Yield the caches of a module: functions with a decorator, caches with another name, and tables of user input."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            if any(name_of(each) in DECORATORS for each in node.decorator_list):
                yield node.name
        elif isinstance(node, ast.AnnAssign) and node.value is not None and name_of(node.value) == TABLE:
            yield name_of(node.target)
        elif (
            isinstance(node, ast.Assign) and isinstance(node.value, ast.Call) and isinstance(node.value.func, ast.Call)
        ) and name_of(node.value.func) in DECORATORS:
            yield from (target.id for target in node.targets if isinstance(target, ast.Name))


def caches() -> list[str]:
    texts = {path: path.read_text() for path in sorted((ROOT / "webhook").rglob("*.py"))}
    return [
        f"{path.stem}.{name}"
        for path, text in texts.items()
        if path.stem != IMPLEMENTS and (TABLE in text or any(word in text for word in DECORATORS))
        for name in caches_of(ast.parse(text))
    ]


def declared() -> list[str]:
    rows = re.findall(r"^\| (`[^|]*) \|", PAGE, re.MULTILINE)
    return [name for row in rows for name in re.findall(r"`([\w.]+)`", row)]


def test_every_cache_is_on_the_page() -> None:
    classes = {name for name in declared() if name[0].isupper()}
    functions = [name for name in declared() if name not in classes]
    assert sorted(functions) == sorted(caches())


def test_every_table_on_the_page_is_in_the_code() -> None:
    sources = "\n".join(path.read_text() for path in (ROOT / "webhook").rglob("*.py"))
    for name in declared():
        if name[0].isupper():
            owner, attribute = name.split(".")
            assert re.search(rf"^class {owner}\b", sources, re.MULTILINE), name
            assert re.search(rf"\b{attribute}\b", sources), name


def test_an_undeclared_cache_is_reported() -> None:
    written = "@cache\ndef a(): ...\n@functools.lru_cache(maxsize=4)\ndef b(): ...\n_c = lru_cache(maxsize=2)(b)\n"
    assert list(caches_of(ast.parse(written + "_D: Final = TwoGenerationCache(1)\n"))) == ["a", "b", "_c", "_D"]


def test_nothing_in_the_evaluation_of_policies_is_kept_between_requests() -> None:
    folders = ("evaluation", "admission")
    trees = {path: ast.parse(path.read_text()) for name in folders for path in (ROOT / "webhook" / name).glob("*.py")}
    assert [f"{path.stem}.{name}" for path, tree in trees.items() for name in caches_of(tree)] == []
