"""What Kueue admits and what is probably not meant: the wrong nodes, and settings that it ignores.

Sources: kubernetes-sigs/kueue@ff69552e pkg/controller/jobframework/utils.go; kubernetes-sigs/kueue#12449.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from webhook.facts.check import Group
from webhook.facts.kueue.flavors import Flavor, flavor, mismatch, overlooked
from webhook.facts.kueue.job_validation import labels_of
from webhook.facts.kueue.managed import managed
from webhook.facts.kueue.objects import MAX_EXEC_TIME
from webhook.facts.kueue.preflight import preflight
from webhook.facts.kueue.releases import OWN_KEYS
from webhook.facts.kueue.workload import PodSetRequests, workload
from webhook.facts.pods.containers import text
from webhook.facts.subject import Subject
from webhook.problem import Problem

problem: Final = Group("kueue-advice").problem
_LARGEST: Final = 2**31 - 1


def advise_max_exec_time(subject: Subject) -> Iterator[Problem]:
    """A limit that Kueue's webhook takes and its controller cannot read."""
    given = text(labels_of(subject.object).get(MAX_EXEC_TIME))
    if not subject.once(managed).why_not and given.isdecimal() and int(given[:20]) > _LARGEST:
        message = f"is ignored because it is above {_LARGEST}"
        yield problem("max-exec-time-ignored", ("metadata", "labels", MAX_EXEC_TIME), message, "lower it", given)


def advise_flavor(subject: Subject) -> Iterator[Problem]:
    """Pods that select nodes by a label which the first flavor that fits says nothing of."""
    outcome = subject.once(preflight)
    if outcome.verdict != "possible" or outcome.place is None or outcome.place.queue is None:
        return
    if subject.assumptions.kueue < OWN_KEYS:
        return
    view = outcome.place.view
    for pod_set in subject.deadline.paced(subject.once(workload).pod_sets):
        for group in outcome.place.queue.groups:
            known = [each for name in group.flavors if (each := flavor(name, view)) is not None]
            if any(name in group.resources for name in pod_set.requests):
                yield from _ambiguous(pod_set, known, subject)


def _ambiguous(pod_set: PodSetRequests, known: list[Flavor], subject: Subject) -> Iterator[Problem]:
    keys = {key for each in known for key in each.labels}
    for each in known:
        if mismatch(each, pod_set.template, frozenset(each.labels), subject.deadline):
            continue
        key = overlooked(each, pod_set.template, keys, subject.deadline)
        if key:
            path = pod_set.at(("spec", "nodeSelector", key))
            message = f"does not choose between flavors: Kueue tries {each.name} first, which has no label {key}, and"
            message = f"{message} then the pods wait for nodes that have the labels of both"
            fix = f"ask for the label {key} in flavor {each.name}, or use a queue of the flavor that you mean"
            yield problem("flavor-ambiguous", path, message, fix)
        return
