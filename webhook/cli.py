"""Runs a verb of the command line, and prints errors that users can cause in one form, never as a traceback.

Texts that were prepared in advance are printed without importing Typer, because that import takes most of the time of
a start. For a missing package, the error names the extra of the distribution with this package.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Final

from webhook.errors import ClaimgateError, ConfigurationError
from webhook.text import terminal

EXTRAS: Final[Mapping[str, frozenset[str]]] = MappingProxyType(
    {
        "serve": frozenset(
            {"fastapi", "starlette", "uvicorn", "uvloop", "httptools", "prometheus_client", "cryptography", "httpx"}
        ),
        "live": frozenset({"kubernetes", "urllib3"}),
        "celpy": frozenset({"celpy"}),
        "otel": frozenset({"opentelemetry"}),
        "ray": frozenset({"ray", "fsspec"}),
    }
)
"""The packages of each extra, by the names under which they are imported."""

INSTALLED_EXTRAS: Final = ("serve", "live")
"""The extras that README installs. Hints include them, because pipx replaces the extras of an installation."""


def install_hint_for_module(module: str | None) -> str:
    """Return how to install the extra with a module that cannot be found; "" if no extra has it.

    The text never has the bare name `claimgate`, because public indexes have another package with this name.

    Args:
        module: its name in the ModuleNotFoundError, such as `fastapi.responses`.
    """
    package = (module or "").partition(".")[0]
    for extra, packages in EXTRAS.items():
        if package in packages:
            extras = ",".join(dict.fromkeys((*INSTALLED_EXTRAS, extra)))
            command = f"pipx install --force '.[{extras}]'"
            return f"this needs the package {package}, which is not installed: in a checkout, {command}"
    return ""


_INTERRUPTED: Final = 130  # 128 + SIGINT, as shells report it
_BROKEN_PIPE: Final = 141  # 128 + SIGPIPE: stdout was closed, so the output is incomplete
_OWN_FAULT: Final = 70  # EX_SOFTWARE of sysexits.h
_LOG_FORMAT: Final = "--log-format"
_LOG_FORMAT_VARIABLE: Final = "CLAIMGATE_LOG_FORMAT"


def run_command_line(arguments: Sequence[str]) -> int:
    """Run a command line and return its exit code; expected errors are printed on stderr.

    Args:
        arguments: what follows the program's name.
    """
    try:
        code = _run_verb(arguments)
        sys.stdout.flush()
    except ClaimgateError as error:
        return _print_error(str(error), arguments)
    except ModuleNotFoundError as error:
        if told := install_hint_for_module(error.name):
            return _print_error(told, arguments)
        raise
    except KeyboardInterrupt:
        return _INTERRUPTED
    except SystemExit as stop:  # typer ends a program so after stdout was closed
        if not isinstance(stop.__context__, BrokenPipeError):
            raise
        return _discard_output()
    except BrokenPipeError:
        return _discard_output()
    except OSError as error:
        return _print_error(terminal.one_line(_text_of_system_error(error)), arguments)
    return code


def _run_verb(arguments: Sequence[str]) -> int:
    """Print a text that was prepared in advance, or run the verb with Typer; return the exit code."""
    refuse_options_that_are_files(arguments)
    text = text_written_ahead(arguments)
    if text is not None:
        sys.stdout.write(text)
        return 0
    from webhook.typer_application import run_verb

    return run_verb(arguments)


def refuse_options_that_are_files(arguments: Sequence[str]) -> None:
    """Refuse options, `--` and `-` that are also the names of files in the current folder.

    A shell replaces `*` by names of files, so that a file with the name `--config=x.yaml` would become an option.
    After `--` no name is an option, but `-` still means standard input.

    Raises:
        ConfigurationError: there is such a file.
    """
    is_option = True
    for argument in arguments:
        if (argument == "-" or (is_option and argument.startswith("-"))) and os.path.lexists(argument):
            raise ConfigurationError(_why_ambiguous(terminal.one_line(argument)))
        is_option = is_option and argument != "--"


def _why_ambiguous(argument: str) -> str:
    """Return a text about an option that is also the name of a file, with the fix."""
    meanings = {"--": "the end of the options", "-": "standard input"}
    instead = {
        "--": "leave out `--`, and put `./` before the names of files",
        "-": "write the whole path of the file, or `/dev/stdin` for standard input",
    }
    mend = instead.get(argument, "put options first, then `--`, then files; or rename the file")
    return f"`{argument}` is {meanings.get(argument, 'an option')} and also the name of a file in this folder: {mend}"


def text_written_ahead(arguments: Sequence[str]) -> str | None:
    """Return the output of `version` and of `explain RULE...`; None for other verbs, and if there are flags.

    Raises:
        ConfigurationError: the rule does not exist.
    """
    match arguments:
        case ["version"]:
            from webhook.commands.version import version_text

            return version_text()
        case ["explain", *names] if names and not any(name.startswith("-") for name in names):
            from webhook.rules.pages import sections_about_rules

            return sections_about_rules(names)
    return None


def _discard_output() -> int:
    """Discard all further output, because stdout is closed; return the exit code."""
    sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115 - it lives until the process ends
    return _BROKEN_PIPE


def _text_of_system_error(error: OSError) -> str:
    """Return the text of an error of the operating system with the file that it is about."""
    text = (error.strerror or str(error)).lower()
    return f"{error.filename}: {text}" if error.filename else text


def _print_error(text: str, arguments: Sequence[str]) -> int:
    """Print an error with `error:` before each problem, and return exit code 2.

    If the server writes its log as JSON, the error is a line of this log.
    """
    if _writes_log_as_json(arguments) and not sys.stderr.isatty():
        from webhook.cluster.freshness import NOT_ANSWERED
        from webhook.logs.structured import Log

        Log().error("the server does not start", error=text, reviews=NOT_ANSWERED)
        return 2
    lines = text.split("\n")
    sys.stderr.write(terminal.lines(line if line.startswith((" ", "\t")) else f"error: {line}" for line in lines))
    return 2


def _writes_log_as_json(arguments: Sequence[str]) -> bool:
    """Return whether a command line starts a server with a log in JSON; the command line may be invalid."""
    if arguments[:1] != ["serve"]:
        return False
    given = " ".join(arguments).replace("=", " ")
    asks_for_text = f"{_LOG_FORMAT} text" in given
    return not asks_for_text and (_LOG_FORMAT in given or os.environ.get(_LOG_FORMAT_VARIABLE) != "text")


def run_with_traceback(start: Callable[[], int]) -> int:
    """Run `start` and return its exit code; for an unexpected error, print the traceback and return 70."""
    try:
        return start()
    except Exception:  # noqa: BLE001 - the last frame: any exception here is a bug, and its traceback is the report
        import traceback

        told = "error: this is a fault of claimgate itself; the lines above say where"
        sys.stderr.write(terminal.lines([*traceback.format_exc().rstrip("\n").split("\n"), told]))
        return _OWN_FAULT
