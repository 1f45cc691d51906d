"""Runs the checks of a group for an object. subject.py declares the type of checks.

check.py also says which objects some checks skip: objects that controllers create, and updates that change nothing that
the checks read.
"""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from itertools import islice
from typing import Final

from msgspec import Struct, structs

from webhook.apimachinery.attributes import JSON, MERGING_POLICY, OF_KUSTOMIZE
from webhook.apimachinery.paths import get, parse_path
from webhook.deadline import STEP
from webhook.errors import ClaimgateError, EvaluationError, PatchError, ReviewPaused
from webhook.facts.kinds import POD
from webhook.facts.subject import WORK, Subject
from webhook.rules.problem import MissingObject, Problem
from webhook.typed.objects import Object
from webhook.typed.pod_parts import PATCH, TEMPLATE
from webhook.typed.pods import Pod


class CheckResults(Struct, frozen=True):
    """The results of checks for an object: the problems, and the rules that were not evaluated because another object
    is missing.
    """

    problems: tuple[Problem, ...] = ()
    unchecked: tuple[Problem, ...] = ()


NOTHING: Final = CheckResults()
_ABSENT: Final[JSON] = object()
_UNREAD_FIELDS: Final = frozenset(("metadata", "status", "apiVersion"))
_READ_KEYS: Final = ("kueue", "volcano")
"""Checks read labels and annotations with one of these texts in the key: kueue.x-k8s.io, scheduling.volcano.sh."""


def problems_of_group(group: str, subject: Subject) -> CheckResults:
    """Return the results of a group's checks for an object, in the order of the checks. Only the first call runs
    the checks.

    Raises:
        EvaluationError: the patches of the object cannot be merged.
    """
    known: CheckResults | None = subject.results.get(group)
    if known is not None:
        return known
    checks = subject.checks.get(group)
    if checks is None:
        checks = () if _is_pod_of_no_check(group, subject) else subject.checks[group]
    if not checks:
        subject.results[group] = NOTHING
        return NOTHING
    problems: list[Problem] = []
    until = subject.deadline
    until.left -= WORK  # does the same as `spend`, without the cost of a call
    if until.left < 0:
        until.check_clock()
    answers = subject.results  # read directly, because `once` would cost a call for each check
    try:
        for each in checks:
            needed, present = each.of_pods_with, subject.pod_parts
            if needed and (
                _is_pod_with_none_of_parts(needed, subject) if present is None else present.isdisjoint(needed)
            ):
                continue
            if not each.of_made_objects:
                is_made = answers.get(is_made_by_controller)
                if subject.once(is_made_by_controller) if is_made is None else is_made:
                    continue
            if each.when is not None:
                is_about = answers.get(each.when)
                if not (subject.once(each.when) if is_about is None else is_about):
                    continue
            remaining = iter(each.run(subject))
            first = [*islice(remaining, STEP)]  # a check rarely finds more than STEP problems
            if first:
                until.spend(len(first))
                problems += first
                problems.extend(until.items_with_clock_checks(remaining))
    except PatchError as error:
        raise EvaluationError(f"checks `{group}`: the patches of the object cannot be merged: {error}") from error
    except (ClaimgateError, ReviewPaused):
        raise
    except Exception as fault:
        fault.add_note(group)  # the caller reports the name of the group
        raise
    if problems and subject.attributes.unmerged_patches:
        problems = [_consider_unmerged_patches(each, subject) for each in problems]
    result = subject.results[group] = _checked_and_unchecked(problems) if problems else NOTHING
    return result


def _checked_and_unchecked(problems: Iterable[Problem]) -> CheckResults:
    return CheckResults(
        tuple(each for each in problems if not each.missing), tuple(each for each in problems if each.missing)
    )


def _consider_unmerged_patches(problem: Problem, subject: Subject) -> Problem:
    """Return the problem. The problem is marked as not known if an unmerged patch may add the absent field."""
    name = problem.needs or _absent_field(problem.path, subject.object)
    patches = subject.attributes.unmerged_patches if name else ()
    first = next((each for each in patches if each.fields is None or name in each.fields), None)
    if first is None or problem.missing:
        return problem
    if first.fields is None:
        why = "is in no file, so the fields that it adds are not known"
    elif first.what == MERGING_POLICY:
        why = f"merges the object into an object of the cluster, which may have `{name}`"
    elif first.what in OF_KUSTOMIZE:
        why = f"may add `{name}`, and `claimgate audit --render` merges it"
    else:
        why = f"has patches that may add `{name}`"
    missing = MissingObject(kind=first.what, name=first.file, why=why, is_absent=False)
    return structs.replace(problem, missing=(missing,))


def _absent_field(path: str, obj: JSON) -> str:
    """Return the last name of a path that an object does not have; "" if the object has the field."""
    try:
        steps = parse_path(path)
    except ValueError:
        return ""
    names = [step for step in steps if isinstance(step, str)]
    return names[-1] if names and get(obj, steps, _ABSENT) is _ABSENT else ""


def is_made_by_controller(subject: Subject) -> bool:
    """Return whether a controller created the object for another object. Call this function through `Subject.once`.

    Users can write any owner reference. So an owner counts only if the workload table says that the owner's controller
    creates objects of this kind. The owner is not looked up, because a view may not have the owner yet.
    """
    return any(subject.table.does_kind_make(owner, subject.group_kind) for owner in subject.metadata.controller_kinds)


def changes_fields_that_checks_read(subject: Subject) -> bool:
    """Return whether an object is new, or an update changes a field, an owner, a label or an annotation that checks
    read.

    Other updates are not checked, because the object may be older than the webhook or a rule. Controllers must still be
    able to write the status, finalizers and labels of the object, and users must be able to delete the object.
    """
    if not subject.object or not subject.old_object:
        return True
    now, old = subject.typed(Object), subject.typed_old(Object)
    subject.deadline.spend(len(now.json) + len(old.json))
    return bool(
        _fields_that_checks_read(now) != _fields_that_checks_read(old)
        or _metadata_that_checks_read(now) != _metadata_that_checks_read(old)
    )


def _fields_that_checks_read(obj: Object) -> JSON:
    return {name: value for name, value in obj.json.items() if name not in _UNREAD_FIELDS}


def _metadata_that_checks_read(obj: Object) -> JSON:
    """Return the owners of an object, and the labels and annotations that checks read."""
    marked = (obj.labels, obj.annotations)
    read = [{key: text for key, text in each.items() if any(word in key for word in _READ_KEYS)} for each in marked]
    return [obj.metadata.json.get("ownerReferences"), *read]


def _is_pod_of_no_check(group: str, subject: Subject) -> bool:
    """Return whether an object is a Pod that lacks all parts that the checks of a group need."""
    parts = subject.checks.pod_parts_that_group_needs(group)
    return bool(parts) and _is_pod_with_none_of_parts(parts, subject)


def _is_pod_with_none_of_parts(parts: frozenset[str], subject: Subject) -> bool:
    """Return whether an object is a Pod that lacks all of these parts (typed/pod_parts.py)."""
    if subject.group_kind != POD:
        return False
    present = subject.pod_parts
    if present is None:
        present = subject.pod_parts = _parts_of_pod(subject)
    return present.isdisjoint(parts)


def _parts_of_pod(subject: Subject) -> AbstractSet[str]:
    """Return the rare parts that a Pod has. The virtual Pod of a template also has the part TEMPLATE. If the template
    is a patch, the virtual Pod also has the part PATCH.
    """
    present = subject.typed(Pod).parts.present
    if subject.template_of is None:
        return present
    return present | {TEMPLATE, PATCH} if subject.is_patch else present | {TEMPLATE}
