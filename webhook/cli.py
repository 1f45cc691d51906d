"""Runs a verb of the command line, and prints errors that users can cause in one form, never as a traceback.

Texts that were prepared in advance are printed without importing Typer, because the import takes most of the start. If
a package is missing, the error names the extra that installs the package. If Windows does not have a module, the error
names WSL and the container image.
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
"""The packages of each extra, by import name."""

INSTALLED_EXTRAS: Final = ("serve", "live")
"""The extras that README installs. Hints repeat them, because pipx replaces the extras of an installation."""


_POSIX_MODULES: Final = frozenset(("fcntl", "grp", "pwd", "resource", "termios"))
"""Modules of the standard library that Windows does not have."""


def hint_for_missing_module(module: str | None) -> str:
    """Return how to install the extra with a missing module, or which system has the module; "" for other modules.

    `module` is the name in the ModuleNotFoundError, such as `fastapi.responses`. The text avoids the bare name
    `claimgate`, because public indexes have another package with this name.
    """
    package = (module or "").partition(".")[0]
    if package in _POSIX_MODULES:
        return f"this needs the module {package}, which Windows does not have: use WSL or the container image"
    for extra, packages in EXTRAS.items():
        if package in packages:
            extras = ",".join(dict.fromkeys((*INSTALLED_EXTRAS, extra)))
            command = f"pipx install --force '.[{extras}]'"
            return f"this needs the package {package}, which is not installed: in a checkout, {command}"
    return ""


_INTERRUPTED: Final = 130  # 128 + SIGINT, as shells report it
_BROKEN_PIPE: Final = 141  # 128 + SIGPIPE: stdout was closed
_OWN_FAULT: Final = 70  # EX_SOFTWARE of sysexits.h
_LOG_FORMAT: Final = "--log-format"
_LOG_FORMAT_VARIABLE: Final = "CLAIMGATE_LOG_FORMAT"


def run_command_line(arguments: Sequence[str]) -> int:
    """Run a command line and return its exit code; print expected errors on stderr."""
    try:
        code = _run_verb(arguments)
        sys.stdout.flush()
    except ClaimgateError as error:
        return _print_error(str(error), arguments)
    except ModuleNotFoundError as error:
        if message := hint_for_missing_module(error.name):
            return _print_error(message, arguments)
        raise
    except KeyboardInterrupt:
        return _INTERRUPTED
    except SystemExit as stop:  # Typer raises SystemExit after stdout was closed
        if not isinstance(stop.__context__, BrokenPipeError):
            raise
        return _discard_output()
    except BrokenPipeError:
        return _discard_output()
    except OSError as error:
        return _print_error(terminal.one_line(_text_of_system_error(error)), arguments)
    return code


def _run_verb(arguments: Sequence[str]) -> int:
    # a text that was prepared in advance needs no Typer
    refuse_options_that_are_files(arguments)
    text = text_written_ahead(arguments)
    if text is not None:
        sys.stdout.write(text)
        return 0
    from webhook.typer_application import run_verb

    return run_verb(arguments)


def refuse_options_that_are_files(arguments: Sequence[str]) -> None:
    """Refuse options, `--` and `-` that are also the names of files in the current folder.

    A shell replaces `*` by names of files: a file `--config=x.yaml` would become an option. After `--` no name is an
    option, but `-` still means standard input.

    Raises:
        ConfigurationError: there is such a file.
    """
    is_option = True
    for argument in arguments:
        if (argument == "-" or (is_option and argument.startswith("-"))) and os.path.lexists(argument):
            raise ConfigurationError(_why_ambiguous(terminal.one_line(argument)))
        is_option = is_option and argument != "--"


def _why_ambiguous(argument: str) -> str:
    meanings = {"--": "the end of the options", "-": "standard input"}
    instead = {
        "--": "leave out `--`, and put `./` before the names of files",
        "-": "write the whole path of the file, or `/dev/stdin` for standard input",
    }
    mend = instead.get(argument, "put options first, then `--`, then files; or rename the file")
    return f"`{argument}` is {meanings.get(argument, 'an option')} and also the name of a file in this folder: {mend}"


def text_written_ahead(arguments: Sequence[str]) -> str | None:
    """Return the output of `version` and of `explain RULE...` without flags; None for others.

    Raises:
        ConfigurationError: an unknown rule.
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
    # stdout is closed
    sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115 - it lives until the process ends
    return _BROKEN_PIPE


def _text_of_system_error(error: OSError) -> str:
    text = (error.strerror or str(error)).lower()
    return f"{error.filename}: {text}" if error.filename else text


def _print_error(text: str, arguments: Sequence[str]) -> int:
    # a server with a JSON log writes the error as a log line
    if _writes_log_as_json(arguments) and not sys.stderr.isatty():
        from webhook.cluster.freshness import NOT_ANSWERED
        from webhook.logs.structured import Log

        Log().error("the server does not start", error=text, reviews=NOT_ANSWERED)
        return 2
    lines = text.split("\n")
    sys.stderr.write(terminal.lines(line if line.startswith((" ", "\t")) else f"error: {line}" for line in lines))
    return 2


def _writes_log_as_json(arguments: Sequence[str]) -> bool:
    # the command line may be invalid
    if arguments[:1] != ["serve"]:
        return False
    flags = " ".join(arguments).replace("=", " ")
    asks_for_text = f"{_LOG_FORMAT} text" in flags
    return not asks_for_text and (_LOG_FORMAT in flags or os.environ.get(_LOG_FORMAT_VARIABLE) != "text")


def run_with_traceback(start: Callable[[], int]) -> int:
    """Run `start` and return its exit code; after an unexpected error, print the traceback and return 70."""
    try:
        return start()
    except Exception:  # noqa: BLE001 - the last frame: a bug, and the traceback is its report
        import traceback

        message = "error: this is a fault of claimgate itself; the lines above say where"
        sys.stderr.write(terminal.lines([*traceback.format_exc().rstrip("\n").split("\n"), message]))
        return _OWN_FAULT
