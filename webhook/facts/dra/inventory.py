"""Which devices of the cluster the selectors of a claim, a template or a class take.

Asks every device of every ResourceSlice as the scheduler does, class first, then the request; what is allocated, what
is tainted and which node has it play no part. A view without ResourceSlices knows no devices, and nothing is said of a
class that it lacks. Rules: k8s.io/dynamic-resource-allocation v0.36.1
structured/internal/experimental/allocator_experimental.go isSelectable, selectorsMatch: an error ends the allocation.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from webhook.attributes import JSON, GroupVersionKind
from webhook.cel import Meter, Program
from webhook.cluster.interest import reading
from webhook.deadline import Deadline
from webhook.errors import CompileError, EvaluationError
from webhook.facts.dra.device_matching import seen
from webhook.facts.dra.requests import requests, version_of
from webhook.facts.dra.selectors import MOST_COST, compiled
from webhook.facts.pods.containers import items, text
from webhook.facts.view import View
from webhook.paths import FieldPath, get
from webhook.workloads.podsets import group_kind

SLICE = GroupVersionKind("resource.k8s.io", "v1", "ResourceSlice")
_CLASS = GroupVersionKind("resource.k8s.io", "v1", "DeviceClass")
LOOKUPS = (
    reading(SLICE, "spec.driver", "spec.pool", "spec.devices"),
    reading(_CLASS, "spec.selectors"),
)
_SPECS: Mapping[str, FieldPath] = {
    "ResourceClaim": ("spec",),
    "ResourceClaimTemplate": ("spec", "spec"),
    "DeviceClass": (),
}
_MOST = 20_000  # evaluations: about half a second, and more devices than a claim is written for without a look
_SHOWN = 3


@dataclass(slots=True)
class _Asked:
    """What one request, alternative or class finds; `failures` are texts with the device that made each."""

    classed: int = 0
    selected: int = 0
    shared: bool = False
    failures: dict[str, str] = field(default_factory=dict)


def inventory(obj: JSON, view: View) -> JSON:
    """The fact `inventory` of a claim, a template or a class; of anything else it is empty."""
    group, kind = group_kind(obj)
    devices = [*_devices(view)] if group == SLICE.group and kind in _SPECS else []
    known = {text(get(each, ("metadata", "name"))): each for each in reversed(view.objects(_CLASS))} if devices else {}
    asked = [_entry(each, devices, known, view.deadline) for each in _asked(obj, _SPECS[kind], view)] if devices else []
    return {"devices": len(devices), "requests": asked}


def _asked(obj: JSON, at: FieldPath, view: View) -> Iterator[JSON]:
    if not at:
        yield {"path": "spec.selectors", "deviceClass": "", "expressions": _expressions(obj), "name": "", "of": ""}
        return
    for request in requests(get(obj, at), at, version_of(obj), view.deadline):
        for each in (request, *request["choices"]):
            if each["kind"] in ("exactly", "choice"):
                expressions = [selector["expression"] for selector in each["selectors"]]
                yield {**each, "expressions": expressions, "of": request["name"] if each is not request else ""}


def _entry(asked: JSON, devices: Sequence[tuple[str, JSON]], known: Mapping[str, JSON], deadline: Deadline) -> JSON:
    """One request with what it finds: null where a class is not known, a selector is none, the cluster is too large."""
    programs, of_class = _programs(asked, known, deadline)
    made = None
    if programs is not None and len(programs) * len(devices) <= _MOST:
        made = _find(programs, of_class, devices, deadline)
    failures = [*made.failures.items()][:_SHOWN] if made else []
    return {
        "path": asked["path"],
        "name": asked["name"],
        "of": asked["of"],
        "deviceClass": asked["deviceClass"],
        "wanted": asked.get("devices"),
        "classed": made.classed if made else None,
        "selected": made.selected if made else None,
        "shared": bool(made and made.shared),
        "failures": [{"text": said, "device": device} for said, device in failures],
    }


def _programs(asked: JSON, known: Mapping[str, JSON], deadline: Deadline) -> tuple[list[Program] | None, int]:
    """The selectors of the class and then of the request, with how many are the class's."""
    by_class: list[str] = []
    if name := asked["deviceClass"]:
        device_class = known.get(name)
        if device_class is None:
            return None, 0
        by_class = _expressions(device_class)
    try:
        written = (*by_class, *asked["expressions"])
        return [compiled(each) for each in deadline.paced(written)], len(by_class)
    except CompileError:
        return None, 0


def _expressions(device_class: JSON) -> list[str]:
    listed = items(get(device_class, ("spec", "selectors")))
    return [text(get(each, ("cel", "expression"))) for each in listed]


def _find(
    programs: Sequence[Program], of_class: int, devices: Sequence[tuple[str, JSON]], deadline: Deadline
) -> _Asked:
    made = _Asked()
    for name, device in devices:
        deadline.spend(10 * len(programs) + 1)  # an evaluation is some loops' work
        taken = 0
        try:
            while taken < len(programs) and programs[taken].evaluate(device, _meter(deadline)) is True:
                taken += 1
        except EvaluationError as error:
            deadline.look()  # what time stopped is no failure of the selector
            made.failures.setdefault(str(error).partition("\n")[0], name)
        made.classed += taken >= of_class
        if taken == len(programs):
            made.selected += 1
            made.shared = made.shared or device["device"]["allowMultipleAllocations"]
    return made


def _meter(deadline: Deadline) -> Meter:
    return Meter(limit=MOST_COST, deadline=deadline)


def _devices(view: View) -> Iterator[tuple[str, JSON]]:
    """The devices of the newest generation of every pool, as expressions see them."""
    newest: dict[tuple[str, str], int] = {}
    slices = [each for each in view.objects(SLICE) if isinstance(get(each, ("spec",)), dict)]
    for each in slices:
        newest[_pool(each)] = max(newest.get(_pool(each), 0), _generation(each))
    for each in view.deadline.paced(slices):
        if _generation(each) == newest[_pool(each)]:
            driver = text(each["spec"].get("driver"))
            for device in view.deadline.paced(items(each["spec"].get("devices"))):
                if (read := _read(driver, device)) is not None:
                    yield f"`{text(device.get('name'))}` of driver `{driver}`", read


def _read(driver: str, device: JSON) -> JSON | None:
    """A device for expressions; None where it cannot be read, as no API server stores one."""
    try:
        return {"device": seen(driver, device)} if isinstance(device, dict) else None
    except EvaluationError:
        return None


def _pool(resource_slice: JSON) -> tuple[str, str]:
    return text(resource_slice["spec"].get("driver")), text(get(resource_slice, ("spec", "pool", "name")))


def _generation(resource_slice: JSON) -> int:
    generation = get(resource_slice, ("spec", "pool", "generation"))
    return generation if type(generation) is int else 0
