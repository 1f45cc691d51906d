"""Which review the event loop works on next: between two looks at the sockets, each tenant gets little of it.

A hundred connections may bring a hundred reviews of one user at a time, each quick enough for the loop. Whoever comes
behind them would wait for all; so what one tenant brings beyond MOST_S waits for the next round, in its order.

One user may also have a hundred namespaces. So all tenants whose reviews were slow of late get together what one gets,
and take turns; of one that is not known yet counts what its user's reviews took. Knows the loop and tenants, nothing of
reviews.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Final, TypeAlias

from webhook.server.inline_budget import Tenant
from webhook.server.latest import Latest

MOST_S: Final = 0.006
"""Of one tenant in one round, which are several ordinary reviews; a single one may take longer."""
LITTLE_S: Final = 0.001
"""As long as all reviews together took less, the rounds are not told apart: noticing the end of one makes the loop look
at its sockets once more, which costs as much as a tenth of a quick review."""

SLOW_S: Final = 0.0015
"""An ordinary review takes a third of it. It is compared with an average in which the last review counts half: one that
was slow by chance changes nothing."""
_QUICK_S: Final = SLOW_S / 3
"""Whose reviews take less is forgotten, for to note every review costs as much as a fiftieth of one."""
_SLOW: Final[Tenant] = ("", "\0slow")
"""Stands for all tenants whose reviews are slow; no user has such a name."""

_Turn: TypeAlias = "asyncio.Future[None]"


class Turns:
    """Rounds of one event loop: from one look at its sockets to the next."""

    __slots__ = ("_average_s", "_has_slow", "_is_due", "_spent", "_total", "_waiting")

    def __init__(self) -> None:
        self._spent: dict[Tenant, float] = {}
        self._total = 0.0
        self._waiting: dict[Tenant, deque[_Turn]] = {}
        self._is_due = False
        self._average_s: Latest[Tenant, float] = Latest()
        self._has_slow = False  # whether that holds anything: mostly nobody is slow, and nothing is looked up

    def is_free(self, tenant: Tenant) -> bool:
        """Whether a review of a tenant need not wait."""
        payer = self._payer(tenant) if self._has_slow else tenant
        if tenant in self._waiting or (payer is _SLOW and self._first_slow() is not None):
            return False
        return self._spent.get(payer, 0.0) <= MOST_S

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
        if self._has_slow or seconds > SLOW_S:
            self._note(tenant, seconds)
        payer = self._payer(tenant) if self._has_slow else tenant
        spent = self._spent[payer] = self._spent.get(payer, 0.0) + seconds
        self._total += seconds
        if self._total > LITTLE_S:
            self._end_round_later()
        if self._waiting and spent <= MOST_S:
            self._wake(tenant if payer is tenant else self._first_slow())

    def _note(self, tenant: Tenant, seconds: float) -> None:
        """Remember how long reviews of a tenant and its user take, from a slow one of the user until all are quick."""
        averages, user = self._average_s, _user(tenant)
        if seconds <= SLOW_S and averages.get(user) is None:
            return
        made = {one: ((averages.get(one) or 0.0) + seconds) / 2 for one in (tenant, user)}
        if max(made.values()) > _QUICK_S:
            for one, average_s in made.items():
                averages.note(one, average_s)
        else:
            for one in made:
                averages.forget(one)
        self._has_slow = bool(averages)

    def _end_round_later(self) -> None:
        if not self._is_due:
            self._is_due = True
            asyncio.get_running_loop().call_soon(self._end_round)

    def _end_round(self) -> None:
        """Begin the next round with one review of each tenant that waits, and one of all slow ones together.

        `took` lets the next ones follow it.
        """
        self._is_due = False
        self._spent.clear()
        self._total = 0.0
        quick = [tenant for tenant in self._waiting if self._payer(tenant) is tenant]
        for tenant in (*quick, self._first_slow()):
            self._wake(tenant)
        if self._waiting:
            self._end_round_later()

    def _wake(self, tenant: Tenant | None) -> None:
        """It is the turn of the first that waits, and then of other tenants before the next."""
        turns = self._waiting.pop(tenant, None) if tenant else None
        while turns:
            turn = turns.popleft()
            if not turn.done():
                turn.set_result(None)
                break
        if tenant and turns:
            self._waiting[tenant] = turns

    def _payer(self, tenant: Tenant) -> Tenant:
        """Whose share of a round a tenant's reviews take: its own, or that of all slow ones."""
        average_s = self._average_s.get(tenant)
        if average_s is None:
            average_s = self._average_s.get(_user(tenant)) or 0.0
        return _SLOW if average_s > SLOW_S else tenant

    def _first_slow(self) -> Tenant | None:
        """The slow tenant whose turn it is."""
        return next((tenant for tenant in self._waiting if self._payer(tenant) is _SLOW), None)


def _user(tenant: Tenant) -> Tenant:
    """A user in whatever namespace."""
    return "*", tenant[1]
