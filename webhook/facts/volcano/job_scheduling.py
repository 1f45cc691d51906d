"""Rules for how a Job is scheduled: its scheduler, priority, queue and network topology, and pods that never end.

The queue must exist, be open, have no queues below it, and have enough capacity for the gang. queue_tree.py checks
queues, and hyper_node.py compares tiers. Volcano leaves restartPolicy unset, so the default is Always. With Always a
pod never succeeds and never fails, so a policy for TaskCompleted, TaskFailed or PodFailed never applies. A pod that
serves other pods, such as a worker with sshd, sets Always on purpose. So Always is reported only if no policy ends the
job, and no probe, image or command shows a server. A missing restartPolicy is reported only if the command starts a
training.

Source: volcano-sh/volcano@ed72c7c815a9 pkg/controllers/job createJobPod and
pkg/webhooks/admission/jobs/validate/admit_job.go validateJobCreate; k8s.io/kubernetes v1.36
pkg/apis/core/v1/defaults.go SetDefaults_PodSpec.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from webhook.apimachinery.paths import FieldPath
from webhook.facts.command_lines.command import cached_launch_of_json
from webhook.facts.device_failures.probes import read_model_server_patterns
from webhook.facts.kinds import PRIORITY_CLASS
from webhook.facts.priority_classes import BUILT_IN_PRIORITY_CLASSES
from webhook.facts.subject import Subject
from webhook.facts.volcano.groups import VOLCANO_JOB, VOLCANO_JOB_ADVICE
from webhook.facts.volcano.hyper_node import TopologyRules, warn_of_missing_tiers, warn_of_tiers_of_gang_part
from webhook.facts.volcano.queue_tree import OPEN, QueueRules, read_queues, vcctl_command_for_queue
from webhook.facts.volcano_objects.types import Job, LifecyclePolicy, Task
from webhook.rules.problem import Problem
from webhook.yamltext.placeholders import is_placeholder

OTHER_SCHEDULER: Final = VOLCANO_JOB_ADVICE.rule(
    "volcano-job/other-scheduler",
    title="The Job uses the scheduler of Kubernetes, or a task uses another scheduler than its Job",
    why=(
        "Pods of another scheduler are not part of the gang. The gang then starts without these pods, or never starts."
    ),
    refused_by="nothing; the gang is incomplete",
    source="volcano-sh/volcano@ed72c7c815a9 pkg/controllers/job/job_controller_util.go",
    function="createJobPod",
    fails="pending",
)
VOLCANO_JOB_PRIORITY_CLASS: Final = VOLCANO_JOB_ADVICE.rule(
    "volcano-job/priority-class",
    title="The PriorityClass of the Volcano Job does not exist",
    why="Kubernetes refuses pods with a class that does not exist.",
    source="k8s.io/kubernetes v1.36 plugin/pkg/admission/priority",
    fails="controller",
)
RESTART_POLICY: Final = VOLCANO_JOB_ADVICE.rule(
    "volcano-job/restart-policy",
    title="restartPolicy Always keeps the Job from completing",
    why="With restartPolicy Always a container that succeeds is started again, and the Job never completes.",
    refused_by="nothing; the job never completes",
    source="https://kubernetes.io/docs/concepts/workloads/pods/pod-lifecycle/#restart-policy",
    fails="waiting",
)
JOB_QUEUE_EXISTS: Final = VOLCANO_JOB.rule(
    "volcano-job/queue-exists",
    title="The queue of the Volcano Job does not exist",
    why="Volcano's webhook refuses the Job.",
    function="validateJobCreate",
    issues=("https://github.com/volcano-sh/volcano/issues/195",),
)
JOB_QUEUE_OPEN: Final = VOLCANO_JOB.rule(
    "volcano-job/queue-open",
    title="The queue of the Volcano Job is not open",
    why="A queue that is closed, or not yet opened by its controller, accepts no Jobs.",
    function="validateJobCreate",
    issues=("https://github.com/volcano-sh/volcano/issues/3173",),
)
JOB_QUEUE_LEAF: Final = VOLCANO_JOB.rule(
    "volcano-job/queue-leaf",
    title="The queue of the Job has child queues",
    why="Only queues without children hold Jobs.",
    function="validateJobCreate",
)
JOB_CAPABILITY: Final = VOLCANO_JOB_ADVICE.rule(
    "volcano-job/capability",
    title="The gang of the Job needs more than the queue's capability",
    why=(
        "The scheduler admits a gang only if the requests of its minAvailable pods are within the capability of the "
        "queue, and with the hierarchy of the capacity plugin also of every queue above. Otherwise the gang waits for "
        "ever."
    ),
    refused_by="nothing; the job stays pending",
    source="https://github.com/volcano-sh/volcano/issues/4479",
    severity="high",
    fails="pending",
    issues=("https://github.com/volcano-sh/volcano/issues/3910",),
)
QUEUE_LABEL: Final = VOLCANO_JOB_ADVICE.rule(
    "volcano-job/queue-label",
    title="The queue name is longer than 63 characters",
    why=(
        "The name of the queue is a label value of the pods. A label value has at most 63 characters, but the name of "
        "a queue may be longer."
    ),
    fails="controller",
)
QUEUE_ANCESTOR: Final = VOLCANO_JOB_ADVICE.rule(
    "volcano-job/queue-ancestor",
    title="The Job runs although a queue above its queue is closed",
    why="Volcano looks only at the state of the Job's own queue, so closing a queue does not stop the queues below it.",
    refused_by="nothing; the job runs",
)
JOB_TIER: Final = VOLCANO_JOB_ADVICE.rule(
    "volcano-job/tier",
    title="No HyperNode is of a tier that the gang allows",
    why=(
        "A gang with a hard network topology is placed within one HyperNode, with at most the highest tier of the "
        "topology. If all HyperNodes have higher tiers, the gang waits for ever."
    ),
    refused_by="nothing; the job stays pending",
    source="volcano-sh/volcano@ed72c7c815a9 pkg/scheduler/plugins/network-topology-aware/network_topology_aware.go",
    function="isEligibleHyperNode",
    fails="pending",
)
JOB_TIER_NAME: Final = VOLCANO_JOB_ADVICE.rule(
    "volcano-job/tier-name",
    title="No HyperNode has the tier name of the Job",
    why=("The scheduler logs a warning and ignores the topology, so the pods may be placed far from each other."),
    refused_by="nothing; the topology has no effect",
    source="volcano-sh/volcano@ed72c7c815a9 pkg/scheduler/framework/session.go",
    function="adjustNetworkTopologySpec",
)
JOB_TIER_ORDER: Final = VOLCANO_JOB_ADVICE.rule(
    "volcano-job/tier-order",
    title="A partition of a task allows a higher tier than the whole Job",
    why=(
        "The scheduler keeps the whole gang in one HyperNode, and looks for a HyperNode for each part inside it. So "
        "a higher tier of a part has no effect."
    ),
    refused_by="nothing; the topology of the part has no effect",
    source="volcano-sh/volcano@ed72c7c815a9 pkg/scheduler/actions/allocate/allocate.go",
    function="allocateForJob",
    severity="low",
)
JOB_HIGHEST_TIER: Final = VOLCANO_JOB.rule(
    "volcano-job/highest-tier",
    title="The highest tier of the Job is given both by number and by name",
    why="The number and the name could contradict each other, so Volcano accepts only one of the two.",
    function="validateNetworkTopology",
    refused_on_updates="pkg/webhooks/admission/jobs/validate/admit_job.go validateJobUpdate",
)
JOB_QUEUE_RULES: Final = QueueRules(JOB_QUEUE_EXISTS, JOB_QUEUE_OPEN, JOB_QUEUE_LEAF, JOB_CAPABILITY, is_of_jobs=True)
JOB_TIER_RULES: Final = TopologyRules(JOB_HIGHEST_TIER, JOB_TIER, JOB_TIER_NAME, JOB_TIER_ORDER)
_KUBERNETES_SCHEDULER: Final = "default-scheduler"
_ENDING: Final = frozenset(("CompleteJob", "TerminateJob", "AbortJob"))
_EVENTS_OF_ENDED_PODS: Final = frozenset(("TaskCompleted", "TaskFailed", "PodFailed"))
"""Events that occur only when pods end."""
_FIX: Final = "set OnFailure to restart only containers that fail, or Never to restart no container"
_LONGEST_LABEL: Final = 63


def warn_of_other_schedulers(job: Job) -> Iterator[Problem]:
    """Report pods that another scheduler places, outside the gang."""
    of_job = job.spec.scheduler_name
    if of_job == _KUBERNETES_SCHEDULER:
        message = (
            "is the scheduler of Kubernetes, which starts the pods one by one, so the queue and minAvailable have no "
            "effect"
        )
        yield _problem_of_other_scheduler(job.spec.path("schedulerName"), message, of_job)
        return
    for task in job.spec.tasks:
        other = task.pod_spec.scheduler_name or of_job
        if other != of_job and not is_placeholder(other + of_job):
            message = (
                f"places these pods without scheduler `{of_job}` of the job, which starts all pods of the job together"
            )
            yield _problem_of_other_scheduler(task.pod_spec.path("schedulerName"), message, other)


def _problem_of_other_scheduler(path: FieldPath, message: str, name: str) -> Problem:
    """Return a conditional problem, because the other scheduler may place the pods."""
    return OTHER_SCHEDULER.problem(path, message, "remove schedulerName", name, is_conditional=True)


def warn_of_missing_priority_class(job: Job, subject: Subject) -> Iterator[Problem]:
    """Report a PriorityClass of the Job that does not exist."""
    name = job.spec.priority_class_name
    if not name or name in BUILT_IN_PRIORITY_CLASSES or is_placeholder(name):
        return
    view, path = subject.cluster_view(), job.spec.path("priorityClassName")
    if view.get(PRIORITY_CLASS, name, namespaced=False) is not None:
        return
    if not (view.is_whole(PRIORITY_CLASS) or subject.once(read_queues).is_whole):
        yield VOLCANO_JOB_PRIORITY_CLASS.problem(path, missing=view.missing_objects_by_field()[""])
        return
    message = "names a PriorityClass that does not exist, so Kubernetes refuses every pod"
    fix = "correct the name, or ask the administrator to create the class"
    yield VOLCANO_JOB_PRIORITY_CLASS.problem(path, message, fix, name)


def warn_of_endless_restarts(job: Job, subject: Subject) -> Iterator[Problem]:
    """Report pods that restart for ever, if nothing else ends the job."""
    lasting = [task for task in job.spec.tasks if task.pod_spec.restart_policy in ("", "Always")]
    policies = list(_policies_that_end_job(job)) if lasting else []
    is_mixed = len(lasting) < len(job.spec.tasks)
    ends = any(_may_policy_apply(policy, owner, is_mixed=is_mixed) for policy, owner in policies)
    for task in lasting:
        yield from _check_restart_policy(task, subject, ends=ends, has_policies=bool(policies))


def _check_restart_policy(task: Task, subject: Subject, *, ends: bool, has_policies: bool) -> Iterator[Problem]:
    policy, path = task.pod_spec.restart_policy, task.pod_spec.path("restartPolicy")
    if policy and not has_policies and not _is_server(task):
        message = "restarts containers that have succeeded, so the job never completes by itself"
        yield RESTART_POLICY.problem(path, message, _FIX, policy)
    elif not policy and not ends and _starts_training(task, subject):
        why = "so the training starts again when it has ended, and the job never completes"
        yield RESTART_POLICY.problem(path, f"is not set, which means Always, {why}", _FIX)


def _is_server(task: Task) -> bool:
    """Return whether a readinessProbe, an image or a command shows that the pods of a task are servers."""
    servers = read_model_server_patterns()
    return any(
        container.has("readinessProbe")
        or container.is_found_in(servers.images, (container.image,))
        or container.runs(servers.commands)
        for container in task.pod_spec.containers
    )


def _policies_that_end_job(job: Job) -> Iterator[tuple[LifecyclePolicy, Task | None]]:
    """Yield the policies that end the job, each with its task; None instead of a task for a policy of the job."""
    for policy in job.spec.policies:
        if policy.action in _ENDING:
            yield policy, None
    for task in job.spec.tasks:
        for policy in task.policies:
            if policy.action in _ENDING:
                yield policy, task


def _may_policy_apply(policy: LifecyclePolicy, owner: Task | None, *, is_mixed: bool) -> bool:
    """Return whether a policy may apply although some pods never end. `is_mixed`: whether other pods of the job end."""
    if frozenset(policy.distinct_events) - _EVENTS_OF_ENDED_PODS:
        return True
    return is_mixed if owner is None else owner.pod_spec.restart_policy in ("OnFailure", "Never")


def _starts_training(task: Task, subject: Subject) -> bool:
    """Return whether a command of the task's pods starts a training. The pods of a training should end."""
    if not task.replicas:
        return False
    launches = (cached_launch_of_json(container.json, subject) for container in task.pod_spec.all_containers())
    return any(launch.by not in ("", "python", "several") for launch in launches)


def warn_of_queue_name_or_closed_ancestor(job: Job, subject: Subject) -> Iterator[Problem]:
    """Report a queue with a name that is too long for a label, or with a closed queue above it."""
    if not is_placeholder(job.spec.queue):
        yield from _check_queue_name_fits_label(job)
        yield from _check_closed_queue_ancestor(job, subject)


def _check_queue_name_fits_label(job: Job) -> Iterator[Problem]:
    if len(job.spec.queue) > _LONGEST_LABEL:
        message = (
            f"is too long for a label of the pods, which has at most {_LONGEST_LABEL} characters, so Kubernetes "
            "refuses the pods"
        )
        fix = "name a queue with a shorter name"
        yield QUEUE_LABEL.problem(job.spec.path("queue"), message, fix, job.spec.queue)


def _check_closed_queue_ancestor(job: Job, subject: Subject) -> Iterator[Problem]:
    name, queues = job.spec.queue, subject.once(read_queues)
    closed = next((above for above in queues.ancestors(name) if above.state not in ("", OPEN)), None)
    if closed is not None:
        message = (
            f"is below queue `{closed.name}`, which is in state {closed.state}, but Volcano runs the job because it "
            f"looks only at the state of `{name}`"
        )
        close = f"ask the administrator to close queue `{name}` too ({vcctl_command_for_queue('close', name)})"
        fix = f"name another queue, or {close}"
        yield QUEUE_ANCESTOR.problem(job.spec.path("queue"), message, fix, name)


def advise_job_topology(job: Job, subject: Subject) -> Iterator[Problem]:
    """Report tiers that do not exist, and partitions with a higher tier than the whole job."""
    gang = job.spec.network_topology
    yield from warn_of_missing_tiers(gang, subject, JOB_TIER_RULES)
    for task in job.spec.tasks:
        if part := task.partition_policy.network_topology:
            yield from warn_of_tiers_of_gang_part(part, gang, subject, JOB_TIER_RULES)
