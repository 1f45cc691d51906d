"""Releases of Kueue that changed the behaviour of these checks.

Changes behind a feature gate are in configuration.py.

Source: kubernetes-sigs/kueue@ff69552e config/components and pkg, with their history.
"""

from __future__ import annotations

from typing import Final

from webhook.apimachinery.releases import Release
from webhook.cluster import controllers
from webhook.facts.assumptions import installed_release
from webhook.facts.subject import Subject
from webhook.rules.problem import MissingObject

_MORE_POD_SETS: Final[Release] = (0, 18)  # a Workload has at most 10 pod sets instead of 8
_MOST_POD_SETS: Final[Release] = (0, 19)  # and 18; kueue#12819
OWN_KEYS: Final[Release] = (0, 17)  # a flavor is matched only by its own labels; kueue#12449, taken back to 0.17
LABEL_ALONE: Final[Release] = (0, 15)  # the annotation of the same name is read no more; kueue#7271
OLDEST: Final[Release] = (0, 15)  # upstream still mentioned it when this was written
TRAINING_OFF: Final[Release] = (0, 19)  # the kinds of the Training Operator are not integrated by default

UNKNOWN: Final = MissingObject(
    kind="the release of Kueue",
    name="",
    why=(
        "is not known: set releases.kueue in claimgate.yaml, or data.kueue of ConfigMap kueue in the namespace of "
        "claimgate"
    ),
)


def find_kueue_release(subject: Subject) -> Release:
    """Return the release of Kueue: that of the parameter, otherwise of the Deployment, otherwise the newest."""
    return subject.once(_assumed_or_installed_release) or subject.assumptions.kueue


def is_kueue_release_known(subject: Subject) -> bool:
    """Return whether the release is known; in a whole cluster without the Deployment it counts as the newest.

    If files do not state the release either, differences between releases are not evaluated.
    """
    return subject.once(_assumed_or_installed_release) is not None or subject.cluster_view().is_whole()


def is_kueue_release_stated(subject: Subject) -> bool:
    """Return whether a parameter or a Deployment states the release; without one the newest is assumed."""
    return subject.once(_assumed_or_installed_release) is not None


def source_of_kueue_release_as_text(subject: Subject) -> str:
    """Say which file states the release: " in charts/kueue/Chart.yaml"; "" if a parameter or a live cluster does."""
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
