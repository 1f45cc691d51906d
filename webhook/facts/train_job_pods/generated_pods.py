"""The pods that Trainer makes of a TrainJob, asked like any other pod, and where in the TrainJob a problem comes from.

The pods stand nowhere in the TrainJob: a problem of what spec.trainer says is told there, one that the pods of the
runtime have by themselves where the TrainJob names it, and another one where it has its patches.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from webhook.attributes import JSON
from webhook.attributes import POD as KIND
from webhook.facts.subject import Subject
from webhook.facts.train_job_pods.flux_pods import entrypoint
from webhook.facts.train_job_pods.nodes import POD, is_trainer, name_of
from webhook.facts.train_job_pods.spec_changes import changes_more_than_suspend
from webhook.facts.train_job_pods.train_job import TrainJob, train_job
from webhook.paths import FieldPath, get, parse, render
from webhook.problem import Problem

_OF_TRAINER = {"resources": "resourcesPerNode", "env": "env", "image": "image"}


def generated_problems(
    subject: Subject,
    run: Callable[[Subject], Iterator[Problem]],
    *,
    refuses: bool = True,
    is_of_pod: Callable[[Subject], bool] | None = None,
) -> Iterator[Problem]:
    """What a check says of the pods of each replicated job.

    Args:
        subject: the TrainJob.
        run: the check, which is not asked again about pods of the runtime alone of which it had nothing to say.
        refuses: whether it names what no API server takes.
        is_of_pod: whether nothing but a pod decides what the check says of it; so it is of all without this.

    """
    job = subject.once(train_job)
    if not job.runtime.is_found or not changes_more_than_suspend(subject):
        return
    scripts = f"`{entrypoint(name_of(job.object.get('metadata')))}`"
    for each in job.deadline.paced(job.jobs):
        silent = job.merged.of_runtime.get(id(each))
        if silent is not None and run in silent:
            continue
        pod = _pod_once(each, subject)
        problems = list(run(pod))
        if not problems and silent is not None and (is_of_pod is None or is_of_pod(pod)):
            silent.add(run)
        problems = [problem for problem in problems if problem.found != scripts]
        if problems and (name_of(each), "") not in job.merged.unknown:
            before = subject.once(_jobs_of_runtime).get(name_of(each))
            known = {problem.without_path for problem in run(_pod(before, subject))} if before is not None else set()
            for problem in job.deadline.paced(problems):
                env = subject.once(_env_of_trainer)
                origin = job.origin(is_own=problem.without_path in known)
                yield _located(problem, each, job, env) or _told(problem, each, job, origin, refuses=refuses)


def _jobs_of_runtime(subject: Subject) -> Mapping[str, JSON]:
    """The replicated jobs as the runtime has them, by their names."""
    job = subject.once(train_job)
    return {name_of(each): each for each in job.deadline.each(job.runtime.jobs)}


def _pod_once(job: JSON, subject: Subject) -> Subject:
    """A replicated job, merged, as a pod: every check asks the same one."""
    made = subject.once(_pods)
    known = made.get(id(job))
    if known is None:
        known = made[id(job)] = _pod(job, subject)
    return known


def _pods(subject: Subject) -> dict[int, Subject]:
    """The pods that were asked about, by the `id` of their replicated jobs."""
    del subject
    return {}


def _pod(job: JSON, subject: Subject) -> Subject:
    """A replicated job's template as a pod of its own."""
    template = get(job, POD[:-1]) or {}
    pod = {**template, "apiVersion": "v1", "kind": "Pod", "spec": template.get("spec") or {}}
    attributes = replace(subject.attributes, kind=KIND, object=pod, old_object=None)
    return subject.about(pod, attributes, template_of=subject.attributes.kind)


def _env_of_trainer(subject: Subject) -> Mapping[str, int]:
    """Where spec.trainer.env has a variable first, by its name: each of many may be a problem."""
    job = subject.once(train_job)
    places: dict[str, int] = {}
    for index, each in enumerate(job.deadline.each(job.trainer.get("env") or ())):
        places.setdefault(name_of(each), index)
    return places


def _located(problem: Problem, of: JSON, job: TrainJob, env: Mapping[str, int]) -> Problem | None:
    """A problem of a pod as one of spec.trainer; None where it is none."""
    path = _in_trainer(parse(problem.path), of, job, env)
    return None if path is None else replace(problem, path=path)


def _told(problem: Problem, of: JSON, job: TrainJob, origin: str, *, refuses: bool) -> Problem:
    """A problem of a pod as one of what the TrainJob is merged from."""
    where = f"replicated job `{name_of(of)}`, {problem.path}"
    if refuses:
        message = f"leads to pods that are refused because in {job.runtime}, {where} {problem.said}"
        fix = f"in the runtime, {problem.fix}" if origin == "spec.runtimeRef" and problem.fix else problem.fix
        return replace(problem, path=origin, found="", message=message, fix=fix)
    return replace(problem, path=origin, found="", message=f"in {where} {problem.said}")


def told_of_job(problem: Problem, subject: Subject) -> Problem:
    """Advice on the pods of a replicated job, at `spec.runtimeRef.JOB` and the path in the pod, as of its TrainJob."""
    at = parse(problem.path)
    if at[:2] != ("spec", "runtimeRef") or len(at) < 3:
        return problem
    job, name, inside = subject.once(train_job), str(at[2]), at[3:]
    if (path := _in_trainer(inside, subject.once(_jobs)[name], job, subject.once(_env_of_trainer))) is not None:
        return replace(problem, path=path)
    where = f"{render(inside)} " if inside else ""
    message = f"in replicated job `{name}`, {where}{problem.said}"
    return replace(problem, path="spec.runtimeRef", found="", message=message)


def _jobs(subject: Subject) -> Mapping[str, JSON]:
    """The replicated jobs, merged, by their names."""
    job = subject.once(train_job)
    return {name_of(each): each for each in job.deadline.paced(job.jobs)}


def _in_trainer(at: FieldPath, of: JSON, job: TrainJob, env: Mapping[str, int]) -> str | None:
    """Where spec.trainer says it; None where it does not."""
    if at[:2] != ("spec", "containers") or len(at) < 4 or not is_trainer(of):
        return None
    container, field = get(of, (*POD, "containers", at[2]), {}), _OF_TRAINER.get(str(at[3]))
    if name_of(container) != "node" or field is None or job.trainer.get(field) is None:
        return None
    if field == "image":
        return "spec.trainer.image"
    if field == "resourcesPerNode":
        asked = job.trainer[field]
        return render(("spec", "trainer", field, *at[4:])) if get(asked, at[4:]) is not None else None
    if len(at) == 4:
        return "spec.trainer.env"
    index = env.get(name_of(get(container, ("env", at[4]))))
    return None if index is None else render(("spec", "trainer", "env", index, *at[5:]))
