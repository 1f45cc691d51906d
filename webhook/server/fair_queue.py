"""Who waits, and who is next: the tenant that used least of late, and within a tenant whoever came first.

Of namespaces whose tenants used equally little, as all light ones did, the one is next that was given least time while
others waited (Goyal, Vin, Cheng, Start-time Fair Queueing, 1996). A namespace is charged what its work took, on a clock
of the queue that shows where whoever had the last turn began. So one of which each piece of work is long waits for as
much of the others, one that comes anew begins where the clock stands, and debts are only made while somebody waits.
Users of a namespace take turns.

Two levels of binary heaps: of namespaces, and of the tenants of each. What changed while it waited is put back when it
comes to the top, so that nobody walks over all that wait. Knows tenants and futures, nothing of what they wait for.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable
from heapq import heapify, heappop, heappush, heapreplace
from itertools import count
from math import inf
from time import monotonic
from typing import Final, TypeAlias

from webhook.server.bounded_map import BoundedMap
from webhook.server.tenants import Tenant
from webhook.server.usage import Usage

Turn: TypeAlias = "asyncio.Future[None]"
_Waiting: TypeAlias = tuple[float, int, Tenant]
"""A tenant in its namespace: the rank of its user, and a number that rises with each turn."""
_Place: TypeAlias = tuple[tuple[float, float], float, int, str]
"""A namespace: the rank of its first tenant, when its last work ends on the clock of the queue, a number, its name."""
_SPARE_PLACES: Final = 64
_LAG: Final = 4
"""The clock goes on at least at this part of the speed at which each that waits is served. Otherwise it would stand for
as long as ever new namespaces come, and they would go before all others."""


def _anybody(_tenant: Tenant) -> bool:
    return True


class FairQueue:
    """Turns that were not given yet; for one event loop."""

    __slots__ = (
        *("_clock_s", "_ends_s", "_heap", "_length", "_lost", "_most_debt_s", "_namespaces", "_numbers", "_places"),
        *("_turn_s", "_turns", "_usage"),
    )

    def __init__(self, usage: Usage, lost: Callable[[Tenant], None], turn_s: float, most_debt_s: float = inf) -> None:
        """Begin empty.

        Args:
            usage: who used how much.
            lost: called with the tenant of a turn that was given to somebody who had just gone away.
            turn_s: seconds that each turn costs beyond what is charged for it.
            most_debt_s: how long, on the clock of the queue, others go before a namespace that comes to wait,
                whatever it was charged before.
        """
        self._usage = usage
        self._lost = lost
        self._turn_s = turn_s
        self._most_debt_s = most_debt_s
        self._turns: dict[Tenant, OrderedDict[Turn, None]] = {}
        self._namespaces: dict[str, list[_Waiting]] = {}
        self._heap: list[_Place] = []
        self._places: dict[str, _Place] = {}
        self._numbers = count()
        self._clock_s = 0.0
        self._ends_s: BoundedMap[str, float] = BoundedMap()
        self._length = 0

    def __len__(self) -> int:
        return self._length

    def __contains__(self, tenant: Tenant) -> bool:
        return bool(self._turns.get(tenant))

    def is_next(self, tenant: Tenant) -> bool:
        """Whether nobody who waits would go before a tenant that comes now."""
        if tenant in self:
            return False
        if self._first() is None:
            return True
        return (self._usage.rank(tenant, monotonic()), self._starts_s(tenant.namespace)) <= self._heap[0][:2]

    def charge(self, namespace: str, seconds: float) -> None:
        """Note what the work of a namespace took, whether or not it waited for it."""
        if not self._namespaces:
            self._clock_s += seconds
            return
        self._ends_s.set(namespace, self._starts_s(namespace) + seconds)
        self._clock_s += seconds / (_LAG * len(self._namespaces))

    async def wait(self, tenant: Tenant, until: float) -> None:
        """Wait for a turn.

        Args:
            tenant: whose turn it will be.
            until: a moment of the monotonic clock.

        Raises:
            TimeoutError: the moment came first.
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
        passed_over: list[_Waiting] = []
        following = None
        while following is None and (tenant := self._first()) is not None:
            if may(tenant):
                following = tenant, self._take(tenant)
            elif self._usage.is_light(tenant, monotonic()):
                passed_over.append(heappop(self._namespaces[tenant.namespace]))
            else:
                break
        for waiting in passed_over:
            self._add(waiting)
        return following

    # ---- entering

    def _push(self, tenant: Tenant, turn: Turn) -> None:
        turns = self._turns.get(tenant)
        if turns is None:
            turns = self._turns[tenant] = OrderedDict()
            self._add(self._waiting(tenant))
        turns[turn] = None
        self._length += 1

    def _waiting(self, tenant: Tenant) -> _Waiting:
        return self._usage.user_rank(tenant, monotonic()), next(self._numbers), tenant

    def _add(self, waiting: _Waiting) -> None:
        """Let a tenant wait in its namespace, which goes up where this one used less than the others there."""
        tenant = waiting[-1]
        if tenant.namespace not in self._namespaces:
            self._ends_s.set(tenant.namespace, self._starts_s(tenant.namespace))
            self._namespaces[tenant.namespace] = []
        heappush(self._namespaces[tenant.namespace], waiting)
        place = self._places.get(tenant.namespace)
        if place is None or self._usage.rank(tenant, monotonic()) < place[0]:
            self._put(tenant)

    def _put(self, tenant: Tenant) -> None:
        """Give a namespace its place by its first tenant; a place that it had is dropped when it comes to the top."""
        namespace, rank = tenant.namespace, self._usage.rank(tenant, monotonic())
        last = self._places.get(namespace)
        if last is not None and rank < last[0]:  # it waited behind all light ones, and has no claim to what they had
            self._ends_s.set(namespace, max(self._clock_s, self._starts_s(namespace)))
        place = rank, self._starts_s(namespace), next(self._numbers), namespace
        self._places[namespace] = place
        if len(self._heap) > 2 * len(self._places) + _SPARE_PLACES:
            self._heap = list(self._places.values())
            heapify(self._heap)
        else:
            heappush(self._heap, place)

    def _starts_s(self, namespace: str) -> float:
        """When the next work of a namespace begins on the clock of the queue; of one that waits, after its last."""
        ends_s = self._ends_s.get(namespace) or 0.0
        if namespace in self._namespaces:
            return ends_s
        return max(self._clock_s, min(ends_s, self._clock_s + self._most_debt_s))

    # ---- leaving

    def _first(self) -> Tenant | None:
        """The tenant that is next, once its namespace is one with turns and in its place."""
        while self._heap:
            place = self._heap[0]
            namespace = place[-1]
            if self._places.get(namespace) is not place:
                heappop(self._heap)
            elif (tenant := self._first_of(namespace)) is None:
                heappop(self._heap)
                del self._places[namespace], self._namespaces[namespace]
            elif self._is_behind(tenant, place):
                heappop(self._heap)
                self._put(tenant)
            else:
                return tenant
        return None

    def _is_behind(self, tenant: Tenant, place: _Place) -> bool:
        """Whether a namespace used more since it was given its place."""
        ends_s = self._ends_s.get(tenant.namespace) or 0.0
        return ends_s > place[1] or self._usage.rank(tenant, monotonic()) > place[0]

    def _first_of(self, namespace: str) -> Tenant | None:
        """The tenant of a namespace that is next, once that is one with turns and in its place."""
        heap = self._namespaces[namespace]
        while heap:
            rank, number, tenant = heap[0]
            if not self._drop_cancelled(self._turns[tenant]):
                heappop(heap)
                del self._turns[tenant]
            elif (ranked := self._usage.user_rank(tenant, monotonic())) > rank:
                heapreplace(heap, (ranked, number, tenant))
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
        """The first turn of the tenant at the top, which goes behind its equals, as its namespace does."""
        turn, _ = self._turns[tenant].popitem(last=False)
        self._length -= 1
        self._clock_s = max(self._clock_s, self._heap[0][1])
        self.charge(tenant.namespace, self._turn_s)
        waiting = self._namespaces[tenant.namespace]
        if self._turns[tenant]:
            heapreplace(waiting, self._waiting(tenant))
        else:
            heappop(waiting)
            del self._turns[tenant]
        heappop(self._heap)
        if waiting:
            self._put(waiting[0][-1])
        else:
            del self._namespaces[tenant.namespace], self._places[tenant.namespace]
        return turn

    def _remove(self, tenant: Tenant, turn: Turn) -> None:
        turns = self._turns.get(tenant)
        if turns is not None and turn in turns:
            del turns[turn]
            self._length -= 1
