"""Reading `claimgate.yaml`: every mistake with its line and column, and near names for misspelt fields."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final, get_args

from msgspec import Struct
from pydantic import BaseModel, ValidationError

from webhook.apimachinery.paths import FieldPath
from webhook.errors import InputError, InputProblem
from webhook.manifests.configuration_model import EMPTY, FileConfiguration
from webhook.rules.actions import OFF_IN_QUOTES
from webhook.text.model_errors import describe_model_error, is_unknown_field_error
from webhook.yamltext import yamlfile
from webhook.yamltext.input_files import AnyFile, as_input_file

NAME: Final = "claimgate.yaml"


class ConfigurationFile(Struct, frozen=True):
    """A configuration, and the document that it was read of; None where there is no file.

    root: the folder that files which it names have to stay in; "" where a person named the configuration.
    """

    value: FileConfiguration = EMPTY
    document: yamlfile.Document | None = None
    root: str = ""

    @property
    def path(self) -> Path | None:
        """Return the path of the file."""
        return Path(self.document.file) if self.document else None

    def resolve_relative_path(self, name: str) -> Path:
        """Return the path of a file or folder that the configuration names, from where the file is.

        Raises:
            InputError: nobody named the configuration, and the path is outside of its folder.
        """
        path = (self.path.parent if self.path else Path()) / name
        if self.root and not Path(os.path.realpath(path)).is_relative_to(os.path.realpath(self.root)):
            told = f"`{name}` is outside of the working directory, so it is not read; name the file with --config"
            raise InputError(InputProblem(message=told, file=str(self.path)))
        return path

    def problem(self, path: FieldPath, message: str) -> InputProblem:
        """Return what is wrong with a field, as a problem with its place."""
        return self.document.problem(path, message) if self.document else InputProblem(message=message)


NO_FILE: Final = ConfigurationFile()


def read_configuration(file: AnyFile) -> ConfigurationFile:
    """Read the configuration of a file.

    Raises:
        InputError: it cannot be read, or every mistake in it.
    """
    documents = yamlfile.read(file)
    if len(documents) != 1 or not isinstance(documents[0].value, dict):
        held = f"{len(documents)} documents" if len(documents) != 1 else "something else"
        raise InputError(
            InputProblem(message=f"expected one document with a map of fields, found {held}", file=str(file))
        )
    (document,) = documents
    try:
        value = FileConfiguration.model_validate_json(json.dumps(document.value))
    except ValidationError as error:
        raise InputError(*_problems_of_error(document, error)) from None
    return ConfigurationFile(value, document, as_input_file(file).root)


def _problems_of_error(document: yamlfile.Document, error: ValidationError) -> Iterator[InputProblem]:
    for mistake in error.errors():
        path = tuple(mistake["loc"])
        text = describe_model_error({**mistake, "msg": mistake["msg"].removeprefix("Value error, ")})
        hint = _sentence_about_near_fields(path) if is_unknown_field_error(mistake) else ""
        if path[:1] == ("levels",) and mistake["input"] is False:
            hint = f": {OFF_IN_QUOTES}"
        yield document.problem(path, f"{text}{hint}")


def _sentence_about_near_fields(path: FieldPath) -> str:
    """Say which field may have been meant, or all that there are."""
    known = _field_names(path[:-1])
    close = get_close_matches(str(path[-1]), known, n=1)
    return f": did you mean `{close[0]}`?" if close else f": expected one of {', '.join(known)}"


def _field_names(path: FieldPath) -> list[str]:
    """Return the names of the fields at a path."""
    model: Any = FileConfiguration
    for step in path:
        if isinstance(step, str) and step in (named := _fields_of_model(model)):
            model = _inner_model(named[step])
    return list(_fields_of_model(model))


def _fields_of_model(model: Any) -> dict[str, Any]:
    is_model = isinstance(model, type) and issubclass(model, BaseModel)
    fields = model.model_fields if is_model else {}
    return {field.alias or name: field.annotation for name, field in fields.items()}


def _inner_model(annotation: Any) -> Any:
    """Return the model inside of `tuple[Model, ...]` or `Model | None`."""
    inside = [each for each in get_args(annotation) if isinstance(each, type) and issubclass(each, BaseModel)]
    return inside[0] if inside else annotation
