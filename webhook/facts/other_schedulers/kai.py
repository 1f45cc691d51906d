"""Pods that KAI never starts: their queue, its quota and limits, and fractions of GPUs that its webhook refuses.

KAI reads the queue from a label of the top owner, then of the pod, then from the label `project`, else default-queue.
Priorities of 100 and more are not preemptible and may use only the quota of the queue and of its parents.

Source: kai-scheduler/KAI-Scheduler@d5bc503a pkg/podgrouper, pkg/scheduler/actions/utils/input_jobs.go,
plugins/proportion/capacity_policy/quota_check.go, pkg/admission/webhook.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from webhook.apimachinery.paths import FieldPath
from webhook.cluster.interest import interest_in_fields
from webhook.facts.gpu.device_pods import without_repeated_problems
from webhook.facts.kinds import POD
from webhook.facts.other_schedulers.types import KAI, KaiQueue
from webhook.facts.pods.pod_sets import pod_sets, template_of
from webhook.facts.scheduling.priority_classes import PriorityClass
from webhook.facts.subject import Subject
from webhook.facts.train_job_pods.virtual_pods import pod_set_located_in_runtime
from webhook.facts.view import ClusterView
from webhook.rules.problem import Problem
from webhook.text.wording import did_you_mean
from webhook.typed.pods import PodTemplate
from webhook.workloads.podsets import PodSet

QUEUE: Final = KAI.rule(
    "kai/queue",
    title="KAI does not find the queue of the pods",
    why="KAI skips a workload with a queue that does not exist, without an error, so the pods stay Pending.",
)
PARENT: Final = KAI.rule(
    "kai/parent-queue",
    title="The parent of the KAI queue does not exist",
    why="KAI skips the workloads of a queue without its parent, so the pods stay Pending.",
)
LEAF: Final = KAI.rule(
    "kai/leaf-queue",
    title="The KAI queue has child queues",
    why="KAI accepts workloads only in queues without children, so the pods stay Pending.",
)
QUOTA: Final = KAI.rule(
    "kai/non-preemptible-quota",
    title="Pods that KAI never preempts request more GPUs than the quota of their queue",
    why="Workloads of priority 100 and more may use only the quota of their queue and its parents, so the pods wait.",
    source="kai-scheduler/KAI-Scheduler@d5bc503a pkg/scheduler/plugins/proportion/capacity_policy/quota_check.go",
)
LIMIT: Final = KAI.rule(
    "kai/limit",
    title="A pod requests more GPUs than the limit of its KAI queue",
    why="Pods that start together must fit the limit of the queue and of its parents, so the pod stays Pending.",
    source="kai-scheduler/KAI-Scheduler@d5bc503a pkg/scheduler/plugins/proportion/capacity_policy/capacity_policy.go",
)
FRACTION: Final = KAI.rule(
    "kai/fraction",
    title="A fraction of a GPU is written in a form that KAI refuses",
    why="The webhook of KAI refuses each pod, so none is made.",
    source="kai-scheduler/KAI-Scheduler@d5bc503a pkg/admission/webhook/v1alpha2/gpusharing",
    fails="controller",
)
FRACTION_PLACE: Final = KAI.rule(
    "kai/fraction-place",
    title="A fraction of a GPU is written where KAI does not read it",
    why="KAI reads these annotations only on pods, so the pods get no GPU.",
    source="kai-scheduler/KAI-Scheduler@d5bc503a pkg/common/constants/constants.go",
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
KAI_LOOKUPS: Final = (interest_in_fields(KaiQueue.gvk, "spec"), interest_in_fields(PriorityClass.gvk, "value"))
SCHEDULER: Final = "kai-scheduler"
_QUEUE_LABEL: Final = "kai.scheduler/queue"
_OLD_LABEL: Final = "runai/queue"
_PREEMPTIBILITY: Final = "kai.scheduler/preemptibility"
_BATCH_MIN_MEMBER: Final = "kai.scheduler/batch-min-member"
_FRACTION: Final = "gpu-fraction"
_MEMORY: Final = "gpu-memory"
_DEVICES: Final = "gpu-fraction-num-devices"
_SHARES: Final = (_FRACTION, _MEMORY)
_GPU: Final = "nvidia.com/gpu"
_DECIMAL: Final = re.compile(r"0?\.[0-9]{1,9}", re.ASCII)
_WHOLE: Final = re.compile(r"[1-9][0-9]{0,8}", re.ASCII)
_LEAST_OF_NON_PREEMPTIBLE: Final = 100
_PRIORITIES: Final[Mapping[str, int]] = {"train": 50, "build-preemptible": 75, "build": 100, "inference": 125}
"""The priority classes that KAI's chart installs."""
_CLASS_OF_KIND: Final[Mapping[tuple[str, str], str]] = {
    ("apps", "Deployment"): "inference",
    ("serving.knative.dev", "Service"): "inference",
    ("kubeflow.org", "Notebook"): "build",
}
"""The class that KAI gives to the pods of a kind; others get train."""
_MOST_PARENTS: Final = 32


class KaiPods(NamedTuple):
    """The pods of one template that KAI places."""

    podset: PodSet
    template: PodTemplate

    def locate(self, *path: str) -> FieldPath:
        """Return the path in the object of a field of the template."""
        return self.podset.locate(path)

    @property
    def gpus(self) -> int:
        """Return how many whole GPUs one pod requests, as far as amounts are whole numbers."""
        written = [each.resources.limits.get(_GPU) for each in self.template.spec.running_containers()]
        return sum(int(str(amount)) for amount in written if _WHOLE.fullmatch(str(amount)))


def pods_of_kai(subject: Subject) -> tuple[KaiPods, ...]:
    """Return the pods of an object that KAI places; call it through `Subject.once`."""
    listed = [pod_set_located_in_runtime(each) for each in subject.once(pod_sets).all]
    pods = (KaiPods(each, template_of(each, subject)) for each in listed)
    return tuple(each for each in pods if each.template.spec.scheduler_name == SCHEDULER)


def check_kai_queues(subject: Subject) -> Iterator[Problem]:
    """Yield pods in a queue that never starts them."""
    for pods in subject.once(pods_of_kai):
        yield from without_repeated_problems(_check_queue(pods, subject), subject)


def check_kai_fractions(subject: Subject) -> Iterator[Problem]:
    """Yield fractions of GPUs that KAI refuses or does not read, and gangs that never come together."""
    pods = subject.once(pods_of_kai)
    for each in pods:
        yield from without_repeated_problems(_check_fractions(each), subject)
    if pods and subject.group_kind != POD:
        annotations = subject.metadata.annotations
        for name in _SHARES:
            if name in annotations and not any(name in each.template.metadata.annotations for each in pods):
                message = f"has no effect because KAI reads `{name}` only from pods, so the pods get no GPU"
                fix = "move the annotation to the metadata of the pod template"
                yield FRACTION_PLACE.problem(subject.metadata.path("annotations", name), message, fix)
        yield from _check_min_member(pods, subject)


def check_kai_queue_object(subject: Subject) -> Iterator[Problem]:
    """Yield the problem of a queue without resources."""
    spec = subject.typed(KaiQueue).spec
    if not spec.has("resources"):
        yield RESOURCES.problem(spec.path("resources"), "is required, so KAI refuses the queue", "add quota and limit")


def _check_queue(pods: KaiPods, subject: Subject) -> Iterator[Problem]:
    view, name = subject.cluster_view(), queue_of_pods(pods, subject)
    queue = view.find(KaiQueue, name, namespaced=False)
    if not queue:
        if view.is_whole(KaiQueue.gvk):
            yield _missing_queue_problem(pods, name, subject)
        return
    chain = [queue]
    while parent := chain[-1].spec.parent_queue:
        above = view.find(KaiQueue, parent, namespaced=False)
        if not above or len(chain) > _MOST_PARENTS:
            break
        chain.append(above)
    if parent and len(chain) == 1 and view.is_whole(KaiQueue.gvk):
        message = f"queue {name} has the parent queue {parent}, which does not exist, so KAI skips the pods"
        yield PARENT.problem(
            pods.locate("metadata", "labels"), message, f"create queue {parent}, or correct parentQueue"
        )
    if any(other.spec.parent_queue == name for other in view.list_visible(KaiQueue)):
        message = f"queue {name} has child queues, so KAI skips the pods"
        yield LEAF.problem(pods.locate("metadata", "labels"), message, "name a queue without children")
    yield from _check_amounts(pods, chain, subject)


def queue_of_pods(pods: KaiPods, subject: Subject) -> str:
    """Return the queue in which KAI puts pods."""
    labels = (subject.metadata.labels, pods.template.metadata.labels)
    named = next((each[_QUEUE_LABEL] for each in labels if each.get(_QUEUE_LABEL)), "")
    project = next((each["project"] for each in labels if each.get("project")), "")
    pool = pods.template.metadata.labels.get("kai.scheduler/node-pool", "")
    return named or (f"{project}-{pool}" if project and pool else project) or "default-queue"


def _missing_queue_problem(pods: KaiPods, name: str, subject: Subject) -> Problem:
    view, labels = subject.cluster_view(), pods.template.metadata.labels
    old = labels.get(_OLD_LABEL) or subject.metadata.labels.get(_OLD_LABEL, "")
    if old and name == "default-queue":
        message = f"KAI does not read `{_OLD_LABEL}`, so the pods go to {name}, which does not exist"
        return QUEUE.problem(pods.locate("metadata", "labels"), message, f"label the pods `{_QUEUE_LABEL}: {old}`")
    near = view.nearest(name, (each.name for each in view.list_visible(KaiQueue)))
    message = f"the pods go to queue {name}, which does not exist, so KAI skips them"
    fix = did_you_mean(near, f"create the queue, or name another one by label `{_QUEUE_LABEL}`")
    return QUEUE.problem(pods.locate("metadata", "labels"), message, fix)


def _check_amounts(pods: KaiPods, chain: list[KaiQueue], subject: Subject) -> Iterator[Problem]:
    """Yield GPUs of one pod above the limit, or above the quota where the pod is not preemptible."""
    wanted, view = pods.gpus, subject.cluster_view()
    priority_class, why = _priority_class(pods, subject)
    for queue in chain:
        quota, limit = (_gpus_of_queue(queue, side) for side in ("quota", "limit"))
        if limit is not None and 0 <= limit < wanted:
            message = f"a pod requests {wanted} GPUs, but the limit of queue {queue.name} is {limit:g}"
            yield LIMIT.problem(pods.podset.locate(("spec",)), message, "request less, or raise the limit of the queue")
            return
        if quota is not None and 0 <= quota < wanted and _is_non_preemptible(pods, priority_class, view):
            message = (
                f"{why} of class {priority_class}, which may use only quota because KAI never preempts it, and queue "
                f"{queue.name} has {quota:g} GPUs of quota"
            )
            fix = f"give the queue a quota, or label the pod template `{_PREEMPTIBILITY}: preemptible`"
            yield QUOTA.problem(pods.podset.locate(("spec",)), message, fix)
            return


def _priority_class(pods: KaiPods, subject: Subject) -> tuple[str, str]:
    """Return the priority class of pods, and how a message begins."""
    if written := pods.template.spec.priority_class_name:
        return written, "the pods are"
    kind = subject.attributes.kind.kind
    return _CLASS_OF_KIND.get(subject.group_kind, "train"), f"KAI makes the pods of a {kind}"


def _is_non_preemptible(pods: KaiPods, priority_class: str, view: ClusterView) -> bool:
    written = pods.template.metadata.labels.get(_PREEMPTIBILITY, "")
    if written:
        return written == "non-preemptible"
    known = view.copy_without_missing_objects().find(PriorityClass, priority_class, namespaced=False)
    value = known.value if known else _PRIORITIES.get(priority_class, 0)
    return value >= _LEAST_OF_NON_PREEMPTIBLE


def _gpus_of_queue(queue: KaiQueue, side: str) -> float | None:
    gpu = queue.spec.resources.get("gpu")
    written = gpu.get(side) if isinstance(gpu, dict) else None
    return float(written) if isinstance(written, int | float) and not isinstance(written, bool) else None


def _check_fractions(pods: KaiPods) -> Iterator[Problem]:
    annotations = pods.template.metadata.annotations
    fraction, memory = annotations.get(_FRACTION), annotations.get(_MEMORY)
    if fraction is not None and not (_DECIMAL.fullmatch(fraction) and float(fraction) > 0):
        message = f"`{_FRACTION}: {fraction}` must be above 0 and below 1, so KAI refuses the pods"
        yield _fraction_problem(pods, _FRACTION, message, f"write 0.5, or request whole GPUs by `{_GPU}`")
    if memory is not None and not _WHOLE.fullmatch(memory):
        message = f"`{_MEMORY}: {memory}` must be a whole number of MiB without a unit, so KAI refuses the pods"
        yield _fraction_problem(pods, _MEMORY, message, "write a number such as 2048")
    if fraction is not None and memory is not None:
        message = f"`{_FRACTION}` and `{_MEMORY}` cannot be combined, so KAI refuses the pods"
        yield _fraction_problem(pods, _FRACTION, message, "remove one of them")
    shared = _FRACTION if fraction is not None else _MEMORY if memory is not None else ""
    if shared and pods.gpus:
        message = f"`{shared}` cannot be combined with `{_GPU}`, so KAI refuses the pods"
        yield _fraction_problem(pods, shared, message, f"remove `{_GPU}`, or the annotation")
    if not shared and annotations.get("mps") == "true":
        message = "`mps` needs `gpu-fraction` or `gpu-memory`, so KAI refuses the pods"
        yield _fraction_problem(pods, "mps", message, "add a fraction, or remove the annotation")
    devices = annotations.get(_DEVICES)
    if devices is not None and not (shared and _WHOLE.fullmatch(devices)):
        message = f"`{_DEVICES}: {devices}` must be a whole number beside a fraction, so KAI refuses the pods"
        yield _fraction_problem(pods, _DEVICES, message, "write a number, and a fraction")


def _fraction_problem(pods: KaiPods, name: str, message: str, fix: str) -> Problem:
    return FRACTION.problem(pods.locate("metadata", "annotations", name), message, fix)


def _check_min_member(pods: tuple[KaiPods, ...], subject: Subject) -> Iterator[Problem]:
    written = subject.metadata.annotations.get(_BATCH_MIN_MEMBER, "")
    count = pods[0].podset.count
    if (
        subject.group_kind == ("batch", "Job")
        and _WHOLE.fullmatch(written)
        and count is not None
        and count < int(written)
    ):
        message = f"is {written}, but the Job runs {count} pods at a time, so KAI starts none"
        path = subject.metadata.path("annotations", _BATCH_MIN_MEMBER)
        yield MIN_MEMBER.problem(path, message, f"write {count}, or raise parallelism")
