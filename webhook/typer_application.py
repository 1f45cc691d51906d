"""The command line as Typer parses it: which verbs there are, and what the exit codes mean.

A verb's module is imported when the verb is used, never for `--help` or for another verb: start-up time is part of what
replay promises. Knows nothing of what verbs do.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Annotated, Any, get_args

import typer
from typer import completion
from typer.core import TyperArgument, TyperGroup

from webhook import __version__
from webhook.errors import ConfigurationError
from webhook.text import terminal
from webhook.text.similar_names import nearest_name
from webhook.text.terminal import Shell

VERBS = {
    "serve": "Answer AdmissionReviews of an API server over HTTPS.",
    "replay": "Show what the webhook would answer to recorded reviews or plain objects.",
    "audit": "Report every finding about the objects of folders, files or stdin.",
    "simulate": "Say whether a job can ever start, and if not, why.",
    "why": "Say why a job in the cluster does not run, and what would stop it next.",
    "backtest": "Evaluate policies on the requests in the audit log of an API server.",
    "rollout": "Count what an installation that only audits or warns would have refused.",
    "test": "Run the suites of policies.",
    "explain": "Explain a rule: what it demands, why, a bad and a good example.",
    "policies": "Write, list, check, export and convert policies.",
    "config": "Show the configuration in use, check a file, print the schema.",
    "certs": "Issue, show, rotate and inject certificates.",
    "webhook-config": "Print the webhook configurations that the policies need.",
    "queues": "Show the queues of Kueue, and what each queue can admit at most.",
    "cel": "Evaluate CEL expressions.",
    "ui": "Try policies and objects in the browser, on this machine.",
    "version": "Print the version.",
    "demo": "Show in five scenes what claimgate does, on this machine.",
    "completion": "Print the completion script of a shell.",
}
"""Every verb with its one-line summary; `webhook-config` lives in commands/webhook_config.py."""

VERB_GROUPS = {
    "Check manifests": ("audit", "simulate", "replay", "backtest"),
    "Look at a cluster": ("why", "queues", "rollout"),
    "Run the webhook": ("serve", "certs", "webhook-config"),
    "Write policies": ("policies", "test", "cel", "ui"),
    "Look things up": ("explain", "config", "completion", "version", "demo"),
}
"""The verbs in the order of --help, by what a person wants to do."""

_EXAMPLES = """\b
Examples:
  claimgate audit manifests/                     what is wrong with these files
  claimgate simulate job.yaml --context cluster  why this job would not start
  claimgate explain job-set/dns-label            what a rule demands, and why
  claimgate VERB --help                          all options of a verb"""

_VERBS_OF_OTHERS = {
    "lint": "audit",
    "validate": "audit",
    "check": "audit",
    "scan": "audit",
    "verify": "audit",
    "diagnose": "why",
    "run": "serve",
    "start": "serve",
    "server": "serve",
    "rule": "explain",
    "rules": "explain",
}
"""What people type who know other tools."""

EXIT_CODES = {
    0: "nothing to fix: all allowed, no findings, all tests passed, or something could not be decided",
    1: "findings, denials or mismatches",
    2: "wrong usage, a mistake in the configuration or a policy, or an input that cannot be read",
    3: "not decided: `unknown` of simulate and why; for other verbs only with `undecided` in --fail-on",
}
"""The one table of exit codes, printed by --help."""

_SHELLS = "|".join(get_args(Shell))


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
        for heading, verbs in VERB_GROUPS.items():
            with formatter.section(heading):
                formatter.write_dl([(verb, VERBS[verb]) for verb in verbs])


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
        epilog=f"{_EXAMPLES}\n\n{_exit_code_table()}",
        context_settings={"help_option_names": ["-h", "--help"]},
        add_completion=False,  # Typer's own options ask which shell runs, and ignore the name of another
    )

    @app.callback()
    def claimgate(
        _install: Annotated[
            Shell | None,
            typer.Option(
                "--install-completion",
                metavar=_SHELLS,
                callback=completion.install_callback,
                is_eager=True,
                help="Install completion for a shell.",
            ),
        ] = None,
        _show: Annotated[
            Shell | None,
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


def run_verb(arguments: Sequence[str]) -> int:
    """Run the verb of a command line and return its exit code.

    Args:
        arguments: what follows the program's name.

    Raises:
        ConfigurationError: the command line cannot be parsed.
        KeyboardInterrupt: a person broke it off.
    """
    if arguments and not arguments[0].startswith("-") and arguments[0] not in VERBS:
        raise ConfigurationError(_text_about_unknown_verb(terminal.one_line(arguments[0])))
    try:
        code = create_typer_application()(list(arguments), prog_name="claimgate", standalone_mode=False)
    except typer.TyperException as error:
        return _print_help_or_raise(error)
    except typer.Abort:
        raise KeyboardInterrupt from None
    return code if isinstance(code, int) else 0


def _text_about_unknown_verb(verb: str) -> str:
    meant = _VERBS_OF_OTHERS.get(verb) or nearest_name(verb, VERBS)
    advice = f"did you mean `claimgate {meant}`?" if meant else "`claimgate --help` lists them"
    return f"there is no command `{verb}`; {advice}"


def _print_help_or_raise(error: typer.TyperException) -> int:
    """Print the help where no verb was named, and return exit code 2; else say what is wrong and where to read more.

    Raises:
        ConfigurationError: what is wrong with the command line.
    """
    context = getattr(error, "ctx", None)
    if type(error).__name__ == "NoArgsIsHelpError":
        typer.echo(error.format_message(), err=True)
        return 2
    text = error.format_message().rstrip(".").replace("Value error, ", "").replace(": Input should", ": it should")
    path = context.command_path if context is not None else "claimgate"
    raise ConfigurationError(terminal.one_line(f"{text[:1].lower()}{text[1:]} (see `{path} --help`)"))
