"""The server counts the results of each policy."""

from __future__ import annotations

from msgspec.structs import replace

from tests.literals import pod, request
from webhook.apimachinery.attributes import Phase
from webhook.rules.decisions import Decision, Verdict
from webhook.server.counters import Counters

HOLDS = Decision(policy="p", binding="b", evaluation="admit")
FAILS = Decision(policy="p", binding="b", evaluation="deny", elapsed_s=0.5)
ALLOWED, DENIED = ("p", "b", "no_error", "allow"), ("p", "b", "no_error", "deny")


def reviewed(counters: Counters, *decisions: Decision) -> None:
    counters.reviewed(request(pod()), Phase.VALIDATE, Verdict(allowed=True, decisions=decisions), 0.001)


def counted(counters: Counters) -> dict[tuple[str, ...], list[int]]:
    return {labels: each.counts for labels, each in counters.validating.items()}


def test_decisions_are_counted_each_time():
    counters = Counters()
    for _ in range(3):
        reviewed(counters, HOLDS, HOLDS, FAILS)
    assert counted(counters) == {ALLOWED: [6, 0, 0, 0, 0, 0], DENIED: [0, 0, 0, 0, 3, 0]}
    assert counters.validating[DENIED].total == 1.5


def test_a_rule_with_an_exception_is_counted_as_excepted():
    counters = Counters()
    excepted = replace(FAILS, rule="a/b", lets_pass=True, exception="excepted until 2027-01-31 by us: for now")
    reviewed(counters, excepted, replace(excepted, evaluation="unknown", rule="a/c"), replace(FAILS, rule="a/d"))
    assert counters.rules == {("a/b", "validate", "excepted"): 1, ("a/d", "validate", "deny"): 1}
