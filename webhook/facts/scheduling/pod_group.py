"""Whether the claims of pods are those that their pod group shares (KEP-5729).

A pod joins a PodGroup by `spec.schedulingGroup.podGroupName`; a claim of its own is the group's only when name and
source are equal, otherwise it is made for each pod, and nobody says so (k8s.io/api v0.36.1 scheduling/v1alpha2
types.go PodGroupSpec.resourceClaims).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from webhook import paths
from webhook.attributes import JSON, GroupVersionKind
from webhook.cluster.interest import reading
from webhook.deadline import Deadline
from webhook.facts.pods.containers import items, text
from webhook.facts.view import View
from webhook.placeholders import is_placeholder
from webhook.workloads.podsets import PodSet

GROUP = GroupVersionKind("scheduling.k8s.io", "v1alpha2", "PodGroup")
LOOKUP = reading(GROUP, "spec.resourceClaims")
_FIELDS = {"resourceClaimName": "ResourceClaim", "resourceClaimTemplateName": "ResourceClaimTemplate"}


def pod_group(podsets: Sequence[PodSet], view: View) -> JSON:
    """The fact `podGroup` of one object, whose pod sets these are."""
    groups: list[JSON] = []
    claims: list[JSON] = []
    for podset in view.deadline.paced(podsets):
        spec = paths.get(podset.template, ("spec",))
        name = text(paths.get(spec, ("schedulingGroup", "podGroupName")))
        if not name or is_placeholder(name):
            continue
        group_object = view.get(GROUP, name)
        where = paths.render(podset.locate(("spec", "schedulingGroup", "podGroupName")))
        groups.append({"podSet": podset.name, "path": where, "name": name, "found": group_object is not None})
        claims.extend(_other(podset, spec, name, group_object, view.deadline))
    return {"groups": groups, "others": claims}


def _other(podset: PodSet, spec: JSON, group: str, group_object: JSON, deadline: Deadline) -> Iterator[JSON]:
    """The claims of a pod that are nearly those of its group."""
    shared = [each for each in items(paths.get(group_object, ("spec", "resourceClaims"))) if isinstance(each, dict)]
    same = {_said(each, "name", *_FIELDS) for each in deadline.paced(shared)}
    named, sourced = _first(shared, "name"), _first(shared, *_FIELDS)
    for index, claim in enumerate(deadline.paced(items(spec.get("resourceClaims")))):
        if not isinstance(claim, dict) or _said(claim, "name", *_FIELDS) in same:
            continue
        if nearly := named.get(_said(claim, "name")) or sourced.get(_said(claim, *_FIELDS)):
            yield {
                "path": paths.render(podset.locate(("spec", "resourceClaims", index))),
                "group": group,
                "name": text(claim.get("name")),
                "source": _source(claim),
                "groupName": text(nearly.get("name")),
                "groupSource": _source(nearly),
            }


def _first(claims: Sequence[JSON], *fields: str) -> dict[tuple[str, ...], JSON]:
    """The first claim that says so in these fields."""
    return {_said(each, *fields): each for each in reversed(claims)}


def _said(claim: JSON, *fields: str) -> tuple[str, ...]:
    return tuple(text(claim.get(each)) for each in fields)


def _source(claim: JSON) -> str:
    return next((f"{kind} `{claim[field]}`" for field, kind in _FIELDS.items() if text(claim.get(field))), "no source")
