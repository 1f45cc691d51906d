"""Evaluates policies on valid objects, and reports expressions that fail, mostly because a field is not set.

kube-apiserver finds such an error only at admission. With the failurePolicy `Fail` it then refuses the object.

Each policy is tried on the smallest and a full valid object of each Kubernetes kind that the policy names. Each policy
is also tried on variants of the full object, which lack one optional field that the policy reads. Objects of a custom
kind are made from its CustomResourceDefinition in the folder of the policies. Without the definition, only the metadata
is known.

Only observed errors are reported. Parts of expressions that no object reaches are not checked, nor are params outside
the folder of the policies.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import Final

from msgspec import Struct, structs

from webhook.admission import fixtures
from webhook.apimachinery.attributes import JSON, NAME_LABEL, Attributes, GroupVersionKind, Operation, Phase, UserInfo
from webhook.cel.library.authorizer import ListedAuthorizer
from webhook.cel.syntax.parser import parse
from webhook.cel.syntax.text import source_text
from webhook.cel.syntax.tree import Call, Has, Ident, Literal, Node, Select, children
from webhook.cluster.files import FilesCluster
from webhook.cluster.layered import ClusterWithAssumedNamespaces
from webhook.errors import NoDecision
from webhook.evaluation.merged_pods import PartialObject
from webhook.evaluation.mutating import apply_mutating_policies
from webhook.evaluation.request_context import request_context
from webhook.evaluation.validating import validating_decisions
from webhook.manifests.label_selectors import EVERYTHING
from webhook.patch.schema import is_builtin_group
from webhook.policy.compiled import Binding, Policy
from webhook.policy.field_names import named_kinds
from webhook.policy.load import join_bindings
from webhook.policy.matching import ResourceRule
from webhook.policy.policy_set import PolicySet
from webhook.rules.decisions import Decision, ValidationAction
from webhook.suites.custom_objects import custom_kinds, objects_of_custom_kind
from webhook.suites.valid_objects import SET_BY_SERVER, ValidObjects, valid_objects
from webhook.workloads.rows import Row
from webhook.workloads.table import Table

_NOT_CONFIGURED: Final = "failed to configure "
"""The beginning of the error of a binding with missing params."""
_NO_KEY: Final = re.compile(r"no such key: (.+)")
_MISSING_PATH: Final = "missing path"
_ABSENCE_ERRORS: Final = ("no such key", _MISSING_PATH, "optional.none() dereference")
"""Parts of errors about absent fields. Other errors have another cause than the field that an object lacks."""
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

_USER: Final = UserInfo(username="kubernetes-admin", groups=("system:authenticated",))
"""The fields that the user of every authenticated request has. Other fields may be empty."""


class _Sample(Struct, frozen=True):
    """A request about a valid object, and a description of the object.

    `without` is the field of a full object that this object lacks.
    """

    attributes: Attributes
    described: str
    without: str = ""
    is_defined: bool = False
    """Whether the object was made from a CustomResourceDefinition. Then the values of the object may break unknown
    rules.
    """


def sentences_about_errors(policy: Policy, loaded: PolicySet, mistyped: Container[str] = ()) -> Iterator[str]:
    """Yield a sentence, with the fix, for the first error of each expression on a valid object.

    `mistyped` are paths of expressions with a known wrong type, such as `spec.validations[0].expression`. Only their
    missing keys are reported, because the wrong type explains other errors.
    """
    alone = _set_with_only(policy, loaded)
    if alone is None:
        return
    reported: set[str] = set()
    for kind in dict.fromkeys(filter(None, named_kinds(policy))):
        objects = valid_objects().get(kind)
        yield from _sentences_of_samples(
            policy, alone, _samples(policy, kind, objects) if objects else (), reported, mistyped
        )
    if not (policy.expands or policy.enters or policy.facts):  # such policies read more of an object than its metadata
        yield from _sentences_of_samples(
            policy, alone, _samples_of_custom_kinds(policy, loaded.table), reported, mistyped
        )
        yield from _sentences_of_samples(policy, alone, _samples_of_definitions(policy, loaded), reported, mistyped)


def untried_kinds(policy: Policy, loaded: PolicySet) -> Iterator[str]:
    """Yield the custom kinds without a definition in the files, if a policy reads their fields. Example:
    `trainjobs.GROUP`.
    """
    if policy.reports_problems or policy.expands or policy.enters or policy.facts:
        return
    if all(_reads_metadata_alone(policy, expression.source) for expression in policy.expressions()):
        return
    defined = {(each.row.group, each.row.resource) for each in custom_kinds(loaded.definitions)}
    for rule in policy.criteria.rules:
        for group in rule.groups or ():
            if not is_builtin_group(group) and group != "*":
                yield from (
                    f"{resource}.{group}"
                    for resource, subresource in rule.resources
                    if resource != "*" and not subresource and (group, resource) not in defined
                )


def _sentences_of_samples(
    policy: Policy, alone: PolicySet, samples: Iterable[_Sample], reported: set[str], mistyped: Container[str]
) -> Iterator[str]:
    for sample in samples:
        for message in _errors(alone, sample.attributes):
            place, source, error = _place_of_error(policy, message)
            if place.removesuffix(": ") in mistyped and not _NO_KEY.fullmatch(error):
                continue
            if sample.is_defined and not (_NO_KEY.fullmatch(error) or _MISSING_PATH in error):
                continue
            is_partial = isinstance(sample.attributes.object or sample.attributes.old_object, PartialObject)
            is_certain = sample.is_defined or not is_partial
            if place not in reported and (is_certain or (source and _reads_metadata_alone(policy, source))):
                reported.add(place)
                is_about_absence = any(each in error for each in _ABSENCE_ERRORS)
                without = f" without {sample.without}" if sample.without and is_about_absence else ""
                yield f"{place}fails on {sample.described}{without}: {_cause_and_fix(source, error, sample)}"


def _set_with_only(policy: Policy, loaded: PolicySet) -> PolicySet | None:
    """Return a set with only this policy, changed to select every object. Return None if the params are not known, or
    if checks decide without CEL.
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
    """Yield for each operation a request about the smallest object and one about a full object, then requests about
    variants.
    """
    operations, names = _operations(policy), _names_read(policy)
    for operation in operations:
        described = f"valid {kind.kind}{_operation_as_text(operation)}"
        yield _Sample(_attributes(objects, objects.smallest, operation, policy), f"the smallest {described}")
        yield _Sample(_attributes(objects, objects.full, operation, policy), f"a {described}")
    for path, obj in objects.variants(names) if operations else ():
        yield _Sample(_attributes(objects, obj, operations[0], policy), f"a valid {kind.kind}", path)


def _samples_of_custom_kinds(policy: Policy, table: Table) -> Iterator[_Sample]:
    """Yield two requests for each operation and each custom kind of the table that the rules name. One request has no
    optional metadata. The other request has labels and annotations that no policy reads.
    """
    operations = _operations(policy)
    for row in table.rows:
        if is_builtin_group(row.group) or not any(_names_row(rule, row) for rule in policy.criteria.rules):
            continue
        for operation, (described, metadata) in product(operations, _METADATA.items()):
            obj = {"apiVersion": row.gvk.api_version, "kind": row.kind, "metadata": {"name": "x", **metadata}}
            request = fixtures.attributes_of_object(obj, table.row, operation=operation)
            attributes = replace(
                request,
                user_info=_USER,
                object=request.object and _with_metadata_alone(request.object),
                old_object=request.old_object and _with_metadata_alone(request.old_object),
                is_decoded=True,  # there is nothing to decode
            )
            yield _Sample(attributes, f"{described} {row.kind}{_operation_as_text(operation)}")


def _samples_of_definitions(policy: Policy, loaded: PolicySet) -> Iterator[_Sample]:
    """Yield the requests about objects of kinds with a known CustomResourceDefinition."""
    operations, names = _operations(policy), _names_read(policy)
    for custom in custom_kinds(loaded.definitions):
        row = custom.row
        if not operations or not any(_names_row(rule, row) for rule in policy.criteria.rules):
            continue
        objects, kind = objects_of_custom_kind(custom), custom.kind.kind
        samples = [(f"the smallest {kind} that its definition allows", objects.smallest)]
        samples += [(f"a {kind} that its definition allows, without {at}", obj) for at, obj in objects.variants(names)]
        for operation, (described, obj) in product(operations, samples):
            head = {name: obj[name] for name in ("apiVersion", "kind", "metadata")}
            request = fixtures.attributes_of_object(head, lambda *_, row=row: row, operation=operation)
            request = replace(
                request,
                user_info=_USER,
                object=request.object and _with_fields(obj, request.object),
                old_object=request.old_object and _with_fields(obj, request.old_object),
                is_decoded=True,  # there is nothing to decode
            )
            yield _Sample(request, f"{described}{_operation_as_text(operation)}", is_defined=True)


def _with_fields(obj: JSON, head: JSON) -> JSON:
    """Return `obj` with the metadata of `head` and the metadata that a server sets. Unknown fields stay unknown."""
    metadata = head["metadata"] | SET_BY_SERVER
    if isinstance(obj, PartialObject):
        return obj.with_field("metadata", metadata)
    return {**obj, "metadata": metadata}


_METADATA: Final[Mapping[str, JSON]] = {
    "the smallest valid": {},
    "a valid": {"labels": {"example.com/none": "x"}, "annotations": {"example.com/none": "x"}},
}


def _names_row(rule: ResourceRule, row: Row) -> bool:
    is_named = rule.groups is not None and row.group in rule.groups and (row.resource, "") in rule.resources
    return is_named and (rule.versions is None or row.versions[0] in rule.versions)


def _with_metadata_alone(obj: JSON) -> PartialObject:
    known_fields = {**obj, "metadata": obj["metadata"] | SET_BY_SERVER}
    return PartialObject(known_fields, known_fields.__contains__, "", "{} is not known")


def _operations(policy: Policy) -> list[Operation]:
    rules = policy.criteria.rules
    return [
        each
        for each in (Operation.CREATE, Operation.UPDATE, Operation.DELETE)
        if any(rule.operations is None or each in rule.operations for rule in rules)
    ]


def _operation_as_text(operation: Operation) -> str:
    """Return the words that follow the description of an object: " on UPDATE"; "" for a creation."""
    return "" if operation == Operation.CREATE else f" on {operation}"


def _attributes(objects: ValidObjects, obj: JSON, operation: Operation, policy: Policy) -> Attributes:
    request = replace(fixtures.attributes_of_object(obj, operation=operation), user_info=_USER)
    if policy.expands:  # templates are evaluated as well, without defaults
        return request
    return replace(
        request,
        object=request.object and objects.as_sent(request.object, request.namespace),
        old_object=request.old_object and objects.as_sent(request.old_object, request.namespace),
    )


def _names_read(policy: Policy) -> frozenset[str]:
    """Return the names of fields that the expressions select, and the literal keys that they look up."""
    names: set[str] = set()
    pending: list[Node] = [parse(expression.source) for expression in policy.expressions()]
    while pending:
        each = pending.pop()
        if isinstance(each, Select | Has):
            names.add(each.field)
        elif isinstance(each, Literal) and isinstance(each.value, str):
            names.add(each.value)
        pending += children(each)
    return frozenset(names)


def _reads_metadata_alone(policy: Policy, source: str) -> bool:
    """Return whether an expression and its variables read only the object's metadata. If an expression reads more, its
    error may come from fields that the sample lacks.
    """
    pending: list[Node] = [parse(source)]
    variables_read: set[str] = set()
    while pending:
        node = pending.pop()
        name = node.operand.name if isinstance(node, Select | Has) and isinstance(node.operand, Ident) else ""
        if name in _OBJECTS and isinstance(node, Select | Has):
            if node.field not in _KNOWN_FIELDS:
                return False
            continue
        if isinstance(node, Ident) and node.name in _OBJECTS:
            return False
        if name == "variables" and isinstance(node, Select) and node.field not in variables_read:
            variables_read.add(node.field)
            pending.append(parse(policy.variables[node.field].source))
        pending += children(node)
    return True


_OBJECTS: Final = ("object", "oldObject")
_KNOWN_FIELDS: Final = ("apiVersion", "kind", "metadata")


def _errors(alone: PolicySet, attributes: Attributes) -> Iterator[str]:
    """The errors are in the API server's words."""
    cluster = ClusterWithAssumedNamespaces(FilesCluster(alone.params), _NAMESPACE)
    authorizer = ListedAuthorizer({})
    decisions: Sequence[Decision]
    try:
        if alone.mutating:
            _, decisions = apply_mutating_policies(request_context(alone, attributes, cluster, authorizer=authorizer))
        else:
            phase = Phase.MUTATE if alone.validating[0].phase == "mutate" else Phase.VALIDATE
            decisions = validating_decisions(request_context(alone, attributes, cluster, authorizer=authorizer), phase)
    except NoDecision:  # the policy compares whole objects of custom kinds, which are not known
        return
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
    nulls = {name for name, obj in (("object", attributes.object), ("oldObject", attributes.old_object)) if obj is None}
    match = _NO_KEY.fullmatch(error)
    nodes = [*_nodes_with_key(parse(source), match[1])] if match and source else []
    for each in nodes:
        if isinstance(each, Select) and source_text(each.operand) in nulls:
            return _fix_of_null(source_text(each.operand), attributes.operation)
    node = nodes[0] if nodes else None
    if isinstance(node, Select):
        operand = source_text(node.operand)
        path, optional = f"{operand}.{node.field}", f"{operand}.?{node.field}"
        return f"`{path}` is not set there: write `{optional}` with `orValue(…)`, or check `has({path})` first"
    if isinstance(node, Call):
        operand, key = map(source_text, node.arguments)
        return (
            f"`{operand}` has no {key} there: write `{operand}[?{key}].orValue(…)`, or ask `{key} in {operand}` first"
        )
    if "missing path" in error or "missing value" in error:
        return f"{error}: write an ApplyConfiguration, which adds what is missing, or first add the parent"
    if "type conversion error" in error:
        return f"{error}: read amounts with `quantity(…)`, and check the form of other texts with `matches(…)` first"
    if "types.Null" in error:
        return f"{error}: a list is null there, so compare it with null first"
    if "may not mutate atomic" in error:
        return f"{error}: write only fields that change, or write a JSONPatch"
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
