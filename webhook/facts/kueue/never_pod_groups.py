"""Pods of one group that differ, and jobs with too many pod sets. Kueue creates no Workload for such pods and jobs.

The Pods of a group are compared only in files. A live view has no Pods, and an API server sends the Pods of a group one
after the other. Kueue counts the Pods and compares each with the first Pod. A Workload has a pod set for each pod
template of a job.

Source: kubernetes-sigs/kueue@ff69552e pkg/controller/jobs/pod/pod_controller.go validatePodGroupMetadata, and the rules
of config/components/crd/bases.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Final

from msgspec import Struct

from webhook.apimachinery.paths import FieldPath
from webhook.apimachinery.releases import release_as_text
from webhook.facts.kueue.groups import KUEUE_NEVER
from webhook.facts.kueue.managed import KueueManagement, QueuePlace, queue_name_of_object
from webhook.facts.kueue.objects import POD_GROUP, POD_GROUP_COUNT, QUEUE_NAME
from webhook.facts.kueue.releases import find_kueue_release, max_pod_sets_per_workload
from webhook.facts.kueue.workload import build_workload
from webhook.facts.subject import Subject
from webhook.rules.problem import Problem
from webhook.text.caches import IdentityKey
from webhook.typed.kueue import PodWithStatus
from webhook.typed.objects import Object
from webhook.yamltext.placeholders import is_placeholder

POD_GROUP_DIFFERS: Final = KUEUE_NEVER.rule(
    "kueue-never/pod-group-differs",
    title="The pods of the group name different queues or group sizes",
    why="Kueue creates no Workload if pods of a group differ in queue or group size, and says so only in its log.",
    source="kubernetes-sigs/kueue@ff69552e pkg/controller/jobs/pod/pod_controller.go",
    function="validatePodGroupMetadata",
)
POD_SET_COUNT: Final = KUEUE_NEVER.rule(
    "kueue-never/pod-set-count",
    title="The job has more pod sets than a Workload can have",
    why="The API server refuses the Workload, and Kueue says so only in its log.",
    source="kubernetes-sigs/kueue#12818, config/components/crd/bases/kueue.x-k8s.io_workloads.yaml",
    issues=(
        "https://github.com/kubernetes-sigs/jobset/issues/597",
        "https://github.com/kubernetes-sigs/kueue/issues/12818",
        "https://github.com/kubernetes-sigs/kueue/pull/12819",
        "https://github.com/kubernetes-sigs/kueue/issues/11379",
    ),
)
GROUP_COUNT: Final[FieldPath] = ("metadata", "annotations", POD_GROUP_COUNT)
_QUEUE: Final[FieldPath] = ("metadata", "labels", QUEUE_NAME)
_KEPT: Final = 16
"""Pod groups of at most this many namespaces are cached. An audit reads one namespace after another."""
_REPEATED: Final = {
    ("jobset.x-k8s.io", "JobSet"): "replicatedJobs",
    ("workload.codeflare.dev", "AppWrapper"): "components",
}
"""The field of each kind with the list of its pod templates."""


class _FirstPodOfGroup(Struct, frozen=True):
    """The first pod of a group, with its queue and the number of pods in its annotation."""

    name: str
    queue: str
    count: str


def validate_pod_matches_group(subject: Subject, how: KueueManagement, place: QueuePlace) -> Iterator[Problem]:  # noqa: ARG001
    """Report a Pod that names another queue or another number of pods than the first Pod of its group."""
    group, pod = pod_group_of(subject, how), subject.typed(Object)
    listed = subject.cluster_view().list_json(PodWithStatus.gvk, subject.namespace) if group else ()
    subject.deadline.spend(len(listed))
    first = _first_pods_of_groups(IdentityKey(listed)).get(group)
    if first is None or first.name == pod.name:
        return
    count, queue = pod.annotations.get(POD_GROUP_COUNT, ""), first.queue or how.queue
    if how.queue != queue and not is_placeholder(how.queue + queue):
        yield _pod_group_differs_problem(_QUEUE, first, queue, how.queue)
    if count != first.count and not is_placeholder(count + first.count):
        yield _pod_group_differs_problem(GROUP_COUNT, first, first.count, count)


def _pod_group_differs_problem(path: FieldPath, first: _FirstPodOfGroup, wanted: str, given: str) -> Problem:
    message = (
        f"must be `{wanted}`, as in pod `{first.name}` of the same group, because Kueue otherwise never admits the "
        "group"
    )
    return POD_GROUP_DIFFERS.problem(path, message, f"set {wanted}", given)


def pod_group_of(subject: Subject, how: KueueManagement) -> str:
    """Return the name of the group if the object is a Pod that Kueue manages; otherwise ""."""
    group = subject.typed(Object).labels.get(POD_GROUP, "") if how.framework == "pod" else ""
    return "" if is_placeholder(group) else group


@lru_cache(maxsize=_KEPT)
def _first_pods_of_groups(pods: IdentityKey) -> Mapping[str, _FirstPodOfGroup]:
    """Return the first Pod of every group. Pods that have failed or are terminating do not count."""
    firsts: dict[str, _FirstPodOfGroup] = {}
    for obj in pods.value:
        pod = PodWithStatus.of(obj)
        group = pod.labels.get(POD_GROUP, "")
        if group and not pod.is_failed_or_terminating:
            firsts.setdefault(
                group, _FirstPodOfGroup(pod.name, queue_name_of_object(pod), pod.annotations.get(POD_GROUP_COUNT, ""))
            )
    return firsts


def validate_pod_set_count(subject: Subject, how: KueueManagement, place: QueuePlace) -> Iterator[Problem]:  # noqa: ARG001
    """Yield the problem of more pod sets than the CustomResourceDefinition of Workloads allows."""
    count, most = len(subject.once(build_workload).pod_sets), max_pod_sets_per_workload(find_kueue_release(subject))
    if count > most:
        release = f"a Workload of Kueue {release_as_text(find_kueue_release(subject))}"
        message = (
            f"has {count} pod templates, but {release} has at most {most} pod sets, one for each template, so Kueue "
            "creates no Workload and the job waits"
        )
        what = _REPEATED.get(subject.group_kind, "pod templates")
        fix = f"use at most {most} {what}; join equal {what} into one with more replicas"
        yield POD_SET_COUNT.problem("spec", message, fix)
