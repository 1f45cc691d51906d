"""The state that a job on spot nodes keeps when a node is reclaimed, and whether its PriorityClasses exist and have an
effect.

A job may keep another attempt, a smaller number of workers, or the time to end. Kueue reads the value of a
PriorityClass and not its preemptionPolicy.

Source: kubernetes-sigs/kueue@ff69552e pkg/util/priority/priority.go GetPriorityFromPriorityClass.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from webhook.cluster.interest import interest_in_fields
from webhook.facts.gpu.device_pods import BATCH, DevicePods, read_device_workload
from webhook.facts.kinds import PRIORITY_CLASS
from webhook.facts.kueue.types import ClusterQueue, LocalQueue
from webhook.facts.pods.pod_sets import template_of
from webhook.facts.preemption.spot import check_checkpoint_outlives_spot_node, selected_spot_nodes
from webhook.facts.preemption.types import PREEMPTION, ElasticPolicy, TrainingOperatorJob
from webhook.facts.scheduling.priority_classes import PriorityClass, priority_class_name
from webhook.facts.subject import Subject
from webhook.rules.problem import MissingObject, Problem
from webhook.typed.collections import Items
from webhook.typed.pods import LifecycleHandler

RESTART: Final = PREEMPTION.rule(
    "preemption/restart",
    title="A job on spot nodes ends at the first preemption",
    why="With restartPolicy Never or backoffLimit 0, the first node that the cloud takes back ends the job.",
    source="kubeflow/trainer@3a3a1da8d528 pkg/controller.v1/common/job.go",
    function="ReconcileJobs",
)
ELASTIC_LIMITS: Final = PREEMPTION.rule(
    "preemption/elastic-limits",
    title="An elastic job on spot nodes cannot shrink",
    why="With minReplicas equal to maxReplicas, all workers wait until a new node is there.",
    source="https://www.kubeflow.org/docs/components/trainer/legacy-v1/user-guides/pytorch/",
)
GRACE_PERIOD: Final = PREEMPTION.rule(
    "preemption/grace-period",
    title="The pod gets no time to shut down",
    why=(
        "A hook as long as the grace period leaves no time between SIGTERM and SIGKILL. A grace period of 0 sends no "
        "SIGTERM at all."
    ),
    source="https://kubernetes.io/docs/concepts/workloads/pods/pod-lifecycle/#pod-termination",
)
NEVER_PREEMPTS: Final = PREEMPTION.rule(
    "preemption/never-preempts",
    title="The workload preempts others although its class says Never",
    why=(
        "Kueue compares only the values of priority classes, and preempts workloads of lower value also for a class "
        "with preemptionPolicy Never."
    ),
    source="kubernetes-sigs/kueue@ff69552e pkg/util/priority/priority.go",
    function="GetPriorityFromPriorityClass",
)
PREEMPTION_PRIORITY_CLASS: Final = PREEMPTION.rule(
    "preemption/priority-class",
    title="The PriorityClass does not exist",
    why="The API server refuses the pods of the workload, long after it accepted the workload.",
    refused_by="the API server, when the pod is created",
    source="k8s.io/kubernetes v1.36 plugin/pkg/admission/priority/admission.go",
    function="admitPod",
    fails="controller",
)
LOOKUPS: Final = (
    interest_in_fields(PRIORITY_CLASS, "preemptionPolicy"),
    interest_in_fields(LocalQueue.gvk, "spec.clusterQueue"),
    interest_in_fields(ClusterQueue.gvk, "spec.preemption"),
)
_DEFAULT_GRACE_S: Final = 30
_SLEEP: Final = re.compile(r"\bsleep\s+([0-9]{1,6})([smh]?)(?![\w.])")
_SECONDS: Final = {"": 1, "s": 1, "m": 60, "h": 3600}
_QUEUE: Final = "kueue.x-k8s.io/queue-name"
_PRIORITY: Final = "kueue.x-k8s.io/priority-class"


def warn_of_progress_lost_on_spot_nodes(subject: Subject) -> Iterator[Problem]:
    """Warn of the losses of a job that is bound to spot nodes."""
    if subject.group_kind not in BATCH:
        return
    on_spot = [pods for pods in subject.once(read_device_workload).device_pods if selected_spot_nodes(pods)]
    for pods in on_spot:
        yield from check_checkpoint_outlives_spot_node(pods, subject)
    if on_spot:
        yield from _check_restart_policies(subject)
        yield from _check_elastic_limits(subject.typed(TrainingOperatorJob).spec.elastic_policy)


def _check_restart_policies(subject: Subject) -> Iterator[Problem]:
    """Warn of restart policies and limits of the Training Operator under which one preempted pod ends the job."""
    if subject.group_kind[0] != "kubeflow.org":
        return
    spec = subject.typed(TrainingOperatorJob).spec
    for name, role in spec.roles():
        if role.restart_policy == "Never" and name != "Launcher":
            message = "ends the job when one pod is preempted, and the pods run only on spot nodes"
            fix = "set ExitCode, which restarts pods that a signal ended"
            yield RESTART.problem(role.path("restartPolicy"), message, fix, "Never")
    if spec.run_policy.backoff_limit == 0:
        message = "ends the job when the first pod is preempted, and the pods run only on spot nodes"
        fix = "set a number of failures that the job may have"
        yield RESTART.problem(spec.run_policy.path("backoffLimit"), message, fix, 0)


def _check_elastic_limits(policy: ElasticPolicy) -> Iterator[Problem]:
    """Warn of an elastic job that cannot become smaller."""
    least = policy.min_replicas
    if least is not None and least == policy.max_replicas:
        message = "equals maxReplicas, so the job cannot go on with fewer workers when a spot node is taken back"
        yield ELASTIC_LIMITS.problem(policy.path("minReplicas"), message, "lower minReplicas", least)


def advise_grace_periods(subject: Subject) -> Iterator[Problem]:
    """Warn of pods that are killed before their preStop hooks have ended, or before they can write a checkpoint."""
    for pods in subject.once(read_device_workload).device_pods:
        yield from _check_grace_period(pods, is_batch=subject.group_kind in BATCH)


def _check_grace_period(pods: DevicePods, *, is_batch: bool) -> Iterator[Problem]:
    given = pods.spec.termination_grace_period_seconds
    grace = _DEFAULT_GRACE_S if given is None else given
    if given == 0 and is_batch:
        at = pods.locate(pods.spec.path("terminationGracePeriodSeconds"))
        message = "ends the processes without a signal first, so a preempted job writes no last checkpoint"
        yield GRACE_PERIOD.problem(at, message, "remove the field, or set the seconds that a checkpoint takes", 0)
        return
    for container in pods.spec.running_containers():
        hook = container.lifecycle.pre_stop
        seconds = _sleep_seconds_of_hook(hook)
        if seconds >= grace > 0:
            lasts = f"sleeps {seconds} s, but Kubernetes kills the pod {grace} s after its deletion"
            fix = f"set terminationGracePeriodSeconds to more than {seconds}"
            at = pods.locate(hook.at)
            yield GRACE_PERIOD.problem(at, f"{lasts}, so its processes never get SIGTERM", fix)


def _sleep_seconds_of_hook(hook: LifecycleHandler) -> int:
    """Return how many seconds a hook sleeps; 0 for another action."""
    words = " ".join(hook.exec.command)
    hook.charge_search(words)
    return max([hook.sleep.seconds, *(int(count) * _SECONDS[unit] for count, unit in _SLEEP.findall(words))])


def advise_preemption_policy(subject: Subject) -> Iterator[Problem]:
    """Warn of a class with preemptionPolicy Never, in a queue where Kueue preempts anyway."""
    labels, pods = subject.metadata.labels, subject.once(read_device_workload).device_pods
    queue = labels.get(_QUEUE)
    name = next(filter(None, (priority_class_name(using.template) for using in pods)), "")
    if not queue or labels.get(_PRIORITY) or not name:
        return
    view = subject.cluster_view()
    held = view.find(PriorityClass, name, namespaced=False)
    if held.preemption_policy != "Never":
        return
    of = view.find(LocalQueue, queue).spec.cluster_queue
    if of and _does_queue_preempt(view.find(ClusterQueue, of, namespaced=False)):
        message = (
            f"is a PriorityClass with preemptionPolicy Never{view.file_of_object_as_text(held.json)}, but Kueue "
            "ignores this policy, "
            f"so Kueue may preempt other jobs of {view.name_with_file(ClusterQueue.gvk, of)} for this job"
        )
        fix = f"set the label {_PRIORITY} to a WorkloadPriorityClass with a low value"
        yield NEVER_PREEMPTS.problem(pods[0].locate(pods[0].spec.path("priorityClassName")), message, fix, name)


def _does_queue_preempt(queue: ClusterQueue) -> bool:
    preemption = queue.spec.preemption
    return any(
        policy not in ("", "Never") for policy in (preemption.within_cluster_queue, preemption.reclaim_within_cohort)
    )


def check_priority_classes_exist(subject: Subject) -> Iterator[Problem]:
    """Report PriorityClasses that the pods name and that do not exist."""
    work = subject.once(read_device_workload)
    names = (priority_class_name(template_of(each, subject)) for each in work.pod_sets)
    if not work.device_pods or not any(names):
        return
    for named in Items(subject.fact("priorities")["classes"], subject.deadline):
        if named["absent"]:
            near = named["nearest"]
            message = f"PriorityClass `{named['name']}` does not exist, so the API server refuses the pods"
            fix = "create the class, or correct the name"
            if near:
                fix = f"write `{near}` if that is meant, or create the class"
            yield PREEMPTION_PRIORITY_CLASS.problem(named["path"], message, fix)
        elif not named["found"]:
            missing = MissingObject(kind=PRIORITY_CLASS.kind, name=named["name"])
            yield PREEMPTION_PRIORITY_CLASS.problem(named["path"], missing=(missing,))
