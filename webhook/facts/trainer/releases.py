"""Releases of Kubeflow Trainer at which something changed. Four shapes share one API version; merging differs too.

Sources: kubeflow/trainer branches release-2.0 to release-2.3; master 8c0f5059bd51 for what comes after 2.3.
"""

from __future__ import annotations

from typing import Final

from webhook.releases import Release

OLDEST: Final[Release] = (2, 0)
DEFAULT: Final[Release] = (2, 3)
"""The one that is assumed where no param says otherwise."""
ADAPTERS: Final[Release] = (2, 1)  # torchtune trains adapters
TEMPLATES: Final[Release] = (2, 1)  # podTemplateOverrides instead of podSpecOverrides; resources of the runtime count
PATCHES: Final[Release] = (2, 2)  # runtimePatches instead of podTemplateOverrides
NUMBERS_ONLY: Final[Release] = (2, 2)  # numProcPerNode is no word any more
WHOLE_JOBSET: Final[Release] = (2, 3)  # patches merge into the JobSet, resources merge per key
INITIALIZER_MOUNT: Final[Release] = (2, 3)  # kubeflow/trainer#3714
INJECTION: Final[Release] = (2, 3)  # torch.envInjection; more checks of the torch, mpi and flux plugins
KEEPS_CLAIMS: Final[Release] = (2, 4)  # resourcesPerNode leaves a container's claims alone (kubeflow/trainer#4027)
IMAGE_EVERYWHERE: Final[Release] = (2, 4)  # the workers of an mpi job get the image too (kubeflow/trainer#4301)
REFUSES_ZERO: Final[Release] = (2, 4)  # numProcPerNode below one is refused by the API server (kubeflow/trainer#3809)


def minor(release: Release) -> int:
    """The minor release of Trainer 2, such that earlier and later ones compare well."""
    return release[1] if release[0] == 2 else 99 if release[0] > 2 else 0
