"""The fact `dra`: device claims of an object, resolved to what they ask for, and how containers refer to them.

For a pod or anything with pod templates: every `spec.resourceClaims[]` entry, looked up as ResourceClaim or
ResourceClaimTemplate in the object's namespace, and every `resources.claims[]` entry. For a ResourceClaim or
ResourceClaimTemplate: its own requests and constraints; for a DeviceClass its selectors. Rules and defaults:
k8s.io/kubernetes v1.36 pkg/apis/core/validation/validation.go and pkg/apis/resource; which devices a class has is
guessed by its name only.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from webhook import paths
from webhook.attributes import JSON, GroupVersionKind
from webhook.cluster.interest import reading
from webhook.facts import devices
from webhook.facts.claims import notes
from webhook.facts.configs import configs
from webhook.facts.containers import Container, containers, items, text
from webhook.facts.nearest import nearest
from webhook.facts.requests import constraints, requests, selectors, version_of
from webhook.facts.resolved import CLASS, Classes, resolved
from webhook.facts.view import NAMESPACE, NAMESPACES, View
from webhook.paths import FieldPath
from webhook.workloads.podsets import PodSet, group_kind

GROUP = "resource.k8s.io"
CLAIM = GroupVersionKind(GROUP, "v1", "ResourceClaim")
TEMPLATE = GroupVersionKind(GROUP, "v1", "ResourceClaimTemplate")
DOMAIN = GroupVersionKind("resource.nvidia.com", "v1beta1", "ComputeDomain")
LOOKUPS = (
    reading(CLAIM, "spec.devices.requests"),
    reading(TEMPLATE, "spec.spec.devices.requests"),
    reading(CLASS, "spec.extendedResourceName"),
    reading(DOMAIN, "spec.channel.resourceClaimTemplate.name"),
    NAMESPACES,
)
_DEFAULT = "default"
IMPLICIT = "deviceclass.resource.kubernetes.io/"

_SPEC: dict[str, FieldPath] = {"ResourceClaim": ("spec",), "ResourceClaimTemplate": ("spec", "spec")}
_NOTED = {GROUP: (*_SPEC, "DeviceClass", "DeviceTaintRule"), "scheduling.k8s.io": ("PodGroup", "Workload")}


def dra(obj: JSON, podsets: Sequence[PodSet], view: View) -> JSON:
    """The fact of one object, whose pod sets these are."""
    classes = Classes(view)
    claims: list[JSON] = []
    references: list[JSON] = []
    doubled: list[JSON] = []
    implicit: list[JSON] = []
    for podset in podsets:
        own = [
            _claim(entry, (*_CLAIMS, index), podset, view, classes)
            for index, entry in enumerate(items(paths.get(podset.template, _CLAIMS)))
            if isinstance(entry, dict)
        ]
        listed = tuple(containers(podset.template))
        used = [reference for each in listed for reference in _references(each, podset, own)]
        for claim in own:
            claim["users"] = [each["path"] for each in used if each["name"] == claim["name"]]
        _mark_duplicates(own)
        claims.extend(own)
        references.extend(used)
        doubled.extend(_doubled(listed, podset, own))
        implicit.extend(_implicit(listed, podset, classes))
    group, kind = group_kind(obj)
    at = _SPEC.get(kind, ()) if group == GROUP else ()
    spec = paths.get(obj, at) if at else None
    asked = requests(spec, at, version_of(obj)) if at else []
    if asked:  # what a request asks for stands in it, whether its class is known or not
        Classes(replace(view, missing=[])).mark(asked)
    return {
        "claims": claims,
        "references": references,
        "doubled": doubled,
        "implicit": implicit,
        "requests": asked,
        "constraints": constraints(spec, at) if at else [],
        "selectors": selectors(obj.get("spec"), ("spec",)) if (group, kind) == (GROUP, CLASS.kind) else [],
        "notes": notes(obj, kind, version_of(obj), at, asked) if kind in _NOTED.get(group, ()) else [],
        "configs": _configs(obj, at, asked) if group == GROUP and (at or kind == CLASS.kind) else [],
        "adminAllowed": _admin_allowed(view) if any(each["adminAccess"] for each in (*claims, *asked)) else None,
        "missing": view.missing,
    }


def _admin_allowed(view: View) -> bool | None:
    """Whether the namespace allows admin access by its label; None where nobody has seen the namespace.

    k8s.io/kubernetes v1.36 pkg/registry/resource/utils.go AuthorizedForAdmin.
    """
    name = view.namespace or _DEFAULT
    found = [each for each in view.objects(NAMESPACE) if paths.get(each, ("metadata", "name")) == name]
    if not found:
        view.note(f"{NAMESPACE.kind} {name} not found")
        return None
    return bool(paths.get(found[0], ("metadata", "labels", "resource.kubernetes.io/admin-access")) == "true")


def _configs(obj: JSON, at: FieldPath, asked: Sequence[JSON]) -> list[JSON]:
    where = (*at, "devices") if at else ("spec",)
    return configs(paths.get(obj, where), where, asked)


_CLAIMS: FieldPath = ("spec", "resourceClaims")


def _claim(entry: JSON, path: FieldPath, podset: PodSet, view: View, classes: Classes) -> JSON:
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
    if source in ("claim", "template") and view.namespace:  # a cluster-scoped runtime is used from many namespaces
        _resolve(made, CLAIM if source == "claim" else TEMPLATE, view, classes)
    return made


def _resolve(made: JSON, gvk: GroupVersionKind, view: View, classes: Classes) -> None:
    """Fill in what the claim or template that an entry names asks for."""
    found = view.get(gvk, made["reference"])
    if found is None:
        made |= _absence(gvk, made["reference"], view)
        return
    made |= resolved(found, _SPEC[gvk.kind], classes)


def _absence(gvk: GroupVersionKind, name: str, view: View) -> JSON:
    """What can be said of an object that is not there.

    It is known to be absent from a whole cluster; from files only where they have others of its kind in the namespace,
    or that name in another one. A ComputeDomain promises the template that it names; its controller makes it.
    """
    here = view.namespace or _DEFAULT
    others = [_place(found) for found in view.objects(gvk)]
    near = nearest(name, (other for namespace, other in others if namespace == here))
    promised = gvk == TEMPLATE and any(
        paths.get(domain, ("spec", "channel", "resourceClaimTemplate", "name")) == name and _place(domain)[0] == here
        for domain in view.objects(DOMAIN)
    )
    elsewhere = sorted({namespace for namespace, other in others if other == name})
    is_known = any(namespace == here for namespace, _ in others) or bool(elsewhere) or view.is_whole()
    return {
        "absent": is_known and not promised,
        "promised": promised,
        "nearest": near,
        "elsewhere": elsewhere[:3],
    }


def _place(found: JSON) -> tuple[str, str]:
    """Namespace and name of an object; a file may leave the namespace out, which kubectl takes for `default`."""
    namespace, name = (text(paths.get(found, ("metadata", key))) for key in ("namespace", "name"))
    return namespace or _DEFAULT, name


def _mark_duplicates(own: Sequence[JSON]) -> None:
    """Say of every claim whether an earlier one of the template has its name."""
    seen: set[str] = set()
    for claim in own:
        claim["duplicate"] = claim["name"] in seen
        seen.add(claim["name"])


def _references(container: Container, podset: PodSet, own: Sequence[JSON]) -> Iterator[JSON]:
    taken: list[tuple[str, str]] = []
    for index, entry in enumerate(container.claims()):
        if not isinstance(entry, dict):
            continue
        name, request = text(entry.get("name")), text(entry.get("request"))
        claim = next((each for each in own if each["name"] == name), None)
        is_known = claim is not None and claim["found"]
        yield {
            "podSet": podset.name,
            "container": container.name,
            "path": paths.render((*podset.locate(container.path), "resources", "claims", index)),
            "name": name,
            "request": request,
            "declared": claim is not None,
            "resolved": is_known,
            "requestFound": bool(is_known and claim and (not request or request in claim["requestNames"])),
            "duplicate": any(name == other and (request == part or "" in (request, part)) for other, part in taken),
            "nearestRequest": nearest(request, claim["requestNames"]) if is_known and claim and request else "",
        }
        taken.append((name, request))


def _doubled(listed: Sequence[Container], podset: PodSet, own: Sequence[JSON]) -> Iterator[JSON]:
    """Containers that ask for the same vendor's GPUs twice: by a claim and as an extended resource.

    NICs and ComputeDomain channels beside a GPU are how multi-node jobs are meant to be written.
    """
    by_name = {claim["name"]: claim for claim in own if claim["gpu"]}
    for container in listed if by_name else ():
        claimed = [
            by_name[text(e.get("name"))]
            for e in container.claims()
            if isinstance(e, dict) and text(e.get("name")) in by_name
        ]
        asked = container.amounts("requests") | container.amounts("limits")
        for claim in claimed:
            for name in asked:
                if _same_devices(name, claim):
                    yield {
                        "podSet": podset.name,
                        "path": paths.render(podset.locate(container.path)),
                        "container": container.name,
                        "claim": claim["name"],
                        "resource": name,
                    }


def _same_devices(name: str, claim: JSON) -> bool:
    known = devices.resource(name)
    asked = [each for request in claim["requests"] for each in (request, *request["choices"]) if each["gpu"]]
    return any(
        each["extendedResource"] == name or (known.kind in devices.COUNTED and known.vendor == each["vendor"] != "")
        for each in asked
    )


def _implicit(listed: Sequence[Container], podset: PodSet, classes: Classes) -> Iterator[JSON]:
    """Extended resources that name a DeviceClass (KEP-5004), which the API server checks for nothing."""
    for container in listed:
        limits, asked = container.amounts("limits"), container.amounts("requests")
        for name in limits | asked:
            if name.startswith(IMPLICIT):
                device_class = name.removeprefix(IMPLICIT)
                side = "limits" if name in limits else "requests"
                yield {
                    "podSet": podset.name,
                    "path": paths.render((*podset.locate(container.path), "resources", side, name)),
                    "name": name,
                    "deviceClass": device_class,
                    "limit": str(limits[name]) if name in limits else None,
                    "request": str(asked[name]) if name in asked else None,
                    **classes.state(device_class),
                }
