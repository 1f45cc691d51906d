"""What becomes of the other pods of a training when one is lost: a gang that waits, or a JobSet that ends.

Processes that train together cannot go on without one of them unless their launcher is elastic. Volcano makes a lost
pod again and leaves the others as they are, unless a policy says otherwise: volcano-sh/volcano@ed72c7c815a9
pkg/controllers/job/job_controller_util.go applyPolicies. A JobSet without restarts fails with the first of its Jobs:
kubernetes-sigs/jobset@08dfbdfd pkg/controllers/failure_policy.go executeFailurePolicy. Ray makes up for lost workers
itself, and for its head only by another cluster: ray-project/kuberay@feeaf72f ray-operator/controllers/ray
checkBackoffLimitAndUpdateStatusIfNeeded.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from webhook.facts.command_lines.command import cached_launch_of_container
from webhook.facts.command_lines.node_limits import node_count_range_of_launch
from webhook.facts.device_failures.groups import DEVICE_FAILURES
from webhook.facts.device_failures.job_set_restarts import advise_job_set_restarts
from webhook.facts.device_failures.types import VolcanoJobOrTask
from webhook.facts.gpu.device_pods import DevicePods, is_training_container, read_device_workload
from webhook.facts.subject import Subject
from webhook.facts.volcano_objects import kinds
from webhook.paths import FieldPath, get
from webhook.problem import Problem
from webhook.typed.ray import RayJob
from webhook.typed.view import ReadingContext

GANG_POLICY: Final = DEVICE_FAILURES.rule(
    "device-failures/gang-policy",
    title="A Job of Volcano whose pods train together restarts as a whole.",
    why=(
        "Without a policy about PodEvicted, and about PodFailed where containers are not restarted, Volcano replaces "
        "only the pod that was lost. The other processes hang or fail one by one, and hold their devices meanwhile."
    ),
    source="volcano-sh/volcano@ed72c7c815a9 pkg/controllers/job/job_controller_util.go",
    function="applyPolicies",
)
RAY_JOB_RETRIES: Final = DEVICE_FAILURES.rule(
    "device-failures/ray-job-retries",
    title="A RayJob with several devices may be retried.",
    why=(
        "Ray makes up for workers that are lost. Its head holds the state of the program, and without a backoffLimit "
        "the RayJob ends with it, though its devices are free again."
    ),
    source="ray-project/kuberay@feeaf72f ray-operator/controllers/ray/rayjob_controller.go",
    function="checkBackoffLimitAndUpdateStatusIfNeeded",
)

_JOB_SET: Final = ("jobset.x-k8s.io", "JobSet")
_RAY_JOB: Final = ("ray.io", "RayJob")
_SEVERAL: Final = 2


def advise_gang_restarts(subject: Subject) -> Iterator[Problem]:
    """Warn of a training of several pods that does not handle the loss of one."""
    if subject.group_kind == _RAY_JOB:
        yield from _check_ray_job_retries(subject)
        return
    at = kinds.SPECS.get(subject.group_kind)
    if at is None and subject.group_kind != _JOB_SET:
        return
    training = [
        pods for pods in subject.once(read_device_workload).device_pods if _trains_as_fixed_group(pods, subject)
    ]
    if sum(pods.pod_count for pods in training) < _SEVERAL:
        return
    yield from advise_job_set_restarts(subject) if at is None else _check_missing_event_policies(at, training, subject)


def _trains_as_fixed_group(pods: DevicePods, subject: Subject) -> bool:
    """Return whether the pods train together and need all of them: a launcher of 2 to 4 nodes goes on with fewer."""
    for container in pods.containers:
        if is_training_container(container, subject):
            limits = node_count_range_of_launch(cached_launch_of_container(container, subject))
            return limits is None or limits[0] == limits[1] > 1
    return False


def _check_missing_event_policies(at: FieldPath, training: Sequence[DevicePods], subject: Subject) -> Iterator[Problem]:
    """Warn of events that no policy of a Job, or of the task whose pod is lost, is about."""
    of_job = _events_of_policies(at, subject)
    for pods in training:
        events = of_job | _events_of_policies(pods.podset.path[:-1], subject)
        wanted = ["PodEvicted", *(["PodFailed"] if pods.spec.restart_policy == "Never" else [])]
        missing = [] if "*" in events else [event for event in wanted if event not in events]
        if missing:
            message = (
                f"have no policy for {' and '.join(missing)}, so after the loss of a pod, the other pods keep "
                "their devices and wait"
            )
            fix = f"add a policy for {' and '.join(missing)} with action RestartJob"
            yield GANG_POLICY.problem((*at, "policies"), message, fix)
            return


def _events_of_policies(at: FieldPath, subject: Subject) -> set[str]:
    """Return the events of the policies that stand at a place; an exit code is one of a failed pod."""
    holder = VolcanoJobOrTask.of(get(subject.object, at), at, ReadingContext(subject.deadline))
    events: set[str] = set()
    for policy in holder.policies:
        events.update((policy.event, *policy.events))
        if policy.exit_code is not None or "TaskFailed" in events:
            events.add("PodFailed")
    return events


def _count_devices_of_all_pods(subject: Subject) -> int:
    """Return how many devices all pods have, with at least one for each pod."""
    using = subject.once(read_device_workload).device_pods
    return sum(pods.pod_count * (sum(pods.devices.values()) or 1) for pods in using)


def _check_ray_job_retries(subject: Subject) -> Iterator[Problem]:
    """Warn of a RayJob with several devices that is not retried, unless another's cluster or a person runs it."""
    spec = subject.typed(RayJob).spec
    if spec.cluster_selector or spec.submission_mode == "InteractiveMode" or spec.backoff_limit:
        return
    if _count_devices_of_all_pods(subject) >= _SEVERAL:
        is_set = "is not set" if spec.backoff_limit is None else "is 0"
        message = f"{is_set}, so the first failure of the program or the head pod ends the RayJob"
        fix = "set backoffLimit to the number of times that KubeRay may retry the job"
        yield RAY_JOB_RETRIES.problem(spec.path("backoffLimit"), message, fix)
