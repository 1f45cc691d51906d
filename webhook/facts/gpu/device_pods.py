"""Pods that use devices, as advice about whole workloads reads them: which they are, and what kind of work they do.

A device is a GPU or another accelerator that a container requests as an extended resource, or a claim that it names.
What stands outside pod templates is left out. Knows no rule.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple

from webhook import quantity
from webhook.attributes import JSON
from webhook.deadline import Deadline
from webhook.facts.command_lines.command import launched
from webhook.facts.gpu import devices
from webhook.facts.kinds import TRAIN_JOB
from webhook.facts.pods.containers import Container, containers
from webhook.facts.pods.pod_sets import pod_sets
from webhook.facts.subject import Subject
from webhook.facts.train_job_pods.virtual_pods import located_in_runtime, located_in_train_job
from webhook.facts.values import mapping
from webhook.paths import FieldPath, render
from webhook.problem import MissingObject, Problem
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
        spec: its PodSpec.
        containers: those that use devices, init containers that end left out.
        devices: of one pod by the name of the resource, claims left out.
    """

    podset: PodSet
    spec: JSON
    containers: tuple[Container, ...]
    devices: dict[str, int]

    def at(self, *path: str | int) -> FieldPath:
        """Where a field of the PodSpec stands in the object."""
        return self.podset.locate(("spec", *path))


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
        return sum(each.podset.pods or 0 for each in self.device_pods)


def workload(subject: Subject) -> Workload:
    """What an object has of such pods, to be asked for with `Subject.once`."""
    listed = subject.once(pod_sets)
    own = tuple(located_in_runtime(each) for each in subject.deadline.paced(listed.all))
    using = tuple(made for each in subject.deadline.paced(own) if (made := _using(each, subject)).containers)
    return Workload(own, using, listed.missing)


def _using(podset: PodSet, subject: Subject) -> DevicePods:
    spec = mapping(mapping(podset.template).get("spec"))
    running = [each for each in containers(podset.template, subject.deadline.each) if not each.init or each.restarts]
    using, amounts = [], dict[str, int]()
    for container in running:
        own = devices_of(container, subject.deadline)
        if own or container.claims():
            using.append(container)
        for name, count in own.items():
            amounts[name] = amounts.get(name, 0) + count
    return DevicePods(podset, spec, tuple(using), amounts)


def devices_of(container: Container, deadline: Deadline) -> dict[str, int]:
    """The devices that a container requests by the names of their resources, those of which it has at least one."""
    made = {}
    requests, limits = container.amounts("requests"), container.amounts("limits")
    for name, amount in deadline.each(({**requests, **limits} if requests != limits else requests).items()):
        if devices.resource(name).kind in devices.COUNTED:
            read = quantity.read(amount)
            if read is not None and read.is_whole() and read.sign() > 0:
                made[name] = read.value()
    return made


def trains(container: Container, subject: Subject) -> bool:
    """Whether the command of a container starts several processes that train together."""
    by = launched(container.value, subject).by
    return by not in ("", "python", "several")


def once_each(problems: Iterable[Problem], subject: Subject) -> Iterator[Problem]:
    """Problems without those that say again of another template what was said of one, told where users find them."""
    said = set()
    for each in problems:
        if each.without_path not in said:
            said.add(each.without_path)
            yield located_in_train_job(each, subject)


def advised(advice: Iterable[Callable[[Subject], Iterable[Problem]]], code: str, subject: Subject) -> Iterator[Problem]:
    """What advice says of an object, once where several of its templates share it; `code` tells what is missing."""
    if missing := subject.once(workload).missing:
        yield Problem(code=code, path="spec.runtimeRef.name", missing=missing)
    for advise in advice:
        yield from once_each(advise(subject), subject)


def path_of(pods: DevicePods, container: Container, *path: str | int) -> str:
    """Where a field of a container stands."""
    return render(pods.podset.locate((*container.path, *path)))
