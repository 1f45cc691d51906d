"""What is known of one review call beside its body, and how its time is shared out.

Knows moments of the monotonic clock; nothing of bodies and policies.
"""

from __future__ import annotations

from time import monotonic
from typing import Final, NamedTuple

from webhook.apimachinery.attributes import Attributes, Phase
from webhook.server.tenants import Tenant, tenant_of

_ANSWER_SHARE: Final = 0.1
_MOST_ANSWER_S: Final = 0.3
"""The share of a review's time, and the most seconds, that are kept for writing an answer after evaluation timed out.
"""
_ASKING_SHARE: Final = 0.5
"""The share of a review's time that it may wait for answers of the API server."""


class ReviewCall(NamedTuple):
    """One call.

    Args:
        phase: which of the two it asks for.
        address: where it comes from, "" where that is not known.
        started: when work on it began, on the monotonic clock.
        deadline: when it must be answered.
    """

    phase: Phase
    address: str
    started: float
    deadline: float

    @property
    def evaluation_end(self) -> float:
        """Return when evaluation must end, so that there is time left to write the answer."""
        return self._end_from(self.started)

    @property
    def evaluation_end_from_now(self) -> float:
        """Return the same for an evaluation that begins now."""
        return self._end_from(monotonic())

    @property
    def asking_end(self) -> float:
        """Return until when it may wait for answers of the API server."""
        return self.started + _ASKING_SHARE * (self.deadline - self.started)

    @property
    def timeout_reason(self) -> str:
        """Return why it was not evaluated when its time is over."""
        return f"it took longer than {self.deadline - self.started:.2g} s"

    def tenant_of(self, attributes: Attributes | None) -> Tenant:
        """Return the tenant of its request."""
        return tenant_of(attributes, self.address)

    def _end_from(self, moment: float) -> float:
        return self.deadline - min(_MOST_ANSWER_S, (self.deadline - moment) * _ANSWER_SHARE)
