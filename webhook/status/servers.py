"""Statements of controllers of servers: Deployment, ReplicaSet, StatefulSet, DaemonSet, LeaderWorkerSet, and others.

Source: k8s.io/api v0.36 apps/v1/types.go; kubernetes-sigs/lws@060ab4d api/leaderworkerset/v1.
"""

from __future__ import annotations

from collections.abc import Iterator

from webhook.apimachinery.attributes import JSON
from webhook.apimachinery.paths import get
from webhook.status.refused_creation import read_refused_creation
from webhook.status.sources import ClusterReading
from webhook.status.statement import Statement, Turn, conditions_of, name_of, number_at, text_at, true_condition


def read_pods_of_set(owner: JSON, reading: ClusterReading) -> Iterator[Statement]:
    """Yield why a ReplicaSet, StatefulSet or DaemonSet lacks pods."""
    wanted = get(owner, ("spec", "replicas"), get(owner, ("status", "desiredNumberScheduled"), 1))
    made = number_at(owner, ("status", "replicas")) or number_at(owner, ("status", "currentNumberScheduled"))
    if wanted != made:
        yield from read_refused_creation(owner, reading)


def read_deployment(deployment: JSON, reading: ClusterReading) -> Iterator[Statement]:
    """Yield the statements of a Deployment's status about its rollout."""
    yield from read_refused_creation(deployment, reading)
    about, conditions = name_of(deployment), conditions_of(deployment)
    if get(deployment, ("spec", "replicas"), 1) == 0:
        says, fix = "spec.replicas is 0, so it has no pod", "set spec.replicas, or correct the autoscaler that set it"
        yield Statement(about=about, standing="stuck", turn=Turn.SUSPENDED, says=says, fix=fix)
    progressing = conditions.get("Progressing")
    if progressing is not None and progressing.status == "False":
        says = "the rollout made no progress within progressDeadlineSeconds"
        fix = "find out why its pods are not ready, and fix it"
        yield Statement(about=about, standing="stuck", turn=Turn.PROGRESS, says=says, fix=fix, words=progressing.words)
    if get(deployment, ("spec", "paused"), False) is True:
        says = "the rollout is paused by spec.paused, so a changed template makes no pods"
        yield Statement(about=about, standing="stuck", turn=Turn.PROGRESS, says=says, fix="set spec.paused to false")


def read_conditions_of_server(server: JSON, reading: ClusterReading) -> Iterator[Statement]:
    """Yield what the conditions of another kind say: of an InferenceService, a LeaderWorkerSet, a NIMService."""
    yield from read_refused_creation(server, reading)
    conditions = conditions_of(server)
    if failed := true_condition(conditions, "Failed"):
        says, about = f"the {text_at(server, ('kind',))} failed", name_of(server)
        yield Statement(about=about, standing="failed", turn=Turn.ENDED, says=says, words=failed.words)
        return
    if done := true_condition(conditions, "Complete", "Completed", "Succeeded"):
        yield Statement(
            about=name_of(server), standing="done", turn=Turn.ENDED, says="it is complete", words=done.words
        )
        return
    for name in ("Ready", "Available"):
        condition = conditions.get(name)
        if condition is not None and condition.status == "False":
            says = f"it is not ready yet{f': {condition.message}' if condition.message else ''}"
            yield Statement(
                about=name_of(server), standing="starting", turn=Turn.READINESS, says=says, words=condition.words
            )
            return
