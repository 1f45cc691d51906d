"""What Kueue's webhook refuses of a ClusterQueue whose Workloads try several flavors at a time.

Source: kubernetes-sigs/kueue@ff69552e pkg/webhooks/clusterqueue_webhook.go validateConcurrentAdmissionPolicy. Only with
the feature gate ConcurrentAdmission, which is off by default, is anything but a change of the policy refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from webhook.attributes import JSON
from webhook.facts.check import Group
from webhook.facts.kueue.feature_gates import CONCURRENT_ADMISSION, is_on, unsaid
from webhook.facts.kueue.queue_validation import groups_of, spec_of
from webhook.facts.subject import Subject
from webhook.facts.values import mapping
from webhook.paths import FieldPath, get
from webhook.placeholders import is_placeholder
from webhook.problem import Problem

problem: Final = Group("kueue-queue").problem
_POLICY: Final = "concurrentAdmissionPolicy"
_AT: Final[FieldPath] = ("spec", _POLICY)
_PREFERRED: Final = "TryPreferredFlavors"
_MOST_FLAVORS: Final = 16


def validate_concurrent_admission(subject: Subject) -> Iterator[Problem]:
    """As validateConcurrentAdmissionPolicy, and that the policy stays."""
    spec = spec_of(subject)
    if subject.old_object is not None and get(subject.old_object, _AT) != spec.get(_POLICY):
        message = "cannot change because Workloads were created with the old policy"
        yield problem("immutable", _AT, message, "restore the old policy, or create another ClusterQueue")
    if spec.get(_POLICY) is None:
        return
    for each in _validate_policy(spec):
        if is_on(CONCURRENT_ADMISSION, subject):
            yield each
        elif missing := unsaid(CONCURRENT_ADMISSION, subject):
            yield problem("concurrent-admission", each.path, missing=missing)


def _validate_policy(spec: Mapping[str, JSON]) -> Iterator[Problem]:
    groups = groups_of(spec)
    if len(groups) != 1:
        message = f"are given, but {_POLICY} needs exactly one"
        yield _broken(("spec", "resourceGroups"), message, "set one group", f"{len(groups)} groups")
    elif len(flavors := groups[0].get("flavors", [])) > _MOST_FLAVORS:
        message = (
            f"are more than the {_MOST_FLAVORS} that are allowed because {_POLICY} is set, and each Workload tries "
            "all flavors"
        )
        yield _broken(("spec", "resourceGroups", 0, "flavors"), message, "use fewer flavors", f"{len(flavors)} flavors")
    yield from _validate_constraints(spec)
    if spec.get("queueingStrategy") == "StrictFIFO":
        message = f"must not be used because {_POLICY} is set"
        yield _broken(("spec", "queueingStrategy"), message, "use BestEffortFIFO", "`StrictFIFO`")


def _validate_constraints(spec: Mapping[str, JSON]) -> Iterator[Problem]:
    migration = mapping(get(spec, (_POLICY, "migration")))
    constraints, mode = migration.get("constraints"), migration.get("mode") or _PREFERRED
    if constraints is None:
        return
    at = (*_AT, "migration", "constraints")
    name = mapping(constraints).get("lastAcceptableFlavorName")
    known = {flavor.get("name") for group in groups_of(spec) for flavor in group.get("flavors", [])}
    if mode != _PREFERRED:
        message = f"must not be set because migration.mode is {mode}, which moves no Workload"
        yield _broken(at, message, f"remove the constraints, or set the mode to {_PREFERRED}")
    elif name is not None and name not in known and not is_placeholder(str(name)):
        message = "is not a flavor of this ClusterQueue"
        yield _broken(
            (*at, "lastAcceptableFlavorName"), message, "write the name of a flavor of this ClusterQueue", f"`{name}`"
        )


def _broken(path: FieldPath, message: str, fix: str, shown: str = "") -> Problem:
    return problem("concurrent-admission", path, message, fix, shown=shown)
