"""Makes the flags that several verbs share, and completes their values in a shell.

Other modules declare the settings and output formats. Typer passes the typed text to a function for completion.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, Final, TypeAlias

import typer

from webhook import assembly
from webhook.manifests.leave_alone import current_day
from webhook.policy import unbound
from webhook.policy.policy_set import PolicySet
from webhook.report import formats
from webhook.rules import pages
from webhook.settings.configured import read_settings
from webhook.settings.setting import REQUIRED, Setting, declared_settings
from webhook.settings.shared import Settings, Verb, settings_of_verb, without_left_out
from webhook.text import terminal


def complete_rule(incomplete: str) -> list[str]:
    """Return the ids of shipped rules that begin with the typed text."""
    return [rule for rule in pages.shipped_rule_ids() if rule.startswith(incomplete)]


def complete_rule_or_group(incomplete: str) -> list[str]:
    """Return the ids and groups of shipped rules that begin with the typed text."""
    rules = tuple(pages.shipped_rule_ids())
    groups = dict.fromkeys(rule.partition("/")[0] for rule in rules)
    return [name for name in (*groups, *rules) if name.startswith(incomplete)]


def complete_output(*formats: str) -> Callable[[str], list[str]]:
    """Return the function that completes `FORMAT[=FILE]`. Each format is offered alone and with `=`."""

    def complete(incomplete: str) -> list[str]:
        return [text for name in formats for text in (name, f"{name}=") if text.startswith(incomplete)]

    return complete


FilesByOption: TypeAlias = Annotated[
    list[str] | None,
    typer.Option("--filename", "-f", metavar="FILE", help="Also read this file or folder, as kubectl -f; repeatable."),
]


def named_files(arguments: Sequence[str] | None, by_option: Sequence[str] | None) -> list[str]:
    """Return the files given as arguments, then the files given with -f."""
    return [*(arguments or ()), *(by_option or ())]


ReportOutputs: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--output",
        "-o",
        metavar="FORMAT[=FILE]",
        help=f"{', '.join(formats.format_names())}; repeatable.",
        autocompletion=complete_output(*formats.format_names()),
    ),
]


def print_policy_notes(settings: Settings, policies: PolicySet) -> None:
    """Print on stderr the sets of policies, expired exceptions and unbound policies."""
    notes = [f"note: {sets}"] if (sets := assembly.describe_policy_sets_unless_default(settings)) else []
    warnings = (f"warning: {each}" for each in assembly.exceptions_at_their_end(settings.configuration, current_day()))
    terminal.print_to_stderr((*notes, *warnings))
    warn_of_unbound(policies)


def warn_of_unbound(policies: PolicySet) -> None:
    """Print on stderr the policies that are never evaluated."""
    terminal.print_to_stderr(f"warning: {each}" for each in unbound.warnings_about_unbound(policies))


_ONE: Mapping[str, Any] = {"text": str | None, "path": Path | None, "switch": bool | None}
_MANY: Mapping[str, Any] = {"text": list[str] | None, "path": list[Path] | None}


_COMPLETIONS: Final = {"rule": complete_rule_or_group, "skip": complete_rule_or_group}
"""The completions for the values of settings, by name."""


def add_settings_flags(kind: type[Settings], *names: str) -> Callable[[Callable[..., int]], Callable[..., int]]:
    """Return a decorator that adds flags for settings to a command. The command gets the values as `settings`.

    Without names, all settings get a flag. Other settings come from the environment alone.
    """
    return _add_flags(kind, [each for each in declared_settings(kind) if not names or each.name in names])


def add_flags_of_verb(kind: type[Settings], verb: Verb) -> Callable[[Callable[..., int]], Callable[..., int]]:
    """Return a decorator that adds the flags of all options of a verb, which settings/shared.py declares. The command
    gets the values as `settings`.
    """
    return _add_flags(kind, settings_of_verb(kind, verb), verb)


def _add_flags(
    kind: type[Settings], declared: Sequence[Setting], verb: Verb | None = None
) -> Callable[[Callable[..., int]], Callable[..., int]]:
    def decorate(command: Callable[..., int]) -> Callable[..., int]:
        original = inspect.signature(command, eval_str=True)

        @wraps(command)
        def run(*arguments: Any, **flags: Any) -> int:
            chosen = {each.name: flags.pop(each.name, None) for each in declared}
            settings = read_settings(kind, chosen, os.environ)
            return command(*arguments, **flags, settings=without_left_out(settings, verb) if verb else settings)

        other_parameters = [each for each in original.parameters.values() if each.name != "settings"]
        flags = [_typer_parameter(each) for each in declared]
        # Typer makes flags from the signature and the annotations of the function
        signature = original.replace(parameters=[*other_parameters, *flags])
        run.__signature__ = signature  # type: ignore[attr-defined]
        run.__annotations__ = {each.name: each.annotation for each in (*other_parameters, *flags)} | {"return": int}
        return run

    return decorate


def _typer_parameter(each: Setting) -> inspect.Parameter:
    """Return the parameter from which Typer makes a flag. Without the flag, the value is None, and the environment
    applies.
    """
    flag = typer.Option(
        None,
        each.flag,
        metavar=each.type.metavar or None,
        help=_help_of_setting(each),
        show_default=False,
        autocompletion=_COMPLETIONS.get(each.name),
    )
    annotation = _MANY[each.type.form] if each.type.many else _ONE[each.type.form]
    return inspect.Parameter(each.name, inspect.Parameter.KEYWORD_ONLY, default=flag, annotation=annotation)


def _help_of_setting(each: Setting) -> str:
    """The variable and the default are in brackets."""
    if each.unset == REQUIRED:
        notes = [REQUIRED]
    elif each.shown_default and each.type.form != "switch":
        notes = [f"default: {each.shown_default}"]
    else:
        notes = []
    variable = [each.environment_variable] if each.has_variable else []
    in_brackets = "; ".join([*variable, *notes, *["repeatable"] * each.type.many])
    return f"{each.help} [{in_brackets}]" if in_brackets else each.help
