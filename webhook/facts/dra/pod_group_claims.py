"""Whether the claims of a pod are those that its pod group shares (KEP-5729).

A pod joins a PodGroup by `spec.schedulingGroup.podGroupName`; a claim of its own is the group's only when name and
source are equal, otherwise it is made for each pod, and nobody says so (k8s.io/api v0.36.1 scheduling/v1alpha2
types.go PodGroupSpec.resourceClaims).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from webhook.attributes import JSON, GroupVersionKind
from webhook.cluster.interest import reading
from webhook.facts.dra.pod_claim_validation import problem
from webhook.facts.subject import Subject
from webhook.facts.values import items, text
from webhook.paths import get, render
from webhook.placeholders import is_placeholder
from webhook.problem import Problem

GROUP: Final = GroupVersionKind("scheduling.k8s.io", "v1alpha2", "PodGroup")
LOOKUP: Final = reading(GROUP, "spec.resourceClaims")
_FIELDS: Final = {"resourceClaimName": "ResourceClaim", "resourceClaimTemplateName": "ResourceClaimTemplate"}
_NAMED: Final = ("spec", "schedulingGroup", "podGroupName")


def validate_pod_group_claims(subject: Subject) -> Iterator[Problem]:
    """The claims of a pod that have the name or the source of one of the group's, and not both."""
    name = text(get(subject.object, _NAMED))
    if not name or is_placeholder(name):
        return
    view = subject.view()
    group = view.get(GROUP, name)
    if group is None:
        yield Problem(code="device-claims/pod-group", path=render(_NAMED), missing=view.missing()[""])
        return
    shared = [each for each in items(get(group, ("spec", "resourceClaims"))) if isinstance(each, dict)]
    same = {_said(each, "name", *_FIELDS) for each in subject.deadline.each(shared)}
    named, sourced = _first(shared, "name"), _first(shared, *_FIELDS)
    for index, claim in enumerate(subject.deadline.each(items(get(subject.object, ("spec", "resourceClaims"))))):
        if isinstance(claim, dict) and _said(claim, "name", *_FIELDS) not in same:
            nearly = named.get(_said(claim, "name")) or sourced.get(_said(claim, *_FIELDS))
            if nearly:
                yield _of_its_own(claim, nearly, name, f"spec.resourceClaims[{index}]")


def _of_its_own(claim: JSON, nearly: JSON, group: str, path: str) -> Problem:
    own, shared = text(claim.get("name")), text(nearly.get("name"))
    if own == shared:
        differs = f"claim `{own}` uses {_source(claim)}, but claim `{own}` of PodGroup `{group}` uses {_source(nearly)}"
    else:
        differs = f"claim `{own}` uses {_source(claim)}, but in PodGroup `{group}` that claim is called `{shared}`"
    message = f"{differs}, so the pod gets its own devices, not those of the group"
    return problem(
        "pod-group", path, message, "write the name and the source as in the PodGroup, or give the claim another name"
    )


def _first(claims: Sequence[JSON], *fields: str) -> dict[tuple[str, ...], JSON]:
    """The first claim that says so in these fields."""
    return {_said(each, *fields): each for each in reversed(claims)}


def _said(claim: JSON, *fields: str) -> tuple[str, ...]:
    return tuple(text(claim.get(each)) for each in fields)


def _source(claim: JSON) -> str:
    return next(
        (f"{kind} `{claim[field]}`" for field, kind in _FIELDS.items() if text(claim.get(field))), "no ResourceClaim"
    )
