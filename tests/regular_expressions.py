"""Finds every regular expression in the source of the program, and how it is used."""

from __future__ import annotations

import ast
import importlib
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Final

from tests.backtracking import Use

ROOT: Final = Path(__file__).parent.parent
_ANYWHERE: Final = frozenset({"search", "sub", "subn", "split", "findall", "finditer"})
_METHODS: Final = _ANYWHERE | {"match", "fullmatch"}


@dataclass
class Expression:
    """A regular expression.

    Attributes:
        home: the module, such as `webhook.apimachinery.names`, and the name or the line of code.
        pattern: the compiled expression; None if the program builds it at run time.
        uses: the called methods. "match from" is `match` with a start position; "" means that the expression is passed
            on.
    """

    home: str
    pattern: re.Pattern[Any] | None
    uses: set[str] = field(default_factory=set)

    @property
    def use(self) -> Use:
        """Return how the expression is used. Of several methods, the one that can take the most time counts."""
        if not self.uses or self.uses & {"", "match from", *_ANYWHERE}:
            return Use.ANYWHERE
        return Use.WHOLE if "fullmatch" in self.uses else Use.BEGINNING


@cache
def find_expressions() -> dict[str, Expression]:
    texts = {
        ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path.read_text()
        for folder in ("webhook", "claimgate", "certs")
        for path in sorted((ROOT / folder).rglob("*.py"))
    }
    trees = {module: ast.parse(text) for module, text in texts.items() if "import re\n" in text}
    found = {each.home: each for module, tree in trees.items() for each in _of_module(module, tree)}
    names = {name for home in found if ": " not in home and (name := _name(home))[0] != "_"}
    for module, text in texts.items():
        if module in trees or any(name in text for name in names):
            _add_uses(module, trees.get(module) or ast.parse(text), found)
    return found


def _name(home: str) -> str:
    """Return the name of an expression, or of the table that has the expression."""
    return home.partition("[")[0].rpartition(".")[2]


def _of_module(module: str, tree: ast.Module) -> Iterator[Expression]:
    named: set[int] = set()
    for node in tree.body:
        target = node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", None)
        value = getattr(node, "value", None)
        if isinstance(target, ast.Name) and isinstance(value, ast.AST):
            calls = [each for each in ast.walk(value) if _function(each)]
            if calls and not _is_inside_function(value, calls):
                named.update(map(id, calls))
                yield from _patterns(f"{module}.{target.id}", getattr(importlib.import_module(module), target.id))
    for node in ast.walk(tree):
        function = _function(node)
        if function and id(node) not in named:
            assert isinstance(node, ast.Call)
            yield Expression(f"{module}: {ast.unparse(node)}", _constant(node), {function} - {"compile"})


def _is_inside_function(value: ast.AST, calls: list[ast.AST]) -> bool:
    inner = {id(each) for node in ast.walk(value) if isinstance(node, ast.Lambda) for each in ast.walk(node)}
    return any(id(each) in inner for each in calls)


def _patterns(home: str, value: Any) -> Iterator[Expression]:
    if isinstance(value, re.Pattern):
        yield Expression(home, value)
    elif isinstance(value, (tuple, list)):
        for at, each in enumerate(value):
            yield from _patterns(f"{home}[{at}]", each)
    elif isinstance(value, dict):
        for key, each in value.items():
            yield from _patterns(f"{home}[{key!r}]", each)
    elif callable(value) and isinstance(getattr(value, "__self__", None), re.Pattern):
        yield Expression(home, value.__self__, {value.__name__})
    else:
        for name in names_of_fields(value):
            yield from _patterns(f"{home}.{name}", getattr(value, name))


def names_of_fields(record: Any) -> tuple[str, ...]:
    """Return the names of the fields of a record. Other values have no fields."""
    return tuple(getattr(record, "__struct_fields__", None) or getattr(record, "__dataclass_fields__", ()))


def _function(node: ast.AST) -> str:
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return ""
    is_of_re = isinstance(node.func.value, ast.Name) and node.func.value.id == "re"
    return node.func.attr if is_of_re and node.func.attr in {*_METHODS, "compile"} else ""


def _constant(node: ast.Call) -> re.Pattern[Any] | None:
    first = node.args[0]
    return re.compile(first.value) if isinstance(first, ast.Constant) else None


def _add_uses(module: str, tree: ast.Module, found: dict[str, Expression]) -> None:
    origin = {
        alias.asname or alias.name: f"{node.module}.{alias.name}"
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module
        for alias in node.names
    }
    called: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr in {*_METHODS, "pattern", "scanner"}:
            home = _home(node.value, module, origin)
            if home in found and node.attr != "pattern":
                found[home].uses.add(node.attr)
            called.add(id(node.value))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "match":
            home = _home(node.func.value, module, origin)
            if home in found and len(node.args) > 1:
                found[home].uses.add("match from")
    for node in ast.walk(tree):
        if isinstance(node, (ast.Name, ast.Attribute)) and isinstance(node.ctx, ast.Load) and id(node) not in called:
            home = _home(node, module, origin)
            if home in found:
                found[home].uses.add("")


def _home(node: ast.AST, module: str, origin: dict[str, str]) -> str:
    if isinstance(node, ast.Name):
        return origin.get(node.id, f"{module}.{node.id}")
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        return f"{origin.get(node.value.id, node.value.id)}.{node.attr}"
    return ""
