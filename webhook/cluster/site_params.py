"""ConfigMap `claimgate-site`: what an operator sets of the shipped parameters, where no upgrade changes it.

claimgate ships a ConfigMap for each policy with parameters, and applies it at each upgrade. Nobody ships or applies
`claimgate-site`. Its key `kueue.deny` counts in the place of the key `deny` of ConfigMap `kueue` in the same namespace.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from webhook.apimachinery.attributes import JSON, GroupVersionKind
from webhook.cluster.interest import Interest, ObjectScope
from webhook.cluster.lookup import namespace_and_name

NAMESPACE: Final = "claimgate-system"
NAME: Final = "claimgate-site"
_CONFIG_MAP: Final = GroupVersionKind("", "v1", "ConfigMap")
SITE: Final = Interest(_CONFIG_MAP, frozenset(("data",)), scope=ObjectScope(namespace=NAMESPACE, name=NAME))


def is_below_site(gvk: GroupVersionKind, namespace: str, name: str) -> bool:
    """Return whether keys of the site's ConfigMap may count in the place of those of an object."""
    return (gvk.group, gvk.kind, namespace) == ("", _CONFIG_MAP.kind, NAMESPACE) and name not in ("", NAME)


def is_site(obj: JSON) -> bool:
    """Return whether an object is the site's ConfigMap."""
    is_config_map = isinstance(obj, dict) and (obj.get("apiVersion"), obj.get("kind")) == ("v1", _CONFIG_MAP.kind)
    return is_config_map and namespace_and_name(obj) == (NAMESPACE, NAME)


def data_of_site(site: JSON) -> Mapping[str, JSON]:
    """Return all keys of the site's ConfigMap, also where a file has anything else there."""
    data = site.get("data") if isinstance(site, dict) else None
    return data if isinstance(data, dict) else {}


def site_keys_of(site: JSON, name: str) -> dict[str, JSON]:
    """Return the keys that the site sets of the ConfigMap with this name."""
    prefix = f"{name}."
    return {
        key.removeprefix(prefix): value
        for key, value in data_of_site(site).items()
        if isinstance(key, str) and key.startswith(prefix)
    }


def with_keys(obj: JSON, keys: Mapping[str, JSON]) -> JSON:
    """Return a ConfigMap with other values of some keys."""
    return {**obj, "data": {**(obj.get("data") or {}), **keys}} if keys else obj
