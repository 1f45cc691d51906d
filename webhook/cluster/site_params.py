"""Knows ConfigMaps with parameters in the namespace where claimgate runs, and the site's ConfigMap `claimgate-site`.

Policies, bindings and facts name this namespace `claimgate-system`. When policies are loaded (policy/load.py) and views
are made, the real namespace replaces this name.

claimgate ships a ConfigMap for each policy with parameters, and an upgrade replaces these ConfigMaps. `claimgate-site`
is not shipped, so operators set parameters there: its key `kueue.deny` replaces the key `deny` of ConfigMap `kueue`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from msgspec import structs

from webhook.apimachinery.attributes import JSON, GroupVersionKind
from webhook.cluster.interest import Interest, ObjectScope
from webhook.cluster.lookup import namespace_and_name

OWN_NAMESPACE: Final = "claimgate-system"
"""The default namespace of claimgate. Policies and facts use this name for the real namespace."""
NAME: Final = "claimgate-site"
CONFIG_MAP: Final = GroupVersionKind("", "v1", "ConfigMap")
SITE: Final = Interest(CONFIG_MAP, frozenset(("data",)), scope=ObjectScope(namespace=OWN_NAMESPACE, name=NAME))


def interest_in_own_namespace(interest: Interest, own_namespace: str) -> Interest:
    """Return an interest in which the namespace where claimgate runs replaces `claimgate-system`."""
    if (interest.gvk, interest.scope.namespace) != (CONFIG_MAP, OWN_NAMESPACE):
        return interest
    return replace(interest, scope=structs.replace(interest.scope, namespace=own_namespace))


def is_below_site(gvk: GroupVersionKind, namespace: str, name: str, own_namespace: str) -> bool:
    """Return whether the site's ConfigMap can replace keys of an object."""
    return (gvk.group, gvk.kind, namespace) == ("", CONFIG_MAP.kind, own_namespace) and name not in ("", NAME)


def is_site(obj: JSON, own_namespace: str) -> bool:
    """Return whether an object is the site's ConfigMap."""
    is_config_map = isinstance(obj, dict) and (obj.get("apiVersion"), obj.get("kind")) == ("v1", CONFIG_MAP.kind)
    return is_config_map and namespace_and_name(obj) == (own_namespace, NAME)


def data_of_config_map(obj: JSON) -> Mapping[str, JSON]:
    """Return the values of a ConfigMap by key; empty if `data` is not an object."""
    data = obj.get("data") if isinstance(obj, dict) else None
    return data if isinstance(data, dict) else {}


def site_keys_of(site: JSON, name: str) -> dict[str, JSON]:
    """Return the keys that the site sets for the ConfigMap with this name, with their values."""
    prefix = f"{name}."
    return {
        key.removeprefix(prefix): value
        for key, value in data_of_config_map(site).items()
        if isinstance(key, str) and key.startswith(prefix)
    }


def with_keys(obj: JSON, keys: Mapping[str, JSON]) -> JSON:
    """Return a ConfigMap with other values of some keys."""
    return {**obj, "data": {**(obj.get("data") or {}), **keys}} if keys else obj
