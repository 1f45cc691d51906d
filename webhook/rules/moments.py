"""The moment when an object that breaks a rule fails, without this webhook. Knows no rule."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, Literal, TypeAlias

Moment: TypeAlias = Literal["", "create", "controller", "pending", "start", "waiting", "silent", "disruption"]
"""One of MOMENTS, or "" if a rule sets none."""
AT_ONCE: Final = "create"
MOMENTS: Final[Mapping[str, str]] = MappingProxyType(
    {
        AT_ONCE: "Refused when it is created or changed",
        "controller": "Accepted, but the controller fails, or its pods are refused",
        "pending": "Accepted, but never admitted or scheduled",
        "start": "Pods start and fail",
        "waiting": "Pods run and wait for ever",
        "silent": "Runs, but not as the manifest says",
        "disruption": "Loses work or devices when something fails",
    }
)
"""The moments in order of time, as in titles."""
