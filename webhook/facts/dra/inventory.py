"""Which devices of the cluster the selectors of a claim, a template or a class take.

Asks every device of every ResourceSlice as the scheduler does, class first, then the request; what is allocated plays
no part. A view without ResourceSlices knows no devices, and nothing is said of a class that it lacks. Rules:
k8s.io/dynamic-resource-allocation v0.36.1 structured/internal/experimental/allocator_experimental.go isSelectable,
selectorsMatch: an error ends the allocation.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from webhook.attributes import JSON
from webhook.cel import Meter, Program
from webhook.cluster.interest import reading
from webhook.deadline import Deadline
from webhook.errors import CompileError, EvaluationError
from webhook.facts.dra import device_pools, device_taints
from webhook.facts.dra.allocatable import Allocatable, allocatable
from webhook.facts.dra.device_matching import seen
from webhook.facts.dra.device_pools import SLICE, Device, pools
from webhook.facts.dra.device_taints import RULE, Rules, taint_rules
from webhook.facts.dra.requests import version_of, written_requests
from webhook.facts.dra.resolved import CLASS, class_selectors
from webhook.facts.dra.selectors import MOST_COST, compiled
from webhook.facts.values import text
from webhook.facts.view import View
from webhook.paths import FieldPath, get
from webhook.workloads.podsets import group_kind

LOOKUPS = (device_pools.LOOKUP, device_taints.LOOKUP, reading(CLASS, "spec.selectors"))
_SPECS: Mapping[str, FieldPath] = {
    "ResourceClaim": ("spec",),
    "ResourceClaimTemplate": ("spec", "spec"),
    "DeviceClass": (),
}
_MOST = 20_000  # evaluations: about half a second, and more devices than a claim is written for without a look
_SHOWN = 3


@dataclass(frozen=True, slots=True)
class _Devices:
    """The devices of the view, each with itself as expressions see it, the classes by name, and what taints devices."""

    listed: Sequence[tuple[Device, JSON]]
    classes: Mapping[str, JSON]
    rules: Rules


@dataclass(slots=True)
class _Asked:
    """What one request, alternative or class finds; `failures` are texts with the device that made each."""

    classed: int = 0
    selected: list[Device] = field(default_factory=list)
    shared: bool = False
    failures: dict[str, str] = field(default_factory=dict)


def inventory(obj: JSON, view: View) -> JSON:
    """What every request of a claim or a template finds, or a class; nothing for anything else."""
    group, kind = group_kind(obj)
    listed = [*_seen(view)] if group == SLICE.group and kind in _SPECS else []
    if not listed:
        return {"devices": 0, "requests": []}
    known = view.deadline.paced(reversed(view.objects(CLASS)))
    classes = {text(get(each, ("metadata", "name"))): each for each in known}
    devices = _Devices(listed, classes, taint_rules(view.objects(RULE), view.deadline))
    asked = [_entry(each, devices, view.deadline) for each in _asked(obj, _SPECS[kind], view)]
    return {"devices": len(listed), "requests": asked}


def _asked(obj: JSON, at: FieldPath, view: View) -> Iterator[JSON]:
    if not at:
        expressions = class_selectors(obj)
        yield {"path": "spec.selectors", "deviceClass": "", "expressions": expressions, "name": "", "of": "", "as": {}}
        return
    for request, written, of in written_requests(get(obj, at), at, version_of(obj), view.deadline):
        if request["kind"] in ("exactly", "choice"):
            expressions = [selector["expression"] for selector in request["selectors"]]
            yield {**request, "expressions": expressions, "of": of, "as": written}


def _entry(asked: JSON, devices: _Devices, deadline: Deadline) -> JSON:
    """One request with what it finds: null where a class is not known, a selector is none, the cluster is too large."""
    programs, of_class = _programs(asked, devices.classes, deadline)
    made, left = None, Allocatable()
    if programs is not None and len(programs) * len(devices.listed) <= _MOST:
        made = _find(programs, of_class, devices.listed, deadline)
        left = allocatable(made.selected, asked["as"], devices.rules, deadline)
    failures = [*made.failures.items()][:_SHOWN] if made else []
    return {
        "path": asked["path"],
        "name": asked["name"],
        "of": asked["of"],
        "deviceClass": asked["deviceClass"],
        "wanted": asked.get("devices"),
        "classed": made.classed if made else None,
        "selected": len(made.selected) if made else None,
        "shared": bool(made and made.shared),
        "allocatable": left,
        "failures": [{"text": said, "device": device} for said, device in failures],
    }


def _programs(asked: JSON, known: Mapping[str, JSON], deadline: Deadline) -> tuple[list[Program] | None, int]:
    """The selectors of the class and then of the request, with how many are the class's."""
    by_class: list[str] = []
    if name := asked["deviceClass"]:
        device_class = known.get(name)
        if device_class is None:
            return None, 0
        by_class = class_selectors(device_class)
    try:
        written = (*by_class, *asked["expressions"])
        return [compiled(each) for each in deadline.paced(written)], len(by_class)
    except CompileError:
        return None, 0


def _find(
    programs: Sequence[Program], of_class: int, devices: Sequence[tuple[Device, JSON]], deadline: Deadline
) -> _Asked:
    made = _Asked()
    for device, as_seen in devices:
        deadline.spend(10 * len(programs) + 1)  # an evaluation is some loops' work
        taken = 0
        try:
            while taken < len(programs) and programs[taken].evaluate(as_seen, _meter(deadline)) is True:
                taken += 1
        except EvaluationError as error:
            deadline.look()  # what time stopped is no failure of the selector
            made.failures.setdefault(str(error).partition("\n")[0], f"`{device.name}` of driver `{device.pool.driver}`")
        made.classed += taken >= of_class
        if taken == len(programs):
            made.selected.append(device)
            made.shared = made.shared or as_seen["device"]["allowMultipleAllocations"]
    return made


def _meter(deadline: Deadline) -> Meter:
    return Meter(limit=MOST_COST, deadline=deadline)


def _seen(view: View) -> Iterator[tuple[Device, JSON]]:
    """The devices of the view, as expressions see them; without those that no API server stores, as they are."""
    for pool in pools(view.objects(SLICE), view.deadline):
        for device in pool.devices(view.deadline):
            try:
                yield device, {"device": seen(pool.driver, device.fields)}
            except EvaluationError:
                continue
