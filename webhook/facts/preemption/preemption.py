"""What a job on spot nodes keeps when a node is taken back: a checkpoint, another attempt, a smaller world."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from webhook.facts.gpu.device_pods import BATCH, DevicePods, workload
from webhook.facts.preemption.groups import PREEMPTION
from webhook.facts.preemption.spot import selected
from webhook.facts.preemption.types import ElasticPolicy, TrainingJob
from webhook.facts.subject import Subject
from webhook.facts.volcano_objects.types import Job
from webhook.problem import Problem
from webhook.typed.pods import Container, LifecycleHandler

SPOT_CHECKPOINT: Final = PREEMPTION.rule(
    "preemption/spot-checkpoint",
    title="A job on spot nodes has a volume that outlives its pods.",
    why=(
        "The cloud takes a spot node back at any time, with everything that was written on it, and the job begins anew."
    ),
    source="https://cloud.google.com/kubernetes-engine/docs/concepts/spot-vms",
)
RESTART: Final = PREEMPTION.rule(
    "preemption/restart",
    title="A job on spot nodes goes on after a preemption.",
    why="With restartPolicy Never or backoffLimit 0, the first node that the cloud takes back ends the job.",
    source="kubeflow/trainer@3a3a1da8d528 pkg/controller.v1/common/job.go",
    function="ReconcileJobs",
)
ELASTIC_LIMITS: Final = PREEMPTION.rule(
    "preemption/elastic-limits",
    title="An elastic job on spot nodes can become smaller.",
    why="With minReplicas equal to maxReplicas all workers wait until the cloud gives back a node.",
    source="https://www.kubeflow.org/docs/components/trainer/legacy-v1/user-guides/pytorch/",
)
GRACE_PERIOD: Final = PREEMPTION.rule(
    "preemption/grace-period",
    title="Pods with devices have the time to end that they ask for.",
    why=(
        "A hook that sleeps as long as the grace period leaves no time between SIGTERM and SIGKILL, and 0 sends no "
        "SIGTERM at all."
    ),
    source="https://kubernetes.io/docs/concepts/workloads/pods/pod-lifecycle/#pod-termination",
)

_ON_THE_NODE: Final = frozenset(
    ("emptyDir", "hostPath", "ephemeral", "configMap", "secret", "downwardAPI", "projected", "image")
)
_BUCKET: Final = re.compile(r"\b(?:s3a?|gs|gcs|abfss?|az|wasbs?|hdfs|hf|oss|obs|cos|swift|minio|dbfs|mlflow)://")
_DEFAULT_GRACE_S: Final = 30
_SLEEP: Final = re.compile(r"\bsleep\s+([0-9]{1,6})([smh]?)(?![\w.])")
_SECONDS: Final = {"": 1, "s": 1, "m": 60, "h": 3600}


def advise_progress(subject: Subject) -> Iterator[Problem]:
    """What a job that is bound to spot nodes would lose."""
    if subject.group_kind not in BATCH:
        return
    on_spot = [pods for pods in subject.once(workload).device_pods if selected(pods)]
    for pods in on_spot:
        yield from _spot_checkpoint(pods, subject)
    if on_spot:
        yield from _restart(subject)
        yield from _elastic_limits(subject.typed(TrainingJob).spec.elastic_policy)


def _spot_checkpoint(pods: DevicePods, subject: Subject) -> Iterator[Problem]:
    if not _keeps_files(pods, subject):
        message = "runs on spot nodes, but no volume outlives the pods, so a preemption loses the progress of the job"
        fix = "mount a PersistentVolumeClaim for checkpoints"
        yield SPOT_CHECKPOINT.problem(pods.podset.path, message, fix)


def _keeps_files(pods: DevicePods, subject: Subject) -> bool:
    """Whether some volume is elsewhere, or some word says so: a bucket, or settings that nobody sees here."""
    sources = {field for volume in pods.spec.volumes for field in volume.json if field != "name"}
    if sources - _ON_THE_NODE or subject.typed(Job).spec.volumes:
        return True
    return any(map(_names_bucket, pods.containers))


def _names_bucket(container: Container) -> bool:
    if container.env_from or any(variable.value_from.json for variable in container.env):
        return True
    texts = (*container.words, *(variable.value for variable in container.env))
    return any(_BUCKET.search(text) for text in texts)


def _restart(subject: Subject) -> Iterator[Problem]:
    """Restart policies and limits of the Training Operator under which one preempted pod ends the job."""
    if subject.group_kind[0] != "kubeflow.org":
        return
    spec = subject.typed(TrainingJob).spec
    for name, role in spec.roles():
        if role.restart_policy == "Never" and name != "Launcher":
            message = "ends the job when one pod is preempted, and the pods run only on spot nodes"
            fix = "set ExitCode, which restarts pods that a signal ended"
            yield RESTART.problem(role.path("restartPolicy"), message, fix, "Never")
    if spec.run_policy.backoff_limit == 0:
        message = "ends the job when the first pod is preempted, and the pods run only on spot nodes"
        fix = "set a number of failures that the job may have"
        yield RESTART.problem(spec.run_policy.path("backoffLimit"), message, fix, 0)


def _elastic_limits(policy: ElasticPolicy) -> Iterator[Problem]:
    """An elastic job that cannot become smaller."""
    least = policy.min_replicas
    if least is not None and least == policy.max_replicas:
        message = "equals maxReplicas, so the job cannot go on with fewer workers when a spot node is taken back"
        yield ELASTIC_LIMITS.problem(policy.path("minReplicas"), message, "lower minReplicas", least)


def advise_grace_periods(subject: Subject) -> Iterator[Problem]:
    """Pods that are killed before their preStop hooks have ended, or before they can write a checkpoint."""
    for pods in subject.once(workload).device_pods:
        yield from _grace_period(pods, is_batch=subject.group_kind in BATCH)


def _grace_period(pods: DevicePods, *, is_batch: bool) -> Iterator[Problem]:
    given = pods.spec.termination_grace_period_seconds
    grace = _DEFAULT_GRACE_S if given is None else given
    if given == 0 and is_batch:
        at = pods.locate(pods.spec.path("terminationGracePeriodSeconds"))
        message = "ends the processes without a signal first, so a preempted job writes no last checkpoint"
        yield GRACE_PERIOD.problem(at, message, "remove the field, or set the seconds that a checkpoint takes", 0)
        return
    for container in pods.spec.running_containers():
        hook = container.lifecycle.pre_stop
        seconds = _sleep_s(hook)
        if seconds >= grace > 0:
            lasts = f"sleeps {seconds} s, but Kubernetes kills the pod {grace} s after its deletion"
            fix = f"set terminationGracePeriodSeconds to more than {seconds}"
            at = pods.locate(hook.at)
            yield GRACE_PERIOD.problem(at, f"{lasts}, so its processes never get SIGTERM", fix)


def _sleep_s(hook: LifecycleHandler) -> int:
    """How long a hook sleeps, as it is written; 0 for another one."""
    words = " ".join(hook.exec.command)
    return max([hook.sleep.seconds, *(int(count) * _SECONDS[unit] for count, unit in _SLEEP.findall(words))])
