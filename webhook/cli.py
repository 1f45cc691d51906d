"""The command line: which verbs there are and what their exit codes mean. Knows nothing of evaluation.

A verb's module is imported when the verb is used, never for `--help` or for another verb: start-up time is part of
what replay promises. Every error a person can cause ends here as one form on stderr, never as a traceback.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Annotated, Any, Literal, TypeAlias, get_args

import typer
from typer import completion
from typer.core import TyperArgument, TyperGroup

from webhook import __version__, terminal
from webhook.errors import ClaimgateError
from webhook.extras import install_hint_for_module

VERBS = {
    "serve": "Answer AdmissionReviews of an API server over HTTPS.",
    "replay": "Say what the webhook would answer to recorded reviews or plain objects.",
    "audit": "Report every finding about the objects of folders, files or stdin.",
    "simulate": "Say whether a job can ever start, and if not, why.",
    "backtest": "Say what policies would have done to the requests of an API server's audit log.",
    "test": "Run the suites of policies.",
    "explain": "Say of a rule what it demands and why, with a bad and a good example.",
    "policies": "List, check and export policies.",
    "config": "Show the configuration file that holds, check one, print its schema.",
    "certs": "Issue, show, rotate and inject certificates.",
    "webhook-config": "Print the webhook configurations for exactly what the policies match.",
    "queues": "Show the queues of Kueue and what each could ever admit.",
    "cel": "Evaluate CEL expressions.",
    "ui": "Try policies and objects in the browser, on this machine alone.",
    "version": "Print the version.",
    "demo": "Issue a certificate, serve, send sample reviews, audit sample manifests, stop.",
}
"""Every verb with its one-line summary; `webhook-config` lives in commands/webhook_config.py."""

EXIT_CODES = {
    0: "clean: everything allowed, nothing found, all tests passed",
    1: "findings, denials or mismatches",
    2: "bad usage, configuration, policy or input",
    3: "not decided: a rule that may deny could not be evaluated",
}
"""The one table of exit codes, printed by --help."""

_Shell: TypeAlias = Literal["bash", "zsh", "fish", "powershell", "pwsh"]
_SHELLS = "|".join(get_args(_Shell))
_INTERRUPTED = 130  # 128 + SIGINT, as shells report it
_BROKEN_PIPE = 141  # 128 + SIGPIPE: the reader of stdout went away, so nobody has the whole answer
_UNDECIDED = 3


class _VerbGroup(TyperGroup):
    """The group of verbs, which imports the module of a command on first use."""

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002 - the signature is typer's
        return list(VERBS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ARG002
        if cmd_name not in VERBS:
            return None
        module = import_module(f"webhook.commands.{cmd_name.replace('-', '_')}")
        return _show_arguments_by_name(typer.main.get_command(_application_of_verb(cmd_name, module)))

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002
        with formatter.section("Verbs"):
            formatter.write_dl(list(VERBS.items()))


class _PlainArgument(TyperArgument):
    """An argument whose help shows its name without Typer's type: `FIXTURE...`."""

    def display_type_rich(self, ctx: Any) -> None:  # noqa: ARG002 - the signature is typer's
        return None

    def _usage_display_name(self) -> str:
        name = f"{self.display_name_raw.removesuffix('...')}{'' if self.nargs == 1 else '...'}"
        return name if self.required else f"[{name}]"


def _show_arguments_by_name(command: Any) -> Any:
    """Return the command, or group with its commands, with arguments shown by name."""
    for inner in getattr(command, "commands", {}).values():
        _show_arguments_by_name(inner)
    for each in command.params:
        if isinstance(each, TyperArgument):
            each.__class__ = _PlainArgument
    return command


def _application_of_verb(verb: str, module: Any) -> typer.Typer:
    """Return the verb's own application: a group `app`, or the one function `command`."""
    application = getattr(module, "app", None)
    if not isinstance(application, typer.Typer):
        application = typer.Typer(add_completion=False)
        application.command(verb, no_args_is_help=False)(module.command)
    application.rich_markup_mode = None
    application.info.name = verb
    return application


def _exit_code_table() -> str:
    rows = [f"  {code}  {meaning}" for code, meaning in EXIT_CODES.items()]
    return "\b\nExit codes:\n" + "\n".join(rows)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"claimgate {__version__}")
        raise typer.Exit


def create_typer_application() -> typer.Typer:
    """Return the Typer application with every verb."""
    completion.get_completion_inspect_parameters()  # tells Typer which shells there are
    app = typer.Typer(
        name="claimgate",
        cls=_VerbGroup,
        rich_markup_mode=None,
        no_args_is_help=True,
        epilog=_exit_code_table(),
        context_settings={"help_option_names": ["-h", "--help"]},
        add_completion=False,  # Typer's own options ask which shell runs, and ignore the name of another
    )

    @app.callback()
    def claimgate(
        _install: Annotated[
            _Shell | None,
            typer.Option(
                "--install-completion",
                metavar=_SHELLS,
                callback=completion.install_callback,
                is_eager=True,
                help="Install completion for a shell.",
            ),
        ] = None,
        _show: Annotated[
            _Shell | None,
            typer.Option(
                "--show-completion",
                metavar=_SHELLS,
                callback=completion.show_callback,
                is_eager=True,
                help="Print the completion script of a shell.",
            ),
        ] = None,
        _version: bool = typer.Option(
            False, "--version", callback=_print_version, is_eager=True, help="Print the version and exit."
        ),
    ) -> None:
        """Admission webhook for AI and GPU workloads on Kubernetes: CEL policies, served, replayed, audited."""

    return app


def run_command_line(arguments: Sequence[str]) -> int:
    """Run one command line and return its exit code; every expected error is printed on stderr.

    Args:
        arguments: what follows the program's name.

    """
    try:
        code = create_typer_application()(list(arguments), prog_name="claimgate", standalone_mode=False)
        sys.stdout.flush()
    except typer.TyperException as error:
        return _print_usage_error(error)
    except ClaimgateError as error:
        return _print_error(str(error))
    except ModuleNotFoundError as error:
        if told := install_hint_for_module(error.name):
            return _print_error(told)
        raise
    except (KeyboardInterrupt, typer.Abort):
        return _INTERRUPTED
    except SystemExit as stop:  # how typer ends a program whose reader went away
        if not isinstance(stop.__context__, BrokenPipeError):
            raise
        return _discard_output()
    except BrokenPipeError:
        return _discard_output()
    except OSError as error:
        return _print_error(terminal.one_line(_text_of_system_error(error)))
    return code if isinstance(code, int) else 0


def _discard_output() -> int:
    """Discard all further output, because the reader of stdout has gone away; return the exit code."""
    sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115 - it lives until the process ends
    return _BROKEN_PIPE


def _print_usage_error(error: typer.TyperException) -> int:
    """Print a usage error and where to read more; return exit code 2."""
    context = getattr(error, "ctx", None)
    if type(error).__name__ == "NoArgsIsHelpError":
        typer.echo(error.format_message(), err=True)
        return 2
    text = error.format_message().rstrip(".").replace("Value error, ", "").replace(": Input should", ": it should")
    path = context.command_path if context is not None else "claimgate"
    return _print_error(terminal.one_line(f"{text[:1].lower()}{text[1:]} (see `{path} --help`)"))


def _text_of_system_error(error: OSError) -> str:
    """Return the text of an operating system's error with the file it is about."""
    text = (error.strerror or str(error)).lower()
    return f"{error.filename}: {text}" if error.filename else text


def _print_error(text: str) -> int:
    """Print an error, one `error:` per line that starts a problem, and give exit code 2."""
    lines = text.split("\n")
    sys.stderr.write(terminal.lines(line if line.startswith((" ", "\t")) else f"error: {line}" for line in lines))
    return 2


def run_with_traceback(start: Callable[[], int]) -> int:
    """Run `start`; an unexpected error prints its traceback and returns exit code 3."""
    try:
        return start()
    except Exception:  # noqa: BLE001 - the last frame: whatever comes here is a bug, and its traceback is the report
        import traceback

        told = "error: this is a fault of claimgate itself; the lines above say where"
        sys.stderr.write(terminal.lines([*traceback.format_exc().rstrip("\n").split("\n"), told]))
        return _UNDECIDED
