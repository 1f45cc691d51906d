"""Device claims of an object, resolved to what they ask for, and how containers refer to them.

For a pod or anything with pod templates: every `spec.resourceClaims[]` entry, looked up as ResourceClaim or
ResourceClaimTemplate in the object's namespace, and every `resources.claims[]` entry. For a ResourceClaim or
ResourceClaimTemplate: its own requests and constraints; for a DeviceClass its selectors. Rules and defaults:
k8s.io/kubernetes v1.36 pkg/apis/core/validation/validation.go and pkg/apis/resource; which devices a class has is
guessed by its name only.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from webhook import paths
from webhook.attributes import JSON, NAMESPACE, GroupVersionKind
from webhook.cluster.interest import reading
from webhook.facts.dra.absent_claims import DEFAULT, DOMAINS, Absences
from webhook.facts.dra.requests import requests, version_of
from webhook.facts.dra.resolved import CLASS, Classes, resolved
from webhook.facts.pods.containers import Container, containers
from webhook.facts.values import items, text
from webhook.facts.view import NAMESPACES, View
from webhook.paths import FieldPath
from webhook.problem import MissingObject
from webhook.workloads.podsets import PodSet, group_kind

GROUP = "resource.k8s.io"
CLAIM = GroupVersionKind(GROUP, "v1", "ResourceClaim")
TEMPLATE = GroupVersionKind(GROUP, "v1", "ResourceClaimTemplate")
LOOKUPS = (
    reading(CLAIM, "spec.devices.requests"),
    reading(TEMPLATE, "spec.spec.devices.requests"),
    reading(CLASS, "spec.extendedResourceName"),
    DOMAINS,
    NAMESPACES,
)

SPECS: dict[str, FieldPath] = {"ResourceClaim": ("spec",), "ResourceClaimTemplate": ("spec", "spec")}


def dra(obj: JSON, podsets: Sequence[PodSet], view: View) -> JSON:
    """The fact `dra` of one object, whose pod sets these are."""
    known = Known(view)
    claims: list[JSON] = []
    references: list[JSON] = []
    for podset in view.deadline.paced(podsets):
        entries = items(paths.get(podset.template, _CLAIMS))
        listed = [each for each in containers(podset.template, view.deadline.each) if each.claims()]
        if not entries and not listed:  # as most
            continue
        own = [
            _claim(entry, (*_CLAIMS, index), podset, known)
            for index, entry in enumerate(view.deadline.each(entries))
            if isinstance(entry, dict)
        ]
        first = _mark_duplicates(own)
        used = [reference for each in listed for reference in _references(each, podset, first, view)]
        _note_users(own, used)
        claims.extend(own)
        references.extend(used)
    group, kind = group_kind(obj)
    at = SPECS.get(kind, ()) if group == GROUP else ()
    spec = paths.get(obj, at) if at else None
    asked = requests(spec, at, version_of(obj), view.deadline) if at else []
    if asked:  # what a request asks for stands in it, whether its class is known or not
        Classes(view.unnoted()).mark(asked)
    return {"claims": claims, "references": references, "requests": asked}


def admin_allowed(view: View) -> bool | None:
    """Whether the namespace allows admin access by its label; None where nobody has seen the namespace.

    k8s.io/kubernetes v1.36 pkg/registry/resource/utils.go AuthorizedForAdmin.
    """
    name = view.namespace or DEFAULT
    listed = view.deadline.paced(view.objects(NAMESPACE))
    namespace = next((each for each in listed if paths.get(each, ("metadata", "name")) == name), None)
    if namespace is None:
        view.note(MissingObject(kind=NAMESPACE.kind, name=name))
        return None
    return bool(paths.get(namespace, ("metadata", "labels", "resource.kubernetes.io/admin-access")) == "true")


_CLAIMS: FieldPath = ("spec", "resourceClaims")


class Known:
    """What claims are resolved against: the view, its classes, and what it has of what is not there."""

    def __init__(self, view: View) -> None:
        self.view = view.of("claims", "references")
        self.classes = Classes(view.of("claims"))
        self.absences = Absences(view)


def _claim(entry: JSON, path: FieldPath, podset: PodSet, known: Known) -> JSON:
    at = podset.locate(path)
    by_claim, by_template = text(entry.get("resourceClaimName")), text(entry.get("resourceClaimTemplateName"))
    source = "both" if by_claim and by_template else "claim" if by_claim else "template" if by_template else "none"
    made: JSON = {
        "podSet": podset.name,
        "pods": podset.pods,
        "path": paths.render(at),
        "name": text(entry.get("name")),
        "source": "old" if source == "none" and isinstance(entry.get("source"), dict) else source,
        "reference": by_claim or by_template,
        "kind": {"claim": CLAIM.kind, "template": TEMPLATE.kind}.get(source, ""),
        "found": False,
        "absent": False,
        "promised": False,
        "nearest": "",
        "elsewhere": [],
        "requests": [],
        "requestNames": [],
        "devices": None,
        "atLeast": 0,
        "gpu": False,
        "adminAccess": False,
        "users": [],
        "duplicate": False,
    }
    if source in ("claim", "template") and known.view.namespace:  # a cluster-scoped runtime is used from many of them
        _resolve(made, CLAIM if source == "claim" else TEMPLATE, known)
    return made


def _resolve(made: JSON, gvk: GroupVersionKind, known: Known) -> None:
    """Fill in what the claim or template that an entry names asks for."""
    obj = known.view.unnoted().get(gvk, made["reference"])
    if obj is not None:
        made |= resolved(obj, SPECS[gvk.kind], known.classes, known.view)
        return
    made |= known.absences.of(gvk, made["reference"], is_made=gvk == TEMPLATE)
    if not made["promised"]:
        known.view.get(gvk, made["reference"])  # notes it as missing


def _mark_duplicates(own: Sequence[JSON]) -> dict[str, JSON]:
    """Say of every claim whether an earlier one of the template has its name; the first claim of each name."""
    first: dict[str, JSON] = {}
    for claim in own:
        claim["duplicate"] = first.setdefault(claim["name"], claim) is not claim
    return first


def _note_users(own: Sequence[JSON], used: Sequence[JSON]) -> None:
    """Say of every claim where containers refer to it; claims of one name share the list."""
    users: dict[str, list[str]] = {}
    for each in used:
        users.setdefault(each["name"], []).append(each["path"])
    for claim in own:
        claim["users"] = users.get(claim["name"], [])


def _references(container: Container, podset: PodSet, first: Mapping[str, JSON], view: View) -> Iterator[JSON]:
    taken: dict[str, set[str]] = {}
    for index, entry in enumerate(view.deadline.paced(container.claims())):
        if not isinstance(entry, dict):
            continue
        name, request = text(entry.get("name")), text(entry.get("request"))
        claim = first.get(name)
        is_known = claim is not None and claim["found"]
        before = taken.setdefault(name, set())
        yield {
            "podSet": podset.name,
            "container": container.name,
            "path": paths.render((*podset.locate(container.path), "resources", "claims", index)),
            "name": name,
            "request": request,
            "declared": claim is not None,
            "resolved": is_known,
            "requestFound": bool(is_known and claim and (not request or request in claim["requestNames"])),
            "duplicate": bool(before) and (request == "" or not before.isdisjoint((request, ""))),
            "nearestRequest": view.nearest(request, claim["requestNames"]) if is_known and claim and request else "",
        }
        before.add(request)
