"""The installed release of Kubeflow Trainer, and the releases that changed what rules check.

ConfigMap `trainer` in the namespace of claimgate names the release. The ConfigMap is the param of all policies about
TrainJobs. The param of another policy may name a release for that policy. Without a param, the image of Trainer's
Deployment names the release. Four forms of patches share one API version, and releases merge them differently.

Source: kubeflow/trainer branches release-2.0 to release-2.3; master 8c0f5059bd51 for later changes.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from webhook.apimachinery.releases import Release
from webhook.cluster import controllers
from webhook.cluster.site_params import SITE, site_keys_of, with_keys
from webhook.facts.assumptions import TRAINER, ClusterAssumptions, installed_release, read_assumptions
from webhook.facts.subject import Subject
from webhook.facts.train_job_pods.types import INSTALLED_RELEASE
from webhook.facts.view import ClusterView
from webhook.rules.problem import MissingObject

OLDEST: Final[Release] = (2, 0)
ADAPTERS: Final[Release] = (2, 1)  # torchtune trains adapters
STEP_CONTAINERS: Final[Release] = (2, 1)  # a labelled step needs its container
TEMPLATES: Final[Release] = (2, 1)  # podTemplateOverrides instead of podSpecOverrides; resources of the runtime count
QUEUES: Final[Release] = (2, 1)  # podGroupPolicy.volcano
PATCHES: Final[Release] = (2, 2)  # runtimePatches instead of podTemplateOverrides
LENGTHS: Final[Release] = (2, 2)  # the schemas limit the length of lists and texts
FLUX_AND_MORE: Final[Release] = (2, 2)  # the policies flux, jax and xgboost; volumeClaimPolicies
NUMBERS_ONLY: Final[Release] = (2, 2)  # numProcPerNode no longer accepts words
GANG_RESOURCES: Final[Release] = (2, 2)  # PodGroups count resourcesPerNode (kubeflow/trainer#2980)
WHOLE_JOBSET: Final[Release] = (2, 3)  # patches merge into the JobSet, resources merge per key
FIXED_GRACE: Final[Release] = (2, 3)  # terminationGracePeriodSeconds of a patch is immutable
INITIALIZER_MOUNT: Final[Release] = (2, 3)  # kubeflow/trainer#3714
INJECTION: Final[Release] = (2, 3)  # torch.envInjection; more checks of the torch, mpi and flux plugins
CLAIMS: Final[Release] = (2, 4)  # resourceClaimsPerNode, and claims in runtimePatches (KEP-2782)
SHORT_NAMES: Final[Release] = (2, 4)  # names of replicated jobs have at most 20 characters (kubeflow/trainer#4394)
KEEPS_CLAIMS: Final[Release] = (2, 4)  # resourcesPerNode does not change a container's claims (kubeflow/trainer#4027)
IMAGE_EVERYWHERE: Final[Release] = (2, 4)  # the workers of an mpi job get the image too (kubeflow/trainer#4301)
FLUX_NODES: Final[Release] = (2, 4)  # the flux plugin does not need numNodes (kubeflow/trainer#3904)
REFUSES_ZERO: Final[Release] = (2, 4)  # numProcPerNode below 1 is refused by the API server (kubeflow/trainer#3809)

UNKNOWN_RELEASE: Final = MissingObject(
    kind="the release of Kubeflow Trainer",
    name="",
    why=(
        "is not known: set releases.trainer in claimgate.yaml, or data.trainer of ConfigMap trainer in the namespace "
        "of claimgate"
    ),
)


class TrainerInstallation(NamedTuple):
    """The release of Trainer.

    `is_named`: whether a setting or the Deployment names the release; otherwise the release is assumed.
    `accepts_claims`: whether the feature gate for device claims (KEP-2782) is on.
    """

    release: Release
    is_named: bool
    accepts_claims: bool


def read_trainer_installation(subject: Subject) -> TrainerInstallation:
    """Return the installed Trainer. Call this function through `Subject.once`.

    Raises: the errors of `installation_with_assumptions`.
    """
    return installation_with_assumptions(subject.cluster_view(), subject.assumptions)


def installation_with_assumptions(view: ClusterView, own: ClusterAssumptions) -> TrainerInstallation:
    """Return the installed Trainer under the assumptions of a policy.

    Raises:
        LookupFailed: the ConfigMap names a text that is not a release.
    """
    release, accepts_claims, name = own.trainer, own.device_claims, INSTALLED_RELEASE.scope.name
    if release is None or accepts_claims is None:
        shipped = view.get(SITE.gvk, name, namespace=view.own_namespace)
        site = view.get(SITE.gvk, SITE.scope.name, namespace=view.own_namespace)
        held = with_keys(shipped or {}, site_keys_of(site, name))
        shared = read_assumptions(held, f"ConfigMap `{name}`")
        release = shared.trainer if release is None else release
        accepts_claims = shared.device_claims if accepts_claims is None else accepts_claims
    release = release or installed_release(view, controllers.TRAINER)
    return TrainerInstallation(release or TRAINER, is_named=release is not None, accepts_claims=accepts_claims is True)


def find_trainer_release(subject: Subject) -> Release:
    """Return the release of Trainer. Raises the errors of `installation_with_assumptions`."""
    return subject.once(read_trainer_installation).release
