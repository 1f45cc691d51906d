"""Bounds of quota equal a search over every amount. More quota never allows less."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.facts.kueue.trees import PAIR, Member, built, members, most
from webhook.deadline import Deadline
from webhook.facts.kueue.assignment import PodSetQuotaRequest, pod_sets_not_fitting_together
from webhook.facts.kueue.job_types import typed_template
from webhook.facts.kueue.never_claims import QuotaDevices
from webhook.facts.kueue.quota import FlavorQuota, QuotaNode, QuotaTree, set_parent
from webhook.facts.kueue.quota_tree import QuotaGroup
from webhook.facts.kueue.workload import PodSetRequests
from webhook.workloads.podsets import PodSet

MANY = settings(max_examples=2 * settings().max_examples)


@MANY
@given(members(), st.data())
def test_quota_bounds_are_the_most_that_fits(tree: list[Member], data: st.DataObject) -> None:
    """Each bound is compared with the result of a search: in an empty tree, with the present usage, and without the
    usage of one ClusterQueue.
    """
    made, nodes = built(tree)
    index = data.draw(st.integers(0, len(tree) - 1))
    alone = [replace(each, children=[], parent=None) for each in tree]
    assert [made.potential_available_quota(node, PAIR) for node in nodes] == [
        most(each, is_empty=True) for each in tree
    ]
    assert [made.available_quota(node, PAIR) for node in nodes] == [most(each, is_empty=False) for each in tree]
    freed = made.available_quota(nodes[index], PAIR, less_usage=tree[index].usage)
    for each, copied in zip(tree, alone, strict=True):
        if each.parent is not None:
            copied.parent = alone[tree.index(each.parent)]
            copied.parent.children.append(copied)
    alone[index].usage = 0
    assert freed == most(alone[index], is_empty=False)


@MANY
@given(members(), st.data())
def test_more_quota_never_lowers_what_is_possible(tree: list[Member], data: st.DataObject) -> None:
    before, nodes = built(tree)
    potentials = [before.potential_available_quota(node, PAIR) for node in nodes]
    data.draw(st.sampled_from(tree)).nominal += data.draw(st.integers(1, 5))
    after, nodes = built(tree)
    assert all(after.potential_available_quota(node, PAIR) >= was for node, was in zip(nodes, potentials, strict=True))


def wanted(requests: list[int], flavors: tuple[str, ...]) -> list[PodSetQuotaRequest]:
    group, listed = QuotaGroup(("gpu",), flavors), []
    for amount in requests:
        pods = PodSet(name=str(len(listed)), path=(), template={})
        made = PodSetRequests(
            pod_set=pods,
            template=typed_template(pods.template, Deadline()),
            count=1,
            least=1,
            per_pod={},
            requests={"gpu": amount},
            devices=QuotaDevices(),
            outside=(),
        )
        listed.append(PodSetQuotaRequest(made, group, {"gpu": amount}, flavors, ()))
    return listed


@cache
def possible(requests: tuple[int, ...], capacities: tuple[int, ...]) -> bool:
    """Return whether some choice of flavors fits, by trying every choice."""
    if not requests:
        return True
    first, *rest = requests
    return any(
        possible((*rest,), (*capacities[:index], capacity - first, *capacities[index + 1 :]))
        for index, capacity in enumerate(capacities)
        if first <= capacity
    )


@MANY
@given(
    st.lists(st.integers(1, 8), max_size=5),
    st.lists(st.tuples(st.integers(0, 12), st.integers(0, 3)), min_size=1, max_size=3),
)
def test_pod_sets_fit_together_if_any_choice_of_flavors_does(
    requests: list[int], flavors: list[tuple[int, int]]
) -> None:
    """Pod sets that fit still fit when a flavor has more."""
    capacities, grown = [each for each, _ in flavors], [each + more for each, more in flavors]
    asked = wanted(requests, tuple(map(str, range(len(capacities)))))
    fits = not pod_sets_not_fitting_together(asked, lambda pair: capacities[int(pair[0])])
    assert fits == possible((*requests,), (*capacities,))
    if fits:
        assert not pod_sets_not_fitting_together(asked, lambda pair: grown[int(pair[0])])


def test_a_deep_tree_is_processed_without_deep_recursion() -> None:
    """In a chain of thousands of cohorts, each cohort is the parent of the next one."""
    root = node = QuotaNode(name="0", is_cohort=True, quotas={PAIR: FlavorQuota(nominal=1)})
    for index in range(1, 5000):
        child = replace(node, name=str(index), parent=None, children=[])
        set_parent(node, child)
        node = child
    tree = QuotaTree(root)
    assert (tree.potential_available_quota(node, PAIR), tree.available_quota(node, PAIR)) == (5000, 5000)
