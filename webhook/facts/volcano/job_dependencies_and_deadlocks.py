"""Rules for dependencies between tasks, and tasks that never start.

The pods of a task with `dependsOn` are created after the named tasks run. A gang is placed only if enough of its pods
exist. So a gang that needs pods of a waiting task never starts.

Source: volcano-sh/volcano@ed72c7c815a9 pkg/webhooks/admission/jobs/validate/util.go topoSort,
pkg/controllers/job/job_controller_actions.go waitDependsOnTaskMeetCondition, pkg/scheduler/api/job_info.go
CheckTaskValid.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from webhook.facts.subject import Subject
from webhook.facts.volcano.groups import VOLCANO_JOB, VOLCANO_JOB_ADVICE
from webhook.facts.volcano.sent_job import spec_without_defaults
from webhook.facts.volcano_objects.types import Job, Task
from webhook.rules.problem import Problem
from webhook.text.wording import counted, named
from webhook.typed.view import Typed
from webhook.yamltext.placeholders import is_placeholder

DEPENDENCY: Final = VOLCANO_JOB.rule(
    "volcano-job/dependency",
    title="The task depends on a task that does not exist or is listed twice",
    why="Volcano treats a misspelt or repeated name as a cycle and refuses the Job.",
    function="topoSort",
)
DEPENDENCY_CYCLE: Final = VOLCANO_JOB.rule(
    "volcano-job/dependency-cycle",
    title="The dependencies of tasks form a cycle",
    why="Volcano refuses the Job, because the tasks of the cycle could never start.",
    function="topoSort",
)
DEADLOCK: Final = VOLCANO_JOB_ADVICE.rule(
    "volcano-job/deadlock",
    title="The gang waits for tasks that wait for the gang",
    why=(
        "Tasks with dependsOn get their pods only when other tasks run, but the gang starts only when minAvailable "
        "pods exist. By default minAvailable is all pods, so the Job waits for ever."
    ),
    refused_by="nothing; the job stays pending",
    source="https://github.com/volcano-sh/volcano/issues/2944",
    severity="high",
    fails="pending",
    issues=(
        "https://github.com/volcano-sh/volcano/issues/2226",
        "https://github.com/volcano-sh/volcano/pull/2302",
    ),
)


def find_names_waiting_in_cycles(targets: Mapping[str, Sequence[str]], owner: Typed) -> list[str]:
    """Return the names that wait for each other in a cycle, and the names that wait for these names, in order.

    Args:
        targets: the names that each name waits for. Every name must be a key; a name that is listed twice counts once.
        owner: the object with the dependencies; its deadline is charged.
    """
    deadline = owner.reading.deadline
    waiting = {name: len(set(wanted)) for name, wanted in targets.items()}
    followers: dict[str, list[str]] = {}
    for name, wanted in targets.items():
        for target in deadline.charge_for_items(set(wanted)):
            followers.setdefault(target, []).append(name)
    ready = [name for name, count in waiting.items() if not count]
    while ready:
        name = ready.pop()
        del waiting[name]
        for follower in deadline.charge_for_items(followers.get(name, [])):
            waiting[follower] -= 1
            if not waiting[follower]:
                ready.append(follower)
    return list(waiting)


def validate_dependencies(job: Job) -> Iterator[Problem]:
    """Report dependencies on tasks that do not exist, repeated dependencies, and cycles."""
    tasks = job.spec.tasks_by_name
    is_graph = len(tasks) == len(job.spec.tasks)
    for task in job.spec.tasks:
        is_graph = is_graph and not any(map(is_placeholder, task.depends_on.names))
        for broken in _check_dependency(task, job):
            is_graph = False
            yield broken
    if is_graph:
        yield from _check_dependency_cycle(job)


def _check_dependency(task: Task, job: Job) -> Iterator[Problem]:
    seen: set[str] = set()
    for index, name in enumerate(task.depends_on.names):
        is_task = name in job.spec.tasks_by_name
        if is_placeholder(name) or (is_task and name not in seen):
            seen.add(name)
            continue
        message = (
            "is listed twice, which Volcano treats as a cycle"
            if name in seen
            else "is not the name of a task of this job"
        )
        fix = "remove one of the two" if is_task else "write the name of another task"
        yield DEPENDENCY.problem(task.depends_on.path("name", index), message, fix, name)
        seen.add(name)


def _check_dependency_cycle(job: Job) -> Iterator[Problem]:
    """Yield the problems that topoSort would report."""
    waiting = find_names_waiting_in_cycles({task.name: task.depends_on.names for task in job.spec.tasks}, job)
    if waiting:
        task = job.spec.tasks_by_name[waiting[0]]
        message = f"leads to a cycle of dependencies, so {named(sorted(waiting), 'task')} never start"
        if len(waiting) == 1:
            message = "makes the task wait for itself"
        fix = "remove a dependency so that one task can start first"
        yield DEPENDENCY_CYCLE.problem(task.path("dependsOn"), message, fix)


def warn_of_gang_deadlock(job: Job, subject: Subject) -> Iterator[Problem]:
    """Report a gang that waits for pods that are created only after the gang runs."""
    spec = job.spec
    if (
        not spec.has_no_placeholders
        or not any(task.depends_on.names for task in spec.tasks)
        or any(validate_dependencies(job))
    ):
        return
    created_later = [task for task in spec.tasks if not _is_created_first(task, job)]
    if created_later:
        yield from _check_deadlock(job, created_later, is_default=not spec_without_defaults(subject).min_available)


def _is_created_first(task: Task, job: Job) -> bool:
    """Return whether the task's pods are created before any pod runs, because the tasks in dependsOn need no pods."""
    tasks = job.spec.tasks_by_name
    ready = (name in tasks and tasks[name].min_available == 0 for name in task.depends_on.names)
    return any(ready) if task.waits_for_any else all(ready)


def _check_deadlock(job: Job, created_later: Sequence[Task], *, is_default: bool) -> Iterator[Problem]:
    spec, pods = job.spec, job.spec.pod_count - sum(task.replicas for task in created_later)
    needing = next((task for task in created_later if task.min_available), None)
    if spec.min_available > pods:
        message = (
            f"keeps the job from starting because only {counted(pods, 'pod')} can be created at first, and "
            f"{named([f'`{task.name}`' for task in created_later], 'task')} "
            f"{'waits' if len(created_later) == 1 else 'wait'} until other tasks run"
        )
        fix = f"set {pods}" if pods else "remove a dependency so that one task can start first"
        shown = f"`{spec.min_available}`" + (", the default," if is_default else "")
        yield DEADLOCK.problem(spec.path("minAvailable"), message, fix, shown=shown)
    elif needing is not None and spec.min_available >= spec.needed_pod_count:
        message = (
            f"keeps the job from starting because no pod starts before {counted(needing.min_available, 'pod')} of "
            f"task `{needing.name}` can start, but the pods of this task are created only when another task runs"
        )
        fix = "set minAvailable of the task to 0"
        yield DEADLOCK.problem(needing.path("minAvailable"), message, fix, needing.min_available)
