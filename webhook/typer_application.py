"""Defines the command line for Typer: the verbs with their help, and the meanings of exit codes.

The module of a verb is imported when the verb is used, not for `--help` or other verbs, so starts are quick.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Annotated, Any, get_args

import typer
from typer import completion
from typer.core import TyperArgument, TyperCommand, TyperGroup

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
    "rollout": "Count the requests that passed only because claimgate does not deny yet.",
    "test": "Run the suites of policies.",
    "explain": "Explain a rule: its demand, its reason, a bad and a good example.",
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
"""Each verb with its summary; `webhook-config` is in commands/webhook_config.py."""

VERB_GROUPS = {
    "Check manifests": ("audit", "simulate", "replay", "backtest"),
    "Look at a cluster": ("why", "queues", "rollout"),
    "Run the webhook": ("serve", "certs", "webhook-config"),
    "Write policies": ("policies", "test", "cel", "ui"),
    "Look things up": ("explain", "config", "completion", "version", "demo"),
}
"""The verbs in the order of --help, grouped by users' tasks."""

OPTION_GROUPS = {
    "Objects": (
        "--include",
        "--exclude",
        "--render",
        "--render-remote",
        "--changed-since",
        "--as",
        "--phase",
        "--no-defaults",
        "--namespace",
        "--selector",
        "--shard",
        "--against",
        "--since",
    ),
    "Findings": (
        "--rule",
        "--skip",
        "--advice",
        "--min-severity",
        "--fail-on",
        "--show",
        "--statistics",
        "--baseline",
        "--write-baseline",
        "--require-input",
        "--verbose",
        "--explain",
    ),
    "Cluster": (
        "--live",
        "--kubeconfig",
        "--kube-context",
        "--context",
        "--context-is-whole",
        "--authorizer",
        "--view-memory",
        "--live-policies",
        "--publish",
        "--fails-only",
    ),
    "Policies": (
        "--policies",
        "--only",
        "--unbound",
        "--enforcement-action",
        "--workloads",
        "--cel-engine",
        "--kubernetes-version",
        "--api-server-text",
        "--warn-of-mutations",
    ),
    "Configuration": ("--config", "--no-config", "--config-from"),
    "Connections": (
        "--host",
        "--port",
        "--tls-cert",
        "--tls-key",
        "--client-ca",
        "--client-name",
        "--probe-port",
        "--probe-host",
        "--max-connections",
    ),
    "Bounds": (
        "--timeout",
        "--max-body-bytes",
        "--max-inflight-body-bytes",
        "--workers",
        "--worker-memory",
        "--memory",
    ),
    "Log": ("--log-level", "--log-format", "--log-denials", "--traces"),
}
"""The flags in help, by topic; other flags are under `More`."""
_MOST_USED = (
    "--filename",
    "--live",
    "--context",
    "--output",
    "--fail-on",
    "--explain",
    "--namespace",
    "--tls-cert",
    "--tls-key",
    "--port",
    "--check",
    "--dir",
    "--secret",
    "--service",
    "--name",
    "--inject",
    "--policies",
)
"""The flags that help shows first. Help shows at most five of these flags for one verb."""
_FEW_OPTIONS = 8
"""Up to this number, options are shown without groups."""

EXAMPLES = {
    "serve": ("claimgate serve --tls-cert tls.crt --tls-key tls.key --live",),
    "replay": (
        "claimgate replay job.yaml",
        "claimgate replay review.json --explain",
        "claimgate replay reviews/ --context cluster/ --record golden/",
    ),
    "audit": (
        "claimgate audit manifests/",
        "claimgate audit manifests/ --context cluster/ -o sarif=claimgate.sarif",
        "claimgate audit --live --namespace research",
    ),
    "simulate": (
        "claimgate simulate job.yaml --live",
        "claimgate simulate job.yaml --context cluster/ --context-is-whole",
    ),
    "why": ("claimgate why job/train -n research", "claimgate why pytorchjob/train -n research --context recorded/"),
    "backtest": (
        "claimgate backtest audit.log --policies policies/",
        "claimgate backtest audit.log --only old/ --against new/",
    ),
    "rollout": ("claimgate rollout claimgate.log --since 7d",),
    "test": ("claimgate test policies/", "claimgate test policies/ --verbose --run gpu"),
    "explain": (
        "claimgate explain gpu-portable/all",
        "claimgate explain job-set",
        "claimgate explain team-label --policies policies/",
    ),
    "policies list": ("claimgate policies list policies/",),
    "policies check": ("claimgate policies check policies/ --verbose",),
    "policies rules": ("claimgate policies rules --rule gpu-portable/all",),
    "policies init": ("claimgate policies init --list", "claimgate policies init gpu-maximum team-label"),
    "policies new": ("claimgate policies new team --expand",),
    "policies export": ("claimgate policies export policies/ | kubectl apply -f -",),
    "policies convert": ("claimgate policies convert kyverno/ > policies/converted.yaml",),
    "config init": ("claimgate config init",),
    "config show": ("claimgate config show",),
    "config check": ("claimgate config check claimgate.yaml",),
    "config schema": ("claimgate config schema suite",),
    "certs issue": ("claimgate certs issue --dir certs --service claimgate-system/claimgate",),
    "certs show": ("claimgate certs show --dir certs",),
    "certs rotate": ("claimgate certs rotate --secret claimgate-system/claimgate-certificates --inject claimgate",),
    "certs inject": ("claimgate certs inject claimgate --dir certs",),
    "webhook-config": (
        "claimgate webhook-config --ca-bundle ca.crt | kubectl apply -f -",
        "claimgate webhook-config --rbac",
        "claimgate webhook-config --check --live",
    ),
    "queues": ("claimgate queues cluster/", "claimgate queues --live -o svg=queues.svg"),
    "cel": ("""claimgate cel 'quantity("1Gi").isGreaterThan(quantity("900Mi"))'""",),
    "ui": ("claimgate ui --open",),
    "completion": ("claimgate completion bash > claimgate.bash",),
    "version": ("claimgate version",),
    "demo": ("claimgate demo",),
}
"""Command lines in help, by verb."""

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
"""The verb for words of other tools."""

EXIT_CODES = {
    0: "nothing to fix: requests allowed, no findings, tests passed; rules that were not evaluated do not count",
    1: "findings, denials or mismatches",
    2: "wrong usage, a mistake in the configuration or a policy, or an input that cannot be read",
    3: "not decided by simulate or why; other verbs exit with 3 only if --fail-on has `undecided`",
}
"""The exit codes in --help."""

_SHELLS = "|".join(get_args(Shell))


class _VerbGroup(TyperGroup):
    """The verbs; the module of a command is imported on first use."""

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002 - the signature is typer's
        return list(VERBS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ARG002
        if cmd_name not in VERBS:
            return None
        module = import_module(f"webhook.commands.{cmd_name.replace('-', '_')}")
        return _with_readable_help(typer.main.get_command(_application_of_verb(cmd_name, module)), cmd_name)

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002
        for heading, verbs in VERB_GROUPS.items():
            with formatter.section(heading):
                formatter.write_dl([(verb, VERBS[verb]) for verb in verbs])


class _PlainArgument(TyperArgument):
    """An argument that help shows without a type: `FIXTURE...`."""

    def display_type_rich(self, ctx: Any) -> None:  # noqa: ARG002 - the signature is typer's
        return None

    def _usage_display_name(self) -> str:
        name = f"{self.display_name_raw.removesuffix('...')}{'' if self.nargs == 1 else '...'}"
        return name if self.required else f"[{name}]"


class _VerbCommand(TyperCommand):
    """A verb with examples first in its help, then its options in groups, the most used ones first."""

    path = ""
    """The words that call this verb, without the program's name."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        with formatter.section("Examples"):
            for line in EXAMPLES[self.path]:
                formatter.write(f"  {line}\n")
        records = [(each, record) for each in self.get_params(ctx) if (record := each.get_help_record(ctx))]
        groups = {"Arguments": [record for each, record in records if each.param_type_name == "argument"]}
        options = [(each.opts, record) for each, record in records if each.param_type_name == "option"]
        for heading, rows in {**groups, **_options_by_group(options)}.items():
            if rows:
                with formatter.section(heading):
                    formatter.write_dl(rows)


def _options_by_group(options: Sequence[tuple[Sequence[str], Any]]) -> dict[str, list[Any]]:
    if len(options) <= _FEW_OPTIONS:
        return {"Options": [row for _, row in options]}
    rows_by_option = {name: row for names, row in options for name in names if name.startswith("--")}
    first = [name for name in _MOST_USED if name in rows_by_option][:5]
    grouped = {heading: [each for each in names if each in rows_by_option] for heading, names in OPTION_GROUPS.items()}
    named = {*first, *(name for names in grouped.values() for name in names)}
    more = [row for names, row in options if not named & set(names)]
    rows = {
        heading: [rows_by_option[name] for name in names if name not in first] for heading, names in grouped.items()
    }
    return {"Options": [rows_by_option[name] for name in first], **rows, "More": more}


def _with_readable_help(command: Any, path: str) -> Any:
    # adds examples, groups of options, and names of arguments, also to the commands of a group
    subcommands = getattr(command, "commands", {})
    for name, each in subcommands.items():
        _with_readable_help(each, f"{path} {name}")
    if not subcommands:
        command.__class__, command.path = _VerbCommand, path
    for each in command.params:
        if isinstance(each, TyperArgument):
            each.__class__ = _PlainArgument
    return command


def _application_of_verb(verb: str, module: Any) -> typer.Typer:
    # the group `app` of the module, or its function `command`
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
    completion.get_completion_inspect_parameters()  # tells Typer the shells
    app = typer.Typer(
        name="claimgate",
        cls=_VerbGroup,
        rich_markup_mode=None,
        no_args_is_help=True,
        epilog=f"{_EXAMPLES}\n\n{_exit_code_table()}",
        context_settings={"help_option_names": ["-h", "--help"]},
        add_completion=False,  # Typer's own options ignore a named shell
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
        """Check AI and GPU workloads for Kubernetes: in files, in CI, and as an admission webhook."""

    return app


def run_verb(arguments: Sequence[str]) -> int:
    """Run the verb of a command line and return its exit code.

    Raises:
        ConfigurationError: the command line is invalid.
        KeyboardInterrupt: the user interrupted the verb.
    """
    if arguments and not arguments[0].startswith("-") and arguments[0] not in VERBS:
        raise ConfigurationError(_text_about_unknown_verb(terminal.one_line(arguments[0])))
    try:
        code = create_typer_application()(list(arguments), prog_name="claimgate", standalone_mode=False, obj=arguments)
    except typer.TyperException as error:
        return _print_help_or_raise(error)
    except typer.Abort:
        raise KeyboardInterrupt from None
    return code if isinstance(code, int) else 0


def _text_about_unknown_verb(verb: str) -> str:
    similar = _VERBS_OF_OTHERS.get(verb) or nearest_name(verb, VERBS)
    advice = f"did you mean `claimgate {similar}`?" if similar else "`claimgate --help` lists all commands"
    return f"there is no command `{verb}`; {advice}"


def _print_help_or_raise(error: typer.TyperException) -> int:
    # raises ConfigurationError, or prints the help (exit code 2) if no verb was named
    context = getattr(error, "ctx", None)
    if type(error).__name__ == "NoArgsIsHelpError":
        typer.echo(error.format_message(), err=True)
        return 2
    text = error.format_message().rstrip(".").replace("Value error, ", "").replace(": Input should", ": it should")
    path = context.command_path if context is not None else "claimgate"
    raise ConfigurationError(terminal.one_line(f"{text[:1].lower()}{text[1:]} (see `{path} --help`)"))
