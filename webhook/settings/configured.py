"""Combines settings with the configuration file. Flags take precedence, then variables, then the file, then defaults.

A setting with several values, such as folders of policies, adds the values of flags and variables to the values of the
file.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, TypeVar

from webhook.apimachinery import releases
from webhook.errors import ConfigurationError
from webhook.manifests.configuration import NAME, ConfigurationFile, read_configuration
from webhook.settings import setting
from webhook.settings.shared import ReviewSettings, Settings
from webhook.yamltext.input_files import InputFile

S = TypeVar("S", bound=Settings)
_ALIKE: Final = 0.8
"""A variable counts as misspelt if its similarity to a setting is at least this number. The similarity of SERVICE_PORT
to PROBE_PORT is lower."""
_FOUND: Final = "the working directory"


def read_settings(kind: type[S], flags: Mapping[str, Any], environment: Mapping[str, str]) -> S:
    """Return settings from flags, the environment, the configuration file, and defaults.

    Raises:
        ConfigurationError: a value cannot be used. The message names the flag or variable.
        InputError: all mistakes in the configuration file.
    """
    _refuse_misspelt_variables(kind, environment)
    chosen = setting.read_settings(kind, flags, environment)
    _refuse_several_configurations(chosen)
    if chosen.no_config:
        return chosen
    if chosen.config_from is not None:
        if not chosen.config_from.is_dir():
            message = (
                f"{chosen.origins['config_from']}: `{chosen.config_from}` is not a folder; name a folder, such as a "
                "copy of the target branch"
            )
            raise ConfigurationError(message)
        file = chosen.config_from / NAME
        return settings_under_configuration(chosen, read_configuration(file)) if os.path.lexists(file) else chosen
    if chosen.config is None and os.path.lexists(NAME) and not Path(NAME).is_dir():
        chosen = replace(chosen, config=Path(NAME), origins={**chosen.origins, "config": _FOUND})
        return settings_under_configuration(chosen, read_configuration(InputFile(NAME, root=".")))
    return settings_under_configuration(chosen, read_configuration(chosen.config)) if chosen.config else chosen


def _refuse_misspelt_variables(kind: type[Settings], environment: Mapping[str, str]) -> None:
    """Refuse a variable with a name similar to a setting of any verb. Kubernetes sets other variables with our prefix,
    such as CLAIMGATE_SERVICE_HOST for a Service `claimgate`.
    """
    names = {name for name, value in environment.items() if value and name.startswith(setting.PREFIX)}
    if not names - _variables_of(kind):
        return
    from difflib import get_close_matches

    from webhook.settings.serving import ServerSettings

    known = _variables_of(kind) | _variables_of(ServerSettings) | _variables_of(ReviewSettings)
    bare = {name.removeprefix(setting.PREFIX): name for name in known}
    for name in sorted(names - known):
        close = get_close_matches(name.removeprefix(setting.PREFIX), sorted(bare), n=1, cutoff=_ALIKE)
        if close:
            raise ConfigurationError(f"{name}: there is no such variable: did you mean {bare[close[0]]}?")


def _variables_of(kind: type[Settings]) -> set[str]:
    return {each.environment_variable for each in setting.declared_settings(kind) if each.has_variable}


def _refuse_several_configurations(chosen: Settings) -> None:
    sources = [chosen.origins[name] for name in ("config", "no_config", "config_from") if getattr(chosen, name)]
    if len(sources) > 1:
        raise ConfigurationError(f"{sources[0]}, {sources[1]}: each chooses the configuration; give only one of them")


def settings_from_changed_file(chosen: S) -> S:
    """Return the settings with the current configuration file. `chosen` must come from flags and variables alone."""
    path = chosen.configuration.path
    if path is None:
        return chosen
    return replace(chosen, configuration=read_configuration(InputFile(str(path), chosen.configuration.root)))


def settings_under_configuration(chosen: S, file: ConfigurationFile) -> S:
    """Return the settings with the values of a configuration file."""
    value, origin = file.value, str(file.path)
    folders: dict[str, tuple[Path, ...]] = {
        name: tuple(map(file.resolve_relative_path, getattr(value, name)))
        for name in ("policies", "context", "workloads")
    }
    changes: dict[str, Any] = {name: (*paths, *getattr(chosen, name)) for name, paths in folders.items() if paths}
    if not value.shipped and not chosen.only:
        changes["only"] = (*folders["policies"], *chosen.policies)
    if value.kubernetes_version and "kubernetes_version" not in chosen.origins:
        changes["kubernetes_version"] = releases.parse_supported_release(value.kubernetes_version)
    if value.context_is_whole and "context_is_whole" not in chosen.origins:
        changes["context_is_whole"] = True
    origins = {**dict.fromkeys(changes, origin), **chosen.origins}
    return replace(chosen, **changes, origins=origins, configuration=file)
