"""Compares the greatest possible cost of a policy with the limits of API servers, and the length of expressions with
a limit of claimgate.

The limits for the length of an expression and the number of variables are advice, so that policies are readable. A
longer expression should be a fact or a check in Python, with a name, a test and a source. The shipped policies are
within these limits. The sizes of objects are unknown when a policy is loaded. A request has at most 3 MiB, so no
text, list or map is longer. The estimate assumes that all parts have their largest size at the same time, which no
request has. So the costs are upper bounds, not forecasts.

Source: k8s.io/apiserver v0.36.1 pkg/cel/limits.go DefaultMaxRequestSizeBytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final

from msgspec import Struct

from webhook.cel import Program
from webhook.cel.cost import MATCH_CONDITIONS_BUDGET, PER_CALL_LIMIT, RUNTIME_BUDGET
from webhook.cel.estimate.sizes import Sizes, is_bounded, uniform_size_bound
from webhook.policy.compiled import Policy

LONGEST_EXPRESSION: Final = 400
"""The maximum number of characters of one expression: four lines, which people can read at once."""
MOST_VARIABLES: Final = 12
REQUEST_SIZE = 3 * 1024 * 1024


def reasons_for_poor_readability(policy: Policy) -> Iterator[str]:
    """Yield the reasons why a policy is hard to read, such as "14 variables, more than 12"."""
    longest = max((len(each.source) for each in policy.expressions()), default=0)
    if longest > LONGEST_EXPRESSION:
        yield f"an expression of {longest:,} characters, more than {LONGEST_EXPRESSION}"
    if len(policy.variables) > MOST_VARIABLES:
        yield f"{len(policy.variables)} variables, more than {MOST_VARIABLES}"


class WorstCaseCost(Struct, frozen=True):
    """The greatest cost of one evaluation of all expressions, with each variable evaluated once, for one binding,
    parameter and pod template.

    Attributes:
        most: the cost for objects of any size; None if the cost has no bound.
        request: the cost for requests of 3 MiB; None if the cost has no bound.
        within: the greatest length of texts, lists and maps with which no request can reach a limit, at most
            REQUEST_SIZE. None if even texts, lists and maps of length 1 can reach a limit.
    """

    most: int | None
    request: int | None
    within: int | None

    @property
    def is_within_limits(self) -> bool:
        """Return whether no request can reach a limit."""
        return self.within == REQUEST_SIZE


def worst_case_cost(policy: Policy) -> WorstCaseCost:
    """Return the worst case of a policy."""
    conditions = [each.expression.program for each in policy.conditions if each.expression.program is not None]
    programs = [each.program for each in policy.expressions() if each.program is not None]
    others = [each for each in programs if all(each is not condition for condition in conditions)]

    def fits(length: int) -> bool:
        sizes = uniform_size_bound(length)
        return _is_within_budget(conditions, sizes, MATCH_CONDITIONS_BUDGET) and _is_within_budget(
            others, sizes, RUNTIME_BUDGET
        )

    within = _longest_length_that_fits(fits)
    return WorstCaseCost(_total_cost(programs, None), _total_cost(programs, uniform_size_bound(REQUEST_SIZE)), within)


def _total_cost(programs: Iterable[Program], sizes: Sizes | None) -> int | None:
    total = sum(_most_cost_of_program(program, sizes) for program in programs)
    return total if is_bounded(total) else None


def _most_cost_of_program(program: Program, sizes: Sizes | None) -> int:
    return program.estimated_cost(sizes, worst=True)[1]


def _is_within_budget(programs: Iterable[Program], sizes: Sizes, budget: int) -> bool:
    for program in programs:
        cost = _most_cost_of_program(program, sizes)
        budget -= cost
        if cost > PER_CALL_LIMIT or budget < 0:
            return False
    return True


def _longest_length_that_fits(fits: Callable[[int], bool]) -> int | None:
    if fits(REQUEST_SIZE):
        return REQUEST_SIZE
    if not fits(1):
        return None
    good, bad = 1, REQUEST_SIZE
    while bad - good > 1:
        middle = (good + bad) // 2
        if fits(middle):
            good = middle
        else:
            bad = middle
    return good
