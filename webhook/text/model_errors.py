"""Describes mistakes in the types and fields of a value, for authors of YAML.

The names of mistakes are pydantic's (pydantic 2, "Validation Errors"), but this module does not import pydantic.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from webhook.text.wording import shown

_UNKNOWN: Final = frozenset(("extra_forbidden", "unexpected_keyword_argument"))
_VALIDATOR_PREFIX: Final = "Value error, "
"""pydantic's prefix before the text of a ValueError."""
_EXPECTED: Final = {
    "string_type": "a string",
    "list_type": "a list",
    "tuple_type": "a list",
    "dict_type": "a map",
    "model_type": "a map",
    "model_attributes_type": "a map",
    "dataclass_type": "a map",
    "int_type": "an integer",
    "float_type": "a number",
    "bool_type": "true or false",
    "too_short": "one entry or more",
    "string_too_short": "some text",
}


def is_unknown_field_error(mistake: Mapping[str, Any]) -> bool:
    """Return whether the mistake is a field that the model does not have."""
    return mistake["type"] in _UNKNOWN


def describe_model_error(mistake: Mapping[str, Any]) -> str:
    """Return what was expected and found, for one mistake of pydantic (`type`, `msg`, `input`, `ctx`)."""
    kind = mistake["type"]
    if is_unknown_field_error(mistake):
        return "unknown field"
    if kind == "missing":
        return "is required"
    if kind == "literal_error":
        choices = re.findall(r"'([^']*)'", mistake["ctx"]["expected"])
        return f"expected one of {', '.join(choices)}, found `{shown(mistake['input'])}`"
    if kind not in _EXPECTED:
        text = str(mistake["msg"]).removeprefix(_VALIDATOR_PREFIX)
        return text[:1].lower() + text[1:]
    return f"expected {_EXPECTED[kind]}, found `{shown(mistake['input'])}`"
