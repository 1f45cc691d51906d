"""Values of looked-up and inner objects by the shape that they should have: a list, an object, a text, a whole number.

What has another shape, or is null, counts as empty.
"""

from __future__ import annotations

from webhook.attributes import JSON


def items(value: JSON) -> list[JSON]:
    """A list, or an empty one for null and whatever else stands there."""
    return value if isinstance(value, list) else []


def names(value: JSON) -> list[str]:
    """The names of a list's items, texts by now, "" for one without; fast, since environments have hundreds."""
    listed = items(value)
    try:
        return [each["name"] for each in listed]
    except (KeyError, TypeError):
        return [text(each.get("name")) if isinstance(each, dict) else "" for each in listed]


def mapping(value: JSON) -> dict[str, JSON]:
    """An object, or an empty one for null and whatever else stands there."""
    return value if isinstance(value, dict) else {}


def whole(value: JSON) -> int | None:
    """A whole number, or None for null, a truth value and whatever else stands there."""
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def text(value: JSON) -> str:
    """A text, or "" for null and whatever else stands there."""
    return value if isinstance(value, str) else ""
