"""Advice on what a Job, a JobSet, a Volcano Job or a RayJob does when one of its pods fails.

If one of several processes that train together ends, the other processes cannot continue, unless the launcher is
elastic. By default, Volcano creates a lost pod again and leaves the other pods running. A JobSet without restarts fails
when one of its Jobs fails. KubeRay replaces lost workers; if the head is lost, only a new cluster helps.

Source: k8s.io/kubernetes v1.36 pkg/apis/batch/v1/defaults.go; kubernetes-sigs/jobset@08dfbdfd
pkg/controllers/failure_policy.go executeFailurePolicy; volcano-sh/volcano@ed72c7c815a9
pkg/controllers/job/job_controller_util.go applyPolicies; ray-project/kuberay@feeaf72f ray-operator/controllers/ray
checkBackoffLimitAndUpdateStatusIfNeeded.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from webhook.apimachinery.images import parse_image_name
from webhook.apimachinery.paths import FieldPath, get
from webhook.facts.command_lines.command import cached_launch_of_container, node_count_range_of_launch
from webhook.facts.device_failures.types import (
    DEVICE_FAILURES,
    RUNS_TEST,
    VolcanoJobOrTask,
    is_named_as_trial,
    is_trial,
)
from webhook.facts.gpu.device_pods import SERVING, DevicePods, is_training_container, read_device_workload
from webhook.facts.kinds import CRON_JOB, JOB, JOB_SET, POD, RAY_JOB
from webhook.facts.subject import Subject
from webhook.facts.volcano_objects import types
from webhook.rules.problem import Problem
from webhook.text.wording import counted
from webhook.typed.job_sets import JobSet
from webhook.typed.jobs import CronJob, Job, JobSpec
from webhook.typed.objects import Object
from webhook.typed.pods import Container, Pod
from webhook.typed.ray import RayJob
from webhook.typed.view import ReadingContext

JOB_SET_RESTARTS: Final = DEVICE_FAILURES.rule(
    "device-failures/job-set-restarts",
    level="advice",
    title="One failed Job ends the whole JobSet",
    why="Without maxRestarts, JobSet does not start the Jobs again. One broken device ends a training on many nodes.",
    source="kubernetes-sigs/jobset@08dfbdfd pkg/controllers/failure_policy.go",
    function="executeFailurePolicy",
)
GANG_POLICY: Final = DEVICE_FAILURES.rule(
    "device-failures/gang-policy",
    title="Volcano replaces only the lost pod of a training",
    why=(
        "Without policies for PodEvicted and PodFailed, the other pods keep running. Their processes hang or fail one "
        "by one, and keep their devices."
    ),
    source="volcano-sh/volcano@ed72c7c815a9 pkg/controllers/job/job_controller_util.go",
    function="applyPolicies",
)
RAY_JOB_RETRIES: Final = DEVICE_FAILURES.rule(
    "device-failures/ray-job-retries",
    title="The RayJob has no backoffLimit",
    why=(
        "Ray replaces lost workers, but the head holds the state of the program. Without a backoffLimit, the loss of "
        "the head ends the RayJob."
    ),
    source="ray-project/kuberay@feeaf72f ray-operator/controllers/ray/rayjob_controller.go",
    function="checkBackoffLimitAndUpdateStatusIfNeeded",
)
RAY_START: Final = DEVICE_FAILURES.rule(
    "device-failures/ray-start",
    title="The container runs `ray start` without --block, so the container ends at once",
    why=(
        "Without --block, `ray start` starts the node in the background and ends. The container ends with it, and the "
        "kubelet starts the container again and again."
    ),
    source="ray-project/ray python/ray/scripts/scripts.py",
    function="start",
    fails="start",
)
NO_PROGRAM: Final = DEVICE_FAILURES.rule(
    "device-failures/no-program",
    title="The container runs only a shell, which ends at once",
    why=(
        "The command is a shell, as in the images nvidia/cuda. The container has no terminal and no input, so the "
        "shell ends, and the kubelet starts the container again and again."
    ),
    source="https://gitlab.com/nvidia/container-images/cuda entrypoint.d and nvidia_entrypoint.sh",
    fails="start",
)
POD_FAILURE_POLICY: Final = DEVICE_FAILURES.rule(
    "device-failures/pod-failure-policy",
    title="A drained node counts as a failure of the program",
    why=(
        "Each drained node uses up one of the restarts that backoffLimit allows, so maintenance of nodes can end the "
        "job. The replacement starts while the old pod still holds its devices."
    ),
    source="https://kubernetes.io/docs/concepts/workloads/controllers/job/#pod-failure-policy",
)
EVICTIONS_COUNT: Final = DEVICE_FAILURES.rule(
    "device-failures/evictions-count",
    title="An eviction counts as a failure of a Job for a test or benchmark",
    why="Each drained node uses up a restart. This is only advice, because a person can run a test again.",
    source="https://kubernetes.io/docs/concepts/workloads/controllers/job/#pod-failure-policy",
    level="advice",
)
_WITHOUT_BACKOFF_LIMIT: Final = "v1alpha1"
"""The version of RayJob without backoffLimit: ray-operator/apis/ray/v1alpha1/rayjob_types.go."""
_SEVERAL: Final = 2
_RESTARTS: Final = ("", "Always")
"""Restart policies with which the kubelet starts a container again after its program ends without an error."""
_SAYS_TRAINING: Final = re.compile(r"(?i)(?<![a-z])(pre)?train(ing|er)?(?![a-z])|fine[-_]?tun|\baccelerate launch\b")
_SAYS_LESSON: Final = re.compile(r"(?i)(?<![a-z])(mnist|cifar[-_]?10)(?![a-z])")
"""A name with a data set for lessons. A training with this data takes minutes, and a second run costs little."""
_SAYS_EVALUATION: Final = re.compile(r"(?i)(?<![a-z])(eval(uat(e|ion))?|inference|predict(ion)?)(?![a-z])")
"""A name of a job that uses a finished model."""
_EVALUATES: Final = re.compile(r"(?<![\w-])(lm[_-]eval|lighteval|evalplus|bigcode-evaluation-harness)(?![a-z])")
"""A command that measures a finished model on a set of questions."""
_FEW_STEPS: Final = re.compile(r"(?i)(?<![a-z])max[_-](?:num[_-]|train[_-])?steps[= ][1-9][0-9]?(?![0-9])")
"""An argument that ends a training after less than a hundred steps, as in a trial of the program."""
_PROGRAM_IN_MANIFEST: Final = re.compile(r"\A(?:/\S{1,40}/)?python[0-9.]{0,6} (?:-[uIEsS]{1,4} )?-c ")
"""A command line with a whole Python program."""
_MAY_TRAIN: Final = re.compile(
    r"(?i)(?<![a-z])(train|trainer|fit|backward|step|optimi[sz]er|epochs?|main|run|launch|subprocess|exec|spawn|system"
    r"|import_module)(?![a-z])"
)
"""A word in a Python program that trains, or that starts another program. Without one, the program only shows devices
or waits, and an eviction loses no work.
"""
_SHORT_S: Final = 3600
"""A job that runs at most this number of seconds is short. An eviction costs at most this time."""
_BACKOFF_LIMIT: Final = 6
"""The default of backoffLimit in a Job without backoffLimitPerIndex: pkg/apis/batch/v1/defaults.go SetDefaults_Job."""


_RAY_START: Final = re.compile(
    r"\A(?:(?:/\S{1,40}/)?(?:ba|da)?sh -[a-z]{0,3}c (?:--? )?)?(?:exec )?(?:/\S{1,40}/)?ray start\b"
)
"""A command line that begins with `ray start`."""
_WITHOUT_PROGRAM: Final = frozenset(("nvidia/cuda", "nvcr.io/nvidia/cuda"))
"""Images whose only program is a shell."""
_SHELL: Final = re.compile(r"(?:/?(?:usr/)?bin/)?(?:ba|da|z)?sh")
"""A command that is only a shell."""
_OF_AIRFLOW: Final = "base"
"""The name of the first container of a pod template of Airflow. Airflow replaces the name of the Pod and the command of
this container: https://airflow.apache.org/docs/apache-airflow-providers-cncf-kubernetes/stable/kubernetes_executor.html
"""
_STAYS: Final = re.compile(r"--block|[;&|\n`]|\$\(")
"""Texts that may keep the container running: the option --block, a further command or an expansion."""


def advise_job_set_restarts(subject: Subject) -> Iterator[Problem]:
    """Warn of a JobSet that ends at the first failure of a Job, unless maxRestarts: 0 shows that this is intended."""
    spec = subject.typed(JobSet).spec
    policy = spec.failure_policy
    if policy.max_restarts is not None or any("Restart" in rule.action for rule in policy.rules):
        return
    path = policy.path("maxRestarts") if policy else spec.path("failurePolicy")
    message = "is not set, so the first Job that fails ends the JobSet and all its pods"
    yield JOB_SET_RESTARTS.problem(path, message, "set spec.failurePolicy.maxRestarts, for example to 3")


def advise_gang_restarts(subject: Subject) -> Iterator[Problem]:
    """Warn of a training of several pods that does not handle the loss of a pod. Tests are not reported."""
    if subject.group_kind == RAY_JOB:
        yield from _check_ray_job_retries(subject)
        return
    at = types.SPECS.get(subject.group_kind)
    if (at is None and subject.group_kind != JOB_SET) or is_named_as_trial(subject.metadata):
        return
    training = [
        pods for pods in subject.once(read_device_workload).device_pods if _trains_as_fixed_group(pods, subject)
    ]
    if sum(pods.pod_count for pods in training) < _SEVERAL:
        return
    yield from advise_job_set_restarts(subject) if at is None else _check_missing_event_policies(at, training, subject)


def advise_containers_that_end(subject: Subject) -> Iterator[Problem]:
    """Warn of a container that ends at once and restarts: after `ray start` without --block, or as a shell without
    input.
    """
    if subject.group_kind not in SERVING and subject.group_kind != POD:
        return
    if subject.group_kind == POD and _is_template_of_program(subject.typed(Pod)):
        return
    for pods in subject.once(read_device_workload).device_pods:
        for container in pods.containers if pods.spec.restart_policy in _RESTARTS else ():
            if container.runs(_RAY_START) and not container.runs(_STAYS):
                message = "runs `ray start` without --block, so the container ends at once and restarts for ever"
                yield RAY_START.problem(pods.locate(container.at), message, "add --block", words=("start",))
            elif not container.has("stdin") and not container.has("tty"):
                yield from _check_only_shell(container, pods)


def _is_template_of_program(pod: Pod) -> bool:
    """Return whether a Pod is a template to which a program such as Jenkins, Spark or Airflow adds a command.

    An API server refuses a Pod without a name, so a file with this Pod is a template. In a template of Airflow, the
    name of the first container is `base`.
    """
    first = next(iter(pod.spec.containers), None)
    return not pod.metadata.longest_name or (first is not None and first.name == _OF_AIRFLOW)


def _check_only_shell(container: Container, pods: DevicePods) -> Iterator[Problem]:
    """Warn of a container without input whose program is a shell, by its command or by its image."""
    name = parse_image_name(container.image).short_name
    fix = "set a command that keeps running, such as [sleep, infinity]"
    ends = "which ends at once without"
    if name in _WITHOUT_PROGRAM and not container.words:
        message = f"runs the shell of {name}, {ends} a command, so the container restarts for ever"
        yield NO_PROGRAM.problem(pods.locate(container.at), message, fix)
    elif len(container.words) == len(container.command) == 1 and _SHELL.fullmatch(container.command[0]):
        message = f"runs only the shell `{container.command[0]}`, {ends} an input, so the container restarts for ever"
        yield NO_PROGRAM.problem(pods.locate(container.path("command")), message, fix)


def _trains_as_fixed_group(pods: DevicePods, subject: Subject) -> bool:
    """Return whether the pods train together and all pods are needed. A launcher with a range of nodes, such as 2:4,
    does not need all pods.
    """
    for container in pods.containers:
        if is_training_container(container, subject):
            limits = node_count_range_of_launch(cached_launch_of_container(container, subject))
            return limits is None or limits[0] == limits[1] > 1
    return False


def _check_missing_event_policies(at: FieldPath, training: Sequence[DevicePods], subject: Subject) -> Iterator[Problem]:
    """Warn of events for which neither the Job nor a task that trains has a policy."""
    of_job = _events_of_policies(at, subject)
    for pods in training:
        events = of_job | _events_of_policies(pods.podset.path[:-1], subject)
        wanted = ["PodEvicted", *(["PodFailed"] if pods.spec.restart_policy == "Never" else [])]
        missing = [] if "*" in events else [event for event in wanted if event not in events]
        if missing:
            message = (
                f"have no policy for {' and '.join(missing)}, so when one pod is lost, the other pods wait and keep "
                "their devices"
            )
            fix = f"add a policy for {' and '.join(missing)} with action RestartJob"
            yield GANG_POLICY.problem((*at, "policies"), message, fix)
            return


def _events_of_policies(at: FieldPath, subject: Subject) -> set[str]:
    """Return the events of the policies at a path. A policy with an exit code handles PodFailed."""
    holder = VolcanoJobOrTask.of(get(subject.object, at), at, ReadingContext(subject.deadline))
    events: set[str] = set()
    for policy in holder.policies:
        events.update((policy.event, *policy.events))
        if policy.exit_code is not None or "TaskFailed" in events:
            events.add("PodFailed")
    return events


def _count_devices_of_all_pods(subject: Subject) -> int:
    """Return how many devices all pods have. A pod with an unknown number of devices counts as a pod with one
    device.
    """
    using = subject.once(read_device_workload).device_pods
    return sum(pods.pod_count * (sum(pods.devices.values()) or 1) for pods in using)


def _check_ray_job_retries(subject: Subject) -> Iterator[Problem]:
    """Warn of a RayJob with several devices and no backoffLimit.

    RayJobs on an existing cluster, tests, benchmarks and trials of a few steps are not reported. A written
    backoffLimit, even 0, is the decision of the author.
    """
    spec = subject.typed(RayJob).spec
    if spec.cluster_selector or spec.submission_mode == "InteractiveMode" or spec.has("backoffLimit"):
        return
    spec.charge_search(spec.entrypoint)
    is_short = RUNS_TEST.search(spec.entrypoint) or _FEW_STEPS.search(spec.entrypoint)
    if is_short or is_named_as_trial(subject.metadata):
        return
    if _count_devices_of_all_pods(subject) >= _SEVERAL:
        message = "is not set, so the first failure of the program or the head pod ends the RayJob"
        fix = "set backoffLimit to the number of times that KubeRay may retry the job"
        if subject.attributes.kind.version == _WITHOUT_BACKOFF_LIMIT:
            why = f"because {_WITHOUT_BACKOFF_LIMIT} lacks this field"
            fix = f"write the RayJob as ray.io/v1, {why}, and set backoffLimit"
        yield RAY_JOB_RETRIES.problem(spec.path("backoffLimit"), message, fix)


def advise_job_policies(subject: Subject) -> Iterator[Problem]:
    """Advise on the podFailurePolicy of a Job or a CronJob with devices."""
    by_path = {pods.podset.path: pods for pods in subject.once(read_device_workload).device_pods}
    for job in _job_specs(subject) if by_path else ():
        pods = by_path.get(job.path("template"))
        if pods is None:
            continue
        if not job.pod_failure_policy.json and job.backoff_limit_per_index is None:
            yield from _check_pod_failure_policy(job, pods, subject)


def _job_specs(subject: Subject) -> Iterator[JobSpec]:
    if subject.group_kind == JOB:
        yield subject.typed(Job).spec
    elif subject.group_kind == CRON_JOB:
        yield subject.typed(CronJob).spec.job_template.spec


def _is_failure_costly(pods: DevicePods, subject: Subject) -> bool:
    """Return whether a failure is costly: several pods or devices, or a training."""
    return pods.pod_count > 1 or sum(pods.devices.values()) > 1 or _looks_like_training(pods, subject)


def _looks_like_training(pods: DevicePods, subject: Subject) -> bool:
    """Return whether a launcher starts the program, or a name, image or command shows that the pods train."""
    if any(is_training_container(container, subject) for container in pods.containers):
        return True
    return _SAYS_TRAINING.search(subject.typed(Object).name) is not None or any(
        container.is_found_in(_SAYS_TRAINING, (container.image, *container.words)) for container in pods.containers
    )


def _check_pod_failure_policy(job: JobSpec, pods: DevicePods, subject: Subject) -> Iterator[Problem]:
    """Warn of a job that an eviction may end. Jobs that allow more failures than the default, and short jobs, are not
    reported.
    """
    allowed = _BACKOFF_LIMIT if job.backoff_limit is None else job.backoff_limit
    is_one_pod = max(pods.pod_count, job.completions or 0) <= 1
    if allowed > _BACKOFF_LIMIT or (is_one_pod and allowed) or not _is_failure_costly(pods, subject):
        return  # a single pod is created again after an eviction, up to the number of allowed failures
    deadline = job.active_deadline_seconds or pods.spec.active_deadline_seconds
    if deadline and deadline <= _SHORT_S:
        return
    often = f"the job allows {counted(allowed, 'failure')}" if allowed else "the first failure ends the job"
    message = f"is not set, so an eviction counts as a failure, and {often}"
    never = " and set restartPolicy: Never" if pods.spec.restart_policy == "OnFailure" else ""
    fix = f"add a podFailurePolicy rule with action Ignore for the condition DisruptionTarget{never}"
    if not allowed and _ends_with_any_pod(pods, subject):
        fix += ", and set backoffLimit above 0 because the other pods fail too"
    is_cheap = any(
        is_trial(container, subject)
        or container.is_found_in(_SAYS_LESSON, (subject.metadata.name, container.name))
        or container.runs(_FEW_STEPS)
        or container.runs(_EVALUATES)
        or (container.runs(_PROGRAM_IN_MANIFEST) and not container.runs(_MAY_TRAIN))
        for container in pods.containers
    )
    name = subject.typed(Object).name
    uses_model = _SAYS_EVALUATION.search(name) is not None and _SAYS_TRAINING.search(name) is None
    is_training = _looks_like_training(pods, subject) and not is_cheap and not uses_model
    rule = POD_FAILURE_POLICY if is_training else EVICTIONS_COUNT
    if rule is EVICTIONS_COUNT and all("sleep" in container.words[:1] for container in pods.containers):
        return  # a program that only sleeps loses no work
    yield rule.problem(job.path("podFailurePolicy"), message, fix)


def _ends_with_any_pod(pods: DevicePods, subject: Subject) -> bool:
    """Return whether a launcher joins several pods to one run, so that all pods fail when one pod ends."""
    ranges = (
        node_count_range_of_launch(cached_launch_of_container(container, subject)) for container in pods.containers
    )
    return pods.pod_count > 1 and any(nodes is not None and nodes[0] > 1 for nodes in ranges)
