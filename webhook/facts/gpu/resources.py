"""Which devices the containers of an object request, as extended resources.

Amounts of device memory or cores are kept apart and never added up as devices. What a pod asks of the scheduler follows
k8s.io/component-helpers resource.PodRequests: the sum of containers and sidecars, or one init container with the
sidecars before it, whichever is more. Device claims are the fact `dra`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache

from webhook import paths, quantity
from webhook.attributes import JSON
from webhook.deadline import Deadline
from webhook.facts.gpu import devices
from webhook.facts.pods.containers import Container, containers, items, names, text
from webhook.workloads.podsets import Fragment, PodSet
from webhook.workloads.resource_fields import ResourceField

_VISIBLE = "NVIDIA_VISIBLE_DEVICES"


def gpu(
    podsets: Sequence[PodSet],
    fragments: Sequence[Fragment] = (),
    fields: Sequence[ResourceField] = (),
    deadline: Deadline | None = None,
) -> JSON:
    """The fact `gpu` of an object with these pod sets, and with fields outside its templates that ask for devices.

    What partial templates say is kept apart, in `patches`.
    """
    until = deadline or Deadline()
    sets, described, vendors = [], [], dict[str, int]()
    for podset, own in _pods(podsets, fields, until):
        described.extend(own)
        sets.append(_podset(podset, own))
        for vendor, count in sets[-1]["vendors"].items():
            vendors[vendor] = vendors.get(vendor, 0) + count * (1 if podset.pods is None else podset.pods)
    patched = [PodSet(name=each.of, path=each.path, template=each.template, bare=each.bare) for each in fragments]
    return {
        "containers": described,
        "patches": [each for podset in until.paced(patched) for each in _containers(podset, until)],
        "podSets": sets,
        "vendors": vendors,
        "devices": None if any(each["total"] is None for each in sets) else sum(each["total"] for each in sets),
    }


def _pods(
    podsets: Sequence[PodSet], fields: Sequence[ResourceField], deadline: Deadline
) -> Iterator[tuple[PodSet, list[JSON]]]:
    """Each pod set with its containers, and those that have fields alone and no template."""
    outside: dict[str, list[tuple[PodSet, JSON]]] = {}
    for each in deadline.paced(fields):
        if each.podset and (each.resources or not each.is_device):
            outside.setdefault(each.podset, []).append(_outside(each))
    for podset in deadline.paced(podsets):
        own = _containers(podset, deadline)
        yield podset, [*own, *(container for _, container in outside[podset.name])] if podset.name in outside else own
    if not outside:
        return
    known = {podset.name for podset in podsets}
    for name, listed in outside.items():
        yield from ((podset, [container]) for podset, container in listed if name not in known)


def _containers(podset: PodSet, deadline: Deadline) -> list[JSON]:
    return [_container(each, podset, deadline) for each in deadline.paced([*containers(podset.template)])]


def _outside(field: ResourceField) -> tuple[PodSet, JSON]:
    """A pod set of one container with resources that stand outside a template."""
    path = field.path if field.is_device else field.path[:-1]
    made = PodSet(name=field.podset, path=path, template={}, count=field.count, elsewhere=True)
    value = {"name": field.container, "resources": field.resources}
    container = _container(Container((), value, init=False), made, Deadline())
    if field.is_device:
        container["resources"] = [{**each, "path": container["path"]} for each in container["resources"]]
    return made, container


def _podset(podset: PodSet, own: Sequence[JSON]) -> JSON:
    vendors = {vendor: _per_pod(own, vendor) for vendor in {name for each in own for name in each["vendors"]}}
    per_pod = sum(vendors.values())
    runtime_class = text(paths.get(podset.template, ("spec", "runtimeClassName")))
    return {
        "name": podset.name,
        "path": paths.render(podset.path),
        "pods": podset.pods,
        "devices": per_pod,
        "total": None if per_pod and podset.pods is None else per_pod * (podset.pods or 0),
        "vendors": vendors,
        "kinds": sorted({each["kind"] for container in own for each in container["resources"] if each["kind"]}),
        "runtimeClass": runtime_class,
        "gpuRuntime": runtime_class in devices.catalogue().runtime_classes,
    }


def _per_pod(own: Sequence[JSON], vendor: str) -> int:
    """Devices of one vendor that one pod asks for: PodRequests of component-helpers."""
    running: int = sum(each["vendors"].get(vendor, 0) for each in own if not each["init"] or each["restarts"])
    sidecars, highest = 0, 0
    for each in own:
        if each["init"]:
            count = each["vendors"].get(vendor, 0)
            highest = max(highest, count + sidecars)
            sidecars += count if each["restarts"] else 0
    return max(running, highest)


def _container(container: Container, podset: PodSet, deadline: Deadline) -> JSON:
    limits, requests = container.amounts("limits"), container.amounts("requests")
    at = paths.render(podset.locate(container.path))
    resources = [
        _resource(name, limits, requests, at) for name in deadline.paced(limits | requests) if _is_interesting(name)
    ]
    vendors: dict[str, int] = {}
    for each in resources:
        if each["kind"] in devices.COUNTED:
            vendors[each["vendor"]] = vendors.get(each["vendor"], 0) + each["count"]
    return {
        "podSet": podset.name,
        "path": at,
        "name": container.name,
        "init": container.init,
        "restarts": container.restarts,
        "resources": resources,
        "vendors": vendors,
        "devices": sum(vendors.values()),
        "gpuImage": devices.is_gpu_image(text(container.value.get("image"))),
        "visibleDevices": _visible(container.value),
        "claims": len(container.claims()),
    }


def concerns_devices(pod: JSON, deadline: Deadline) -> bool:
    """Whether a pod requests any device, or has anything by which its containers would see GPUs."""
    spec = pod.get("spec") or {}
    if spec.get("runtimeClassName") in devices.catalogue().runtime_classes:
        return True
    for each in deadline.each([*containers(pod)]):
        value = each.value
        if devices.is_gpu_image(text(value.get("image"))) or _visible(value):
            return True
        resources = value.get("resources") or {}
        for side in ("limits", "requests"):
            if any(map(_is_interesting, deadline.each(resources.get(side) or {}))):
                return True
    return False


def _is_interesting(name: str) -> bool:
    """A known device, or a qualified name that is near one."""
    return bool(devices.resource(name).kind) or ("/" in name and bool(devices.nearest(name)))


def _resource(name: str, limits: JSON, requests: JSON, at: str) -> JSON:
    known = devices.resource(name)
    limit, request = limits.get(name), requests.get(name)
    amount = quantity.read(request if limit is None else limit)
    return {
        "name": name,
        "path": at + _below("requests" if limit is None else "limits", name),
        "vendor": known.vendor,
        "kind": known.kind,
        "gpu": known.gpu,
        "limit": None if limit is None else str(limit),
        "request": None if request is None else str(request),
        "count": max(0, amount.value()) if amount is not None and amount.is_whole() else 0,
        "whole": amount is not None and amount.is_whole() and amount.sign() >= 0,
        "equal": limit is None or request is None or limit == request or quantity.read(limit) == quantity.read(request),
        "nearest": "" if known.kind else devices.nearest(name),
    }


@lru_cache(maxsize=1024)
def _below(side: str, name: str) -> str:
    """The path of one amount below its container."""
    return "." + paths.render(("resources", side, name))


def devices_of(resources: JSON) -> int:
    """GPUs and parts of them that the resources of one container ask for, by any vendor's name."""
    asked: dict[str, JSON] = {}
    for side in ("requests", "limits"):
        amounts = paths.get(resources, (side,))
        asked |= amounts if isinstance(amounts, dict) else {}
    known = ((devices.resource(name), amount) for name, amount in asked.items())
    counted = (amount for device, amount in known if device.gpu and device.kind in devices.COUNTED)
    amounts = [amount for each in counted if (amount := quantity.read(each)) is not None]
    return sum(amount.value() for amount in amounts if amount.is_whole() and amount.sign() > 0)


def _visible(container: JSON) -> str:
    """The value of NVIDIA_VISIBLE_DEVICES, "" where it is not set to a plain text."""
    env = items(container.get("env"))
    known = names(env)
    return text(env[known.index(_VISIBLE)].get("value")) if _VISIBLE in known else ""
