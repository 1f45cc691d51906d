"""Rewrites expressions for an API server: functions of Kyverno, and variables at places without variables.

An expression without these stays unchanged, to the last space.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any, Final

from webhook.apimachinery.paths import FieldPath
from webhook.cel.syntax import rewrite
from webhook.cel.syntax.parser import parse
from webhook.cel.syntax.text import source_text
from webhook.cel.syntax.tree import Call, ListNode, Literal, MapEntry, MapNode, Node, Select, StructNode
from webhook.errors import CompileError, NotConverted

_PARSE_ACCOUNT: Final = "parseServiceAccount"
_ACCOUNT: Final = "system:serviceaccount:"
_IS_ACCOUNT: Final = f"{{user}}.startsWith('{_ACCOUNT}') && {{user}}.indexOf(':', {len(_ACCOUNT)}) >= 0"
_ACCOUNT_FIELDS: Final = {
    "Namespace": f"{_IS_ACCOUNT} ? {{user}}.substring({len(_ACCOUNT)}, {{user}}.indexOf(':', {len(_ACCOUNT)})) : ''",
    "Name": f"{_IS_ACCOUNT} ? {{user}}.substring({{user}}.indexOf(':', {len(_ACCOUNT)}) + 1) : ''",
}
"""The parts that Kyverno finds in the name of a user, as templates of expressions."""
_MOST_NODES: Final = 5_000
_DEEPEST: Final = 200  # Python's stack allows three times this depth


def parsed_or_none(text: str) -> Node | None:
    """Return the tree of an expression; None if it is nested too deeply, or invalid, which the compiler reports
    later.
    """
    try:
        tree = parse(text)
    except CompileError:
        return None
    return tree if rewrite.nesting_depth(tree) <= _DEEPEST else None


def with_plain_functions(text: str) -> str:
    """Return an expression with Kyverno's map of a user's name for `parseServiceAccount(x)`.

    Namespace and Name are "" for a user that is not a service account (github.com/kyverno/sdk
    extensions/cel/libs/user).
    """
    if _PARSE_ACCOUNT not in text:
        return text
    tree = parsed_or_none(text)
    if tree is None:
        return text
    return source_text(rewrite.replace_nodes(tree, _account_as_map))


def _account_as_map(node: Node) -> Node | None:
    if isinstance(node, Select) and node.field in _ACCOUNT_FIELDS and (user := _parsed_user(node.operand)):
        return parse(_ACCOUNT_FIELDS[node.field].format(user=user))
    if user := _parsed_user(node):
        fields = {name: parse(written.format(user=user)) for name, written in _ACCOUNT_FIELDS.items()}
        entries = (MapEntry(node.offset, Literal(node.offset, name), value) for name, value in fields.items())
        return MapNode(node.offset, tuple(entries))
    return None


def _parsed_user(node: Node) -> str:
    """Return the argument of `parseServiceAccount`, as the source of an operand; "" for every other node."""
    is_call = isinstance(node, Call) and node.target is None and node.function == _PARSE_ACCOUNT
    if not isinstance(node, Call) or not is_call or len(node.arguments) != 1:
        return ""
    return f"({source_text(rewrite.replace_nodes(node.arguments[0], _account_as_map))})"


def inline_variables(text: str, variables: Sequence[Mapping[str, Any]], path: FieldPath) -> str:
    """Return an expression that reads no variable of the policy, for a matchCondition.

    Raises:
        NotConverted: the expression would become too long.
    """
    tree = parsed_or_none(text)
    if tree is None or "variables" not in rewrite.all_names(tree):
        return text
    definitions: dict[str, Node] = {}

    def definition_of_variable(node: Node) -> Node | None:
        return definitions.get(rewrite.variable_read_by(node))

    for each in variables:
        definition = parsed_or_none(str(each.get("expression", "")))
        if definition is not None:
            made = rewrite.replace_nodes(definition, definition_of_variable)
            definitions[str(each.get("name"))] = _not_too_long(made, path)
    return source_text(_not_too_long(rewrite.replace_nodes(tree, definition_of_variable), path))


def _not_too_long(tree: Node, path: FieldPath) -> Node:
    """Return a tree that is not too long for an expression.

    Raises:
        NotConverted: the tree is too long.
    """
    if sum(1 for _ in islice(rewrite.all_nodes(tree), _MOST_NODES + 1)) > _MOST_NODES:
        raise NotConverted(path, "reads variables, which are too long to be written out in a matchCondition")
    return tree


def adds_empty_value(text: str) -> bool:
    """Return whether an expression has a JSONPatch with an empty map or list as its value."""
    tree = parsed_or_none(text)
    return tree is not None and any(
        _is_empty(entry.value)
        for node in rewrite.all_nodes(tree)
        if isinstance(node, StructNode) and node.name == "JSONPatch"
        for entry in node.entries
        if entry.field == "value"
    )


def _is_empty(node: Node) -> bool:
    return (isinstance(node, MapNode) and not node.entries) or (isinstance(node, ListNode) and not node.elements)
