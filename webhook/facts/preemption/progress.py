"""What a job on spot nodes keeps when a node is taken back: a checkpoint, another attempt, a smaller world."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from webhook.attributes import JSON
from webhook.facts.check import Group
from webhook.facts.gpu.device_pods import BATCH, DevicePods, path_of, workload
from webhook.facts.pods.containers import Container, containers
from webhook.facts.preemption.spot import selected
from webhook.facts.subject import Subject
from webhook.facts.values import items, mapping, text, whole
from webhook.paths import get, render
from webhook.problem import Problem
from webhook.workloads.podsets import PodSet

problem: Final = Group("preemption").problem
_ON_THE_NODE: Final = frozenset(
    ("emptyDir", "hostPath", "ephemeral", "configMap", "secret", "downwardAPI", "projected", "image")
)
_BUCKET: Final = re.compile(r"\b(?:s3a?|gs|gcs|abfss?|az|wasbs?|hdfs|hf|oss|obs|cos|swift|minio|dbfs|mlflow)://")
_DEFAULT_GRACE_S: Final = 30
_SLEEP: Final = re.compile(r"\bsleep\s+([0-9]{1,6})\b")


def advise_progress(subject: Subject) -> Iterator[Problem]:
    """What a job that is bound to spot nodes would lose."""
    if subject.group_kind not in BATCH:
        return
    using = [each for each in subject.once(workload).device_pods if selected(each)]
    for pods in using:
        if not _keeps_files(pods, subject):
            message = (
                "runs on spot nodes, but no volume outlives the pods, so a preemption loses the progress of the job"
            )
            at = render(pods.podset.path)
            yield problem("spot-checkpoint", at, message, "mount a PersistentVolumeClaim for checkpoints")
    if using:
        yield from _restarts(subject)
        yield from _elastic(subject)


def _keeps_files(pods: DevicePods, subject: Subject) -> bool:
    """Whether some volume is elsewhere, or some word says so: a bucket, or settings that nobody sees here."""
    volumes = [mapping(each) for each in subject.deadline.paced(items(pods.spec.get("volumes")))]
    sources = {key for each in volumes for key in each if key != "name"}
    if sources - _ON_THE_NODE or items(get(subject.object, ("spec", "volumes"))):
        return True
    return any(_names_bucket(each, subject) for each in pods.containers)


def _names_bucket(container: Container, subject: Subject) -> bool:
    value = container.value
    env = [mapping(each) for each in items(value.get("env"))]
    if value.get("envFrom") or any(each.get("valueFrom") for each in env):
        return True
    for each in (*container.words, *(text(each.get("value")) for each in env)):
        subject.deadline.spend_text(each)
        if _BUCKET.search(each):
            return True
    return False


def _restarts(subject: Subject) -> Iterator[Problem]:
    """Restart policies and limits of the Training Operator under which one preempted pod ends the job."""
    if subject.group_kind[0] != "kubeflow.org":
        return
    spec = mapping(subject.object.get("spec"))
    for field, roles in subject.deadline.paced(spec.items()):
        listed = mapping(roles).items() if field.endswith("ReplicaSpecs") else ()
        for name, role in subject.deadline.paced(listed):
            if mapping(role).get("restartPolicy") == "Never" and name != "Launcher":
                message = "ends the job when one pod is preempted, and the pods run only on spot nodes"
                at = ("spec", field, name, "restartPolicy")
                yield problem("restart", at, message, "set ExitCode, which restarts pods that a signal ended", "Never")
    if whole(get(spec, ("runPolicy", "backoffLimit"))) == 0:
        message = "ends the job when the first pod is preempted, and the pods run only on spot nodes"
        yield problem(
            "restart",
            ("spec", "runPolicy", "backoffLimit"),
            message,
            "set a number of failures that the job may have",
            0,
        )


def _elastic(subject: Subject) -> Iterator[Problem]:
    """An elastic job that cannot become smaller."""
    least, most = (
        whole(get(subject.object, ("spec", "elasticPolicy", f"{which}Replicas"))) for which in ("min", "max")
    )
    if least is not None and least == most:
        message = "equals maxReplicas, so the job cannot go on with fewer workers when a spot node is taken back"
        yield problem("elastic-limits", ("spec", "elasticPolicy", "minReplicas"), message, "lower minReplicas", least)


def advise_grace_periods(subject: Subject) -> Iterator[Problem]:
    """Pods that are killed before their preStop hooks have ended, or before they can write a checkpoint."""
    for pods in subject.once(workload).device_pods:
        given = whole(pods.spec.get("terminationGracePeriodSeconds"))
        grace = _DEFAULT_GRACE_S if given is None else given
        if given == 0 and subject.group_kind in BATCH:
            at = pods.at("terminationGracePeriodSeconds")
            message = "ends the processes without a signal first, so a preempted job writes no last checkpoint"
            fix = "remove the field, or set the seconds that a checkpoint takes"
            yield problem("grace-period", at, message, fix, 0)
            continue
        for container in _running(pods.podset):
            seconds = _pre_stop(container.value) if "lifecycle" in container.value else 0
            if seconds >= grace > 0:
                lasts = f"sleeps {seconds} s, but Kubernetes kills the pod {grace} s after its deletion"
                path = path_of(pods, container, "lifecycle", "preStop")
                fix = f"set terminationGracePeriodSeconds to more than {seconds}"
                yield problem("grace-period", path, f"{lasts}, so its processes never get SIGTERM", fix)


def _running(podset: PodSet) -> Iterator[Container]:
    yield from (each for each in containers(podset.template) if not each.init or each.restarts)


def _pre_stop(container: JSON) -> int:
    """How long a preStop hook sleeps, as it is written; 0 for another one."""
    hook = mapping(get(container, ("lifecycle", "preStop")))
    words = " ".join(text(each) for each in items(get(hook, ("exec", "command"))))
    slept = whole(get(hook, ("sleep", "seconds"))) or 0
    return max([slept, *(int(each) for each in _SLEEP.findall(words))])
