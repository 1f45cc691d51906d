"""The Workload that Kueue makes of a job: its pod sets, with what all pods of each count for.

Source: kubernetes-sigs/kueue@ff69552e pkg/controller/jobs (PodSets) and pkg/workload/resources.go. A Deployment has a
Workload for each pod and a LeaderWorkerSet one for each group. The units are those of quota.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from webhook.attributes import JSON
from webhook.facts.kinds import RUNTIME_CLASS
from webhook.facts.kueue.configuration import Configuration, configuration
from webhook.facts.kueue.device_requests import Devices, Refused, claimed, extended, without_claims
from webhook.facts.kueue.feature_gates import DEVICE_CLAIMS, EXTENDED_CLAIMS, NO_CLAIMS_WITHOUT, is_on
from webhook.facts.kueue.objects import LIMIT_RANGE, MIN_PARALLELISM
from webhook.facts.pods.pod_requests import (
    Amounts,
    Limits,
    OutOfRange,
    amounts,
    asked,
    limits,
    out_of_range,
    pod_requests,
    units,
)
from webhook.facts.pods.pod_sets import pod_sets
from webhook.facts.subject import Subject
from webhook.facts.values import mapping, text
from webhook.facts.view import View
from webhook.paths import FieldPath, get
from webhook.problem import MissingObject
from webhook.workloads.podsets import PodSet

_ONE_BY_ONE: Final = ("apps", "Deployment")
_MOST_DIGITS: Final = 9


@dataclass(frozen=True, slots=True, kw_only=True)
class PodSetRequests:
    """One pod set of a Workload.

    Args:
        pod_set: the pod set.
        count: its pods, None where nobody knows.
        least: the fewest pods that it starts with.
        per_pod: what one pod counts for, in thousandths and under the names of nodes.
        requests: what the fewest pods count for together, under the names of quota.
        devices: what its claims come to.
        outside: what is outside the LimitRanges of the namespace.
    """

    pod_set: PodSet
    count: int | None
    least: int
    per_pod: Amounts
    requests: Mapping[str, int]
    devices: Devices
    outside: tuple[OutOfRange, ...]

    @property
    def name(self) -> str:
        """Its name."""
        return self.pod_set.name

    @property
    def template(self) -> JSON:
        """Its pod template."""
        return self.pod_set.template

    def at(self, path: FieldPath) -> FieldPath:
        """Where a field of the template stands in the object."""
        return self.pod_set.locate(path)


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """The Workload of a job, and what is missing for it: without its runtime a TrainJob has no pod sets."""

    pod_sets: tuple[PodSetRequests, ...] = ()
    missing: tuple[MissingObject, ...] = ()

    def refused(self) -> Iterator[tuple[PodSetRequests, Refused]]:
        """What Kueue cannot count."""
        for each in self.pod_sets:
            yield from ((each, refused) for refused in each.devices.refused)


def workload(subject: Subject) -> Workload:
    """The Workload of an object, to be asked for with `Subject.once`."""
    listed, counting = subject.once(pod_sets), _Counting(subject)
    made = [counting.counted(each) for each in subject.deadline.paced(listed.all)]
    return Workload(pod_sets=tuple(made), missing=(*listed.missing, *counting.view.all_missing()))


@dataclass(slots=True)
class _Counting:
    """How the pods of one object are counted."""

    subject: Subject
    view: View = field(init=False)
    ranges: Limits = field(init=False)
    configuration: Configuration = field(init=False)

    def __post_init__(self) -> None:
        self.view = self.subject.view()
        self.ranges = limits(self.view.all(LIMIT_RANGE, self.subject.namespace), self.subject.deadline)
        self.configuration = self.subject.once(configuration)

    def counted(self, pod_set: PodSet) -> PodSetRequests:
        """A pod set with what it counts for."""
        template, deadline = _defaulted(pod_set.template, self.subject), self.subject.deadline
        listed = asked(template, self.ranges, deadline)
        per_pod = pod_requests(template, listed, self._overhead(template), deadline)
        count = 1 if self.subject.group_kind == _ONE_BY_ONE else pod_set.count
        least = _least(self.subject, count or 0)
        devices = self._devices(template)
        return PodSetRequests(
            pod_set=replace(pod_set, template=template),
            count=count,
            least=least,
            per_pod=per_pod,
            requests={name: value * least for name, value in self._quota(template, per_pod, devices).items()},
            devices=devices,
            outside=tuple(out_of_range(listed, per_pod, self.ranges, deadline)),
        )

    def _overhead(self, template: JSON) -> Amounts:
        own = get(template, ("spec", "overhead"))
        name = text(get(template, ("spec", "runtimeClassName")))
        if own or not name:
            return amounts(own)
        return amounts(get(self.subject.view().get(RUNTIME_CLASS, name, namespaced=False), ("overhead", "podFixed")))

    def _devices(self, template: JSON) -> Devices:
        if not is_on(DEVICE_CLAIMS, self.subject):
            rejects = is_on(NO_CLAIMS_WITHOUT, self.subject)
            return without_claims(template, self.subject.deadline) if rejects else Devices()
        return claimed(template, self.configuration, self.view)

    def _quota(self, template: JSON, per_pod: Amounts, devices: Devices) -> dict[str, int]:
        """What one pod counts for under the names of quota."""
        given = per_pod
        if is_on(EXTENDED_CLAIMS, self.subject):
            given = extended(template, per_pod, self.configuration, self.view, devices)
        made = {name: units(name, milli) for name, milli in _transformed(given, self.configuration).items()}
        for name, count in devices.counts.items():
            made[name] = made.get(name, 0) + count
        return {name: max(0, value) for name, value in made.items()}


def _transformed(given: Amounts, configuration: Configuration) -> Amounts:
    """As Kueue's Configuration leaves resources out, or counts them as others."""
    made: Amounts = {}
    for name, milli in given.items():
        if configuration.excluded and name.startswith(configuration.excluded):
            continue
        change = configuration.transformations.get(name)
        if change is None or change.is_kept:
            made[name] = made.get(name, 0) + milli
        if change is not None:
            times = given.get(change.times, 0) // 1000 if change.times else 1
            for output, each in change.outputs.items():
                made[output] = made.get(output, 0) + each * times * milli // 1000
    return made


def _defaulted(template: JSON, subject: Subject) -> JSON:
    """A pod as the API server stores it: requests that are not set are its limits. Templates are left as they are."""
    if subject.group_kind != ("", "Pod"):
        return template
    spec = mapping(template.get("spec"))
    own = {
        name: [_requested(each) for each in spec[name]] for name in ("containers", "initContainers") if spec.get(name)
    }
    return {**template, "spec": {**spec, **own}}


def _requested(container: JSON) -> JSON:
    resources = mapping(mapping(container).get("resources"))
    if not resources.get("limits"):
        return container
    requests = {**mapping(resources["limits"]), **mapping(resources.get("requests"))}
    return {**container, "resources": {**resources, "requests": requests}}


def _least(subject: Subject, count: int) -> int:
    """With how many pods a job starts at least: a Job may say that fewer than it asks for are enough."""
    if subject.group_kind != ("batch", "Job"):
        return count
    given = text(get(subject.object, ("metadata", "annotations", MIN_PARALLELISM)))
    if given.isascii() and given.isdecimal() and len(given) <= _MOST_DIGITS:
        return min(count, int(given)) if int(given) else count
    return count
