"""Finds three mistakes: resource rules that match no request, matchConditions that are false for every request, and
validations that are true for every request.

A rule that matches no request names a group, version or resource that does not exist, or a kind in place of a plural.
kube-apiserver accepts such a policy, and never evaluates it. A kind in place of a plural is an error when the policy is
loaded. `claimgate policies check` reports the other mistakes. Only groups of Kubernetes are checked, because the
resources of other groups are unknown.

The rules of a policy say which operations, kinds, resources and sub-resources its requests can have. A matchCondition
or validation is evaluated with each combination of these values. All other values are unknown. For example,
`object.kind == 'pods'` and `request.operation == 'Create'` are false for every request. kube-apiserver accepts such a
policy, which never refuses anything. Only built-in kinds are known here.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cache
from typing import Final

from webhook.apimachinery.attributes import JSON, GroupVersionKind, Operation, plural_of_kind
from webhook.apimachinery.object_lists import objects_of_list
from webhook.apimachinery.paths import FieldPath, get
from webhook.cel.syntax.parser import parse
from webhook.cel.syntax.text import source_text
from webhook.cel.syntax.tree import Call, Ident, ListNode, Literal, Node, Select, children
from webhook.cluster.known_kinds import CLUSTER_SCOPED, KNOWN_KINDS
from webhook.errors import InputProblem
from webhook.patch.schema import is_builtin, is_builtin_group
from webhook.policy.compiled import Policy
from webhook.policy.matching import ResourceRule
from webhook.text.similar_names import nearest_name
from webhook.text.wording import either
from webhook.workloads.table import Table
from webhook.yamltext.yamlfile import Document

_PLACES = tuple(
    ("spec", match, rules)
    for match in ("matchConstraints", "matchResources")
    for rules in ("resourceRules", "excludeResourceRules")
)
_CONNECT_ONLY: Final = frozenset(("exec", "attach", "portforward", "proxy"))
"""Sub-resources with the operation CONNECT (kubernetes v1.36 pkg/registry/core/pod/rest/subresources.go)."""
_VERSIONS: Final = ("v1", "v2", "v1beta1", "v1beta2", "v1beta3", "v1alpha1", "v1alpha2", "v1alpha3")


def sentences_about_rules_without_effect(policy: Policy) -> Iterator[str]:
    """Yield a sentence, with the fix, for each rule of the policy that matches no request.

    Yield nothing for a policy that is not registered. Such a policy is for files, which may have old versions.
    """
    if not policy.is_registered:
        return
    for index, rule in enumerate(policy.criteria.rules):
        yield from _sentences_about_rule(rule, f"spec.matchConstraints.resourceRules[{index}]")
    for binding in policy.bindings:
        for index, rule in enumerate(binding.criteria.rules if binding.criteria else ()):
            yield from _sentences_about_rule(
                rule, f"binding {binding.name}: spec.matchResources.resourceRules[{index}]"
            )


def _sentences_about_rule(rule: ResourceRule, place: str) -> Iterator[str]:
    for resource, sub in rule.resources:
        if rule.groups is None or resource == "*":
            continue
        sentence = _sentence_about_resource(rule, rule.groups, resource)
        if not sentence and sub in _CONNECT_ONLY and rule.operations and "CONNECT" not in rule.operations:
            sentence = f"`{resource}/{sub}` has only the operation CONNECT: write `operations: [CONNECT]`"
        sentence = sentence or _sentence_about_scope(rule, rule.groups, resource)
        if sentence:
            yield f"{place}: {sentence}"
    if rule.groups is not None and all(resource == "*" for resource, _ in rule.resources):
        yield from (f"{place}: {text}" for group in sorted(rule.groups) if (text := _sentence_about_group(group)))


def _sentence_about_resource(rule: ResourceRule, groups: Collection[str], resource: str) -> str:
    """Return a sentence about a resource that does not exist in any of the rule's groups and versions; "" if it may
    exist.
    """
    kinds = _kinds_by_resource()
    if not all(map(_is_known_group, groups)):
        return ""
    matched_kinds = [(group, kinds[group, resource]) for group in sorted(groups) if (group, resource) in kinds]
    if not matched_kinds:
        return _sentence_about_missing_resource(groups, resource)
    if rule.versions is None or any(
        _is_served(GroupVersionKind(group, version, kind)) for group, kind in matched_kinds for version in rule.versions
    ):
        return ""
    group, kind = matched_kinds[0]
    named = either([f"`{version}`" for version in sorted(rule.versions)])
    right = [f"`{each}`" for each in _VERSIONS if _is_served(GroupVersionKind(group, each, kind))]
    fix = f"write {right[0]}" if right else "name a version that is served"
    return f"{resource} of group {_group_as_shown(group)} are not served in {named}: {fix}"


def _sentence_about_missing_resource(groups: Collection[str], resource: str) -> str:
    named = either([_group_as_shown(group) for group in sorted(groups)])
    groups_with_resource = sorted(group for group, other in _kinds_by_resource() if other == resource)
    if groups_with_resource:
        if "core" in groups and groups_with_resource[0] == "":
            return 'no API group has the name `core`: write "" for the group of pods and services'
        right = next(group for group in groups_with_resource if group != "extensions")
        return f"there are no {resource} in group {named}: write {_group_as_shown(right)}"
    group = next((text for each in sorted(groups) if (text := _sentence_about_group(each))), "")
    if group:
        return group
    near = nearest_name(resource, sorted({other for each, other in _kinds_by_resource() if each in groups}))
    return f"no resource `{resource}` in group {named}{f': did you mean `{near}`?' if near else ''}"


def _sentence_about_group(group: str) -> str:
    """Return a sentence about an API group that does not exist; "" if it may exist."""
    if group == "core":
        return 'no API group has the name `core`: write "" for the group of pods and services'
    name, slash, _ = group.partition("/")
    if slash:
        return f"`{group}` is a group with a version: write `{name}` in apiGroups, and the version in apiVersions"
    if group in _VERSIONS:
        return f'`{group}` is a version: write "" in apiGroups for the group of pods and services'
    return ""


def _sentence_about_scope(rule: ResourceRule, groups: Collection[str], resource: str) -> str:
    kinds = _kinds_by_resource()
    if rule.scope == "*" or not all(map(_is_known_group, groups)):
        return ""
    matched_kinds = [(group, kinds[group, resource]) for group in groups if (group, resource) in kinds]
    scope = "Namespaced" if rule.scope == "Cluster" else "Cluster"
    if not matched_kinds or resource == "namespaces":
        return ""
    if all(("Cluster" if kind in CLUSTER_SCOPED else "Namespaced") == scope for kind in matched_kinds):
        return f"{resource} are of scope {scope}, and the rule asks for `scope: {rule.scope}`: write `scope: {scope}`"
    return ""


def _is_known_group(group: str) -> bool:
    return is_builtin_group(group) or bool(_sentence_about_group(group))


def _is_served(kind: GroupVersionKind) -> bool:
    from webhook.facts.removed_versions import read_removed_versions  # only few verbs need this table

    if (kind.group, kind.version, kind.kind) in read_removed_versions():
        return False
    return is_builtin(kind) or not any(is_builtin(kind._replace(version=each)) for each in _VERSIONS)


@cache
def _kinds_by_resource() -> Mapping[tuple[str, str], str]:
    return {(group, plural_of_kind(kind)): kind for group, kind in sorted(KNOWN_KINDS)}


def _group_as_shown(group: str) -> str:
    return f"`{group}`" if group else '""'


def kind_of_resource(group: str, resource: str) -> str:
    """Return the kind of a built-in resource; "" if unknown."""
    return _kinds_by_resource().get((group, resource), "")


def errors_of_kinds_named_as_resources(documents: Sequence[Document], table: Table) -> Iterator[InputProblem]:
    """Yield an error for each kind in place of a plural in the rules of policies and bindings."""
    plurals = _plurals_by_kind(table)
    for document in documents:
        for at, value in objects_of_list(document.value):
            for path, name in _resources_with_paths(value):
                if right := _probably_meant_resource(name, plurals):
                    reason = "matches nothing, because a rule names resources by their plural in lower case"
                    message = f"`{name}` {reason}: write `{right}`"
                    yield document.problem((*at, *path), message)


def _resources_with_paths(value: JSON) -> Iterator[tuple[FieldPath, str]]:
    for place in _PLACES:
        for number, rule in enumerate(_list_or_empty(get(value, place))):
            for index, name in enumerate(_list_or_empty(get(rule, ("resources",)))):
                if isinstance(name, str):
                    yield (*place, number, "resources", index), name


def _list_or_empty(value: JSON) -> Sequence[JSON]:
    return value if isinstance(value, list) else ()


def _plurals_by_kind(table: Table) -> Mapping[str, str]:
    """Return the plurals of all known kinds, by the kind in lower case."""
    plurals = {kind.lower(): plural_of_kind(kind) for _, kind in KNOWN_KINDS}
    return plurals | {row.kind.lower(): row.resource for row in table.rows}


def _probably_meant_resource(name: str, plurals: Mapping[str, str]) -> str:
    """Return the resource that the author probably meant; "" if the name may be a resource."""
    resource, slash, sub = name.partition("/")
    small = resource.lower()
    if resource == small and (small not in plurals or small in plurals.values()):
        return ""
    right = small if small in plurals.values() else plurals.get(small) or plural_of_kind(resource)
    return f"{right}{slash}{sub}"


Known = Mapping[str, str]
"""The known values of a request, by their paths in expressions."""
_UNKNOWN: Final = object()


def sentences_about_constant_conditions(policy: Policy) -> Iterator[str]:
    """Yield a sentence for each matchCondition that is always false, and each validation that is always true.
    Expressions that read no known values, such as literals, are left out.
    """
    requests = _requests_of_policy(policy)
    if not requests:
        return
    variables = {name: parse(each.source) for name, each in policy.variables.items() if each.program is not None}
    for path, expression in policy.expressions_with_paths():
        constant: bool | None = None
        if path.startswith("spec.matchConditions"):
            constant = False
        elif path.endswith("].expression") and path.startswith("spec.validations"):
            constant = True
        if constant is None or expression.program is None:
            continue
        node = parse(expression.source)
        if isinstance(node, Literal) or any(_value(node, each, variables) is not constant for each in requests):
            continue
        effect = "is true for every request, so it refuses nothing" if constant else "is false for every request"
        if reason := _values_read(node, requests, variables):
            yield f"{path}: `{expression.source.strip()}` {effect}: {reason}"


def _requests_of_policy(policy: Policy) -> Sequence[Known]:
    """Return the known values of each kind of request that a policy matches. Return () if a rule has a wildcard, or if
    the policy is also evaluated on pod templates or embedded objects.
    """
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
                    gvk = GroupVersionKind(group, version, kind)
                    requests += [
                        _known_of_request(gvk, resource, sub, operation)
                        for operation in (Operation if rule.operations is None else sorted(rule.operations))
                    ]
    return requests


def _known_of_request(kind: GroupVersionKind, resource: str, sub: str, operation: str) -> Known:
    values = {
        "request.operation": str(operation),
        "request.resource.resource": resource,
        "request.resource.group": kind.group,
        "request.requestResource.resource": resource,
        "request.requestResource.group": kind.group,
        "request.subResource": sub,
        "request.requestSubResource": sub,
    }
    if kind.kind and not sub:
        values |= {
            "request.kind.kind": kind.kind,
            "request.kind.group": kind.group,
            "request.requestKind.kind": kind.kind,
            "request.requestKind.group": kind.group,
        }
        if operation in ("CREATE", "UPDATE"):
            values["object.kind"] = kind.kind
        if operation in ("DELETE", "UPDATE"):
            values["oldObject.kind"] = kind.kind
    return values


def _value(node: Node, known_values: Known, variables: Mapping[str, Node]) -> object:
    """Return the value of an expression; _UNKNOWN if it depends on unknown values."""
    match node:
        case Literal():
            return node.value
        case Select(operand=Ident(name="variables")) if node.field in variables:
            return _value(variables[node.field], known_values, {})
        case Select():
            return known_values.get(source_text(node), _UNKNOWN)
        case ListNode():
            values = [_value(each, known_values, variables) for each in node.elements]
            return _UNKNOWN if _UNKNOWN in values else values
        case Call(target=None):
            return _value_of_operator(node.function, [_value(each, known_values, variables) for each in node.arguments])
    return _UNKNOWN


def _value_of_operator(function: str, values: Sequence[object]) -> object:
    """Return the value of an operator as in CEL: `false && x` is false even if x is unknown."""
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
    """Return a text with the possible values of the paths that an expression reads; "" if it reads no known path."""
    sentences = []
    for path in _paths_of_node(node, variables):
        values = sorted({each[path] for each in requests if path in each})
        if values:
            sentences.append(f"`{path}` is {either([f'`{value}`' if value else 'empty' for value in values])} here")
    return "; ".join(sentences)


def _paths_of_node(node: Node, variables: Mapping[str, Node]) -> Iterator[str]:
    pending = [node]
    paths: dict[str, None] = {}
    while pending:
        each = pending.pop()
        if isinstance(each, Select):
            path = source_text(each)
            is_new_variable = path not in paths and each.operand == Ident(each.operand.offset, "variables")
            paths[path] = None
            if is_new_variable and each.field in variables:
                pending.append(variables[each.field])
        pending += children(each)
    yield from paths
