"""Releases of Kueue and of Kubeflow Trainer that do not fit: Kueue writes patches that Trainer does not know.

Source: kubernetes-sigs/kueue@ff69552e pkg/controller/jobs/trainjob with its history; kubeflow/trainer branches
release-2.0 to release-2.3. Kueue 0.14.0 to 0.14.4 are not told from 0.14.5, so 0.14 is left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from webhook.apimachinery.releases import Release, release_as_text
from webhook.facts.kinds import TRAIN_JOB
from webhook.facts.kueue.groups import KUEUE_ADVICE, KUEUE_NEVER
from webhook.facts.kueue.objects import QUEUE_NAME
from webhook.facts.kueue.releases import find_kueue_release, is_kueue_release_stated
from webhook.facts.subject import Subject
from webhook.facts.train_job_pods.releases import PATCHES, TEMPLATES, read_trainer_installation
from webhook.rules.problem import Problem

NEVER_RESUMED: Final = KUEUE_NEVER.rule(
    "kueue-never/trainer-release",
    title="Trainer is too old for Kueue, so the TrainJob never starts",
    why="Trainer drops the patch that Kueue writes, so the admitted TrainJob stays suspended and holds its quota.",
    source="kubernetes-sigs/kueue@ff69552e pkg/controller/jobs/trainjob/trainjob_controller.go",
)
WITHOUT_FLAVOR: Final = KUEUE_ADVICE.rule(
    "kueue-advice/trainer-release",
    title="Kueue writes patches that Trainer does not know, so the TrainJob starts without its flavor",
    why="The pods run without the node labels and tolerations of their flavor.",
    source="kubernetes-sigs/kueue@ff69552e pkg/controller/jobs/trainjob/trainjob_controller.go",
)
_RUNTIME_PATCHES: Final[Release] = (0, 17)
_POD_TEMPLATE_OVERRIDES: Final[Release] = (0, 15)


def check_resumed(subject: Subject) -> Iterator[Problem]:
    """Yield a TrainJob of a queue that Trainer never resumes."""
    kueue, trainer = _releases(subject)
    if kueue >= _RUNTIME_PATCHES and (0, 0) < trainer < PATCHES:
        message = (
            f"Kueue {release_as_text(kueue)} needs Trainer 2.2 or later, but Trainer {release_as_text(trainer)} is "
            "installed, so the TrainJob is admitted and never starts"
        )
        yield NEVER_RESUMED.problem("", message, "upgrade Trainer, or use Kueue 0.16 with Trainer 2.1")


def check_flavor_of_pods(subject: Subject) -> Iterator[Problem]:
    """Yield a TrainJob of a queue that starts without the node labels of its flavor."""
    kueue, trainer = _releases(subject)
    if _POD_TEMPLATE_OVERRIDES <= kueue < _RUNTIME_PATCHES and trainer > (0, 0) and trainer != TEMPLATES:
        message = (
            f"Kueue {release_as_text(kueue)} writes podTemplateOverrides, but Trainer {release_as_text(trainer)} "
            "has no such field, so the pods run without the node labels and tolerations of their flavor"
        )
        yield WITHOUT_FLAVOR.problem("", message, "use Kueue 0.17 or later with Trainer 2.2 or later")


def _releases(subject: Subject) -> tuple[Release, Release]:
    """Return the releases of Kueue and Trainer, (0, 0) unless both are stated and the TrainJob names a queue."""
    is_queued = subject.group_kind == TRAIN_JOB and QUEUE_NAME in subject.metadata.labels
    if not is_queued or not is_kueue_release_stated(subject):
        return (0, 0), (0, 0)
    trainer = subject.once(read_trainer_installation)
    return find_kueue_release(subject), trainer.release if trainer.is_named else (0, 0)
