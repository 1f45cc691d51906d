"""Rules of Kueue's webhook for a ClusterQueue whose Workloads try several flavors at a time.

Source: kubernetes-sigs/kueue@ff69552e pkg/webhooks/clusterqueue_webhook.go validateConcurrentAdmissionPolicy. Only with
the feature gate ConcurrentAdmission, which is off by default, is anything but a change of the policy refused.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from webhook.facts.kueue.feature_gates import CONCURRENT_ADMISSION, is_gate_on, missing_configuration_of_gate
from webhook.facts.kueue.groups import KUEUE_QUEUE
from webhook.facts.kueue.queue import immutable_field_problem
from webhook.facts.kueue.types import ClusterQueue, ClusterQueueSpec
from webhook.facts.subject import Subject
from webhook.paths import FieldPath
from webhook.placeholders import is_placeholder
from webhook.problem import Problem

KUEUE_QUEUE_CONCURRENT_ADMISSION: Final = KUEUE_QUEUE.rule(
    "kueue-queue/concurrent-admission",
    title=(
        "A ClusterQueue that tries several flavors at a time has one group of at most 16 flavors, and no strict order."
    ),
    why=(
        "Every Workload gets a variant for each flavor. Kueue asks for it where its feature gate ConcurrentAdmission "
        "is on, which is off by default, so that its Configuration has to say so."
    ),
    function="validateConcurrentAdmissionPolicy",
)

_POLICY: Final = "concurrentAdmissionPolicy"
_PREFERRED: Final = "TryPreferredFlavors"
_MOST_FLAVORS: Final = 16


def validate_concurrent_admission(subject: Subject) -> Iterator[Problem]:
    """Yield the problems that validateConcurrentAdmissionPolicy would report, and changes of the policy."""
    queue, old = subject.typed(ClusterQueue), subject.typed_old(ClusterQueue)
    if old and queue.spec.differs(old.spec, _POLICY):
        message = "cannot change because Workloads were created with the old policy"
        fix = "restore the old policy, or create another ClusterQueue"
        yield immutable_field_problem(queue.spec.path(_POLICY), message, fix)
    if not queue.spec.concurrent_admission_policy:
        return
    for broken in _validate_policy(queue.spec):
        if is_gate_on(CONCURRENT_ADMISSION, subject):
            yield broken
        elif missing := missing_configuration_of_gate(CONCURRENT_ADMISSION, subject):
            yield replace(broken, message="", fix="", found="", missing=missing)


def _validate_policy(spec: ClusterQueueSpec) -> Iterator[Problem]:
    groups = spec.resource_groups
    if len(groups) != 1:
        message = f"are given, but {_POLICY} needs exactly one"
        yield _concurrent_admission_problem(
            spec.path("resourceGroups"), message, "set one group", f"{len(groups)} groups"
        )
    elif (count := len(groups[0].flavors)) > _MOST_FLAVORS:
        message = (
            f"are more than the {_MOST_FLAVORS} that are allowed because {_POLICY} is set, and each Workload tries "
            "all flavors"
        )
        yield _concurrent_admission_problem(groups[0].path("flavors"), message, "use fewer flavors", f"{count} flavors")
    yield from _validate_constraints(spec)
    if spec.queueing_strategy == "StrictFIFO":
        message = f"must not be used because {_POLICY} is set"
        path = spec.path("queueingStrategy")
        yield _concurrent_admission_problem(path, message, "use BestEffortFIFO", f"`{spec.queueing_strategy}`")


def _validate_constraints(spec: ClusterQueueSpec) -> Iterator[Problem]:
    migration = spec.concurrent_admission_policy.migration
    constraints, mode = migration.constraints, migration.mode or _PREFERRED
    name = constraints.last_acceptable_flavor_name
    if constraints and mode != _PREFERRED:
        message = f"must not be set because migration.mode is {mode}, which moves no Workload"
        yield _concurrent_admission_problem(
            constraints.at, message, f"remove the constraints, or set the mode to {_PREFERRED}"
        )
    elif constraints.has("lastAcceptableFlavorName") and name not in spec.flavor_names() and not is_placeholder(name):
        path, message = constraints.path("lastAcceptableFlavorName"), "is not a flavor of this ClusterQueue"
        yield _concurrent_admission_problem(
            path, message, "write the name of a flavor of this ClusterQueue", f"`{name}`"
        )


def _concurrent_admission_problem(path: FieldPath, message: str, fix: str, shown: str = "") -> Problem:
    return KUEUE_QUEUE_CONCURRENT_ADMISSION.problem(path, message, fix, shown=shown)
