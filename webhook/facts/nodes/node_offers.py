"""What each node offers, what one pod needs, and whether the pods of a workload fit the nodes of a cluster.

Offers are read from the labels, taints, annotations and `status.allocatable` of nodes.

Source: k8s.io/kubernetes v1.36 pkg/scheduler/framework/plugins (noderesources, nodeaffinity, tainttoleration).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Final, NamedTuple

from webhook.apimachinery.paths import FieldPath
from webhook.cluster.interest import interest_in_fields
from webhook.facts.dra.types import DeviceClass
from webhook.facts.gpu.device_pods import DevicePods, located_templates, read_device_workload
from webhook.facts.gpu.devices import device_of_resource_name
from webhook.facts.kinds import KUEUE_QUEUE_NAME
from webhook.facts.nodes.types import NodePool
from webhook.facts.pods.node_selection import first_untolerated, labels_meet_requirement
from webhook.facts.pods.node_sources import first_node_without_amounts
from webhook.facts.pods.pod_requests import (
    LIMIT_RANGE_LOOKUPS,
    NamespaceLimits,
    limits_of_namespace,
    quota_requests_of_pod,
    requests_of_created_containers,
    thousandths_to_kueue_units,
)
from webhook.facts.pods.pod_sets import pod_set_located_in_runtime, pod_sets, template_of
from webhook.facts.resource_units import parse_amount_in_kueue_units
from webhook.facts.subject import Subject
from webhook.facts.view import ClusterView
from webhook.text.caches import IdentityKey
from webhook.typed.cluster_objects import Deployment, Node
from webhook.typed.collections import Items
from webhook.typed.kueue import ClusterQueue, LocalQueue, ResourceFlavor
from webhook.typed.pod_parts import CLASS_PREFIX
from webhook.typed.pods import Container, NodeSelectorTerm, PodSpec, Taint, Toleration

HAMI_CARDS: Final = "hami.io/node-nvidia-register"
VOLCANO_CARDS: Final = "volcano.sh/node-vgpu-register"
CLASS_LOOKUPS: Final = (interest_in_fields(DeviceClass.gvk, "spec.extendedResourceName"),)
NODE_LOOKUPS: Final = (
    *LIMIT_RANGE_LOOKUPS,
    interest_in_fields(LocalQueue.gvk, "spec"),
    interest_in_fields(ClusterQueue.gvk, "spec"),
    interest_in_fields(ResourceFlavor.gvk, "spec"),
    interest_in_fields(
        Node.gvk,
        "metadata.labels",
        f'metadata.annotations["{HAMI_CARDS}"]',
        f'metadata.annotations["{VOLCANO_CARDS}"]',
        "spec.taints",
        "spec.unschedulable",
        "status.allocatable",
    ),
)
HUGE_PAGES: Final = ("hugepages-2Mi", "hugepages-1Gi")
ORDINARY: Final = ("cpu", "memory", "ephemeral-storage", *HUGE_PAGES)
_TEMPORARY_TAINTS: Final = (
    "node.kubernetes.io/",
    "node.cloudprovider.kubernetes.io/",
    "ToBeDeletedByClusterAutoscaler",
)
"""Prefixes of the keys of temporary taints, which controllers add and remove."""
_CORDON: Final = "node.kubernetes.io/unschedulable"
_TAINTS_OF_CONDITIONS: Final = {
    ("Ready", "False"): "node.kubernetes.io/not-ready",
    ("Ready", "Unknown"): "node.kubernetes.io/unreachable",
    ("MemoryPressure", "True"): "node.kubernetes.io/memory-pressure",
    ("DiskPressure", "True"): "node.kubernetes.io/disk-pressure",
    ("PIDPressure", "True"): "node.kubernetes.io/pid-pressure",
    ("NetworkUnavailable", "True"): "node.kubernetes.io/network-unavailable",
}
"""The taints for conditions of a node (k8s.io/kubernetes v1.36 pkg/controller/nodelifecycle)."""
_NOT_READY: Final = "is not Ready"
_STATES: Final = {
    _CORDON: "is cordoned",
    **{key: _NOT_READY if kind == "Ready" else f"has {kind}" for (kind, _), key in _TAINTS_OF_CONDITIONS.items()},
}
_KEPT_STATES: Final = 4
_HAMI_NODE: Final = "hami.io/node-"
HAMI_IMAGE: Final = "projecthami/hami"
_OFFER_AMOUNTS: Final = frozenset(("volcano.sh", "koordinator.sh", "aliyun.com", "tencent.com", "gpu.intel.com"))
"""Domains of device plugins. Nodes with these plugins offer memory and cores of cards as resources."""
_IGNORED_BY_VOLCANO: Final = frozenset(
    ("volcano.sh/vgpu-memory", "volcano.sh/vgpu-memory-percentage", "volcano.sh/vgpu-cores")
)
"""Amounts of each card that nodes need not offer (volcano-sh/volcano@ed72c7c81 GetIgnoredDevices of vgpu)."""
_TRANSLATED: Final = frozenset(("koordinator.sh/gpu",))
"""Resources that a webhook replaces by other resources."""
_HOST_NAME: Final = "kubernetes.io/hostname"


@dataclass(frozen=True, slots=True, eq=False)
class NodeOffer:
    """What one node offers.

    Args:
        name: the name of the node.
        labels: the labels of the node; the label for the host name defaults to the name of the node.
        annotations: the annotations of the node.
        taints: the taints of the node, without temporary taints.
        amounts: the allocatable amounts by resource, in Kueue's units.
        taints_today: the temporary taints, also those that the node gets for its conditions and a cordon.
    """

    name: str
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    taints: tuple[Taint, ...]
    amounts: Mapping[str, int]
    taints_today: tuple[Taint, ...] = ()

    @property
    def is_ready(self) -> bool:
        """Return whether no taint and no condition of the node says that the node is not Ready."""
        return all(_STATES.get(taint.key) != _NOT_READY for taint in self.taints_today)


@lru_cache(maxsize=_KEPT_STATES)
def offers_of_nodes(nodes: IdentityKey) -> tuple[NodeOffer, ...]:
    """Return what each node offers, read once for each state of the cluster."""
    return tuple(_offer_of_node(Node.of(node)) for node in nodes.value)


def _offer_of_node(node: Node) -> NodeOffer:
    amounts = {name: parse_amount_in_kueue_units(name, value) for name, value in node.status.allocatable.items()}
    labels = {_HOST_NAME: node.name, **node.metadata.labels}
    taints = tuple(taint for taint in node.spec.taints if not taint.key.startswith(_TEMPORARY_TAINTS))
    pages = dict.fromkeys(HUGE_PAGES, 0)  # a kubelet without huge pages reports 0
    known = pages | {name: amount for name, amount in amounts.items() if amount is not None}
    return NodeOffer(node.name, labels, dict(node.metadata.annotations), taints, known, tuple(_taints_today(node)))


def _taints_today(node: Node) -> Iterator[Taint]:
    """Yield the temporary taints of a node. The node lifecycle controller adds a taint for a condition and a cordon, so
    a node in a file may lack the taint.
    """
    yield from (taint for taint in node.spec.taints if taint.key.startswith(_TEMPORARY_TAINTS))
    conditions = ((condition.type, condition.status) for condition in node.status.conditions)
    keys = [_TAINTS_OF_CONDITIONS[each] for each in conditions if each in _TAINTS_OF_CONDITIONS]
    keys += [_CORDON] if node.spec.unschedulable else []
    yield from (Taint.of({"key": key, "effect": "NoSchedule"}, (), node.reading) for key in keys)


@lru_cache(maxsize=_KEPT_STATES)
def largest_amounts(nodes: IdentityKey) -> Mapping[str, int]:
    """Return the largest amount of each resource on any node, computed once for each state of the cluster."""
    amounts: dict[str, int] = {}
    for offer in offers_of_nodes(nodes):
        for name, count in offer.amounts.items():
            amounts[name] = max(count, amounts.get(name, 0))
    return amounts


class NodeFlavor(NamedTuple):
    """A ResourceFlavor of Kueue: the number of its resource group, and what Kueue adds to pods with the flavor."""

    group: int
    labels: Mapping[str, str]
    tolerations: tuple[Toleration, ...]


@dataclass(frozen=True, slots=True)
class PodNeeds:
    """The needs of one pod.

    Args:
        spec: the PodSpec.
        devices: extended resources that a device plugin offers, with their amounts.
        ordinary: CPUs, memory, ephemeral storage and huge pages.
        defaulted: the resources with amounts that defaults of LimitRanges set or raise.
        added_tolerations: the tolerations of ResourceFlavors, which Kueue may add to the pod.
    """

    spec: PodSpec
    devices: Mapping[str, int]
    ordinary: Mapping[str, int]
    defaulted: frozenset[str] = frozenset()
    added_tolerations: tuple[Toleration, ...] = ()

    @property
    def tolerations(self) -> Sequence[Toleration]:
        """Return the tolerations of the pod, and the tolerations that Kueue may add."""
        own = self.spec.tolerations
        return [*own, *self.added_tolerations] if self.added_tolerations else own

    def has_labels(self, offer: NodeOffer) -> bool:
        """Return whether nodeSelector and required node affinity select a node."""
        if any(offer.labels.get(key) != value for key, value in self.spec.node_selector.items()):
            return False
        required = self.spec.affinity.node_affinity.required
        return not required or any(term_matches(term, offer) for term in required.node_selector_terms)

    def tolerates_taints(self, offer: NodeOffer) -> bool:
        """Return whether the pod tolerates the taints of a node. A taint with the key of a requested resource counts
        as tolerated, because the admission plugin ExtendedResourceToleration may add the toleration.
        """
        return self.first_taint(offer) is None

    def first_taint(self, offer: NodeOffer) -> Taint | None:
        """Return the first taint of a node that the pod does not tolerate."""
        taints = (each for each in offer.taints if each.key not in self.devices)
        return first_untolerated(taints, self.tolerations)

    def has_devices(self, offer: NodeOffer) -> bool:
        """Return whether a node has the devices of the pod."""
        return all(offer.amounts.get(name, 0) >= count for name, count in self.devices.items())

    def has_amounts(self, offer: NodeOffer) -> bool:
        """Return whether a node has all amounts; unknown ordinary amounts count as enough."""
        return self.has_devices(offer) and all(
            offer.amounts.get(name, count) >= count for name, count in self.ordinary.items()
        )

    def pods_on(self, offer: NodeOffer) -> int:
        """Return for how many of these pods an empty node has devices."""
        return min((offer.amounts.get(name, 0) // count for name, count in self.devices.items()), default=0)

    def fits_today(self, offer: NodeOffer) -> bool:
        """Return whether the pod fits a node that accepts pods now, if no admission plugin adds a toleration."""
        taints = (*offer.taints, *offer.taints_today)
        return first_untolerated(taints, self.tolerations) is None and self.fits(offer)

    def state_that_keeps_out(self, offer: NodeOffer) -> str:
        """Return which temporary state of a node excludes the pod, such as `is cordoned`; "" without such a state."""
        taint = first_untolerated(offer.taints_today, self.tolerations)
        return "" if taint is None else _STATES.get(taint.key, f"has the taint {taint.key}:{taint.effect}")

    def kubelet_accepts(self, offer: NodeOffer) -> bool:
        """Return whether the kubelet of an empty node accepts the pod if the pod names the node. The kubelet checks
        amounts, labels and taints with the effect NoExecute (pkg/kubelet/lifecycle/predicate.go).
        """
        taints = (each for each in (*offer.taints, *offer.taints_today) if each.effect == "NoExecute")
        untolerated = first_untolerated(taints, self.tolerations)
        return self.has_amounts(offer) and self.has_labels(offer) and untolerated is None

    def fits(self, offer: NodeOffer) -> bool:
        """Return whether the pod may run on a node when the node is empty."""
        return self.has_amounts(offer) and self.has_labels(offer) and self.tolerates_taints(offer)


def term_matches(term: NodeSelectorTerm, offer: NodeOffer) -> bool:
    """Return whether a term of node affinity matches a node; an empty term matches no node."""
    expressions, fields = term.match_expressions, term.match_fields
    if not expressions and not fields:
        return False
    return all(labels_meet_requirement(offer.labels, each) for each in expressions) and all(
        labels_meet_requirement({"metadata.name": offer.name}, each) for each in fields
    )


def flavors_of_queue(subject: Subject) -> tuple[NodeFlavor, ...]:
    """Return the flavors of the ClusterQueue that a job names, as far as they are known; call it through
    `Subject.once`. Kueue adds the labels and tolerations of one flavor of a resource group to the pods.
    """
    name, view = subject.metadata.labels.get(KUEUE_QUEUE_NAME), subject.cluster_view().copy_without_missing_objects()
    queue = view.find(LocalQueue, name).spec.cluster_queue if name else ""
    groups = view.find(ClusterQueue, queue, namespaced=False).spec.resource_groups if queue else ()
    return tuple(
        NodeFlavor(number, flavor.spec.node_labels, tuple(flavor.spec.tolerations))
        for number, group in enumerate(groups)
        for flavor in (view.find(ResourceFlavor, each.name, namespaced=False) for each in group.flavors)
    )


def needs_of_pod(spec: PodSpec, view: ClusterView, added: tuple[Toleration, ...] = ()) -> PodNeeds:
    """Return what one pod needs of a node, with the defaults of LimitRanges, and without overhead."""
    limits = limits_of_namespace(view)
    requests = written = quota_requests_of_pod(spec, requests_of_created_containers(spec, limits), {})
    if limits.default or limits.default_request:
        written = quota_requests_of_pod(spec, requests_of_created_containers(spec, NamespaceLimits()), {})
    amounts = {name: thousandths_to_kueue_units(name, value) for name, value in requests.items() if value > 0}
    hidden = {name for name in amounts if is_counted_only_by_hami(name)} if has_hami(view) else set()
    if not _IGNORED_BY_VOLCANO.isdisjoint(amounts):
        hidden |= _IGNORED_BY_VOLCANO - largest_amounts(IdentityKey(view.list_visible_json(Node.gvk))).keys()
    return PodNeeds(
        spec,
        {
            name: count
            for name, count in amounts.items()
            if name not in hidden and is_offered_by_device_plugin(name, view)
        },
        {name: count for name, count in amounts.items() if name in ORDINARY},
        frozenset(name for name, value in requests.items() if value != written.get(name)),
        added,
    )


def is_counted_only_by_hami(name: str) -> bool:
    """Return whether a resource is an amount of memory, cores or percents of cards that only HAMi's scheduler counts
    and no node offers.
    """
    domain = name.partition("/")[0]
    return domain not in _OFFER_AMOUNTS and device_of_resource_name(name).kind == "amount"


def has_hami(view: ClusterView) -> bool:
    """Return whether HAMi is installed: a node has an annotation of HAMi, or files have HAMi's scheduler."""
    return view.once(has_hami, lambda: _has_hami(view))


def _has_hami(view: ClusterView) -> bool:
    if any(key.startswith(_HAMI_NODE) for offer in known_offers(view) for key in offer.annotations):
        return True
    return any(HAMI_IMAGE in image for image in images_of_deployments(view))


def images_of_deployments(view: ClusterView) -> tuple[str, ...]:
    """Return the images of all Deployments in files; a live view has no Deployments."""
    return view.once(images_of_deployments, lambda: tuple(_images_of_deployments(view)))


def _images_of_deployments(view: ClusterView) -> Iterator[str]:
    for deployment in view.copy_without_missing_objects().list_typed(Deployment):
        yield from (container.image for container in deployment.spec.template.spec.containers)


def is_offered_by_device_plugin(name: str, view: ClusterView) -> bool:
    """Return whether a device plugin must offer a resource. Other resources come from Kubernetes, from a DeviceClass,
    or from a webhook that replaces them.
    """
    domain = name.rpartition("/")[0]
    if (
        name in _TRANSLATED
        or not domain
        or domain == "kubernetes.io"
        or domain.endswith(".kubernetes.io")
        or name.startswith(CLASS_PREFIX)
    ):
        return False
    return name not in view.once(_names_of_device_classes, lambda: _names_of_device_classes(view))


def _names_of_device_classes(view: ClusterView) -> frozenset[str]:
    """Return the names of the extended resources of DeviceClasses (KEP-5004)."""
    return frozenset(each.spec.extended_resource_name for each in view.list_visible(DeviceClass))


def known_offers(view: ClusterView) -> Items[NodeOffer]:
    """Return the offers of the nodes that messages may name."""
    return Items(offers_of_nodes(IdentityKey(view.list_visible_json(Node.gvk))), view.deadline)


@dataclass
class PodsAndNodes:
    """The pods of one template, and the nodes that they may run on.

    Args:
        pods: the pods.
        needs: what one of the pods needs of a node.
        offers: what each node offers.
        view: the cluster.
    """

    pods: DevicePods
    needs: PodNeeds
    offers: Items[NodeOffer]
    view: ClusterView

    @cached_property
    def fits_a_node(self) -> bool:
        """Return whether one of the pods fits a node when the node is empty."""
        return any(map(self.needs.fits, self.offers))

    @cached_property
    def fits_a_node_today(self) -> bool:
        """Return whether one of the pods fits a node that accepts pods now, when the node is empty."""
        return any(map(self.needs.fits_today, self.offers))

    @cached_property
    def states_of_nodes_today(self) -> tuple[str, ...]:
        """Return for each fitting node which temporary state excludes the pods, such as `node a is cordoned`; () if the
        pods may run on a node today.
        """
        states = [(offer.name, self.needs.state_that_keeps_out(offer)) for offer in self.fitting]
        return tuple(f"node {name} {state}" for name, state in states) if all(state for _, state in states) else ()

    @cached_property
    def fitting(self) -> Items[NodeOffer]:
        """Return all nodes that fit one of the pods when the nodes are empty."""
        return self.offers.of([offer for offer in self.offers if self.needs.fits(offer)])

    @cached_property
    def most_pods(self) -> int:
        """Return how many of the pods fit the nodes at the same time when the nodes are empty."""
        count, needs = self.pods.pod_count, {**self.needs.devices, **self.needs.ordinary, "pods": 1}
        return sum(
            min(offer.amounts.get(name, count * amount) // amount for name, amount in needs.items() if amount > 0)
            for offer in self.fitting
        )


def pods_and_nodes(subject: Subject) -> tuple[PodsAndNodes, ...]:
    """Return the pods with extended resources; () if not all nodes are known. Call it through `Subject.once`."""
    return subject.once(pods_and_listed_nodes) if subject.cluster_view().is_whole(Node.gvk) else ()


def pods_and_listed_nodes(subject: Subject) -> tuple[PodsAndNodes, ...]:
    """Return the pods with extended resources, with the listed nodes; () without nodes and NodePools, or if the
    resources of a node are unknown. Call it through `Subject.once`.
    """
    view = subject.cluster_view()
    using = tuple(pods_with_extended_resources(subject))
    nodes = view.list_visible_json(Node.gvk) if using else ()
    if not (nodes or (using and _has_only_node_pools(view))) or first_node_without_amounts(IdentityKey(nodes)):
        return ()
    offers = known_offers(view)
    added = subject.once(_tolerations_of_queue)
    return tuple(PodsAndNodes(pods, needs_of_pod(pods.spec, view, added), offers, view) for pods in using)


def _tolerations_of_queue(subject: Subject) -> tuple[Toleration, ...]:
    return tuple(toleration for flavor in subject.once(flavors_of_queue) for toleration in flavor.tolerations)


def all_pods_and_nodes(subject: Subject) -> tuple[PodsAndNodes, ...]:
    """Return the pods of each template with the known nodes, also pods without extended resources. Call it through
    `Subject.once`.
    """
    compared = {id(each.pods.template): each for each in subject.once(pods_and_nodes)}
    view, located = subject.cluster_view(), subject.once(located_templates)
    offers, added = known_offers(view), subject.once(_tolerations_of_queue)
    return tuple(
        compared.get(id(template))
        or PodsAndNodes(DevicePods(podset, template, (), {}), needs_of_pod(template.spec, view, added), offers, view)
        for podset, template in located
    )


def _has_only_node_pools(view: ClusterView) -> bool:
    """Return whether a view of a whole cluster has NodePools. A view with neither nodes nor NodePools probably lacks
    the nodes of the cluster.
    """
    return view.is_whole(Node.gvk) and bool(view.list_visible_json(NodePool.gvk))


def pods_with_extended_resources(subject: Subject) -> Iterator[DevicePods]:
    """Yield the pods of an object that use devices or request another extended resource, such as EFA."""
    using = {each.podset.path: each for each in subject.once(read_device_workload).device_pods}
    for podset in subject.once(pod_sets).all:
        located = pod_set_located_in_runtime(podset)
        if located.path in using:
            yield using[located.path]
            continue
        template = template_of(podset, subject)
        names = (name for each in template.spec.all_containers() for name in each.resources.limits)
        if any("/" in name for name in names):
            yield DevicePods(located, template, (), {})


def path_of_amount(container: Container, name: str) -> FieldPath:
    """Return the path of the amount of a resource that a container requests."""
    side = "limits" if name in container.resources.limits else "requests"
    return container.path("resources", side, name)
