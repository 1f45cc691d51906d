"""One role of a training job: its pods, and of its main container the devices, variables and how processes start."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, TypeAlias

from webhook.attributes import JSON
from webhook.deadline import Deadline
from webhook.facts.command_lines.command import Launch, launched
from webhook.facts.gpu.resources import devices_of
from webhook.facts.pods.containers import variables
from webhook.facts.resource_units import cpu_count
from webhook.facts.subject import Subject
from webhook.facts.values import text
from webhook.paths import FieldPath, get
from webhook.placeholders import is_placeholder

Unfilled: TypeAlias = frozenset[FieldPath]
"""Where a job has values that are still to be filled in, and that are not texts."""
_SHARED_MEMORY: Final = "/dev/shm"  # noqa: S108 - a mount inside a container
_CONTAINERS: Final = ("template", "spec", "containers")


@dataclass(frozen=True, slots=True, kw_only=True)
class Role:
    """One role.

    Args:
        name: Master, Worker, Launcher, PS …
        path: where it stands.
        is_given: whether it says replicas.
        replicas: their number as the operator fills it in; None where that is still to be filled in.
        restart_policy: that of the role, "" where it says none.
        pod_restart_policy: that of its template.
        containers: those of its template.
        is_open: whether there may be other containers, or they may say something else.
        has_main: whether the container that trains is there, or may be the one that has no name yet.
        shares_memory: whether that has more shared memory than 64 MiB.
        limits_gpus: whether a container limits a resource with `gpu` in its name.
        gpus: GPUs of the container that trains.
        has_open_gpus: whether their number is still to be filled in.
        null_gpus: resources of GPUs whose amount is null.
        claims: device claims of that container.
        env: names of its variables; `*` stands for variables from elsewhere.
        cpus: its CPUs, rounded up.
        launch: what its command starts.

    """

    name: str
    path: FieldPath
    is_given: bool
    replicas: int | None
    restart_policy: str
    pod_restart_policy: str
    containers: tuple[JSON, ...]
    is_open: bool
    has_main: bool
    shares_memory: bool
    limits_gpus: bool
    gpus: int
    has_open_gpus: bool
    null_gpus: tuple[str, ...]
    claims: int
    env: frozenset[str]
    cpus: int
    launch: Launch

    @property
    def template(self) -> FieldPath:
        """Where its template stands."""
        return (*self.path, "template")

    @property
    def containers_at(self) -> FieldPath:
        """Where its containers stand."""
        return (*self.path, *_CONTAINERS)

    @property
    def is_named(self) -> bool:
        """Whether its name is there, and not still to be filled in."""
        return not is_placeholder(self.name)


def read_role(value: JSON, *, path: FieldPath, main: str, default: int, unfilled: Unfilled, subject: Subject) -> Role:
    """A role of a job.

    Args:
        value: what stands there, decoded.
        path: where it stands, which ends with its name.
        main: the name of the container that trains; "" is the first one.
        default: its replicas where it does not say how many.
        unfilled: where the job has values that are still to be filled in.
        subject: the job.

    """
    deadline = subject.deadline
    deadline.spend(10)  # a role is as much work as some loops
    listed = list(deadline.each(get(value, _CONTAINERS, [])))
    chosen = next((each for each in listed if each.get("name", "") == main or not main), None)
    container = chosen or {}
    replicas, is_unfilled = get(value, ("replicas",)), (*path, "replicas") in unfilled
    asked = get(container, ("resources",), {})
    amounts = [each for side in ("limits", "requests") for each in asked.get(side, {}).items() if "gpu" in each[0]]
    return Role(
        name=str(path[-1]),
        path=path,
        is_given=replicas is not None or is_unfilled,
        replicas=None if is_unfilled else default if replicas is None else replicas,
        restart_policy=_filled(get(value, ("restartPolicy",))),
        pod_restart_policy=_filled(get(value, ("template", "spec", "restartPolicy"))),
        containers=tuple(listed),
        is_open=_is_open(path, len(listed), unfilled, deadline),
        has_main=chosen is not None or any(is_placeholder(each.get("name", "")) for each in listed),
        shares_memory=_shares_memory(value, container),
        limits_gpus=any(
            "gpu" in each for one in listed for each in deadline.each(get(one, ("resources", "limits"), {}))
        ),
        gpus=devices_of(asked, deadline),
        has_open_gpus=any(isinstance(amount, str) and is_placeholder(amount) for _, amount in amounts),
        null_gpus=tuple(name for name, amount in amounts if amount is None),
        claims=len(get(asked, ("claims",), [])),
        env=frozenset((*variables(container, subject), *(["*"] if container.get("envFrom") else []))),
        cpus=cpu_count(asked),
        launch=launched(container, subject),
    )


def _filled(value: JSON) -> str:
    return "" if is_placeholder(text(value)) else text(value)


def _is_open(at: FieldPath, count: int, unfilled: Unfilled, deadline: Deadline) -> bool:
    """Whether the role, its template or a container of it is still to be filled in."""
    if not unfilled:
        return False
    steps = (at, (*at, *_CONTAINERS[:1]), (*at, *_CONTAINERS[:2]), (*at, *_CONTAINERS))
    return not unfilled.isdisjoint((*steps, *((*at, *_CONTAINERS, index) for index in deadline.each(range(count)))))


def _shares_memory(role: JSON, container: JSON) -> bool:
    """Whether something is mounted over the 64 MiB that a container runtime gives /dev/shm."""
    mounts = container.get("volumeMounts", [])
    return any(get(mount, ("mountPath",), "").rstrip("/") == _SHARED_MEMORY for mount in mounts) or (
        get(role, ("template", "spec", "hostIPC")) is True
    )
