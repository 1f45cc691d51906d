"""The JobSet that a TrainJob already has, and which of its replicated jobs have active pods.

Trainer gives the JobSet the TrainJob's name, and refuses changes of runtimePatches while pods of it are active
(kubeflow/trainer@8c0f5059bd51 pkg/runtime/framework/plugins/jobset/jobset.go checkRuntimePatchesImmutability).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from webhook.attributes import GroupVersionKind
from webhook.cluster.interest import reading
from webhook.facts.pods.containers import items, text, whole
from webhook.facts.subject import Subject
from webhook.facts.view import NAMESPACES
from webhook.paths import get
from webhook.problem import MissingObject

JOB_SET: Final = GroupVersionKind("jobset.x-k8s.io", "v1alpha2", "JobSet")
LOOKUPS: Final = (reading(JOB_SET, *(f"status.replicatedJobsStatus.{each}" for each in ("name", "active"))), NAMESPACES)


@dataclass(frozen=True, slots=True)
class ActiveJobs:
    """Replicated jobs that have active pods, or the JobSet without which nobody knows."""

    jobs: tuple[str, ...] = ()
    missing: tuple[MissingObject, ...] = ()


def active_jobs(subject: Subject) -> ActiveJobs:
    """Those of a TrainJob. In a whole cluster a JobSet that is not there is known not to be."""
    view, name = subject.view(), text(get(subject.object, ("metadata", "name")))
    found = view.get(JOB_SET, name) if name else None
    if name and found is None and not view.is_whole():
        return ActiveJobs(missing=tuple(each for listed in view.missing().values() for each in listed))
    listed = items(get(found, ("status", "replicatedJobsStatus")))
    return ActiveJobs(tuple(text(get(each, ("name",))) for each in listed if (whole(get(each, ("active",))) or 0) > 0))
