"""Pods that KAI never starts, because of the queue, a quota or limit, or a fraction of a GPU that KAI's webhook
refuses.

KAI reads the queue from a label of the top owner, then from the same label of the pod, then from the label `project`.
For a CronJob, KAI reads the labels of the Job. Without these labels, KAI uses default-queue. A queue with a missing
parent does not exist for KAI, nor do its children. Pods with priority 100 or more are not preemptible, and may use only
the quota of the queue and of its parents.

Source: kai-scheduler/KAI-Scheduler@d5bc503a pkg/podgrouper, pkg/scheduler/actions/utils/input_jobs.go,
plugins/proportion/capacity_policy/quota_check.go, pkg/admission/webhook.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Final, NamedTuple

from webhook.apimachinery.attributes import JSON, GroupVersionKind
from webhook.apimachinery.images import parse_image_name
from webhook.apimachinery.paths import FieldPath, get
from webhook.apimachinery.releases import Release, parse_release
from webhook.cluster.interest import interest_in_fields
from webhook.facts.gpu.device_pods import PLACED, located_templates, without_repeated_problems
from webhook.facts.kinds import CRON_JOB, POD
from webhook.facts.other_schedulers.kai_gangs import (
    DEVICES,
    FRACTION,
    GPU,
    KAI,
    MEMORY,
    Gang,
    KaiPods,
    check_kai_pod_group,
    gang_of_pods,
    members_of_jobs,
    read_fraction,
    read_whole_number,
    roles_without_replicas,
)
from webhook.facts.pods.pod_requests import NamespaceLimits, quota_requests_of_pod, requests_of_containers
from webhook.facts.priority_classes import PriorityClass
from webhook.facts.resource_units import format_amount_with_resource_name
from webhook.facts.subject import Check, Subject
from webhook.facts.view import ClusterView
from webhook.rules.problem import Problem
from webhook.text.wording import counted, did_you_mean
from webhook.typed import pod_parts
from webhook.typed.cluster_objects import Deployment
from webhook.typed.fields import Part, Text, ValueMap
from webhook.typed.objects import Object
from webhook.typed.pods import PodSpec
from webhook.typed.view import Typed


class KaiQueueResources(Typed):
    """scheduling.run.ai/v2 QueueResources: a quota and a limit for each resource."""

    cpu = ValueMap()
    gpu = ValueMap()
    memory = ValueMap()

    def amounts(self, resource: str) -> Mapping[str, JSON]:
        """Return quota and limit of cpu, gpu or memory, as far as they are set."""
        return {"cpu": self.cpu, "gpu": self.gpu, "memory": self.memory}[resource]


class KaiQueueSpec(Typed):
    """scheduling.run.ai/v2 QueueSpec."""

    parent_queue = Text()
    resources = Part(KaiQueueResources)


class KaiQueue(Object):
    """scheduling.run.ai/v2 Queue, which has no namespace."""

    gvk = GroupVersionKind("scheduling.run.ai", "v2", "Queue")
    spec = Part(KaiQueueSpec)


class KaiGlobalConfig(Typed):
    """kai.scheduler/v1 GlobalConfig."""

    queue_label_key = Text()


class KaiConfigSpec(Typed):
    """kai.scheduler/v1 ConfigSpec."""

    global_config = Part(KaiGlobalConfig, name="global")


class KaiConfig(Object):
    """kai.scheduler/v1 Config, from which KAI's operator installs KAI."""

    gvk = GroupVersionKind("kai.scheduler", "v1", "Config")
    spec = Part(KaiConfigSpec)


QUEUE: Final = KAI.rule(
    "kai/queue",
    title="KAI does not find the queue of the pods",
    why="KAI skips the workload without an error until the queue exists, so the pods stay Pending.",
)
PARENT: Final = KAI.rule(
    "kai/parent-queue",
    title="The parent of the KAI queue does not exist",
    why="KAI skips the workloads of a queue with a missing parent, so the pods stay Pending.",
)
LEAF: Final = KAI.rule(
    "kai/leaf-queue",
    title="The KAI queue has child queues",
    why="KAI accepts workloads only in queues without children, so the pods stay Pending.",
)
QUOTA: Final = KAI.rule(
    "kai/non-preemptible-quota",
    title="Pods that KAI never preempts request more than the quota of their queue",
    why="Workloads of priority 100 or more may use only the quota of the queue and its parents, so the pods wait.",
    source="kai-scheduler/KAI-Scheduler@d5bc503a pkg/scheduler/plugins/proportion/capacity_policy/quota_check.go",
)
LIMIT: Final = KAI.rule(
    "kai/limit",
    title="Pods that start together request more than the limit of their KAI queue",
    why="Pods that start together must fit the limits of the queue and of its parents, so these pods stay Pending.",
    source="kai-scheduler/KAI-Scheduler@d5bc503a pkg/scheduler/plugins/proportion/capacity_policy/capacity_policy.go",
)
FRACTION_FORM: Final = KAI.rule(
    "kai/fraction",
    title="A fraction of a GPU is written in a form that KAI refuses",
    why="The webhook of KAI refuses each pod, so no pod is created.",
    source="kai-scheduler/KAI-Scheduler@d5bc503a pkg/admission/webhook/v1alpha2/gpusharing",
    fails="controller",
)
NODE_NAME: Final = KAI.rule(
    "kai/node-name",
    title="A pod with nodeName requests a fraction of a GPU from KAI",
    why="KAI chooses a GPU when it places a pod. A pod with nodeName skips the scheduler, so it gets no GPU.",
    source="kai-scheduler/KAI-Scheduler@d5bc503a pkg/binder/binding/resourcereservation/resource_reservation.go",
    function="ReserveGpuDevice",
    fails="start",
)
FRACTION_PLACE: Final = KAI.rule(
    "kai/fraction-place",
    title="A fraction of a GPU is written where KAI does not read it",
    why="KAI reads these names only in annotations of pods, and only without a prefix. Otherwise the pods get no GPU.",
    source="kai-scheduler/KAI-Scheduler@d5bc503a pkg/common/constants/constants.go",
    fails="silent",
)
REPLICAS: Final = KAI.rule(
    "kai/replicas-required",
    title="A role of a training job that KAI places has no replicas",
    why="KAI adds up the replicas of all roles. If a role has 0, KAI creates no group, and the pods stay Pending.",
    source="kai-scheduler/KAI-Scheduler@d5bc503a pkg/podgrouper/podgrouper/plugins/kubeflow/distributed_common.go",
    function="calcJobNumOfPods",
)
FRACTION_WITHOUT_KAI: Final = KAI.rule(
    "kai/fraction-without-kai",
    title="A fraction of a GPU is requested from the default scheduler",
    why="Other schedulers do not read the annotation. A webhook of the cluster may still choose KAI for the pods.",
    source="kai-scheduler/KAI-Scheduler@d5bc503a pkg/admission/webhook/v1alpha2/podhooks/pod_validator.go",
    level="advice",
    fails="silent",
)
MIN_MEMBER: Final = KAI.rule(
    "kai/batch-min-member",
    title="A Job waits for more pods than it runs",
    why="KAI starts no pod before batch-min-member pods exist, so the pods stay Pending.",
    source="kai-scheduler/KAI-Scheduler@d5bc503a pkg/podgrouper/podgrouper/plugins/job",
)
RESOURCES: Final = KAI.rule(
    "kai/queue-resources",
    title="A KAI queue has no spec.resources",
    why="The webhook of KAI refuses the queue.",
    source="kai-scheduler/KAI-Scheduler@d5bc503a pkg/apis/scheduling/v2/queue_webhook.go",
    refused_by="the webhook of KAI, when the queue is created or changed",
    fails="create",
)
KAI_LOOKUPS: Final = (
    interest_in_fields(KaiQueue.gvk, "spec"),
    interest_in_fields(KaiConfig.gvk, "spec.global.queueLabelKey"),
    interest_in_fields(PriorityClass.gvk, "value"),
)
UNSET_LIMIT: Final = KAI.rule(
    "kai/queue-limit-unset",
    title="A KAI queue sets no limit for a resource",
    why=(
        "KAI counts a limit that is not set as 0, so pods that request the resource stay Pending. Write -1 for "
        "no limit."
    ),
    source="kai-scheduler/KAI-Scheduler@d5bc503a pkg/scheduler/plugins/proportion/capacity_policy/max_allowed_check.go",
    function="isOverLimit",
    level="advice",
)
SCHEDULER: Final = "kai-scheduler"
_RAY: Final = "ray.io"
_DOMAIN: Final = "kai.scheduler/"
"""The prefix of KAI's labels."""
_DEFAULT_SCHEDULERS: Final = ("", "default-scheduler")
_QUEUE_LABEL: Final = "kai.scheduler/queue"
_DEFAULT_QUEUE: Final = "default-queue"
_OLD_LABEL: Final = "runai/queue"
_NEW_LABEL_SINCE: Final[Release] = (0, 6)
_IMAGES: Final = "kai-scheduler/"
"""The images of KAI are in a repository with this name."""
_PREEMPTIBILITY: Final = "kai.scheduler/preemptibility"
_CONTAINER: Final = "gpu-fraction-container-name"
_SHARES: Final = (FRACTION, MEMORY)
_PREFIXED: Final[Mapping[str, str]] = {f"{_DOMAIN}{name}": name for name in _SHARES}
"""Names that KAI does not read, and the names that are meant."""
FRACTIONS: Final = frozenset((FRACTION, MEMORY, DEVICES, _CONTAINER, "mps"))
"""The annotations of pods that request fractions of GPUs."""
_LEAST_OF_NON_PREEMPTIBLE: Final = 100
_PRIORITIES: Final[Mapping[str, int]] = {"train": 50, "build-preemptible": 75, "build": 100, "inference": 125}
"""The priority classes that KAI's chart installs."""
_CLASS_OF_KIND: Final[Mapping[tuple[str, str], str]] = {
    ("apps", "Deployment"): "inference",
    ("serving.knative.dev", "Service"): "inference",
    ("kubeflow.org", "Notebook"): "build",
}
"""The priority class that KAI gives to the pods of a kind. Other kinds get the class train."""
_MOST_PARENTS: Final = 32
_THOUSANDTHS: Final = 1000
_MEGABYTE: Final = 1_000_000
"""KAI counts the memory of queues in this number of bytes."""


def pods_of_kai(subject: Subject) -> tuple[KaiPods, ...]:
    """Return the pods of an object that KAI places; call it through `Subject.once`."""
    return tuple(each for each in _pods_of_object(subject) if each.template.spec.scheduler_name == SCHEDULER)


def _pods_of_object(subject: Subject) -> Iterator[KaiPods]:
    return (KaiPods(podset, template) for podset, template in subject.once(located_templates))


def check_kai_queues(subject: Subject) -> Iterator[Problem]:
    """Report pods in a queue that never starts them."""
    pods = subject.once(pods_of_kai)
    if pods:
        gang = gang_of_pods(pods, subject)
        problems = (problem for each in pods for problem in _check_queue(each, gang, subject))
        yield from without_repeated_problems(problems, subject)
        yield from _check_replicas(pods, subject)


def _check_replicas(pods: Sequence[KaiPods], subject: Subject) -> Iterator[Problem]:
    """Report roles of a training job without replicas, unless the job sets how many pods start together."""
    for role in roles_without_replicas(pods, subject):
        message = f"role {role[-1]} has no replicas, so KAI creates no group of the pods and starts no pod"
        yield REPLICAS.problem((*role, "replicas"), message, "write replicas: 1, or remove the role")


def check_kai_fractions(subject: Subject) -> Iterator[Problem]:
    """Report fractions of GPUs that KAI refuses or does not read, and Jobs that never have enough pods to start."""
    pods = subject.once(pods_of_kai)
    for each in pods:
        yield from without_repeated_problems(_check_fractions(each), subject)
    if not any(name in each.template.metadata.annotations for each in pods for name in _SHARES):
        yield from _check_fractions_of_owners(pods, subject)
        for each in pods:
            yield from without_repeated_problems(_check_places_of_fraction(each), subject)
    if pods and subject.group_kind != POD:
        yield from _check_min_member(pods, subject)


def _check_fractions_of_owners(pods: Sequence[KaiPods], subject: Subject) -> Iterator[Problem]:
    """Report annotations of the object, or of a Job that the object creates, that request a fraction of a GPU."""
    gets, and_then = "no GPU", ""
    if any(_has_gpu_limit(each.template.spec) for each in pods):
        gets, and_then = "whole GPUs", f" and remove `{GPU}`"
    paths = {each.podset.path[:end]: None for each in pods for end in range(len(each.podset.path))}
    for path in paths:
        annotations: JSON = get(subject.object, (*path, "metadata", "annotations"))
        for name in _SHARES if isinstance(annotations, dict) else ():
            if name in annotations:
                message = f"KAI reads `{name}` only from pods, so the pods get {gets}"
                fix = f"move the annotation to the metadata of the pod template{and_then}"
                yield _place_problem((*path, "metadata", "annotations", name), message, fix)


def _check_places_of_fraction(pods: KaiPods) -> Iterator[Problem]:
    """Report a label, or an annotation with a prefix, that requests a fraction of a GPU for pods without devices."""
    metadata, spec = pods.template.metadata, pods.template.spec
    if spec.resource_claims or any("/" in name for each in spec.all_containers() for name in each.resources.limits):
        return
    for name in _SHARES:
        if name in metadata.labels:
            message = f"KAI reads `{name}` from annotations, so the pods get no GPU"
            yield _place_problem(
                pods.locate("metadata", "labels", name), message, "write it as an annotation of the pods"
            )
    for written, name in _PREFIXED.items():
        if written in metadata.annotations:
            message = f"KAI reads `{name}` without a prefix, so the pods get no GPU"
            yield _place_problem(pods.locate("metadata", "annotations", written), message, f"write `{name}`")


def _place_problem(path: FieldPath, reason: str, fix: str) -> Problem:
    return FRACTION_PLACE.problem(path, f"has no effect because {reason}", fix)


def advise_fractions_without_kai(subject: Subject) -> Iterator[Problem]:
    """Advise on pods with a fraction of a GPU that the default scheduler places. Ray's kinds are not checked, because
    KubeRay may set KAI as the scheduler.
    """
    for pods in _pods_of_object(subject):
        annotations = pods.template.metadata.annotations
        name = next((each for each in _SHARES if each in annotations), "") if annotations else ""
        if not name:
            continue
        labels = (*pods.template.metadata.labels, *subject.metadata.labels)
        may_use_kai = subject.group_kind[0] == _RAY or any(each.startswith(_DOMAIN) for each in labels)
        if pods.template.spec.scheduler_name in _DEFAULT_SCHEDULERS and not may_use_kai:
            message = f"only KAI reads `{name}`, but the default scheduler places the pods, so the pods get no GPU"
            fix = f"set schedulerName {SCHEDULER}, or request `{GPU}`"
            problem = FRACTION_WITHOUT_KAI.problem(pods.locate("metadata", "annotations", name), message, fix)
            yield from without_repeated_problems((problem,), subject)


def check_kai_queue_object(subject: Subject) -> Iterator[Problem]:
    """Yield the problems of a queue without resources or limits, or with a parent that does not exist."""
    spec, view = subject.typed(KaiQueue).spec, subject.cluster_view()
    if not spec.has("resources"):
        fix = "set quota and limit for each of cpu, memory and gpu, with limit: -1 for no limit"
        yield RESOURCES.problem(spec.path("resources"), "is not set, but KAI needs quota and limit", fix)
    elif unset := [each for each in ("cpu", "gpu", "memory") if _lacks_limit(spec, each)]:
        names = " and ".join(f"`{each}`" for each in unset)
        message = f"sets no limit for {names}, and KAI counts 0, so pods that request {names} never start in this queue"
        yield UNSET_LIMIT.problem(spec.path("resources"), message, "set limit: -1, or a limit")
    parent = spec.parent_queue
    if parent and view.is_absent(KaiQueue.gvk, "", parent):
        message = "is a queue that does not exist, so KAI skips the workloads of this queue"
        near = view.nearest(parent, (each.name for each in view.list_visible(KaiQueue)))
        fix = did_you_mean(near, "create the queue")
        yield _parent_problem(spec.path("parentQueue"), f"`{parent}` {message}", fix)


def _lacks_limit(spec: KaiQueueSpec, resource: str) -> bool:
    """Return whether a queue has no limit for a resource. A queue without `gpu` may be meant for pods without GPUs."""
    is_needed = resource != "gpu" or spec.resources.has(resource)
    return is_needed and spec.resources.amounts(resource).get("limit") is None


def _check_queue(pods: KaiPods, gang: Gang, subject: Subject) -> Iterator[Problem]:
    view, name = subject.cluster_view(), queue_of_pods(pods, subject)
    queue = view.find(KaiQueue, name, namespaced=False)
    if not queue:
        if view.is_whole(KaiQueue.gvk):
            yield _missing_queue_problem(pods, name, subject)
        return
    chain = [queue]
    while (parent := chain[-1].spec.parent_queue) and len(chain) <= _MOST_PARENTS:
        above = view.find(KaiQueue, parent, namespaced=False)
        if not above:
            if view.is_whole(KaiQueue.gvk):
                yield _missing_parent_problem(pods, chain, parent)
            break
        chain.append(above)
    if any(other.spec.parent_queue == name for other in view.list_visible(KaiQueue)):
        message = f"queue {name} has child queues, so KAI skips the pods"
        fix = f"name a queue without children in label `{queue_label(view)}`"
        yield LEAF.problem(pods.locate("metadata", "labels"), message, fix)
    yield from _check_amounts(pods, gang, chain, subject)


def _missing_parent_problem(pods: KaiPods, chain: Sequence[KaiQueue], parent: str) -> Problem:
    name, below = chain[0].name, chain[-1].name
    message = f"queue {name} has parent `{parent}`, which does not exist, so KAI skips the pods"
    if below != name:
        message = f"queue {name} is below queue {below}, whose parent `{parent}` does not exist, so KAI skips the pods"
    fix = f"ask the administrator to create queue {parent}, or to correct spec.parentQueue of queue {below}"
    return _parent_problem(pods.locate("metadata", "labels"), message, fix)


def _parent_problem(path: FieldPath, message: str, fix: str) -> Problem:
    return PARENT.problem(path, message, fix)


def queue_of_pods(pods: KaiPods, subject: Subject) -> str:
    """Return the queue that KAI reads for these pods."""
    labels = (_labels_of_owner(pods, subject), pods.template.metadata.labels)
    key = queue_label(subject.cluster_view())
    named = next((each[key] for each in labels if each.get(key)), "")
    project = next((each["project"] for each in labels if each.get("project")), "")
    pool = pods.template.metadata.labels.get("kai.scheduler/node-pool", "")
    return named or (f"{project}-{pool}" if project and pool else project) or _DEFAULT_QUEUE


def _labels_of_owner(pods: KaiPods, subject: Subject) -> Mapping[str, str]:
    """Return the labels of the object that counts as the owner of the pods: the Job of a CronJob, or else the object.

    Source: kai-scheduler/KAI-Scheduler@d5bc503a pkg/podgrouper/podgrouper/plugins/cronjobs.
    """
    if subject.group_kind != CRON_JOB:
        return subject.metadata.labels
    job = Object.of(get(subject.object, pods.podset.path[:-2]), (), subject.metadata.reading)
    return job.metadata.labels


def queue_label(view: ClusterView) -> str:
    """Return the key of the label that names a queue: the key in KAI's Config, or the key of the installed release."""
    return view.once(queue_label, lambda: _queue_label(view))


def _queue_label(view: ClusterView) -> str:
    for config in view.copy_without_missing_objects().list_typed(KaiConfig):
        if key := config.spec.global_config.queue_label_key:
            return key
    containers = (
        container
        for deployment in view.copy_without_missing_objects().list_typed(Deployment)
        for container in deployment.spec.template.spec.containers
        if _IMAGES in container.image
    )
    releases = [parse_release(parse_image_name(each.image).tag) for each in containers]
    is_old = bool(releases) and all(release and release < _NEW_LABEL_SINCE for release in releases)
    return _OLD_LABEL if is_old else _QUEUE_LABEL


def _missing_queue_problem(pods: KaiPods, name: str, subject: Subject) -> Problem:
    view, labels = subject.cluster_view(), pods.template.metadata.labels
    key, path = queue_label(view), pods.locate("metadata", "labels")
    old = labels.get(_OLD_LABEL) or subject.metadata.labels.get(_OLD_LABEL, "")
    if old and name == _DEFAULT_QUEUE:
        message = f"KAI does not read `{_OLD_LABEL}` since 0.6, so the pods go to {name}, which does not exist"
        return QUEUE.problem(path, message, f"label the pods `{key}: {old}`")
    of_cron_job = subject.metadata.labels.get(key, "") if subject.group_kind == CRON_JOB else ""
    if of_cron_job and name == _DEFAULT_QUEUE:
        message = f"KAI does not read labels of a CronJob, so the pods go to {name}, which does not exist"
        return QUEUE.problem(path, message, f"label the jobTemplate or the pods `{key}: {of_cron_job}`")
    near = view.nearest(name, (each.name for each in view.list_visible(KaiQueue)))
    message = f"the pods go to queue {name}, which does not exist, so KAI skips the pods"
    fix = did_you_mean(near, f"create the queue, or name another queue by label `{key}`")
    return QUEUE.problem(pods.locate("metadata", "labels"), message, fix)


class _Demand(NamedTuple):
    """What pods that start together need of a queue.

    Args:
        resource: the name of the resource in the queue.
        amount: the amount in the unit of the queue.
        start_of_message: the beginning of a message, such as `a pod requests 2 GPUs`.
        after: the end of a sentence about the pods.
        unit: the unit after a number of the queue.
    """

    resource: str
    amount: float
    start_of_message: str
    after: str = ""
    unit: str = ""


def _demands(pods: KaiPods, gang: Gang) -> Iterator[_Demand]:
    """Yield the GPUs that pods need together, and the CPUs and the memory of one pod."""
    is_gang = gang.gpus > pods.gpus and gang.pods > 1
    gpus = gang.gpus if is_gang else pods.gpus
    who = f"the {gang.pods} pods that start together request" if is_gang else "a pod requests"
    text = _gpus_as_text(gpus)
    after = f" for {gang.pods} pods that start together with {text}" if is_gang else ""
    if gpus:
        yield _Demand("gpu", gpus, f"{who} {text}", after)
    spec = pods.template.spec
    thousandths = quota_requests_of_pod(spec, requests_of_containers(spec, NamespaceLimits()), {})
    if cpu := thousandths.get("cpu", 0):
        yield _Demand("cpu", cpu, f"a pod requests {format_amount_with_resource_name('cpu', cpu)}", "", " millicpus")
    if memory := thousandths.get("memory", 0) // _THOUSANDTHS:
        start_of_message = f"a pod requests {format_amount_with_resource_name('memory', memory)}"
        yield _Demand("memory", memory / _MEGABYTE, start_of_message, "", " MB")


def _check_amounts(pods: KaiPods, gang: Gang, chain: list[KaiQueue], subject: Subject) -> Iterator[Problem]:
    """Report pods that need more than the limit of their queue or of one of its parents. For pods that are not
    preemptible, the quota counts too. A limit or a quota that is not set is 0, and -1 is no limit.
    """
    view, at = subject.cluster_view(), pods.podset.locate(("spec",))
    priority_class, why = _priority_class(pods, subject)
    for queue, demand in product(chain, tuple(_demands(pods, gang))):
        quota, limit = (_amount_of_queue(queue, demand.resource, side) for side in ("quota", "limit"))
        if limit is not None and 0 <= limit < demand.amount:
            unset = (
                ""
                if _is_set(queue, demand.resource, "limit")
                else f" because its limit of {demand.resource} is not set"
            )
            message = f"{demand.start_of_message}, but the limit of queue {queue.name} is {limit:g}{demand.unit}{unset}"
            lower = "request less or start fewer pods together" if demand.after else "request less"
            fix = f"{lower}, or ask the administrator to raise the limit"
            if unset:
                fix = f"ask the administrator to set a limit of {demand.resource} in the queue, such as -1 for no limit"
            yield LIMIT.problem(at, message, fix)
            return
        if quota is not None and 0 <= quota < demand.amount and _is_non_preemptible(pods, priority_class, view):
            of_quota = f"{quota:g} GPUs of quota" if demand.resource == "gpu" else f"{quota:g}{demand.unit} of quota"
            message = (
                f"{why} priority class {priority_class}, and KAI never preempts these pods, so they must fit the "
                f"quota, but queue {queue.name} has {of_quota}{demand.after}"
            )
            if demand.resource != "gpu":
                message += f", and {demand.start_of_message}"
            label = f"label the pod template `{_PREEMPTIBILITY}: preemptible`"
            fix = f"{label} if the pods may be stopped, or ask the administrator for quota"
            yield QUOTA.problem(at, message, fix)
            return


def _gpus_as_text(gpus: float) -> str:
    if gpus < 1:
        return "a part of a GPU"
    return counted(int(gpus), "GPU") if gpus == int(gpus) else f"{gpus:g} GPUs"


def _priority_class(pods: KaiPods, subject: Subject) -> tuple[str, str]:
    """Return the priority class of pods, and the beginning of a message about the source of the class."""
    if written := pods.template.spec.priority_class_name:
        return written, "the pods have"
    kind = subject.attributes.kind.kind
    return _CLASS_OF_KIND.get(subject.group_kind, "train"), f"KAI gives the pods of a {kind}"


def _is_non_preemptible(pods: KaiPods, priority_class: str, view: ClusterView) -> bool:
    written = pods.template.metadata.labels.get(_PREEMPTIBILITY, "")
    if written:
        return written == "non-preemptible"
    known = view.copy_without_missing_objects().find(PriorityClass, priority_class, namespaced=False)
    value = known.value if known else _PRIORITIES.get(priority_class, 0)
    return value >= _LEAST_OF_NON_PREEMPTIBLE


def _amount_of_queue(queue: KaiQueue, resource: str, side: str) -> float | None:
    """Return the quota or limit of a resource; 0 if it is not set, None if it is not known."""
    written = (queue.spec.resources.amounts(resource).get(side) or 0) if queue.spec.has("resources") else None
    return float(written) if isinstance(written, int | float) and not isinstance(written, bool) else None


def _is_set(queue: KaiQueue, resource: str, side: str) -> bool:
    return queue.spec.resources.amounts(resource).get(side) is not None


def _check_fractions(pods: KaiPods) -> Iterator[Problem]:
    annotations, spec = pods.template.metadata.annotations, pods.template.spec
    fraction, memory = annotations.get(FRACTION), annotations.get(MEMORY)
    if fraction is not None and read_fraction(fraction) is None:
        message = f"`{FRACTION}: {fraction}` must be above 0 and below 1, so KAI refuses the pods"
        yield _fraction_problem(pods, FRACTION, message, f"write 0.5, or request whole GPUs by `{GPU}`")
    if memory is not None and not read_whole_number(memory):
        message = f"`{MEMORY}: {memory}` must be a whole number of MiB without a unit, so KAI refuses the pods"
        yield _fraction_problem(pods, MEMORY, message, "write a number such as 2048")
    if fraction is not None and memory is not None:
        message = f"`{FRACTION}` and `{MEMORY}` cannot be combined, so KAI refuses the pods"
        yield _fraction_problem(pods, FRACTION, message, "remove one of these")
    shared = FRACTION if fraction is not None else MEMORY if memory is not None else ""
    if shared and _has_gpu_limit(spec):
        message = f"`{shared}` cannot be combined with a limit of `{GPU}`, so KAI refuses the pods"
        yield _fraction_problem(pods, shared, message, f"remove `{GPU}`, or the annotation")
    if shared and spec.node_name:
        message = f"names node {spec.node_name}, but KAI has to choose node and GPU, so the pod gets no GPU"
        fix = "remove nodeName, and select the node by nodeSelector `kubernetes.io/hostname`"
        yield NODE_NAME.problem(pods.locate("spec", "nodeName"), message, fix)
    if not shared and annotations.get("mps") == "true":
        message = "`mps` needs `gpu-fraction` or `gpu-memory`, so KAI refuses the pods"
        yield _fraction_problem(pods, "mps", message, "add a fraction, or remove the annotation")
    devices = annotations.get(DEVICES)
    if devices is not None and not (shared and read_whole_number(devices)):
        needs = f"must be a whole number, and needs `{FRACTION}` or `{MEMORY}`"
        message = f"`{DEVICES}: {devices}` {needs}, so KAI refuses the pods"
        yield _fraction_problem(pods, DEVICES, message, "write a whole number, and request a fraction")
    name = annotations.get(_CONTAINER)
    if shared and name is not None and all(each.name != name for each in spec.all_containers()):
        message = f"`{_CONTAINER}: {name}` names no container of the pod, so KAI refuses the pods"
        yield _fraction_problem(pods, _CONTAINER, message, "name a container of the pod, or remove the annotation")


def _has_gpu_limit(spec: PodSpec) -> bool:
    """Return whether a container has a limit of GPUs. KAI's webhook also counts a limit of 0."""
    return any(GPU in each.resources.limits for each in spec.all_containers())


def _fraction_problem(pods: KaiPods, name: str, message: str, fix: str) -> Problem:
    return FRACTION_FORM.problem(pods.locate("metadata", "annotations", name), message, fix)


def _check_min_member(pods: Sequence[KaiPods], subject: Subject) -> Iterator[Problem]:
    """Report a number of members above the number of pods that a Job, or a job of a JobSet, runs at a time."""
    for path, least, count in members_of_jobs(pods, subject):
        if count < least:
            message = f"is {least}, but the Job runs {counted(count, 'pod')} at a time, so KAI starts no pod"
            yield MIN_MEMBER.problem(path, message, f"write {count}, or raise parallelism")


_QUEUES: Final = frozenset((("scheduling.run.ai", "Queue"),))
_POD_GROUPS: Final = frozenset((("scheduling.run.ai", "PodGroup"),))

_OF_PODS: Final = FRACTIONS | {pod_parts.CLAIMS, pod_parts.DEVICES}

CHECKS: Final = (
    Check(
        group="kai",
        run=check_kai_queues,
        kinds=PLACED,
        lookups=KAI_LOOKUPS,
        of_made_objects=False,
        of_pods_with=_OF_PODS,
    ),
    Check(
        group="kai",
        run=check_kai_fractions,
        kinds=PLACED,
        of_made_objects=False,
        of_pods_with=FRACTIONS | _PREFIXED.keys(),
    ),
    Check(group="kai", run=advise_fractions_without_kai, kinds=PLACED, of_made_objects=False, of_pods_with=FRACTIONS),
    Check(group="kai", run=check_kai_queue_object, kinds=_QUEUES, lookups=KAI_LOOKUPS),
    Check(group="kai", run=check_kai_pod_group, kinds=_POD_GROUPS),
)
