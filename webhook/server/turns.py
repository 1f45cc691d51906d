"""Which review the event loop works on next: between two looks at the sockets, each tenant gets little of it.

A hundred connections may bring a hundred reviews of one user at a time, each quick enough for the loop. Whoever comes
behind them would wait for all; so what one tenant brings beyond MOST_S waits for the next round, in its order. Knows
the loop and tenants, nothing of reviews.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Final, TypeAlias

from webhook.server.inline_budget import Tenant

MOST_S: Final = 0.006
"""Of one tenant in one round, which are several ordinary reviews; a single one may take longer."""
LITTLE_S: Final = 0.001
"""As long as all reviews together took less, the rounds are not told apart: noticing the end of one makes the loop look
at its sockets once more, which costs as much as a tenth of a quick review."""

_Turn: TypeAlias = "asyncio.Future[None]"


class Turns:
    """Rounds of one event loop: from one look at its sockets to the next."""

    __slots__ = ("_is_due", "_spent", "_total", "_waiting")

    def __init__(self) -> None:
        self._spent: dict[Tenant, float] = {}
        self._total = 0.0
        self._waiting: dict[Tenant, deque[_Turn]] = {}
        self._is_due = False

    def is_free(self, tenant: Tenant) -> bool:
        """Whether a review of a tenant need not wait."""
        return tenant not in self._waiting and self._spent.get(tenant, 0.0) <= MOST_S

    async def wait(self, tenant: Tenant) -> None:
        """Return when it is the turn of a tenant's review; at once in a round in which it took little."""
        if self.is_free(tenant):
            return
        turn: _Turn = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(tenant, deque()).append(turn)
        self._end_round_later()
        await turn

    def took(self, tenant: Tenant, seconds: float) -> None:
        """Note what a review took of this round."""
        spent = self._spent[tenant] = self._spent.get(tenant, 0.0) + seconds
        self._total += seconds
        if self._total > LITTLE_S:
            self._end_round_later()
        if self._waiting and spent <= MOST_S:
            self._wake(tenant)

    def _end_round_later(self) -> None:
        if not self._is_due:
            self._is_due = True
            asyncio.get_running_loop().call_soon(self._end_round)

    def _end_round(self) -> None:
        """Begin the next round with one review of each tenant that waits; `took` lets the next ones follow it."""
        self._is_due = False
        self._spent.clear()
        self._total = 0.0
        for tenant in [*self._waiting]:
            self._wake(tenant)
        if self._waiting:
            self._end_round_later()

    def _wake(self, tenant: Tenant) -> None:
        """It is the turn of the first that waits."""
        turns = self._waiting.get(tenant)
        while turns:
            turn = turns.popleft()
            if not turn.done():
                turn.set_result(None)
                break
        if not turns:
            self._waiting.pop(tenant, None)
