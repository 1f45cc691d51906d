"""A review lists every denial, and a bounded number of decisions of rules that hold."""

from webhook.evaluation.decision_list import MOST_ADMITTED, DecisionList
from webhook.rules.decisions import Decision

HOLDS = Decision(policy="p", binding="b", evaluation="admit")
DENIES = Decision(policy="p", binding="b", evaluation="deny")


def test_passing_decisions_are_kept_up_to_a_bound():
    listed = DecisionList()
    for count in (2, MOST_ADMITTED - 3, 3, 1):
        listed.add((HOLDS,) * count)
    assert len(listed.decisions) == MOST_ADMITTED


def test_a_denial_is_kept_after_too_many_passing_decisions():
    listed = DecisionList()
    listed.add((HOLDS,) * (MOST_ADMITTED + 1))
    listed.add([DENIES])
    assert listed.decisions[-1] is DENIES
    assert len(listed.decisions) == MOST_ADMITTED + 1
