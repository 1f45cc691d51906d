"""Limits on the length of one expression and on the number of variables, so that a policy can be read.

Advice, never a reason to refuse a policy. What takes more than this is a fact or a check of this project, in Python,
where it has a name, a test and a place for its source. The shipped policies keep the limits.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from webhook.policy.compiled import Policy

LONGEST_EXPRESSION: Final = 400
"""The most characters of one expression: four lines, which can be read without going back to the first."""
MOST_VARIABLES: Final = 12


def reasons_for_poor_readability(policy: Policy) -> Iterator[str]:
    """Yield what makes a policy hard to read: "14 variables, more than 12"."""
    longest = max((len(each.source) for each in policy.expressions()), default=0)
    if longest > LONGEST_EXPRESSION:
        yield f"an expression of {longest:,} characters, more than {LONGEST_EXPRESSION}"
    if len(policy.variables) > MOST_VARIABLES:
        yield f"{len(policy.variables)} variables, more than {MOST_VARIABLES}"
