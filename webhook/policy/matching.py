"""Decides whether a policy or binding matches a request: rules, selectors, matchPolicy, scopes and sub-resources.

policy_set.py chooses the policies, and match_conditions.py evaluates the matchConditions. The order and the result of
every step are as in k8s.io/apiserver v0.36 pkg/admission/plugin/policy/matching/matching.go and
plugin/webhook/predicates/{rules,namespace,object}.

With `matchPolicy: Equivalent`, a rule also matches the same resource under another group or version. For API servers,
all served versions of a resource are equivalent. A few resources exist in two groups, and are equivalent, too
(k8s.io/apimachinery v0.36 pkg/runtime/mapper.go; kubernetes v1.36 default_storage_factory_builder.go). API servers
convert the object to the version of the matching rule. `conversion` says how claimgate can convert the object:
`version` changes only `apiVersion`, as API servers do for a custom kind without a conversion webhook; `fields` is a
conversion of evaluation/conversions.py; `impossible` means that only an API server can convert the object.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Final, Literal, NamedTuple, TypeAlias

from msgspec import Struct

from webhook.apimachinery.attributes import (
    JSON,
    NAME_LABEL,
    Attributes,
    GroupVersionKind,
    GroupVersionResource,
    Operation,
)
from webhook.errors import BindingError, LookupFailed, MistypedLabels, UnknownLabels
from webhook.manifests.claimgate_kinds import GROUP as CLAIMGATE_GROUP
from webhook.manifests.label_selectors import EVERYTHING, Labels, Selector, compile_selector
from webhook.manifests.models import GROUP, MatchResources, NamedRule
from webhook.patch.schema import is_builtin_group
from webhook.workloads.table import Table

Conversion: TypeAlias = Literal["none", "version", "fields", "impossible"]
"""How an object is converted to another version; `none` if the object already has the version."""

_DATA = Path(__file__).with_name("equivalent_resources.json")
NAMESPACES = GroupVersionResource("", "v1", "namespaces")

_EXEMPT = frozenset(
    f"{phase}{kind}"
    for phase in ("Validating", "Mutating")
    for kind in ("WebhookConfiguration", "AdmissionPolicy", "AdmissionPolicyBinding")
)

_LABEL_PREFIX: Final = "claimgate.dev/"
"""The prefix of labels with which users control claimgate in a namespace."""
NamespaceLabels: TypeAlias = Callable[[], Labels | None]
"""Returns the labels of the request's namespace; None if the Namespace does not exist. May raise LookupFailed."""


class ResourceRule(Struct, frozen=True):
    """A NamedRuleWithOperations. None means `*`. `resources` has pairs of resource and sub-resource."""

    operations: frozenset[str] | None
    groups: frozenset[str] | None
    versions: frozenset[str] | None
    resources: tuple[tuple[str, str], ...]
    names: frozenset[str]
    scope: str

    def matches(self, resource: GroupVersionResource, attributes: Attributes) -> bool:
        """Return whether the rule would match the request if the request were for `resource`."""
        return (
            (self.groups is None or resource.group in self.groups)
            and (self.operations is None or attributes.operation in self.operations)
            and (self.versions is None or resource.version in self.versions)
            and self._matches_resource(resource.resource, attributes.sub_resource)
            and (self.scope == "*" or self._matches_scope(resource, attributes.namespace))
            and (not self.names or attributes.name in self.names)
        )

    def names_resource(self, resource: GroupVersionResource, sub: str) -> bool:
        """Return whether the rule names group and resource without a wildcard, with any version."""
        return self.groups is not None and resource.group in self.groups and (resource.resource, sub) in self.resources

    def _matches_resource(self, resource: str, sub: str) -> bool:
        if (resource, sub) in self.resources:
            return True
        return any(r in ("*", resource) and s in ("*", sub) for r, s in self.resources)

    def _matches_scope(self, resource: GroupVersionResource, namespace: str) -> bool:
        is_cluster_scoped = resource == NAMESPACES or not namespace
        return is_cluster_scoped == (self.scope == "Cluster")


class Criteria(Struct, frozen=True):
    """The compiled matchConstraints of a policy or matchResources of a binding."""

    rules: tuple[ResourceRule, ...] = ()
    excluded: tuple[ResourceRule, ...] = ()
    namespaces: Selector = EVERYTHING
    objects: Selector = EVERYTHING
    policy: Literal["Equivalent", "Exact"] = "Equivalent"


class Match(NamedTuple):
    """The matching resource and kind, which the variable `request` has, and the conversion that the object needs."""

    resource: GroupVersionResource
    kind: GroupVersionKind
    conversion: Conversion = "none"


def compile_criteria(manifest: MatchResources | None) -> Criteria:
    """Compile the criteria of a valid manifest; None matches everything."""
    if manifest is None:
        return Criteria()
    return Criteria(
        rules=tuple(map(compile_rule, manifest.resource_rules)),
        excluded=tuple(map(compile_rule, manifest.exclude_resource_rules)),
        namespaces=compile_selector(manifest.namespace_selector),
        objects=compile_selector(manifest.object_selector),
        policy="Exact" if manifest.match_policy == "Exact" else "Equivalent",
    )


def compile_rule(manifest: NamedRule) -> ResourceRule:
    """Compile a rule."""
    pairs = (resource.partition("/") for resource in manifest.resources)
    return ResourceRule(
        operations=_values_or_none_for_all(manifest.operations),
        groups=_values_or_none_for_all(manifest.api_groups),
        versions=_values_or_none_for_all(manifest.api_versions),
        resources=tuple((parent, sub) for parent, _, sub in pairs),
        names=frozenset(manifest.resource_names),
        scope=manifest.scope or "*",
    )


def _values_or_none_for_all(values: list[str]) -> frozenset[str] | None:
    return None if "*" in values else frozenset(values)


def is_exempt(attributes: Attributes) -> bool:
    """Return whether no registered policy may apply to an object. Policies, bindings and webhook configurations are
    exempt, so that users can always change them.
    """
    group, kind = attributes.kind.group, attributes.kind.kind
    return (group == GROUP and kind in _EXEMPT) or group == CLAIMGATE_GROUP


def match_request(
    criteria: Criteria,
    attributes: Attributes,
    labels: NamespaceLabels,
    equal: ResourceEquivalences,
    sent: Match | None = None,
    *,
    tell: Callable[[str], object] = bool,
) -> Match | None:
    """Return the match of the criteria with the request; None without a match.

    `sent` is the match for an object that needs no conversion, by default `match_of_unconverted(attributes)`. `tell`
    is called with the name of the part that does not match.

    As in API servers, a missing namespace, or a label that is not a string, is an error only if all other parts match.

    Raises:
        BindingError: all other parts match, but the namespace does not exist.
        LookupFailed: all other parts match, but the labels of the namespace are unknown.
        MistypedLabels: all other parts match, but a label that the objectSelector reads is not a string.
    """
    mistyped: MistypedLabels | None = None
    try:
        if criteria.objects.requirements and not _does_selector_match_object(criteria.objects, attributes):
            tell("objectSelector")
            return None
    except MistypedLabels as error:
        mistyped = error
    sent = sent or match_of_unconverted(attributes)
    if criteria.excluded and _match_any_rule(criteria.excluded, criteria, attributes, equal, sent):
        tell("excludeResourceRules")
        return None
    match: Match | None = sent
    if criteria.rules:
        match = _match_any_rule(criteria.rules, criteria, attributes, equal, sent)
        if match is None and criteria.policy == "Equivalent":
            match = _match_of_unknown_version(criteria.rules, attributes, equal)
    if (
        match is None
        or not criteria.namespaces.requirements
        or matches_namespace(criteria.namespaces, attributes, labels)
    ):
        if match is None:
            tell("resourceRules")
        elif mistyped is not None:
            raise mistyped
        return match
    tell("namespaceSelector")
    return None


def match_of_unconverted(attributes: Attributes) -> Match:
    """Return the match with the request's own resource and kind."""
    return Match(attributes.resource, attributes.kind)


def _does_selector_match_object(selector: Selector, attributes: Attributes) -> bool:
    objects: tuple[JSON, ...] = (attributes.object, attributes.old_object)
    return any(obj is not None and selector.selects(obj) for obj in objects)


def matches_namespace(selector: Selector, attributes: Attributes, labels: NamespaceLabels) -> bool:
    """Return whether a namespaceSelector selects the request's namespace. A selector that reads only the name of the
    namespace needs no lookup.

    Raises:
        BindingError: the namespace does not exist.
        LookupFailed: the labels of the namespace are unknown.
    """
    if not selector.requirements:
        return True
    if attributes.resource.resource == "namespaces":
        if not attributes.sub_resource and attributes.operation in (Operation.CREATE, Operation.UPDATE):
            return selector.selects(attributes.object)
    elif not attributes.namespace:
        return True
    keys = selector.keys
    reads_name_alone = keys <= {NAME_LABEL}
    namespace_labels: Labels | None = None
    try:
        namespace_labels = labels()
    except UnknownLabels:
        if not (reads_name_alone or all(each.startswith(_LABEL_PREFIX) for each in keys)):
            raise
        namespace_labels = {NAME_LABEL: attributes.namespace}
    except LookupFailed:
        if not reads_name_alone:
            raise
    if namespace_labels is None and reads_name_alone:
        namespace_labels = {NAME_LABEL: attributes.namespace}
    if namespace_labels is None:
        raise BindingError(f'namespaces "{attributes.namespace}" not found')
    return selector.matches(namespace_labels)


def _match_any_rule(
    rules: tuple[ResourceRule, ...],
    criteria: Criteria,
    attributes: Attributes,
    equal: ResourceEquivalences,
    sent: Match,
) -> Match | None:
    requested = attributes.request_resource
    for each in rules:
        if each.matches(requested, attributes):
            return _match_as_requested(rules, attributes, equal, sent)
    if criteria.policy == "Exact":
        return None
    for each in rules:
        if requested != attributes.resource and each.matches(attributes.resource, attributes):
            return sent
        for other in equal.others.get(requested, ()):
            if other.resource != attributes.resource and each.matches(other.resource, attributes):
                return _match_under_name(other.resource, other.kind, other.conversion, attributes)
    return None


def _match_as_requested(
    rules: tuple[ResourceRule, ...], attributes: Attributes, equal: ResourceEquivalences, sent: Match
) -> Match:
    """Return the match of the request as it was before the API server converted the object for this webhook.

    If the object cannot be converted back, but a rule also names the sent version, the match has the sent version.
    """
    if attributes.request_resource == attributes.resource:
        return sent
    back = [e for e in equal.others.get(attributes.resource, ()) if e.resource == attributes.request_resource]
    conversion = back[0].conversion if back else "impossible"
    if conversion == "impossible" and any(each.matches(attributes.resource, attributes) for each in rules):
        return sent
    return _match_under_name(attributes.request_resource, attributes.request_kind, conversion, attributes)


def _match_of_unknown_version(
    rules: tuple[ResourceRule, ...], attributes: Attributes, equal: ResourceEquivalences
) -> Match | None:
    """Return a match if a rule names another version of a custom resource than the object has; otherwise None.

    The served versions are unknown here, so the version of the rule is assumed to be served. An object of a file has no
    match if the workload table has its resource. The table then has all served versions, so the version of the object
    is not served.
    """
    resource, kind = attributes.resource, attributes.kind
    if attributes.is_plain and (resource.group, resource.resource) in equal.groups:
        return None
    for each in rules:
        if each.versions is None or not each.names_resource(resource, attributes.sub_resource):
            continue
        for version in sorted(each.versions):
            other = resource._replace(version=version)
            if each.matches(other, attributes) and not is_builtin_group(resource.group):
                return _match_under_name(other, kind._replace(version=version), "impossible", attributes)
    return None


def _match_under_name(
    resource: GroupVersionResource, kind: GroupVersionKind, conversion: Conversion, attributes: Attributes
) -> Match:
    """Return a match with another group or version. In every group and version of a resource, the object of a
    sub-resource has the same kind, such as Scale.
    """
    sent, requested = attributes.kind, attributes.resource
    if attributes.sub_resource and (sent.group, sent.version) != (requested.group, requested.version):
        return Match(resource, sent)
    return Match(resource, kind, conversion)


class EquivalentResource(Struct, frozen=True):
    """The same resource under another group or version."""

    resource: GroupVersionResource
    kind: GroupVersionKind
    conversion: Conversion


class ResourceEquivalences(Struct, frozen=True):
    """All known equivalences. `groups` maps a group and resource to the first group with the equivalent resource."""

    others: Mapping[GroupVersionResource, tuple[EquivalentResource, ...]]
    groups: Mapping[tuple[str, str], tuple[str, str]]

    def canonical_resource(self, group: str, resource: str) -> tuple[str, str]:
        """Return the group and resource under which the index has a resource."""
        key = (group, resource)
        return self.groups.get(key, key)


def equivalent_resources(table: Table) -> ResourceEquivalences:
    """Return the shipped equivalences, and the equivalences between the versions of kinds in the workload table."""
    pairs: dict[GroupVersionResource, dict[GroupVersionResource, EquivalentResource]] = {}
    groups: dict[tuple[str, str], tuple[str, str]] = {}
    for resource, kind, versions, conversion in (*_shipped_equivalences(), *_equivalents_of_table(table)):
        for group, version in versions:
            groups.setdefault((group, resource), (versions[0][0], resource))
            own = pairs.setdefault(GroupVersionResource(group, version, resource), {})
            for other_group, other_version in versions:
                name = GroupVersionResource(other_group, other_version, resource)
                if (other_group, other_version) != (group, version):
                    equal = EquivalentResource(name, GroupVersionKind(other_group, other_version, kind), conversion)
                    own.setdefault(name, equal)
    return ResourceEquivalences({key: tuple(value.values()) for key, value in pairs.items()}, groups)


_Row = tuple[str, str, tuple[tuple[str, str], ...], Conversion]


@cache
def _shipped_equivalences() -> tuple[_Row, ...]:
    rows = json.loads(_DATA.read_text(encoding="utf-8"))
    return tuple((row["resource"], row["kind"], tuple(map(tuple, row["versions"])), row["conversion"]) for row in rows)


def _equivalents_of_table(table: Table) -> Iterator[_Row]:
    for row in table.rows:
        if row.versions:
            versions = tuple((row.group, version) for version in row.versions)
            yield row.resource, row.kind, versions, "impossible" if row.conversion == "webhook" else "version"
