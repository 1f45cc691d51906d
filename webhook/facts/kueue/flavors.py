"""Whether and why a flavor does not fit the pods of a pod set, and whether any node has the labels of a flavor.

In node selectors and required node affinity, only the keys of the flavor's labels count. A flavor without labels fits
every selector. Kueue also assigns a flavor with labels that no node has, and then the pods wait. A flavor without
nodes is reported if the view has all Nodes and nothing shows that nodes may be added (pods/node_sources.py).

Source: kubernetes-sigs/kueue@ff69552e pkg/scheduler/flavorassigner/flavorassigner.go checkFlavorForPodSets and
flavorSelector.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Final

from msgspec import Struct

from webhook.apimachinery.attributes import JSON
from webhook.facts.kueue.admission_checks import may_run_on_future_nodes
from webhook.facts.kueue.quota_tree import QueueFields
from webhook.facts.pods.node_selection import first_untolerated_taint, labels_meet_requirement
from webhook.facts.pods.node_sources import source_of_new_nodes
from webhook.facts.pods.pod_requests import Amounts, amounts_in_thousandths
from webhook.facts.view import ClusterView
from webhook.text.caches import IdentityKey
from webhook.text.wording import either
from webhook.typed.cluster_objects import Node
from webhook.typed.collections import Items
from webhook.typed.kueue import ResourceFlavor
from webhook.typed.pods import NodeSelectorTerm, PodTemplate, SelectorRequirement, Taint

TAINTED: Final = "its nodes have the taint"
UNMATCHED: Final = "its node labels do not match the"
"""The beginnings of the reasons why a flavor does not fit."""
_KEPT_OBJECTS: Final = 8192
_KEPT_STATES: Final = 4
"""How many states of the cluster are cached. An audit has one state; a server has two during a change."""
_KEPT: Final = 512
"""The number of cached answers of `_has_nodes`."""


class NodeCapacity(Struct, frozen=True, eq=False, kw_only=True):
    """The parts of a node that Kueue reads.

    `is_open`: the node is ready, and pods may be scheduled on the node. `allocatable`: the resources that pods may
    use, in thousandths.
    """

    labels: Mapping[str, str]
    taints: tuple[JSON, ...]
    is_open: bool
    allocatable: Amounts


def read_kueue_nodes(view: ClusterView) -> Items[NodeCapacity]:
    """Return the nodes of a view's cluster; objects that cannot be looked up are noted as missing."""
    return Items(read_node_capacities(IdentityKey(view.list_json(Node.gvk))), view.deadline)


@lru_cache(maxsize=_KEPT_STATES)
def read_node_capacities(listed: IdentityKey) -> Sequence[NodeCapacity]:
    """Return the nodes of a list of Node objects."""
    return tuple(_read_node_capacity(IdentityKey(node)) for node in listed.value)


@lru_cache(maxsize=_KEPT_OBJECTS)
def _read_node_capacity(key: IdentityKey) -> NodeCapacity:
    node = Node.of(key.value)
    return NodeCapacity(
        labels=dict(node.labels),
        taints=tuple(taint.json for taint in node.spec.taints),
        is_open=not node.spec.unschedulable and _is_node_ready(node),
        allocatable=amounts_in_thousandths(node.status.allocatable),
    )


def _is_node_ready(node: Node) -> bool:
    return all(condition.status == "True" for condition in node.status.conditions if condition.type == "Ready")


class FlavorFields(Struct, frozen=True, eq=False, kw_only=True):
    """A ResourceFlavor: the labels and taints of its nodes, tolerations that Kueue adds to pods, and its Topology, ""
    without a Topology.
    """

    name: str
    labels: Mapping[str, str]
    taints: tuple[JSON, ...]
    tolerations: tuple[JSON, ...]
    topology: str


@lru_cache(maxsize=1024)
def _read_flavor(key: IdentityKey) -> FlavorFields:
    flavor = ResourceFlavor.of(key.value)
    return FlavorFields(
        name=flavor.name,
        labels=dict(flavor.spec.node_labels),
        taints=tuple(taint.json for taint in flavor.spec.node_taints),
        tolerations=tuple(toleration.json for toleration in flavor.spec.tolerations),
        topology=flavor.spec.topology_name,
    )


def find_flavor(name: str, view: ClusterView) -> FlavorFields | None:
    """Return the flavor with a name. If there is no such flavor, return None and note the flavor as missing."""
    obj = view.get(ResourceFlavor.gvk, name, namespaced=False)
    return None if obj is None else _read_flavor(IdentityKey(obj))


def existing_flavors(names: Collection[str], view: ClusterView) -> list[FlavorFields]:
    """Return the flavors of these names that exist."""
    view.deadline.spend(len(names))
    return [existing for name in names if (existing := find_flavor(name, view)) is not None]


def why_flavor_does_not_fit(flavor: FlavorFields, template: PodTemplate, keys: Collection[str]) -> str:
    """Return why pods of a template cannot have a flavor, "" if they can.

    Args:
        flavor: the flavor.
        template: the pod template.
        keys: the label keys that count in selectors.
    """
    taint = first_untolerated_taint_of_flavor(flavor.taints, flavor, template) if flavor.taints else None
    if taint:
        shown = "=".join(filter(None, (taint.key, taint.value)))
        return f"{TAINTED} {shown}:{taint.effect}, which the pods do not tolerate"
    unmatched = _unmatched_part_of_pods(flavor, template, keys) if keys else ""
    return f"{UNMATCHED} {unmatched}" if unmatched else ""


def first_untolerated_taint_of_flavor(taints: Sequence[JSON], flavor: FlavorFields, template: PodTemplate) -> Taint:
    """Return the first taint that pods with the tolerations of a flavor do not tolerate; an empty Taint, which is
    false, if they tolerate all taints.
    """
    tolerations = (*(toleration.json for toleration in template.spec.tolerations), *flavor.tolerations)
    taint = first_untolerated_taint(taints, tolerations, template.reading.deadline)
    return Taint(taint or {}, (), template.reading, is_set=taint is not None)


def _unmatched_part_of_pods(flavor: FlavorFields, template: PodTemplate, keys: Collection[str]) -> str:
    """Return the part of the template that the flavor's labels do not match: `node affinity of the pods`, or the node
    selector with the label of the flavor; "" if the labels match.
    """
    for key, value in template.spec.node_selector.items():
        if key in keys and flavor.labels.get(key) != value:
            has = f"`{key}: {flavor.labels[key]}`" if key in flavor.labels else f"no label `{key}`"
            return f"node selector of the pods (the flavor has {has})"
    required = template.spec.affinity.node_affinity.required
    terms = [[*_requirements_about_keys(term, keys)] for term in required.node_selector_terms]
    if not terms or not all(terms):  # a term about other keys fits every flavor
        return ""
    return (
        ""
        if any(all(labels_meet_requirement(flavor.labels, one) for one in term) for term in terms)
        else "node affinity of the pods"
    )


def _requirements_about_keys(term: NodeSelectorTerm, keys: Collection[str]) -> Iterator[SelectorRequirement]:
    """Return the requirements about labels in `keys`, from one term of node affinity."""
    return (requirement for requirement in term.match_expressions if requirement.key in keys)


def label_of_other_flavors(flavor: FlavorFields, template: PodTemplate, others: Collection[str]) -> str:
    """Return a label that the pods select and only other flavors of the group have; "" without such a label."""
    for key in template.spec.node_selector:
        if key in others and key not in flavor.labels:
            return key
    return ""


def labels_without_nodes(flavors: Sequence[FlavorFields], queue: QueueFields, view: ClusterView) -> str:
    """Return the labels that no node has, such as `accelerator=a100 of flavor a100`; "" if a flavor has a node or may
    get a node.
    """
    nodes = view.copy_without_missing_objects().list_json(Node.gvk)
    if (
        not nodes
        or not view.is_whole(Node.gvk)
        or any(may_run_on_future_nodes(queue, flavor.name, view) for flavor in flavors)
    ):
        return ""
    view.deadline.spend(len(nodes))
    if source_of_new_nodes(view) or any(
        not flavor.labels or _has_nodes(IdentityKey(flavor), IdentityKey(nodes)) for flavor in flavors
    ):
        return ""
    return either(
        [f"{_labels_as_text(flavor)} of flavor `{flavor.name}`{_origin_of_flavor(flavor, view)}" for flavor in flavors]
    )


def _origin_of_flavor(flavor: FlavorFields, view: ClusterView) -> str:
    return view.file_of_object_as_text(view.get_without_noting(ResourceFlavor.gvk, "", flavor.name))


def _labels_as_text(flavor: FlavorFields) -> str:
    return ",".join(f"{key}={value}" for key, value in flavor.labels.items())


@lru_cache(maxsize=_KEPT)
def _has_nodes(flavor: IdentityKey, nodes: IdentityKey) -> bool:
    wanted = flavor.value.labels.items()
    return any(wanted <= node.labels.items() for node in read_node_capacities(nodes))
