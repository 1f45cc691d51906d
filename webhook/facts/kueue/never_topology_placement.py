"""Problems of jobs with pods that do not fit on the nodes of the required topology.

Pods that may be placed in another cluster, or on nodes that do not exist yet, are not reported.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Final

from webhook.apimachinery.paths import FieldPath
from webhook.facts.kueue import flavors as of_flavors
from webhook.facts.kueue import topology
from webhook.facts.kueue.admission_checks import may_run_on_future_nodes
from webhook.facts.kueue.assignment import Capacity, PodSetQuotaRequest
from webhook.facts.kueue.flavors import FlavorFields
from webhook.facts.kueue.groups import KUEUE_NEVER
from webhook.facts.kueue.never import PODS, JobInClusterQueue
from webhook.facts.kueue.topology import PodPlacement, ResourceShortage
from webhook.facts.kueue.workload import PodSetRequests
from webhook.facts.pods.pod_requests import format_thousandths_with_resource_name
from webhook.facts.view import ClusterView
from webhook.rules.problem import Problem
from webhook.text.wording import counted
from webhook.typed.cluster_objects import Node
from webhook.typed.kueue import ResourceFlavor, Topology

TOPOLOGY_PLACEMENT: Final = KUEUE_NEVER.rule(
    "kueue-never/topology-placement",
    title="The nodes of the topology cannot hold the pods",
    why=(
        "Even when no other pod runs, the pods find no room in the topology, or in one domain of the required level. "
        "Nodes that are still to be provisioned are not counted."
    ),
    source="kubernetes-sigs/kueue@ff69552e pkg/cache/scheduler/tas_flavor_snapshot.go",
    function="FindTopologyAssignmentsForFlavor",
    issues=("https://github.com/kubernetes-sigs/kueue/issues/5039",),
)

_FEWER: Final = "ask for fewer or smaller pods, or ask the administrator to add nodes"


def advise_unplaceable_pods(
    fitting: JobInClusterQueue, wanted: PodSetQuotaRequest, potential: Capacity
) -> Problem | None:
    """Return the problem of a pod set if the nodes of every flavor's topology have too little room; None if a flavor
    may have room.
    """
    lacking, pod_set, higher = [], wanted.pod_set, ""
    for name in wanted.flavors_with_capacity(potential):
        flavor = of_flavors.find_flavor(name, fitting.place.view)
        if flavor is None or not flavor.topology or may_run_on_future_nodes(fitting.queue, name, fitting.place.view):
            return None
        placed = _placement_of_pod_set(pod_set, flavor)
        most = topology.count_fitting_pods(placed, fitting.place.view)
        if most is None or most >= pod_set.least:
            return None
        level = placed.topology_request.required
        where = f"no `{level}` has room for more than" if level else "all nodes together can hold only"
        lacking.append(
            f"in {_flavor_with_topology_as_text(flavor, fitting.place.view)}, {where} {counted(most, 'pod')}"
        )
        higher = higher or _level_above(level, flavor, fitting)
    required_level = topology.read_topology_request(pod_set.template).required
    asked = f"must run in one `{required_level}`" if required_level else "must be placed by topology"
    message = f"{counted(pod_set.least, 'pod')} {asked}, but {'; '.join(lacking)}"
    fix = f"set annotation {topology.REQUIRED} to the higher level `{higher}`, {_FEWER}" if higher else _FEWER
    return _topology_placement_problem(pod_set.path_in_object(("spec",)), message, fix)


def _topology_placement_problem(path: FieldPath, message: str, fix: str) -> Problem:
    return TOPOLOGY_PLACEMENT.problem(path, f"{message} (Kueue: TopologyPlacementFailed)", fix)


def check_placement_together(
    fitting: JobInClusterQueue, wanted: Sequence[PodSetQuotaRequest], potential: Capacity
) -> Iterator[Problem]:
    """Yield the problems of pod sets of one flavor that do not fit together on the nodes of its topology."""
    bound: dict[str, dict[str, PodPlacement]] = {}
    for pods in wanted:
        names = pods.flavors_with_capacity(potential)
        flavor = of_flavors.find_flavor(names[0], fitting.place.view) if len(names) == 1 else None
        if flavor is not None and flavor.topology:
            bound.setdefault(flavor.name, {})[pods.pod_set.name] = _placement_of_pod_set(pods.pod_set, flavor)
    for name, placed in bound.items():
        if len(placed) > 1 and not may_run_on_future_nodes(fitting.queue, name, fitting.place.view):
            yield from islice(_check_short_of_nodes(fitting, placed), 1)


def _check_short_of_nodes(fitting: JobInClusterQueue, placed: Mapping[str, PodPlacement]) -> Iterator[Problem]:
    """Report the pod sets if all nodes together have too little room for them. Report each group of pod sets that fits
    in no domain of its required level.
    """
    groups: dict[tuple[str, str], dict[str, PodPlacement]] = {("", ""): {**placed}}
    for name, pods in placed.items():
        if pods.topology_request.group and pods.topology_request.required:
            groups.setdefault((pods.topology_request.group, pods.topology_request.required), {})[name] = pods
    for (_, level), members in groups.items():
        short = topology.missing_node_capacity([*members.values()], level, fitting.place.view)
        if short is not None:
            yield _too_few_nodes_problem(members, level, short, fitting.place.view)


def _flavor_with_topology_as_text(flavor: FlavorFields, view: ClusterView) -> str:
    """Return the clause of a message that names the topology, the flavor and the nodes, with the files of each."""
    topology_place = view.file_of_object_as_text(view.get_without_noting(Topology.gvk, "", flavor.topology))
    nodes = view.files_of_objects_as_text(view.list_visible_json(Node.gvk))
    flavor_place = view.file_of_object_as_text(view.get_without_noting(ResourceFlavor.gvk, "", flavor.name))
    flavor_text = f"flavor `{flavor.name}`{flavor_place}"
    return f"topology `{flavor.topology}`{topology_place} of {flavor_text}{f' with the nodes{nodes}' if nodes else ''}"


def _too_few_nodes_problem(
    members: Mapping[str, PodPlacement], level: str, short: ResourceShortage, view: ClusterView
) -> Problem:
    flavor = next(iter(members.values())).flavor
    asked, most = (_describe_resource_amount(short.resource, value) for value in (short.asked, short.most))
    where = f"no `{level}` has more than" if level else "all nodes together have at most"
    message = f"asks for {asked} in pod sets {', '.join(members)}, which are placed together, but in"
    return _topology_placement_problem(
        ("spec",), f"{message} {_flavor_with_topology_as_text(flavor, view)}, {where} {most}", _FEWER
    )


def _level_above(level: str, flavor: FlavorFields, fitting: JobInClusterQueue) -> str:
    """Return the level above `level` in the topology of a flavor; "" for the highest level."""
    levels = topology.levels_of_flavor(flavor, fitting.place.view)
    return levels[levels.index(level) - 1] if level in levels[1:] else ""


def _describe_resource_amount(resource: str, value: int) -> str:
    return (
        f"room for {counted(value, 'pod')}"
        if resource == PODS
        else format_thousandths_with_resource_name(resource, value)
    )


def _placement_of_pod_set(pod_set: PodSetRequests, flavor: FlavorFields) -> PodPlacement:
    return PodPlacement(
        topology_request=topology.read_topology_request(pod_set.template),
        flavor=flavor,
        template=pod_set.template,
        count=pod_set.least,
        requests=pod_set.per_pod,
    )
