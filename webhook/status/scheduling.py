"""Statements of schedulers about a pod or a gang that they cannot place: the number of nodes for each reason.

Source: k8s.io/kubernetes v1.36 pkg/scheduler/framework/types.go FitError.Error and the plugins' ErrReason texts;
volcano-sh/volcano@ed72c7c8 pkg/scheduler/api/unschedule_info.go, which writes `unavailable` and may leave out counts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from webhook.status.statement import Standing
from webhook.text.wording import counted

_HEAD: Final = re.compile(r"(?:0/([0-9]{1,9})|all) nodes are (?:un)?available: ")
_COUNT: Final = re.compile(r"([0-9]{1,9}) ")
_NO_CLASS: Final = re.compile(r"device class ([^ ]{1,253}) does not exist")
_LESS: Final = "ask for less, or wait until other pods end or nodes with more are added"
_REASONS: Final = (
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
    ("didn't satisfy existing pods anti-affinity", "has a pod whose anti-affinity keeps this one away", "add nodes"),
    ("didn't match pod affinity", "does not have the pods that the affinity requires", "correct podAffinity"),
    ("topology spread constraints", "would break the topology spread of the pod", "weaken topologySpreadConstraints"),
    ("free ports", "has a host port of the pod in use", "use another hostPort, or none"),
    ("max volume count", "has as many volumes as it may have", "wait, or use other nodes"),
    ("didn't match the requested node name", "is not the node that the pod names", "correct nodeName"),
)
"""A part of a reason of a node, its meaning, and the fix."""
_MOST_REASONS: Final = 20
_PLURALS: Final = {"has": "have", "does": "do", "is": "are"}


def why_unschedulable(message: str) -> tuple[Standing, str, str]:
    """Return standing, sentence and fix for the message of a pod that fits no node."""
    if "unbound immediate PersistentVolumeClaims" in message:
        return "stuck", "a volume of the pod is not bound yet", "look at the PersistentVolumeClaims of the pod"
    name = _between(message, 'persistentvolumeclaim "', '"')
    if name and ("not found" in message or "waiting for" in message):
        return "stuck", f"PersistentVolumeClaim {name} does not exist", "create it, or correct the name in spec.volumes"
    name = _between(message, 'resourceclaim "', '"')
    if name and "not found" in message:
        return "stuck", f"ResourceClaim {name} does not exist", "create it, or correct the name in spec.resourceClaims"
    if "waiting for" in message and "resourceclaim" in message.lower():
        return "waits", "a ResourceClaim of the pod is not created yet", "look whether its ResourceClaimTemplate exists"
    if no_class := _NO_CLASS.search(message):
        fix = "correct deviceClassName of the claim, or install the driver that creates the class"
        return "stuck", f"DeviceClass {no_class[1]} does not exist", fix
    if "no nodes available to schedule pods" in message:
        return "stuck", "the cluster has no node", "add nodes"
    if head := _HEAD.search(message):
        reasons = list(_reasons(message[head.end() :]))
        if reasons:
            return "stuck", _sentence(reasons, head[1]), next((fix for *_, fix in reasons if fix), _LESS)
    return "stuck", f"the scheduler does not place the pod: {message}" if message else "no node accepts the pod", ""


def gang_reason(message: str) -> str:
    """Return the part of a gang's message about nodes, "" if it has none."""
    head = _HEAD.search(message)
    reasons = list(_reasons(message[head.end() :])) if head else []
    return _sentence(reasons, head[1]) if head and reasons else ""


def _sentence(reasons: list[tuple[int, str, str]], total: str | None) -> str:
    said = ", ".join(f"{count} {_in_number(text, count)}" if count else text for count, text, _ in reasons)
    of = f"of {counted(int(total), 'node')} " if total else ""
    return f"no node accepts the pod: {of}{said}"


def _in_number(text: str, count: int) -> str:
    """Return the sentence about one node in the form for several."""
    verb, blank, rest = text.partition(" ")
    return text if count == 1 else f"{_PLURALS.get(verb, verb)}{blank}{rest}"


def _reasons(text: str) -> Iterator[tuple[int, str, str]]:
    """Yield count, text and fix of each reason, the most frequent first."""
    for end in (". preemption", ", preemption", ". no new claims", "; "):
        text = text.partition(end)[0]
    made: list[tuple[int, str]] = []
    for part in text.rstrip(". ").split(", ")[:_MOST_REASONS]:
        match = _COUNT.match(part)
        if match is None and made:
            made[-1] = (made[-1][0], f"{made[-1][1]}, {part}")  # a comma inside a reason
        else:
            made.append((int(match[1]) if match else 0, part[match.end() :] if match else part))
    for count, reason in sorted(made, key=lambda each: -each[0]):
        yield (count, *_reason(reason))


def _reason(reason: str) -> tuple[str, str]:
    name = _between(reason, "Insufficient ", " ") or reason.removeprefix("Insufficient ")
    if reason.startswith("Insufficient "):
        return f"has too little free {name}", _LESS
    for words, says, fix in _REASONS:
        if words in reason:
            inside = _between(reason, "{", "}")
            return (f"{says} ({inside.rstrip(': ')})" if inside else says), fix
    return reason, ""


def _between(text: str, before: str, after: str) -> str:
    _, is_there, rest = text.partition(before)
    name, ends, _ = rest.partition(after)
    return name if is_there and ends else ""
