"""A job of the Training Operator or the MPI Operator as its rules read it: settings, and roles with their pods.

Of the types of its CRD. What is still to be filled in (`$`, `{{`) counts as not there, and can be asked for by its
path; a role whose containers cannot be told is open. Sources: kubeflow/trainer@3a3a1da8d528 (release-1.9)
pkg/apis/kubeflow.org/v1; kubeflow/mpi-operator@caa3c47fc42e pkg/apis/kubeflow/v2beta1/default.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from webhook.attributes import JSON, Operation
from webhook.deadline import Deadline
from webhook.facts.check import Group
from webhook.facts.subject import Subject
from webhook.facts.training_jobs.role import Role, Unfilled, read_role
from webhook.paths import FieldPath, get
from webhook.placeholders import is_placeholder

problem: Final = Group("training-job").problem
GROUP: Final = "kubeflow.org"
BETA: Final = "v2beta1"


@dataclass(frozen=True, slots=True)
class Kind:
    """Where a kind keeps its roles, the container that its operator prepares, and the roles that it may have.

    container: "" is the first one. roles: () is any.
    """

    field: str
    container: str
    roles: tuple[str, ...]


KINDS: Final[Mapping[str, Kind]] = {
    "PyTorchJob": Kind("pytorchReplicaSpecs", "pytorch", ("Master", "Worker")),
    "TFJob": Kind("tfReplicaSpecs", "tensorflow", ()),
    "MPIJob": Kind("mpiReplicaSpecs", "", ("Launcher", "Worker")),
    "XGBoostJob": Kind("xgbReplicaSpecs", "xgboost", ("Master", "Worker")),
    "PaddleJob": Kind("paddleReplicaSpecs", "paddle", ("Master", "Worker")),
    "JAXJob": Kind("jaxReplicaSpecs", "jax", ("Worker",)),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One job.

    Args:
        kind: one of KINDS.
        is_beta: whether it is the MPI Operator's, MPIJob of v2beta1; all others are the Training Operator's.
        name: "" where it has none yet.
        spec: what it says, without what is still to be filled in where no text belongs.
        old_spec: what it said before an update, null otherwise.
        roles: by their names, in the order of the object; a role that is null does not exist.
        is_open: whether nobody can tell which roles there will be.
        unfilled: where values are still to be filled in that are not texts, or cannot be decoded.
        deadline: is charged for what is walked.

    """

    kind: str
    is_beta: bool
    name: str
    spec: Mapping[str, JSON]
    old_spec: JSON
    roles: Mapping[str, Role]
    is_open: bool
    unfilled: Unfilled
    deadline: Deadline

    @property
    def roles_at(self) -> FieldPath:
        """Where its roles stand."""
        return ("spec", KINDS[self.kind].field)

    @property
    def a_kind(self) -> str:
        """Its kind with an article: `an MPIJob`."""
        return f"{'an' if self.kind in ('MPIJob', 'XGBoostJob') else 'a'} {self.kind}"

    def each_role(self) -> Iterable[Role]:
        """Its roles, charged to the deadline."""
        return self.deadline.each(self.roles.values())

    def given(self, *path: str) -> JSON:
        """What it says at a path below its spec; null for nothing, and for what is still to be filled in."""
        value = get(self.spec, path)
        return None if isinstance(value, str) and is_placeholder(value) else value

    def number(self, *path: str) -> int | None:
        """A number that it says."""
        number: int | None = self.given(*path)
        return number

    def is_unfilled(self, *path: str) -> bool:
        """Whether what stands at a path below its spec is still to be filled in."""
        value = get(self.spec, path)
        return ("spec", *path) in self.unfilled or (isinstance(value, str) and is_placeholder(value))

    def pods(self) -> int | None:
        """How many pods it makes; None where nobody can tell."""
        counts = [role.replicas for role in self.each_role()]
        known = [count for count in counts if count is not None]
        return None if self.is_open or len(known) < len(counts) else sum(known)


def read_job(subject: Subject) -> Job:
    """The job that a subject is."""
    name = subject.group_kind[1]
    is_beta = name == "MPIJob" and subject.attributes.kind.version == BETA
    unfilled = subject.omitted
    at: FieldPath = ("spec", KINDS[name].field)
    called = get(subject.object, ("metadata", "name"), "")
    is_update = subject.attributes.operation == Operation.UPDATE
    return Job(
        kind=name,
        is_beta=is_beta,
        name="" if is_placeholder(called) else called,
        spec=get(subject.object, ("spec",), {}),
        old_spec=get(subject.old_object, ("spec",), {}) if is_update else None,
        roles=_roles(name, get(subject.object, at, {}), unfilled, subject),
        is_open=bool(unfilled & {("spec",), at}),
        unfilled=unfilled,
        deadline=subject.deadline,
    )


def _roles(kind: str, given: Mapping[str, JSON], unfilled: Unfilled, subject: Subject) -> Mapping[str, Role]:
    """Every role; one that is null does not exist."""
    at: FieldPath = ("spec", KINDS[kind].field)
    open_roles: Mapping[str, JSON] = {str(path[2]): {} for path in subject.deadline.each(unfilled) if path[:-1] == at}
    return {
        # an MPIJob of either version has no workers where it does not say so
        name: read_role(
            value,
            path=(*at, name),
            main=KINDS[kind].container,
            default=int((kind, name) != ("MPIJob", "Worker")),
            unfilled=unfilled,
            subject=subject,
        )
        for name, value in subject.deadline.each({**given, **open_roles}.items())
    }
