"""What Kueue refuses in ClusterQueues, LocalQueues and AdmissionChecks, and why a ClusterQueue is inactive.

Kueue validates concurrentAdmissionPolicy only with the feature gate ConcurrentAdmission, which is off by default.
Without the gate, Kueue refuses only a change of the policy.

AdmissionChecks or a missing Topology may keep a ClusterQueue inactive. The problem is reported on the object that needs
the fix. For example, a missing Topology is reported on the ResourceFlavor that names the Topology.

Source: kubernetes-sigs/kueue@ff69552e pkg/webhooks/clusterqueue_webhook.go validateConcurrentAdmissionPolicy and
validateAdmissionChecks, cohort_webhook.go, the rules of config/components/crd/bases,
pkg/cache/scheduler/clusterqueue.go inactiveReason, pkg/controller/admissionchecks and pkg/scheduler/preemption.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from msgspec.structs import replace

from webhook.apimachinery.names import (
    dns1123_subdomain_errors,
    qualified_name_errors,
    qualified_name_fault,
    qualified_name_fix,
    subdomain_fault,
    subdomain_fix,
)
from webhook.apimachinery.paths import FieldPath, get
from webhook.facts.kueue.admission_checks import (
    KINDS_OF_PARAMETERS,
    absent_parameters_of_check,
    clusters_if_all_are_absent,
    mistake_in_parameters,
    runs_in_other_cluster,
    why_checks_keep_queue_inactive,
)
from webhook.facts.kueue.configuration import (
    CONCURRENT_ADMISSION_GATE,
    is_gate_on,
    missing_configuration_of_gate,
    read_kueue_configuration,
)
from webhook.facts.kueue.groups import KUEUE_QUEUE, KUEUE_QUEUE_ADVICE
from webhook.facts.kueue.managed import selects_namespace
from webhook.facts.kueue.objects import MULTI_KUEUE_CONFIG
from webhook.facts.kueue.queue_flavors import advise_resource_groups
from webhook.facts.kueue.queue_quota import advise_useless_borrowing_limits, name_of_cohort_field
from webhook.facts.kueue.quota_tree import QueueFields, read_cluster_queue, read_quota_trees
from webhook.facts.kueue.releases import find_kueue_release, is_kueue_release_known, is_kueue_release_stated
from webhook.facts.subject import Subject
from webhook.rules.problem import Problem
from webhook.text.wording import change, did_you_mean, either, named
from webhook.typed.kueue import (
    AdmissionCheck,
    AdmissionChecksStrategy,
    ClusterQueue,
    ClusterQueueSpec,
    FlavorFungibility,
    LocalQueue,
    Preemption,
    ResourceFlavor,
    Topology,
)
from webhook.typed.pods import SelectorRequirement
from webhook.typed.view import Typed
from webhook.yamltext.placeholders import is_placeholder, is_placeholder_for_name

CHOICE: Final = KUEUE_QUEUE.rule(
    "kueue-queue/choice",
    title="The ClusterQueue has a policy value that Kueue does not know",
    why="The API server refuses values that Kueue does not know.",
    source="kubernetes-sigs/kueue@ff69552e config/components/crd/bases",
    refused_on_updates="",
)
PREEMPTION: Final = KUEUE_QUEUE.rule(
    "kueue-queue/preemption",
    title="borrowWithinCohort allows preemption, but reclaimWithinCohort does not",
    why="A queue that preempts while it borrows must also reclaim its own quota, so Kueue refuses the combination.",
    function="validatePreemption",
)
PREFERENCE: Final = KUEUE_QUEUE.rule(
    "kueue-queue/preference",
    title="preference is set, but whenCanBorrow and whenCanPreempt are not both TryNextFlavor",
    why="The preference decides between borrowing and preemption, so both must be possible.",
    source="kubernetes-sigs/kueue@ff69552e config/components/crd/bases",
    refused_on_updates="",
)
SELECTOR: Final = KUEUE_QUEUE.rule(
    "kueue-queue/selector",
    title="The namespaceSelector is not a valid label selector",
    why="The selector decides which namespaces may submit jobs, and Kueue refuses an invalid selector.",
    function="validateClusterQueue",
)
IMMUTABLE: Final = KUEUE_QUEUE.rule(
    "kueue-queue/immutable",
    title="An immutable field of a queue, flavor, topology or AdmissionCheck was changed",
    why="Jobs were admitted with the old value.",
    source="kubernetes-sigs/kueue@ff69552e config/components/crd/bases",
    refused_on_updates="config/components/crd/bases, the rules about oldSelf",
)
NO_NAMESPACE: Final = KUEUE_QUEUE_ADVICE.rule(
    "kueue-queue/no-namespace",
    title="The ClusterQueue has no namespaceSelector, so it accepts no job",
    why="Without a selector the queue accepts no namespace. An empty selector ({}) means every namespace.",
    source="kubernetes-sigs/kueue@ff69552e pkg/webhooks/clusterqueue_webhook.go",
)
CLUSTER_QUEUE_NAME: Final = KUEUE_QUEUE.rule(
    "kueue-queue/cluster-queue-name",
    title="The ClusterQueue name is not a valid name",
    why="No ClusterQueue can have this name.",
    source="kubernetes-sigs/kueue@ff69552e config/components/crd/bases",
    refused_on_updates="",
)
CLUSTER_QUEUE_MISSING: Final = KUEUE_QUEUE_ADVICE.rule(
    "kueue-queue/cluster-queue-missing",
    title="The ClusterQueue does not exist",
    why="Jobs wait until the ClusterQueue exists.",
    refused_by="nothing; jobs wait",
    source="kubernetes-sigs/kueue@ff69552e pkg/cache/queue",
)
NAMESPACE_NOT_SELECTED: Final = KUEUE_QUEUE_ADVICE.rule(
    "kueue-queue/namespace-not-selected",
    title="The ClusterQueue does not accept jobs of the LocalQueue's namespace",
    why="Kueue never admits jobs of a namespace that the ClusterQueue does not select.",
    source="kubernetes-sigs/kueue@ff69552e pkg/scheduler/scheduler.go",
)
KUEUE_QUEUE_CONCURRENT_ADMISSION: Final = KUEUE_QUEUE.rule(
    "kueue-queue/concurrent-admission",
    title=("A setting of the ClusterQueue does not fit concurrentAdmissionPolicy"),
    why=(
        "With concurrentAdmissionPolicy, Kueue tries all flavors of one resource group at the same time, so it refuses "
        "settings that try flavors one after the other. The feature gate ConcurrentAdmission is off by default."
    ),
    function="validateConcurrentAdmissionPolicy",
)
CHECK_FLAVOR: Final = KUEUE_QUEUE.rule(
    "kueue-queue/check-flavor",
    title="The admission check is for a flavor that the ClusterQueue does not have",
    why="A check for a flavor that the queue does not have never applies.",
    function="validateAdmissionChecks",
)
INACTIVE: Final = KUEUE_QUEUE_ADVICE.rule(
    "kueue-queue/inactive-by-check",
    title="An AdmissionCheck keeps the ClusterQueue inactive",
    why="An inactive ClusterQueue admits no job.",
    refused_by="nothing; the queue is inactive",
    function="inactiveReason",
)
PARAMETERS: Final = KUEUE_QUEUE_ADVICE.rule(
    "kueue-queue/check-parameters",
    title="The parameters of an AdmissionCheck are not set, are of another kind, or do not exist",
    why="The AdmissionCheck and each ClusterQueue that names the check stay inactive.",
    refused_by="nothing; the check is inactive",
    source="kubernetes-sigs/kueue@ff69552e pkg/controller/admissionchecks",
)
FLAVOR_TOPOLOGY: Final = KUEUE_QUEUE_ADVICE.rule(
    "kueue-queue/topology-missing",
    title="The Topology of a flavor does not exist",
    why="Each ClusterQueue with the flavor is inactive until the Topology exists.",
    refused_by="nothing; the queue is inactive",
    function="inactiveReason",
)
PREEMPTION_WITHOUT_EFFECT: Final = KUEUE_QUEUE_ADVICE.rule(
    "kueue-queue/preemption-without-effect",
    title="A preemption setting of a ClusterQueue has no effect",
    why="Jobs that the setting should preempt keep their quota.",
    refused_by="nothing; nothing is preempted",
    source="kubernetes-sigs/kueue@ff69552e pkg/scheduler/preemption",
    level="advice",
    fails="silent",
)
_TRY_NEXT_FLAVOR: Final = "TryNextFlavor"
_POLICY: Final = "concurrentAdmissionPolicy"
_PREFERRED: Final = "TryPreferredFlavors"
_MOST_FLAVORS: Final = 16
_CONFLICT_REASON: Final = "MultiKueueWithProvisioningRequest"
_CONFLICT_REASON_SINCE: Final = (0, 16)
_TOPOLOGY_WITH_MULTI_KUEUE_SINCE: Final = (0, 15)


def validate_enum_fields(subject: Subject) -> Iterator[Problem]:
    """Yield fields of a ClusterQueue with values that its CustomResourceDefinition does not list."""
    spec = subject.typed(ClusterQueue).spec
    yield from _check_choice_of_field(spec, "stopPolicy", "None", "Hold", "HoldAndDrain")
    yield from _check_choice_of_field(spec, "queueingStrategy", "StrictFIFO", "BestEffortFIFO")
    preemption = spec.preemption
    yield from _check_choice_of_field(preemption, "reclaimWithinCohort", "Never", "LowerPriority", "Any")
    yield from _check_choice_of_field(
        preemption, "withinClusterQueue", "Never", "LowerPriority", "LowerOrNewerEqualPriority"
    )
    yield from _check_choice_of_field(preemption.borrow_within_cohort, "policy", "Never", "LowerPriority")
    fungibility = spec.flavor_fungibility
    yield from _check_choice_of_field(fungibility, "whenCanBorrow", "MayStopSearch", _TRY_NEXT_FLAVOR, "Borrow")
    yield from _check_choice_of_field(fungibility, "whenCanPreempt", "MayStopSearch", _TRY_NEXT_FLAVOR, "Preempt")
    yield from _check_choice_of_field(fungibility, "preference", "BorrowingOverPreemption", "PreemptionOverBorrowing")


def _check_choice_of_field(part: Typed, name: str, *choices: str) -> Iterator[Problem]:
    given = part.json.get(name)
    if given is not None and given not in choices and not is_placeholder(str(given)):
        yield CHOICE.problem(part.path(name), f"must be {either(choices)}", "set one of these", given)


def validate_preemption(subject: Subject) -> Iterator[Problem]:
    """Yield the problems that validatePreemption would report, and a wrong preference in flavorFungibility."""
    spec = subject.typed(ClusterQueue).spec
    yield from _check_preemption(spec.preemption)
    yield from _check_flavor_preference(spec.flavor_fungibility)


def _check_preemption(preemption: Preemption) -> Iterator[Problem]:
    borrowing = preemption.borrow_within_cohort
    if preemption.reclaim_within_cohort == "Never" and borrowing.policy != "Never":
        is_or_means = "is" if preemption.has("reclaimWithinCohort") else "is not set, which means"
        message = f"must be Never too because reclaimWithinCohort {is_or_means} Never"
        fix = "set reclaimWithinCohort to LowerPriority or Any, or remove this policy"
        yield PREEMPTION.problem(borrowing.path("policy"), message, fix, borrowing.policy)


def _check_flavor_preference(fungibility: FlavorFungibility) -> Iterator[Problem]:
    both_try_next = fungibility.when_can_borrow == fungibility.when_can_preempt == _TRY_NEXT_FLAVOR
    if fungibility.has("preference") and not both_try_next:
        message = f"must not be set unless whenCanBorrow and whenCanPreempt are both {_TRY_NEXT_FLAVOR}"
        fix = f"set both to {_TRY_NEXT_FLAVOR}, or remove the preference"
        yield PREFERENCE.problem(fungibility.path("preference"), message, fix, fungibility.preference)


def validate_namespace_selector(subject: Subject) -> Iterator[Problem]:
    """Yield the problems of operators, keys and values that ValidateLabelSelector would report."""
    selector = subject.typed(ClusterQueue).spec.namespace_selector
    for requirement in selector.match_expressions:
        yield from _check_selector(requirement.key, requirement.path("key"), requirement)
    for key in selector.match_labels:
        yield from _check_selector(key, selector.path("matchLabels", key))


def _check_selector(key: str, path: FieldPath, requirement: SelectorRequirement | None = None) -> Iterator[Problem]:
    """Yield invalid label keys, unknown operators, and operators that do not fit their values."""
    if qualified_name_errors(key):
        message = f"cannot be the key of a label because {qualified_name_fault(key)}"
        yield SELECTOR.problem(path, message, qualified_name_fix(key), key)
    if requirement is None:
        return
    operator, needs_values = requirement.operator, requirement.operator in ("In", "NotIn")
    if operator not in ("In", "NotIn", "Exists", "DoesNotExist"):
        message = "must be In, NotIn, Exists or DoesNotExist"
        yield SELECTOR.problem(requirement.path("operator"), message, "set one of these", operator)
    elif needs_values != bool(requirement.values):
        message = f"must {'' if needs_values else 'not '}be set because the operator is {operator}"
        fix = "add values" if needs_values else "remove the values"
        yield SELECTOR.problem(requirement.path("values"), message, fix)


def immutable_field_problem(path: FieldPath, message: str, fix: str) -> Problem:
    """Return the problem of a field that cannot change."""
    return IMMUTABLE.problem(path, message, fix)


def advise_cluster_queue(subject: Subject) -> Iterator[Problem]:
    """Yield problems of a ClusterQueue that admits nothing, or has settings without effect."""
    queue = subject.typed(ClusterQueue)
    if not queue.spec.has("namespaceSelector"):
        message = "is not set, so no namespace may use the ClusterQueue"
        path, fix = queue.spec.path("namespaceSelector"), "set {} for every namespace, or a selector"
        yield NO_NAMESPACE.problem(path, message, fix)
    yield from advise_resource_groups(queue.spec, subject)
    yield from advise_useless_borrowing_limits(subject)


def validate_local_queue(subject: Subject) -> Iterator[Problem]:
    """Yield the problem of a LocalQueue with a clusterQueue that is not a valid name, or that was changed.

    The CustomResourceDefinition refuses an invalid name and a change.
    """
    spec, old = subject.typed(LocalQueue).spec, subject.typed_old(LocalQueue).spec.cluster_queue
    new, path = spec.cluster_queue, spec.path("clusterQueue")
    if new and dns1123_subdomain_errors(new) and not is_placeholder_for_name(new):
        message = f"cannot be the name of a ClusterQueue because {subdomain_fault(new)}"
        yield CLUSTER_QUEUE_NAME.problem(path, message, subdomain_fix(new), new)
    if old and new != old:
        message = f"{change(old, new)} because a LocalQueue keeps its ClusterQueue"
        yield immutable_field_problem(path, message, f"set `{old}` again, or create another LocalQueue")


def advise_local_queue(subject: Subject) -> Iterator[Problem]:
    """Yield the problem of a LocalQueue if its ClusterQueue does not exist or does not select the queue's namespace.

    If a ClusterQueue in a file has no namespaceSelector, only the ClusterQueue is reported.
    """
    view, local = subject.cluster_view(), subject.typed(LocalQueue)
    name, path = local.spec.cluster_queue, local.spec.path("clusterQueue")
    queue = view.find(ClusterQueue, name, namespaced=False) if name else None
    if queue and (queue.spec.has("namespaceSelector") or not view.is_of_file(queue.json)):
        yield from _check_namespace_not_selected(read_cluster_queue(queue), path, subject)
    elif name and view.is_whole(ClusterQueue.gvk):
        near = view.nearest(name, read_quota_trees(view).cluster_queues)
        message = "is a ClusterQueue that does not exist, so the jobs of this LocalQueue wait"
        fix = did_you_mean(near, "create the ClusterQueue, or correct the name")
        yield CLUSTER_QUEUE_MISSING.problem(path, message, fix, name)


def _check_namespace_not_selected(queue: QueueFields, path: FieldPath, subject: Subject) -> Iterator[Problem]:
    selector = queue.namespace_selector
    if selector is None or selects_namespace(selector, subject.namespace, subject.cluster_view()) is False:
        message = (
            f"accepts no jobs from namespace `{subject.namespace}` because the namespaceSelector of the ClusterQueue "
            f"{'is not set' if selector is None else 'does not match the namespace'}"
        )
        fix = "name another ClusterQueue, or ask the administrator of this ClusterQueue to admit the namespace"
        yield NAMESPACE_NOT_SELECTED.problem(path, message, fix, queue.name)


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
        if is_gate_on(CONCURRENT_ADMISSION_GATE, subject):
            yield broken
        elif missing := missing_configuration_of_gate(CONCURRENT_ADMISSION_GATE, subject):
            yield replace(broken, message="", fix="", found="", missing=missing)


def _validate_policy(spec: ClusterQueueSpec) -> Iterator[Problem]:
    groups = spec.resource_groups
    if len(groups) != 1:
        message = f"are given, but {_POLICY} needs exactly one"
        yield _concurrent_admission_problem(
            spec.path("resourceGroups"), message, "cover all resources in one group", f"{len(groups)} groups"
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


def validate_admission_checks(subject: Subject) -> Iterator[Problem]:
    """Report admission checks for flavors that the queue does not have (validateAdmissionChecks)."""
    spec, old = subject.typed(ClusterQueue).spec, subject.typed_old(ClusterQueue)
    checks, before = spec.admission_checks_strategy, old.spec.admission_checks_strategy
    if spec.resource_groups and (not old or checks.differs(before, "admissionChecks")):
        yield from _check_flavors_are_of_queue(checks, spec.flavor_names())


def _check_flavors_are_of_queue(checks: AdmissionChecksStrategy, flavors: set[str]) -> Iterator[Problem]:
    for check in checks.admission_checks:
        for index, name in enumerate(check.on_flavors):
            if name not in flavors and not is_placeholder(name):
                message = "is not a flavor of this ClusterQueue"
                fix = "write a flavor of this ClusterQueue, or remove the entry (no entry means all flavors)"
                yield CHECK_FLAVOR.problem(check.path("onFlavors", index), message, fix, name)


def validate_controller_name_unchanged(subject: Subject) -> Iterator[Problem]:
    """Yield the problem of a changed controllerName of an AdmissionCheck."""
    check, before = subject.typed(AdmissionCheck), subject.typed_old(AdmissionCheck)
    old, new = before.spec.controller_name, check.spec.controller_name
    if before and old != new:
        message = f"{change(old, new)} because an AdmissionCheck keeps its controller"
        fix = f"{f'set `{old}` again' if old else 'remove the field'}, or create another AdmissionCheck"
        yield immutable_field_problem(check.spec.path("controllerName"), message, fix)


def check_inactive_queue(subject: Subject) -> Iterator[Problem]:
    """Yield the AdmissionChecks that keep a ClusterQueue inactive."""
    queue = subject.typed(ClusterQueue)
    for cause in why_checks_keep_queue_inactive(read_cluster_queue(queue), subject.cluster_view()):
        is_old = not is_kueue_release_known(subject) or find_kueue_release(subject) < _CONFLICT_REASON_SINCE
        if cause.is_known and not cause.is_of_check and not (_CONFLICT_REASON in cause.text and is_old):
            message = f"the ClusterQueue is inactive because {cause.text}"
            fix = "remove or correct the AdmissionCheck"
            if cause.missing:
                fix = f"create {cause.missing}, or remove the AdmissionCheck from the ClusterQueue"
            yield INACTIVE.problem(queue.spec.path("admissionChecksStrategy"), message, fix)
    if flavor := _flavor_with_topology_of_old_kueue(queue, subject):
        message = (
            "the ClusterQueue is inactive because Kueue before 0.15 allows no AdmissionCheck of MultiKueue with a "
            f"Topology, here `{flavor.spec.topology_name}` of ResourceFlavor `{flavor.name}` "
            "(NotSupportedWithTopologyAwareScheduling)"
        )
        fix = "upgrade Kueue, or remove topologyName from the flavor"
        yield INACTIVE.problem(queue.spec.path("admissionChecksStrategy"), message, fix)


def _flavor_with_topology_of_old_kueue(queue: ClusterQueue, subject: Subject) -> ResourceFlavor | None:
    """Return the first flavor with a topology, if the ClusterQueue has an AdmissionCheck of MultiKueue.

    Return None since release 0.15, in which Kueue accepts the topology.
    """
    fields, view = read_cluster_queue(queue), subject.cluster_view()
    if not is_kueue_release_stated(subject) or find_kueue_release(subject) >= _TOPOLOGY_WITH_MULTI_KUEUE_SINCE:
        return None
    if not runs_in_other_cluster(fields, view):
        return None
    flavors = (view.find(ResourceFlavor, name, namespaced=False) for name in sorted(fields.flavor_names()))
    return next((flavor for flavor in flavors if flavor.spec.topology_name), None)


def check_check_parameters(subject: Subject) -> Iterator[Problem]:
    """Yield parameters of an AdmissionCheck that are not set, are of another kind, or do not exist."""
    spec, view = subject.typed(AdmissionCheck).spec, subject.cluster_view()
    kind, parameters = KINDS_OF_PARAMETERS.get(spec.controller_name), spec.parameters
    if kind is None:
        return
    if mistake := mistake_in_parameters(subject.typed(AdmissionCheck)):
        path, must = mistake
        message = f"{must}, so the AdmissionCheck and its ClusterQueues are inactive"
        yield PARAMETERS.problem(path, message, f"name a {kind.kind} of {kind.group}", get(subject.object, path))
    elif absent_parameters_of_check(subject.typed(AdmissionCheck), view):
        message = f"is a {kind.kind} that does not exist, so the AdmissionCheck and its ClusterQueues are inactive"
        fix = f"create the {kind.kind}, or correct the name"
        yield PARAMETERS.problem(parameters.path("name"), message, fix, parameters.name)
    elif kind == MULTI_KUEUE_CONFIG and (absent := clusters_if_all_are_absent(parameters.name, view)):
        clusters = named([f"`{each}`" for each in absent], "MultiKueueCluster")
        message = f"is a MultiKueueConfig with {clusters}, and no such cluster exists"
        why = "so the AdmissionCheck and its ClusterQueues are inactive (NoUsableClusters)"
        fix = "create a MultiKueueCluster, or name a cluster that exists"
        yield PARAMETERS.problem(parameters.path("name"), f"{message}, {why}", fix, parameters.name)


def check_flavor_topology(subject: Subject) -> Iterator[Problem]:
    """Yield a missing Topology of a flavor."""
    spec, view = subject.typed(ResourceFlavor).spec, subject.cluster_view()
    if spec.topology_name and view.lacks(Topology.gvk, spec.topology_name):
        message = "is a Topology that does not exist, so each ClusterQueue with the flavor is inactive"
        fix = "create the Topology, or remove topologyName"
        yield FLAVOR_TOPOLOGY.problem(spec.path("topologyName"), message, fix, spec.topology_name)


def advise_preemption(subject: Subject) -> Iterator[Problem]:
    """Yield preemption settings that have no effect."""
    queue = subject.typed(ClusterQueue)
    spec = queue.spec
    preemption, cohort = spec.preemption, spec.cohort_name or spec.cohort
    if preemption.reclaim_within_cohort != "Never" and not cohort:
        message = "has no effect without a cohort"
        fix = f"set spec.{name_of_cohort_field(subject)}, or remove the field"
        yield _preemption_problem(preemption.path("reclaimWithinCohort"), message, fix)
    borrowing = preemption.borrow_within_cohort
    configuration = subject.once(read_kueue_configuration)
    if not cohort or not (configuration.is_known or subject.cluster_view().is_whole()):
        return
    sharing = configuration.has_fair_sharing
    if sharing and borrowing.policy not in ("", "Never"):
        message = "has no effect while Fair Sharing is on"
        fix = "remove borrowWithinCohort, or set preemptionStrategies of Fair Sharing"
        yield _preemption_problem(borrowing.at, message, fix)
    elif (
        not sharing
        and borrowing.policy == "Never"
        and borrowing.is_set
        and preemption.within_cluster_queue != "Never"
        and any(quota.borrowing_limit != 0 for quota in read_cluster_queue(queue).quotas.values())
    ):
        message = (
            "has no effect for workloads above nominal quota while borrowWithinCohort is Never, so these workloads "
            "preempt nothing in their own queue"
        )
        fix = "set borrowWithinCohort to LowerPriority, or raise nominalQuota"
        if preemption.reclaim_within_cohort == "Never":
            fix = "set borrowWithinCohort and reclaimWithinCohort to LowerPriority, or raise nominalQuota"
        yield _preemption_problem(preemption.path("withinClusterQueue"), message, fix)


def _preemption_problem(path: tuple[str | int, ...], message: str, fix: str) -> Problem:
    return PREEMPTION_WITHOUT_EFFECT.problem(path, message, fix)
