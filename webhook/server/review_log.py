"""The log fields of one review, and of an unexpected error while answering one.

They never have objects, params, patches or the text of an exception, which may contain a piece of these. The message of
a denial quotes values of the object: a line has it only if the operator of the server asked for it.
"""

from __future__ import annotations

import traceback
from typing import Final

from msgspec import structs

from webhook.apimachinery.attributes import Attributes, Phase, controller_name
from webhook.errors import fault_locations
from webhook.rules.decisions import Verdict
from webhook.rules.text import shorten_text

_MOST_RULES: Final = 20
"""How many ids of rules a line has; an object that breaks more of them breaks the first."""
_LONGEST: Final = 512
"""How many characters of a name that a user chose are logged. A name here may have 3 MB, which takes 300 ms to escape.
"""
_LONGEST_DENIAL: Final = 4096
"""How many characters of a denial are logged: more than its first eight problems take."""
FAULTS: Final = "faults"
"""The log field with policies that failed by a fault of our own; each becomes a separate line."""


class WorkerFault(Exception):
    """An unexpected error inside a worker, with its type and place."""

    def __init__(self, fields: dict[str, object]) -> None:
        super().__init__(fields["error"])
        self.fields = fields


def fault(error: Exception) -> dict[str, object]:
    """Return the type of an error and where it happened, without its text."""
    if isinstance(error, WorkerFault):
        return error.fields
    return {"error": type(error).__name__, "traceback": fault_locations(traceback.extract_tb(error.__traceback__))}


def line(
    attributes: Attributes, phase: Phase, verdict: Verdict, elapsed_s: float, *, with_denial: bool = False
) -> dict[str, object]:
    """Return the log fields of a review: its user and operation, the verdict, the policies with a decision, the
    duration.

    Args:
        attributes: the request.
        phase: in which it was reviewed.
        verdict: the answer.
        elapsed_s: seconds of the evaluation.
        with_denial: whether to add the message of a denial, as `denial`.
    """
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
        fields |= {key: shorten_text(str(fields[key]), _LONGEST) for key in ("uid", "name", "user")}
    if rules := _broken_rule_ids(verdict):
        fields["rules"] = rules
    if excepted := _excepted_rule_ids(verdict):
        fields["excepted"] = excepted
    withheld = {key: _withheld_rule_ids(verdict, key) for key in ("deny", "warn")}
    if withheld["deny"] or withheld["warn"]:
        fields |= {f"would_{key}": listed for key, listed in withheld.items() if listed}
        fields["owner"] = _name_of_owner(attributes)
    if attributes.dry_run:
        fields["dry_run"] = True
    if attributes.sub_resource:
        fields["subresource"] = attributes.sub_resource
    if verdict.status is not None:
        fields["code"] = verdict.status.code
        if with_denial:
            fields["denial"] = shorten_text(verdict.status.message, _LONGEST_DENIAL)
    if verdict.patch:
        fields["patched"] = len(verdict.patch)
    if verdict.faults:
        fields[FAULTS] = [structs.asdict(each) for each in verdict.faults]
    return fields


def _broken_rule_ids(verdict: Verdict) -> list[str]:
    """Return the ids of the rules that were broken, in the order of the messages and without advice."""
    broken: dict[str, None] = {}
    for decision in verdict.decisions:
        if decision.action == "deny" and not decision.is_advice:
            broken.update(dict.fromkeys(decision.broken_rules))
    return list(broken)[:_MOST_RULES]


def _excepted_rule_ids(verdict: Verdict) -> list[str]:
    """Return the ids of the rules that an exception let the object break."""
    ids = (rule for each in verdict.decisions if each.is_excepted and not each.is_advice for rule in each.broken_rules)
    return list(dict.fromkeys(ids))[:_MOST_RULES]


def _withheld_rule_ids(verdict: Verdict, withheld: str) -> list[str]:
    """Return the ids of the rules that would deny or warn if the installation did not limit actions."""
    ids = (rule for each in verdict.decisions if each.withheld == withheld for rule in each.broken_rules)
    return list(dict.fromkeys(ids))[:_MOST_RULES]


def _name_of_owner(attributes: Attributes) -> str | None:
    """Return kind and name of the controller that owns the object; None if it has none."""
    owner = controller_name(attributes.object)
    return shorten_text(owner, _LONGEST) if owner else None
