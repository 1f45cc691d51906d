"""Releases of Kueue at which something changed that these checks ask about.

What a feature gate switches is asked of feature_gates.py. Source: kubernetes-sigs/kueue@ff69552e config/components and
the history of it and of pkg.
"""

from __future__ import annotations

from typing import Final

from webhook.releases import Release

_MORE_POD_SETS: Final[Release] = (0, 18)  # a Workload has at most 10 pod sets instead of 8
_MOST_POD_SETS: Final[Release] = (0, 19)  # and 18; kueue#12819
OWN_KEYS: Final[Release] = (0, 17)  # a flavor looks at its own labels alone; kueue#12449, taken back to 0.17
TRAINING_OFF: Final[Release] = (0, 19)  # the kinds of the Training Operator are not integrated by default


def most_pod_sets(release: Release) -> int:
    """How many pod sets a Workload of a release has at most."""
    return 18 if release >= _MOST_POD_SETS else 10 if release >= _MORE_POD_SETS else 8
