"""Finds policies that fail because another policy registers the webhook for a version that cannot be converted.

An API server sends an object unchanged if any rule of the webhook names its version, and converts it otherwise: so two
policies with different versions of one kind apply to both versions. Source: k8s.io/apiserver v0.36
pkg/admission/plugin/webhook/generic/webhook.go.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from webhook.apimachinery.attributes import Attributes, GroupVersionKind, GroupVersionResource, Operation
from webhook.manifests.label_selectors import EVERYTHING
from webhook.policy.compiled import Policy
from webhook.policy.matching import ResourceRule, match_request
from webhook.policy.policy_set import PolicySet


def unconvertible_resources(policy: Policy, loaded: PolicySet) -> Iterator[str]:
    """Yield a sentence for each version that reaches the webhook but cannot be converted to the version that a policy
    names.
    """
    criteria = replace(policy.criteria, namespaces=EVERYTHING, objects=EVERYTHING)
    told: set[GroupVersionResource] = set()
    for other in loaded.policies:
        for attributes in _requests_that_policy_names(other):
            if attributes.resource in told or not _may_be_served(attributes.resource, loaded):
                continue
            match = match_request(criteria, attributes, dict, loaded.equivalents)
            if match is not None and match.conversion == "impossible":
                told.add(attributes.resource)
                yield _sentence_about_version(other, attributes.resource, match.resource.version)


def _sentence_about_version(other: Policy, sent: GroupVersionResource, wanted: str) -> str:
    name = f"{sent.resource}.{sent.group}" if sent.group else sent.resource
    asked = f"because of policy {other.name}, API servers send {name} in version {sent.version}"
    return f"{asked}, which claimgate cannot convert to {wanted}: also name {sent.version} in matchConstraints"


def _may_be_served(resource: GroupVersionResource, loaded: PolicySet) -> bool:
    """Return whether a resource may have this version; a rule may name versions that only some of its resources
    have.
    """
    equal = loaded.equivalents
    return resource in equal.others or (resource.group, resource.resource) not in equal.groups


def _requests_that_policy_names(policy: Policy) -> Iterator[Attributes]:
    """Yield a request for each group, version and resource that a policy names in full."""
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
