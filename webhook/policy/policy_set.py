"""All loaded policies as one immutable value with an index. A reload replaces the whole value.

The index finds the policies that may concern a request, so policies for other kinds take no time. matching.py then
matches each policy. The keys of the index are group, resource and operation. If several groups have a resource, the
index uses the first group for all these groups.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from msgspec import Struct

from webhook.apimachinery.attributes import JSON, Attributes, GroupVersionKind, GroupVersionResource, Operation, Phase
from webhook.cluster.files import FilesCluster
from webhook.cluster.interest import Interest
from webhook.cluster.site_params import OWN_NAMESPACE
from webhook.facts.subject import SHIPPED, FactRegistry
from webhook.manifests.configuration import EMPTY, FileConfiguration
from webhook.manifests.policy_exceptions import INTEREST
from webhook.policy.candidates import Candidate, candidates_for_request
from webhook.policy.compiled import Policy
from webhook.policy.interests import interests_of_policies, kinds_looked_up_by_policies
from webhook.policy.matching import ResourceEquivalences, ResourceRule, equivalent_resources
from webhook.policy.static_params import StaticParams
from webhook.rules.actions import Chosen
from webhook.schema.kinds import type_of
from webhook.workloads import embedded
from webhook.workloads.rows import Row
from webhook.workloads.table import Table

_Key: TypeAlias = tuple[str, str, str]
_RequestKey: TypeAlias = tuple[str, GroupVersionResource, GroupVersionResource, GroupVersionKind, Operation, str, bool]
"""The parts of a request on which its candidates depend (`PolicySet._candidates`)."""
_MOST_INDEXED: Final = 1000
"""The maximum number of resources with operations for which candidates are cached. A cluster has fewer, but files may
have any number.
"""


class _PolicyIndex(Struct, frozen=True):
    """Policies of one phase by the resources that they may concern. `positions` has positions in `policies`, which are
    sorted by name.
    """

    policies: tuple[Policy, ...]
    positions: Mapping[_Key, tuple[int, ...]]
    named: Mapping[_Key, tuple[Policy, ...]]
    is_wild: bool

    def find(self, group: str, plural: str, operation: str) -> tuple[Policy, ...]:
        if not self.is_wild:
            return self.named.get((group, plural, operation), ())
        names = ((group, plural), (group, "*"), ("*", plural), ("*", "*"))
        positions_by_name = [self.positions.get((*name, operation), ()) for name in names]
        return tuple(self.policies[number] for number in sorted(set().union(*positions_by_name)))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PolicySet:
    """Policies with their bindings, sorted by name, and the parameters that were loaded with them.

    `configuration` has the settings of the configuration file, and `configured` the actions that these settings give to
    rules. `foreign` is a sentence about policies of other projects in the same files, or "". `misplaced` is the file
    and line of the first PolicyException in the files, which has no effect there. `own_namespace` is the namespace
    where claimgate runs. `definitions` has the CustomResourceDefinitions in the same files. `has_stored_policies`:
    whether policies come from a cluster, so that PolicyExceptions of this cluster get a status.
    """

    validating: tuple[Policy, ...]
    mutating: tuple[Policy, ...]
    params: tuple[JSON, ...] = ()
    definitions: tuple[JSON, ...] = ()
    table: Table
    registry: FactRegistry = SHIPPED
    foreign: str = ""
    misplaced: str = ""
    configuration: FileConfiguration = EMPTY
    configured: Chosen = field(default_factory=dict)
    own_namespace: str = OWN_NAMESPACE
    has_stored_policies: bool = False
    equivalents: ResourceEquivalences = field(init=False, repr=False)
    shipped_params: FilesCluster | None = field(init=False, repr=False)
    static_params: StaticParams = field(init=False, repr=False)
    _indexes: Mapping[str, _PolicyIndex] = field(init=False, repr=False)
    _candidate_index: dict[_RequestKey, tuple[Candidate, ...]] = field(default_factory=dict, init=False, repr=False)

    def __post_init__(self) -> None:
        equal = equivalent_resources(self.table)
        phases = {phase: tuple(p for p in self.validating if p.phase in (phase, "both")) for phase in Phase}
        by_name = {"validate": phases[Phase.VALIDATE], "mutate": phases[Phase.MUTATE], "change": self.mutating}
        indexes = {name: _index_policies(policies, self.table, equal) for name, policies in by_name.items()}
        object.__setattr__(self, "equivalents", equal)
        object.__setattr__(self, "shipped_params", FilesCluster(self.params) if self.params else None)
        object.__setattr__(self, "static_params", StaticParams(self.policies))
        object.__setattr__(self, "_indexes", indexes)

    @property
    def policies(self) -> tuple[Policy, ...]:
        """Return all policies, validating policies first."""
        return (*self.validating, *self.mutating)

    @property
    def unbound_policy_names(self) -> tuple[str, ...]:
        """Return the names of policies without a binding, which are never evaluated."""
        return tuple(policy.name for policy in self.policies if not policy.bindings)

    def validating_for(self, attributes: Attributes, phase: Phase) -> tuple[Candidate, ...]:
        return self._candidates(phase.value, attributes)

    def mutating_for(self, attributes: Attributes) -> tuple[Candidate, ...]:
        return self._candidates("change", attributes)

    def _candidates(self, name: str, attributes: Attributes) -> tuple[Candidate, ...]:
        resource, requested = attributes.resource, attributes.request_resource
        request = resource, requested, attributes.kind, attributes.operation, attributes.sub_resource
        key = name, *request, bool(attributes.namespace)
        candidates = self._candidate_index.get(key)
        if candidates is None:
            group, plural = self.equivalents.canonical_resource(resource.group, resource.resource)
            policies = self._indexes[name].find(group, plural, attributes.operation)
            candidates = candidates_for_request(policies, attributes, self.equivalents, self.registry)
            if len(self._candidate_index) >= _MOST_INDEXED:
                self._candidate_index.clear()
            self._candidate_index[key] = candidates
        return candidates

    def compile_ahead_of_requests(self) -> None:
        """Compile everything before the first request, once for the process and all its workers."""
        for name in self.registry.fact_names:  # checks need facts, too
            self.registry.fact(name)
        self.registry.import_modules({group for policy in self.policies for group in policy.checks})
        for policy in self.policies:
            for group in policy.checks:
                self.registry.checks(group)
            [*policy.catalogue.values()]  # this imports the modules of the rules
            for expression in policy.expressions():
                if expression.program is not None:
                    expression.program.compile_now()
        for row in self.table.rows:
            for version in row.versions:
                type_of(GroupVersionKind(row.group, version, row.kind))

    def interests(self, *, of_audits: bool = False) -> tuple[Interest, ...]:
        """Return the objects that a view of the cluster must have: namespaces, parameters, and objects for facts and
        checks. With `of_audits`, objects for the advice that only audits show are included.
        """
        looked_up = interests_of_policies(
            self.policies, self.registry, self.params, self.own_namespace, of_audits=of_audits
        )
        return (*looked_up, INTEREST) if self._reads_policy_exceptions else looked_up

    def names_of_policies_that_look_up(self, gvk: GroupVersionKind) -> tuple[str, ...]:
        """Return the names of the policies that look up objects of a kind in any version."""
        return tuple(
            policy.name
            for policy in self.policies
            if any(
                each.kind == (gvk.group, gvk.kind)
                for each in interests_of_policies([policy], self.registry, self.params, self.own_namespace)
            )
        )

    def kinds_looked_up(self) -> frozenset[tuple[str, str]]:
        """Return group and kind of the `interests` of an audit, without importing modules of checks and facts."""
        looked_up = kinds_looked_up_by_policies(self.policies, self.registry)
        return looked_up | {INTEREST.kind} if self._reads_policy_exceptions else looked_up

    @property
    def _reads_policy_exceptions(self) -> bool:
        return self.has_stored_policies or bool(self.configuration.policy_exceptions)


def _index_policies(policies: tuple[Policy, ...], table: Table, equal: ResourceEquivalences) -> _PolicyIndex:
    entries: dict[_Key, dict[int, None]] = {}
    for number, policy in enumerate(policies):
        for key in _index_keys_of_policy(policy, table, equal):
            entries.setdefault(key, {})[number] = None
    return _PolicyIndex(
        policies=policies,
        positions={key: tuple(numbers) for key, numbers in entries.items()},
        named={key: tuple(policies[number] for number in numbers) for key, numbers in entries.items()},
        is_wild=any("*" in key for key in entries),
    )


def _index_keys_of_policy(policy: Policy, table: Table, equal: ResourceEquivalences) -> Iterator[_Key]:
    for rule in policy.criteria.rules:
        operations = tuple(Operation) if rule.operations is None else sorted(rule.operations)
        named = [
            (group, resource) if "*" in (group, resource) else equal.canonical_resource(group, resource)
            for group, resource in _resources_of_rule(rule, policy, table)
        ]
        yield from ((*each, str(operation)) for operation in operations for each in named)


def _resources_of_rule(rule: ResourceRule, policy: Policy, table: Table) -> Iterator[tuple[str, str]]:
    """Yield the resources that a rule names. For an expanding policy, also yield resources with pod templates or
    embedded objects.
    """
    groups = ("*",) if rule.groups is None else sorted(rule.groups)
    for resource, _ in rule.resources:
        yield from ((group, resource) for group in groups)
    if policy.expands and covers_pods(rule):
        yield from ((row.group, row.resource) for row in table.rows)
    if policy.enters:
        yield from ((row.group, row.resource) for row in kinds_with_embedded_objects(rule, table))


def kinds_with_embedded_objects(rule: ResourceRule, table: Table) -> Iterator[Row]:
    """Yield the kinds that may have embedded objects of kinds that a rule names."""
    named = [
        row
        for row in table.rows
        if (rule.groups is None or row.group in rule.groups)
        and any(resource in (row.resource, "*") and sub in ("", "*") for resource, sub in rule.resources)
    ]
    for row in table.holders:
        if any(embedded.may_hold_kind(row, each.group, each.kind) for each in named):
            yield row


def covers_pods(rule: ResourceRule) -> bool:
    """Return whether a rule names pods."""
    return (rule.groups is None or "" in rule.groups) and any(
        resource in ("pods", "*") and sub in ("", "*") for resource, sub in rule.resources
    )
