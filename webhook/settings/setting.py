"""Declares a setting as a field of a frozen dataclass, and reads settings from flags and the environment.

Flags take precedence over the environment, and the environment over defaults. Does not know Typer.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeVar

from msgspec import Struct

from webhook.errors import ConfigurationError
from webhook.settings.values import ValueType
from webhook.yamltext import input_files

PREFIX: Final = "CLAIMGATE_"
_FORMER_PREFIX: Final = "WEBHOOK_"
_LINK: Final = "tcp://"
"""The beginning of CLAIMGATE_PORT if Kubernetes sets it for a Service `claimgate` (enableServiceLinks)."""
REQUIRED: Final = "required"
"""The default in help texts for a required setting."""
_KEY: Final = "setting"


class Setting(Struct, frozen=True, kw_only=True):
    """A setting with its texts for users.

    Attributes:
        unset: the effect if a setting without a default is not given.
        has_variable: whether the setting has an environment variable.
    """

    name: str
    type: ValueType
    help: str
    default: Any
    unset: str = ""
    has_variable: bool = True

    @property
    def flag(self) -> str:
        """Return the flag, such as `--log-level`."""
        return f"--{self.name.replace('_', '-')}"

    @property
    def environment_variable(self) -> str:
        """Return the environment variable, such as `CLAIMGATE_LOG_LEVEL`."""
        return PREFIX + self.name.upper()

    @property
    def shown_default(self) -> str:
        """Return the default as a flag's value. Without a default, return `unset`, which may be ""."""
        return self.unset if self.default in (None, ()) else self.type.show(self.default)

    def read(self, value: str, origin: str) -> Any:
        """Return the value of a text.

        Raises:
            ConfigurationError: the text cannot be used. `origin` is the flag or variable for the message.
        """
        try:
            return self.type.read(value.strip())
        except ValueError as error:
            raise ConfigurationError(f"{origin}: `{value}` {error}") from None


def declare_setting(default: Any, type: ValueType, help: str, *, unset: str = "") -> Any:  # noqa: A002 - the field's words
    """Declare a field of a class of settings: default, type, and a sentence for the help."""
    return dataclasses.field(default=default, metadata={_KEY: (type, help, unset, True)})


def declare_option(default: Any, type: ValueType, help: str, *, unset: str = "") -> Any:  # noqa: A002 - the field's words
    """Declare a setting that has a flag and no variable."""
    return dataclasses.field(default=default, metadata={_KEY: (type, help, unset, False)})


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingsBase:
    """The base of classes of settings. `origins` has the flag or variable of each given setting."""

    origins: Mapping[str, str] = dataclasses.field(default_factory=dict, compare=False)

    @property
    def names_given_by_flags(self) -> frozenset[str]:
        """Return the names of the settings that flags gave."""
        return frozenset(name for name, origin in self.origins.items() if origin.startswith("--"))


S = TypeVar("S", bound=SettingsBase)


def declared_settings(kind: type[SettingsBase]) -> tuple[Setting, ...]:
    """Return the settings of a class, in the order in which they are declared."""
    fields = ((field.name, field.default, field.metadata[_KEY]) for field in dataclasses.fields(kind) if field.metadata)
    return tuple(
        Setting(name=name, type=value_type, help=text, default=default, unset=unset, has_variable=has_variable)
        for name, default, (value_type, text, unset, has_variable) in fields
    )


def read_settings(kind: type[S], flags: Mapping[str, Any], environment: Mapping[str, str]) -> S:
    """Return settings from flags, then the environment, then defaults.

    `flags` maps names of settings to values: a text, a list of texts or paths, or True. None and [] mean not given.
    Empty variables count as not set.

    Raises:
        ConfigurationError: a value cannot be used. The message names the flag or variable.
    """
    values_of_flags = {name: value for name, value in flags.items() if value is not None and value != []}
    chosen: dict[str, Any] = {}
    origins: dict[str, str] = {}
    for each in declared_settings(kind):
        if each.name in values_of_flags:
            chosen[each.name], origins[each.name] = _value_of_flag(each, values_of_flags[each.name]), each.flag
        elif each.has_variable and (value := _text_of_variable(each, environment)):
            chosen[each.name], origins[each.name] = (
                each.read(value, each.environment_variable),
                each.environment_variable,
            )
    return kind(**chosen, origins=origins)


def _text_of_variable(each: Setting, environment: Mapping[str, str]) -> str:
    former = _FORMER_PREFIX + each.environment_variable.removeprefix(PREFIX)
    values = {name: environment.get(name, "") for name in (each.environment_variable, former)}
    named = {name: "" if value.startswith(_LINK) else value for name, value in values.items()}
    if named[former] and not named[each.environment_variable]:
        raise ConfigurationError(
            f"{former}: is called {each.environment_variable} now, and is not read: rename the variable"
        )
    return named[each.environment_variable]


def _value_of_flag(each: Setting, value: Any) -> Any:
    """Return the value of a setting from its flag. Only names that never have a comma are split at commas."""
    if isinstance(value, str | Path):
        return each.read(input_files.url_in_place_of_file(value) or str(value), each.flag)
    if isinstance(value, list) and each.type.with_commas:
        return tuple(name for text in value for name in each.read(text, each.flag))
    if isinstance(value, list):
        return tuple(part.strip() if isinstance(part, str) else part for part in value)
    return value
