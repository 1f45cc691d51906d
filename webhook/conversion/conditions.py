"""matchConditions: the namespace of an object, and names that an API server accepts."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

_LONGEST: Final = 50
NAMESPACE_IN_CEL: Final = (
    "request.kind.group == '' && request.kind.kind == 'Namespace' ? (has(request.name) ? request.name : '') : "
    "(has(request.namespace) ? request.namespace : '')"
)
"""The namespace of an object, which for a Namespace is its own name; "" for an object of the cluster."""


def conditions_with_valid_names(conditions: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the conditions, each with a unique name; a valid name stays. Names decide nothing."""
    made: dict[str, dict[str, Any]] = {}
    for index, each in enumerate(conditions):
        name = re.sub(r"[^A-Za-z0-9_.-]+", "-", str(each.get("name", "")))[:_LONGEST].strip("-_.")
        name = name if name and name not in made else f"condition-{index}"
        made[name] = {**each, "name": name}
    return list(made.values())
