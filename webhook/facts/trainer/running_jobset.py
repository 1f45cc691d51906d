"""The JobSet that a TrainJob already has, and which of its replicated jobs have active pods.

Trainer gives the JobSet the TrainJob's name, and refuses changes of runtimePatches while pods of it are active
(kubeflow/trainer@8c0f5059bd51 pkg/runtime/framework/plugins/jobset/jobset.go checkRuntimePatchesImmutability).
"""

from __future__ import annotations

from typing import Final

from webhook.attributes import JSON, GroupVersionKind
from webhook.cluster.interest import reading
from webhook.facts.pods.containers import items, text, whole
from webhook.facts.view import NAMESPACES, View
from webhook.paths import get

JOB_SET: Final = GroupVersionKind("jobset.x-k8s.io", "v1alpha2", "JobSet")
LOOKUPS: Final = (reading(JOB_SET, *(f"status.replicatedJobsStatus.{each}" for each in ("name", "active"))), NAMESPACES)


def running(obj: JSON, view: View) -> JSON:
    """The fact `running` of one object. In a whole cluster a JobSet that is not there is known not to be."""
    name = text(get(obj, ("metadata", "name")))
    seen = view.unnoted() if view.is_whole() else view
    job_set = seen.get(JOB_SET, name) if name else None
    active = [
        text(get(each, ("name",)))
        for each in items(get(job_set, ("status", "replicatedJobsStatus")))
        if (whole(get(each, ("active",))) or 0) > 0
    ]
    return {"found": job_set is not None, "active": active}
