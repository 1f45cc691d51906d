"""What one call came to: the answer, the line that is logged of it, and its counts, also on the way from a child.

Knows no policies. A child's reply travels as JSON and not as pickles: a process that reads what users send must not be
able to make its parent run anything.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from math import inf
from typing import Final, Literal, TypeAlias

from webhook.server.counters import Counters

Outcome: TypeAlias = Literal["answered", "question", "refused", "failed", "out of memory"]


@dataclass(slots=True, kw_only=True)
class WorkerResult:
    """How a call ended.

    Attributes:
        outcome: answered is a verdict, question what somebody has to
            answer before there can be a verdict, refused a call that cannot be read, failed a fault of our own.
        body: the AdmissionReview of a verdict.
        fields: what is logged of it; of one refused or failed its code, reason and message too.
        seconds: how long the evaluation of a verdict took; without limit where there is no verdict.
    """

    outcome: Outcome
    body: bytes = b""
    fields: dict[str, object]
    seconds: float = inf

    def packed(self, counters: Counters) -> bytes:
        """The reply and what was counted, as one text and the body after it."""
        head = {"outcome": self.outcome, "fields": self.fields, "counts": counters.dump()}
        if self.seconds < inf:  # JSON has no infinity
            head["seconds"] = self.seconds
        return json.dumps(head).encode() + b"\n" + self.body


OUT_OF_MEMORY: Final = WorkerResult(outcome="out of memory", fields={}).packed(Counters())
"""Packed beforehand: who has no memory for a review has none to say so either."""


def unpack(packed: bytes, counters: Counters) -> WorkerResult:
    """A child's reply; what it counted is added to the counts."""
    head, _, body = packed.partition(b"\n")
    reply = json.loads(head)
    counters.add(reply["counts"])
    return WorkerResult(outcome=reply["outcome"], body=body, fields=reply["fields"], seconds=reply.get("seconds", inf))
