"""Whether the runtime that a TrainJob names is there: without it, nobody knows what the TrainJob will do."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from webhook.facts.check import Group
from webhook.facts.subject import Subject
from webhook.facts.trainer.train_job import TrainJob, name_of
from webhook.problem import Problem

problem: Final = Group("train-job").problem
_PATH: Final = "spec.runtimeRef.name"


def validate_runtime(job: TrainJob, subject: Subject) -> Iterator[Problem]:
    """A runtime that is known not to be there; of another one nobody knows."""
    if job.runtime.is_found or not job.runtime.name:
        return
    view = subject.view()
    near = view.nearest(job.runtime.name, (name_of(each.get("metadata")) for each in view.objects(job.runtime.kind)))
    if near or view.is_whole():
        message = f"names {job.runtime}, which does not exist, so Trainer refuses the job"
        fix = f"name `{near}`, or create the runtime first" if near else "correct the name, or create the runtime first"
        yield problem("runtime-exists", _PATH, message, fix)
    else:
        yield problem("runtime-exists", _PATH, missing=job.missing)
