"""A TrainJob as Kubeflow Trainer will run it, merged with its runtime; made once for each object of a request.

Without the runtime it is what the TrainJob itself carries, and the runtime is missing. Rules of merging are in
runtime_merge.py, those of counting in processes.py. Knows no rule about what is wrong.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache

from webhook.attributes import JSON, GroupVersionKind
from webhook.deadline import Deadline
from webhook.facts.kinds import TRAIN_JOB
from webhook.facts.subject import Subject
from webhook.facts.train_job_pods import overlays
from webhook.facts.train_job_pods.fields import pruned_once
from webhook.facts.train_job_pods.installation import Installation, installed
from webhook.facts.train_job_pods.lookups import CLUSTER_RUNTIME, RUNTIME
from webhook.facts.train_job_pods.merged_job_set import MergedJobSet
from webhook.facts.train_job_pods.nodes import (
    container_of,
    counted_resources,
    name_of,
    node_count,
    node_job,
    parallelism,
    replicas,
)
from webhook.facts.train_job_pods.processes import Processes, gpu_count, plugin
from webhook.facts.train_job_pods.runtime_merge import merge
from webhook.facts.train_job_pods.runtime_reference import Runtime
from webhook.facts.view import View
from webhook.paths import get
from webhook.problem import MissingObject
from webhook.releases import Release
from webhook.same import Same
from webhook.schema import decode_object
from webhook.workloads.podsets import PodSet, group_kind

_POD = ("template", "spec", "template")


@dataclass(frozen=True, kw_only=True)
class TrainJob:
    """A TrainJob and what becomes of it.

    Args:
        object: the TrainJob; {} for anything else.
        release: the release of Trainer.
        takes_claims: whether it runs with its feature gate for device claims.
        runtime: what it refers to.
        merged: the JobSet that Trainer makes, and what became of all that was merged.
        nodes: how many nodes train.
        processes: how many processes start on each.
        deadline: is charged for what is walked.
        missing: the runtime, where it is not there.
    """

    object: JSON
    release: Release
    takes_claims: bool
    runtime: Runtime
    merged: MergedJobSet
    nodes: int
    processes: Processes
    deadline: Deadline = field(default_factory=Deadline)
    missing: tuple[MissingObject, ...] = ()

    @cached_property
    def spec(self) -> JSON:
        """The spec of the TrainJob."""
        return self.object.get("spec", {})

    @cached_property
    def trainer(self) -> JSON:
        """`spec.trainer`."""
        return self.spec.get("trainer", {})

    @cached_property
    def env_places(self) -> Mapping[str, int]:
        """Where `spec.trainer.env` has a variable first, by its name: each of many may be a problem."""
        places: dict[str, int] = {}
        for index, variable in enumerate(self.deadline.each(self.trainer.get("env") or ())):
            places.setdefault(name_of(variable), index)
        return places

    @cached_property
    def plugin(self) -> str:
        """The plugin of the runtime, "" where that is not known."""
        return plugin(self.runtime.spec) if self.runtime.is_found else ""

    @cached_property
    def jobs(self) -> JSON:
        """The replicated jobs, merged."""
        return self.merged.spec.get("replicatedJobs", [])

    @cached_property
    def node_job(self) -> JSON:
        """The replicated job whose `node` container Trainer reads."""
        return node_job(self.merged.spec)

    @cached_property
    def node(self) -> JSON:
        """That container, merged."""
        return container_of(self.node_job, "node")

    def origin(self, *, is_own: bool) -> str:
        """Where a problem of what stands nowhere in the TrainJob is told.

        Args:
            is_own: whether the runtime has it by itself, so that no patch can be its reason.

        Returns: the rendered path of the runtime's reference, or of all patches.
        """
        patches = overlays.field(self.release)
        return f"spec.{patches}" if self.spec.get(patches) and not is_own else "spec.runtimeRef"

    @property
    def scheduler(self) -> str:
        """Who schedules its pods together: `volcano`, `coscheduling` or "" for nobody."""
        policy = self.runtime.spec.get("podGroupPolicy", {})
        return next((name for name in ("volcano", "coscheduling") if policy.get(name) is not None), "")

    @cached_property
    def counted(self) -> tuple[int, bool]:
        """GPUs that Trainer counts, and whether several resources contain `gpu`, of which it takes any one."""
        return gpu_count(counted_resources(self.object, self.merged.spec))


def train_job(subject: Subject) -> TrainJob:
    """A TrainJob, to be asked for with `Subject.once`; the same for all policies that know the same of Trainer."""
    known = subject.once(installed)
    return subject.cluster.once((TrainJob, Same(subject.object), known), lambda: _train_job(subject, known))


def _train_job(subject: Subject, known: Installation) -> TrainJob:
    is_job = group_kind(subject.object) == TRAIN_JOB
    view, release = subject.view(), known.release
    obj = pruned_once(subject.object, "TrainJob", release, view) if is_job else {}
    runtime = find(get(obj, ("spec", "runtimeRef"), {}), view)
    merged = merge(obj, runtime, release, view.deadline) if runtime.is_found else MergedJobSet(spec={})
    return TrainJob(
        object=obj,
        release=release,
        takes_claims=known.takes_claims,
        runtime=runtime,
        merged=merged,
        nodes=node_count(obj, runtime.spec, merged.spec.get("replicatedJobs", [])) if is_job else 0,
        processes=merged.processes,
        deadline=view.deadline,
        missing=view.all_missing(),
    )


def find(reference: JSON, view: View) -> Runtime:
    """The runtime that a TrainJob names; what is not found is `missing` in the view."""
    kind = RUNTIME if reference.get("kind") == RUNTIME.kind else CLUSTER_RUNTIME
    name = reference.get("name", "")
    runtime = view.get(kind, name, namespaced=kind is RUNTIME) if name else None
    return Runtime(
        kind=kind, name=name, object=None if runtime is None else _decoded(_Held(Same(runtime), kind, view.deadline))
    )


@dataclass(frozen=True, slots=True)
class _Held:
    """A runtime as the cluster has it; until when it may be read makes no difference to what it is."""

    runtime: Same
    kind: GroupVersionKind
    deadline: Deadline = field(compare=False)


@lru_cache(maxsize=16)
def _decoded(held: _Held) -> JSON:
    """A runtime, decoded once for all TrainJobs until the cluster has another object in its place."""
    return decode_object(held.runtime.held, held.kind, held.deadline).value or {}


def runtime_podsets(job: TrainJob) -> tuple[PodSet, ...]:
    """The pod sets of the merged JobSet. They stand nowhere in the TrainJob: the path is where it names the runtime."""
    return tuple(
        PodSet(
            name=name_of(each),
            path=("spec", "runtimeRef"),
            template=template,
            count=replicas(each) * parallelism(each),
            elsewhere=True,
        )
        for each in job.jobs
        if (template := get(each, _POD)) is not None
    )
