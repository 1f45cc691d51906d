"""The explanation why a policy reported an object or did not, which `claimgate replay --explain` prints.

Told by the evaluation itself (evaluation/trace.py), so that it cannot differ from what was decided. Evaluates nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

Outcome: TypeAlias = Literal[
    "not registered",
    "not matched",
    "not bound",
    "no param",
    "condition is false",
    "condition failed",
    "no problem",
    "unchanged",
    "changed",
    "not evaluated",
    "advised",
    "audited",
    "warned",
    "denied",
    "error",
]
"""How the evaluation of a policy ended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """The explanation for one policy, with one binding and parameter, for one object or pod template.

    Args:
        policy: its name.
        kind: which kind of policy it is.
        binding: "" where it came to no binding.
        param: `namespace/name`, "" for none.
        place: the path of the pod template, "" for the object itself.
        outcome: how it ended.
        reason: what of the policy or the request led to it: the part that did not match, the condition, the rules.
        elapsed_s: how long it was evaluated. What several policies need is computed for the first that asks.
        cost: what its expressions cost, in the units of the API server's cost model.
    """

    policy: str
    kind: Literal["validating", "mutating"]
    binding: str = ""
    param: str = ""
    place: str = ""
    outcome: Outcome
    reason: str = ""
    elapsed_s: float = 0.0
    cost: int = 0

    @property
    def is_not_registered(self) -> bool:
        """Return whether the policy does not apply to such requests at all."""
        return self.outcome == "not registered"
