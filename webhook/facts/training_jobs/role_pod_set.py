"""One role of a training job: its pods, and of its main container the devices, variables and how processes start."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from webhook.facts.command_lines.command import Launch, launched_by
from webhook.facts.gpu.resources import gpus_of
from webhook.facts.resource_units import cpu_count
from webhook.facts.subject import Subject
from webhook.facts.training_jobs.types import ReplicaSpec
from webhook.paths import FieldPath
from webhook.placeholders import is_placeholder
from webhook.typed.collections import Items
from webhook.typed.pods import Container
from webhook.typed.volumes import VolumeMount

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
    containers: Items[Container]
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


def read_role(replica: ReplicaSpec, *, main: str, default: int, subject: Subject) -> Role:
    """A role of a job.

    Args:
        replica: what stands there; the last step of its place is its name.
        main: the name of the container that trains; "" is the first one.
        default: its replicas where it does not say how many.
        subject: the job.

    """
    subject.deadline.spend(10)  # a role is as much work as some loops
    pod = replica.template.spec
    chosen = next((container for container in pod.containers if container.name == main or not main), None)
    container = Container.of(None) if chosen is None else chosen
    resources, is_unfilled = container.resources, replica.is_omitted("replicas")
    written = (*resources.written_limits.items(), *resources.written_requests.items())
    amounts = [(name, amount) for name, amount in written if "gpu" in name]
    return Role(
        name=str(replica.at[-1]),
        path=replica.at,
        is_given=replica.has("replicas"),
        replicas=None if is_unfilled else default if replica.replicas is None else replica.replicas,
        restart_policy=_filled(replica.restart_policy),
        pod_restart_policy=_filled(pod.restart_policy),
        containers=pod.containers,
        is_open=_is_open(replica),
        has_main=chosen is not None or any(is_placeholder(container.name) for container in pod.containers),
        shares_memory=pod.host_ipc or any(map(_is_shared_memory, container.volume_mounts)),
        limits_gpus=any("gpu" in name for one in pod.containers for name in one.resources.written_limits),
        gpus=gpus_of(resources),
        has_open_gpus=any(is_placeholder(str(amount)) for _, amount in amounts),
        null_gpus=tuple(name for name, amount in amounts if amount is None),
        claims=len(resources.claims),
        env=frozenset((*container.environment.names, *(["*"] if container.env_from else []))),
        cpus=cpu_count(resources.json),
        launch=launched_by(container, subject),
    )


def _filled(text: str) -> str:
    return "" if is_placeholder(text) else text


def _is_open(replica: ReplicaSpec) -> bool:
    """Whether the role, its template or a container of it is still to be filled in."""
    omitted, pod = replica.reading.omitted, replica.template.spec
    if not omitted:
        return False
    places = (replica.at, replica.template.at, pod.at, pod.path("containers"))
    return any(place in omitted for place in (*places, *(container.at for container in pod.containers)))


def _is_shared_memory(mount: VolumeMount) -> bool:
    """Whether something is mounted over the 64 MiB that a container runtime gives /dev/shm."""
    return mount.mount_path.rstrip("/") == _SHARED_MEMORY
