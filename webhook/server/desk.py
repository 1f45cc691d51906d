"""Behind the door: bytes of a review in, bytes of its answer out, one log line and the counts on the way.

Knows the order of the six rooms and what is noted of a review; evaluates nothing itself. Never logs objects, params,
patches or the text of an exception, which may hold a piece of any of them.
"""

from __future__ import annotations

import traceback
from time import perf_counter
from typing import Protocol

from webhook.admission.decode import decode
from webhook.admission.respond import respond
from webhook.attributes import Attributes, Phase
from webhook.decisions import Decision, Status, Verdict
from webhook.errors import CallError
from webhook.logs import Level, Log
from webhook.server.tally import Tally


class Reviewer(Protocol):
    """The core with its policies and cluster view already given."""

    def __call__(self, attributes: Attributes, phase: Phase, deadline: float) -> Verdict:
        """The verdict; `deadline` is on the monotonic clock."""
        ...


class ReviewDesk:
    """Answers reviews with a reviewer, and keeps the books."""

    def __init__(self, reviewer: Reviewer, tally: Tally, log: Log) -> None:
        self._reviewer = reviewer
        self._tally = tally
        self._log = log

    def answer(self, body: bytes, phase: Phase, deadline: float) -> bytes:
        """The AdmissionReview that answers this one.

        Raises:
            CallError: it cannot be read.
        """
        started = perf_counter()
        attributes = decode(body)
        verdict = self._reviewer(attributes, phase, deadline)
        answer = respond(attributes.uid, verdict, phase, attributes.operation)
        elapsed_s = perf_counter() - started
        self._tally.reviewed(attributes, phase, verdict, elapsed_s)
        self._note("info", "review", line(attributes, phase, verdict, elapsed_s))
        return answer

    def refused(self, phase: Phase, error: CallError) -> None:
        """Note a call that could not be read."""
        self._tally.refused(phase, error.code)
        self._note("warning", "call refused", {"phase": phase.value, "code": error.code, "reason": error.message})

    def failed(self, phase: Phase, error: Exception) -> Status:
        """Note a fault of our own: where it happened, not what it held."""
        name = type(error).__name__
        frames = [
            f"{frame.filename}:{frame.lineno} {frame.name}" for frame in traceback.extract_tb(error.__traceback__)
        ]
        self._tally.refused(phase, 500)
        self._tally.uncaught[name,] += 1
        fields: dict[str, object] = {"phase": phase.value, "code": 500, "error": name, "traceback": frames}
        self._note("error", "internal fault", fields)
        message = f"claimgate failed on this review ({name}); its log has an `internal fault` line with the place"
        return Status(code=500, reason="InternalError", message=message)

    def _note(self, level: Level, message: str, fields: dict[str, object]) -> None:
        """Write a log line; one that cannot be written (nobody reads stderr any more) is counted, the answer stands."""
        try:
            self._log.write(level, message, fields)
        except OSError as error:
            self._tally.uncaught[f"log: {type(error).__name__}",] += 1


def line(attributes: Attributes, phase: Phase, verdict: Verdict, elapsed_s: float) -> dict[str, object]:
    """The one line a review leaves: who asked for what, what was decided, which policies spoke, how long it took."""
    spoke = dict.fromkeys(decision.policy for decision in verdict.decisions if _spoke(decision))
    fields: dict[str, object] = {
        "uid": attributes.uid,
        "phase": phase.value,
        "operation": attributes.operation.value,
        "kind": attributes.kind.kind,
        "group": attributes.kind.group,
        "namespace": attributes.namespace,
        "name": attributes.name,
        "user": attributes.user_info.username,
        "allowed": verdict.allowed,
        "policies": list(spoke),
        "elapsed_ms": round(elapsed_s * 1000, 3),
    }
    if attributes.sub_resource:
        fields["subresource"] = attributes.sub_resource
    if verdict.status is not None:
        fields["code"] = verdict.status.code
    if verdict.patch:
        fields["patched"] = len(verdict.patch)
    return fields


def _spoke(decision: Decision) -> bool:
    return decision.action == "deny" or decision.evaluation != "admit" or decision.kind == "mutating"
