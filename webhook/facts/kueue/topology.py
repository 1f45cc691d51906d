"""Reads what a pod set asks of a topology, and decides whether a flavor's topology fits.

Source: kubernetes-sigs/kueue@ff69552e pkg/scheduler/flavorassigner/tas_flavorassigner.go. Which nodes could hold the
pods is a matter of topology_nodes.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from webhook.facts.kueue.flavors import FlavorFields
from webhook.facts.kueue.objects import BOOLEANS, GROUP
from webhook.facts.kueue.types import Topology
from webhook.facts.view import ClusterView
from webhook.typed.pods import PodTemplate

HOSTNAME: Final = "kubernetes.io/hostname"
REQUIRED: Final = f"{GROUP}/podset-required-topology"
PREFERRED: Final = f"{GROUP}/podset-preferred-topology"
UNCONSTRAINED: Final = f"{GROUP}/podset-unconstrained-topology"
SLICE_REQUIRED: Final = f"{GROUP}/podset-slice-required-topology"
SLICE_SIZE: Final = f"{GROUP}/podset-slice-size"
POD_SET_GROUP: Final = f"{GROUP}/podset-group-name"
LAYERS: Final = f"{GROUP}/podset-slice-required-topology-constraints"


@dataclass(frozen=True, slots=True, kw_only=True)
class TopologyRequest:
    """The topology request of a pod set; "" and 0 stand for fields that are not set."""

    required: str = ""
    preferred: str = ""
    is_unconstrained: bool = False
    slice_level: str = ""
    slice_size: int = 0
    group: str = ""

    @property
    def is_explicit(self) -> bool:
        """Return whether the pod set asks for a topology at all."""
        return bool(self.required or self.preferred or self.is_unconstrained or self.slice_level)

    @property
    def levels(self) -> tuple[str, ...]:
        """Return the topology levels that the request names."""
        return tuple(filter(None, (self.required, self.preferred, self.slice_level)))


def read_topology_request(template: PodTemplate) -> TopologyRequest:
    """Return the topology request in the annotations of a pod template."""
    notes = template.metadata.annotations
    size = notes.get(SLICE_SIZE, "")
    return TopologyRequest(
        required=notes.get(REQUIRED, ""),
        preferred=notes.get(PREFERRED, ""),
        is_unconstrained=BOOLEANS.get(notes.get(UNCONSTRAINED, ""), False),
        slice_level=notes.get(SLICE_REQUIRED, ""),
        group=notes.get(POD_SET_GROUP, ""),
        slice_size=int(size) if size.isascii() and size.isdecimal() and len(size) < 10 else 0,
    )


def why_topology_does_not_fit(
    wanted: TopologyRequest, flavor: FlavorFields, view: ClusterView, *, is_implied: bool, is_of_nodes: bool = True
) -> str:
    """Return why a flavor does not fit a topology request, "" if it fits.

    Args:
        wanted: what it asks for.
        flavor: the flavor.
        view: the cluster.
        is_implied: whether every flavor of the queue has a topology.
        is_of_nodes: whether the pods themselves ask for what the flavor has, which is not only counted by it.
    """
    if not flavor.topology:
        return "it has no topology, and the pods ask for one" if wanted.is_explicit and is_of_nodes else ""
    if not wanted.is_explicit and not is_implied:
        return "it is for pods that ask for a topology, and these do not"
    levels = levels_of_flavor(flavor, view)
    missing = next((level for level in wanted.levels if levels and level not in levels), "")
    return f"its topology `{flavor.topology}` has no level `{missing}`" if missing else ""


def levels_of_flavor(flavor: FlavorFields, view: ClusterView) -> tuple[str, ...]:
    """Return the node labels of a flavor's topology, from the top."""
    return tuple(view.find(Topology, flavor.topology, namespaced=False).spec.labels())
