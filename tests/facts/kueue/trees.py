"""Random trees of cohorts, and the quota of a ClusterQueue by brute force."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

from hypothesis import strategies as st

from webhook.facts.kueue.quota import FlavorQuota, FlavorResource, QuotaNode, QuotaTree, set_parent

PAIR: FlavorResource = ("a100", "nvidia.com/gpu")
AMOUNTS = st.integers(0, 9)
LIMITS = st.none() | AMOUNTS


@dataclass(eq=False)
class Member:
    nominal: int
    borrowing: int | None
    lending: int | None
    usage: int
    is_cohort: bool
    parent: Member | None = None
    children: list[Member] = field(default_factory=list)

    @cached_property
    def subtree(self) -> int:
        return self.nominal + sum(each.subtree - each.kept for each in self.children)

    @cached_property
    def kept(self) -> int:
        return 0 if self.lending is None else max(0, self.subtree - self.lending)

    @cached_property
    def in_use(self) -> int:
        return self.parent.in_use if self.parent else self._below()

    def _below(self) -> int:
        return self.usage + sum(each._below() for each in self.children)

    @cached_property
    def used(self) -> int:
        return self.usage + sum(max(0, each.used - each.kept) for each in self.children)


@st.composite
def members(draw: st.DrawFn, most: int = 7) -> list[Member]:
    """Draw the nodes of a tree. The root is first, and the parent of each other node is an earlier cohort."""
    made = [Member(draw(AMOUNTS), None, None, 0, is_cohort=True)]
    for _ in range(draw(st.integers(1, most))):
        above = draw(st.sampled_from([each for each in made if each.is_cohort]))
        is_cohort = draw(st.booleans())
        usage = 0 if is_cohort else draw(AMOUNTS)
        node = Member(draw(AMOUNTS), draw(LIMITS), draw(LIMITS), usage, is_cohort=is_cohort, parent=above)
        above.children.append(node)
        made.append(node)
    return made


def built(tree: list[Member]) -> tuple[QuotaTree, list[QuotaNode]]:
    nodes = []
    for index, each in enumerate(tree):
        quota = FlavorQuota(nominal=each.nominal, borrowing_limit=each.borrowing, lending_limit=each.lending)
        node = QuotaNode(name=str(index), is_cohort=each.is_cohort, quotas={PAIR: quota}, usage={PAIR: each.usage})
        nodes.append(node)
        if each.parent is not None:
            set_parent(nodes[tree.index(each.parent)], node)
    return QuotaTree(nodes[0]), nodes


def fits(node: Member, amount: int, *, is_empty: bool) -> bool:
    """Return whether a node can use this amount. It uses its own quota first, and borrows the rest within its limit."""
    used = 0 if is_empty else node.used
    if node.parent is None:
        return used + amount <= node.subtree
    rest = amount - max(0, node.kept - used)
    lent, taken = node.subtree - node.kept, max(0, used - node.kept)
    if node.borrowing is not None and rest > lent - taken + node.borrowing:
        return False
    return fits(node.parent, rest, is_empty=is_empty)


def most(node: Member, *, is_empty: bool) -> int:
    """Return the largest amount that fits, by trying each amount."""
    amount = -node.in_use - 1
    while fits(node, amount + 1, is_empty=is_empty):
        amount += 1
    return amount
