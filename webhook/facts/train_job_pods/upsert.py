"""Adds entries to lists of a pod as Trainer does: one with the same key is replaced in its place, others are appended.

Source: kubeflow/trainer@8c0f5059bd51 pkg/apply/apply.go. Lists are never changed; a new one is made.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from webhook.attributes import JSON


def upsert_env(container: dict[str, Any], env: Sequence[JSON], then: Sequence[JSON] = ()) -> bool:
    """Add variables, then others (UpsertEnvVars); return whether the others leave the first ones unchanged."""
    return _upsert_entries(container, "env", env, "name", then)


def upsert_mounts(container: dict[str, Any], *mounts: JSON) -> None:
    """Add volume mounts, each in place of the one with its path (UpsertVolumeMounts)."""
    _upsert_entries(container, "volumeMounts", mounts, "mountPath")


def upsert_volumes(pod: dict[str, Any], *volumes: JSON) -> None:
    """Add volumes, each in place of the one with its name (UpsertVolumes)."""
    _upsert_entries(pod, "volumes", volumes, "name")


def upsert_port(container: dict[str, Any], port: int) -> None:
    """Add a port; it replaces the first one with its number, or without a name (UpsertPort)."""
    made = list(container.get("ports", []))
    same = (place for place, each in enumerate(made) if each.get("containerPort") == port or "name" not in each)
    place = next(same, len(made))
    made[place : place + 1] = [{"containerPort": port}]
    container["ports"] = made


def _upsert_entries(
    into: dict[str, Any], field: str, added: Sequence[JSON], key: str, then: Sequence[JSON] = ()
) -> bool:
    """Add entries in one pass, fast if all are new, because an environment may have hundreds of variables."""
    before: Sequence[Mapping[str, JSON]] = into.get(field, ())
    asked, others = _keys_of_entries(added, key), _keys_of_entries(then, key)
    names = {*asked, *others}
    is_new = len(names) == len(asked) + len(others) and names.isdisjoint(_keys_of_entries(before, key))
    if names:
        into[field] = [*before, *added, *then] if is_new else _entries_with_replacements(before, [*added, *then], key)
    return is_new or set(others).isdisjoint(asked)


def _keys_of_entries(entries: Sequence[Mapping[str, JSON]], key: str) -> list[JSON]:
    """Return the keys of entries, None for an entry without one."""
    try:
        return [each[key] for each in entries]
    except KeyError:
        return [each.get(key) for each in entries]


def _entries_with_replacements(before: Sequence[Mapping[str, JSON]], added: Sequence[JSON], key: str) -> list[JSON]:
    """Return entries with added ones: of entries with the same key, the first is replaced and the others stay."""
    places = {each.get(key): place for place, each in reversed([*enumerate(before)])}
    made = list(before)
    for each in added:
        place = places.setdefault(each.get(key), len(made))
        made[place : place + 1] = [each]
    return made
