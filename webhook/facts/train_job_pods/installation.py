"""The installed release of Kubeflow Trainer, which all policies about TrainJobs depend on.

ConfigMap `trainer` of claimgate-system says it once for all of them: the param of the policies about Trainer. What the
param of another policy says of Trainer itself counts for that policy. Where neither names a release, it is that of
Trainer's Deployment.
"""

from __future__ import annotations

from typing import NamedTuple

from webhook.cluster import controllers
from webhook.facts.assumptions import TRAINER, ClusterAssumptions, read_assumptions
from webhook.facts.installed_release import installed_release
from webhook.facts.subject import Subject
from webhook.facts.train_job_pods.lookups import INSTALLED
from webhook.facts.view import ClusterView
from webhook.releases import Release


class TrainerInstallation(NamedTuple):
    """The release of Trainer, whether anybody names it, and whether it runs with its feature gate for device claims
    (KEP-2782).
    """

    release: Release
    is_named: bool
    takes_claims: bool


def read_trainer_installation(subject: Subject) -> TrainerInstallation:
    """Return the installed Trainer; call it through `Subject.once`. Raises as `known_to`."""
    return installation_with_assumptions(subject.cluster_view(), subject.assumptions)


def installation_with_assumptions(view: ClusterView, own: ClusterAssumptions) -> TrainerInstallation:
    """Return the installed Trainer under the assumptions of a policy.

    Raises:
        LookupFailed: the ConfigMap names no release.
    """
    release, takes_claims, place = own.trainer, own.device_claims, INSTALLED.scope
    if release is None or takes_claims is None:
        held = view.get(INSTALLED.gvk, place.name, namespace=place.namespace)
        shared = read_assumptions(held, f"ConfigMap `{place.name}`")
        release = shared.trainer if release is None else release
        takes_claims = shared.device_claims if takes_claims is None else takes_claims
    release = release or installed_release(view, controllers.TRAINER)
    return TrainerInstallation(release or TRAINER, is_named=release is not None, takes_claims=takes_claims is True)


def find_trainer_release(subject: Subject) -> Release:
    """Return the release of Trainer. Raises as `known_to`."""
    return subject.once(read_trainer_installation).release
