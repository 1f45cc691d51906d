"""The rule groups of this package, and the classes with which rules read a job of the Training or the MPI Operator.

A job has settings and roles, and each role has a pod template. A field with a placeholder (`$`, `{{`) is read as a
field that is not set; `is_placeholder_at` says whether a field has a placeholder.

Sources: kubeflow/trainer@3a3a1da8d528 (release-1.9) pkg/apis/kubeflow.org/v1; kubeflow/mpi-operator@caa3c47fc42e
pkg/apis/kubeflow/v2beta1/default.go.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from webhook.apimachinery.attributes import JSON, GroupVersionKind, Operation
from webhook.apimachinery.paths import FieldPath, get
from webhook.deadline import Deadline
from webhook.facts.command_lines.command import LaunchedProgram, cached_launch_of_container
from webhook.facts.gpu.resources import count_gpus_of_resources, may_have_gpus_by_annotation
from webhook.facts.gpu.visible_devices import may_see_other_gpus
from webhook.facts.resource_units import cpu_count
from webhook.facts.subject import Subject
from webhook.rules.rule import RuleGroup
from webhook.typed.collections import Entries, Items
from webhook.typed.fields import OptionalNumber, Part, PartMap, Text
from webhook.typed.objects import Object
from webhook.typed.pods import Container, PodSpec, PodTemplate
from webhook.typed.view import Typed
from webhook.typed.volumes import VolumeMount
from webhook.yamltext.placeholders import is_placeholder

TRAINING_JOB: Final = RuleGroup(
    "training-job",
    refused_by="the Training Operator or the MPI Operator",
    source="kubeflow/trainer release-1.9 (3a3a1da8d528) pkg/webhooks",
    fails="create",
    refused_on_updates="pkg/webhooks, ValidateUpdate of the webhook of each kind",
    updates_of=("PyTorchJob", "TFJob", "XGBoostJob", "PaddleJob", "JAXJob"),
)
"""Mistakes that the Training Operator or the MPI Operator refuses, some of them only after the job is stored."""
TRAINING_JOB_ADVICE: Final = RuleGroup(
    "training-job",
    source="kubeflow/trainer release-1.9 (3a3a1da8d528) pkg/controller.v1/pytorch/envvar.go",
    level="warn",
    fails="silent",
)
"""Probable mistakes that the operators accept."""
GROUP: Final = "kubeflow.org"
BETA: Final = "v2beta1"
_SHARED_MEMORY: Final = "/dev/shm"  # noqa: S108 - a mount inside a container
_CONTAINERS: Final = ("template", "spec", "containers")
PROCESSES_OF_ELASTIC_POLICY: Final = ("elasticPolicy", "nProcPerNode")
"""The path below spec of the deprecated field for the number of processes."""
_CHARACTERS_PER_UNIT: Final = 100
"""A search for placeholders in this many characters costs one unit, about 2 microseconds."""


class ReplicaSpec(Typed):
    """kubeflow.org ReplicaSpec: one role of a job."""

    replicas = OptionalNumber()
    restart_policy = Text()
    template = Part(PodTemplate)


class PyTorchJobSpec(Typed):
    """kubeflow.org PyTorchJobSpec."""

    roles = PartMap(ReplicaSpec, name="pytorchReplicaSpecs")


class PyTorchJob(Object):
    """kubeflow.org PyTorchJob."""

    gvk = GroupVersionKind(GROUP, "v1", "PyTorchJob")
    spec = Part(PyTorchJobSpec)


class TFJobSpec(Typed):
    """kubeflow.org TFJobSpec."""

    roles = PartMap(ReplicaSpec, name="tfReplicaSpecs")


class TFJob(Object):
    """kubeflow.org TFJob."""

    gvk = GroupVersionKind(GROUP, "v1", "TFJob")
    spec = Part(TFJobSpec)


class MPIJobSpec(Typed):
    """kubeflow.org MPIJobSpec, of v1 and v2beta1."""

    roles = PartMap(ReplicaSpec, name="mpiReplicaSpecs")


class MPIJob(Object):
    """kubeflow.org MPIJob."""

    gvk = GroupVersionKind(GROUP, "v1", "MPIJob")
    spec = Part(MPIJobSpec)


class XGBoostJobSpec(Typed):
    """kubeflow.org XGBoostJobSpec."""

    roles = PartMap(ReplicaSpec, name="xgbReplicaSpecs")


class XGBoostJob(Object):
    """kubeflow.org XGBoostJob."""

    gvk = GroupVersionKind(GROUP, "v1", "XGBoostJob")
    spec = Part(XGBoostJobSpec)


class PaddleJobSpec(Typed):
    """kubeflow.org PaddleJobSpec."""

    roles = PartMap(ReplicaSpec, name="paddleReplicaSpecs")


class PaddleJob(Object):
    """kubeflow.org PaddleJob."""

    gvk = GroupVersionKind(GROUP, "v1", "PaddleJob")
    spec = Part(PaddleJobSpec)


class JAXJobSpec(Typed):
    """kubeflow.org JAXJobSpec."""

    roles = PartMap(ReplicaSpec, name="jaxReplicaSpecs")


class JAXJob(Object):
    """kubeflow.org JAXJob."""

    gvk = GroupVersionKind(GROUP, "v1", "JAXJob")
    spec = Part(JAXJobSpec)


AnyJob: TypeAlias = PyTorchJob | TFJob | MPIJob | XGBoostJob | PaddleJob | JAXJob


@dataclass(frozen=True, slots=True)
class TrainingJobKind:
    """Where the operator finds the roles and the main container in jobs of a kind.

    Args:
        field: the field of spec with the roles.
        container: the name of the container that the operator prepares; "" for the first container.
        roles: the names of the allowed roles; () if every name is allowed.
        type: the class with the typed fields of the kind.
    """

    field: str
    container: str
    roles: tuple[str, ...]
    type: type[AnyJob]


KINDS: Final[Mapping[str, TrainingJobKind]] = {
    "PyTorchJob": TrainingJobKind("pytorchReplicaSpecs", "pytorch", ("Master", "Worker"), PyTorchJob),
    "TFJob": TrainingJobKind("tfReplicaSpecs", "tensorflow", (), TFJob),
    "MPIJob": TrainingJobKind("mpiReplicaSpecs", "", ("Launcher", "Worker"), MPIJob),
    "XGBoostJob": TrainingJobKind("xgbReplicaSpecs", "xgboost", ("Master", "Worker"), XGBoostJob),
    "PaddleJob": TrainingJobKind("paddleReplicaSpecs", "paddle", ("Master", "Worker"), PaddleJob),
    "JAXJob": TrainingJobKind("jaxReplicaSpecs", "jax", ("Worker",), JAXJob),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingJobOfKind:
    """A job of the Training Operator or of the MPI Operator.

    Args:
        kind: a key of KINDS.
        is_beta: whether the job is an MPIJob of v2beta1. The MPI Operator runs these jobs, the Training Operator all
            other jobs.
        name: the name; "" if the job has no name, or a name with a placeholder.
        spec: the spec, without placeholders in fields that are not strings.
        old_spec: the spec before an update, None for other operations.
        roles: the roles by name, in the order of the object, without roles that are null.
        is_open: whether a placeholder replaces the spec or all roles.
        is_patch: whether the job is in a file, and no role has a list of containers. An API server sends whole jobs.
        unfilled: the paths of placeholders in place of a number, a list or a map, and of parts that cannot be decoded.
        deadline: the deadline that loops are charged to.
    """

    kind: str
    is_beta: bool
    name: str
    spec: Mapping[str, JSON]
    old_spec: JSON
    roles: Entries[RoleOfJob]
    is_open: bool
    is_patch: bool
    unfilled: frozenset[FieldPath]
    deadline: Deadline

    @property
    def roles_path(self) -> FieldPath:
        """Return the path of the map of roles, such as spec.pytorchReplicaSpecs."""
        return ("spec", KINDS[self.kind].field)

    @property
    def kind_with_article(self) -> str:
        """Return the job's kind with an article: `an MPIJob`."""
        return f"{'an' if self.kind in ('MPIJob', 'XGBoostJob') else 'a'} {self.kind}"

    def value_at(self, *path: str) -> JSON:
        """Return the value at a path below spec; None for an absent value or a placeholder."""
        value = get(self.spec, path)
        return None if self._is_placeholder(value) else value

    def number_at(self, *path: str) -> int | None:
        """Return the number at a path below spec; None if the field is not set or has a placeholder."""
        number: int | None = self.value_at(*path)
        return number

    def is_placeholder_at(self, *path: str) -> bool:
        """Return whether the value at a path below spec is a placeholder."""
        value = get(self.spec, path)
        return ("spec", *path) in self.unfilled or self._is_placeholder(value)

    def _is_placeholder(self, value: JSON) -> bool:
        """Return whether a value is a text with a placeholder. The search is charged, because a text may be long."""
        if not isinstance(value, str):
            return False
        self.deadline.spend(len(value) // _CHARACTERS_PER_UNIT)
        return is_placeholder(value)

    def count_pods(self) -> int | None:
        """Return how many pods the job creates; None if the number is not known."""
        counts = [role.replicas for role in self.roles.values()]
        known = [count for count in counts if count is not None]
        return None if self.is_open or len(known) < len(counts) else sum(known)


def read_job(subject: Subject) -> TrainingJobOfKind:
    """Return the object of a subject as a typed job."""
    name = subject.group_kind[1]
    job, before = subject.typed(KINDS[name].type), subject.typed_old(KINDS[name].type)
    is_update = subject.attributes.operation == Operation.UPDATE
    roles = _read_roles(name, job, subject)
    return TrainingJobOfKind(
        kind=name,
        is_beta=name == "MPIJob" and subject.attributes.kind.version == BETA,
        name="" if is_placeholder(job.name) else job.name,
        spec=job.spec.json,
        old_spec=before.spec.json if is_update else None,
        roles=roles,
        is_open=job.is_omitted("spec") or job.spec.is_omitted(KINDS[name].field),
        is_patch=subject.attributes.is_plain and not any(role.lists_containers for role in roles.values()),
        unfilled=subject.omitted,
        deadline=subject.deadline,
    )


def _read_roles(kind: str, job: AnyJob, subject: Subject) -> Entries[RoleOfJob]:
    """Return the roles without null roles. For a role that is a placeholder, no field is known."""
    at, reading = job.spec.path(KINDS[kind].field), subject.reading_context
    unfilled = [path for path in Items([*subject.omitted], subject.deadline) if path[:-1] == at]
    listed = {**job.spec.roles, **{str(path[-1]): ReplicaSpec.of(None, path, reading) for path in unfilled}}
    roles = {
        # replicas of the workers of an MPIJob are 0 by default, in both versions
        name: read_role(
            replica,
            main=KINDS[kind].container,
            default=int((kind, name) != ("MPIJob", "Worker")),
            subject=subject,
        )
        for name, replica in Entries(listed, subject.deadline).items()
    }
    return Entries(roles, subject.deadline)


@dataclass(frozen=True, slots=True, kw_only=True)
class RoleOfJob:
    """A role of a job.

    Args:
        name: Master, Worker, Launcher, PS …
        path: the path of the role.
        sets_replicas: whether the role sets replicas.
        replicas: the number of replicas, with the operator's default; None for a placeholder.
        restart_policy: the restart policy of the role, or "".
        pod_restart_policy: the restart policy of the pod template, or "".
        containers: the containers of the pod template.
        lists_containers: whether the pod template has a list of containers, which may be empty.
        is_open: whether the role, its pod template, its pod or a container is a placeholder, so that there may be more
            containers and values.
        has_main: whether the container that trains exists, or may be a container with a placeholder as its name.
        shares_memory: whether the container that trains has more shared memory than 64 MiB.
        limits_gpus: whether a container limits a resource with `gpu` in its name.
        gpus: GPUs of the container that trains.
        has_open_gpus: whether the number of GPUs is not known. The amount may be a placeholder. An annotation may give
            the pods a part of a GPU. Without GPUs, the container may see devices (`_may_see_devices`).
        null_gpus: the paths of GPU resources with a null amount.
        claims: the number of device claims of the container that trains.
        env: the names of variables of the container that trains; `*` if envFrom adds variables.
        cpus: the CPUs of the container that trains, rounded up.
        launch: what the command of the container that trains starts.
    """

    name: str
    path: FieldPath
    sets_replicas: bool
    replicas: int | None
    restart_policy: str
    pod_restart_policy: str
    containers: Items[Container]
    lists_containers: bool
    is_open: bool
    has_main: bool
    shares_memory: bool
    limits_gpus: bool
    gpus: int
    has_open_gpus: bool
    null_gpus: tuple[FieldPath, ...]
    claims: int
    env: frozenset[str]
    cpus: int
    launch: LaunchedProgram

    @property
    def template_path(self) -> FieldPath:
        """Return the path of the role's pod template."""
        return (*self.path, "template")

    @property
    def containers_path(self) -> FieldPath:
        """Return the path of the role's containers."""
        return (*self.path, *_CONTAINERS)

    @property
    def is_named(self) -> bool:
        """Return whether the role has a name without a placeholder."""
        return not is_placeholder(self.name)


def read_role(replica: ReplicaSpec, *, main: str, default: int, subject: Subject) -> RoleOfJob:
    """Read a role of a job.

    Args:
        replica: the role as the object has it; the last step of its path is the name of the role.
        main: the name of the container that trains; "" for the first container.
        default: the number of replicas if the role does not set replicas.
        subject: the job.
    """
    subject.deadline.spend(10)  # reading a role costs as much as ten steps of a loop
    pod = replica.template.spec
    chosen = next((container for container in pod.containers if container.name == main or not main), None)
    container = Container.of(None) if chosen is None else chosen
    resources, is_unfilled = container.resources, replica.is_omitted("replicas")
    gpus = count_gpus_of_resources(resources)
    written = {"limits": resources.written_limits, "requests": resources.written_requests}
    amounts = [
        (resources.path(field, name), amount)
        for field, amounts_of_field in written.items()
        for name, amount in amounts_of_field.items()
        if "gpu" in name
    ]
    return RoleOfJob(
        name=str(replica.at[-1]),
        path=replica.at,
        sets_replicas=replica.has("replicas"),
        replicas=None if is_unfilled else default if replica.replicas is None else replica.replicas,
        restart_policy=_text_unless_placeholder(replica.restart_policy),
        pod_restart_policy=_text_unless_placeholder(pod.restart_policy),
        containers=pod.containers,
        lists_containers=pod.has("containers"),
        is_open=_has_placeholder_part(replica),
        has_main=chosen is not None or any(is_placeholder(container.name) for container in pod.containers),
        shares_memory=pod.host_ipc or any(map(_is_shared_memory, container.volume_mounts)),
        limits_gpus=any("gpu" in name for one in pod.containers for name in one.resources.written_limits),
        gpus=gpus,
        has_open_gpus=any(is_placeholder(str(amount)) for _, amount in amounts)
        or may_have_gpus_by_annotation(replica.template.metadata)
        or (gpus == 0 and _may_see_devices(container, pod)),
        null_gpus=tuple(path for path, amount in amounts if amount is None),
        claims=len(resources.claims),
        env=frozenset((*container.environment.names, *(["*"] if container.env_from else []))),
        cpus=cpu_count(resources.json),
        launch=cached_launch_of_container(container, subject),
    )


def _may_see_devices(container: Container, pod: PodSpec) -> bool:
    """Return whether a container that requests no GPU may see GPUs, or devices that torchrun counts, such as NPUs.

    Another resource, a runtime class, NVIDIA_VISIBLE_DEVICES, or `privileged` may show devices.
    """
    sides = (container.resources.written_limits, container.resources.written_requests)
    amounts = [(name, amount) for side in sides for name, amount in side.items() if "/" in name]
    is_named = any(amount is not None and str(amount) != "0" for _, amount in amounts)
    return is_named or bool(pod.runtime_class_name) or may_see_other_gpus(container)


def _text_unless_placeholder(text: str) -> str:
    return "" if is_placeholder(text) else text


def _has_placeholder_part(replica: ReplicaSpec) -> bool:
    """Return whether the role, the pod template, its pod or a container is a placeholder."""
    omitted, pod = replica.reading.omitted, replica.template.spec
    if not omitted:
        return False
    places = (replica.at, replica.template.at, pod.at, pod.path("containers"))
    return any(place in omitted for place in (*places, *(container.at for container in pod.containers)))


def _is_shared_memory(mount: VolumeMount) -> bool:
    """Return whether a volume is mounted at /dev/shm, where the container runtime otherwise mounts 64 MiB."""
    return mount.mount_path.rstrip("/") == _SHARED_MEMORY
