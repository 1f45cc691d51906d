"""Pods that use devices, as advice about whole workloads reads them: which they are, and what kind of work they do.

A device is a GPU or another accelerator that a container requests as an extended resource, or a claim that it names.
What stands outside pod templates is left out. Knows no rule.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple

from webhook import quantity
from webhook.facts.command_lines.command import launched_by
from webhook.facts.gpu import devices
from webhook.facts.kinds import TRAIN_JOB
from webhook.facts.pods.pod_sets import pod_sets, template_of
from webhook.facts.subject import Subject
from webhook.facts.train_job_pods.virtual_pods import located_in_runtime, located_in_train_job
from webhook.paths import FieldPath
from webhook.problem import MissingObject, Problem
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
"""Kinds whose pods end."""
SERVING: Final = frozenset((("apps", "Deployment"), ("apps", "StatefulSet")))
"""Kinds whose pods answer requests until they are replaced one by one."""
WORKLOADS: Final = BATCH | SERVING | {("", "Pod"), ("leaderworkerset.x-k8s.io", "LeaderWorkerSet")}
"""Kinds that advice about devices is given on; a DaemonSet looks after the devices of its node."""
LAUNCHERS: Final = frozenset(("torchrun", "accelerate", "deepspeed"))
"""Those that start the processes of PyTorch."""


class DevicePods(NamedTuple):
    """The pods of one template that use devices.

    Args:
        podset: the pod set.
        template: its template, whose paths begin at the template.
        containers: those that use devices, init containers that end left out.
        devices: of one pod by the name of the resource, claims left out.
    """

    podset: PodSet
    template: PodTemplate
    containers: tuple[Container, ...]
    devices: dict[str, int]

    @property
    def spec(self) -> PodSpec:
        """The PodSpec of the pods."""
        return self.template.spec

    @property
    def pods(self) -> int:
        """How many pods there are of it, as far as their number is known."""
        return self.podset.pods or 0

    def locate(self, path: FieldPath) -> FieldPath:
        """Where a field of the template stands in the object."""
        return self.podset.locate(path)


@dataclass(frozen=True, slots=True)
class Workload:
    """An object with pods that use devices.

    Args:
        pod_sets: all of its pod sets.
        device_pods: those that use devices; () where none does, so that there is nothing to advise.
        missing: what its pods come from, where that is not there.
    """

    pod_sets: tuple[PodSet, ...] = ()
    device_pods: tuple[DevicePods, ...] = ()
    missing: tuple[MissingObject, ...] = ()

    @property
    def count(self) -> int:
        """Pods that use devices, as far as their number is known."""
        return sum(pods.pods for pods in self.device_pods)


def read_device_workload(subject: Subject) -> Workload:
    """What an object has of such pods, to be asked for with `Subject.once`."""
    listed = subject.once(pod_sets)
    located = [located_in_runtime(podset) for podset in listed.all]
    using = [_using(podset, subject) for podset in listed.all.of(located)]
    return Workload(tuple(located), tuple(pods for pods in using if pods.containers), listed.missing)


def _using(podset: PodSet, subject: Subject) -> DevicePods:
    template = template_of(podset, subject)
    containers, devices = [], dict[str, int]()
    for container in template.spec.running_containers():
        requested = devices_of(container)
        if requested or container.resources.claims:
            containers.append(container)
        for name, count in requested.items():
            devices[name] = devices.get(name, 0) + count
    return DevicePods(podset, template, tuple(containers), devices)


def devices_of(container: Container) -> dict[str, int]:
    """The devices that a container requests by the names of their resources, those of which it has at least one."""
    counts = {}
    requests, limits = container.resources.requests, container.resources.limits
    deadline = container.reading.deadline
    for name, amount in dict((*requests.items(), *limits.items())).items():
        deadline.spend(devices.NAME_WORK)
        if devices.resource_of_name(name).kind in devices.COUNTED:
            count = quantity.read(amount)
            if count is not None and count.is_whole() and count.sign() > 0:
                counts[name] = count.value()
    return counts


def is_training_container(container: Container, subject: Subject) -> bool:
    """Whether the command of a container starts several processes that train together."""
    by = launched_by(container, subject).by
    return by not in ("", "python", "several")


def without_repeated_problems(problems: Iterable[Problem], subject: Subject) -> Iterator[Problem]:
    """Problems without those that say again of another template what was said of one, told where users find them."""
    seen = set()
    for problem in problems:
        if problem.without_path not in seen:
            seen.add(problem.without_path)
            yield located_in_train_job(problem, subject)


def advice_without_repetitions(
    advice: Iterable[Callable[[Subject], Iterable[Problem]]], code: str, subject: Subject
) -> Iterator[Problem]:
    """What advice says of an object, once where several of its templates share it; `code` tells what is missing."""
    if missing := subject.once(read_device_workload).missing:
        yield Problem(code=code, path="spec.runtimeRef.name", missing=missing)
    for advise in advice:
        yield from without_repeated_problems(advise(subject), subject)
