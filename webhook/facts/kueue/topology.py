"""The topology request of a pod set, whether a flavor fits the request, and whether nodes could ever hold the pods.

For each lowest domain, Kueue adds up the resources of its nodes. Kueue places the pod sets of a Workload one after the
other, each on the resources that earlier pod sets leave. A group of pod sets must be in one domain. Other pods on the
nodes are not considered. Several pod sets are reported only if they cannot fit in any order. One sign is that the pod
sets together request more than their nodes have. The other sign is that the pods are too many even if each pod is as
small as the smallest pod.

Source: kubernetes-sigs/kueue@ff69552e pkg/scheduler/flavorassigner/tas_flavorassigner.go,
pkg/cache/scheduler/tas_topology_tree.go addNode and tas_flavor_snapshot.go FindTopologyAssignmentsForFlavor.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import reduce
from operator import or_
from typing import Final, TypeAlias

from msgspec import Struct, field

from webhook.facts.kueue.flavors import FlavorFields, NodeCapacity, first_untolerated_taint_of_flavor, read_kueue_nodes
from webhook.facts.kueue.objects import BOOLEANS, GROUP
from webhook.facts.pods.node_sources import first_node_without_amounts
from webhook.facts.pods.pod_requests import Amounts
from webhook.facts.view import ClusterView
from webhook.rules.problem import MissingObject
from webhook.text.caches import IdentityKey
from webhook.typed.cluster_objects import Node
from webhook.typed.collections import Items
from webhook.typed.kueue import Topology
from webhook.typed.pods import PodTemplate

HOSTNAME: Final = "kubernetes.io/hostname"
REQUIRED: Final = f"{GROUP}/podset-required-topology"
PREFERRED: Final = f"{GROUP}/podset-preferred-topology"
UNCONSTRAINED: Final = f"{GROUP}/podset-unconstrained-topology"
SLICE_REQUIRED: Final = f"{GROUP}/podset-slice-required-topology"
SLICE_SIZE: Final = f"{GROUP}/podset-slice-size"
POD_SET_GROUP: Final = f"{GROUP}/podset-group-name"
LAYERS: Final = f"{GROUP}/podset-slice-required-topology-constraints"
Domain: TypeAlias = tuple[str, ...]
"""The label values of a domain, one for each level from the top; () is the whole topology."""
PODS: Final = "pods"
_ONE: Final = 1000
"""One pod, in thousandths."""


class TopologyRequest(Struct, frozen=True, kw_only=True):
    """The topology request of a pod set; "" and 0 mean fields that are not set."""

    required: str = ""
    preferred: str = ""
    is_unconstrained: bool = False
    slice_level: str = ""
    slice_size: int = 0
    group: str = ""

    @property
    def is_explicit(self) -> bool:
        """Return whether the pod set requests a topology."""
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
        wanted: the topology request.
        flavor: the flavor.
        view: the cluster.
        is_implied: whether every flavor of the queue has a topology.
        is_of_nodes: whether the pods request a resource of the flavor's group from nodes; otherwise the group counts
            only for quota.
    """
    if not flavor.topology:
        return "it has no topology, but the pods ask for a topology" if wanted.is_explicit and is_of_nodes else ""
    if not wanted.is_explicit and not is_implied:
        return "it is for pods that ask for a topology, and these pods do not"
    levels = levels_of_flavor(flavor, view)
    missing = next((level for level in wanted.levels if levels and level not in levels), "")
    return f"its topology `{flavor.topology}` has no level `{missing}`" if missing else ""


def levels_of_flavor(flavor: FlavorFields, view: ClusterView) -> tuple[str, ...]:
    """Return the node labels of a flavor's topology, from the top level down."""
    return tuple(view.find(Topology, flavor.topology, namespaced=False).spec.labels())


class PodPlacement(Struct, frozen=True, kw_only=True):
    """Pods to place on the nodes of a flavor: their number and their requests."""

    topology_request: TopologyRequest
    flavor: FlavorFields
    template: PodTemplate
    count: int
    requests: Amounts


def count_fitting_pods(placed: PodPlacement, view: ClusterView) -> int | None:
    """Return how many pods with these requests fit in the best domain of the required level.

    If no level is required, return how many fit in the whole topology. None means not known.
    """
    levels = levels_of_flavor(placed.flavor, view)
    if not view.is_whole(Node.gvk):
        view.note_missing(MissingObject(kind=Node.gvk.kind, name="", why="objects may be missing"))
        return None
    if name := first_node_without_amounts(IdentityKey(view.list_json(Node.gvk))):
        why = "has no status.allocatable"
        view.note_missing(MissingObject(kind=Node.gvk.kind, name=name, why=why, is_absent=False))
        return None
    if not levels:
        return None
    domains: Mapping[Domain, int] = {
        domain: _count_pods_that_fit(leaf, placed.requests)
        for domain, leaf in _resources_of_lowest_domains(placed, levels, view).items()
    }
    wanted = placed.topology_request
    if wanted.slice_level in levels and wanted.slice_size > 0:
        domains = _pods_in_whole_slices(domains, levels.index(wanted.slice_level) + 1, wanted.slice_size)
    if wanted.required not in levels:
        return sum(domains.values())
    return max(_pods_by_upper_domain(domains, levels.index(wanted.required) + 1).values(), default=0)


def _resources_of_lowest_domains(
    placed: PodPlacement, levels: Sequence[str], view: ClusterView
) -> dict[Domain, Counter[str]]:
    """Return the resources of each lowest domain, summed over the nodes on which a pod may run."""
    leaves: dict[Domain, Counter[str]] = {}
    for node in read_kueue_nodes(view):
        domain = tuple(node.labels.get(level, "") for level in levels)
        if all(domain) and _may_node_take_pods(node, placed, levels[-1] == HOSTNAME):
            leaves.setdefault(domain, Counter()).update(node.allocatable)
    return leaves


def _may_node_take_pods(node: NodeCapacity, placed: PodPlacement, is_by_host: bool) -> bool:
    """Return whether a node may get any of the pods; taints and selectors count only if hosts are the lowest level."""
    if not node.is_open or any(node.labels.get(key) != value for key, value in placed.flavor.labels.items()):
        return False
    if node.taints and first_untolerated_taint_of_flavor(node.taints, placed.flavor, placed.template):
        return not is_by_host
    selector = placed.template.spec.node_selector
    return not is_by_host or all(node.labels.get(key) == value for key, value in selector.items())


def _count_pods_that_fit(allocatable: Mapping[str, int], requests: Amounts) -> int:
    """Return how many pods fit into an amount of resources."""
    asked = {**requests, PODS: _ONE}
    return min((allocatable.get(name, 0) // value for name, value in asked.items() if value > 0), default=0)


def _pods_by_upper_domain(domains: Mapping[Domain, int], depth: int) -> dict[Domain, int]:
    joined: Counter[Domain] = Counter()
    for domain, most in domains.items():
        joined[domain[:depth]] += most
    return joined


def _pods_in_whole_slices(domains: Mapping[Domain, int], depth: int, size: int) -> dict[Domain, int]:
    """Return the number of pods that fit in whole slices, by the domain that contains a slice."""
    return {domain: most // size * size for domain, most in _pods_by_upper_domain(domains, depth).items()}


class ResourceShortage(Struct, frozen=True):
    """The requested and the available amount of a resource: in thousandths, or the number of pods."""

    resource: str
    asked: int
    most: int


class _DomainResources(Struct):
    """The resources of a domain, in thousandths.

    `pods` is how many pods fit if all are as small as the smallest pod. `alone` is how many pods of a pod set fit
    without the other pod sets, by the index of the pod set.
    """

    amounts: Counter[str] = field(default_factory=Counter)
    pods: int = 0
    alone: Counter[int] = field(default_factory=Counter)


def missing_node_capacity(placed: Sequence[PodPlacement], level: str, view: ClusterView) -> ResourceShortage | None:
    """Return the amount that pod sets of one flavor certainly lack, on all nodes or in every domain of a level; None if
    a domain may have enough.

    Args:
        placed: the pod sets of the same flavor; each fits alone.
        level: the level at which all pod sets must be in the same domain; "" if the pod sets may be in any domain.
        view: the cluster, with its nodes.
    """
    asked: Counter[str] = Counter()
    for pods in placed:
        asked.update({name: value * pods.count for name, value in pods.requests.items()})
    shortages: list[ResourceShortage] = []
    for total in _resources_of_domains(placed, level, view):
        short = _shortage_of_domain(placed, asked, total)
        if short is None:
            return None
        shortages.append(short)
    return min(shortages, key=lambda short: (short.asked / max(1, short.most), short.resource), default=None)


def _resources_of_domains(placed: Sequence[PodPlacement], level: str, view: ClusterView) -> Iterator[_DomainResources]:
    """Yield the total resources of each domain of a level. Only nodes on which some of the pods may run count."""
    levels = levels_of_flavor(placed[0].flavor, view)
    depth = levels.index(level) + 1 if level in levels else 0
    names = {name for pods in placed for name in pods.requests}
    smallest = {name: min(pods.requests.get(name, 0) for pods in placed) for name in names}
    of_sets = [_resources_of_lowest_domains(pods, levels, view) for pods in placed]
    totals: dict[Domain, _DomainResources] = {}
    domains = [*dict.fromkeys(domain for leaves in of_sets for domain in leaves)]
    for domain in Items(domains, view.deadline):
        leaf = reduce(or_, (leaves[domain] for leaves in of_sets if domain in leaves))
        total = totals.setdefault(domain[:depth], _DomainResources())
        total.amounts.update(leaf)
        total.pods += _count_pods_that_fit(leaf, smallest)
        for at, pods in enumerate(placed):
            total.alone[at] += _count_pods_that_fit(leaf, pods.requests) if domain in of_sets[at] else 0
    yield from totals.values()


def _shortage_of_domain(
    placed: Sequence[PodPlacement], asked: Mapping[str, int], total: _DomainResources
) -> ResourceShortage | None:
    """Return what one domain lacks for all pods together; None if the domain lacks nothing."""
    for name in sorted(asked):
        if asked[name] > total.amounts[name]:
            return ResourceShortage(name, asked[name], total.amounts[name])
    count = sum(pods.count for pods in placed)
    most = min(total.pods, sum(min(pods.count, total.alone[at]) for at, pods in enumerate(placed)))
    return ResourceShortage(PODS, count, most) if count > most else None
