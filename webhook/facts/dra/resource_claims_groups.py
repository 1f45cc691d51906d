"""Checks the claims of a PodGroup or a Workload: resource-claims.

Source: k8s.io/kubernetes v1.36.1 pkg/apis/scheduling/v1alpha2/zz_generated.validations.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from webhook.facts.dra.claim_values import shape_breaches
from webhook.facts.dra.groups import RESOURCE_CLAIMS
from webhook.facts.dra.resource_claims import problems_of_breaches
from webhook.facts.dra.types import PodGroup, PodGroupSpec, Workload
from webhook.facts.subject import Subject
from webhook.problem import Problem

GROUP_SOURCE: Final = RESOURCE_CLAIMS.rule(
    "resource-claims/group-source",
    title="A claim of a pod group has one source.",
    why="It is either one claim for all, or made from a template.",
    source="k8s.io/kubernetes v1.36.1 pkg/apis/scheduling/v1alpha2/zz_generated.validations.go",
)


def validate_pod_group(subject: Subject) -> Iterator[Problem]:
    """Yield the problems of the claims of a PodGroup."""
    group = subject.typed(PodGroup)
    yield from problems_of_breaches(shape_breaches(group))
    yield from _check_single_claim_source([group.spec])


def validate_workload(subject: Subject) -> Iterator[Problem]:
    """Yield the problems of the claims of a Workload's PodGroup templates."""
    workload = subject.typed(Workload)
    yield from problems_of_breaches(shape_breaches(workload))
    yield from _check_single_claim_source(workload.spec.pod_group_templates)


def _check_single_claim_source(groups: Iterable[PodGroupSpec]) -> Iterator[Problem]:
    """Yield claims with no source, or with two."""
    for group in groups:
        for claim in group.resource_claims:
            if claim.has("resourceClaimName") == claim.has("resourceClaimTemplateName"):
                message, fix = "must have a source", "set one of resourceClaimName and resourceClaimTemplateName"
                if claim.has("resourceClaimName"):
                    message = "must not have two sources"
                    fix = "keep one of resourceClaimName and resourceClaimTemplateName"
                yield GROUP_SOURCE.problem(claim.at, message, fix)
