"""Evaluates policies on valid objects, and reports where an expression fails: mostly for a field that is not set.

kube-apiserver reports this only at admission, by the failurePolicy: with `Fail` it refuses every such object. Each
policy is tried on the smallest and a full valid object of each kind of Kubernetes that it names, and on variants of the
full one: each lacks one optional field that the policy reads. Each report was observed. It does not check parts that no
object reaches, custom kinds, and params outside the folder of the policies.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from msgspec import Struct, structs

from webhook.admission import fixtures
from webhook.apimachinery.attributes import JSON, NAME_LABEL, Attributes, GroupVersionKind, Operation, Phase
from webhook.cel.library.authorizer import ListedAuthorizer
from webhook.cel.syntax.parser import parse
from webhook.cel.syntax.text import source_text
from webhook.cel.syntax.tree import Call, Has, Literal, Node, Select, children
from webhook.cluster.assumed_namespaces import ClusterWithAssumedNamespaces
from webhook.cluster.files import FilesCluster
from webhook.evaluation.mutating import apply_mutating_policies
from webhook.evaluation.validating import validating_decisions
from webhook.manifests.label_selectors import EVERYTHING
from webhook.policy.compiled import Binding, Policy
from webhook.policy.field_names import named_kinds
from webhook.policy.load import join_bindings
from webhook.policy.policy_set import PolicySet
from webhook.rules.decisions import Decision, ValidationAction
from webhook.suites.valid_objects import ValidObjects, valid_objects

_NOT_CONFIGURED: Final = "failed to configure "
"""The beginning of the error of a binding with missing params."""
_NO_KEY: Final = re.compile(r"no such key: (.+)")
_EXPRESSION: Final = "expression '"
_RESULTED: Final = "' resulted in error: "
_VARIABLE: Final = re.compile(r'composited variable "(\w+)" fails to evaluate: (.*)', re.DOTALL)
_NAMESPACE: Final = {
    "default": {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": "default", "labels": {NAME_LABEL: "default"}},
    }
}


class _Sample(Struct, frozen=True):
    """A request about a valid object, and a description of the object."""

    attributes: Attributes
    described: str


def sentences_about_errors(policy: Policy, loaded: PolicySet) -> Iterator[str]:
    """Yield a sentence, with the fix, for the first error of each expression on a valid object."""
    alone = _alone(policy, loaded)
    if alone is None:
        return
    told: set[str] = set()
    for kind in dict.fromkeys(filter(None, named_kinds(policy))):
        objects = valid_objects().get(kind)
        for sample in _samples(policy, kind, objects) if objects else ():
            for message in _errors(alone, sample.attributes, loaded):
                place, source, error = _place_of_error(policy, message)
                if place not in told:
                    told.add(place)
                    yield f"{place}fails on {sample.described}: {_cause_and_fix(source, error, sample)}"


def _alone(policy: Policy, loaded: PolicySet) -> PolicySet | None:
    """Return a set with only this policy, which selects every object; None if its params are not known, or if it is
    evaluated without CEL.
    """
    if policy.reports_problems or (policy.param_kind is not None and not loaded.params):
        return None
    bindings = policy.bindings
    if policy.param_kind is None:
        deny = (ValidationAction.DENY,)
        bindings = (Binding(name="", policy=policy.name, criteria=None, param_source=None, actions=deny),)
    criteria = structs.replace(policy.criteria, namespaces=EVERYTHING, objects=EVERYTHING)
    judged = join_bindings(replace(policy, criteria=criteria), bindings)
    if policy.kind == "mutating":
        return replace(loaded, validating=(), mutating=(judged,))
    return replace(loaded, validating=(judged,), mutating=())


def _samples(policy: Policy, kind: GroupVersionKind, objects: ValidObjects) -> Iterator[_Sample]:
    """Yield the requests about the objects of a kind: the smallest one first."""
    operations = [each for each in (Operation.CREATE, Operation.UPDATE, Operation.DELETE) if _matches(policy, each)]
    names = frozenset(name for expression in policy.expressions() for name in _names_read(parse(expression.source)))
    for operation in operations:
        on = "" if operation == Operation.CREATE else f" on {operation}"
        yield _Sample(_attributes(objects, objects.smallest, operation, policy), f"the smallest valid {kind.kind}{on}")
        yield _Sample(_attributes(objects, objects.full, operation, policy), f"a valid {kind.kind}{on}")
    for path, obj in objects.variants(names) if operations else ():
        yield _Sample(_attributes(objects, obj, operations[0], policy), f"a valid {kind.kind} without {path}")


def _matches(policy: Policy, operation: Operation) -> bool:
    return any(rule.operations is None or operation in rule.operations for rule in policy.criteria.rules)


def _attributes(objects: ValidObjects, obj: JSON, operation: Operation, policy: Policy) -> Attributes:
    request = fixtures.attributes_of_object(obj, operation=operation)
    if policy.expands:  # templates are also evaluated, without defaults
        return request
    return replace(
        request,
        object=request.object and objects.as_sent(request.object, request.namespace),
        old_object=request.old_object and objects.as_sent(request.old_object, request.namespace),
    )


def _names_read(node: Node) -> Iterator[str]:
    """Yield the names of fields that an expression selects, and the texts by which it looks up keys."""
    pending = [node]
    while pending:
        each = pending.pop()
        if isinstance(each, Select | Has):
            yield each.field
        elif isinstance(each, Literal) and isinstance(each.value, str):
            yield each.value
        pending += children(each)


def _errors(alone: PolicySet, attributes: Attributes, loaded: PolicySet) -> Iterator[str]:
    """Yield the errors of expressions, in the API server's words."""
    cluster = ClusterWithAssumedNamespaces(FilesCluster(loaded.params), _NAMESPACE)
    authorizer = ListedAuthorizer({})
    decisions: Sequence[Decision]
    if alone.mutating:
        _, decisions = apply_mutating_policies(attributes, alone, cluster, authorizer=authorizer)
    else:
        phase = Phase.MUTATE if alone.validating[0].phase == "mutate" else Phase.VALIDATE
        decisions = validating_decisions(attributes, alone, cluster, phase, authorizer=authorizer)
    for each in decisions:
        if each.evaluation == "error" and not each.message.startswith(_NOT_CONFIGURED):
            yield each.message


def _place_of_error(policy: Policy, message: str) -> tuple[str, str, str]:
    """Return the path of the expression that failed, its text, and its error."""
    source, resulted, error = message.removeprefix(_EXPRESSION).rpartition(_RESULTED)
    if not resulted:
        error = message
    name = ""
    while match := _VARIABLE.fullmatch(error):
        name, error = match.groups()
    if name:
        index = [*policy.variables].index(name)
        return f"spec.variables[{index}].expression: ", policy.variables[name].source, error
    for path, expression in policy.expressions_with_paths():
        if source and expression.source.strip() == source.strip():
            return f"{path}: ", source, error
    return "", source, error


def _cause_and_fix(source: str, error: str, sample: _Sample) -> str:
    attributes = sample.attributes
    nulls = {
        name for name, held in (("object", attributes.object), ("oldObject", attributes.old_object)) if held is None
    }
    match = _NO_KEY.fullmatch(error)
    nodes = [*_nodes_with_key(parse(source), match[1])] if match and source else []
    for each in nodes:
        if isinstance(each, Select) and source_text(each.operand) in nulls:
            return _fix_of_null(source_text(each.operand), attributes.operation)
    node = nodes[0] if nodes else None
    if isinstance(node, Select):
        operand = source_text(node.operand)
        path, optional = f"{operand}.{node.field}", f"{operand}.?{node.field}"
        return f"`{path}` is not set there: write `{optional}` with `orValue(…)`, or ask `has({path})` first"
    if isinstance(node, Call):
        operand, key = map(source_text, node.arguments)
        return (
            f"`{operand}` has no {key} there: write `{operand}[?{key}].orValue(…)`, or ask `{key} in {operand}` first"
        )
    if "missing path" in error or "missing value" in error:
        return f"{error}: write an ApplyConfiguration, which adds what is missing, or first add the parent"
    if "type conversion error" in error:
        return f"{error}: read amounts with `quantity(…)`, and ask what a text is with `matches(…)` first"
    if "types.Null" in error:
        return f"{error}: a list is null there, so compare it with null first"
    if error == "no such overload":
        return f"{error}: a value has another type than the expression expects"
    return error


def _fix_of_null(name: str, operation: Operation) -> str:
    other = " read `oldObject`," if name == "object" else ""
    guard = f"write `request.operation == '{operation}' || …`"
    return f"`{name}` is null on {operation}:{other} {guard}, or leave {operation} out of `operations`"


def _nodes_with_key(root: Node, key: str) -> Iterator[Select | Call]:
    """Yield the nodes that select a field or look up a key with this name, in the order of the source."""
    pending = [root]
    while pending:
        node = pending.pop()
        match node:
            case Select(optional=False) if node.field == key:
                yield node
            case Call(function="_[_]") if _is_text(node.arguments[1], key):
                yield node
        pending += reversed(children(node))


def _is_text(node: Node, text: str) -> bool:
    return isinstance(node, Literal) and node.value == text
