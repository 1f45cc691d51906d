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
"""Returns the cost of a call in cel-go's units, from the result (None for a failed call), the target and the arguments.

Sources: k8s.io/apiserver v0.36.1 pkg/cel/library/cost.go CallCost, cel-go v0.26.0 ext/lists.go and ext/sets.go, and for
standard functions interpreter/runtimecost.go costCall. Without a cost function, a call costs 1.
"""


class Overload(Struct, frozen=True):
    """One signature of a function.

    Attributes:
        parameters: the types of the arguments. If `member` is true, the first argument is the target.
        implementation: takes the values in the order of `parameters`. It returns a value or raises EvaluationError, or
            NoSuchOverload for values of wrong types. The Python classes of the values fit the parameters (values.py);
            element types are not checked.
        since: the first version of Kubernetes with the function.
        until: the first later version without the function.
        metered: the implementation walks over values of any length. The walk runs in Python, or in C
            for more than a millisecond. The implementation gets the Deadline before the values, and charges its walks.
        is_literal: every argument must be a literal. The checker calls the function with the literals, and refuses the
            expression if the call fails.
        hidden: only for values of unknown types at run time; the checker ignores this signature.
        resolved_cost: replaces `cost` if only this overload fits the types that the checker knows. cel-go has some
            costs by overload, and the overload of a call on dyn values is not known before the call runs.
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
