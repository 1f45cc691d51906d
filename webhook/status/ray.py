"""Statements of KubeRay about RayClusters, RayJobs and RayServices.

Source: ray-project/kuberay@feeaf72f ray-operator/apis/ray/v1/raycluster_types.go and rayjob_types.go.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from webhook.apimachinery.attributes import JSON
from webhook.apimachinery.paths import get
from webhook.status.refused_creation import read_refused_creation
from webhook.status.sources import ClusterReading
from webhook.status.statement import Statement, Turn, conditions_of, statement_about, text_at

_ENDED: Final = {
    "AppFailed": "its entrypoint failed",
    "SubmissionFailed": "the job could not be submitted to the Ray cluster",
    "DeadlineExceeded": "it ran longer than activeDeadlineSeconds",
    "PreRunningDeadlineExceeded": "it did not run within preRunningDeadlineSeconds",
    "ValidationFailed": "KubeRay does not accept its spec",
}


def read_ray_cluster(cluster: JSON, reading: ClusterReading) -> Iterator[Statement]:
    """Yield what KubeRay says of a RayCluster."""
    yield from read_refused_creation(cluster, reading)
    if get(cluster, ("spec", "suspend"), False) is True:
        yield statement_about(
            cluster,
            "stuck",
            Turn.SUSPENDED,
            "it is suspended by spec.suspend",
            "set spec.suspend to false",
            words="spec.suspend is true",
        )
        return
    conditions = conditions_of(cluster)
    provisioned = conditions.get("RayClusterProvisioned")
    state, reason = text_at(cluster, ("status", "state")), text_at(cluster, ("status", "reason")).strip()
    if state == "failed":
        yield statement_about(
            cluster,
            "stuck",
            Turn.PROGRESS,
            "KubeRay cannot make the cluster",
            "fix what the message names",
            words=reason,
        )
    elif provisioned is not None and provisioned.status == "False":
        says = "not all pods of the Ray cluster are ready yet"
        yield statement_about(cluster, "starting", Turn.SILENCE, says, "", words=provisioned.words)


def read_ray_job(job: JSON, reading: ClusterReading) -> Iterator[Statement]:
    """Yield what KubeRay says of a RayJob."""
    status, reason = text_at(job, ("status", "jobDeploymentStatus")), text_at(job, ("status", "reason"))
    message = text_at(job, ("status", "message")).strip()
    words = ": ".join(filter(None, (reason, message))) or f"status.jobDeploymentStatus is {status}"
    if status == "Complete":
        yield statement_about(job, "done", Turn.ENDED, "it is complete", "", words=words)
    elif status in ("Failed", "ValidationFailed"):
        why = _ENDED.get(reason or status, "")
        fix = "fix this, then create it again"
        yield statement_about(
            job, "failed", Turn.ENDED, f"the RayJob failed{f': {why}' if why else ''}", fix, words=words
        )
    elif get(job, ("spec", "suspend"), False) is True:
        says = "it is suspended by spec.suspend"
        yield statement_about(
            job, "stuck", Turn.SUSPENDED, says, "set spec.suspend to false", words="spec.suspend is true"
        )
    else:
        yield from read_refused_creation(job, reading)
