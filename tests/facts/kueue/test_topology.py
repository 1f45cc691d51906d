"""How many pods the nodes of a topology can hold. Levels, slices, selectors and taints limit the number."""

from __future__ import annotations

from tests.rows import all_rows
from webhook.apimachinery.attributes import JSON
from webhook.cluster.files import FilesCluster
from webhook.deadline import Deadline
from webhook.facts.kueue.flavors import find_flavor
from webhook.facts.kueue.job_types import typed_template
from webhook.facts.kueue.topology import (
    PodPlacement,
    ResourceShortage,
    TopologyRequest,
    count_fitting_pods,
    missing_node_capacity,
    why_topology_does_not_fit,
)
from webhook.facts.view import ClusterView
from webhook.typed.pods import PodTemplate


def template(obj: JSON) -> PodTemplate:
    return typed_template(obj, Deadline())


LEVELS = [{"nodeLabel": name} for name in ("block", "rack", "kubernetes.io/hostname")]
TOPOLOGY = {
    "apiVersion": "kueue.x-k8s.io/v1beta2",
    "kind": "Topology",
    "metadata": {"name": "dc"},
    "spec": {"levels": LEVELS},
}
FLAVOR = {
    "apiVersion": "kueue.x-k8s.io/v1beta2",
    "kind": "ResourceFlavor",
    "metadata": {"name": "tas"},
    "spec": {"nodeLabels": {"pool": "tas"}, "topologyName": "dc"},
}


def node(name: str, block: str, rack: str, gpus: int = 8, **spec: JSON) -> JSON:
    labels = {"block": block, "rack": rack, "kubernetes.io/hostname": name, "pool": "tas", "zone": rack[:1]}
    status = {"allocatable": {"gpu": gpus, "pods": 110}, "conditions": [{"type": "Ready", "status": "True"}]}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "spec": spec,
        "status": status,
    }


NODES = [
    node("n1", "b1", "r1"),
    node("n2", "b1", "r1", gpus=5),
    node("n3", "b1", "r2"),
    node("n4", "b2", "s1"),
    node("n5", "b2", "s1", unschedulable=True),
    node("n6", "b2", "s1", taints=[{"key": "spot", "effect": "NoSchedule"}]),
]
VIEW = ClusterView(FilesCluster([TOPOLOGY, FLAVOR, *NODES], is_whole=True), "team")
ROWS = {
    "all nodes, unless something is required": (TopologyRequest(), {}, 7),
    "one host": (TopologyRequest(required="kubernetes.io/hostname"), {}, 2),
    "one rack": (TopologyRequest(required="rack"), {}, 3),
    "one block": (TopologyRequest(required="block"), {}, 5),
    "a rack in whole slices of hosts": (
        TopologyRequest(required="rack", slice_level="kubernetes.io/hostname", slice_size=2),
        {},
        2,
    ),
    "slices of racks in a block": (TopologyRequest(required="block", slice_level="rack", slice_size=3), {}, 3),
    "the nodes that pods select": (TopologyRequest(required="block"), {"nodeSelector": {"zone": "s"}}, 2),
    "a taint that pods tolerate": (TopologyRequest(required="block"), {"tolerations": [{"operator": "Exists"}]}, 5),
    "both blocks with a taint that pods tolerate": (
        TopologyRequest(),
        {"tolerations": [{"key": "spot", "operator": "Exists"}]},
        9,
    ),
}


@all_rows("topology_request, pod, expected", ROWS.values(), ids=list(ROWS))
def test_nodes_can_hold_this_number_of_pods(topology_request: TopologyRequest, pod: JSON, expected: int) -> None:
    known = find_flavor("tas", VIEW)
    assert known is not None
    placed = PodPlacement(
        topology_request=topology_request,
        flavor=known,
        template=template({"spec": pod}),
        count=9,
        requests={"gpu": 4000},
    )
    assert count_fitting_pods(placed, VIEW) == expected


def test_without_nodes_the_placement_is_unknown() -> None:
    view = ClusterView(FilesCluster([TOPOLOGY, FLAVOR]), "team")
    known = find_flavor("tas", view)
    assert known is not None
    assert (
        count_fitting_pods(
            PodPlacement(topology_request=TopologyRequest(), flavor=known, template=template({}), count=1, requests={}),
            view,
        )
        is None
    )
    assert [each.kind for listed in view.missing_objects_by_field().values() for each in listed] == ["Node"]


def test_a_flavor_with_a_topology_is_for_pods_that_request_a_topology() -> None:
    known = find_flavor("tas", VIEW)
    assert known is not None
    assert why_topology_does_not_fit(TopologyRequest(), known, VIEW, is_implied=True) == ""
    assert "these pods do not" in why_topology_does_not_fit(TopologyRequest(), known, VIEW, is_implied=False)
    assert why_topology_does_not_fit(TopologyRequest(required="rack"), known, VIEW, is_implied=False) == ""
    assert "has no level `row`" in why_topology_does_not_fit(
        TopologyRequest(preferred="row"), known, VIEW, is_implied=False
    )


def placed(count: int, gpus: int, **pod: JSON) -> PodPlacement:
    known = find_flavor("tas", VIEW)
    assert known is not None
    requests = {"gpu": gpus * 1000}
    return PodPlacement(
        topology_request=TopologyRequest(),
        flavor=known,
        template=template({"spec": pod}),
        count=count,
        requests=requests,
    )


TOGETHER = {
    "together no more than all nodes have": ([placed(3, 4), placed(2, 8)], "", None),
    "together more of a resource than all nodes have": (
        [placed(4, 4), placed(2, 8)],
        "",
        ResourceShortage("gpu", 32000, 29000),
    ),
    "more pods than the nodes can hold if all were as small as the smallest": (
        [placed(2, 5), placed(3, 5)],
        "",
        ResourceShortage("pods", 5, 4),
    ),
    "more pods of one set than the nodes that it selects can hold": (
        [placed(4, 5, nodeSelector={"zone": "r"}), placed(0, 1)],
        "",
        ResourceShortage("pods", 4, 3),
    ),
    "a block that has room for all": ([placed(1, 8), placed(2, 5)], "block", None),
    "no block has enough": ([placed(1, 8), placed(3, 5)], "block", ResourceShortage("gpu", 23000, 21000)),
    "no rack has enough": ([placed(1, 8), placed(1, 8)], "rack", ResourceShortage("gpu", 16000, 13000)),
}


@all_rows("sets, level, expected", TOGETHER.values(), ids=list(TOGETHER))
def test_several_pod_sets_lack_this_resource(
    sets: list[PodPlacement], level: str, expected: ResourceShortage | None
) -> None:
    assert missing_node_capacity(sets, level, VIEW) == expected


def test_the_nodes_of_a_lowest_domain_are_added_up_as_kueue_does() -> None:
    """If the lowest level is the rack, Kueue adds up the free amounts of its nodes, as if they were one node."""
    racks = {**TOPOLOGY, "spec": {"levels": LEVELS[:2]}}
    view = ClusterView(
        FilesCluster([racks, FLAVOR, node("n1", "b1", "r1", gpus=5), node("n2", "b1", "r1", gpus=5)], is_whole=True),
        "team",
    )
    known = find_flavor("tas", view)
    assert known is not None
    assert (
        count_fitting_pods(
            PodPlacement(
                topology_request=TopologyRequest(), flavor=known, template=template({}), count=1, requests={"gpu": 8000}
            ),
            view,
        )
        == 1
    )
