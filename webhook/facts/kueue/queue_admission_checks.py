"""Rules for the admission checks of a ClusterQueue.

Source: kubernetes-sigs/kueue@ff69552e pkg/webhooks/clusterqueue_webhook.go validateAdmissionChecks.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from webhook.facts.kueue.groups import KUEUE_QUEUE
from webhook.facts.kueue.queue import immutable_field_problem
from webhook.facts.kueue.types import AdmissionCheck, AdmissionChecksStrategy, ClusterQueue
from webhook.facts.subject import Subject
from webhook.placeholders import is_placeholder
from webhook.problem import Problem
from webhook.wording import change

CHECK_FLAVOR: Final = KUEUE_QUEUE.rule(
    "kueue-queue/check-flavor",
    title="An admission check is for flavors of its ClusterQueue.",
    why="It would never apply to another flavor.",
    function="validateAdmissionChecks",
)


def validate_admission_checks(subject: Subject) -> Iterator[Problem]:
    """Yield flavors of admission checks that the queue does not have (validateAdmissionChecks)."""
    spec, old = subject.typed(ClusterQueue).spec, subject.typed_old(ClusterQueue)
    checks, before = spec.admission_checks_strategy, old.spec.admission_checks_strategy
    if spec.resource_groups and (not old or checks.differs(before, "admissionChecks")):
        yield from _check_flavors_are_of_queue(checks, spec.flavor_names())


def _check_flavors_are_of_queue(checks: AdmissionChecksStrategy, flavors: set[str]) -> Iterator[Problem]:
    for check in checks.admission_checks:
        for index, name in enumerate(check.on_flavors):
            if name not in flavors and not is_placeholder(name):
                message = "is not a flavor of this ClusterQueue"
                fix = "write the name of a flavor of this ClusterQueue, or remove the entry"
                yield CHECK_FLAVOR.problem(check.path("onFlavors", index), message, fix, name)


def validate_controller_name_unchanged(subject: Subject) -> Iterator[Problem]:
    """Yield the problem of a changed controllerName of an AdmissionCheck."""
    check, before = subject.typed(AdmissionCheck), subject.typed_old(AdmissionCheck)
    old, new = before.spec.controller_name, check.spec.controller_name
    if before and old != new:
        message = f"{change(old, new)} because an AdmissionCheck keeps its controller"
        fix = f"{f'set `{old}` again' if old else 'remove it'}, or create another AdmissionCheck"
        yield immutable_field_problem(check.spec.path("controllerName"), message, fix)
