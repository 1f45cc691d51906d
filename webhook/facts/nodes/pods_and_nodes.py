"""The pods of a workload that request devices, compared with the nodes of a whole cluster."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from webhook.apimachinery.paths import FieldPath
from webhook.facts.gpu.device_pods import DevicePods, read_device_workload
from webhook.facts.nodes.node_offers import NodeOffer, PodNeeds, known_offers, needs_of_pod
from webhook.facts.pods.node_sources import first_node_without_amounts
from webhook.facts.pods.pod_sets import pod_set_located_in_runtime, pod_sets, template_of
from webhook.facts.subject import Subject
from webhook.facts.view import ClusterView
from webhook.text.caches import IdentityKey
from webhook.typed.cluster_objects import Node
from webhook.typed.collections import Items
from webhook.typed.pods import Container


@dataclass
class PodsAndNodes:
    """The pods of one template, and the nodes that they may run on.

    Args:
        pods: the pods.
        needs: what one of them needs of its node.
        offers: what all nodes offer.
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
        """Return whether one of the pods fits a node now, when the node is empty."""
        return any(map(self.needs.fits_today, self.offers))

    @cached_property
    def fitting(self) -> Items[NodeOffer]:
        """Return all nodes that take one of the pods when they are empty."""
        return self.offers.of([offer for offer in self.offers if self.needs.fits(offer)])


def pods_and_nodes(subject: Subject) -> tuple[PodsAndNodes, ...]:
    """Return the pods with extended resources, () if not all nodes are known; call it through `Subject.once`."""
    return subject.once(pods_and_listed_nodes) if subject.cluster_view().is_whole(Node.gvk) else ()


def pods_and_listed_nodes(subject: Subject) -> tuple[PodsAndNodes, ...]:
    """Return the pods with extended resources, and the listed nodes; () if the amounts of a pod are unknown; call it
    through `Subject.once`.
    """
    view = subject.cluster_view()
    using = tuple(pods_with_extended_resources(subject))
    nodes = view.list_visible_json(Node.gvk) if using else ()
    if not nodes or first_node_without_amounts(IdentityKey(nodes)):
        return ()
    offers = known_offers(view)
    return tuple(PodsAndNodes(pods, needs_of_pod(pods.spec, view), offers, view) for pods in using)


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
