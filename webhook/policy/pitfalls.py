"""Finds three mistakes in policies that compile. The first is a policy that fails on every object. The second is an
object in a version that cannot be converted. The third is a fact that has another meaning for a pod template than for
the whole object.

API servers accept a policy that fails on every object. With failurePolicy `Fail`, users then cannot create any object
that the policy matches. Only the fields of built-in kinds are known here.

An API server sends an object unchanged if a rule of the webhook names its version, and otherwise converts it. So if
policies name different versions of a kind, each of these policies gets objects in all of these versions. Source:
k8s.io/apiserver v0.36 pkg/admission/plugin/webhook/generic/webhook.go.

With `claimgate.dev/expand: pods`, a policy is evaluated on one template at a time. `gpu.devices` is then the number
for one pod, so a limit allows an object with a thousand such pods. Each fact declares its meaning for templates
(facts/subject.py).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from msgspec.structs import replace

from webhook.apimachinery.attributes import Attributes, GroupVersionKind, GroupVersionResource, Operation
from webhook.cel.check.reads import WHOLE
from webhook.cel.syntax.parser import parse
from webhook.cel.syntax.tree import (
    Call,
    FieldEntry,
    Has,
    Ident,
    ListNode,
    Literal,
    Macro,
    MapNode,
    Node,
    Select,
    StructNode,
    children,
)
from webhook.cluster.known_kinds import COMPLETE_GROUPS, KNOWN_KINDS
from webhook.facts.subject import FactRegistry
from webhook.manifests.label_selectors import EVERYTHING
from webhook.patch import schema
from webhook.patch.schema import is_builtin
from webhook.policy.compiled import Policy
from webhook.policy.field_names import named_kinds, undefined_fields, undefined_fields_of_params
from webhook.policy.matching import ResourceRule, match_request
from webhook.policy.policy_set import PolicySet
from webhook.text.similar_names import nearest_name

_LISTS: Final = frozenset(("map", "filter", "transformList", "sortBy"))
_MAPS: Final = frozenset(("transformMap", "transformMapEntry"))
_PARAMS = "params"


def sentences_about_certain_failures(policy: Policy) -> Iterator[str]:
    """Yield a sentence, with the fix, for each mistake that makes the policy fail on every object."""
    for fields in (undefined_fields(policy), undefined_fields_of_params(policy)):
        yield from (each.text for each in fields if each.fails)
    yield from sentences_about_atomic_fields(policy)
    yield from _mistakes_in_param_kind(policy)
    yield from _bindings_without_param_ref(policy)


def _mistakes_in_param_kind(policy: Policy) -> Iterator[str]:
    """Yield a sentence about a paramKind that API servers do not have (policy_source.go: "failed to find resource
    referenced by").
    """
    kind = policy.param_kind
    if kind is None or kind.group not in COMPLETE_GROUPS or is_builtin(kind):
        return
    if (kind.group, kind.kind) in KNOWN_KINDS:
        yield f"spec.paramKind: {kind.kind} has no version `{kind.api_version}`: write a version that is served"
        return
    near = nearest_name(kind.kind, sorted(name for group, name in KNOWN_KINDS if group == kind.group))
    fix = f"did you mean `{near}`?" if near else "name a kind that exists"
    yield f"spec.paramKind: {kind.api_version} has no kind `{kind.kind}`: {fix}"


def _bindings_without_param_ref(policy: Policy) -> Iterator[str]:
    """Yield a sentence for each binding without a paramRef: `params` is then null (kubernetes v1.36
    policy_dispatcher.go CollectParams).
    """
    if policy.param_kind is None or not _reads_variable_params(policy) or _tests_for_null_params(policy):
        return
    for binding in policy.bindings:
        if binding.param_source is None:
            example = _fix_for_missing_param_ref(policy.param_kind)
            yield f"binding {binding.name} has no paramRef, so `params` is null and reading it fails: {example}"


def _fix_for_missing_param_ref(kind: GroupVersionKind) -> str:
    return f"add spec.paramRef with the name of a {kind.kind} and a parameterNotFoundAction"


def _reads_variable_params(policy: Policy) -> bool:
    return _PARAMS in policy.names_read_by_body | policy.match_conditions().needs


def _tests_for_null_params(policy: Policy) -> bool:
    """Return whether an expression tests `params` for null, for example with `has()` or `.?`. Such a test is assumed to
    protect all expressions.
    """
    return any(_tests_params_for_null(parse(each.source)) for each in policy.expressions())


def _tests_params_for_null(node: Node) -> bool:
    if isinstance(node, Call) and node.function in ("_==_", "_!=_") and _is_params_and_null(node.arguments):
        return True
    if isinstance(node, Select) and node.optional and _is_params_variable(node.operand):
        return True
    if isinstance(node, Has) and _is_params_variable(node.operand):
        return True
    return any(map(_tests_params_for_null, children(node)))


def _is_params_variable(node: Node) -> bool:
    return isinstance(node, Ident) and node.name == _PARAMS


def _is_params_and_null(sides: tuple[Node, ...]) -> bool:
    is_null = any(isinstance(side, Literal) and side.value is None for side in sides)
    return is_null and any(map(_is_params_variable, sides))


def sentences_about_atomic_fields(policy: Policy) -> Iterator[str]:
    """Yield a sentence, with the fix, for each atomic list or map that an ApplyConfiguration of the policy sets."""
    sentences: dict[str, None] = {}
    for kind in filter(None, named_kinds(policy)):
        root = schema.schema_of_kind(kind)
        for change in policy.changes:
            if change.kind == "ApplyConfiguration":
                sentences.update(dict.fromkeys(_sentences_about_node(parse(change.expression.source), root)))
    yield from sentences


def _sentences_about_node(node: Node, root: schema.Node) -> Iterator[str]:
    if isinstance(node, StructNode) and (place := _shape_of_object_literal(node, root)) is not None:
        yield from (text for entry in node.entries if (text := _sentence_about_entry(node.name, entry, place)))
    for each in children(node):
        yield from _sentences_about_node(each, root)


def _shape_of_object_literal(node: StructNode, root: schema.Node) -> schema.Shape | None:
    """Return the schema of a type such as `Object.spec.containers`; for a list, the schema of an item."""
    first, *path = node.name.split(".")
    if first != "Object":
        return None
    shape = schema.shape_of_node(root)
    for name in path:
        if shape.map is None or name not in shape.map.fields:
            return None
        shape = schema.shape_of_node(shape.map.fields[name])
        while shape.list is not None and shape.map is None:
            shape = schema.shape_of_node(shape.list.element)
    return shape


def _sentence_about_entry(name: str, entry: FieldEntry, shape: schema.Shape) -> str:
    """Return a sentence about a field of an object literal; "" if the expression may set the field."""
    if entry.optional or shape.map is None or entry.field not in shape.map.fields:
        return ""
    field_shape = schema.shape_of_node(shape.map.fields[entry.field])
    collection = (
        "list" if field_shape.list and not field_shape.list.is_associative and _is_list_expression(entry.value) else ""
    )
    collection = collection or (
        "map" if field_shape.map and field_shape.map.is_atomic and _is_map_expression(entry.value) else ""
    )
    if not collection:
        return ""
    fix = "set it with a JSONPatch"
    return f"`{name}.{entry.field}` is an atomic {collection}, which an ApplyConfiguration may not set: {fix}"


def _is_list_expression(node: Node) -> bool:
    if isinstance(node, Call) and node.function == "_+_":
        return any(map(_is_list_expression, node.arguments))
    return isinstance(node, ListNode) or (isinstance(node, Macro) and node.name in _LISTS)


def _is_map_expression(node: Node) -> bool:
    return isinstance(node, MapNode | StructNode) or (isinstance(node, Macro) and node.name in _MAPS)


def unconvertible_resources(policy: Policy, loaded: PolicySet) -> Iterator[str]:
    """Yield a sentence for each version of objects that API servers send and that cannot be converted to the version
    in the policy.
    """
    criteria = replace(policy.criteria, namespaces=EVERYTHING, objects=EVERYTHING)
    reported: set[GroupVersionResource] = set()
    for other in loaded.policies:
        for attributes in _requests_that_policy_names(other):
            if attributes.resource in reported or not _may_be_served(attributes.resource, loaded):
                continue
            match = match_request(criteria, attributes, dict, loaded.equivalents)
            if match is not None and match.conversion == "impossible":
                reported.add(attributes.resource)
                yield _sentence_about_version(other, attributes.resource, match.resource.version)


def _sentence_about_version(other: Policy, sent: GroupVersionResource, version: str) -> str:
    name = f"{sent.resource}.{sent.group}" if sent.group else sent.resource
    reason = f"because of policy {other.name}, API servers send {name} in version {sent.version}"
    return f"{reason}, which claimgate cannot convert to {version}: also name {sent.version} in matchConstraints"


def _may_be_served(resource: GroupVersionResource, loaded: PolicySet) -> bool:
    """Return whether API servers may serve a version. A rule may name versions that not all its resources have."""
    equal = loaded.equivalents
    return resource in equal.others or (resource.group, resource.resource) not in equal.groups


def _requests_that_policy_names(policy: Policy) -> Iterator[Attributes]:
    """Yield a request for each group, version and resource that a policy names without wildcards."""
    for rule in policy.criteria.rules if policy.bindings and policy.is_registered else ():
        yield from _requests_of_rule(rule)


def _requests_of_rule(rule: ResourceRule) -> Iterator[Attributes]:
    for operation in Operation if rule.operations is None else sorted(rule.operations):
        for group in sorted(rule.groups or ()):
            for version in sorted(rule.versions or ()):
                for plural, sub in rule.resources:
                    resource = GroupVersionResource(group, version, plural)
                    kind = GroupVersionKind(group, version, "")
                    yield Attributes(
                        uid="",
                        kind=kind,
                        resource=resource,
                        operation=Operation(operation),
                        request_kind=kind,
                        request_resource=resource,
                        sub_resource=sub,
                        namespace="" if rule.scope == "Cluster" else "default",
                    )


def sentences_about_expanded_facts(policy: Policy, registry: FactRegistry) -> Iterator[str]:
    """Yield a sentence for each field of a fact that has another meaning for a pod template than for the whole object.
    A policy that does not expand has no such sentences.
    """
    if not policy.expands:
        return
    fields_read = _fields_read_by_variable(policy)
    for name in policy.facts:
        for field, meaning in registry.fact(name).expanded.items():
            if name in fields_read and (field == WHOLE or field in fields_read[name]):
                path = f"{name}.{field}" if field else name
                yield (
                    f"with `expand: pods`, `{path}` is {meaning}: to judge a workload as a whole, remove `expand` and "
                    "name its kinds in matchConstraints"
                )


def _fields_read_by_variable(policy: Policy) -> dict[str, frozenset[str]]:
    fields_read: dict[str, frozenset[str]] = {}
    for expression in policy.expressions():
        if expression.program is not None:
            for name, fields in expression.program.paths_read().fields_by_variable.items():
                fields_read[name] = fields_read.get(name, frozenset()) | fields
    return fields_read
