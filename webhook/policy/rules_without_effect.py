"""Finds rules of policies and bindings that match no request: a group, a version or a resource that does not exist.

kube-apiserver accepts such a policy, and never evaluates it. Knows only the groups of Kubernetes. The resources of
other groups are not known here.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from functools import cache
from typing import Final

from webhook.apimachinery.attributes import GroupVersionKind
from webhook.cluster.known_kinds import CLUSTER_SCOPED, KNOWN_KINDS
from webhook.facts.removed_versions import read_removed_versions
from webhook.patch.schema import is_builtin, is_builtin_group
from webhook.policy.compiled import Policy
from webhook.policy.matching import ResourceRule
from webhook.text.similar_names import nearest_name
from webhook.text.wording import either
from webhook.workloads.plurals import plural_of_kind

_CONNECTED: Final = frozenset(("exec", "attach", "portforward", "proxy"))
"""Sub-resources that are requested with CONNECT (kubernetes v1.36 pkg/registry/core/pod/rest/subresources.go)."""
_VERSIONS: Final = ("v1", "v2", "v1beta1", "v1beta2", "v1beta3", "v1alpha1", "v1alpha2", "v1alpha3")


def sentences_about_rules_without_effect(policy: Policy) -> Iterator[str]:
    """Yield a sentence, with the fix, for each rule of the policy that matches no request.

    A policy that is not registered is about files, which may have versions of any age.
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
        if not sentence and sub in _CONNECTED and rule.operations and "CONNECT" not in rule.operations:
            sentence = f"`{resource}/{sub}` is requested with CONNECT alone: write `operations: [CONNECT]`"
        sentence = sentence or _sentence_about_scope(rule, rule.groups, resource)
        if sentence:
            yield f"{place}: {sentence}"
    if rule.groups is not None and all(resource == "*" for resource, _ in rule.resources):
        yield from (f"{place}: {text}" for group in sorted(rule.groups) if (text := _sentence_about_group(group)))


def _sentence_about_resource(rule: ResourceRule, groups: Collection[str], resource: str) -> str:
    """Return a sentence about a resource that no group and version of the rule have; "" if an object may match."""
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
    where = sorted(group for group, other in _kinds_by_resource() if other == resource)
    if where:
        if "core" in groups and where[0] == "":
            return 'no API group has the name `core`: write "" for the group of pods and services'
        right = next(group for group in where if group != "extensions")
        return f"there are no {resource} in group {named}: write {_group_as_shown(right)}"
    group = next((text for each in sorted(groups) if (text := _sentence_about_group(each))), "")
    if group:
        return group
    near = nearest_name(resource, sorted({other for each, other in _kinds_by_resource() if each in groups}))
    return f"no resource `{resource}` in group {named}{f': did you mean `{near}`?' if near else ''}"


def _sentence_about_group(group: str) -> str:
    """Return a sentence about a group that does not exist; "" if it may."""
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
    wanted = "Namespaced" if rule.scope == "Cluster" else "Cluster"
    if not matched_kinds or resource == "namespaces":
        return ""
    if all(("Cluster" if kind in CLUSTER_SCOPED else "Namespaced") == wanted for kind in matched_kinds):
        return f"{resource} are of scope {wanted}, and the rule asks for `scope: {rule.scope}`: write `scope: {wanted}`"
    return ""


def _is_known_group(group: str) -> bool:
    return is_builtin_group(group) or bool(_sentence_about_group(group))


def _is_served(kind: GroupVersionKind) -> bool:
    if (kind.group, kind.version, kind.kind) in read_removed_versions():
        return False
    return is_builtin(kind) or not any(is_builtin(kind._replace(version=each)) for each in _VERSIONS)


@cache
def _kinds_by_resource() -> Mapping[tuple[str, str], str]:
    """Return the kinds of Kubernetes by group and resource."""
    return {(group, plural_of_kind(kind)): kind for group, kind in sorted(KNOWN_KINDS)}


def _group_as_shown(group: str) -> str:
    return f"`{group}`" if group else '""'


def kind_of_resource(group: str, resource: str) -> str:
    """Return the kind of a resource of Kubernetes; "" if it is not known."""
    return _kinds_by_resource().get((group, resource), "")
