"""Declares a function of a library: its signatures, the first version that has it, its implementation and its cost.

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
"""Called with the result and then the argument values (target first); returns the call's cost in cel-go's units.

The result is None if the call failed; a failed call costs too. Source of every formula: k8s.io/apiserver v0.36.1
pkg/cel/library/cost.go CallCost, cel-go v0.26.0 ext/lists.go and ext/sets.go, and interpreter/runtimecost.go costCall
for the standard functions. Without a cost function a call costs 1.
"""


class Overload(Struct, frozen=True):
    """One signature of a function.

    parameters include the target first when `member` is true. `implementation` takes the values in that order and
    returns a value, raises EvaluationError, or NoSuchOverload when the runtime types do not fit. It is called only with
    values whose Python classes fit the parameters (see values.py for the classes); list and map element types are not
    checked. since: first Kubernetes version whose environment has it; until: first version that lacks it.

    metered: the implementation walks something of a length that a user chooses, in Python or in more than a millisecond
    of C. It gets the Deadline before the values, and charges what it walks (webhook/deadline.py).

    is_literal: the arguments are literals, and the call is tried when an expression is checked. If it raises an error,
    the expression is refused.

    hidden: the checker does not use it; it is only for calls at run time with values of unknown types.

    resolved_cost replaces cost if this overload is the only candidate that the checker left. cel-go knows some costs by
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
