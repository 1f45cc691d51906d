"""Declares a function of a library: its signatures, its first version, its implementation and its cost.

A library is one file with a module constant `FUNCTIONS: tuple[Overload, ...]`. The checker reads the signatures, the
compiler the implementations, the meter the costs; `library/__init__.py` lists the files.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from msgspec import Struct

from webhook.cel.types import Type

Version: TypeAlias = tuple[int, int]
"""A Kubernetes version: (1, 36)."""

Cost: TypeAlias = Callable[..., int]
"""A function from the result of a call and the argument values, target first, to the call's cost in cel-go's units.
The result is None if the call failed; a failed call has a cost, too. Source of every formula: k8s.io/apiserver
v0.36.1 pkg/cel/library/cost.go CallCost, cel-go v0.26.0 ext/lists.go and ext/sets.go, and interpreter/runtimecost.go
costCall for the standard functions. A call without a cost function costs 1.
"""


class Overload(Struct, frozen=True):
    """One signature of a function.

    parameters: the types of the arguments; if `member` is true, the first is the target.

    implementation: takes the values in the order of `parameters`. It returns a value or raises EvaluationError, or
    NoSuchOverload for values of the wrong types. It is called only with values whose Python classes fit the parameters
    (values.py has the classes); list and map element types are not checked.

    since: the first version of Kubernetes with the function. until: the first later version without the function.

    metered: the implementation walks something of a length that a user chooses, in Python or in more than a millisecond
    of C. It gets the Deadline before the values, and charges what it walks (webhook/deadline.py).

    is_literal: the arguments are literals, and the call is tried when an expression is checked. If it raises an error,
    the expression is refused.

    hidden: the checker does not use the signature; only calls on values of unknown types use it at run time.

    resolved_cost: replaces `cost` if the checker finds that only this overload fits. cel-go knows some costs by
    overload, and a call on dyn values that fit several overloads has no overload before it runs.
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
