"""No module of webhook/cel imports itself, through whichever other ones: each module can be read before the modules
that use it.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path

from tests.test_layers import PACKAGE, imports


def modules(folder: Path, package: str) -> dict[str, Path]:
    """The modules of a folder by their names; a folder's own is its __init__.py."""
    named = {}
    for path in folder.rglob("*.py"):
        parts = path.relative_to(folder).with_suffix("").parts
        named[".".join((package, *parts)).removesuffix(".__init__")] = path
    return named


def imported_modules(named: Mapping[str, Path]) -> dict[str, set[str]]:
    """The modules among these that each imports when it runs, at the top or inside functions."""
    return {module: set(_inside(imports(path), named)) - {module} for module, path in named.items()}


def _inside(names: tuple[str, ...], named: Mapping[str, Path]) -> Iterator[str]:
    for name in names:
        module = name if name in named else name.rpartition(".")[0]
        if module in named:
            yield module


def circles(imported: Mapping[str, set[str]]) -> list[set[str]]:
    """Modules that import each other: the remainder after modules without remaining imports are removed repeatedly."""
    left = {module: set(others) for module, others in imported.items()}
    while done := {module for module, others in left.items() if not others & left.keys()}:
        left = {module: others for module, others in left.items() if module not in done}
    users = {module: {user for user, others in left.items() if module in others} for module in left}
    while done := {module for module, others in users.items() if not others & users.keys()}:
        users = {module: others for module, others in users.items() if module not in done}
    return [set(users)] if users else []


def test_no_modules_of_cel_import_each_other_in_a_circle():
    assert circles(imported_modules(modules(PACKAGE / "cel", "webhook.cel"))) == []


def test_a_planted_circle_is_found(tmp_path):
    for name, text in {
        "__init__": "",
        "below": "import json\n",
        "left": "from p import below\n\n\ndef f():\n    from p.right import g\n",
        "right": "from p import left\n",
        "above": "from p.left import f\n",
    }.items():
        (tmp_path / f"{name}.py").write_text(text)
    assert circles(imported_modules(modules(tmp_path, "p"))) == [{"p.left", "p.right"}]


def test_imports_only_for_types_do_not_make_a_circle(tmp_path):
    (tmp_path / "a.py").write_text("from typing import TYPE_CHECKING\n\nif TYPE_CHECKING:\n    from p.b import c\n")
    (tmp_path / "b.py").write_text("from p.a import d\n")
    assert circles(imported_modules(modules(tmp_path, "p"))) == []
