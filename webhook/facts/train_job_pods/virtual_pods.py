"""Checks the pods that Trainer creates from a TrainJob like other pods, and reports problems at fields of the TrainJob.

The TrainJob does not contain these pods. A problem that spec.trainer causes is reported at spec.trainer. A problem that
the runtime has without patches is reported at spec.runtimeRef. Any other problem is reported at the patches.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Final

from msgspec import Struct, structs

from webhook.apimachinery.attributes import POD
from webhook.apimachinery.paths import FieldPath, get, parse_path, path_as_text
from webhook.facts.subject import Subject
from webhook.facts.train_job_pods.merged_train_job import MergedTrainJob, merge_train_job_for_pods
from webhook.facts.train_job_pods.nodes_and_processes import is_trainer_job
from webhook.facts.train_job_pods.plugins import entrypoint_config_map_name
from webhook.facts.train_job_pods.train_job_and_runtime_fields import changes_more_than_suspend
from webhook.rules.problem import Problem
from webhook.typed.collections import Items
from webhook.typed.job_sets import ReplicatedJob

_TRAINER_FIELDS: Final = {"resources": "resourcesPerNode", "env": "env", "image": "image"}
"""The field of spec.trainer for each field of the container `node`."""
_RUNTIME: Final[FieldPath] = ("spec", "runtimeRef")


class VirtualPod(Struct, frozen=True, kw_only=True):
    """The pod of one replicated job.

    Args:
        replicated_job: the replicated job of the merged JobSet.
        pod: the pod of this job, as a subject of checks.
        job: the TrainJob.
    """

    replicated_job: ReplicatedJob
    pod: Subject
    job: MergedTrainJob

    @property
    def name(self) -> str:
        """Return the name of the replicated job."""
        return self.replicated_job.name

    def path_in_trainer_spec(self, path: FieldPath) -> FieldPath | None:
        """Return the path in spec.trainer that sets a field of the pod; None if the runtime or a patch sets the
        field.
        """
        if path[:2] != ("spec", "containers") or len(path) < 4 or not is_trainer_job(self.replicated_job):
            return None
        container = get(self.replicated_job.pod.json, path[1:3], {})
        if container.get("name") != "node":
            return None
        field, inside, trainer = _TRAINER_FIELDS.get(str(path[3]), ""), path[4:], self.job.trainer
        if not trainer.has(field) or (field == "resourcesPerNode" and get(trainer.json, (field, *inside)) is None):
            return None
        if field == "env" and inside:
            place = self.job.env_paths_by_name.get(get(container, ("env", inside[0], "name"), ""))
            return None if place is None else (*place, *inside[1:])
        return trainer.path(field, *(inside if field != "image" else ()))


def virtual_pods(subject: Subject) -> Items[VirtualPod]:
    """Return the pods of a TrainJob. Call this function through `Subject.once`."""
    job = subject.once(merge_train_job_for_pods)
    pods = [
        VirtualPod(replicated_job=one, pod=_pod_of_replicated_job(one, subject), job=job) for one in job.replicated_jobs
    ]
    return Items(pods, subject.deadline)


def _pod_of_replicated_job(replicated_job: ReplicatedJob, subject: Subject) -> Subject:
    """Return the template of a replicated job as a separate pod."""
    template = replicated_job.pod_template
    pod = {**template.json, "apiVersion": "v1", "kind": "Pod", "spec": template.spec.json}
    attributes = replace(subject.attributes, kind=POD, object=pod, old_object=None)
    return subject.subject_of_other_object(pod, attributes, template_of=subject.attributes.kind)


def run_check_on_virtual_pods(
    subject: Subject,
    run: Callable[[Subject], Iterator[Problem]],
    *,
    refuses: bool = True,
) -> Iterator[Problem]:
    """Run a check on the pods of a TrainJob, and yield each problem at the field of the TrainJob that causes it.

    Args:
        subject: the TrainJob.
        run: the check.
        refuses: whether the message is about a value that every API server refuses.
    """
    job = subject.once(merge_train_job_for_pods)
    if not job.runtime.is_found or not changes_more_than_suspend(subject):
        return
    config_map = f"`{entrypoint_config_map_name(job.object.name)}`"
    for virtual in subject.once(virtual_pods):
        problems = [problem for problem in run(virtual.pod) if problem.found != config_map]
        if problems and (virtual.name, "") not in job.merged.unknown:
            before = subject.once(_jobs_of_runtime).get(virtual.name)
            known = (
                {problem.code_found_and_message for problem in run(_pod_of_replicated_job(before, subject))}
                if before is not None
                else set()
            )
            for problem in Items(problems, subject.deadline):
                origin = job.path_for_runtime_problem(is_own=problem.code_found_and_message in known)
                yield _relocate_problem_to_trainer_spec(problem, virtual) or _relocate_problem_to_origin(
                    problem, virtual, origin, refuses=refuses
                )


def _jobs_of_runtime(subject: Subject) -> Mapping[str, ReplicatedJob]:
    """Return the replicated jobs of the runtime before the merge, by name."""
    return {
        replicated.name: replicated for replicated in subject.once(merge_train_job_for_pods).runtime.replicated_jobs
    }


def _relocate_problem_to_trainer_spec(problem: Problem, virtual: VirtualPod) -> Problem | None:
    """Return a problem of a pod as a problem of spec.trainer; None if a patch or the runtime sets the field."""
    path = virtual.path_in_trainer_spec(parse_path(problem.path))
    return None if path is None else structs.replace(problem, path=path_as_text(path))


def _relocate_problem_to_origin(problem: Problem, virtual: VirtualPod, origin: str, *, refuses: bool) -> Problem:
    """Return a problem of a pod as a problem at `origin`, the path of the patches or of the runtime."""
    where = f"replicated job `{virtual.name}`, {problem.path}"
    if refuses:
        message = (
            f"leads to pods that are refused because in {virtual.job.runtime}, {where} {problem.found_and_message}"
        )
        fix = f"in the runtime, {problem.fix}" if origin == path_as_text(_RUNTIME) and problem.fix else problem.fix
        return structs.replace(problem, path=origin, found="", message=message, fix=fix)
    assumed = f" of {virtual.job.runtime}" if virtual.job.runtime.assumed else ""
    where = f"replicated job `{virtual.name}`{assumed}, {problem.path}"
    return structs.replace(problem, path=origin, found="", message=f"in {where} {problem.found_and_message}")


def virtual_pods_by_name(subject: Subject) -> Mapping[str, VirtualPod]:
    """Return the pods of a TrainJob by the names of their replicated jobs.

    Call this function through `Subject.once`.
    """
    return {virtual.name: virtual for virtual in subject.once(virtual_pods)}
