"""How many pods of a pod set the nodes of a topology could hold, by level, slice and what keeps pods away."""

from __future__ import annotations

from tests.rows import all_rows
from webhook.attributes import JSON
from webhook.cluster.files import FilesCluster
from webhook.facts.kueue.flavors import flavor
from webhook.facts.kueue.topology import Placement, Wish, fits, mismatch
from webhook.facts.view import View

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
VIEW = View(FilesCluster([TOPOLOGY, FLAVOR, *NODES]), "team")
ROWS = {
    "all nodes, unless something is required": (Wish(), {}, 7),
    "one host": (Wish(required="kubernetes.io/hostname"), {}, 2),
    "one rack": (Wish(required="rack"), {}, 3),
    "one block": (Wish(required="block"), {}, 5),
    "a rack in whole slices of hosts": (
        Wish(required="rack", slice_level="kubernetes.io/hostname", slice_size=2),
        {},
        2,
    ),
    "slices of racks in a block": (Wish(required="block", slice_level="rack", slice_size=3), {}, 3),
    "the nodes that pods select": (Wish(required="block"), {"nodeSelector": {"zone": "s"}}, 2),
    "a taint that pods tolerate": (Wish(required="block"), {"tolerations": [{"operator": "Exists"}]}, 5),
    "both blocks with a taint that pods tolerate": (
        Wish(),
        {"tolerations": [{"key": "spot", "operator": "Exists"}]},
        9,
    ),
}


@all_rows("wish, pod, expected", ROWS.values(), ids=list(ROWS))
def test_nodes_could_hold(wish: Wish, pod: JSON, expected: int) -> None:
    known = flavor("tas", VIEW)
    assert known is not None
    placed = Placement(wish=wish, flavor=known, template={"spec": pod}, count=9, requests={"gpu": 4000})
    assert fits(placed, VIEW) == expected


def test_without_nodes_nobody_knows() -> None:
    view = View(FilesCluster([TOPOLOGY, FLAVOR]), "team")
    known = flavor("tas", view)
    assert known is not None
    assert fits(Placement(wish=Wish(), flavor=known, template={}, count=1, requests={}), view) is None
    assert [each.kind for listed in view.missing().values() for each in listed] == ["Node"]


def test_a_flavor_with_a_topology_is_for_pods_that_ask_for_one() -> None:
    known = flavor("tas", VIEW)
    assert known is not None
    assert mismatch(Wish(), known, VIEW, is_implied=True) == ""
    assert "these do not" in mismatch(Wish(), known, VIEW, is_implied=False)
    assert mismatch(Wish(required="rack"), known, VIEW, is_implied=False) == ""
    assert "has no level `row`" in mismatch(Wish(preferred="row"), known, VIEW, is_implied=False)
