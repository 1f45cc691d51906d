"""Entries that Trainer puts into lists of a pod: one of the same key is replaced in its place, others are appended.

Source: kubeflow/trainer@8c0f5059bd51 pkg/apply/apply.go. Lists are never changed; a new one is made.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
    places = {each.get(key): place for place, each in reversed([*enumerate(before)])}
    made = list(before)
    for each in added:
        place = places.setdefault(each.get(key), len(made))
        made[place : place + 1] = [each]
    into[field] = made
