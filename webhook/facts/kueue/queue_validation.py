"""What Kueue refuses of ClusterQueues, Cohorts and LocalQueues.

Sources: kubernetes-sigs/kueue@ff69552e pkg/webhooks/clusterqueue_webhook.go and cohort_webhook.go, after whose
functions these are named, and the rules of config/components/crd/bases.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from webhook import quantity
from webhook.attributes import JSON
from webhook.facts.check import Group
from webhook.facts.subject import Subject
from webhook.name_faults import key_fault, subdomain_fault
from webhook.names import USE_KEY, USE_SUBDOMAIN, dns1123_subdomain, qualified_name
from webhook.paths import FieldPath, get
from webhook.placeholders import is_placeholder
from webhook.problem import Problem
from webhook.wording import change, counted, either

problem: Final = Group("kueue-queue").problem
_GROUPS: Final[FieldPath] = ("spec", "resourceGroups")
_MOST: Final = 256
"""Flavors, and covered resources, of all resource groups."""
_MOST_PAIRS: Final = 512
_MOST_GROUPS: Final = 16
_MOST_IN_GROUP: Final = 64
_CHOICES: Final[Mapping[FieldPath, tuple[str, ...]]] = {
    ("stopPolicy",): ("None", "Hold", "HoldAndDrain"),
    ("queueingStrategy",): ("StrictFIFO", "BestEffortFIFO"),
    ("preemption", "reclaimWithinCohort"): ("Never", "LowerPriority", "Any"),
    ("preemption", "withinClusterQueue"): ("Never", "LowerPriority", "LowerOrNewerEqualPriority"),
    ("preemption", "borrowWithinCohort", "policy"): ("Never", "LowerPriority"),
    ("flavorFungibility", "whenCanBorrow"): ("MayStopSearch", "TryNextFlavor", "Borrow"),
    ("flavorFungibility", "whenCanPreempt"): ("MayStopSearch", "TryNextFlavor", "Preempt"),
    ("flavorFungibility", "preference"): ("BorrowingOverPreemption", "PreemptionOverBorrowing"),
}


def spec_of(subject: Subject) -> Mapping[str, JSON]:
    """The spec of the object."""
    spec: Mapping[str, JSON] = subject.object.get("spec") or {}
    return spec


def cohort_of(subject: Subject) -> str:
    """The cohort above a ClusterQueue or a Cohort; v1beta1 and v1beta2 have different fields, and drop the other's."""
    spec, version = spec_of(subject), subject.attributes.kind.version
    if subject.group_kind[1] == "Cohort":
        return str(spec.get("parentName") or "")
    return str(spec.get("cohort" if version == "v1beta1" else "cohortName") or "")


def groups_of(spec: Mapping[str, JSON]) -> Sequence[JSON]:
    """Its resource groups."""
    groups: Sequence[JSON] = spec.get("resourceGroups", [])
    return groups


def validate_resource_groups(subject: Subject) -> Iterator[Problem]:
    """As validateResourceGroups: covered resources, flavors and their order."""
    groups = groups_of(spec_of(subject))
    covered: set[str] = set()
    flavors: set[str] = set()
    if len(groups) > _MOST_GROUPS:
        count_shown = counted(len(groups), "group")
        yield problem(
            "too-many",
            _GROUPS,
            f"are more than the {_MOST_GROUPS} that are allowed",
            "join some groups",
            shown=count_shown,
        )
    for index, group in enumerate(subject.deadline.paced(groups)):
        at = (*_GROUPS, index)
        resources, listed = group.get("coveredResources", []), group.get("flavors", [])
        yield from _validate_covered(resources, covered, (*at, "coveredResources"), subject)
        for place, flavor in enumerate(subject.deadline.paced(listed)):
            where = (*at, "flavors", place)
            yield from _validate_name(flavor.get("name", ""), flavors, (*where, "name"))
            yield from _validate_order(flavor.get("resources", []), resources, (*where, "resources"), subject)
        yield from _validate_size(resources, listed, at)
    for count, what in ((len(flavors), "flavors"), (len(covered), "resources")):
        if count > _MOST:
            message = f"in all groups are more than the {_MOST} that are allowed"
            yield problem("too-many", _GROUPS, message, f"use fewer {what}", shown=f"{count} {what}")


def _validate_size(resources: Sequence[str], flavors: Sequence[JSON], at: FieldPath) -> Iterator[Problem]:
    yield from count_errors("too-many", (*at, "coveredResources"), len(resources), _MOST_IN_GROUP, "resource")
    yield from count_errors("too-many", (*at, "flavors"), len(flavors), _MOST_IN_GROUP, "flavor")
    pairs = len(resources) * len(flavors)
    if pairs > _MOST_PAIRS:
        message = f"of flavors and resources are more than the {_MOST_PAIRS} that are allowed"
        yield problem("too-many", at, message, "split the group", shown=f"{pairs} combinations")


def count_errors(rule: str, at: FieldPath, count: int, most: int, noun: str) -> Iterator[Problem]:
    """A list that has nothing, or more than the definition allows."""
    if not 1 <= count <= most:
        message, shown = f"are given, but 1 to {most} are allowed", counted(count, noun)
        fix = f"remove {counted(count - most, noun)}" if count else f"add a {noun}"
        yield problem(rule, at, message, fix, shown=shown)


def _validate_covered(names: Sequence[str], before: set[str], at: FieldPath, subject: Subject) -> Iterator[Problem]:
    for index, name in enumerate(subject.deadline.paced(names)):
        if qualified_name(name) and not is_placeholder(name):
            message = f"cannot be the name of a resource because {key_fault(name)}"
            yield problem("resource-name", (*at, index), message, USE_KEY, name)
        if name in before:
            message = "is covered twice, but a resource can have quota in only one place"
            yield problem("covered-twice", (*at, index), message, f"remove one `{name}`", name)
        before.add(name)


def _validate_name(name: str, before: set[str], at: FieldPath) -> Iterator[Problem]:
    if dns1123_subdomain(name) and not is_placeholder(name):
        message = f"cannot be the name of a ResourceFlavor because {subdomain_fault(name)}"
        yield problem("flavor-name", at, message, USE_SUBDOMAIN, name)
    if name in before:
        message = "is listed twice, but a flavor can be in only one place of one group"
        yield problem("flavor-twice", at, message, f"remove one `{name}`", name)
    before.add(name)


def _validate_order(
    quotas: Sequence[JSON], covered: Sequence[str], at: FieldPath, subject: Subject
) -> Iterator[Problem]:
    """Resources of a flavor stand as in coveredResources, one for one."""
    if len(quotas) != len(covered):
        given = counted(len(quotas), "entry", "entries")
        message = f"has {given}, but needs {len(covered)}, one for each of coveredResources"
        left = len(covered) - len(quotas)
        fix = f"{'add' if left > 0 else 'remove'} {counted(abs(left), 'entry', 'entries')}"
        yield problem("flavor-resources", at, message, fix)
        return
    for index, (quota, name) in enumerate(zip(subject.deadline.each(quotas), covered, strict=True)):
        given = quota.get("name", "")
        if given != name:
            message = f"must be {name} because coveredResources has {name} at this place"
            yield problem(
                "flavor-resources",
                (*at, index, "name"),
                message,
                "list the resources in the order of coveredResources",
                given,
            )


def validate_quotas(subject: Subject) -> Iterator[Problem]:
    """As validateFlavorQuotas and validateLimit: amounts are not negative, and limits need a cohort."""
    spec = spec_of(subject)
    kind, cohort = subject.group_kind[1], cohort_of(subject)
    for index, group in enumerate(subject.deadline.paced(groups_of(spec))):
        for place, flavor in enumerate(subject.deadline.paced(group.get("flavors", []))):
            for at, quota in enumerate(subject.deadline.paced(flavor.get("resources", []))):
                where = (*_GROUPS, index, "flavors", place, "resources", at)
                yield from _validate_amounts(quota, where)
                yield from _validate_limits(quota, where, kind, cohort)


def _validate_amounts(quota: JSON, at: FieldPath) -> Iterator[Problem]:
    for name in ("nominalQuota", "borrowingLimit", "lendingLimit"):
        given = quota.get(name)
        if given is None:
            if name == "nominalQuota":
                yield problem("quota-amount", (*at, name), "must be set", "set 0 or more")
            continue
        if is_placeholder(str(given)):
            continue
        amount = quantity.read(given)
        if amount is None:
            yield problem("quota-amount", (*at, name), "must be a quantity", "write a number such as 8 or 64Gi", given)
        elif amount.sign() < 0:
            yield problem("quota-amount", (*at, name), "must not be negative", "set 0 or more", given)


def _validate_limits(quota: JSON, at: FieldPath, kind: str, cohort: str) -> Iterator[Problem]:
    field = "cohortName" if kind == "ClusterQueue" else "parentName"
    verbs = {"borrowingLimit": "borrow from", "lendingLimit": "lend to"}
    for name, verb in verbs.items():
        if quota.get(name) is not None and not cohort:
            message = f"must not be set without {field} because there is no cohort to {verb}"
            yield problem(
                "limit-without-cohort", (*at, name), message, f"set spec.{field}, or remove the limit", quota[name]
            )
    lending, nominal = quantity.read(quota.get("lendingLimit")), quantity.read(quota.get("nominalQuota"))
    if kind == "ClusterQueue" and lending is not None and nominal is not None and lending > nominal:
        message = f"must not be above the nominalQuota of {nominal} because a queue lends what it has"
        yield problem("lending-above-nominal", (*at, "lendingLimit"), message, "lower the limit", quota["lendingLimit"])


def validate_choices(subject: Subject) -> Iterator[Problem]:
    """Closed sets of the CustomResourceDefinition."""
    spec = spec_of(subject)
    for path, choices in _CHOICES.items():
        given = get(spec, path)
        if given is not None and given not in choices and not is_placeholder(str(given)):
            yield problem("choice", ("spec", *path), f"must be {either(choices)}", "set one of these", given)


def validate_preemption(subject: Subject) -> Iterator[Problem]:
    """As validatePreemption, and the rule of flavorFungibility."""
    spec = spec_of(subject)
    preemption = spec.get("preemption", {})
    borrowing = get(preemption, ("borrowWithinCohort", "policy"), "Never")
    if preemption.get("reclaimWithinCohort", "Never") == "Never" and borrowing != "Never":
        message = "must be Never, too, because reclaimWithinCohort is Never"
        fix = "set reclaimWithinCohort to LowerPriority or Any, or remove this policy"
        yield problem("preemption", "spec.preemption.borrowWithinCohort.policy", message, fix, borrowing)
    fungibility = spec.get("flavorFungibility", {})
    preference, searches = fungibility.get("preference"), "TryNextFlavor"
    searched = fungibility.get("whenCanBorrow"), fungibility.get("whenCanPreempt", searches)  # its default
    if preference is not None and searched != (searches, searches):
        message = "must not be set unless whenCanBorrow and whenCanPreempt are both TryNextFlavor"
        yield problem(
            "preference",
            "spec.flavorFungibility.preference",
            message,
            "set both to TryNextFlavor, or remove the preference",
            preference,
        )


def validate_fair_sharing(subject: Subject) -> Iterator[Problem]:
    """As validateFairSharing: a weight is 0, or above a thousand-millionth."""
    given = get(spec_of(subject), ("fairSharing", "weight"))
    if given is None or is_placeholder(str(given)):
        return
    weight = quantity.read(given)
    is_tiny = weight is not None and weight.sign() > 0 and weight <= quantity.parse("1n")
    if weight is None or weight.sign() < 0 or is_tiny:
        message = "must be 0 or more, and above 1n unless it is 0" if is_tiny else "must be a quantity of 0 or more"
        yield problem("fair-sharing", "spec.fairSharing.weight", message, "set 1, which is the default", given)


def validate_namespace_selector(subject: Subject) -> Iterator[Problem]:
    """As ValidateLabelSelector, for operators, keys and values."""
    at: FieldPath = ("spec", "namespaceSelector")
    selector = get(subject.object, at) or {}
    for index, each in enumerate(subject.deadline.paced(selector.get("matchExpressions", []))):
        path, operator = (*at, "matchExpressions", index), each.get("operator", "")
        values = each.get("values", [])
        if qualified_name(each.get("key", "")):
            message = f"cannot be the key of a label because {key_fault(each.get('key', ''))}"
            yield problem("selector", (*path, "key"), message, USE_KEY, each.get("key", ""))
        if operator not in ("In", "NotIn", "Exists", "DoesNotExist"):
            message = "must be In, NotIn, Exists or DoesNotExist"
            yield problem("selector", (*path, "operator"), message, "set one of these", operator)
        elif (operator in ("In", "NotIn")) == (not values):
            is_needed = operator in ("In", "NotIn")
            message = f"must {'' if is_needed else 'not '}be set because the operator is {operator}"
            yield problem("selector", (*path, "values"), message, "add values" if is_needed else "remove the values")
    for key in subject.deadline.paced(selector.get("matchLabels", {})):
        if qualified_name(key):
            message = f"cannot be the key of a label because {key_fault(key)}"
            yield problem("selector", (*at, "matchLabels", key), message, USE_KEY, key)


def validate_admission_checks(subject: Subject) -> Iterator[Problem]:
    """As validateAdmissionChecks: flavors that a check is for are those of the queue, where it has any."""
    spec = spec_of(subject)
    if not groups_of(spec):
        return
    flavors = {flavor.get("name", "") for group in groups_of(spec) for flavor in group.get("flavors", [])}
    checks = get(spec, ("admissionChecksStrategy", "admissionChecks"), [])
    if subject.old_object is not None:
        before = get(subject.old_object, ("spec", "admissionChecksStrategy", "admissionChecks"), [])
        if before == checks:
            return
    for index, check in enumerate(subject.deadline.paced(checks)):
        for place, name in enumerate(subject.deadline.paced(check.get("onFlavors", []))):
            if name not in flavors and not is_placeholder(name):
                path = ("spec", "admissionChecksStrategy", "admissionChecks", index, "onFlavors", place)
                message = "is not a flavor of this ClusterQueue"
                yield problem(
                    "check-flavor",
                    path,
                    message,
                    "write the name of a flavor of this ClusterQueue, or remove the entry",
                    name,
                )


def validate_local_queue(subject: Subject) -> Iterator[Problem]:
    """The CustomResourceDefinition of LocalQueues: its ClusterQueue stays, and has a name that one can have."""
    new = str(spec_of(subject).get("clusterQueue", ""))
    if new and dns1123_subdomain(new) and not is_placeholder(new):
        message = f"cannot be the name of a ClusterQueue because {subdomain_fault(new)}"
        yield problem("cluster-queue-name", "spec.clusterQueue", message, USE_SUBDOMAIN, new)
    if subject.old_object is not None:
        old = get(subject.old_object, ("spec", "clusterQueue"))
        if old and new != old:
            message = f"{change(old, new)} because a LocalQueue keeps its ClusterQueue"
            fix = f"set `{old}` again, or create another LocalQueue"
            yield problem("immutable", "spec.clusterQueue", message, fix)
