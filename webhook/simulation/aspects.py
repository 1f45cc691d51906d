"""Assigns each group of rules to an aspect of the start of a job, such as admission, queue or quota, and defines open
questions about aspects.

Some rules have another aspect than their group.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias, get_args

from webhook.rules.problem import Problem

NOT_COMPARED: Final = "not compared:"
"""The first words of an open question if no node was compared."""
Aspect: TypeAlias = Literal["admission", "queue", "quota", "claims", "nodes", "storage", "launcher"]
ASPECTS: Final[tuple[Aspect, ...]] = get_args(Aspect)

_GROUPS: Final[Mapping[Aspect, str]] = {
    "admission": "pod-prerequisites manifest-shape object-shape served-version pod-resources pod-template "
    "pod-template-shape workload-update train-job-changes volcano-cron-job volcano-job-flow",
    "queue": "kai yunikorn kueue-job kueue-not-now kueue-unmanaged kueue-advice kueue-queue volcano-job volcano-pod "
    "volcano-pod-group volcano-queue volcano-scheduler",
    "quota": "kueue-never namespace-quota gpu-quota",
    "claims": "claims-exactly-one device-claims resource-claims device-classes resource-slices nvidia-device-config",
    "nodes": "update node-devices node-pool shared-gpu tpu device-plugin gpu-requests gpu-limits gpu-portable "
    "preemption volcano-hyper-node sandbox",
    "storage": "storage",
    "launcher": "launch model-server serving-kind train-job training-job training-runtime num-proc-per-node job-set "
    "ray mesh device-failures",
}
_OF_GROUP: Final[Mapping[str, Aspect]] = {group: aspect for aspect in _GROUPS for group in _GROUPS[aspect].split()}
_RULES: Final[Mapping[str, Aspect]] = {
    "pod-prerequisites/configuration": "launcher",
    "pod-prerequisites/configuration-key": "launcher",
    "pod-prerequisites/pull-secret": "launcher",
    "kueue-never/namespace": "queue",
    "kueue-never/pod-group-differs": "queue",
    "kueue-never/pod-set-count": "queue",
    "kueue-never/topology-placement": "nodes",
    "kueue-never/no-matching-flavor": "nodes",
    "kueue-never/direct-claim": "claims",
    "kueue-never/claim-choice": "claims",
    "kueue-never/claim-capacity": "claims",
    "kueue-never/extended-sources": "claims",
    "kueue-never/claims-off": "claims",
    "kueue-never/unmapped-class": "claims",
    "kueue-not-now/waiting-for-quota": "quota",
    "kueue-not-now/devices-missing": "claims",
    "kueue-not-now/claim-template-missing": "claims",
    "kueue-advice/flavor-ambiguous": "nodes",
    "kueue-advice/flavor-without-nodes": "nodes",
    "train-job/shared-claim": "claims",
    "train-job/lost-toleration": "nodes",
    "volcano-job/capability": "quota",
    "volcano-pod/capability": "quota",
    "volcano-pod-group/capability": "quota",
    "volcano-pod-group/unknown-resource": "nodes",
    "volcano-job/tier": "nodes",
    "volcano-pod-group/tier": "nodes",
    "volcano-job/plugin-keys": "launcher",
    "volcano-job/plugin-port": "launcher",
    "volcano-job/plugin-task": "launcher",
    "volcano-job/plugin-variable": "launcher",
    "volcano-job/ranks-and-slots": "launcher",
    "volcano-job/host-file": "launcher",
    "volcano-job/ssh-keys": "launcher",
    "volcano-job/ray-container": "launcher",
    "volcano-job/restart-policy": "launcher",
}


def groups() -> frozenset[str]:
    """Return the groups of rules that have an aspect."""
    return frozenset(_OF_GROUP)


def aspect_of(rule: str) -> Aspect:
    """Return the aspect of a rule. Rules and policies of a site have the aspect admission."""
    return _RULES.get(rule) or _OF_GROUP.get(rule.partition("/")[0], "admission")


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenQuestion:
    """A question on which the start depends and that has no known answer.

    Args:
        aspects: the affected aspects.
        what: a sentence about the unknown thing, without a full stop. If `is_about_nodes_alone`, `what` lacks the first
            word, "nodes".
        is_obstacle: whether something keeps the pods from all current nodes.
        is_wait: whether the job certainly waits, and only the end of the wait is not known.
        problem: the problem that the question is about, if a rule is certainly broken and no policy reported it;
            otherwise None.
    """

    aspects: tuple[Aspect, ...]
    what: str
    is_obstacle: bool = False
    is_wait: bool = False
    problem: Problem | None = None

    @property
    def is_about_nodes_alone(self) -> bool:
        """Return whether the question is only that nodes were not compared."""
        return self.aspects == ("nodes",) and not self.is_obstacle

    @property
    def sentence(self) -> str:
        """Return the whole sentence."""
        return f"nodes {self.what}" if self.is_about_nodes_alone else self.what
