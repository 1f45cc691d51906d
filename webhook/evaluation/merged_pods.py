"""The pods of a request that stand nowhere in its object: those of TrainJobs, merged, and those that nobody can read.

A policy with `expand: pods` is evaluated on the pods that Trainer makes of a TrainJob and its runtime. What it says of
a field is told where the field comes from: spec.trainer, the patches, or the runtime. Without the runtime the pods are
not known, and neither are those of kinds whose controllers make pods of parts. Of the latter only files are told: in a
cluster, the pods come to the policy themselves.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from webhook.apimachinery.attributes import JSON, Attributes
from webhook.apimachinery.paths import FieldPath, get, path_as_text
from webhook.facts.kinds import TRAIN_JOB
from webhook.facts.pods.unread_pods import kinds_of_parts
from webhook.facts.subject import Subject
from webhook.facts.train_job_pods.merged_train_job import merge_train_job
from webhook.facts.train_job_pods.virtual_pods import VirtualPod, virtual_pods
from webhook.facts.view import ClusterView
from webhook.rules.problem import MissingObject
from webhook.workloads.embedded import embedded_objects
from webhook.workloads.podsets import PodSet, group_kind
from webhook.workloads.table import Table


@dataclass(frozen=True, slots=True, kw_only=True)
class MergedPod:
    """The pod of one replicated job of a TrainJob, which is at `path` in the request's object; () is the object."""

    path: FieldPath
    virtual: VirtualPod

    @property
    def podset(self) -> PodSet:
        """Return the pod set; its place is where the TrainJob names the runtime."""
        job = self.virtual.replicated_job
        return PodSet(
            name=self.virtual.name,
            path=(*self.path, "spec", "runtimeRef"),
            template=job.pod_template.json,
            count=job.replicas * job.parallelism,
            elsewhere=True,
        )

    def locate(self, path: FieldPath, message: str) -> tuple[str, str]:
        """Return where a field of the pod comes from, and the message about it with that place."""
        at = self.virtual.path_in_trainer_spec(path) if path else None
        if at is not None:
            place = path_as_text((*self.path, *at))
            return place, f"{place}{message}"
        runtime = self.virtual.job.runtime
        own = {job.name: job.pod_template.json for job in runtime.replicated_jobs}.get(self.virtual.name)
        is_own = own is not None and get(own, path) == get(self.podset.template, path)
        origin = self.virtual.job.path_for_runtime_problem(is_own=is_own)
        place = f"{path_as_text(self.path)}.{origin}" if self.path else origin
        where = f"{path_as_text(path)}{message}" if path else message
        return place, f"{place}: in replicated job `{self.virtual.name}` of {runtime}{', ' if path else ': '}{where}"


@dataclass(frozen=True, slots=True)
class PodsOutsideObject:
    """The merged pods of a request's object, with those of its former state by place and name, and what is missing."""

    pods: tuple[MergedPod, ...] = ()
    before: tuple[MergedPod, ...] = ()
    missing: tuple[MissingObject, ...] = ()


def pods_outside_object(attributes: Attributes, table: Table, view: ClusterView) -> PodsOutsideObject:
    """Return the pods of a request's object that stand nowhere in it.

    Raises:
        LookupFailed: nobody can say which release of Trainer is installed.
    """
    now, before = attributes.object, attributes.old_object
    jobs = [*_train_jobs(now if now is not None else before, table, view)]
    obj = now if now is not None else before
    unread = kinds_of_parts(obj, table, view.deadline) if attributes.is_plain else ()
    missing = [MissingObject(kind=kind, name="", why="makes pods of parts, which are not read") for kind in unread]
    if not jobs:
        return PodsOutsideObject(missing=tuple(missing))
    pods: list[MergedPod] = []
    for path, obj in jobs:
        subject = Subject(object=obj, old_object=None, attributes=attributes, cluster=view, table=table)
        missing += subject.once(merge_train_job).missing
        pods += (MergedPod(path=path, virtual=each) for each in subject.once(virtual_pods))
    old = (
        pods_outside_object(replace(attributes, object=before, old_object=None), table, view).pods
        if now and before
        else ()
    )
    return PodsOutsideObject(tuple(pods), old, tuple(dict.fromkeys(missing)))


def _train_jobs(obj: JSON, table: Table, view: ClusterView) -> Iterator[tuple[FieldPath, JSON]]:
    """Yield the TrainJobs in an object, which may be one itself, with their paths."""
    if group_kind(obj) == TRAIN_JOB:
        yield (), obj
    for inner in view.deadline.items_with_clock_checks(embedded_objects(obj, table, view.deadline)):
        if group_kind(inner.object) == TRAIN_JOB:
            yield inner.path, inner.object
