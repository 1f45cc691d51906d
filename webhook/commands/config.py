"""`claimgate config`: the configuration in use, its JSON schema, and the mistakes of a file."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import typer

from webhook import assembly
from webhook.commands import options
from webhook.errors import ConfigurationError
from webhook.manifests.configuration import configuration_schema, configuration_template
from webhook.manifests.leave_alone import NOTICE_DAYS, current_day
from webhook.policy.configured_rules import unused_params
from webhook.settings.configured import read_settings
from webhook.settings.setting import declared_settings
from webhook.settings.shared import Settings
from webhook.suites.suite_model import suite_schema
from webhook.text import terminal
from webhook.yamltext import yamlfile

app = typer.Typer(
    name="config",
    add_completion=False,
    no_args_is_help=True,
    help="Show the configuration in use, check a file, print the schema.",
)

_DEFAULT: Final = "default"


@app.command()
@options.add_settings_flags(Settings)
def show(*, settings: Settings) -> int:
    """Print the configuration in use, and the source of each setting: a flag, a variable, the file, or the default."""
    problem = _check_rules_and_exceptions(settings)
    written = settings.configuration.value.model_dump(mode="json", by_alias=True, exclude_defaults=True)
    other_fields = {key: value for key, value in written.items() if key not in _SETTINGS}
    sys.stdout.write(terminal.lines(_lines_of_settings(settings)))
    if other_fields:
        sys.stdout.write(f"# of {settings.configuration.path}:\n{yamlfile.dump(other_fields)}")
    return problem


@app.command()
def check(
    file: Annotated[Path | None, typer.Argument(metavar="FILE", help="Default: the file in use.")] = None,
) -> int:
    """Report every mistake of a configuration file, with line and column.

    Also reports exceptions that have expired or end soon.
    """
    settings = read_settings(Settings, {"config": file}, os.environ)
    code = _check_rules_and_exceptions(settings)
    path = settings.configuration.path
    sys.stdout.write(terminal.lines([f"{path}: no mistake found" if path else "no configuration file is in use"]))
    return code


@app.command()
def init(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The file to write.")] = Path("claimgate.yaml"),
) -> int:
    """Write a configuration file that shows every field with an example. All lines are comments."""
    try:
        with file.open("x", encoding="utf-8") as written:
            written.write(configuration_template())
    except FileExistsError:
        raise ConfigurationError(f"config init: {file} exists: name another file, or remove this file") from None
    except OSError as error:
        raise ConfigurationError(f"config init: {file} cannot be written: {error.strerror}") from None
    sys.stdout.write(terminal.lines([f"wrote {file}: edit it, then run `claimgate config check {file}`"]))
    return 0


@app.command("schema")
def print_schema(
    of: Annotated[
        Literal["configuration", "suite"],
        typer.Argument(
            metavar="FILE", help="configuration: the schema of claimgate.yaml. suite: the schema of suite.yaml."
        ),
    ] = "configuration",
) -> int:
    """Print the JSON schema of the configuration, or of suite.yaml, for editors and CI."""
    schema = configuration_schema() if of == "configuration" else suite_schema()
    sys.stdout.write(json.dumps(schema, indent=2) + "\n")
    return 0


_SETTINGS: Final = frozenset(("shipped", "policies", "context", "contextIsWhole", "workloads", "kubernetesVersion"))


def _check_rules_and_exceptions(settings: Settings) -> int:
    """Raise mistakes about rules and params. Print params that no policy has, and exceptions that end soon."""
    policies = assembly.load_policies_of_settings(settings, assembly.create_compile_options(settings))
    ending = assembly.exceptions_at_their_end(settings.configuration, current_day(), notice_days=NOTICE_DAYS)
    unused = unused_params(settings.configuration, policies)
    terminal.print_to_stderr(f"warning: {each}" for each in (*ending, *unused))
    return 0


def _lines_of_settings(settings: Settings) -> Iterator[str]:
    yield f"# policies: {assembly.describe_policy_sets_in_use(settings)}"
    for each in declared_settings(Settings):
        value: Any = getattr(settings, each.name)
        shown = each.type.show(value) if value not in (None, ()) else "[]" if each.type.many else "none"
        yield f"{each.name.replace('_', '-')}: {shown}  # {settings.origins.get(each.name, _DEFAULT)}"
