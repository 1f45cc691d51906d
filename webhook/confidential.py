"""Hides confidential values in reports and recordings: those of Secrets and of environment variables."""

from __future__ import annotations

from typing import Final

from webhook.attributes import JSON

HIDDEN: Final = "***"
"""The text that replaces such a value."""
VARIABLES: Final = frozenset(("env", "envVars", "env_vars", "environment"))
"""Fields with environment variables: a list of `name` and `value`, or a map."""
WHOLE: Final = frozenset(("runtimeEnvYAML", "kubectl.kubernetes.io/last-applied-configuration"))
"""Fields whose text contains such values: the environment of a RayJob, and an object as kubectl applied it."""
OF_SECRETS: Final = frozenset(("data", "stringData"))


def without_confidential(value: JSON) -> JSON:
    """Return the object with HIDDEN in the place of each such value."""
    if isinstance(value, list):
        return [without_confidential(each) for each in value]
    if not isinstance(value, dict):
        return value
    is_secret = value.get("kind") == "Secret"
    return {key: _hide_field(key, inner, is_secret=is_secret) for key, inner in value.items()}


def _hide_field(key: str, value: JSON, *, is_secret: bool) -> JSON:
    if key in VARIABLES and isinstance(value, list):
        return [_hide_variable(each) for each in value]
    if key in VARIABLES or key in WHOLE or (is_secret and key in OF_SECRETS):
        return _hide_values(value)
    return without_confidential(value)


def _hide_variable(value: JSON) -> JSON:
    """Return one item of a list of environment variables with its value hidden; references are kept."""
    if not isinstance(value, dict):
        return value
    return {key: HIDDEN if key == "value" else without_confidential(inner) for key, inner in value.items()}


def _hide_values(value: JSON) -> JSON:
    """Return a map with all its values hidden, or HIDDEN for any other value."""
    return dict.fromkeys(value, HIDDEN) if isinstance(value, dict) else value if value is None else HIDDEN
