"""The result of one evaluation: the answer, its log fields and its counts, also as a child sends them to its parent.

Knows no policies. A child's reply travels as JSON and not as pickles: a process that reads what users send must not be
able to make its parent run anything.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from math import inf
from typing import Any, Final, Literal, TypeAlias

from webhook.apimachinery.attributes import UserInfo
from webhook.cel.library.authorizer import AuthorizationQuestion
from webhook.server.counters import Counters

Outcome: TypeAlias = Literal["answered", "question", "refused", "failed", "out of memory", "out of time"]


@dataclass(slots=True, kw_only=True)
class WorkerResult:
    """The result of one call.

    Attributes:
        outcome: answered is a verdict, question what somebody has to answer before there can be a verdict, refused a
            call that cannot be read, failed a fault of our own, out of time an evaluation that its deadline ended
            outside of every policy.
        body: the AdmissionReview of a verdict.
        fields: what is logged of it; of one refused or failed its code, reason and message too.
        seconds: how long the evaluation of a verdict took; without limit where there is no verdict.
    """

    outcome: Outcome
    body: bytes = b""
    fields: dict[str, object]
    seconds: float = inf

    def packed(self, counters: Counters) -> bytes:
        """Return the result and the counts as a line of JSON, followed by the answer."""
        head = {"outcome": self.outcome, "fields": self.fields, "counts": counters.dump()}
        if self.seconds < inf:  # JSON has no infinity
            head["seconds"] = self.seconds
        return json.dumps(head).encode() + b"\n" + self.body


OUT_OF_MEMORY: Final = WorkerResult(outcome="out of memory", fields={}).packed(Counters())
"""The packed result of a child without memory, prepared because it could not be packed then."""


def unpack(packed: bytes, counters: Counters) -> WorkerResult:
    """Return a child's result, and add its counts to `counters`."""
    head, _, body = packed.partition(b"\n")
    reply = json.loads(head)
    counters.add(reply["counts"])
    return WorkerResult(outcome=reply["outcome"], body=body, fields=reply["fields"], seconds=reply.get("seconds", inf))


def question_as_json(question: AuthorizationQuestion, user: UserInfo) -> dict[str, object]:
    """Return a question and the user of the review as JSON, for a child to send to its parent."""
    return {"question": asdict(question), "user": user._asdict()}


def question_from_json(fields: Mapping[str, Any]) -> tuple[AuthorizationQuestion, UserInfo]:
    """Return the question and the user that `question_as_json` was given."""
    user = fields["user"]
    extra = {name: tuple(values) for name, values in user["extra"].items()}
    return AuthorizationQuestion(**fields["question"]), UserInfo(
        user["username"], user["uid"], tuple(user["groups"]), extra
    )
