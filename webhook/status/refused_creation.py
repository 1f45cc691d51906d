"""Why the API server refused an object that a controller wanted to create: quota, Pod Security, a webhook, a name.

The API server writes the message. The controller repeats it in an event FailedCreate or in a condition.
Source: k8s.io/apiserver v1.36 pkg/admission/plugin (resourcequota, policy/validating, webhook), and
k8s.io/pod-security-admission v0.36 admission/admission.go.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from webhook.apimachinery.attributes import JSON
from webhook.status.sources import ClusterReading, event_words, time_of_event
from webhook.status.statement import Statement, Turn, conditions_of, name_of, number_at, text_at, true_condition

_EVENTS: Final = (
    *("FailedCreate", "FailedCreatePod", "FailedCreateHeadPod", "FailedCreateWorkerPod", "FailedToCreateHeadPod"),
    *("FailedToCreateWorkerPod", "TrainJobResourcesCreationFailed", "JobCreationFailed", "FailedCreateWorkload"),
)
"""Reasons of events about objects that could not be created, by Kubernetes, Trainer, JobSet, KubeRay and Kueue."""


def read_refused_creation(owner: JSON, reading: ClusterReading) -> Iterator[Statement]:
    """Yield why objects that a controller creates for an object were refused, from its conditions, else its events."""
    failed = true_condition(conditions_of(owner), "ReplicaFailure", "RayClusterReplicaFailure")
    message, words, last_seen = (failed.message, failed.words, "") if failed else ("", "", "")
    if not message:
        for event in reading.events(owner):
            if text_at(event, ("reason",)) in _EVENTS:
                message, words = text_at(event, ("message",)).strip(), event_words(event)
                last_seen = time_of_event(event)
                break
    if message:
        says, fix = why_refused(message)
        if number_at(owner, ("status", "replicas")):
            says = says.replace("its pods are not created", "no more of its pods are created", 1)
        yield Statement(
            about=name_of(owner),
            standing="stuck",
            turn=Turn.NOT_MADE,
            says=says,
            fix=fix,
            words=words,
            last_seen=last_seen,
        )


def why_refused(message: str) -> tuple[str, str]:
    """Return a sentence and a fix for the message of a refused creation."""
    if "exceeded quota: " in message:
        name = message.partition("exceeded quota: ")[2].partition(",")[0].strip()
        says = f"its pods are not created, because ResourceQuota {name} of the namespace is used up"
        return says, "ask for less, end other jobs of the namespace, or ask the administrator to raise the quota"
    if "failed quota: " in message:
        name = message.partition("failed quota: ")[2].partition(":")[0].strip()
        says = f"its pods are not created, because ResourceQuota {name} demands requests or limits that they lack"
        return says, "set what the message names for every container"
    if 'violates PodSecurity "' in message:
        level = message.partition('violates PodSecurity "')[2].partition('"')[0]
        says = f"its pods are not created, because they break Pod Security `{level}` of the namespace"
        return says, "change the fields that the message names, or use a namespace with a wider level"
    if "failed calling webhook" in message:
        name = _quoted(message, "failed calling webhook ")
        says = f"its pods are not created, because admission webhook {name} does not answer"
        return says, "ask the administrator of that webhook: its pods, its Service or its certificate are at fault"
    if "admission webhook" in message and "denied the request" in message:
        name = _quoted(message, "admission webhook ")
        says = f"its pods are not created, because admission webhook {name} denies them"
        return says, "change what the message names"
    if "ValidatingAdmissionPolicy" in message:
        name = _quoted(message, "ValidatingAdmissionPolicy ")
        return f"its pods are not created, because policy {name} denies them", "change what the message names"
    if "serviceaccount" in message and "not found" in message:
        return "its pods are not created, because their ServiceAccount does not exist", "create it, or name another"
    if "no PriorityClass with name" in message:
        return "its pods are not created, because their PriorityClass does not exist", "create it, or name another"
    return "what it makes is refused by the API server", "change what the message names, then create it again"


def _quoted(message: str, before: str) -> str:
    """Return the name in quotes after some words."""
    after = message.partition(before)[2]
    return after[1:].partition(after[:1])[0] if after[:1] in ("'", '"') else after.partition(" ")[0]
