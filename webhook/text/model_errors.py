"""Describes mistakes in the types and fields of a value, for authors of YAML.

For an unknown field, the text suggests the right field.

The names of mistakes are pydantic's (pydantic 2, "Validation Errors").
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from typing import Any, Final, get_args

from pydantic import BaseModel

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


def describe_mistake_of_model(model: type[BaseModel], mistake: Mapping[str, Any]) -> str:
    """Return the text of a mistake that pydantic found, for an unknown field with a suggestion."""
    text = describe_model_error(mistake)
    return f"{text}{_sentence_about_near_fields(model, mistake['loc'])}" if is_unknown_field_error(mistake) else text


def _sentence_about_near_fields(model: type[BaseModel], path: Sequence[str | int]) -> str:
    """Return a sentence with the field that the user probably meant, or with all fields."""
    names = _field_names(model, path[:-1])
    close = get_close_matches(str(path[-1]), names, n=1)
    return f": did you mean `{close[0]}`?" if close else f": expected one of {', '.join(names)}"


def _field_names(model: type[BaseModel], path: Sequence[str | int]) -> list[str]:
    part: Any = model
    for step in path:
        if isinstance(step, str) and step in (named := _fields_of_model(part)):
            part = next(_inner_models(named[step]), named[step])
    return list(_fields_of_model(part))


def _fields_of_model(model: Any) -> dict[str, Any]:
    is_model = isinstance(model, type) and issubclass(model, BaseModel)
    fields = model.model_fields if is_model else {}
    return {field.alias or name: field.annotation for name, field in fields.items()}


def _inner_models(annotation: Any) -> Iterator[type[BaseModel]]:
    """Yield the models in an annotation such as `Model`, `tuple[Model, ...]` or `Model | None`."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for each in get_args(annotation):
        yield from _inner_models(each)
