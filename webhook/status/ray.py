"""Reads what KubeRay writes about RayClusters, RayJobs and RayServices.

Source: ray-project/kuberay@feeaf72f ray-operator/apis/ray/v1/raycluster_types.go and rayjob_types.go.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Final

from webhook.apimachinery.attributes import JSON
from webhook.apimachinery.paths import get
from webhook.status.refusals import read_refused_creation
from webhook.status.sources import ClusterReading
from webhook.status.statement import Statement, Turn, conditions_of, map_at, statement_about, text_at

_NOT_DEPLOYED: Final = {"DEPLOY_FAILED": "cannot deploy", "UNHEALTHY": "cannot keep all replicas of"}
"""The states of applications and deployments of Ray Serve that a person has to fix, with part of a sentence."""
_MOST_APPLICATIONS: Final = 10
_TEXT_OF_FAILURE: Final = {
    "AppFailed": "its entrypoint failed",
    "SubmissionFailed": "the job could not be submitted to the Ray cluster",
    "DeadlineExceeded": "it ran longer than activeDeadlineSeconds",
    "PreRunningDeadlineExceeded": "it did not run within preRunningDeadlineSeconds",
    "ValidationFailed": "KubeRay does not accept its spec",
}


def read_ray_cluster(cluster: JSON, reading: ClusterReading) -> Iterator[Statement]:
    """Yield the statements about a RayCluster."""
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
        sentence = "not all pods of the Ray cluster are ready yet"
        yield statement_about(cluster, "starting", Turn.SILENCE, sentence, "", words=provisioned.words)


def read_ray_service(service: JSON, reading: ClusterReading) -> Iterator[Statement]:
    """Yield statements about applications that Ray Serve cannot deploy, and about the readiness of a RayService."""
    yield from read_refused_creation(service, reading)
    if get(service, ("spec", "suspend"), False) is True:
        sentence = "it is suspended by spec.suspend"
        yield statement_about(
            service, "stuck", Turn.SUSPENDED, sentence, "set spec.suspend to false", words="spec.suspend is true"
        )
        return
    for status in ("pendingServiceStatus", "activeServiceStatus"):
        applications = map_at(service, ("status", status, "applicationStatuses"))
        for name, application in islice(applications.items(), _MOST_APPLICATIONS):
            if text_at(application, ("status",)) in _NOT_DEPLOYED:
                yield _failed_application(service, name, application)
    ready = conditions_of(service).get("Ready")
    if ready is not None and ready.status == "False":
        sentence = f"it is not ready yet{f': {ready.message}' if ready.message else ''}"
        yield statement_about(service, "starting", Turn.READINESS, sentence, words=ready.words)


def _failed_application(service: JSON, name: str, application: JSON) -> Statement:
    status, message = text_at(application, ("status",)), text_at(application, ("message",)).strip()
    deployments = (
        f"{deployment} is {text_at(each, ('status',))}: {text_at(each, ('message',)).strip()}"
        for deployment, each in map_at(application, ("serveDeploymentStatuses",)).items()
        if text_at(each, ("status",)) in _NOT_DEPLOYED
    )
    words = "; ".join(filter(None, (message, *islice(deployments, _MOST_APPLICATIONS))))
    sentence = f"Ray Serve {_NOT_DEPLOYED[status]} application {name}"
    fix = "fix what the message names in spec.serveConfigV2 or in the code of the application"
    return statement_about(
        service, "stuck", Turn.PROGRESS, sentence, fix, words=f"{status}: {words}" if words else status
    )


def read_ray_job(job: JSON, reading: ClusterReading) -> Iterator[Statement]:
    """Yield the statements about a RayJob."""
    status, reason = text_at(job, ("status", "jobDeploymentStatus")), text_at(job, ("status", "reason"))
    message = text_at(job, ("status", "message")).strip()
    words = ": ".join(filter(None, (reason, message))) or f"status.jobDeploymentStatus is {status}"
    if status == "Complete":
        yield statement_about(job, "done", Turn.ENDED, "it is complete", "", words=words)
    elif status in ("Failed", "ValidationFailed"):
        reason_text = _TEXT_OF_FAILURE.get(reason or status, "")
        fix = "fix this, then create it again"
        yield statement_about(
            job, "failed", Turn.ENDED, f"the RayJob failed{f': {reason_text}' if reason_text else ''}", fix, words=words
        )
    elif get(job, ("spec", "suspend"), False) is True:
        sentence = "it is suspended by spec.suspend"
        yield statement_about(
            job, "stuck", Turn.SUSPENDED, sentence, "set spec.suspend to false", words="spec.suspend is true"
        )
    else:
        yield from read_refused_creation(job, reading)
