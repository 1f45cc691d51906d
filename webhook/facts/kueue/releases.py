"""Releases of Kueue that change the results of the checks, and releases of Kueue and Trainer that do not fit together.

Changes behind a feature gate are in configuration.py. To start a TrainJob, Kueue writes a field that not every release
of Trainer has: podSpecOverrides up to Kueue 0.14.4, then podTemplateOverrides, and runtimePatches since Kueue 0.17.

Source: kubernetes-sigs/kueue@ff69552e config/components and pkg with their history, such as
pkg/controller/jobs/trainjob; kubeflow/trainer branches release-2.0 to release-2.3.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from webhook.apimachinery.images import parse_image_name
from webhook.apimachinery.releases import Release, release_as_text
from webhook.cluster import controllers
from webhook.facts.assumptions import installed_release
from webhook.facts.kinds import TRAIN_JOB
from webhook.facts.kueue.groups import KUEUE_ADVICE, KUEUE_NEVER
from webhook.facts.kueue.objects import QUEUE_NAME
from webhook.facts.subject import Subject
from webhook.facts.train_job_pods import releases as trainer_releases
from webhook.facts.train_job_pods.releases import PATCHES, TEMPLATES, read_trainer_installation
from webhook.facts.view import ClusterView
from webhook.rules.problem import MissingObject, Problem
from webhook.typed.cluster_objects import CustomResourceDefinition, Deployment

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
_MOST_POD_SETS: Final[Release] = (0, 19)  # a Workload has at most 18 pod sets; kueue#12819
OWN_KEYS: Final[Release] = (0, 17)  # a flavor is matched only by its own labels; kueue#12449, backported to 0.17
LABEL_ALONE: Final[Release] = (0, 15)  # an annotation no longer names the queue; kueue#7271
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
_TWO_FIELDS: Final[Release] = (0, 14)
_FIRST_PATCH_WITH_TEMPLATES: Final = 5
_PATCH: Final = re.compile(r"v?[0-9]{1,4}\.[0-9]{1,4}\.([0-9]{1,4})(?:[-+].*)?")
_LONGEST_TAG: Final = 128
_PATCHES_FIELD: Final = "runtimePatches"
_TRAIN_JOBS: Final = "trainjobs.trainer.kubeflow.org"


def find_kueue_release(subject: Subject) -> Release:
    """Return the release that a parameter or Kueue's Deployment states; otherwise the newest release."""
    return subject.once(_assumed_or_installed_release) or subject.assumptions.kueue


def is_kueue_release_known(subject: Subject) -> bool:
    """Return whether the release of Kueue is known. For a whole cluster without Kueue's Deployment, the newest release
    is assumed and counts as known.

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
    if kueue < _RUNTIME_PATCHES:
        return
    obstacle = f"Trainer {release_as_text(trainer)} is installed"
    if trainer == (0, 0) and _lacks_runtime_patches(subject.cluster_view()):
        obstacle = "the CustomResourceDefinition of TrainJobs has no runtimePatches"
    elif not (0, 0) < trainer < PATCHES:
        return
    needs = f"Kueue {release_as_text(kueue)} needs Trainer 2.2 or later"
    message = f"{needs}, but {obstacle}, so the TrainJob is admitted and never starts"
    fix = "ask the administrator to upgrade Trainer to 2.2 or later, or to use Kueue 0.16 with Trainer 2.1"
    yield NEVER_RESUMED.problem("", message, fix)


def _lacks_runtime_patches(view: ClusterView) -> bool:
    """Return whether files define TrainJobs without runtimePatches. A live view has no CustomResourceDefinitions."""
    for definition in view.copy_without_missing_objects().list_typed(CustomResourceDefinition):
        if definition.name == _TRAIN_JOBS:
            schemas = [each.schema.root.properties.spec.properties for each in definition.spec.versions]
            return all(schemas) and not any(_PATCHES_FIELD in each for each in schemas)
    return False


def check_flavor_of_pods(subject: Subject) -> Iterator[Problem]:
    """Report a queued TrainJob if its pods start without the node labels of their flavor."""
    kueue, trainer = _releases_of_kueue_and_trainer(subject)
    field, known_by = _field_of_patches(kueue, subject)
    if field and trainer > (0, 0) and trainer not in known_by:
        message = (
            f"Kueue {_shown_release(kueue, subject)} writes {field}, but Trainer {release_as_text(trainer)} does not "
            "have this field, so the pods run without the node labels and tolerations of their flavor"
        )
        yield WITHOUT_FLAVOR.problem(
            "", message, "ask the administrator for Kueue 0.17 or later with Trainer 2.2 or later"
        )


def _field_of_patches(kueue: Release, subject: Subject) -> tuple[str, tuple[Release, ...]]:
    """Return the field that Kueue before 0.17 writes, and the releases of Trainer that have this field; "" and () for a
    release of Kueue that writes no such field.

    If the patch number of Kueue 0.14 is not known, the text names both fields that Kueue may write.
    """
    if kueue == _TWO_FIELDS:
        patch = find_kueue_patch(subject)
        if patch is None:
            return "podSpecOverrides or podTemplateOverrides", (trainer_releases.OLDEST, TEMPLATES)
        if patch < _FIRST_PATCH_WITH_TEMPLATES:
            return "podSpecOverrides", (trainer_releases.OLDEST,)
    elif not _POD_TEMPLATE_OVERRIDES <= kueue < _RUNTIME_PATCHES:
        return "", ()
    return "podTemplateOverrides", (TEMPLATES,)


def find_kueue_patch(subject: Subject) -> int | None:
    """Return the patch number in the tag of Kueue's image; None without a tag, or if a parameter states the release."""
    if subject.assumptions.knows_kueue:
        return None
    place, view = controllers.KUEUE.place, subject.cluster_view()
    held = Deployment.of(view.get_without_noting(Deployment.gvk, place.namespace, place.name))
    for container in held.spec.template.spec.containers:
        image = parse_image_name(container.image)
        match = _PATCH.fullmatch(image.tag) if len(image.tag) < _LONGEST_TAG else None
        if match is not None and image.release_of(controllers.KUEUE.image):
            return int(match[1])
    return None


def _shown_release(kueue: Release, subject: Subject) -> str:
    patch = find_kueue_patch(subject) if kueue == _TWO_FIELDS else None
    return release_as_text(kueue) if patch is None else f"{release_as_text(kueue)}.{patch}"


def _releases_of_kueue_and_trainer(subject: Subject) -> tuple[Release, Release]:
    """Return the releases of Kueue and Trainer.

    Both are (0, 0) if the TrainJob names no queue or the release of Kueue is not stated. The release of Trainer is (0,
    0) if neither a setting nor the Deployment of Trainer states the release.
    """
    is_queued = subject.group_kind == TRAIN_JOB and QUEUE_NAME in subject.metadata.labels
    if not is_queued or not is_kueue_release_stated(subject):
        return (0, 0), (0, 0)
    trainer = subject.once(read_trainer_installation)
    return find_kueue_release(subject), trainer.release if trainer.is_named else (0, 0)
