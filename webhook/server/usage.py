"""Counts the recent seconds of each namespace and each user; half of a count is forgotten every HALF_LIFE_S.

Because everybody's use fades at the same rate, who used less than whom changes only when somebody uses more. So a name
is remembered by its *level*, the binary logarithm of its use as it would be at the start of the clock: levels compare
without regard to the time.
"""

from __future__ import annotations

from math import exp2, floor, inf, log, log2
from typing import Final

from webhook.server.bounded_map import BoundedMap
from webhook.server.tenants import Tenant

HALF_LIFE_S: Final = 2.0
"""Long enough to outlast the pauses of an attacker, short enough that a large rollout is forgotten in ten seconds."""
LIGHT_SHARE: Final = 0.125
"""A tenant that uses less than this share of the loop or of a worker is light: 300 ordinary reviews a second."""
_LIGHT_LEVEL: Final = log2(LIGHT_SHARE * HALF_LIFE_S / log(2))
"""The level that steady use of LIGHT_SHARE reaches while half of it fades in each half-life."""
_STEPS: Final = 4
"""Steps in a doubling of use. Tenants whose use differs by less have the same rank and take turns."""


class Usage:
    """Recent seconds by namespace and by user, for a bounded number of names; one thread only."""

    __slots__ = ("_namespaces", "_users")

    def __init__(self) -> None:
        self._namespaces: BoundedMap[str, float] = BoundedMap()
        self._users: BoundedMap[str, float] = BoundedMap()

    def add(self, tenant: Tenant, seconds: float, now: float) -> None:
        """Note seconds that a tenant used, at a moment of the monotonic clock."""
        if seconds <= 0:
            return
        _add_decaying_seconds(self._namespaces, tenant.namespace, seconds, now)
        if tenant.user:
            _add_decaying_seconds(self._users, tenant.user, seconds, now)

    def is_light(self, tenant: Tenant, now: float) -> bool:
        """Return whether neither the namespace nor the user used much recently."""
        return max(self._levels(tenant)) < _light_level_limit(now)

    def light_at(self, tenant: Tenant) -> float:
        """Return the moment of the monotonic clock from which a tenant is light, if it uses nothing until then; a
        millisecond late, so that rounding never makes it too early.
        """
        return (max(self._levels(tenant)) - _LIGHT_LEVEL) * HALF_LIFE_S + 0.001

    def rank(self, tenant: Tenant, now: float) -> tuple[float, float]:
        """Return a tenant's rank, which is lower the less it used: the larger of namespace and user, then the user.

        All light tenants have the same. Otherwise somebody who sends for the first time would go before everybody until
        the use of both is the same.
        """
        namespace, user = self._levels(tenant)
        most = max(namespace, user)
        return (
            (-inf, -inf) if most < _light_level_limit(now) else (_rounded_down_level(most), _rounded_down_level(user))
        )

    def user_rank(self, tenant: Tenant, now: float) -> float:
        """Return the rank of a user among those of the same namespace; all light users have the same."""
        level = self._users.get(tenant.user)
        return -inf if level is None or level < _light_level_limit(now) else _rounded_down_level(level)

    def _levels(self, tenant: Tenant) -> tuple[float, float]:
        namespace, user = self._namespaces.get(tenant.namespace), self._users.get(tenant.user)
        return -inf if namespace is None else namespace, -inf if user is None else user


def _add_decaying_seconds(levels: BoundedMap[str, float], name: str, seconds: float, now: float) -> None:
    start, level = now / HALF_LIFE_S, levels.get(name)
    used = seconds if level is None else seconds + exp2(max(level - start, -1000.0))
    levels.set(name, log2(used) + start)


def _light_level_limit(now: float) -> float:
    return _LIGHT_LEVEL + now / HALF_LIFE_S


def _rounded_down_level(level: float) -> float:
    return level if level == -inf else floor(level * _STEPS)
