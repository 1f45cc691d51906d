"""The nodes that Kueue sees: ready and schedulable nodes, read once for each state."""

from __future__ import annotations

import pytest

from webhook.apimachinery.attributes import JSON
from webhook.cluster.files import FilesCluster
from webhook.facts.kueue.flavors import read_kueue_nodes
from webhook.facts.view import ClusterView

READY = {"type": "Ready", "status": "True"}


def node(**spec: JSON) -> JSON:
    status = {"allocatable": {"cpu": "1500m", "gpu": 8, "memory": "much"}, "conditions": [READY]}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "n", "labels": {"a": "b"}},
        "status": status,
    } | spec


def test_a_node_has_labels_and_amounts_in_thousandths() -> None:
    (read,) = read_kueue_nodes(ClusterView(FilesCluster([node()]), ""))
    assert (read.labels, read.allocatable, read.taints) == ({"a": "b"}, {"cpu": 1500, "gpu": 8000}, ())


@pytest.mark.parametrize(
    ("changes", "is_open"),
    [
        ({}, True),
        ({"spec": {"unschedulable": True}}, False),
        ({"status": {"conditions": [{"type": "Ready", "status": "Unknown"}]}}, False),
        ({"status": {"conditions": [{"type": "DiskPressure", "status": "False"}]}}, True),
    ],
    ids=["ready", "cordoned", "lost", "without a condition"],
)
def test_a_node_is_open_while_it_is_ready_and_not_cordoned(changes: JSON, is_open: bool) -> None:
    (read,) = read_kueue_nodes(ClusterView(FilesCluster([node(**changes)]), ""))
    assert read.is_open is is_open


def test_a_node_is_read_once() -> None:
    view = ClusterView(FilesCluster([node()]), "")
    assert read_kueue_nodes(view)[0] is read_kueue_nodes(view)[0]
