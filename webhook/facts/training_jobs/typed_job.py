"""A job of the Training Operator or the MPI Operator as its rules read it: settings, and roles with their pods.

Of the types of its CRD. What is still to be filled in (`$`, `{{`) counts as not there, and can be asked for by its
path; a role whose containers cannot be told is open. Sources: kubeflow/trainer@3a3a1da8d528 (release-1.9)
pkg/apis/kubeflow.org/v1; kubeflow/mpi-operator@caa3c47fc42e pkg/apis/kubeflow/v2beta1/default.go.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from webhook.attributes import JSON, Operation
from webhook.deadline import Deadline
from webhook.facts.subject import Subject
from webhook.facts.training_jobs.role_pod_set import Role, read_role
from webhook.facts.training_jobs.types import (
    AnyJob,
    JAXJob,
    MPIJob,
    PaddleJob,
    PyTorchJob,
    ReplicaSpec,
    TFJob,
    XGBoostJob,
)
from webhook.paths import FieldPath, get
from webhook.placeholders import is_placeholder
from webhook.typed.collections import Entries, Items

BETA: Final = "v2beta1"


@dataclass(frozen=True, slots=True)
class Kind:
    """Where a kind keeps its roles, the container that its operator prepares, and the roles that it may have.

    container: "" is the first one. roles: () is any.
    """

    field: str
    container: str
    roles: tuple[str, ...]
    type: type[AnyJob]


KINDS: Final[Mapping[str, Kind]] = {
    "PyTorchJob": Kind("pytorchReplicaSpecs", "pytorch", ("Master", "Worker"), PyTorchJob),
    "TFJob": Kind("tfReplicaSpecs", "tensorflow", (), TFJob),
    "MPIJob": Kind("mpiReplicaSpecs", "", ("Launcher", "Worker"), MPIJob),
    "XGBoostJob": Kind("xgbReplicaSpecs", "xgboost", ("Master", "Worker"), XGBoostJob),
    "PaddleJob": Kind("paddleReplicaSpecs", "paddle", ("Master", "Worker"), PaddleJob),
    "JAXJob": Kind("jaxReplicaSpecs", "jax", ("Worker",), JAXJob),
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
    roles: Entries[Role]
    is_open: bool
    unfilled: frozenset[FieldPath]
    deadline: Deadline

    @property
    def roles_at(self) -> FieldPath:
        """Where its roles stand."""
        return ("spec", KINDS[self.kind].field)

    @property
    def a_kind(self) -> str:
        """Its kind with an article: `an MPIJob`."""
        return f"{'an' if self.kind in ('MPIJob', 'XGBoostJob') else 'a'} {self.kind}"

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
        counts = [role.replicas for role in self.roles.values()]
        known = [count for count in counts if count is not None]
        return None if self.is_open or len(known) < len(counts) else sum(known)


def read_job(subject: Subject) -> Job:
    """The job that a subject is."""
    name = subject.group_kind[1]
    job, before = subject.typed(KINDS[name].type), subject.typed_old(KINDS[name].type)
    is_update = subject.attributes.operation == Operation.UPDATE
    return Job(
        kind=name,
        is_beta=name == "MPIJob" and subject.attributes.kind.version == BETA,
        name="" if is_placeholder(job.name) else job.name,
        spec=job.spec.json,
        old_spec=before.spec.json if is_update else None,
        roles=_roles(name, job, subject),
        is_open=job.is_omitted("spec") or job.spec.is_omitted(KINDS[name].field),
        unfilled=subject.omitted,
        deadline=subject.deadline,
    )


def _roles(kind: str, job: AnyJob, subject: Subject) -> Entries[Role]:
    """Every role; one that is null does not exist, and of one that is still to be filled in nothing is known."""
    at, reading = job.spec.path(KINDS[kind].field), subject.reading
    unfilled = [path for path in Items([*subject.omitted], subject.deadline) if path[:-1] == at]
    listed = {**job.spec.roles, **{str(path[-1]): ReplicaSpec.of(None, path, reading) for path in unfilled}}
    roles = {
        # an MPIJob of either version has no workers where it does not say so
        name: read_role(
            replica,
            main=KINDS[kind].container,
            default=int((kind, name) != ("MPIJob", "Worker")),
            subject=subject,
        )
        for name, replica in Entries(listed, subject.deadline).items()
    }
    return Entries(roles, subject.deadline)
