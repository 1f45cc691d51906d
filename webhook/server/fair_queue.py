"""Who waits, and who is next: the tenant that used least of late, and within a tenant whoever came first.

Of tenants that used equally little, as all light ones did, namespaces take turns: however many users send for objects
of one namespace, those of another wait for one of them at a time. Each entry of a namespace belongs to a round after
that of its last one, and the lowest round is next.

A binary heap over tenants. A tenant whose rank rose while it waited is put back when it comes to the top, so that
nobody walks over all that wait. Knows tenants and futures, nothing of what they wait for.
"""

from __future__ import annotations

import asyncio
from collections import Counter, OrderedDict
from collections.abc import Callable
from heapq import heappop, heappush, heapreplace
from itertools import count
from math import inf
from time import monotonic
from typing import TypeAlias

from webhook.server.tenants import Tenant
from webhook.server.usage import Usage

Turn: TypeAlias = "asyncio.Future[None]"
_Entry: TypeAlias = tuple[tuple[float, float], int, int, Tenant]


def _anybody(_tenant: Tenant) -> bool:
    return True


class FairQueue:
    """Turns that were not given yet; for one event loop."""

    __slots__ = ("_heap", "_last_rounds", "_length", "_lost", "_numbers", "_round", "_tenants", "_turns", "_usage")

    def __init__(self, usage: Usage, lost: Callable[[Tenant], None]) -> None:
        """Begin empty.

        Args:
            usage: who used how much.
            lost: called with the tenant of a turn that was given to somebody who had just gone away.
        """
        self._usage = usage
        self._lost = lost
        self._turns: dict[Tenant, OrderedDict[Turn, None]] = {}
        self._heap: list[_Entry] = []
        self._numbers = count()
        self._round = 0
        self._last_rounds: dict[str, int] = {}
        self._tenants: Counter[str] = Counter()
        self._length = 0

    def __len__(self) -> int:
        return self._length

    def __contains__(self, tenant: Tenant) -> bool:
        return bool(self._turns.get(tenant))

    async def wait(self, tenant: Tenant, until: float) -> None:
        """Wait for a turn.

        Raises:
            TimeoutError: a moment of the monotonic clock came first.
        """
        turn: Turn = asyncio.get_running_loop().create_future()
        self._push(tenant, turn)
        try:
            async with asyncio.timeout(None if until == inf else until - monotonic()):
                await turn
        except BaseException:
            if turn.done() and not turn.cancelled():
                self._lost(tenant)
            self._remove(tenant, turn)
            raise

    def pop(self, may: Callable[[Tenant], bool] = _anybody) -> tuple[Tenant, Turn] | None:
        """The turn that is next, no longer in the queue.

        Args:
            may: says of a tenant whether it may be next. Light ones that may not are passed over; a heavy one ends the
                search, since those behind it used as much.
        """
        passed_over: list[_Entry] = []
        following = None
        while following is None and (tenant := self._first()) is not None:
            if may(tenant):
                following = tenant, self._take(tenant)
            elif self._usage.is_light(tenant, monotonic()):
                passed_over.append(heappop(self._heap))
            else:
                break
        for entry in passed_over:
            heappush(self._heap, entry)
        return following

    def _push(self, tenant: Tenant, turn: Turn) -> None:
        turns = self._turns.get(tenant)
        if turns is None:
            turns = self._turns[tenant] = OrderedDict()
            self._tenants[tenant.namespace] += 1
            heappush(self._heap, self._entry(tenant))
        turns[turn] = None
        self._length += 1

    def _entry(self, tenant: Tenant) -> _Entry:
        following = max(self._round, self._last_rounds.get(tenant.namespace, -1) + 1)
        self._last_rounds[tenant.namespace] = following
        return self._usage.rank(tenant, monotonic()), following, next(self._numbers), tenant

    def _forget(self, tenant: Tenant) -> None:
        """Nobody waits for a tenant any more, nor for a namespace of which it was the last."""
        del self._turns[tenant]
        self._tenants[tenant.namespace] -= 1
        if not self._tenants[tenant.namespace]:
            del self._tenants[tenant.namespace], self._last_rounds[tenant.namespace]

    def _first(self) -> Tenant | None:
        """The tenant at the top, once that is one with turns and in its place."""
        while self._heap:
            rank, _, _, tenant = self._heap[0]
            if not self._drop_cancelled(self._turns[tenant]):
                heappop(self._heap)
                self._forget(tenant)
            elif self._usage.rank(tenant, monotonic()) > rank:
                heapreplace(self._heap, self._entry(tenant))
            else:
                return tenant
        return None

    def _drop_cancelled(self, turns: OrderedDict[Turn, None]) -> bool:
        """Whether a turn is left that somebody still waits for; one that was just cancelled is not removed yet."""
        while turns and next(iter(turns)).done():
            turns.popitem(last=False)
            self._length -= 1
        return bool(turns)

    def _take(self, tenant: Tenant) -> Turn:
        """The first turn of the tenant at the top, which goes behind its equals."""
        turn, _ = self._turns[tenant].popitem(last=False)
        self._length -= 1
        self._round = max(self._round, self._heap[0][1])
        heapreplace(self._heap, self._entry(tenant))
        return turn

    def _remove(self, tenant: Tenant, turn: Turn) -> None:
        turns = self._turns.get(tenant)
        if turns is not None and turn in turns:
            del turns[turn]
            self._length -= 1
