"""Builds the Workload that Kueue creates for a job: its pod sets, with the quota that their pods need.

A Deployment has a Workload for each pod, and a LeaderWorkerSet has a Workload for each group. Amounts of quota are
whole numbers: thousandths of cpu, units of every other resource.

Source: kubernetes-sigs/kueue@ff69552e pkg/controller/jobs (PodSets) and pkg/workload/resources.go.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from msgspec.structs import replace

from webhook.apimachinery.attributes import JSON
from webhook.apimachinery.paths import FieldPath
from webhook.facts.kueue.configuration import (
    DEVICE_CLAIMS_GATE,
    EXTENDED_RESOURCES_GATE,
    REJECT_CLAIMS_GATE,
    KueueConfiguration,
    is_gate_on,
    may_gate_be_on,
    read_kueue_configuration,
)
from webhook.facts.kueue.job_types import pod_templates, typed_template
from webhook.facts.kueue.never_claims import (
    QuotaDevices,
    count_claimed_devices,
    count_extended_resources,
    refuse_all_claims,
)
from webhook.facts.kueue.objects import MIN_PARALLELISM
from webhook.facts.pods.pod_requests import (
    Amounts,
    NamespaceLimits,
    OutOfRangeAmount,
    amounts_in_thousandths,
    combine_limit_ranges,
    find_amounts_out_of_range,
    quota_requests_of_pod,
    requests_of_containers,
    thousandths_to_kueue_units,
)
from webhook.facts.pods.pod_sets import pod_sets
from webhook.facts.subject import Subject
from webhook.facts.view import ClusterView
from webhook.rules.problem import MissingObject
from webhook.typed.cluster_objects import LimitRange, RuntimeClass
from webhook.typed.collections import Items
from webhook.typed.objects import Object
from webhook.typed.pods import Container, PodTemplate
from webhook.typed.ray import RayJob
from webhook.workloads.podsets import PodSet

_WORKLOAD_FOR_EACH_POD: Final = ("apps", "Deployment")
_MOST_DIGITS: Final = 9
_SUBMITTER_PATH: Final[FieldPath] = ("spec", "submitterPodTemplate")
_DEFAULT_SUBMITTER: Final[JSON] = {
    "spec": {
        "restartPolicy": "Never",
        "containers": [
            {
                "name": "ray-job-submitter",
                "resources": {
                    "limits": {"cpu": "1", "memory": "1Gi"},
                    "requests": {"cpu": "500m", "memory": "200Mi"},
                },
            }
        ],
    }
}
"""The pod of a RayJob without submitterPodTemplate (pkg/controller/jobs/rayjob getSubmitterTemplate)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PodSetRequests:
    """One pod set of a Workload.

    Args:
        pod_set: the pod set.
        template: the pod template, with the defaults of the API server.
        count: the number of pods, None if the number is not known.
        least: the fewest pods with which the pod set starts.
        per_pod: the amounts of one pod, in thousandths, by the resource names of nodes.
        requests: the sum for `least` pods, by the resource names of quota.
        devices: the amounts of the device claims.
        outside: the resources with amounts that the LimitRanges of the namespace forbid.
    """

    pod_set: PodSet
    template: PodTemplate
    count: int | None
    least: int
    per_pod: Amounts
    requests: Mapping[str, int]
    devices: QuotaDevices
    outside: Sequence[OutOfRangeAmount]

    @property
    def name(self) -> str:
        """Return the name of the pod set."""
        return self.pod_set.name

    def path_in_object(self, path: FieldPath) -> FieldPath:
        """Return the path of a template's field in the object."""
        return self.pod_set.locate(path)


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """The Workload of a job. `missing`: objects that could not be looked up, such as the runtime of a TrainJob."""

    pod_sets: Sequence[PodSetRequests] = ()
    missing: tuple[MissingObject, ...] = ()


def build_workload(subject: Subject) -> Workload:
    """Return the Workload of an object. Call this function through `Subject.once`."""
    listed, counting = subject.once(pod_sets), _PodSetRequestsBuilder(subject)
    pairs = [*zip(listed.all, subject.once(pod_templates), strict=True), *_default_submitter(subject)]
    counted = [counting.requests_of_pod_set(pod_set, template) for pod_set, template in pairs]
    missing = (*listed.missing, *counting.view.all_missing_objects())
    return Workload(pod_sets=Items(counted, subject.deadline), missing=missing)


def _default_submitter(subject: Subject) -> Iterator[tuple[PodSet, PodTemplate]]:
    """Yield the pod set of the Job that submits a RayJob, if the RayJob sets no template for its pod."""
    if subject.group_kind == ("ray.io", "RayJob") and subject.typed(RayJob).spec.has_default_submitter:
        pod_set = PodSet(name="submitter", path=_SUBMITTER_PATH, template=_DEFAULT_SUBMITTER, elsewhere=True)
        yield pod_set, typed_template(_DEFAULT_SUBMITTER, subject.deadline)


@dataclass(slots=True)
class _PodSetRequestsBuilder:
    """Builds the requests of the pod sets of one object: the number of pods, and the quota that a pod needs."""

    subject: Subject
    view: ClusterView = field(init=False)
    ranges: NamespaceLimits = field(init=False)
    configuration: KueueConfiguration = field(init=False)

    def __post_init__(self) -> None:
        self.view = self.subject.cluster_view()
        self.ranges = combine_limit_ranges(self.view.list_typed(LimitRange, self.subject.namespace))
        self.configuration = self.subject.once(read_kueue_configuration)

    def requests_of_pod_set(self, pod_set: PodSet, written: PodTemplate) -> PodSetRequests:
        """Return a pod set with the quota that its pods need."""
        template = _with_api_server_defaults(written, self.subject)
        of_containers = requests_of_containers(template.spec, self.ranges)
        per_pod = quota_requests_of_pod(template.spec, of_containers, self._overhead_of_pod(template))
        count = 1 if self.subject.group_kind == _WORKLOAD_FOR_EACH_POD else pod_set.count
        least = _least_number_of_pods(self.subject, count or 0)
        devices = self._devices_of_pod(template, pod_set)
        quota = self._quota_of_pod(template, pod_set, per_pod, devices)
        return PodSetRequests(
            pod_set=replace(pod_set, template=template.json),
            template=template,
            count=count,
            least=least,
            per_pod=per_pod,
            requests={name: value * least for name, value in quota.items()},
            devices=devices,
            outside=of_containers.of([*find_amounts_out_of_range(of_containers, per_pod, self.ranges)]),
        )

    def _overhead_of_pod(self, template: PodTemplate) -> Amounts:
        pod = template.spec
        if pod.overhead or not pod.runtime_class_name:
            return amounts_in_thousandths(pod.overhead)
        runtime_class = self.subject.cluster_view().find(RuntimeClass, pod.runtime_class_name, namespaced=False)
        return amounts_in_thousandths(runtime_class.overhead.pod_fixed)

    def _devices_of_pod(self, template: PodTemplate, pod_set: PodSet) -> QuotaDevices:
        if may_gate_be_on(DEVICE_CLAIMS_GATE, self.subject):
            return count_claimed_devices(template, pod_set.locate, self.configuration, self.view)
        return (
            refuse_all_claims(template, pod_set.locate)
            if is_gate_on(REJECT_CLAIMS_GATE, self.subject)
            else QuotaDevices()
        )

    def _quota_of_pod(
        self, template: PodTemplate, pod_set: PodSet, per_pod: Amounts, devices: QuotaDevices
    ) -> dict[str, int]:
        """Return the quota that one pod needs, by resource."""
        given = per_pod
        if is_gate_on(EXTENDED_RESOURCES_GATE, self.subject):
            given = count_extended_resources(
                template,
                pod_set.locate,
                amounts=per_pod,
                configuration=self.configuration,
                view=self.view,
                devices=devices,
            )
        counted = {
            name: thousandths_to_kueue_units(name, milli)
            for name, milli in _with_transformed_resources(given, self.configuration).items()
        }
        for name, count in devices.counts.items():
            counted[name] = counted.get(name, 0) + count
        return {name: max(0, value) for name, value in counted.items()}


def _with_transformed_resources(given: Amounts, configuration: KueueConfiguration) -> Amounts:
    """Return the amounts after the exclusions and transformations of Kueue's Configuration."""
    total: Counter[str] = Counter()
    for name, milli in given.items():
        if configuration.excluded and name.startswith(configuration.excluded):
            continue
        change = configuration.transformations.get(name)
        if change is None or change.is_kept:
            total[name] += milli
        if change is not None:
            times = given.get(change.times, 0) // 1000 if change.times else 1
            for output, factor in change.outputs.items():
                total[output] += factor * times * milli // 1000
    return dict(total)


def _with_api_server_defaults(template: PodTemplate, subject: Subject) -> PodTemplate:
    """Return a Pod as the API server stores it, with requests set from limits; a template is returned unchanged."""
    if subject.group_kind != ("", "Pod"):
        return template
    spec = template.spec
    lists = {"containers": spec.containers, "initContainers": spec.init_containers}
    filled = {name: [*map(_with_requests_from_limits, containers)] for name, containers in lists.items() if containers}
    return typed_template({**template.json, "spec": {**spec.json, **filled}}, subject.deadline)


def _with_requests_from_limits(container: Container) -> JSON:
    resources = container.resources
    if not resources.limits:
        return container.json
    requests = {**resources.limits, **resources.requests}
    return {**container.json, "resources": {**resources.json, "requests": requests}}


def _least_number_of_pods(subject: Subject, count: int) -> int:
    """Return the fewest pods with which a job starts; a Job may accept fewer pods than it requests."""
    if subject.group_kind != ("batch", "Job"):
        return count
    given = subject.typed(Object).annotations.get(MIN_PARALLELISM, "")
    if given.isascii() and given.isdecimal() and len(given) <= _MOST_DIGITS:
        return min(count, int(given)) if int(given) else count
    return count
