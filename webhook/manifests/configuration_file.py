"""Reading `claimgate.yaml`: every mistake with its line and column, and near names for misspelt fields."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from msgspec import Struct
from pydantic import ValidationError

from webhook.apimachinery.paths import FieldPath
from webhook.errors import InputError, InputProblem, UnreadPartError
from webhook.manifests.configuration_model import EMPTY, FileConfiguration
from webhook.manifests.model_fields import describe_mistake_of_model
from webhook.rules.actions import OFF_IN_QUOTES
from webhook.yamltext import yamlfile
from webhook.yamltext.input_files import AnyFile, as_input_file
from webhook.yamltext.unread import refuse_unread_part

NAME: Final = "claimgate.yaml"


class ConfigurationFile(Struct, frozen=True):
    """A configuration, and its document; None without a file.

    root: the folder that files which it names have to stay in; "" if a person named the configuration.
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
            InputError: the configuration was not named by the user, and the path is outside of its folder.
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
    return configuration_of_documents(yamlfile.read(file), str(file), as_input_file(file).root)


def configuration_of_documents(documents: Sequence[yamlfile.Document], file: str, root: str = "") -> ConfigurationFile:
    """Return the configuration of the documents of a file; see ConfigurationFile for `root`.

    Raises:
        InputError: every mistake in it.
    """
    documents = documents or (yamlfile.Document({}, file),)  # only comments: it sets nothing
    if len(documents) != 1 or not isinstance(documents[0].value, dict):
        held = f"{len(documents)} documents" if len(documents) != 1 else "something else"
        raise InputError(InputProblem(message=f"expected one document with a map of fields, found {held}", file=file))
    (document,) = documents
    try:
        value = FileConfiguration.model_validate_json(json.dumps(document.value, default=refuse_unread_part))
    except UnreadPartError as error:
        raise InputError(document.problem((), str(error))) from None
    except ValidationError as error:
        raise InputError(*_problems_of_error(document, error)) from None
    return ConfigurationFile(value, document, root)


def _problems_of_error(document: yamlfile.Document, error: ValidationError) -> Iterator[InputProblem]:
    for mistake in error.errors():
        path = tuple(mistake["loc"])
        hint = f": {OFF_IN_QUOTES}" if path[:1] == ("levels",) and mistake["input"] is False else ""
        yield document.problem(path, f"{describe_mistake_of_model(FileConfiguration, mistake)}{hint}")
