"""Declares a function of a library: its signatures, its first version, its implementation and its cost.

A library is one module with `FUNCTIONS: tuple[Overload, ...]`. The checker reads the signatures, the compiler the
implementations, the meter the costs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from msgspec import Struct

from webhook.cel.types import Type

Version: TypeAlias = tuple[int, int]
"""A Kubernetes version: (1, 36)."""

Cost: TypeAlias = Callable[..., int]
"""Returns a call's cost in cel-go's units, from its result (None if it failed) and the values, target first.

Sources: k8s.io/apiserver v0.36.1 pkg/cel/library/cost.go CallCost, cel-go v0.26.0 ext/lists.go and ext/sets.go, and for
standard functions interpreter/runtimecost.go costCall. Without a cost function, a call costs 1.
"""


class Overload(Struct, frozen=True):
    """One signature of a function.

    Attributes:
        parameters: the types of the arguments; if `member` is true, the first is the target.
        implementation: takes the values in this order. It returns a value or raises EvaluationError, or NoSuchOverload
            for values of wrong types. The Python classes of the values fit the parameters (values.py); element types
            are not checked.
        since: the first version of Kubernetes with the function.
        until: the first later version without it.
        metered: the implementation walks something of a length that a user chooses, in Python or for more than a
            millisecond of C. It gets the Deadline before the values, and charges its walks.
        is_literal: the arguments are literals, and the call is tried when an expression is checked. If the call fails,
            the expression is refused.
        hidden: only for values of unknown types at run time, not for the checker.
        resolved_cost: replaces `cost` if the checker leaves only this overload. cel-go knows some costs by overload,
            and a call on dyn values has no overload before it runs.
    """

    name: str
    id: str
    parameters: tuple[Type, ...]
    result: Type
    implementation: Callable[..., Any]
    member: bool = False
    since: Version = (1, 0)
    until: Version | None = None
    cost: Cost | None = None
    resolved_cost: Cost | None = None
    metered: bool = False
    is_literal: bool = False
    hidden: bool = False
