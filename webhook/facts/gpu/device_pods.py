"""Pods that use devices, for advice about whole workloads, and the kinds of their workloads.

A device is a GPU or another accelerator that a container requests as an extended resource, or a claim that it names.
Fields outside of pod templates are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final, NamedTuple

from msgspec import Struct

from webhook.apimachinery import quantity
from webhook.apimachinery.paths import FieldPath
from webhook.facts.command_lines.command import cached_launch_of_container
from webhook.facts.gpu import devices
from webhook.facts.kinds import LEADER_WORKER_SET, TRAIN_JOB
from webhook.facts.pods.pod_sets import pod_set_located_in_runtime, pod_sets, relocate_problem_to_train_job, template_of
from webhook.facts.subject import Subject
from webhook.rules.problem import MissingObject, Problem
from webhook.typed.collections import Items
from webhook.typed.pods import Container, PodSpec, PodTemplate
from webhook.workloads.podsets import PodSet

BATCH: Final = frozenset(
    (
        ("batch", "Job"),
        ("batch", "CronJob"),
        ("jobset.x-k8s.io", "JobSet"),
        TRAIN_JOB,
        *(("kubeflow.org", f"{name}Job") for name in ("PyTorch", "TF", "MPI", "XGBoost", "Paddle", "JAX")),
        ("batch.volcano.sh", "Job"),
        ("batch.volcano.sh", "CronJob"),
        ("ray.io", "RayJob"),
    )
)
"""Kinds with pods that end."""
SERVING: Final = frozenset((("apps", "Deployment"), ("apps", "StatefulSet")))
"""Kinds with pods that serve until they are replaced one by one."""
WORKLOADS: Final = BATCH | SERVING | {("", "Pod"), LEADER_WORKER_SET}
"""Kinds that get advice about devices. A DaemonSet gets no advice, because it manages the devices of its nodes."""
PLACED: Final = WORKLOADS | frozenset(
    (
        ("", "ReplicationController"),
        ("apps", "ReplicaSet"),
        *(("ray.io", kind) for kind in ("RayCluster", "RayService", "RayCronJob")),
        *(("kubeflow.org", kind) for kind in ("MXJob", "Notebook")),
        ("disaggregatedset.x-k8s.io", "DisaggregatedSet"),
        ("serving.kserve.io", "InferenceService"),
        ("serving.knative.dev", "Service"),
        *(("orchestration.aibrix.ai", kind) for kind in ("StormService", "RoleSet", "RayClusterFleet")),
        ("workload.serving.volcano.sh", "ModelServing"),
        ("workloads.x-k8s.io", "RoleBasedGroup"),
        ("agents.x-k8s.io", "Sandbox"),
        *(("sandbox.opensandbox.io", kind) for kind in ("BatchSandbox", "Pool")),
        ("grove.io", "PodCliqueSet"),
        ("argoproj.io", "Rollout"),
        *(("apps.kruise.io", kind) for kind in ("CloneSet", "StatefulSet", "BroadcastJob")),
    )
)
"""Kinds with complete pod templates, for pods that a scheduler places on existing nodes.

KAITO's kinds are left out, because KAITO creates nodes for their pods.
"""
LAUNCHERS: Final = frozenset(("torchrun", "accelerate", "deepspeed"))
"""Launchers that start the processes of PyTorch."""


class DevicePods(NamedTuple):
    """The pods of one template, with the devices that they use.

    Args:
        podset: the pod set.
        template: its template, with paths relative to the template.
        containers: the containers that use devices, without init containers that end.
        devices: the devices of one pod by the name of the resource, without claims.
    """

    podset: PodSet
    template: PodTemplate
    containers: tuple[Container, ...]
    devices: dict[str, int]

    @property
    def spec(self) -> PodSpec:
        """Return the PodSpec of the pods."""
        return self.template.spec

    @property
    def pod_count(self) -> int:
        """Return how many pods the template has, 0 if that is not known."""
        return self.podset.pods or 0

    def locate(self, path: FieldPath) -> FieldPath:
        """Return the path of a template's field in the object."""
        return self.podset.locate(path)


class DeviceWorkload(Struct, frozen=True):
    """An object with pods that use devices.

    Args:
        pod_sets: all of its pod sets.
        device_pods: the pods that use devices; () if no pod does.
        missing: the missing runtime of a TrainJob, from which its pods would come.
    """

    pod_sets: tuple[PodSet, ...] = ()
    device_pods: tuple[DevicePods, ...] = ()
    missing: tuple[MissingObject, ...] = ()

    @property
    def count_device_pods(self) -> int:
        """Return how many pods use devices, as far as their numbers are known."""
        return sum(pods.pod_count for pods in self.device_pods)


def located_templates(subject: Subject) -> Items[tuple[PodSet, PodTemplate]]:
    """Return the pod sets of an object with their templates; call it through `Subject.once`. Pod sets of a runtime have
    the paths of the TrainJob.
    """
    listed = subject.once(pod_sets).all
    return listed.of([(pod_set_located_in_runtime(each), template_of(each, subject)) for each in listed])


def read_device_workload(subject: Subject) -> DeviceWorkload:
    """Return the pods of an object that use devices; call it through `Subject.once`."""
    located = subject.once(located_templates)
    using = [_pods_using_devices(podset, template) for podset, template in located]
    pods = tuple(podset for podset, _ in located)
    return DeviceWorkload(pods, tuple(each for each in using if each.containers), subject.once(pod_sets).missing)


def _pods_using_devices(podset: PodSet, template: PodTemplate) -> DevicePods:
    containers, devices = [], dict[str, int]()
    for container in template.spec.running_containers():
        requested = count_devices_of_container(container)
        if requested or container.resources.claims:
            containers.append(container)
        for name, count in requested.items():
            devices[name] = devices.get(name, 0) + count
    return DevicePods(podset, template, tuple(containers), devices)


def count_devices_of_container(container: Container) -> dict[str, int]:
    """Return the number of each device that a container requests, by the name of its resource."""
    counts = {}
    requests, limits = container.resources.requests, container.resources.limits
    deadline = container.reading.deadline
    for name, amount in dict((*requests.items(), *limits.items())).items():
        deadline.spend(devices.NAME_WORK)
        if devices.device_of_resource_name(name).kind in devices.COUNTED:
            count = quantity.read_quantity_or_none(amount)
            if count is not None and count.is_whole() and count.sign() > 0:
                counts[name] = count.value()
    return counts


def is_training_container(container: Container, subject: Subject) -> bool:
    """Return whether the command of a container starts several processes that train together."""
    by = cached_launch_of_container(container, subject).by
    return by not in ("", "python", "several")


def without_repeated_problems(problems: Iterable[Problem], subject: Subject) -> Iterator[Problem]:
    """Yield the problems with paths in the object. A problem that several templates share is yielded once."""
    seen = set()
    for problem in problems:
        if problem.code_found_and_message not in seen:
            seen.add(problem.code_found_and_message)
            yield relocate_problem_to_train_job(problem, subject)


def check_advice_without_repetitions(
    advice: Iterable[Callable[[Subject], Iterable[Problem]]], code: str, subject: Subject
) -> Iterator[Problem]:
    """Yield the problems of all advice; a problem that several templates share is yielded once. A missing runtime is
    reported under the rule `code`.
    """
    if missing := subject.once(read_device_workload).missing:
        yield Problem(code=code, path="spec.runtimeRef.name", missing=missing)
    for advise in advice:
        problems = tuple(advise(subject))
        if problems:  # rarely the case
            yield from without_repeated_problems(problems, subject)
