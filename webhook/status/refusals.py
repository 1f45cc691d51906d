"""Explains messages about objects that an API server refused to create, and about pods and gangs without nodes.

A controller copies the API server's message into an event FailedCreate or into a condition. Source: k8s.io/apiserver
v1.36 pkg/admission/plugin (resourcequota, policy/validating, webhook), and k8s.io/pod-security-admission v0.36
admission/admission.go.

A scheduler's message has the number of nodes for each reason. Volcano may leave out the numbers, and writes
`unavailable`. Source: k8s.io/kubernetes v1.36 pkg/scheduler/framework/types.go FitError.Error and the plugins'
ErrReason texts; volcano-sh/volcano@ed72c7c8 pkg/scheduler/api/unschedule_info.go.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from webhook.apimachinery.attributes import JSON
from webhook.status.sources import ClusterReading, event_words, time_of_event
from webhook.status.statement import (
    Standing,
    Statement,
    Turn,
    conditions_of,
    name_of,
    number_at,
    text_at,
    true_condition,
)
from webhook.text.wording import counted

_EVENTS: Final = (
    *("FailedCreate", "FailedCreatePod", "FailedCreateHeadPod", "FailedCreateWorkerPod", "FailedToCreateHeadPod"),
    *("FailedToCreateWorkerPod", "TrainJobResourcesCreationFailed", "JobCreationFailed", "FailedCreateWorkload"),
)
"""The reasons of events about objects that Kubernetes, Trainer, JobSet, KubeRay or Kueue could not create."""


def read_refused_creation(owner: JSON, reading: ClusterReading) -> Iterator[Statement]:
    """Yield why the objects of an owner's controller were refused: from the owner's conditions, or otherwise from its
    events.
    """
    failed = true_condition(conditions_of(owner), "ReplicaFailure", "RayClusterReplicaFailure")
    message, words, last_seen = (failed.message, failed.words, "") if failed else ("", "", "")
    if not message:
        for event in reading.events(owner):
            if text_at(event, ("reason",)) in _EVENTS:
                message, words = text_at(event, ("message",)).strip(), event_words(event)
                last_seen = time_of_event(event)
                break
    if message:
        sentence, fix = why_refused(message)
        if number_at(owner, ("status", "replicas")):
            sentence = sentence.replace("its pods are not created", "no more of its pods are created", 1)
        yield Statement(
            about=name_of(owner),
            standing="stuck",
            turn=Turn.NOT_MADE,
            sentence=sentence,
            fix=fix,
            words=words,
            last_seen=last_seen,
        )


def why_refused(message: str) -> tuple[str, str]:
    """Return a sentence and a fix for the message of a refused creation."""
    if "exceeded quota: " in message:
        name = message.partition("exceeded quota: ")[2].partition(",")[0].strip()
        sentence = f"its pods are not created, because ResourceQuota {name} of the namespace is used up"
        return sentence, "ask for less, end other jobs of the namespace, or ask the administrator to raise the quota"
    if "failed quota: " in message:
        name = message.partition("failed quota: ")[2].partition(":")[0].strip()
        sentence = (
            f"its pods are not created, because ResourceQuota {name} demands requests or limits that the pods lack"
        )
        return sentence, "set what the message names for every container"
    if 'violates PodSecurity "' in message:
        level = message.partition('violates PodSecurity "')[2].partition('"')[0]
        sentence = f"its pods are not created, because they break Pod Security `{level}` of the namespace"
        return sentence, "change the fields that the message names, or use a namespace with a wider level"
    if "failed calling webhook" in message:
        name = _quoted(message, "failed calling webhook ")
        sentence = f"its pods are not created, because admission webhook {name} does not answer"
        return sentence, "ask the administrator of that webhook: its pods, its Service or its certificate are at fault"
    if "admission webhook" in message and "denied the request" in message:
        name = _quoted(message, "admission webhook ")
        sentence = f"its pods are not created, because admission webhook {name} denies them"
        return sentence, "change what the message names"
    if "ValidatingAdmissionPolicy" in message:
        name = _quoted(message, "ValidatingAdmissionPolicy ")
        return f"its pods are not created, because policy {name} denies them", "change what the message names"
    if "serviceaccount" in message and "not found" in message:
        return "its pods are not created, because their ServiceAccount does not exist", "create it, or name another"
    if "no PriorityClass with name" in message:
        return "its pods are not created, because their PriorityClass does not exist", "create it, or name another"
    return "the API server refuses the objects that it creates", "change what the message names, then create it again"


def _quoted(message: str, before: str) -> str:
    """Return the name in quotes after some words."""
    after = message.partition(before)[2]
    return after[1:].partition(after[:1])[0] if after[:1] in ("'", '"') else after.partition(" ")[0]


_HEAD: Final = re.compile(r"(?:0/([0-9]{1,9})|all) nodes are (?:un)?available: ")
_COUNT: Final = re.compile(r"([0-9]{1,9}) ")
_NO_CLASS: Final = re.compile(r"device class ([^ ]{1,253}) does not exist")
_LESS: Final = "ask for less, or wait until other pods end or nodes with more are added"
_OF_NODE: Final = "node.kubernetes.io/"
_NOT_READY: Final = ("is not Ready", "repair the node, or add nodes")
_PRESSED: Final = "ask the administrator to free the node, or add nodes"
_REASONS: Final = (
    (f"{_OF_NODE}not-ready", *_NOT_READY),
    (f"{_OF_NODE}unreachable", *_NOT_READY),
    (f"{_OF_NODE}network-unavailable", "has no network yet", "wait, or repair the network of the node"),
    (f"{_OF_NODE}memory-pressure", "has too little free memory", _PRESSED),
    (f"{_OF_NODE}disk-pressure", "has too little free disk", _PRESSED),
    (f"{_OF_NODE}pid-pressure", "has too many processes", _PRESSED),
    (f"{_OF_NODE}unschedulable", "is cordoned", "wait, or ask the administrator to uncordon it"),
    ("had untolerated taint", "has a taint that the pod does not tolerate", "add a toleration, or use other nodes"),
    ("had taint", "has a taint that the pod does not tolerate", "add a toleration, or use other nodes"),
    (
        "didn't match Pod's node affinity/selector",
        "does not have the labels that the pod selects",
        "correct nodeSelector or node affinity, or label a node",
    ),
    ("were unschedulable", "is cordoned", "wait, or ask the administrator to uncordon it"),
    ("Too many pods", "has as many pods as it may have", _LESS),
    (
        "cannot allocate all claims",
        "has no free device for the claims of the pod",
        "ask for devices that nodes have free",
    ),
    (
        "volume node affinity conflict",
        "cannot reach a volume of the pod",
        "use a volume of the zone where the nodes are",
    ),
    ("find available persistent volumes to bind", "has no volume for a claim of the pod", "create such a volume"),
    (
        "didn't match pod anti-affinity",
        "has a pod that the anti-affinity keeps away",
        "add nodes, or weaken the anti-affinity",
    ),
    ("didn't satisfy existing pods anti-affinity", "has a pod with an anti-affinity to this pod", "add nodes"),
    ("didn't match pod affinity", "does not have the pods that the affinity requires", "correct podAffinity"),
    ("topology spread constraints", "would break the topology spread of the pod", "weaken topologySpreadConstraints"),
    ("free ports", "has a host port of the pod in use", "use another hostPort, or none"),
    ("max volume count", "has as many volumes as it may have", "wait, or use other nodes"),
    ("didn't match the requested node name", "is not the node that the pod names", "correct nodeName"),
)
"""Parts of the reasons for which a node is not used, each with its meaning and the fix."""
_MOST_REASONS: Final = 20
_PLURALS: Final = {"has": "have", "does": "do", "is": "are"}


def why_unschedulable(message: str) -> tuple[Standing, str, str]:
    """Return the standing, the sentence and the fix for a pod that fits no node."""
    if "unbound immediate PersistentVolumeClaims" in message:
        return "stuck", "a volume of the pod is not bound yet", "look at the PersistentVolumeClaims of the pod"
    name = _text_between(message, 'persistentvolumeclaim "', '"')
    if name and ("not found" in message or "waiting for" in message):
        return "stuck", f"PersistentVolumeClaim {name} does not exist", "create it, or correct the name in spec.volumes"
    name = _text_between(message, 'resourceclaim "', '"')
    if name and "not found" in message:
        return "stuck", f"ResourceClaim {name} does not exist", "create it, or correct the name in spec.resourceClaims"
    if "waiting for" in message and "resourceclaim" in message.lower():
        fix = "check whether its ResourceClaimTemplate exists"
        return "waits", "a ResourceClaim of the pod is not created yet", fix
    if no_class := _NO_CLASS.search(message):
        fix = "correct deviceClassName of the claim, or install the driver that creates the class"
        return "stuck", f"DeviceClass {no_class[1]} does not exist", fix
    if "no nodes available to schedule pods" in message:
        return "stuck", "the cluster has no node", "add nodes"
    if head := _HEAD.search(message):
        reasons = list(_reasons(message[head.end() :]))
        if reasons:
            return "stuck", _sentence_about_nodes(reasons, head[1]), next((fix for *_, fix in reasons if fix), _LESS)
    return "stuck", f"the scheduler does not place the pod: {message}" if message else "no node accepts the pod", ""


def gang_reason(message: str) -> str:
    """Return a sentence from the part of a gang's message about nodes; "" if the message has no such part."""
    head = _HEAD.search(message)
    reasons = list(_reasons(message[head.end() :])) if head else []
    return _sentence_about_nodes(reasons, head[1]) if head and reasons else ""


def _sentence_about_nodes(reasons: list[tuple[int, str, str]], total: str | None) -> str:
    reasons_as_text = ", ".join(f"{count} {_in_number(text, count)}" if count else text for count, text, _ in reasons)
    of_total = f"of {counted(int(total), 'node')} " if total else ""
    return f"no node accepts the pod: {of_total}{reasons_as_text}"


def _in_number(text: str, count: int) -> str:
    """Return the sentence about one node, or the plural form."""
    verb, blank, rest = text.partition(" ")
    return text if count == 1 else f"{_PLURALS.get(verb, verb)}{blank}{rest}"


def _reasons(text: str) -> Iterator[tuple[int, str, str]]:
    """Yield the number of nodes, the text and the fix of each reason. The most frequent reason comes first."""
    for end in (". preemption", ", preemption", ". no new claims", "; "):
        text = text.partition(end)[0]
    reasons: list[tuple[int, str]] = []
    for part in text.rstrip(". ").split(", ")[:_MOST_REASONS]:
        match = _COUNT.match(part)
        if match is None and reasons:
            reasons[-1] = (reasons[-1][0], f"{reasons[-1][1]}, {part}")  # the comma belongs to the reason
        else:
            reasons.append((int(match[1]) if match else 0, part[match.end() :] if match else part))
    for count, reason in sorted(reasons, key=lambda each: -each[0]):
        yield (count, *_reason(reason))


def _reason(reason: str) -> tuple[str, str]:
    name = _text_between(reason, "Insufficient ", " ") or reason.removeprefix("Insufficient ")
    if reason.startswith("Insufficient "):
        return f"has too little free {name}", _LESS
    for words, sentence, fix in _REASONS:
        if words in reason:
            inside = _text_between(reason, "{", "}")
            is_known_text = not inside or inside.startswith(_OF_NODE)
            return (sentence if is_known_text else f"{sentence} ({inside.rstrip(': ')})"), fix
    return reason, ""


def _text_between(text: str, before: str, after: str) -> str:
    _, is_there, rest = text.partition(before)
    name, ends, _ = rest.partition(after)
    return name if is_there and ends else ""
