"""A fair queue: the tenant with the least recent use is next. Turns of one tenant are in order of arrival.

Between namespaces of equal usage, Start-time Fair Queueing decides (Goyal, Vin, Cheng, 1996). Each namespace has a
virtual time, and its work is charged to this time. The namespace with the earliest virtual time is next. A new
namespace begins at the current virtual time. A namespace gets a debt only while other namespaces wait. Users of a
namespace take turns.

One heap has the namespaces, and one heap for each namespace has its tenants. A heap entry is moved back only when it
reaches the top, so a turn does not visit all waiting tenants. (A busy address moves a thousand tenants back in 6 ms.)
Several times in a second, all waiting tenants get new places. Otherwise new light tenants would always go before
tenants that have become light while they waited.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from collections.abc import Callable
from heapq import heapify, heappop, heappush, heapreplace
from itertools import count
from math import inf
from time import monotonic
from typing import Final, Generic, TypeAlias, TypeVar

from webhook.server.usage import BoundedMap, Rank, Tenant, Usage

Turn: TypeAlias = "asyncio.Future[None]"
_Waiting: TypeAlias = tuple[tuple[float, float], int, Tenant]
"""A tenant in the heap of its namespace: the rank of its address and user, a number that rises with each turn."""
_Place: TypeAlias = tuple[Rank, float, int, str]
"""A namespace in the heap: the rank of its first tenant, its virtual finish time, a number, its name."""
_ANEW_S: Final = 0.1
"""Seconds until all waiting tenants get their places anew: less than half of the shortest half-life of use."""
_ANEW_SHARE: Final = 0.05
"""The largest share of the time for new places. A thousand waiting namespaces take about 5 ms."""
_MORE: Final = 3
"""Work advances the virtual clock by its seconds / (waiting namespaces + this number).

With 0, long work of one of two namespaces would delay that namespace by the whole length of the work. With a clock that
does not advance, new namespaces would always go first.
"""


def _accept_any_tenant(_tenant: Tenant) -> bool:
    return True


class FairQueue:
    """The tenants that wait for a turn, on one event loop."""

    def __init__(self, usage: Usage, lost: Callable[[Tenant], None], turn_s: float, most_debt_s: float) -> None:
        """Create an empty queue.

        Args:
            usage: the usage of each tenant.
            lost: called with a tenant if its client disconnects at the moment of its turn.
            turn_s: seconds that each turn costs beyond what is charged for it.
            most_debt_s: the maximum number of seconds of earlier use that count against a namespace when it begins to
                wait.
        """
        self._usage = usage
        self._lost = lost
        self._turn_s = turn_s
        self._most_debt_s = most_debt_s
        self._turns: dict[Tenant, OrderedDict[Turn, None]] = {}
        self._entries: dict[Tenant, _Waiting] = {}
        self._namespaces: dict[str, list[_Waiting]] = {}
        self._heap: list[_Place] = []
        self._places: dict[str, _Place] = {}
        self._numbers = count()
        self._clock_s = 0.0
        self._anew_at = 0.0
        self._ends_s: BoundedMap[str, float] = BoundedMap()
        self._length = 0

    def __len__(self) -> int:
        return self._length

    def __contains__(self, tenant: Tenant) -> bool:
        return bool(self._turns.get(tenant))

    def would_be_next(self, tenant: Tenant) -> bool:
        """Return whether a tenant that arrives now would be served before all waiting tenants."""
        if tenant in self:
            return False
        self._place_anew_if_due()
        if self._first() is None:
            return True
        return (self._usage.rank(tenant, monotonic()), self._virtual_start_s(tenant.namespace)) <= self._heap[0][:2]

    def charge(self, namespace: str, seconds: float) -> None:
        """Charge a namespace for the seconds of its work, whether or not the work waited in the queue."""
        if not self._namespaces:
            self._clock_s += seconds
            return
        self._ends_s.set(namespace, self._virtual_start_s(namespace) + seconds)
        self._clock_s += seconds / (len(self._namespaces) + _MORE)

    async def wait(self, tenant: Tenant, until: float) -> None:
        """Wait until it is the tenant's turn.

        Raises:
            TimeoutError: `until` came first (monotonic clock).
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

    def pop(self, may: Callable[[Tenant], bool] = _accept_any_tenant) -> tuple[Tenant, Turn] | None:
        """Remove and return the next turn, with its tenant; None if no turn is possible now.

        Args:
            may: returns whether a tenant may be next. A refused light tenant is skipped. A refused heavy tenant ends
                the search, because the tenants behind it used as much.
        """
        self._place_anew_if_due()
        passed_over: list[_Waiting] = []
        following = None
        while following is None and (tenant := self._first()) is not None:
            if may(tenant):
                following = tenant, self._take_first_turn(tenant)
            elif self._usage.is_light(tenant, monotonic()):
                passed_over.append(heappop(self._namespaces[tenant.namespace]))
            else:
                break
        for waiting in passed_over:
            self._add_tenant_to_namespace(waiting)
        return following

    # ---- entering

    def _push(self, tenant: Tenant, turn: Turn) -> None:
        turns = self._turns.get(tenant)
        if turns is None:
            turns = self._turns[tenant] = OrderedDict()
            self._add_tenant_to_namespace(self._renew_entry(tenant))
        turns[turn] = None
        self._length += 1

    def _renew_entry(self, tenant: Tenant) -> _Waiting:
        entry = self._entries[tenant] = self._usage.user_rank(tenant, monotonic()), next(self._numbers), tenant
        return entry

    def _add_tenant_to_namespace(self, waiting: _Waiting) -> None:
        tenant = waiting[-1]
        if tenant.namespace not in self._namespaces:
            self._ends_s.set(tenant.namespace, self._virtual_start_s(tenant.namespace))
            self._namespaces[tenant.namespace] = []
        heappush(self._namespaces[tenant.namespace], waiting)
        place = self._places.get(tenant.namespace)
        if place is None or self._usage.rank(tenant, monotonic()) < place[0]:
            self._put_namespace_into_heap(tenant)

    def _put_namespace_into_heap(self, tenant: Tenant) -> None:
        namespace, rank = tenant.namespace, self._usage.rank(tenant, monotonic())
        last = self._places.get(namespace)
        if last is not None and rank < last[0]:  # no credit for the time of light tenants before it
            self._ends_s.set(namespace, max(self._clock_s, self._virtual_start_s(namespace)))
        place = rank, self._virtual_start_s(namespace), next(self._numbers), namespace
        self._places[namespace] = place
        heappush(self._heap, place)

    def _virtual_start_s(self, namespace: str) -> float:
        # a namespace that does not wait has a debt of at most _most_debt_s, and no credit
        ends_s = self._ends_s.get(namespace) or 0.0
        if namespace in self._namespaces:
            return ends_s
        return max(self._clock_s, min(ends_s, self._clock_s + self._most_debt_s))

    def _place_anew_if_due(self) -> None:
        # removes cancelled turns and heap entries that are out of date, too
        started_at = monotonic()
        if started_at < self._anew_at or not self._turns:
            return
        self._heap.clear()
        for heap in self._namespaces.values():
            heap.clear()
        for tenant in [one for one, turns in self._turns.items() if not self._drop_cancelled(turns)]:
            del self._turns[tenant], self._entries[tenant]
        for tenant in sorted(self._turns, key=lambda one: self._entries[one][1]):
            self._namespaces[tenant.namespace].append(self._renew_entry(tenant))
        for namespace in sorted(self._namespaces, key=lambda one: self._places[one][2]):
            if heap := self._namespaces[namespace]:
                heapify(heap)
                self._put_namespace_into_heap(heap[0][-1])
            else:
                del self._namespaces[namespace], self._places[namespace]
        now = monotonic()
        self._anew_at = now + max(_ANEW_S, (now - started_at) / _ANEW_SHARE)

    # ---- leaving

    def _first(self) -> Tenant | None:
        # heap entries that are out of date are removed or moved back first
        while self._heap:
            place = self._heap[0]
            namespace = place[-1]
            if self._places.get(namespace) is not place:
                heappop(self._heap)
            elif (tenant := self._first_of(namespace)) is None:
                heappop(self._heap)
                del self._places[namespace], self._namespaces[namespace]
            elif self._must_move_back(tenant, place):
                heappop(self._heap)
                self._put_namespace_into_heap(tenant)
            else:
                return tenant
        return None

    def _must_move_back(self, tenant: Tenant, place: _Place) -> bool:
        """Return whether the namespace used so much since it entered the heap that it must move back."""
        ends_s = self._ends_s.get(tenant.namespace) or 0.0
        return ends_s > place[1] or self._usage.rank(tenant, monotonic()) > place[0]

    def _first_of(self, namespace: str) -> Tenant | None:
        # entries that are out of date are removed or moved back first
        heap = self._namespaces[namespace]
        while heap:
            tenant = heap[0][-1]
            if self._entries.get(tenant) is not heap[0]:
                heappop(heap)
            elif not self._drop_cancelled(self._turns[tenant]):
                heappop(heap)
                del self._turns[tenant], self._entries[tenant]
            elif self._usage.user_rank(tenant, monotonic()) > heap[0][0]:
                heapreplace(heap, self._renew_entry(tenant))
            else:
                return tenant
        return None

    def _drop_cancelled(self, turns: OrderedDict[Turn, None]) -> bool:
        while turns and next(iter(turns)).done():
            turns.popitem(last=False)
            self._length -= 1
        return bool(turns)

    def _take_first_turn(self, tenant: Tenant) -> Turn:
        # tenant and namespace move behind tenants and namespaces of the same rank
        turn, _ = self._turns[tenant].popitem(last=False)
        self._length -= 1
        self._clock_s = max(self._clock_s, self._heap[0][1])
        self.charge(tenant.namespace, self._turn_s)
        waiting = self._namespaces[tenant.namespace]
        if self._turns[tenant]:
            heapreplace(waiting, self._renew_entry(tenant))
        else:
            heappop(waiting)
            del self._turns[tenant], self._entries[tenant]
        heappop(self._heap)
        if (first := self._first_of(tenant.namespace)) is not None:
            self._put_namespace_into_heap(first)
        else:
            del self._namespaces[tenant.namespace], self._places[tenant.namespace]
        return turn

    def _remove(self, tenant: Tenant, turn: Turn) -> None:
        turns = self._turns.get(tenant)
        if turns is not None and turn in turns:
            del turns[turn]
            self._length -= 1


class FairSlots:
    """A limited number of slots for long work of tenants: workers, and calls to the API server.

    Use an instance on one event loop only.

    Attributes:
        usage: the seconds that tenants used slots.
        running: the tenant of each used slot.
    """

    def __init__(self, max_running: int, turn_s: float, most_debt_s: float, *, keeps_one_for_others: bool) -> None:
        """Create free slots.

        Args:
            max_running: the number of slots.
            turn_s: as for FairQueue.
            most_debt_s: as for FairQueue.
            keeps_one_for_others: whether the last free slot is only for a light tenant with another namespace and
                another user than all running tenants.
        """
        self._max_running = max_running
        self._keeps_one_for_others = keeps_one_for_others and max_running > 1
        self.usage = Usage()
        self._queue = FairQueue(self.usage, self.release, turn_s, most_debt_s)
        self.running: list[Tenant] = []

    @property
    def waiting_count(self) -> int:
        return len(self._queue)

    async def reserve(self, tenant: Tenant, until: float) -> None:
        """Wait for a slot; the caller must `release` it.

        Raises:
            TimeoutError: `until` came first (monotonic clock).
        """
        # the queue is searched only when a slot is released, because a search visits every light tenant
        if self._may_start(tenant):
            self.running.append(tenant)
        else:
            await self._queue.wait(tenant, until)

    def release(self, tenant: Tenant) -> None:
        """Return a slot, and give free slots to the next tenants."""
        self.running.remove(tenant)
        while len(self.running) < self._max_running and (following := self._queue.pop(self._may_start)):
            following_tenant, turn = following
            self.running.append(following_tenant)
            turn.set_result(None)

    def charge(self, tenant: Tenant, seconds: float) -> None:
        self.usage.add(tenant, seconds, monotonic())
        self._queue.charge(tenant.namespace, seconds)

    def _may_start(self, tenant: Tenant) -> bool:
        free = self._max_running - len(self.running)
        if free != 1 or not self._keeps_one_for_others:
            return free > 0
        is_served = any(one.namespace == tenant.namespace or one.user == tenant.user != "" for one in self.running)
        return not is_served and self.usage.is_light(tenant, monotonic())


Item = TypeVar("Item")


class RoundRobin(Generic[Item]):
    """A bounded number of items that wait under the names of their payers. Names take turns."""

    def __init__(self, max_items: int) -> None:
        self._max_items = max_items
        self._waiting: dict[str, deque[Item]] = {}
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def add(self, name: str, item: Item) -> Item | None:
        """Append an item. Above the bound, remove and return the newest item of the name with the most items, or of
        `name` if no other name has more. Otherwise return None.
        """
        own = self._waiting.setdefault(name, deque())
        own.append(item)
        self._count += 1
        if self._count <= self._max_items:
            return None
        self._count -= 1
        longest = max(self._waiting.values(), key=len)
        if len(longest) > len(own):
            return longest.pop()
        dropped = own.pop()
        if not own:
            del self._waiting[name]
        return dropped

    def first(self) -> Item | None:
        return next((items[0] for items in self._waiting.values()), None)

    def pop(self) -> Item | None:
        """Remove and return the next item. The name of the item goes to the end."""
        if not self._waiting:
            return None
        name = next(iter(self._waiting))
        items = self._waiting.pop(name)
        item = items.popleft()
        self._count -= 1
        if items:
            self._waiting[name] = items
        return item

    def remove(self, name: str, item: Item) -> None:
        items = self._waiting.get(name, deque())
        if item in items:
            items.remove(item)
            self._count -= 1
            if not items:
                del self._waiting[name]
