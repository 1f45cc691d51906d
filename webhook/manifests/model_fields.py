"""Suggests the right field for an unknown field of a file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from typing import Any, get_args

from pydantic import BaseModel

from webhook.apimachinery.paths import FieldPath
from webhook.text.model_errors import describe_model_error, is_unknown_field_error


def describe_mistake_of_model(model: type[BaseModel], mistake: Mapping[str, Any]) -> str:
    """Return the text of a mistake that pydantic found, for an unknown field with a suggestion."""
    text = describe_model_error(mistake)
    return f"{text}{_sentence_about_near_fields(model, mistake['loc'])}" if is_unknown_field_error(mistake) else text


def _sentence_about_near_fields(model: type[BaseModel], path: FieldPath) -> str:
    """Return a sentence with the field that the user probably meant, or with all fields."""
    names = _field_names(model, path[:-1])
    close = get_close_matches(str(path[-1]), names, n=1)
    return f": did you mean `{close[0]}`?" if close else f": expected one of {', '.join(names)}"


def _field_names(model: type[BaseModel], path: FieldPath) -> list[str]:
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
