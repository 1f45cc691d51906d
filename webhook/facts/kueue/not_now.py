"""Why a job waits now: its queue is missing, stopped or inactive, other jobs use the quota, or the job lacks another
object: a class, the template of a claim, or a pod of its group.

A ClusterQueue is inactive if objects that it names do not exist or conflict. The Workload says only that its queue is
inactive; a condition of the ClusterQueue says why. Kueue reports a cycle of cohorts only in its log. The priorities of
other jobs are not compared, so quota that preemption may free counts as free. Kueue creates no Workload for a job with
a priority class that does not exist.

Kueue reports a claim that it cannot count only in a condition of the Workload, with the reason Misconfigured or
Inadmissible. Kueue waits for all Pods of a group. The Pods are counted here if the view has all Pods.

Source: kubernetes-sigs/kueue@ff69552e pkg/cache/scheduler/clusterqueue.go updateQueueStatus and inactiveReason,
pkg/cache/scheduler/resource_node.go available, pkg/scheduler, pkg/scheduler/preemption, pkg/dra/claims.go,
pkg/controller/jobs/pod/pod_controller.go validatePodGroupMetadata and pkg/controller/jobframework/reconciler.go.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Final

from webhook.apimachinery.paths import FieldPath
from webhook.apimachinery.quantity import read_count
from webhook.apimachinery.releases import release_as_text
from webhook.facts.check import is_made_by_controller
from webhook.facts.dra.pod_claims import TEMPLATE, is_promised_by_compute_domain
from webhook.facts.dra.types import DEVICE_CLAIMS
from webhook.facts.kueue.admission_checks import (
    InactivityCause,
    may_run_in_other_cluster,
    why_checks_keep_queue_inactive,
)
from webhook.facts.kueue.assignment import (
    PodSetQuotaRequest,
    RejectedFlavor,
    fit_capacity,
    pod_sets_not_fitting_together,
)
from webhook.facts.kueue.configuration import read_kueue_configuration
from webhook.facts.kueue.groups import KUEUE_NOT_NOW
from webhook.facts.kueue.managed import (
    SERVING_FRAMEWORKS,
    KueueManagement,
    QueuePlace,
    how_kueue_manages,
    is_namespace_known,
    is_namespace_selection_known,
    local_queue_names,
)
from webhook.facts.kueue.never import MOST_EXPLAINED_FLAVORS, JobInClusterQueue
from webhook.facts.kueue.never_pod_groups import GROUP_COUNT, pod_group_of
from webhook.facts.kueue.objects import POD_GROUP, POD_GROUP_COUNT, POD_GROUP_FAST, PRIORITY, QUEUE_NAME
from webhook.facts.kueue.quota import FlavorResource, count_other_waiting_workloads, is_queued
from webhook.facts.kueue.quota_tree import QueueFields, QuotaGroup
from webhook.facts.kueue.releases import LABEL_ALONE, UNKNOWN, find_kueue_release, is_kueue_release_known
from webhook.facts.kueue.workload import PodSetRequests, build_workload
from webhook.facts.resource_units import format_amount_in_kueue_units, format_amount_with_resource_name
from webhook.facts.subject import Subject
from webhook.facts.view import ClusterView
from webhook.rules.problem import MissingObject, Problem
from webhook.text.wording import counted, did_you_mean
from webhook.typed.collections import Items
from webhook.typed.kueue import ClusterQueue, LocalQueue, PodWithStatus, ResourceFlavor, Topology, WorkloadPriorityClass
from webhook.typed.objects import Namespace, Object
from webhook.yamltext.placeholders import is_placeholder

INACTIVE: Final = KUEUE_NOT_NOW.rule(
    "kueue-not-now/inactive",
    title="The ClusterQueue is not active",
    why="One missing flavor, topology or admission check makes the whole ClusterQueue inactive.",
    function="inactiveReason",
    issues=("https://github.com/headlamp-k8s/plugins/issues/1191",),
)
QUEUE_REQUIRED: Final = KUEUE_NOT_NOW.rule(
    "kueue-not-now/queue-required",
    title="The job names no queue although Kueue manages every job",
    why="With manageJobsWithoutQueueName, Kueue suspends jobs without a queue name and never admits them.",
    source="kubernetes-sigs/kueue@ff69552e pkg/controller/jobframework/utils.go",
    function="WorkloadShouldBeSuspended",
    issues=("https://github.com/kubernetes-sigs/kueue/issues/7929",),
)
LOCAL_QUEUE_MISSING: Final = KUEUE_NOT_NOW.rule(
    "kueue-not-now/local-queue-missing",
    title="The LocalQueue does not exist",
    why="Kueue accepts the job and keeps it suspended until the LocalQueue exists.",
    source="kubernetes-sigs/kueue@ff69552e pkg/scheduler, kubernetes-sigs/kueue#3439",
    issues=("https://github.com/kubernetes-sigs/kueue/issues/388",),
)
CLUSTER_QUEUE_MISSING: Final = KUEUE_NOT_NOW.rule(
    "kueue-not-now/cluster-queue-missing",
    title="The ClusterQueue of the LocalQueue does not exist",
    why="Jobs wait until the ClusterQueue exists.",
    source="kubernetes-sigs/kueue@ff69552e pkg/scheduler",
)
STOPPED: Final = KUEUE_NOT_NOW.rule(
    "kueue-not-now/stopped",
    title="The queue is stopped",
    why="With stopPolicy Hold or HoldAndDrain, the queue admits nothing until an administrator resumes it.",
    function="inactiveReason",
)
COHORT_CYCLE: Final = KUEUE_NOT_NOW.rule(
    "kueue-not-now/cohort-cycle",
    title="The cohorts form a cycle",
    why="Kueue admits no job from the queues of these cohorts. The ClusterQueues stay active and show no reason.",
    source="kubernetes-sigs/kueue@ff69552e pkg/cache/hierarchy",
)
WAITING_FOR_QUOTA: Final = KUEUE_NOT_NOW.rule(
    "kueue-not-now/waiting-for-quota",
    title="Other jobs use the quota that the job needs",
    why="Other jobs hold the quota, and the preemption settings of the queue do not allow this job to take it.",
    source="kubernetes-sigs/kueue@ff69552e pkg/cache/scheduler/resource_node.go",
    function="available",
)
QUEUE_ORDER: Final = KUEUE_NOT_NOW.rule(
    "kueue-not-now/queue-order",
    title="An earlier job blocks the StrictFIFO queue",
    why="If the job at the head of the queue cannot be admitted, all later jobs wait.",
    source="kubernetes-sigs/kueue@ff69552e pkg/cache/queue",
    issues=(
        "https://github.com/kubernetes-sigs/kueue/issues/4809",
        "https://github.com/kubernetes-sigs/kueue/issues/8309",
    ),
)
PRIORITY_CLASS: Final = KUEUE_NOT_NOW.rule(
    "kueue-not-now/priority-class",
    title="The priority class of the job does not exist",
    why="Kueue creates no Workload until the priority class exists.",
    source="kubernetes-sigs/kueue#3439, kubernetes-sigs/kueue#15171",
    issues=(
        "https://github.com/kubernetes-sigs/kueue/issues/3439",
        "https://github.com/kubernetes-sigs/kueue/pull/14125",
        "https://github.com/kubernetes-sigs/kueue/issues/15171",
        "https://github.com/kubernetes-sigs/kueue/pull/15175",
    ),
)
CLAIM_TEMPLATE_MISSING: Final = KUEUE_NOT_NOW.rule(
    "kueue-not-now/claim-template-missing",
    title="The ResourceClaimTemplate of the job does not exist",
    why="Kueue cannot count the devices of a missing template. Kueue tries again until the template exists.",
    source="kubernetes-sigs/kueue@ff69552e pkg/dra/claims.go",
    issues=("https://github.com/opendatahub-io/architecture-decision-records/pull/158",),
    yields_to=(f"{DEVICE_CLAIMS.name}/claim-exists",),
)
POD_GROUP_INCOMPLETE: Final = KUEUE_NOT_NOW.rule(
    "kueue-not-now/pod-group-incomplete",
    title="Some pods of the group do not exist yet",
    why=(
        "Kueue creates the Workload when all pods of the group exist. Until then the existing pods wait, unless the "
        "group has fast admission."
    ),
    source="kubernetes-sigs/kueue@ff69552e pkg/controller/jobs/pod/pod_controller.go",
    function="validatePodGroupMetadata",
)
WAIT: Final = "wait, ask the owner of the queue, or use another queue"
_MOST_NAMED: Final = 5
"""A message names the first cohort of a cycle and at most this number of further cohorts."""
_CREATE: Final = "correct the name, or ask the administrator to create the class"


_MANAGES_ALL: Final = "manageJobsWithoutQueueName is on"


def check_queue_required(subject: Subject) -> Iterator[Problem]:
    """Yield the problem of a job without a queue name where Kueue manages all jobs."""
    management = subject.once(how_kueue_manages)
    if (
        management.why_not != "no-queue"
        or management.framework in SERVING_FRAMEWORKS
        or not subject.once(read_kueue_configuration).manages_all
    ):
        return
    if subject.once(is_made_by_controller) or not is_namespace_known(subject):
        return
    if not is_namespace_selection_known(subject):
        yield QUEUE_REQUIRED.problem("", missing=(MissingObject(kind=Namespace.gvk.kind, name=subject.namespace),))
        return
    if annotated := subject.typed(Object).annotations.get(QUEUE_NAME, ""):
        path = ("metadata", "annotations", QUEUE_NAME)
        if not is_kueue_release_known(subject):
            yield QUEUE_REQUIRED.problem(path, missing=(UNKNOWN,))
        elif find_kueue_release(subject) >= LABEL_ALONE:
            message = (
                f"has no effect since Kueue {release_as_text(LABEL_ALONE)}, which reads the name of the queue only"
            )
            message = f"{message} from a label, so Kueue suspends the object and never admits it ({_MANAGES_ALL})"
            yield QUEUE_REQUIRED.problem(path, message, f"set the label {QUEUE_NAME} instead", annotated)
        return
    queues = local_queue_names(subject)
    message = f"the object names no queue, so Kueue suspends the object and never admits it ({_MANAGES_ALL})"
    fix = f"set the label {QUEUE_NAME}" + (f", for example to `{min(queues)}`" if queues else "")
    yield QUEUE_REQUIRED.problem("", message, fix, needs=QUEUE_NAME)


def validate_local_queue(subject: Subject, management: KueueManagement, place: QueuePlace) -> Iterator[Problem]:
    """Yield the problem of a LocalQueue that does not exist or is stopped."""
    if place.local_queue:
        policy = place.local_queue.spec.stop_policy
        if policy not in ("", "None"):
            yield _stopped_queue_problem(place, LocalQueue.gvk.kind, management.queue, policy)
    elif is_namespace_known(subject) and subject.cluster_view().is_whole(LocalQueue.gvk):
        yield _local_queue_missing_problem(subject, management, place)


def _local_queue_missing_problem(subject: Subject, management: KueueManagement, place: QueuePlace) -> Problem:
    near = place.view.nearest(management.queue, local_queue_names(subject))
    message = f"is not a LocalQueue of namespace `{subject.namespace}`, so the job waits"
    fix = did_you_mean(near, "create the LocalQueue, or name another LocalQueue")
    reason = f"Kueue: LocalQueue {management.queue} doesn't exist"
    return LOCAL_QUEUE_MISSING.problem(place.at, f"{message} ({reason})", fix, management.queue)


def validate_cluster_queue(subject: Subject, management: KueueManagement, place: QueuePlace) -> Iterator[Problem]:
    """Yield the problem of a ClusterQueue that does not exist or is inactive."""
    if place.queue is not None:
        yield from _check_queue_is_active(place, place.queue)
    elif place.local_queue and subject.cluster_view().is_whole(ClusterQueue.gvk):
        yield _cluster_queue_missing_problem(management, place)


def _check_queue_is_active(place: QueuePlace, queue: QueueFields) -> Iterator[Problem]:
    if queue.is_stopped():
        yield _stopped_queue_problem(place, ClusterQueue.gvk.kind, queue.name, queue.stop_policy)
    elif cause := next(causes_of_inactivity(queue, place.view), None):
        yield inactive_queue_problem(place, queue, cause)
    elif place.tree is None:
        yield _cohort_cycle_problem(place, queue)


def _cluster_queue_missing_problem(management: KueueManagement, place: QueuePlace) -> Problem:
    target = place.local_queue.spec.cluster_queue
    message = f"leads to LocalQueue `{management.queue}`, whose ClusterQueue `{target}` does not exist"
    reason = f"Kueue: ClusterQueue {target} doesn't exist"
    fix = "use another queue, or ask the administrator to create the ClusterQueue"
    return CLUSTER_QUEUE_MISSING.problem(place.at, f"{message} ({reason})", fix)


def _stopped_queue_problem(place: QueuePlace, kind: str, name: str, policy: str) -> Problem:
    message = f"leads to {kind} `{name}`, which is stopped because its stopPolicy is {policy}"
    return STOPPED.problem(place.at, f"{message} (Kueue: {kind} {name} is inactive)", WAIT)


def _cohort_cycle_problem(place: QueuePlace, queue: QueueFields) -> Problem:
    first, *others = place.queues.cycle_above(queue.cohort)
    way = ", ".join([first, *others[:_MOST_NAMED], *(["..."] if len(others) > _MOST_NAMED else []), first])
    message = (
        f"leads to ClusterQueue `{queue.name}`, but the parents of its Cohorts form a cycle ({way}), so Kueue admits "
        "no job"
    )
    fix = f"use another queue, or ask the owner of Cohort `{first}` to correct its spec.parentName"
    return COHORT_CYCLE.problem(place.at, message, fix)


def advise_waiting_for_quota(fitting: JobInClusterQueue, wanted: Sequence[PodSetQuotaRequest]) -> Iterator[Problem]:
    """Yield the problem of a job that waits for quota or for other jobs in its queue."""
    before = _number_of_other_waiting_workloads(fitting) if fitting.queue.is_strict else 0
    available = partial(fitting.tree.available_quota, fitting.node)
    if before > 0:
        yield _queue_order_problem(fitting, before)
    elif not fit_capacity(wanted, available) and not _may_preemption_free_enough(fitting, wanted):
        yield _waiting_for_quota_problem(fitting, wanted)


def _queue_order_problem(fitting: JobInClusterQueue, before: int) -> Problem:
    others = counted(before, "workload")
    message = f"leads to {fitting.queue_as_text()}, which admits in StrictFIFO order, so the job waits behind {others}"
    fix = f"wait, raise the priority by the label {PRIORITY}, or use a queue with BestEffortFIFO"
    return QUEUE_ORDER.problem(fitting.place.at, f"{message}, unless the job has a higher priority", fix)


def _waiting_for_quota_problem(fitting: JobInClusterQueue, wanted: Sequence[PodSetQuotaRequest]) -> Problem:
    available = partial(fitting.tree.available_quota, fitting.node)
    short = [pods for pods in wanted if not pods.flavors_with_capacity(available)] or [*wanted]
    reasons = [reason for pods in short for reason in pods.rejected_flavors(available) if reason.resource]
    left = "; ".join(_remaining_quota_as_text(fitting, reason) for reason in reasons[:MOST_EXPLAINED_FLAVORS])
    message = (
        f"{fitting.describe_request(short[0], reasons)}, but {left}"
        if left
        else "has room in the queue for only one pod set at a time"
    )
    message = f"{message} {_source_of_usage(fitting)}, and preemption cannot free enough, so the job waits"
    path, fix = short[0].pod_set.path_in_object(("spec",)), "wait, or use another queue"
    return WAITING_FOR_QUOTA.problem(path, f"{message} (Kueue: WaitingForQuota)", fix)


def _source_of_usage(fitting: JobInClusterQueue) -> str:
    """Return `while 3 Workloads have reserved quota`, or that the usage is from the status of the ClusterQueues."""
    reserved = fitting.place.queues.reserved
    if reserved is None:
        return "according to the status of the ClusterQueues"
    count = reserved.number_of_workloads_with_quota
    return f"while {counted(count, 'Workload')} {'has' if count == 1 else 'have'} reserved quota"


def _number_of_other_waiting_workloads(fitting: JobInClusterQueue) -> int:
    """Return how many other Workloads wait in the same ClusterQueue; 0 if the number is not known."""
    view = fitting.place.view
    if fitting.place.queues.reserved is not None:
        return count_other_waiting_workloads(fitting.subject, fitting.queue.name, view)
    pending = fitting.queue.pending
    return 0 if pending is None else pending - is_queued(fitting.subject, view)


def _remaining_quota_as_text(fitting: JobInClusterQueue, rejected: RejectedFlavor) -> str:
    pair = (rejected.flavor, rejected.resource)
    total = format_amount_with_resource_name(
        rejected.resource, fitting.tree.potential_available_quota(fitting.node, pair)
    )
    available_text = format_amount_in_kueue_units(rejected.resource, max(0, rejected.most))
    return f"flavor `{rejected.flavor}` has {available_text} of {total} free now"


def _may_preemption_free_enough(fitting: JobInClusterQueue, wanted: Sequence[PodSetQuotaRequest]) -> bool:
    """Return whether preemption could free enough quota if every other Workload had a lower priority or used borrowed
    quota.
    """
    queue = fitting.queue
    if queue.preempts_to_borrow:
        return True

    def freeable_amount(pair: FlavorResource) -> int:
        used = fitting.tree.usage(fitting.node, pair)
        left = fitting.tree.available_quota(fitting.node, pair, less_usage=used if queue.preempts_own else 0)
        nominal = fitting.node.quota(pair).nominal - (0 if queue.preempts_own else used)
        return max(left, nominal) if queue.reclaims else left

    return (queue.preempts_own or queue.reclaims) and not pod_sets_not_fitting_together(wanted, freeable_amount)


def validate_priority_classes(subject: Subject, management: KueueManagement, place: QueuePlace) -> Iterator[Problem]:  # noqa: ARG001
    """Report a missing WorkloadPriorityClass of the job, or a missing PriorityClass of its pods."""
    metadata = subject.metadata
    name = metadata.labels.get(PRIORITY, "")
    if name and not is_placeholder(name) and subject.cluster_view().lacks(WorkloadPriorityClass.gvk, name):
        yield _priority_class_problem(metadata.path("labels", PRIORITY), "WorkloadPriorityClass", name, _CREATE)
    for pods in subject.fact("priorities")["classes"]:
        if pods["absent"] and not name:
            fix = did_you_mean(pods["nearest"], _CREATE)
            yield _priority_class_problem(pods["path"], "PriorityClass", pods["name"], fix)
            return


def _priority_class_problem(path: FieldPath | str, kind: str, name: str, fix: str) -> Problem:
    message = f"names a {kind} that does not exist, so the job waits because Kueue creates no Workload for it"
    return PRIORITY_CLASS.problem(path, message, fix, name)


def inactive_queue_problem(place: QueuePlace, queue: QueueFields, cause: InactivityCause) -> Problem:
    """Return the problem of a job in an inactive ClusterQueue."""
    named = place.view.name_with_file(ClusterQueue.gvk, queue.name)
    message = f"leads to {named}, which is inactive (Kueue: ClusterQueue {queue.name} is inactive) because {cause.text}"
    fix = WAIT
    if cause.missing:
        fix = f"use another queue, or ask the administrator to create {cause.missing} or to correct the name"
    elif cause.is_of_check:
        fix = "use another queue, or ask the administrator to correct the AdmissionCheck"
    return INACTIVE.problem(place.at, message, fix)


def causes_of_inactivity(queue: QueueFields, view: ClusterView) -> Iterator[InactivityCause]:
    """Yield the reasons why a ClusterQueue is inactive."""
    for group in queue.groups:
        yield from _describe_absent_flavors(group, view)
    yield from why_checks_keep_queue_inactive(queue, view)
    for group in queue.groups:
        yield from _describe_absent_topologies(group, queue, view)
    if queue.inactive:
        yield InactivityCause(f"its status says {queue.inactive}")


def _describe_absent_flavors(group: QuotaGroup, view: ClusterView) -> Iterator[InactivityCause]:
    for name in Items(group.flavors, view.deadline):
        if view.lacks(ResourceFlavor.gvk, name):
            flavor = f"ResourceFlavor `{name}`"
            yield InactivityCause(f"its {flavor} does not exist (FlavorNotFound)", flavor)


def _describe_absent_topologies(group: QuotaGroup, queue: QueueFields, view: ClusterView) -> Iterator[InactivityCause]:
    flavors = view.copy_without_missing_objects()
    for name in Items(group.flavors, view.deadline):
        topology = flavors.find(ResourceFlavor, name, namespaced=False).spec.topology_name
        if topology and not may_run_in_other_cluster(queue, view) and view.lacks(Topology.gvk, topology):
            missing = f"Topology `{topology}`"
            yield InactivityCause(f"{missing} of its flavor `{name}` does not exist (TopologyNotFound)", missing)


def validate_claims(subject: Subject, management: KueueManagement, place: QueuePlace) -> Iterator[Problem]:  # noqa: ARG001
    """Report claims that Kueue cannot count, and templates that neither exist nor will be created."""
    pod_sets = subject.once(build_workload).pod_sets
    for pod_set in pod_sets:
        yield from pod_set.devices.refused
    for pod_set in pod_sets:
        yield from pod_set.devices.waiting
        yield from _check_missing_templates(pod_set, subject, place)


def _check_missing_templates(pod_set: PodSetRequests, subject: Subject, place: QueuePlace) -> Iterator[Problem]:
    for path, missing in pod_set.devices.missing:
        if is_promised_by_compute_domain(subject.cluster_view(), missing.name):
            continue  # a ComputeDomain will create the template, and Kueue tries again
        if subject.cluster_view().is_whole(TEMPLATE):
            yield _claim_template_missing_problem(path, missing.name)
        else:
            place.view.note_missing(missing)


def _claim_template_missing_problem(path: FieldPath, name: str) -> Problem:
    message = f"uses ResourceClaimTemplate `{name}`, which does not exist, so Kueue cannot count its devices"
    fix = "create the template in this namespace, or correct the name"
    return CLAIM_TEMPLATE_MISSING.problem(path, message, fix)


def validate_pod_group_is_complete(
    subject: Subject,
    management: KueueManagement,
    place: QueuePlace,  # noqa: ARG001
) -> Iterator[Problem]:
    """Report a Pod of a group with fewer Pods than the annotation says, if the view has all Pods."""
    group, pod, view = pod_group_of(subject, management), subject.typed(Object), subject.cluster_view()
    written, fast = pod.annotations.get(POD_GROUP_COUNT, ""), pod.annotations.get(POD_GROUP_FAST)
    count = read_count(written)
    if not group or count is None or fast == "true" or not view.is_whole(PodWithStatus.gvk):
        return
    members = [other for other in view.list_typed(PodWithStatus, subject.namespace) if _is_live_member(other, group)]
    existing = len({pod.name, *(member.name for member in members)})
    if existing < count and not view.missing_objects_by_field():
        message = f"is more than the {counted(existing, 'pod')} of group `{group}` in this namespace"
        message = f"{message}, so Kueue waits for the other pods"
        yield POD_GROUP_INCOMPLETE.problem(GROUP_COUNT, message, "create the other pods of the group", written)


def _is_live_member(pod: PodWithStatus, group: str) -> bool:
    return pod.labels.get(POD_GROUP) == group and not pod.is_failed_or_terminating
