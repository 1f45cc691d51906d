"""Entries that Trainer puts into lists of a pod: one of the same key is replaced in its place, others are appended.

Source: kubeflow/trainer@8c0f5059bd51 pkg/apply/apply.go. Lists are never changed; a new one is made.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import itemgetter
from typing import Any

from webhook.attributes import JSON


def upsert_env(container: dict[str, Any], env: Sequence[JSON]) -> None:
    """UpsertEnvVars: variables by name."""
    _upsert(container, "env", env, "name")


def upsert_mounts(container: dict[str, Any], *mounts: JSON) -> None:
    """UpsertVolumeMounts: mounts by path."""
    _upsert(container, "volumeMounts", mounts, "mountPath")


def upsert_volumes(pod: dict[str, Any], *volumes: JSON) -> None:
    """UpsertVolumes: volumes by name."""
    _upsert(pod, "volumes", volumes, "name")


def upsert_port(container: dict[str, Any], port: int) -> None:
    """UpsertPort: a port without a name replaces the first one of its number, or without a name."""
    made = list(container.get("ports", []))
    same = (place for place, each in enumerate(made) if each.get("containerPort") == port or "name" not in each)
    place = next(same, len(made))
    made[place : place + 1] = [{"containerPort": port}]
    container["ports"] = made


def _upsert(into: dict[str, Any], field: str, added: Sequence[JSON], key: str) -> None:
    if not added:
        return
    before: Sequence[Mapping[str, JSON]] = into.get(field, ())
    by_key = dict(zip(_keys(before, key), before, strict=True))
    if len(by_key) == len(before):
        by_key.update(zip(_keys(added, key), added, strict=True))
        into[field] = list(by_key.values())
    else:
        into[field] = _replaced(before, added, key)


def _keys(entries: Sequence[Mapping[str, JSON]], key: str) -> list[JSON]:
    """The keys of entries, None where there is none; fast, since environments have hundreds of variables."""
    try:
        return [*map(itemgetter(key), entries)]
    except KeyError:
        return [each.get(key) for each in entries]


def _replaced(before: Sequence[Mapping[str, JSON]], added: Sequence[JSON], key: str) -> list[JSON]:
    """Of entries with the same key, the first is replaced and the others stay."""
    places = {each.get(key): place for place, each in reversed([*enumerate(before)])}
    made = list(before)
    for each in added:
        place = places.setdefault(each.get(key), len(made))
        made[place : place + 1] = [each]
    return made
