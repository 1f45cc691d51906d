"""Lists the objects that policies look up in a cluster: namespaces, parameters, objects for facts and checks, and
definitions of kinds.

A view of the cluster contains these objects. Parameters are complete, because policies may read any field. Other
objects have only the needed fields.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from webhook.apimachinery.attributes import CRD, JSON, NAMESPACE, GroupVersionKind
from webhook.apimachinery.paths import get
from webhook.cluster.interest import Interest, ObjectScope, combine_interests, interest_in_fields
from webhook.cluster.lookup import namespace_and_name
from webhook.cluster.site_params import OWN_NAMESPACE, SITE, interest_in_own_namespace, is_below_site
from webhook.facts.kinds import TRAIN_JOB
from webhook.facts.subject import FactRegistry
from webhook.facts.train_job_pods.types import INSTALLED, RUNTIMES
from webhook.patch.schema import is_builtin_group
from webhook.policy.compiled import Policy
from webhook.policy.declarations import NAMESPACE_METADATA

_SCHEMAS: Final = frozenset(("spec.versions.name", "spec.versions.schema"))
_USE: Final = re.compile(
    r"\bnamespaceObject\b(?:\s*[!=]=\s*null\b|\s*\.\s*(?:\?\s*)?(?:metadata\s*\.\s*(?:\?\s*)?(\w+)|(spec|status)\b))?"
)
"""Matches a use of `namespaceObject`, with the name of the field that is read, if there is one."""


def interests_of_policies(
    policies: Sequence[Policy],
    registry: FactRegistry,
    params: Iterable[JSON] = (),
    own_namespace: str = OWN_NAMESPACE,
    *,
    of_audits: bool = False,
) -> tuple[Interest, ...]:
    """Return the objects that a view of the cluster must have for these policies.

    Args:
        policies: the loaded policies.
        registry: the facts and checks that they may use.
        params: the shipped parameters.
        own_namespace: the namespace where claimgate runs.
        of_audits: whether to include objects for the advice that only audits show.
    """
    interests = [*_interests_besides_facts_and_checks(policies, params, own_namespace)]
    for name in sorted({name for policy in policies for name in policy.facts}):
        interests += registry.fact(name).lookups
    for group in sorted({group for policy in policies for group in policy.checks}):
        for check in registry.checks(group):
            interests += (*check.lookups, *(RUNTIMES if TRAIN_JOB in check.kinds else ()))
            interests += check.lookups_of_audits if of_audits else ()
    return combine_interests(interest_in_own_namespace(each, own_namespace) for each in interests)


def kinds_looked_up_by_policies(policies: Sequence[Policy], registry: FactRegistry) -> frozenset[tuple[str, str]]:
    """Return group and kind of the objects that policies look up in an audit, without importing modules of checks and
    facts.
    """
    kinds = {each.kind for each in _interests_besides_facts_and_checks(policies)}
    for name in {name for policy in policies for name in policy.facts}:
        kinds.update(registry.kinds_looked_up_by_fact(name))
    for group in {group for policy in policies for group in policy.checks}:
        kinds.update(registry.kinds_looked_up_by_group(group))
        if any(TRAIN_JOB in scope.kinds for scope in registry.scopes_of_checks(group)):
            kinds.update(each.kind for each in RUNTIMES)
    return frozenset(kinds)


def _interests_besides_facts_and_checks(
    policies: Sequence[Policy], params: Iterable[JSON] = (), own_namespace: str = OWN_NAMESPACE
) -> Iterator[Interest]:
    """Yield the objects that policies look up, except those for facts and checks."""
    yield interest_in_fields(NAMESPACE, *_namespace_fields(policies))
    for policy in policies:
        if policy.param_kind is not None:
            yield from _interests_in_params(policy.param_kind, policy, params)
            named = (each.param_source for each in policy.bindings if each.param_source is not None)
            if any(is_below_site(policy.param_kind, one.namespace, one.name, own_namespace) for one in named):
                yield SITE
        yield from _interests_in_definitions(policy)
        if policy.reads_patches:
            yield from INSTALLED
        if policy.reads_merged_pods and policy.kind == "validating":
            yield from (*RUNTIMES, *INSTALLED)


def _interests_in_definitions(policy: Policy) -> Iterator[Interest]:
    """Yield the CustomResourceDefinitions that a policy needs for its mutations. If its rules name `*`, yield all."""
    for rule in policy.criteria.rules if policy.needs_schemas else ():
        for group in sorted(rule.groups or ("*",)):
            for resource, _ in rule.resources:
                if not is_builtin_group(group):
                    name = "" if "*" in (group, resource) else f"{resource}.{group}"
                    yield Interest(CRD, _SCHEMAS, scope=ObjectScope(name=name))


def _interests_in_params(kind: GroupVersionKind, policy: Policy, params: Iterable[JSON]) -> Iterator[Interest]:
    """Yield the parameters that bindings refer to. A reference without a namespace can mean any namespace."""
    for source in (binding.param_source for binding in policy.bindings):
        if source is None:
            continue
        if source.name:
            yield Interest(kind, scope=ObjectScope(namespace=source.namespace, name=source.name))
        elif source.selector is not None:
            yield Interest(kind, scope=ObjectScope(namespace=source.namespace, labels=source.selector.text))
            yield from _interests_in_shipped_params(kind, params)


def _interests_in_shipped_params(kind: GroupVersionKind, params: Iterable[JSON]) -> Iterator[Interest]:
    """Yield the objects with names of shipped parameters: an object of the cluster replaces the shipped parameter with
    the same name.
    """
    for param in params:
        group, slash, _ = str(get(param, ("apiVersion",)) or "").partition("/")
        namespace, name = namespace_and_name(param)
        if (group if slash else "", get(param, ("kind",))) == (kind.group, kind.kind) and name:
            yield Interest(kind, scope=ObjectScope(namespace=namespace, name=name))


def _namespace_fields(policies: Iterable[Policy]) -> set[str]:
    """Return the fields of Namespaces that policies read: labels for selectors, and fields of `namespaceObject`."""
    fields = {"metadata.labels"}
    for policy in policies:
        for expression in policy.expressions() if policy.mentions_namespace else ():
            for use in _USE.finditer(expression.source):
                if use[1] or use[2]:
                    fields.add(f"metadata.{use[1]}" if use[1] else use[2])
                elif not use[0].endswith("null"):
                    return {"spec", "status", *(f"metadata.{name}" for name in NAMESPACE_METADATA)}
    return fields
