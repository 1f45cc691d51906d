"""Finds matchConditions that are false, and validations that are true, for every request that the rules match.

The rules of a policy limit the request: its operation, kind, resource and sub-resource are known. An expression is
reckoned with these for each combination. Everything else is unknown, and so is a comparison with it. `object.kind ==
'pods'` and `request.operation == 'Create'` are then false for any object. kube-apiserver accepts such a policy and
never refuses anything. Knows the kinds of Kubernetes alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from webhook.apimachinery.attributes import GroupVersionKind, Operation
from webhook.cel.syntax.parser import parse
from webhook.cel.syntax.text import source_text
from webhook.cel.syntax.tree import Call, Ident, ListNode, Literal, Node, Select, children
from webhook.policy.compiled import Policy
from webhook.policy.rules_without_effect import kind_of_resource
from webhook.text.wording import either

Known = Mapping[str, str]
"""The known parts of a request, by the path with which expressions read them."""
_UNKNOWN: Final = object()


def sentences_about_constant_conditions(policy: Policy) -> Iterator[str]:
    """Yield a sentence for each matchCondition that is never true, and each validation that refuses nothing."""
    requests = _requests_of_policy(policy)
    if not requests:
        return
    variables = {name: parse(each.source) for name, each in policy.variables.items() if each.program is not None}
    for path, expression in policy.expressions_with_paths():
        wanted: bool | None = None
        if path.startswith("spec.matchConditions"):
            wanted = False
        elif path.endswith("].expression") and path.startswith("spec.validations"):
            wanted = True
        if wanted is None or expression.program is None:
            continue
        node = parse(expression.source)
        if isinstance(node, Literal) or any(_value(node, each, variables) is not wanted for each in requests):
            continue
        what = "is true for every request, so it refuses nothing" if wanted else "is false for every request"
        if reason := _values_read(node, requests, variables):
            yield f"{path}: `{expression.source.strip()}` {what}: {reason}"


def _requests_of_policy(policy: Policy) -> Sequence[Known]:
    """Return what is known of the requests that a policy matches; () if a rule names what is not known."""
    requests: list[Known] = []
    for rule in policy.criteria.rules:
        if policy.expands or policy.enters or rule.groups is None or rule.versions is None:
            return ()
        for group in sorted(rule.groups):
            for resource, sub in rule.resources:
                kind = kind_of_resource(group, resource)
                if "*" in (resource, sub):
                    return ()
                for version in sorted(rule.versions):
                    of = GroupVersionKind(group, version, kind)
                    requests += [
                        _known_of_request(of, resource, sub, operation)
                        for operation in (Operation if rule.operations is None else sorted(rule.operations))
                    ]
    return requests


def _known_of_request(kind: GroupVersionKind, resource: str, sub: str, operation: str) -> Known:
    known = {
        "request.operation": str(operation),
        "request.resource.resource": resource,
        "request.resource.group": kind.group,
        "request.requestResource.resource": resource,
        "request.requestResource.group": kind.group,
        "request.subResource": sub,
        "request.requestSubResource": sub,
    }
    if kind.kind and not sub:
        known |= {
            "request.kind.kind": kind.kind,
            "request.kind.group": kind.group,
            "request.requestKind.kind": kind.kind,
            "request.requestKind.group": kind.group,
        }
        if operation in ("CREATE", "UPDATE"):
            known["object.kind"] = kind.kind
        if operation in ("DELETE", "UPDATE"):
            known["oldObject.kind"] = kind.kind
    return known


def _value(node: Node, known: Known, variables: Mapping[str, Node]) -> object:
    """Return the value of an expression, or _UNKNOWN."""
    match node:
        case Literal():
            return node.value
        case Select(operand=Ident(name="variables")) if node.field in variables:
            return _value(variables[node.field], known, {})
        case Select():
            return known.get(source_text(node), _UNKNOWN)
        case ListNode():
            values = [_value(each, known, variables) for each in node.elements]
            return _UNKNOWN if _UNKNOWN in values else values
        case Call(target=None):
            return _value_of_operator(node.function, [_value(each, known, variables) for each in node.arguments])
    return _UNKNOWN


def _value_of_operator(function: str, values: Sequence[object]) -> object:
    """Return the value of an operator as in CEL: `false && x` is false, also if x is unknown."""
    if function in ("_&&_", "_||_"):
        decides = function == "_||_"
        if any(each is decides for each in values):
            return decides
        return (not decides) if all(each is not _UNKNOWN for each in values) else _UNKNOWN
    if function == "_?_:_":
        if values[0] is _UNKNOWN:
            return values[1] if values[1] is values[2] else _UNKNOWN
        return values[1] if values[0] is True else values[2]
    if any(each is _UNKNOWN for each in values):
        return _UNKNOWN
    match function, values:
        case "!_", [bool(value)]:
            return not value
        case "_==_", [left, right]:
            return left == right
        case "_!=_", [left, right]:
            return left != right
        case "@in", [left, list(right)]:
            return left in right
    return _UNKNOWN


def _values_read(node: Node, requests: Sequence[Known], variables: Mapping[str, Node]) -> str:
    """Return the possible values of the paths that it reads; "" if it reads no known path."""
    said = []
    for path in _paths_of_node(node, variables):
        values = sorted({each[path] for each in requests if path in each})
        if values:
            said.append(f"`{path}` is {either([f'`{value}`' if value else 'empty' for value in values])} here")
    return "; ".join(said)


def _paths_of_node(node: Node, variables: Mapping[str, Node]) -> Iterator[str]:
    pending = [node]
    told: dict[str, None] = {}
    while pending:
        each = pending.pop()
        if isinstance(each, Select):
            path = source_text(each)
            is_new_variable = path not in told and each.operand == Ident(each.operand.offset, "variables")
            told[path] = None
            if is_new_variable and each.field in variables:
                pending.append(variables[each.field])
        pending += children(each)
    yield from told
