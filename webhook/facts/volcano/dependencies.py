"""What tasks wait for, and whether they ever start.

Pods of a task with `dependsOn` are made once the tasks that it names run, and a gang is placed only once enough of its
pods are there, so that a gang that needs waiting tasks never starts. Source: volcano-sh/volcano@ed72c7c815a9
pkg/webhooks/admission/jobs/validate/util.go topoSort, pkg/controllers/job/job_controller_actions.go
waitDependsOnTaskMeetCondition, pkg/scheduler/api/job_info.go CheckTaskValid.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from webhook.facts.volcano.job import Job, Task, problem
from webhook.placeholders import is_placeholder
from webhook.problem import Problem
from webhook.wording import counted, named


def validate_dependencies(job: Job) -> Iterator[Problem]:
    """The tasks that are named exist, once each, and no task waits for itself by way of others."""
    places = job.places()
    is_graph = True
    for task in job.deadline.each(job.tasks):
        seen: set[str] = set()
        for index, name in enumerate(job.deadline.each(task.depends_on)):
            if is_placeholder(name):
                is_graph = False
                continue
            message = "is not the name of a task of this job" if name not in places else ""
            message = "is named twice, which Volcano treats as a cycle" if name in seen else message
            if message:
                is_graph = False
                fix = "write the name of another task" if name not in places else "remove one of the two"
                yield problem("dependency", (*task.at, "dependsOn", "name", index), message, fix, name)
            seen.add(name)
    if is_graph and len(places) == len(job.tasks):
        yield from _validate_order(job)


def _validate_order(job: Job) -> Iterator[Problem]:
    """As topoSort: takes away tasks that wait for none of the others until none is left."""
    waiting = {task.name: len(task.depends_on) for task in job.tasks}
    followers: dict[str, list[str]] = {}
    for task in job.deadline.each(job.tasks):
        for name in job.deadline.each(task.depends_on):
            followers.setdefault(name, []).append(task.name)
    ready = [name for name, count in waiting.items() if not count]
    while ready:
        name = ready.pop()
        del waiting[name]
        for follower in job.deadline.each(followers.get(name, [])):
            waiting[follower] -= 1
            if not waiting[follower]:
                ready.append(follower)
    if waiting:
        task = next(task for task in job.tasks if task.name in waiting)
        message = f"leads to a cycle because {named(sorted(waiting), 'task')} wait for each other"
        if len(waiting) == 1:
            message = "makes the task wait for itself"
        yield problem(
            "dependency-cycle", (*task.at, "dependsOn"), message, "remove a dependency so that one task can start first"
        )


def created_first(job: Job) -> Iterator[Task]:
    """The tasks whose pods are made before anything runs: what is waited for needs no pods, or there is nothing."""
    places = job.places()
    for task in job.deadline.each(job.tasks):
        ready = (_needs_none(places, name) for name in job.deadline.each(task.depends_on))
        if any(ready) if task.waits_for_any else all(ready):
            yield task


def _needs_none(places: Mapping[str, Task], name: str) -> bool:
    return name in places and places[name].min_available == 0


def advise_start(job: Job) -> Iterator[Problem]:
    """A gang that waits for pods which are only made once the gang runs."""
    if not job.is_filled or not any(task.depends_on for task in job.tasks) or any(validate_dependencies(job)):
        return
    first = {task.index for task in created_first(job)}
    late = [task for task in job.tasks if task.index not in first]
    if not late:
        return
    pods = sum(task.replicas for task in job.tasks if task.index in first)
    needed = sum(task.min_available for task in job.tasks)
    path = (*job.at, "minAvailable")
    if job.min_available > pods:
        message = (
            f"leads to a job that never starts because only {counted(pods, 'pod')} can be created at first, and "
            f"{named([f'`{task.name}`' for task in late], 'task')} {'waits' if len(late) == 1 else 'wait'} until other "
            "tasks run"
        )
        fix = f"set {pods}" if pods else "remove a dependency so that one task can start first"
        yield problem("deadlock", path, message, fix, shown=job.shown_min_available)
        return
    task = next((task for task in late if task.min_available), None)
    if task is not None and job.min_available >= needed:
        message = (
            f"leads to a job that never starts because no pod starts before {counted(task.min_available, 'pod')} of "
            f"task `{task.name}` can start, and this task is created only when another task runs"
        )
        fix = "set minAvailable of the task to 0"
        yield problem("deadlock", (*task.at, "minAvailable"), message, fix, task.min_available)
