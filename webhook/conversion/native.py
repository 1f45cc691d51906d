"""Makes the native objects of conversions: policies, bindings, matchConditions, and expressions.

An expression without Kyverno's functions and without variables to replace stays unchanged.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import Any, Final

from webhook.apimachinery.attributes import JSON
from webhook.apimachinery.paths import FieldPath, get
from webhook.cel.syntax import rewrite
from webhook.cel.syntax.parser import parse
from webhook.cel.syntax.text import source_text
from webhook.cel.syntax.tree import Call, ListNode, Literal, MapEntry, MapNode, Node, Select, StructNode
from webhook.errors import CompileError, NotConverted
from webhook.manifests.models import GROUP, ShapeError, parse_manifest
from webhook.rules.decisions import SEVERITIES

_PARSE_ACCOUNT: Final = "parseServiceAccount"
_ACCOUNT: Final = "system:serviceaccount:"
_IS_ACCOUNT: Final = f"{{user}}.startsWith('{_ACCOUNT}') && {{user}}.indexOf(':', {len(_ACCOUNT)}) >= 0"
_ACCOUNT_FIELDS: Final = {
    "Namespace": f"{_IS_ACCOUNT} ? {{user}}.substring({len(_ACCOUNT)}, {{user}}.indexOf(':', {len(_ACCOUNT)})) : ''",
    "Name": f"{_IS_ACCOUNT} ? {{user}}.substring({{user}}.indexOf(':', {len(_ACCOUNT)}) + 1) : ''",
}
"""Templates of expressions for what Kyverno reads from the name of a user."""
_MOST_NODES: Final = 5_000
_DEEPEST: Final = 200  # Python's stack allows three times this depth


def parsed_or_none(text: str) -> Node | None:
    """Return the tree of an expression; None if the expression is invalid or too deep, which the compiler reports."""
    try:
        tree = parse(text)
    except CompileError:
        return None
    return tree if rewrite.nesting_depth(tree) <= _DEEPEST else None


def with_plain_functions(text: str) -> str:
    """Replace `parseServiceAccount(x)` by a map of namespace and name.

    Both are "" for a user that is not a service account (github.com/kyverno/sdk extensions/cel/libs/user).
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
    """Return the source of the argument of `parseServiceAccount`; "" for another node."""
    is_call = isinstance(node, Call) and node.target is None and node.function == _PARSE_ACCOUNT
    if not isinstance(node, Call) or not is_call or len(node.arguments) != 1:
        return ""
    return f"({source_text(rewrite.replace_nodes(node.arguments[0], _account_as_map))})"


def inline_variables(text: str, variables: Sequence[Mapping[str, Any]], path: FieldPath) -> str:
    """Return an expression with the policy's variables written out. A matchCondition cannot read variables.

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
            converted = rewrite.replace_nodes(definition, definition_of_variable)
            definitions[str(each.get("name"))] = _not_too_long(converted, path)
    return source_text(_not_too_long(rewrite.replace_nodes(tree, definition_of_variable), path))


def _not_too_long(tree: Node, path: FieldPath) -> Node:
    """Return the tree. Raises NotConverted if it is too long for an expression."""
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


_LONGEST: Final = 50
NAMESPACE_IN_CEL: Final = (
    "request.kind.group == '' && request.kind.kind == 'Namespace' ? (has(request.name) ? request.name : '') : "
    "(has(request.namespace) ? request.namespace : '')"
)
"""CEL for the namespace of an object: for a Namespace its own name, and "" for other cluster-scoped objects."""
_API_VERSION: Final = f"{GROUP}/v1"
_OF_KUBECTL: Final = "kubectl.kubernetes.io/"
_SEVERITY: Final = "policies.kyverno.io/severity"


def native_policy(kind: str, name: str, source: JSON, spec: Mapping[str, JSON]) -> dict[str, Any]:
    """Return a policy with the labels and annotations of its source."""
    metadata: dict[str, JSON] = {"name": name}
    for key in ("labels", "annotations"):
        texts = {each: text for each, text in _texts(source, key).items() if not each.startswith(_OF_KUBECTL)}
        if key == "annotations" and (severity := texts.get(_SEVERITY, "").lower()) in SEVERITIES:
            texts["claimgate.dev/severity"] = severity
        if texts:
            metadata[key] = texts
    return {"apiVersion": _API_VERSION, "kind": kind, "metadata": metadata, "spec": _with_messages_of_one_line(spec)}


def _with_messages_of_one_line(spec: Mapping[str, Any]) -> dict[str, Any]:
    """Return the spec with each message on one line, because API servers refuse messages with line breaks."""
    validations = spec.get("validations")
    if not isinstance(validations, list):
        return dict(spec)
    converted = [
        {**each, "message": " ".join(each["message"].split())} if _has_lines(each) else each for each in validations
    ]
    return {**spec, "validations": converted}


def _has_lines(validation: JSON) -> bool:
    message = get(validation, ("message",))
    return isinstance(message, str) and "\n" in message


def binding_of_policy(policy: Mapping[str, Any], spec: Mapping[str, JSON], name: str = "") -> dict[str, Any]:
    """Return a binding of a policy. By default, it has the name of the policy."""
    return {
        "apiVersion": _API_VERSION,
        "kind": f"{policy['kind']}Binding",
        "metadata": {"name": name or policy["metadata"]["name"]},
        "spec": {"policyName": policy["metadata"]["name"], **spec},
    }


def check_known_fields(value: JSON, known_names: Iterable[str], path: FieldPath) -> Mapping[str, Any]:
    """Return a map if all of its fields are known. Null is an empty map.

    Raises:
        NotConverted: the value is not a map, or has an unknown field.
    """
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise NotConverted(path, "expected a map")
    for key in value:
        if key not in known_names:
            raise NotConverted((*path, key), f"field `{key}` is not known here")
    return value


def list_at(value: JSON, path: FieldPath) -> Sequence[Any]:
    """Return the list at a path; () if the path does not exist.

    Raises:
        NotConverted: the value is not a list.
    """
    items = get(value, path)
    if items is None:
        return ()
    if not isinstance(items, list):
        raise NotConverted(path, "expected a list")
    return items


def maps_at(value: JSON, path: FieldPath) -> Sequence[dict[str, Any]]:
    """Return the list of maps at a path; () if the path does not exist.

    Raises:
        NotConverted: the value is not a list, or an entry is not a map.
    """
    items = list_at(value, path)
    for index, each in enumerate(items):
        if not isinstance(each, dict):
            raise NotConverted((*path, index), "expected a map")
    return items


def check_shape(manifest: JSON) -> None:
    """Check that a native manifest has fields of the right types.

    Raises:
        NotConverted: a field has a wrong type.
    """
    try:
        parse_manifest(manifest)
    except ShapeError as error:
        path, text = error.problems[0]
        raise NotConverted(path, text) from None


def name_of(value: JSON) -> str:
    """Return `metadata.name`.

    Raises:
        NotConverted: there is no name.
    """
    name = get(value, ("metadata", "name"))
    if not isinstance(name, str) or not name:
        raise NotConverted(("metadata", "name"), "expected a name")
    return name


def _texts(value: JSON, key: str) -> Mapping[str, str]:
    texts = get(value, ("metadata", key))
    return {str(each): str(text) for each, text in texts.items()} if isinstance(texts, dict) else {}


def conditions_with_valid_names(conditions: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the conditions with valid and unique names. A valid and unique name stays unchanged.

    A valid name has at most 50 letters, digits, `-`, `_` and `.`, and begins and ends with a letter or digit.
    """
    converted: dict[str, dict[str, Any]] = {}
    for index, each in enumerate(conditions):
        name = re.sub(r"[^A-Za-z0-9_.-]+", "-", str(each.get("name", "")))[:_LONGEST].strip("-_.")
        name = name if name and name not in converted else f"condition-{index}"
        converted[name] = {**each, "name": name}
    return list(converted.values())
