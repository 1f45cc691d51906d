"""Counts what each address, namespace and user used in recent seconds; a count halves in each half-life.

A request is charged to the client's address, to the namespace of the object, and to the user. The address is first: API
servers are few, and any other client may name any namespace and user. The namespace is before the user, because
controllers in kube-system create the Pods of all namespaces. kube-apiserver also divides these controllers by namespace
(k8s.io/apiserver v0.36 pkg/apis/flowcontrol/bootstrap/default.go). All service accounts of a namespace are one user,
because a user may create hundreds of service accounts.

All counts fade at the same rate, so two names change their order only when one is used. A name is stored with its
*level*: the binary logarithm of its use, projected back to the start of the clock. Levels can be compared at any time.
Clients can invent names, so the maps are bounded and drop their oldest entries.
"""

from __future__ import annotations

from collections import OrderedDict
from math import exp2, floor, inf, log, log2
from sys import getsizeof
from typing import Final, Generic, NamedTuple, TypeAlias, TypeVar

from webhook.apimachinery.attributes import Attributes

Key = TypeVar("Key", bound="str | tuple[str, ...]")
Value = TypeVar("Value")
MAX_ENTRIES: Final = 4096
"""More than the namespaces of a cluster with traffic in the remembered seconds."""
MAX_KEY_BYTES: Final = 512 * 1024
"""The maximum number of bytes of all names: 4,096 names of 79 characters, or fewer longer names."""


class BoundedMap(Generic[Key, Value]):
    """A map of at most MAX_ENTRIES, with keys of at most MAX_KEY_BYTES together; not thread-safe.

    Above a bound, the entries that were set longest ago are dropped.
    """

    __slots__ = ("_entries", "_key_bytes")

    def __init__(self) -> None:
        self._entries: OrderedDict[Key, Value] = OrderedDict()
        self._key_bytes = 0

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, key: Key) -> Value | None:
        return self._entries.get(key)

    def discard(self, key: Key) -> None:
        if key in self._entries:
            del self._entries[key]
            self._key_bytes -= _bytes_of_key(key)

    def set(self, key: Key, value: Value) -> None:
        if key not in self._entries:
            self._key_bytes += _bytes_of_key(key)
        self._entries[key] = value
        self._entries.move_to_end(key)
        while len(self._entries) > MAX_ENTRIES or self._key_bytes > MAX_KEY_BYTES:
            oldest, _ = self._entries.popitem(last=False)
            self._key_bytes -= _bytes_of_key(oldest)


def _bytes_of_key(key: str | tuple[str, ...]) -> int:
    return getsizeof(key) if isinstance(key, str) else sum(map(getsizeof, key))


_SERVICE_ACCOUNT: Final = "system:serviceaccount:"
_CONTROLLERS: Final = ("system:serviceaccount:kube-system", "system:kube-controller-manager", "system:kube-scheduler")
_PROBES: Final = ("/healthz", "/readyz")
PAGES: Final = frozenset((*_PROBES, "/metrics", "/version", "/debug/policies", "/docs", "/openapi.json"))
"""The paths that are answered in addition to reviews."""
_LONGEST_NAME: Final = 512
"""The maximum number of remembered characters of a user name; a service account has at most 340 with its namespace."""


class Tenant(NamedTuple):
    """The payer of a request.

    Attributes:
        namespace: "" for objects without a namespace.
        user: "" if only the namespace counts.
        address: the client's; "" if it does not count.
    """

    namespace: str
    user: str
    address: str = ""


def tenant_of(attributes: Attributes | None, address: str) -> Tenant:
    """Return the tenant of a request. `attributes` is None if the request could not be read."""
    if attributes is None:
        return Tenant("", "", address)
    user = attributes.user_info.username[:_LONGEST_NAME]
    if user.startswith(_SERVICE_ACCOUNT):
        user = user[: user.find(":", len(_SERVICE_ACCOUNT))]
    return Tenant(attributes.namespace, "" if user in _CONTROLLERS else user, address)


def page_tenant(path: str, address: str) -> Tenant:
    """Return the tenant of a request that is not a review. The namespace of this tenant is the path, because no
    namespace has a slash.

    All unknown paths share one namespace, because a client can invent any number of paths of 4 KB.

    Each address has an account for each probe. So a kubelet is not delayed by a flood of probes from another address,
    or by other requests from its own address.
    """
    if path in _PROBES:
        return Tenant(f"/{path} {address}", "", f"/{path} {address}")
    return Tenant(f"/{path}" if path in PAGES else "//", address, address)


def handshake_tenant(address: str) -> Tenant:
    """Return the tenant of a TLS handshake. Each address has a separate tenant, so that no address keeps out other
    addresses.

    Later requests of the address are charged to another tenant. All handshakes are charged to one address too, so that
    hundreds of addresses that connect without end do not go before reviews.
    """
    return Tenant(f"/handshake {address}", "", "/handshakes")


HALF_LIFE_S: Final = 2.0
"""The half-life for workers and for questions to the API server. This time is longer than the pauses of an attacker,
and a large rollout is forgotten in ten seconds.
"""
LIGHT_SHARE: Final = 0.125
"""The share of the event loop or of a worker up to which a tenant is light: 300 ordinary reviews a second."""
Rank: TypeAlias = tuple[float, float, float]
"""The lower rank goes first. Three levels: the address, the larger of namespace and user, the user; -inf if light."""
_STEPS: Final = 4
"""Steps in a doubling of use; tenants of one step have the same rank and take turns."""


class Usage:
    """Recent seconds by address, namespace and user. Use an instance in one thread only."""

    __slots__ = ("_addresses", "_half_life_s", "_light_level", "_namespaces", "_users")

    def __init__(self, half_life_s: float = HALF_LIFE_S) -> None:
        self._half_life_s = half_life_s
        self._light_level = log2(LIGHT_SHARE * half_life_s / log(2))  # the count of a steady use of LIGHT_SHARE
        self._addresses: BoundedMap[str, float] = BoundedMap()
        self._namespaces: BoundedMap[str, float] = BoundedMap()
        self._users: BoundedMap[str, float] = BoundedMap()

    def add(self, tenant: Tenant, seconds: float, now: float) -> None:
        """Note seconds of a tenant; `now` is a moment of the monotonic clock."""
        if seconds <= 0:
            return
        start = now / self._half_life_s
        _add_decaying_seconds(self._namespaces, tenant.namespace, seconds, start)
        if tenant.user:
            _add_decaying_seconds(self._users, tenant.user, seconds, start)
        if tenant.address:
            _add_decaying_seconds(self._addresses, tenant.address, seconds, start)

    def is_light(self, tenant: Tenant, now: float) -> bool:
        """Return whether the namespace and the user used little recently."""
        _, namespace, user = self._levels(tenant)
        return max(namespace, user) < self._light_limit(now)

    def rank(self, tenant: Tenant, now: float) -> Rank:
        """Return a tenant's rank. All light tenants with light addresses have the same rank.

        Otherwise a new tenant would go first until it has used as much as earlier tenants.
        """
        limit = self._light_limit(now)
        address, namespace, user = self._levels(tenant)
        of_address = -inf if address < limit else _rounded_down_level(address)
        higher = max(namespace, user)
        if higher < limit:
            return of_address, -inf, -inf
        return of_address, _rounded_down_level(higher), _rounded_down_level(user)

    def user_rank(self, tenant: Tenant, now: float) -> tuple[float, float]:
        """Return the rank of an address and a user within a namespace; light addresses and light users share a rank."""
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
