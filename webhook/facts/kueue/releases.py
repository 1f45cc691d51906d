"""Releases of Kueue that change the results of the checks, and releases of Trainer that do not work with them.

Changes behind a feature gate are in configuration.py. Kueue writes patches that an older Trainer does not know. The
checks of Trainer leave out Kueue 0.14, because 0.14.0 to 0.14.4 cannot be distinguished from 0.14.5.

Source: kubernetes-sigs/kueue@ff69552e config/components and pkg with their history, such as
pkg/controller/jobs/trainjob; kubeflow/trainer branches release-2.0 to release-2.3.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from webhook.apimachinery.releases import Release, release_as_text
from webhook.cluster import controllers
from webhook.facts.assumptions import installed_release
from webhook.facts.kinds import TRAIN_JOB
from webhook.facts.kueue.groups import KUEUE_ADVICE, KUEUE_NEVER
from webhook.facts.kueue.objects import QUEUE_NAME
from webhook.facts.subject import Subject
from webhook.facts.train_job_pods.releases import PATCHES, TEMPLATES, read_trainer_installation
from webhook.rules.problem import MissingObject, Problem

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
_MORE_POD_SETS: Final[Release] = (0, 18)  # a Workload has at most 10 pod sets instead of 8
_MOST_POD_SETS: Final[Release] = (0, 19)  # at most 18; kueue#12819
OWN_KEYS: Final[Release] = (0, 17)  # a flavor is matched only by its own labels; kueue#12449, backported to 0.17
LABEL_ALONE: Final[Release] = (0, 15)  # the annotation of the same name is no longer read; kueue#7271
OLDEST: Final[Release] = (0, 15)  # the oldest release that upstream still mentions
TRAINING_OFF: Final[Release] = (0, 19)  # the kinds of the Training Operator are not integrated by default
UNKNOWN: Final = MissingObject(
    kind="the release of Kueue",
    name="",
    why=(
        "is not known: set releases.kueue in claimgate.yaml, or data.kueue of ConfigMap kueue in the namespace of "
        "claimgate"
    ),
)
_RUNTIME_PATCHES: Final[Release] = (0, 17)
_POD_TEMPLATE_OVERRIDES: Final[Release] = (0, 15)


def find_kueue_release(subject: Subject) -> Release:
    """Return the release of Kueue: the release of the parameter, otherwise of the Deployment, otherwise the newest."""
    return subject.once(_assumed_or_installed_release) or subject.assumptions.kueue


def is_kueue_release_known(subject: Subject) -> bool:
    """Return whether the release is known. In a whole cluster without the Deployment, it counts as the newest release.

    If incomplete files do not state the release, differences between releases are not evaluated.
    """
    return subject.once(_assumed_or_installed_release) is not None or subject.cluster_view().is_whole()


def is_kueue_release_stated(subject: Subject) -> bool:
    """Return whether a parameter or a Deployment states the release; otherwise the newest is assumed."""
    return subject.once(_assumed_or_installed_release) is not None


def source_of_kueue_release_as_text(subject: Subject) -> str:
    """Return the file that states the release: " in charts/kueue/Chart.yaml"; "" for a parameter or a live cluster."""
    if subject.assumptions.knows_kueue:
        return ""
    place, view = controllers.KUEUE.place, subject.cluster_view()
    return view.file_of_object_as_text(view.get_without_noting(controllers.DEPLOYMENT, place.namespace, place.name))


def _assumed_or_installed_release(subject: Subject) -> Release | None:
    assumed = subject.assumptions
    return assumed.kueue if assumed.knows_kueue else installed_release(subject.cluster_view(), controllers.KUEUE)


def max_pod_sets_per_workload(release: Release) -> int:
    """Return how many pod sets a Workload of a release may have."""
    return 18 if release >= _MOST_POD_SETS else 10 if release >= _MORE_POD_SETS else 8


def check_resumed(subject: Subject) -> Iterator[Problem]:
    """Report a queued TrainJob if Trainer never resumes it."""
    kueue, trainer = _releases_of_kueue_and_trainer(subject)
    if kueue >= _RUNTIME_PATCHES and (0, 0) < trainer < PATCHES:
        message = (
            f"Kueue {release_as_text(kueue)} needs Trainer 2.2 or later, but Trainer {release_as_text(trainer)} is "
            "installed, so the TrainJob is admitted and never starts"
        )
        yield NEVER_RESUMED.problem("", message, "upgrade Trainer, or use Kueue 0.16 with Trainer 2.1")


def check_flavor_of_pods(subject: Subject) -> Iterator[Problem]:
    """Report a queued TrainJob if its pods start without the node labels of their flavor."""
    kueue, trainer = _releases_of_kueue_and_trainer(subject)
    if _POD_TEMPLATE_OVERRIDES <= kueue < _RUNTIME_PATCHES and trainer > (0, 0) and trainer != TEMPLATES:
        message = (
            f"Kueue {release_as_text(kueue)} writes podTemplateOverrides, but Trainer {release_as_text(trainer)} "
            "has no such field, so the pods run without the node labels and tolerations of their flavor"
        )
        yield WITHOUT_FLAVOR.problem("", message, "use Kueue 0.17 or later with Trainer 2.2 or later")


def _releases_of_kueue_and_trainer(subject: Subject) -> tuple[Release, Release]:
    """Return the releases of Kueue and Trainer. Both are (0, 0) if the TrainJob names no queue or the release of
    Kueue is not stated; Trainer's is (0, 0) if it is not stated.
    """
    is_queued = subject.group_kind == TRAIN_JOB and QUEUE_NAME in subject.metadata.labels
    if not is_queued or not is_kueue_release_stated(subject):
        return (0, 0), (0, 0)
    trainer = subject.once(read_trainer_installation)
    return find_kueue_release(subject), trainer.release if trainer.is_named else (0, 0)
