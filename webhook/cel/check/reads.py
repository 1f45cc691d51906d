"""What an expression reads of its variables: whole, or only some of their fields.

Static: a field that is selected behind a condition counts, whether the condition holds or not.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from webhook.cel.check.checked import Checked
from webhook.cel.syntax.tree import Has, Ident, Node, Select, children

WHOLE: Final = ""
"""Stands among the fields of a variable that is read as such."""


def reads(checked: Checked) -> Mapping[str, frozenset[str]]:
    """The variables of an expression, each with the fields that it selects: {"a": {"b", "c"}} of `a.b == a.c[0]`."""
    selected: dict[str, set[str]] = {}
    pending: list[Node] = [checked.node]
    while pending:
        node = pending.pop()
        name = checked.reference(node)
        if name in checked.names:
            selected.setdefault(str(name), set()).add(WHOLE)
        elif isinstance(node, Select | Has) and (name := _variable(checked, node.operand)):
            selected.setdefault(name, set()).add(node.field)
        else:
            pending.extend(children(node))
    return {name: frozenset(fields) for name, fields in selected.items()}


def _variable(checked: Checked, node: Node) -> str:
    name = checked.reference(node)
    return name if isinstance(node, Ident) and name is not None and name in checked.names else ""
