"""Spot nodes: which pods run on them, whether they tolerate their taints, and what they lose.

The names of the taints and labels are data, spot.yaml.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final

from msgspec import Struct

from webhook.apimachinery.paths import FieldPath
from webhook.facts.command_lines.command import cached_launch_of_container
from webhook.facts.gpu.device_pods import DevicePods, read_device_workload
from webhook.facts.pods.node_selection import KEEPS_OUT, NODE_POOLS, is_tolerated
from webhook.facts.preemption.types import PREEMPTION
from webhook.facts.subject import Subject
from webhook.facts.volcano_objects.types import Job
from webhook.rules.problem import Problem
from webhook.typed.cluster_objects import Node
from webhook.typed.pods import Container, NodeSelectorTerm, PodSpec, Taint
from webhook.yamltext import yamlfile

SPOT_TOLERATION: Final = PREEMPTION.rule(
    "preemption/spot-toleration",
    title="The pod selects spot nodes but does not tolerate their taint",
    why="Every spot node has this taint, and no pod is placed on a node with a taint that it does not tolerate.",
    source="https://learn.microsoft.com/azure/aks/spot-node-pool",
    fails="pending",
)
SPOT_SELECTOR: Final = PREEMPTION.rule(
    "preemption/spot-selector",
    title="The pod tolerates spot nodes but does not select them",
    why=(
        "A toleration only allows spot nodes. Without a node selector the pods may run on other nodes at the full "
        "price. This may be intended if spot nodes are scarce."
    ),
    source="https://kubernetes.io/docs/concepts/scheduling-eviction/taint-and-toleration/",
    level="advice",
    severity="low",
    fails="silent",
)

FILE: Final = Path(__file__).with_name("spot.yaml")

SPOT_CHECKPOINT: Final = PREEMPTION.rule(
    "preemption/spot-checkpoint",
    title="A job on spot nodes has no lasting volume",
    why="The cloud takes back a spot node at any time, together with its disks, so the job begins anew.",
    source="https://cloud.google.com/kubernetes-engine/docs/concepts/spot-vms",
)
_ON_THE_NODE: Final = frozenset(
    ("emptyDir", "hostPath", "ephemeral", "configMap", "secret", "downwardAPI", "projected", "image")
)
_OF_PRICE: Final = re.compile("(?i)spot|preempt|provision|capacity|demand")
"""Words in a site's own label for how its nodes are paid."""
_BUCKET: Final = re.compile(r"\b(?:s3a?|gs|gcs|abfss?|az|wasbs?|hdfs|hf|oss|obs|cos|swift|minio|dbfs|mlflow)://")


class SpotNodeRow(Struct, frozen=True):
    """One row of spot.yaml."""

    cloud: str
    key: str
    value: str
    taint: str


@cache
def _label_keys_of_spot_nodes() -> frozenset[str]:
    """Return the labels of spot nodes: most selectors have no such label."""
    return frozenset(each.key for each in read_spot_nodes())


@cache
def read_spot_nodes() -> tuple[SpotNodeRow, ...]:
    """Return the shipped rows, which are read on first use."""
    (document,) = yamlfile.read(FILE)
    return tuple(SpotNodeRow(**row) for row in document.value["nodes"])


def selected_spot_nodes(pods: DevicePods) -> tuple[SpotNodeRow, FieldPath] | None:
    """Return the spot nodes that pods are bound to, and the place of this selection; None for pods that may run
    elsewhere too.
    """
    spec = pods.spec
    terms = spec.required_node_terms()
    if not terms and _label_keys_of_spot_nodes().isdisjoint(spec.node_selector):
        return None
    for nodes in read_spot_nodes():
        if spec.node_selector.get(nodes.key) == nodes.value:
            return nodes, pods.locate(spec.path("nodeSelector", nodes.key))
        if terms and all(_requires_spot_nodes(term, nodes) for term in terms):
            return nodes, pods.locate(spec.affinity.node_affinity.required.path("nodeSelectorTerms"))
    return None


def _requires_spot_nodes(term: NodeSelectorTerm, nodes: SpotNodeRow) -> bool:
    return any(
        requirement.key == nodes.key and requirement.operator == "In" and requirement.values == [nodes.value]
        for requirement in term.match_expressions
    )


def warn_of_spot_toleration_mismatch(subject: Subject) -> Iterator[Problem]:
    """Warn of selectors of spot nodes without the toleration that they need, and the reverse."""
    for pods in subject.once(read_device_workload).device_pods:
        bound = selected_spot_nodes(pods)
        if bound is None:
            yield from _check_spot_toleration_without_selector(pods)
        else:
            yield from _check_missing_spot_toleration(*bound, pods, subject)


def _check_missing_spot_toleration(
    nodes: SpotNodeRow, path: FieldPath, pods: DevicePods, subject: Subject
) -> Iterator[Problem]:
    if not _tolerates_spot_taint(pods.spec, nodes) and _are_all_nodes_tainted(nodes, subject):
        message = (
            f"selects spot nodes of {nodes.cloud}, but the pods do not tolerate the taint of these nodes and stay "
            "Pending"
        )
        yield SPOT_TOLERATION.problem(path, message, f"tolerate `{nodes.key}={nodes.value}:NoSchedule`")


def _tolerates_spot_taint(spec: PodSpec, nodes: SpotNodeRow) -> bool:
    return is_tolerated(Taint.of({"key": nodes.key, "value": nodes.value, "effect": "NoSchedule"}), spec.tolerations)


def _are_all_nodes_tainted(nodes: SpotNodeRow, subject: Subject) -> bool:
    """Return whether all such nodes have the taint: because the cloud does it, or as the nodes of the view show."""
    return nodes.taint == "always" or nodes in subject.once(_spot_rows_with_all_nodes_tainted)


def _spot_rows_with_all_nodes_tainted(subject: Subject) -> frozenset[SpotNodeRow]:
    """Return the rows with nodes in a whole cluster, all with the taint; nodes outside the view may have none."""
    view, tainted, untainted = subject.cluster_view(), set[SpotNodeRow](), set[SpotNodeRow]()
    for node in view.list_visible(Node) if view.is_whole(Node.gvk) else ():
        for row in read_spot_nodes():
            if node.metadata.labels.get(row.key) == row.value:
                (tainted if _has_spot_taint(node, row) else untainted).add(row)
    return frozenset(tainted - untainted)


def _has_spot_taint(node: Node, nodes: SpotNodeRow) -> bool:
    return any(
        taint.key == nodes.key and taint.value == nodes.value and taint.effect in KEEPS_OUT
        for taint in node.spec.taints
    )


def _check_spot_toleration_without_selector(pods: DevicePods) -> Iterator[Problem]:
    """Warn of a toleration that only a cloud's spot nodes need, if the pod selects neither them nor a pool of nodes: an
    author who names a pool knows whether its nodes are spot nodes.
    """
    spec = pods.spec
    if not spec.tolerations or _selects_spot_nodes_or_pool(spec):
        return
    by_taint = {nodes.key: nodes for nodes in read_spot_nodes() if nodes.taint != "none"}
    for toleration in spec.tolerations:
        nodes = by_taint.get(toleration.key)
        if nodes and toleration.value in ("", nodes.value):
            message = (
                f"tolerates spot nodes of {nodes.cloud} but does not select them, so the pods may run on other nodes "
                "as well"
            )
            fix = f"select `{nodes.key}={nodes.value}` if the pods should run only on spot nodes"
            yield SPOT_SELECTOR.problem(pods.locate(toleration.at), message, fix)


def _selects_spot_nodes_or_pool(spec: PodSpec) -> bool:
    """Return whether pods prefer or require some nodes, or select a pool of nodes or nodes by how they are paid."""
    selected = {*spec.node_selector}
    keys = {nodes.key for nodes in read_spot_nodes() if nodes.taint != "none"}
    asks = not selected.isdisjoint(keys | NODE_POOLS) or any(
        map(_OF_PRICE.search, (*selected, *spec.node_selector.values()))
    )
    return asks or bool(spec.affinity.node_affinity.preferred) or bool(spec.required_node_terms())


def check_checkpoint_outlives_spot_node(pods: DevicePods, subject: Subject) -> Iterator[Problem]:
    """Report a job on spot nodes with files that are all lost with the node; a program in the command itself usually
    inspects or tests its devices, and a program that only sleeps has no progress.
    """
    is_inline = all(
        cached_launch_of_container(container, subject).is_inline or container.words[:1] == ("sleep",)
        for container in pods.containers
    )
    if not is_inline and not _may_keep_files_elsewhere(pods, subject):
        message = "runs on spot nodes, but no volume outlives the pods, so a preemption loses the progress of the job"
        fix = "mount a PersistentVolumeClaim for checkpoints"
        yield SPOT_CHECKPOINT.problem(pods.podset.path, message, fix)


def _may_keep_files_elsewhere(pods: DevicePods, subject: Subject) -> bool:
    """Return whether some volume is elsewhere, or some word suggests it: a bucket, or settings that are not visible
    here.
    """
    sources = {field for volume in pods.spec.volumes for field in volume.json if field != "name"}
    if sources - _ON_THE_NODE or subject.typed(Job).spec.volumes:
        return True
    return any(map(_may_name_bucket, pods.containers))


def _may_name_bucket(container: Container) -> bool:
    if container.env_from or any(variable.value_from.json for variable in container.env):
        return True
    texts = (*container.words, *(variable.value for variable in container.env))
    return container.is_found_in(_BUCKET, texts)
