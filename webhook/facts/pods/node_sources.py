"""Finds signs that a cluster may get new nodes: labels of nodes, NodePools, machines with an autoscaler, or a
Deployment of Cluster Autoscaler.

If an autoscaler may add a node, the pod may fit the new node although it fits no current node. The node groups of
Cluster Autoscaler and of clouds are not objects of the cluster, so nothing shows which nodes these groups may add. The
autoscalers of GKE, AKS, DigitalOcean, Linode and Scaleway do not run in the cluster. One sign of an autoscaler is
enough. Sources: kubernetes/autoscaler@55c37cd5eb (also cloudprovider/clusterapi), kubernetes-sigs/karpenter@226646810,
documentation of OpenShift and of the clouds.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from webhook.apimachinery.attributes import GroupVersionKind
from webhook.cluster.controllers import DEPLOYMENT
from webhook.cluster.interest import interest_in_fields
from webhook.cluster.lookup import namespace_and_name
from webhook.errors import LookupFailed
from webhook.facts.kinds import NODE
from webhook.facts.pods.node_selection import NODE_POOLS
from webhook.facts.view import ClusterView
from webhook.text.caches import IdentityKey
from webhook.typed.cluster_objects import Deployment, Node
from webhook.typed.objects import Object
from webhook.typed.pods import PodSpec

_NODE_POOL: Final = GroupVersionKind("karpenter.sh", "v1", "NodePool")
_AUTO_MODE: Final = "eks.amazonaws.com/compute-type"
_IMAGE: Final = "cluster-autoscaler"
_MACHINES: Final = (
    GroupVersionKind("autoscaling.openshift.io", "v1beta1", "MachineAutoscaler"),
    GroupVersionKind("machine.openshift.io", "v1beta1", "MachineSet"),
    *(GroupVersionKind("cluster.x-k8s.io", "v1beta1", f"Machine{each}") for each in ("Deployment", "Set", "Pool")),
)
"""Kinds of OpenShift and Cluster API that an autoscaler scales. A MachineAutoscaler always has an autoscaler."""
_MAX_SIZE_SUFFIX: Final = "/cluster-api-autoscaler-node-group-max-size"
"""The end of the annotation of machines with an autoscaler. The prefix is the API group, which users may change."""
SOURCE_LOOKUPS: Final = tuple(interest_in_fields(kind, "metadata.annotations") for kind in _MACHINES)
"""The look-ups of audits; a server only reads the labels of nodes."""
_CLOUDS: Final = (
    *("cloud.google.com/", "eks.amazonaws.com/", "kubernetes.azure.com/"),
    *("doks.digitalocean.com/", "k8s.scaleway.com/", "lke.linode.com/"),
)
"""Domains of the labels of clouds. If a pod selects such a label, the cloud may create a node."""
_OF_KARPENTER: Final = ("karpenter.sh/", "karpenter.k8s.aws/", "karpenter.azure.com/")
"""Domains of Karpenter's labels."""
_NEEDS_LABEL: Final = ("In", "Exists", "Gt", "Lt")
"""Operators of node affinity that only a node with the label meets."""


def source_of_new_nodes(view: ClusterView) -> str:
    """Return the source of new nodes in the cluster, such as `NodePool gpu`; "" if nothing shows a source.

    In files, objects of every kind are read; in a live cluster, NodePools and the labels of nodes.
    """
    return view.once(source_of_new_nodes, lambda: _source_of_new_nodes(view))


def other_source_of_nodes(spec: PodSpec, view: ClusterView, *, has_node_pools: bool) -> str:
    """Return what may add a node for a pod, apart from the known NodePools; "" if nothing may add a node.

    A nodeSelector or a required node affinity with a label of a cloud may make the cloud add a node. If NodePools are
    known, Karpenter's labels are no sign, because the NodePools decide.
    """
    clouds = _CLOUDS if has_node_pools else (*_CLOUDS, *_OF_KARPENTER)
    of_affinity = (
        each.key
        for term in spec.required_node_terms()
        for each in term.match_expressions
        if each.operator in _NEEDS_LABEL
    )
    keys = (*spec.node_selector, *of_affinity)
    key = next((key for key in keys if isinstance(key, str) and key.startswith(clouds)), "")
    if key:
        return f"the owner of label {key}"
    return (
        _owner_of_node_labels(view, has_node_pools=has_node_pools)
        or view.once(_autoscaled_machines, lambda: _autoscaled_machines(view))
        or _cluster_autoscaler(view)
    )


def _source_of_new_nodes(view: ClusterView) -> str:
    if owner := _owner_of_node_labels(view, has_node_pools=False):
        return owner
    try:
        for pool in view.deadline.charge_for_items(view.cluster.list(_NODE_POOL, None)):
            return f"NodePool {namespace_and_name(pool)[1]}"
    except LookupFailed:  # a live view has NodePools only if a rule looks them up
        pass
    return _autoscaled_machines(view) or _cluster_autoscaler(view)


def _owner_of_node_labels(view: ClusterView, *, has_node_pools: bool) -> str:
    nodes = view.list_visible_json(NODE)
    view.deadline.spend(len(nodes))
    labels = _labels_of_node_pools(IdentityKey(nodes))
    label = next((each for each in labels if not (has_node_pools and each.startswith(_OF_KARPENTER))), "")
    return f"the owner of label {label}" if label else ""


def _autoscaled_machines(view: ClusterView) -> str:
    try:
        for kind in _MACHINES:
            for machines in view.deadline.charge_for_items(view.cluster.list(kind, None)):
                annotations = Object.of(machines).metadata.annotations
                if kind == _MACHINES[0] or any(key.endswith(_MAX_SIZE_SUFFIX) for key in annotations):
                    return f"{kind.kind} {namespace_and_name(machines)[1]}"
    except LookupFailed:  # a live view has no machines
        return ""
    return ""


def _cluster_autoscaler(view: ClusterView) -> str:
    try:
        for deployment in view.deadline.charge_for_items(view.cluster.list(DEPLOYMENT, None)):
            containers = Deployment.of(deployment).spec.template.spec.containers
            if any(_IMAGE in container.image for container in containers):
                return f"Deployment {namespace_and_name(deployment)[1]}"
    except LookupFailed:  # a live view has no Deployments
        return ""
    return ""


@lru_cache(maxsize=4)
def first_node_without_amounts(nodes: IdentityKey) -> str:
    """Return the name of a node with unknown resources, such as a node in a file; "" if all resources are known."""
    for node in nodes.value:
        if not Node.of(node).status.allocatable:
            return namespace_and_name(node)[1]
    return ""


@lru_cache(maxsize=4)
def _labels_of_node_pools(nodes: IdentityKey) -> tuple[str, ...]:
    """Return the labels of these nodes that show a pool of a cloud or of Karpenter."""
    seen = {key for node in nodes.value for key in Node.of(node).metadata.labels}
    return tuple(key for key in sorted((*NODE_POOLS, _AUTO_MODE)) if key in seen)
