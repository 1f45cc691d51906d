"""Pods that use devices, and the kinds of workloads that have these pods.

A device is a GPU or another accelerator that a container requests as an extended resource or by a claim. Fields outside
of pod templates are not read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final, NamedTuple

from msgspec import Struct

from webhook.apimachinery import quantity
from webhook.apimachinery.paths import FieldPath
from webhook.facts.command_lines.command import cached_launch_of_container, may_start_launcher
from webhook.facts.gpu import devices
from webhook.facts.kinds import DEPLOYMENT, LEADER_WORKER_SET, STATEFUL_SET, TRAIN_JOB
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
"""Kinds of jobs. The pods of a job run until the work is done."""
SERVING: Final = frozenset((DEPLOYMENT, STATEFUL_SET))
"""Kinds with pods that run without an end and are replaced one by one."""
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
"""Kinds with complete pod templates. A scheduler places their pods on existing nodes. KAITO's kinds are left out,
because KAITO creates nodes for their pods.
"""
LAUNCHERS: Final = frozenset(("torchrun", "accelerate", "deepspeed"))
"""Launchers that start the processes of PyTorch."""


class DevicePods(NamedTuple):
    """The pods of one template, with the devices that they use.

    Args:
        podset: the pod set.
        template: the template of the pod set; paths are relative to the template.
        containers: the main containers and sidecars that use devices.
        devices: the number of devices of one pod, by the name of the resource; devices of claims are not counted.
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
        """Return how many pods the template has; 0 if the number is not known."""
        return self.podset.pods or 0

    def locate(self, path: FieldPath) -> FieldPath:
        """Return the path of a template's field in the object."""
        return self.podset.locate(path)


class DeviceWorkload(Struct, frozen=True):
    """An object with pods that use devices.

    Args:
        pod_sets: all pod sets of the object.
        device_pods: the pods that use devices.
        missing: the missing runtime of a TrainJob. Without the runtime, the pods of the TrainJob are not known.
    """

    pod_sets: tuple[PodSet, ...] = ()
    device_pods: tuple[DevicePods, ...] = ()
    missing: tuple[MissingObject, ...] = ()

    @property
    def count_device_pods(self) -> int:
        """Return how many pods use devices. Pod sets with an unknown number of pods are not counted."""
        return sum(pods.pod_count for pods in self.device_pods)


def located_templates(subject: Subject) -> Items[tuple[PodSet, PodTemplate]]:
    """Return the pod sets of an object with their templates. Call this function through `Subject.once`. Pod sets from
    the runtime of a TrainJob have paths in the TrainJob.
    """
    listed = subject.once(pod_sets).all
    return listed.of([(pod_set_located_in_runtime(each), template_of(each, subject)) for each in listed])


def read_device_workload(subject: Subject) -> DeviceWorkload:
    """Return the pods of an object that use devices. Call this function through `Subject.once`."""
    located = subject.once(located_templates)
    using = [_pods_using_devices(podset, template) for podset, template in located]
    pods = tuple([podset for podset, _ in located])
    return DeviceWorkload(pods, tuple([each for each in using if each.containers]), subject.once(pod_sets).missing)


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
            count = quantity.read_whole_number_or_none(amount)
            if count is not None and count > 0:
                counts[name] = count
    return counts


def is_training_container(container: Container, subject: Subject) -> bool:
    """Return whether the command of a container starts several processes that train together."""
    if not may_start_launcher(container):
        return False
    by = cached_launch_of_container(container, subject).by
    return by not in ("", "python", "several")


def without_repeated_problems(problems: Iterable[Problem], subject: Subject) -> Iterator[Problem]:
    """Yield problems. If several templates of the object have the same problem, yield the problem once."""
    seen = set()
    for problem in problems:
        if problem.code_found_and_message not in seen:
            seen.add(problem.code_found_and_message)
            yield relocate_problem_to_train_job(problem, subject)


def check_advice_without_repetitions(
    advice: Iterable[Callable[[Subject], Iterable[Problem]]], code: str, subject: Subject
) -> Iterator[Problem]:
    """Yield the problems of all advice. If several templates have the same problem, yield the problem once. Report a
    missing runtime under the rule `code`.
    """
    if missing := subject.once(read_device_workload).missing:
        yield Problem(code=code, path="spec.runtimeRef.name", missing=missing)
    for advise in advice:
        problems = tuple(advise(subject))
        if problems:  # advice rarely finds a problem
            yield from without_repeated_problems(problems, subject)
