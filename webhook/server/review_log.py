"""The log line of each review, of refused calls and of our own faults, and the counts that belong to them.

A line has no objects, params or patches, and no texts of exceptions, which may quote objects. The message of a denial
quotes values of the object: a line has the message only if the operator asks for it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from msgspec import structs

from webhook.apimachinery.attributes import Attributes, Phase, controller_name
from webhook.errors import CallError, describe_fault
from webhook.logs.structured import Level, LimitedLog
from webhook.rules.decisions import Decision, DenialStatus, Verdict
from webhook.rules.text import shorten_text
from webhook.server.server_parts import ServerParts
from webhook.server.warning_events import WARNED
from webhook.server.worker_lane import WorkerFault


class ReviewLog:
    """Writes the lines of one server; its observer and its Events get the fields of each review."""

    def __init__(self, parts: ServerParts) -> None:
        self._log = parts.log
        self._counters = parts.counters
        self._observer = parts.observer
        self._events = parts.events
        self._refusals = LimitedLog(parts.log.write, "call refused")

    def write_review(self, level: Level, message: str, fields: dict[str, object]) -> None:
        """Write the line of a review, and a line for each policy with a fault of ours."""
        faults = fields.pop(FAULTS, ())
        for policy_fault in faults if isinstance(faults, list | tuple) else ():
            self._counters.policy_faults[policy_fault["policy"], policy_fault["checks"], policy_fault["error"]] += 1
            self._log.write("error", "internal fault", {"uid": fields["uid"], "phase": fields["phase"], **policy_fault})
        warned = fields.pop(WARNED, None)
        if self._events is not None and warned is not None:
            self._events.offer(warned)
        if self._observer is not None:
            self._observer(fields)
        self._log.write(level, message, fields)

    def record_refused_call(self, phase: Phase, error: CallError) -> None:
        """Log and count a call that could not be read."""
        self._counters.refused(phase, error.code)
        self._refusals.write("warning", {"phase": phase.value, "code": error.code, "reason": error.message})

    def record_unexpected_error(self, phase: Phase, error: Exception) -> DenialStatus:
        """Log and count the type and place of an unexpected error, without its text."""
        fields = error.fields if isinstance(error, WorkerFault) else describe_fault(error)
        name = str(fields["error"])
        self._counters.refused(phase, 500)
        self._counters.uncaught[name,] += 1
        self._log.write("error", "internal fault", {"phase": phase.value, "code": 500, **fields})
        message = f"claimgate failed on this review ({name}); its log has an `internal fault` line with the place"
        return DenialStatus(code=500, reason="InternalError", message=message)


_MOST_RULES: Final = 20
"""The maximum number of rule ids of a line."""
_LONGEST: Final = 512
"""The maximum number of logged characters of a name that a user chose: a name of 3 MB takes 300 ms to escape."""
_LONGEST_DENIAL: Final = 4096
"""The maximum number of logged characters of a denial: the first eight problems."""
FAULTS: Final = "faults"
"""The log field with the policies that failed by a fault of ours. Each policy becomes a log line."""


def log_fields_of_review(
    attributes: Attributes, phase: Phase, verdict: Verdict, elapsed_s: float, *, with_denial: bool = False
) -> dict[str, object]:
    """Return the log fields of a review; `with_denial` adds the message of a denial."""
    policies = dict.fromkeys(
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
        "policies": list(policies),
        "elapsed_ms": round(elapsed_s * 1000, 3),
    }
    if len(attributes.uid) + len(attributes.name) + len(attributes.user_info.username) > _LONGEST:
        fields |= {key: shorten_text(str(fields[key]), _LONGEST) for key in ("uid", "name", "user")}
    rules = [each for each in verdict.decisions if not each.is_advice]
    rules_by_field = {
        "rules": _rule_ids(each for each in rules if each.action == "deny"),
        "excepted": _rule_ids(each for each in rules if each.is_excepted),
        "would_deny": _rule_ids(each for each in verdict.decisions if each.withheld == "deny"),
        "would_warn": _rule_ids(each for each in verdict.decisions if each.withheld == "warn"),
    }
    fields |= {key: ids for key, ids in rules_by_field.items() if ids}
    if rules_by_field["would_deny"] or rules_by_field["would_warn"]:
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


def _rule_ids(decisions: Iterable[Decision]) -> list[str]:
    # in order of the messages
    return list(dict.fromkeys(rule for decision in decisions for rule in decision.broken_rules))[:_MOST_RULES]


def _name_of_owner(attributes: Attributes) -> str | None:
    owner = controller_name(attributes.object)
    return shorten_text(owner, _LONGEST) if owner else None
