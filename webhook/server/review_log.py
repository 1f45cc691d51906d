"""What is logged of one review, and of a fault of our own while answering one.

Never objects, params, patches or the text of an exception, which may hold a piece of any of them.
"""

from __future__ import annotations

import traceback
from dataclasses import asdict
from typing import Final

from webhook.attributes import Attributes, Phase
from webhook.decisions import Verdict
from webhook.errors import fault_locations
from webhook.problems.text import text_of_at_most

_MOST_RULES: Final = 20
"""Ids of rules in a line: an object that breaks more of them breaks the first."""
_LONGEST: Final = 512
"""Characters of what a user chose. A name may have 3 MB when it comes here, which the API server refuses only later; to
escape them takes the loop 300 ms."""
FAULTS: Final = "faults"
"""Faults of our own in policies: each is a line of its own, with what else is known of the review."""


class WorkerFault(Exception):
    """A fault of our own inside a worker: its type and place."""

    def __init__(self, fields: dict[str, object]) -> None:
        super().__init__(fields["error"])
        self.fields = fields


def fault(error: Exception) -> dict[str, object]:
    """The type of a fault and where it happened, never its text."""
    if isinstance(error, WorkerFault):
        return error.fields
    return {"error": type(error).__name__, "traceback": fault_locations(traceback.extract_tb(error.__traceback__))}


def line(attributes: Attributes, phase: Phase, verdict: Verdict, elapsed_s: float) -> dict[str, object]:
    """The one line a review leaves: who asked for what, what was decided, which policies spoke, how long it took."""
    spoke = dict.fromkeys(
        [
            decision.policy
            for decision in verdict.decisions
            if decision.evaluation != "admit" or decision.action == "deny" or decision.kind == "mutating"
        ]
    )
    fields: dict[str, object] = {
        "uid": attributes.uid,
        "phase": phase,
        "operation": attributes.operation,
        "kind": attributes.kind.kind,
        "group": attributes.kind.group,
        "namespace": attributes.namespace,
        "name": attributes.name,
        "user": attributes.user_info.username,
        "allowed": verdict.allowed,
        "policies": list(spoke),
        "elapsed_ms": round(elapsed_s * 1000, 3),
    }
    if len(attributes.uid) + len(attributes.name) + len(attributes.user_info.username) > _LONGEST:
        fields |= {key: text_of_at_most(str(fields[key]), _LONGEST) for key in ("uid", "name", "user")}
    if rules := _rules(verdict):
        fields["rules"] = rules
    if attributes.dry_run:
        fields["dry_run"] = True
    if attributes.sub_resource:
        fields["subresource"] = attributes.sub_resource
    if verdict.status is not None:
        fields["code"] = verdict.status.code
    if verdict.patch:
        fields["patched"] = len(verdict.patch)
    if verdict.faults:
        fields[FAULTS] = [asdict(each) for each in verdict.faults]
    return fields


def _rules(verdict: Verdict) -> list[str]:
    """The ids of the rules that were broken, in the order in which they are told; advice is told to nobody."""
    broken: dict[str, None] = {}
    for decision in verdict.decisions:
        if decision.action == "deny" and not decision.is_advice:
            broken.update(
                dict.fromkeys([each.code for each in decision.problems] or [decision.rule or decision.policy])
            )
    return list(broken)[:_MOST_RULES]
