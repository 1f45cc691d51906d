"""Counts the recent seconds of each address, namespace and user; half of a count is forgotten in each half-life.

Because everybody's use fades at the same rate, who used less than whom changes only when somebody uses more. So a name
is remembered by its *level*, the binary logarithm of its use as it would be at the start of the clock: levels compare
without regard to the time.
"""

from __future__ import annotations

from math import exp2, floor, inf, log, log2
from typing import Final, TypeAlias

from webhook.server.bounded_map import BoundedMap
from webhook.server.tenants import Tenant

HALF_LIFE_S: Final = 2.0
"""Of workers and of questions, which take up to seconds: long enough to outlast the pauses of an attacker, short enough
that a large rollout is forgotten in ten seconds."""
LIGHT_SHARE: Final = 0.125
"""A tenant that uses less than this share of the loop or of a worker is light: 300 ordinary reviews a second."""
Rank: TypeAlias = tuple[float, float, float]
"""Who is lower goes first: by the address, then the larger of namespace and user, then the user; -inf for each that is
light."""
_STEPS: Final = 4
"""Steps in a doubling of use. Tenants whose use differs by less have the same rank and take turns."""


class Usage:
    """Recent seconds by address, namespace and user, for a bounded number of names; one thread only."""

    __slots__ = ("_addresses", "_half_life_s", "_light_level", "_namespaces", "_users")

    def __init__(self, half_life_s: float = HALF_LIFE_S) -> None:
        """Know nobody yet; half of a count is forgotten in `half_life_s` seconds."""
        self._half_life_s = half_life_s
        self._light_level = log2(LIGHT_SHARE * half_life_s / log(2))  # which steady use of LIGHT_SHARE reaches
        self._addresses: BoundedMap[str, float] = BoundedMap()
        self._namespaces: BoundedMap[str, float] = BoundedMap()
        self._users: BoundedMap[str, float] = BoundedMap()

    def add(self, tenant: Tenant, seconds: float, now: float) -> None:
        """Note seconds that a tenant used, at a moment of the monotonic clock."""
        if seconds <= 0:
            return
        start = now / self._half_life_s
        _add_decaying_seconds(self._namespaces, tenant.namespace, seconds, start)
        if tenant.user:
            _add_decaying_seconds(self._users, tenant.user, seconds, start)
        if tenant.address:
            _add_decaying_seconds(self._addresses, tenant.address, seconds, start)

    def is_light(self, tenant: Tenant, now: float) -> bool:
        """Return whether neither the namespace nor the user used much recently."""
        _, namespace, user = self._levels(tenant)
        return max(namespace, user) < self._light_limit(now)

    def next_lighter_at(self, tenant: Tenant, now: float) -> float:
        """Return the moment of the monotonic clock at which the next of address, namespace and user becomes light, if
        they use nothing until then; infinite where all are. It is a millisecond late, so that rounding never makes it
        too early.
        """
        limit = self._light_limit(now)
        heavy = min((level for level in self._levels(tenant) if level >= limit), default=inf)
        return (heavy - self._light_level) * self._half_life_s + 0.001

    def rank(self, tenant: Tenant, now: float) -> Rank:
        """Return a tenant's rank.

        All light tenants have the same. Otherwise somebody who sends for the first time would go before everybody until
        the use of both is the same. The address is first: whoever sends reviews past the API server names other
        namespaces and users as often as they like.
        """
        limit = self._light_limit(now)
        address, namespace, user = self._levels(tenant)
        of_address = -inf if address < limit else _rounded_down_level(address)
        most = max(namespace, user)
        if most < limit:
            return of_address, -inf, -inf
        return of_address, _rounded_down_level(most), _rounded_down_level(user)

    def user_rank(self, tenant: Tenant, now: float) -> tuple[float, float]:
        """Return the rank of a user and its address among those of the same namespace; all light ones have the same."""
        limit = self._light_limit(now)
        address, _, user = self._levels(tenant)
        return (
            -inf if address < limit else _rounded_down_level(address),
            -inf if user < limit else _rounded_down_level(user),
        )

    def _light_limit(self, now: float) -> float:
        return self._light_level + now / self._half_life_s

    def _levels(self, tenant: Tenant) -> tuple[float, float, float]:
        address, namespace = self._addresses.get(tenant.address), self._namespaces.get(tenant.namespace)
        user = self._users.get(tenant.user)
        return (
            -inf if address is None else address,
            -inf if namespace is None else namespace,
            -inf if user is None else user,
        )


def _add_decaying_seconds(levels: BoundedMap[str, float], name: str, seconds: float, start: float) -> None:
    level = levels.get(name)
    used = seconds if level is None else seconds + exp2(max(level - start, -1000.0))
    levels.set(name, log2(used) + start)


def _rounded_down_level(level: float) -> float:
    return level if level == -inf else floor(level * _STEPS)
