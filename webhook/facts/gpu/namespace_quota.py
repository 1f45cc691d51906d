"""Devices of a workload that the ResourceQuotas of its namespace never allow at once.

A pod that exceeds a quota is refused when its controller creates it, after the workload itself was accepted, and after
a queue has admitted it: k8s.io/kubernetes v1.36 pkg/quota/v1/evaluator/core/pods.go. Only what a quota allows in all is
compared, not what is left of it, and a quota with scopes may be about other pods.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from webhook import quantity
from webhook.attributes import GroupVersionKind
from webhook.cluster.interest import reading
from webhook.facts.check import Group
from webhook.facts.gpu.device_pods import DevicePods, once_each, workload
from webhook.facts.kinds import TRAIN_JOB
from webhook.facts.subject import Subject
from webhook.facts.values import items, mapping, text
from webhook.paths import FieldPath, get, render
from webhook.problem import Problem

problem: Final = Group("namespace-quota").problem
QUOTA: Final = GroupVersionKind("", "v1", "ResourceQuota")
QUOTA_LOOKUPS: Final = (reading(QUOTA, "spec.hard", "spec.scopes", "spec.scopeSelector"),)
_ORDERED: Final[Mapping[tuple[str, str], tuple[str, ...]]] = {
    ("jobset.x-k8s.io", "JobSet"): ("spec", "replicatedJobs"),
    ("batch.volcano.sh", "Job"): ("spec", "tasks"),
    ("batch.volcano.sh", "CronJob"): ("spec", "jobTemplate", "spec", "tasks"),
}
"""Lists of pod sets of which one may wait until another one is done."""


def validate_namespace_quota(subject: Subject) -> Iterator[Problem]:
    """Devices that the pods of a workload request at once, and that no quota of the namespace allows."""
    using = [each for each in subject.once(workload).device_pods if each.devices and each.podset.pods]
    view = subject.view()
    quotas = view.all(QUOTA, view.namespace) if using else ()
    if not quotas:
        return
    asked = _at_once(using, subject)
    for quota in subject.deadline.each(quotas):
        spec = mapping(get(quota, ("spec",)))
        if spec.get("scopes") or spec.get("scopeSelector"):
            continue
        for name, each in asked.items():
            allowed = quantity.read(mapping(spec.get("hard")).get(f"requests.{name}"))
            if allowed is not None and allowed.value() < each.devices:
                made = _exceeded(name, each, allowed.value(), text(get(quota, ("metadata", "name"))))
                yield from once_each((made,), subject)


@dataclass(frozen=True, slots=True)
class _Asked:
    """How many devices pods request at once, and where the template of most of them stands."""

    devices: int
    pods: int
    path: FieldPath


def _at_once(using: list[DevicePods], subject: Subject) -> Mapping[str, _Asked]:
    """What is asked for at once by the name of the resource: of all pod sets, or of the largest where some wait."""
    parts: dict[str, list[_Asked]] = {}
    for each in subject.deadline.paced(using):
        pods = each.podset.pods or 0
        for name, devices in each.devices.items():
            parts.setdefault(name, []).append(_Asked(devices * pods, pods, each.podset.path))
    largest = {name: max(listed, key=lambda part: part.devices) for name, listed in parts.items()}
    if _waits(subject):
        return largest
    return {
        name: _Asked(sum(part.devices for part in listed), sum(part.pods for part in listed), largest[name].path)
        for name, listed in parts.items()
    }


def _waits(subject: Subject) -> bool:
    """Whether some pods may be made only after others are done; of a TrainJob its runtime says so."""
    kind = subject.group_kind
    jobs = items(get(subject.object, _ORDERED[kind])) if kind in _ORDERED else []
    return kind == TRAIN_JOB or any(mapping(each).get("dependsOn") for each in subject.deadline.paced(jobs))


def _all_of(pods: int) -> str:
    return "the pod requests" if pods == 1 else f"the {pods} pods together request"


def _exceeded(name: str, asked: _Asked, allowed: int, quota: str) -> Problem:
    message = (
        f"{_all_of(asked.pods)} {asked.devices} `{name}`, but ResourceQuota `{quota}` of the "
        f"namespace allows {allowed}, so the API server refuses some of the pods"
    )
    return problem(
        "devices",
        render(asked.path),
        message,
        f"request at most {allowed} in all, or ask the administrator to raise the quota",
    )
