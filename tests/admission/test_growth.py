"""The work for each list that a user can lengthen grows in proportion to its length.

Work is counted without a clock. `python -m tests.bench.bench_growth` measures the same lists in seconds, up to the size
of the largest request.
"""

import json
from dataclasses import replace

import pytest

from tests.bench.job_traffic import CLASS, claim_template, runtime
from tests.growth import LISTS, many, obj, pod, review
from tests.literals import shipped_policies
from webhook.admission.decode import decode_review
from webhook.admission.review import answer_request as answer
from webhook.apimachinery.attributes import Phase
from webhook.cluster.files import FilesCluster
from webhook.cluster.layered import ClusterWithAssumedNamespaces
from webhook.deadline import Deadline
from webhook.facts.nodes.node_offers import HAMI_CARDS

POLICIES = shipped_policies()
CLUSTER = ClusterWithAssumedNamespaces(FilesCluster([runtime(), claim_template("team", "one-gpu", 1), CLASS]))
SHORT = {"workload": 60, "Pod": 240, "devices": 240}
"""The items in the shorter list. Work is charged in hundreds, so the lists are long. A list of templates is short."""
MOST = 5.0
"""Four times the items need four times the work. Logarithms and copies of pointers may add a quarter."""


class Counter(Deadline):
    """A deadline that never passes, and counts the charged work."""

    WHOLE = 1 << 60

    def __init__(self):
        super().__init__()
        self.left = self.WHOLE

    def check_clock(self):
        """Reading the clock must not change the count, so this does nothing."""

    @property
    def work(self):
        return self.WHOLE - self.left


def work(obj, cluster=CLUSTER):
    sent, counter = decode_review(review(obj)), Counter()
    for phase in Phase:
        answer(replace(sent), POLICIES, cluster, phase=phase, deadline=counter)
    return counter.work


@pytest.mark.parametrize("name", LISTS)
def test_work_grows_no_faster_than_a_list(name):
    make, number = LISTS[name], SHORT[name.partition(":")[0]]
    short, long = work(make(number)), work(make(4 * number))
    assert long <= MOST * short


def test_counted_work_grows_with_a_list():
    make = LISTS["Pod: claims used"]
    assert work(make(400)) > 2 * work(make(100)) > 200


def node_of_hami(number):
    cards = [{"id": f"GPU-{number}-{i}", "count": 10, "devmem": 81_559, "mode": "hami-core"} for i in range(8)]
    metadata = {"name": f"n{number}", "annotations": {HAMI_CARDS: json.dumps(cards)}}
    return {**obj("v1", "Node", {}, **metadata), "status": {"allocatable": {"nvidia.com/gpu": "80"}}}


@pytest.mark.parametrize("asked", ["0", "1"])
def test_work_does_not_grow_with_containers_times_nodes(asked):
    """The cards of nodes are read once for all containers of a pod. They are read only if a container requests cards."""

    def work_of(containers, nodes):
        cluster = FilesCluster(map(node_of_hami, range(nodes)), is_whole=True)
        first = many(1, resources={"limits": {"nvidia.com/gpu": "1"}})
        others = many(containers, resources={"limits": {"nvidia.com/gpu": asked}})
        return work(pod(containers=first, initContainers=others), ClusterWithAssumedNamespaces(cluster))

    assert work_of(200, 200) <= MOST * work_of(50, 50)
