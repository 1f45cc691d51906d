"""What becomes of the other pods of a training when one is lost: a gang that waits, or a JobSet that ends.

Processes that train together cannot go on without one of them unless their launcher is elastic. Volcano makes a lost
pod again and leaves the others as they are, unless a policy says otherwise: volcano-sh/volcano@ed72c7c815a9
pkg/controllers/job/job_controller_util.go applyPolicies. A JobSet without restarts fails with the first of its Jobs:
kubernetes-sigs/jobset@08dfbdfd pkg/controllers/failure_policy.go executeFailurePolicy. Ray makes up for lost workers
itself, and for its head only by another cluster: ray-project/kuberay@feeaf72f ray-operator/controllers/ray
checkBackoffLimitAndUpdateStatusIfNeeded.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from webhook.attributes import JSON
from webhook.facts.check import Group
from webhook.facts.command_lines.command import launched
from webhook.facts.command_lines.node_limits import limits_of
from webhook.facts.gpu.device_pods import DevicePods, trains, workload
from webhook.facts.subject import Subject
from webhook.facts.values import items, mapping, text, whole
from webhook.facts.volcano_objects import kinds
from webhook.paths import FieldPath, get
from webhook.problem import Problem

problem: Final = Group("device-failures").problem
_JOB_SET: Final = ("jobset.x-k8s.io", "JobSet")
_RAY_JOB: Final = ("ray.io", "RayJob")
_SEVERAL: Final = 2


def advise_gang_restarts(subject: Subject) -> Iterator[Problem]:
    """What an object says of a training of several pods that loses one."""
    if subject.group_kind == _RAY_JOB:
        yield from _ray_job(subject)
        return
    at = kinds.SPECS.get(subject.group_kind)
    if at is None and subject.group_kind != _JOB_SET:
        return
    training = [each for each in subject.once(workload).device_pods if _is_rigid(each, subject)]
    if sum(each.podset.pods or 0 for each in training) < _SEVERAL:
        return
    yield from _job_set(subject) if at is None else _volcano(at, training, subject)


def _is_rigid(pods: DevicePods, subject: Subject) -> bool:
    """Whether its pods train together and need all of them: a launcher of 2 to 4 nodes goes on with fewer."""
    for container in pods.containers:
        if trains(container, subject):
            limits = limits_of(launched(container.value, subject))
            return limits is None or limits[0] == limits[1] > 1
    return False


def _volcano(at: FieldPath, training: list[DevicePods], subject: Subject) -> Iterator[Problem]:
    """Events that no policy of a Job, or of the task whose pod is lost, is about."""
    own = _events(get(subject.object, (*at, "policies")), subject)
    for pods in training:
        events = own | _events(get(subject.object, (*pods.podset.path[:-1], "policies")), subject)
        wanted = ["PodEvicted", *(["PodFailed"] if pods.spec.get("restartPolicy") == "Never" else [])]
        missing = [] if "*" in events else [each for each in wanted if each not in events]
        if missing:
            message = (
                f"have no policy for {' and '.join(missing)}, so after the loss of a pod, the other pods keep "
                "their devices and wait"
            )
            fix = f"add a policy for {' and '.join(missing)} with action RestartJob"
            yield problem("gang-policy", (*at, "policies"), message, fix)
            return


def _events(policies: JSON, subject: Subject) -> set[str]:
    """The events of policies; an exit code is one of a failed pod."""
    made: set[str] = set()
    for each in map(mapping, subject.deadline.each(items(policies))):
        made.update(text(event) for event in (each.get("event"), *items(each.get("events"))))
        if each.get("exitCode") is not None or "TaskFailed" in made:
            made.add("PodFailed")
    return made


def _job_set(subject: Subject) -> Iterator[Problem]:
    """A JobSet that is not restarted."""
    policy = get(subject.object, ("spec", "failurePolicy"))
    rules = [mapping(each) for each in subject.deadline.paced(items(mapping(policy).get("rules")))]
    if whole(mapping(policy).get("maxRestarts")) or any("Restart" in text(each.get("action")) for each in rules):
        return
    path: FieldPath = ("spec", "failurePolicy") if policy is None else ("spec", "failurePolicy", "maxRestarts")
    is_written = mapping(policy).get("maxRestarts") is not None
    message = f"is {'0' if is_written else 'not set'}, so the first Job that fails ends the JobSet and all of its pods"
    yield problem("job-set-restarts", path, message, "set spec.failurePolicy.maxRestarts, such as to 3")


def _devices(subject: Subject) -> int:
    """The devices of all pods, or at least one for each."""
    using = subject.once(workload).device_pods
    return sum((each.podset.pods or 0) * (sum(each.devices.values()) or 1) for each in using)


def _ray_job(subject: Subject) -> Iterator[Problem]:
    """A RayJob with several devices that is not retried; on another's cluster, or with a person, it cannot be."""
    spec = mapping(get(subject.object, ("spec",)))
    if (
        spec.get("clusterSelector")
        or spec.get("submissionMode") == "InteractiveMode"
        or whole(spec.get("backoffLimit"))
    ):
        return
    if _devices(subject) >= _SEVERAL:
        is_set = "is not set" if spec.get("backoffLimit") is None else "is 0"
        message = f"{is_set}, so the first failure of the program or the head pod ends the RayJob"
        fix = "set backoffLimit to the number of times that KubeRay may retry the job"
        yield problem("ray-job-retries", ("spec", "backoffLimit"), message, fix)
