"""`claimgate policies`: writes, lists, checks, exports and converts policies, and prints the reference of rules."""

from __future__ import annotations

import datetime as dt
import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Final, TypeAlias

import typer

from webhook import assembly
from webhook.apimachinery.attributes import JSON
from webhook.apimachinery.object_lists import objects_of_list
from webhook.apimachinery.paths import FieldPath
from webhook.cluster.lookup import namespace_and_name
from webhook.commands import new_policy, options, output, policy_details
from webhook.commands.options import complete_output, complete_rule
from webhook.errors import ConfigurationError, InputError, InputProblem
from webhook.manifests.configuration import ConfigurationFile
from webhook.manifests.leave_alone import current_day
from webhook.manifests.models import ShapeError
from webhook.manifests.policy_exceptions import effect_of_exception, is_policy_exception, parse_policy_exception
from webhook.policy.configured_rules import KnownNames, apply_configuration_to_policies, mistakes_of_policy_exception
from webhook.policy.load import compile_policy_documents, load_policy_set, read_policy_documents
from webhook.policy.policy_set import PolicySet
from webhook.rules import pages
from webhook.rules.catalogue import RULES_OF_FILES
from webhook.settings.shared import Settings
from webhook.text import terminal
from webhook.text.wording import counted
from webhook.yamltext import yamlfile
from webhook.yamltext.yamlfile import Document

_PLACES: dict[str, FieldPath] = {"Expired": ("spec", "expires"), "TooLong": ("spec", "expires")}
"""The field that is wrong, by the reason for which an exception has no effect."""
SETTINGS: Final = ("config", "workloads", "cel_engine", "kubernetes_version", "own_namespace")
Folders: TypeAlias = Annotated[
    list[Path] | None,
    typer.Argument(metavar="DIR", show_default=False, help="Folders and files. Default: the shipped policies."),
]


def settings_with_named_policies(named: Sequence[Path] | None, settings: Settings) -> Settings:
    """Return the settings with the named policies instead of the shipped policies."""
    return replace(settings, only=tuple(named)) if named else settings


@options.add_settings_flags(Settings, *SETTINGS)
def command(
    folder: Folders = None,
    *,
    rule: Annotated[
        list[str] | None,
        typer.Option(
            "--rule",
            metavar="ID",
            help="Print only this rule, such as device-claims/claim-exists; repeatable.",
            autocompletion=complete_rule,
        ),
    ] = None,
    pages: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Write an index and a page for each group of rules into this folder."),
    ] = None,
    late: Annotated[
        bool,
        typer.Option(
            "--late", help="Print the page of late failures: tables of the mistakes that nothing refuses at submission."
        ),
    ] = False,
    settings: Settings,
) -> int:
    """Print the reference of rules as Markdown.

    Each rule has its reason, its source, a bad and a good example from the suites, and how to switch it off.
    """
    from webhook.suites import late_failures, rule_reference
    from webhook.suites.examples import examples

    if (bool(rule), pages is not None, late).count(True) > 1:
        raise ConfigurationError("--rule, --pages and --late exclude each other: give one of them")
    chosen = settings_with_named_policies(folder, settings)
    places, compile_options = assembly.policy_folders_of_settings(chosen), assembly.create_compile_options(chosen)
    policies, others = load_policy_set(places, compile_options).policies, () if folder else RULES_OF_FILES.values()
    if late:
        uncovered = () if folder else late_failures.read_uncovered_failures()
        text = late_failures.late_failures_as_markdown(policies, uncovered)
        sys.stdout.write(terminal.lines(text.removesuffix("\n").split("\n")))
    elif pages is not None:
        _write_pages(pages, rule_reference.rule_pages(policies, examples(places, compile_options), others))
    else:
        text = rule_reference.rules_as_text(
            policies, lambda: examples(places, compile_options, rule or None), rule or (), others
        )
        sys.stdout.write(terminal.lines(text.removesuffix("\n").split("\n")))
    return 0


def _write_pages(folder: Path, pages: Mapping[str, str]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, page in pages.items():
        (folder / name).write_text(page, encoding="utf-8")


app = typer.Typer(no_args_is_help=True, add_completion=False, help="Write, list, check, export and convert policies.")

FORMATS = ("text", "json")
Outputs: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--output",
        "-o",
        metavar="FORMAT[=FILE]",
        help="text or json; repeatable.",
        autocompletion=complete_output(*FORMATS),
    ),
]


@app.command("list")
@options.add_settings_flags(Settings, *SETTINGS)
def list_policies(folder: Folders = None, *, chosen: Outputs = None, settings: Settings) -> int:
    """List every policy, its actions and its file.

    The bindings of a policy set its actions. A policy that is `unbound` is evaluated only with --unbound.
    """
    outputs = output.parse_outputs(chosen, FORMATS)
    loaded = _load_named_policies(folder, settings)
    described = [policy_details.brief_details(policy) for policy in loaded.policies]
    output.write_to_outputs(
        outputs,
        {"text": lambda: policy_details.policy_table(described), "json": lambda: _descriptions_as_json(described)},
    )
    options.warn_of_unbound(loaded)
    return 0


@app.command()
@options.add_settings_flags(Settings, *SETTINGS)
def check(
    folder: Folders = None,
    *,
    chosen: Outputs = None,
    verbose: Annotated[
        bool,
        typer.Option("--verbose", "-v", help="Show what each policy covers, its cost, and whether it is portable."),
    ] = False,
    settings: Settings,
) -> int:
    """Compile every policy, and report mistakes.

    Checks the types in each expression. Evaluates each expression on valid objects of the matched kinds, with and
    without their optional fields. Reports:

    - expressions that fail on a valid object, and wrong types

    - rules that match nothing, and conditions that never change

    - policies without a binding

    - mutations that change the object again when they run twice

    Makes valid objects of a custom kind from its CustomResourceDefinition in the same files. If the definition is
    missing, the report names the kind, and only expressions about metadata are evaluated.

    Also checks the PolicyExceptions in the files: fields, rules, kinds, last day, and whether claimgate.yaml allows
    them.

    --verbose shows what each policy covers, its cost, and whether API servers can evaluate the policy or its export.
    The cost is the worst case. API servers stop an expression at a cost of 1,000,000.

    Exits with 1 if a policy or PolicyException has a mistake. Exits with 2 if a policy does not compile, or its params
    name a rule that does not exist.
    """
    outputs = output.parse_outputs(chosen, FORMATS)
    loaded, exceptions = _load_policies_and_exceptions(folder, settings)
    exported = policy_details.rewritten_policies(loaded, settings.kubernetes_version)
    compile_options = assembly.create_compile_options(settings_with_named_policies(folder, settings))
    described = [policy_details.full_details(policy, loaded, exported, compile_options) for policy in loaded.policies]
    output.write_to_outputs(
        outputs,
        {
            "text": lambda: (
                (policy_details.check_report(described, verbose=verbose) if described else "")
                + terminal.lines(lines_about_exceptions(exceptions, settings.configuration))
            ),
            "json": lambda: _descriptions_as_json([*described, *exceptions]),
        },
    )
    if loaded.foreign:
        terminal.print_to_stderr([f"warning: {loaded.foreign}"])
    is_wrong = loaded.unbound_policy_names or any(map(policy_details.has_certain_mistakes, described))
    return 1 if is_wrong or any(each["mistakes"] for each in exceptions) else 0


app.command("rules")(command)
app.command("new")(new_policy.command)
app.command("init")(new_policy.init)


@app.command()
@options.add_settings_flags(Settings, "config", "workloads", "kubernetes_version", "own_namespace")
def export(folder: Folders = None, *, settings: Settings) -> int:
    """Print policies that API servers can evaluate without claimgate.

    The output is for `kubectl apply -f -`. A validating policy that needs claimgate only for `expand` becomes several
    policies, for Pods and for the pod templates of workloads. On stderr, the command names the policies that it
    leaves out, with the reason.
    """
    from webhook.commands.export import collect_exportable_policies as collect

    collected = collect(_load_named_policies(folder, settings), settings.kubernetes_version)
    sys.stdout.write("---\n".join(yamlfile.dump(value) for value in collected.manifests))
    terminal.print_to_stderr(collected.left_out)
    return 0


@app.command()
@options.add_settings_flags(Settings, "config", "workloads", "kubernetes_version")
def convert(
    named: Annotated[
        list[Path], typer.Argument(metavar="FILE", show_default=False, help="Files and folders; `-` is standard input.")
    ],
    *,
    settings: Settings,
) -> int:
    """Print policies of Kyverno, Gatekeeper and Kubewarden as native policies with their bindings.

    Reads these kinds:

    - Kyverno: ValidatingPolicy and MutatingPolicy, also namespaced, and ClusterPolicy and Policy with `validate.cel`

    - Gatekeeper: ConstraintTemplates in CEL, with their constraints

    - Kubewarden: policies with the module `cel-policy`

    Prints on stderr the policies that cannot be converted exactly, with the reason. With such policies, the exit code
    is 1. If a file cannot be read, or has no policy, the exit code is 2.
    """
    from webhook.conversion.convert import convert_documents

    read = read_policy_documents(named)
    if read.problems:
        raise InputError(*read.problems)
    result = convert_documents(read.documents, assembly.create_compile_options(settings))
    if not result.policy_count:
        where = ", ".join(read.places)
        raise InputError(InputProblem(message="no policy of Kyverno, Gatekeeper or Kubewarden found", file=where))
    sys.stdout.write("---\n".join(yamlfile.dump(value) for value in result.manifests))
    converted = result.policy_count - len(result.problems)
    terminal.print_to_stderr([*map(str, result.problems), *(f"note: {each}" for each in result.notes)])
    sys.stderr.write(
        terminal.lines(
            [f"{counted(result.policy_count, 'policy', 'policies')}: {converted} converted, {len(result.problems)} not"]
        )
    )
    return 1 if result.problems else 0


def _load_named_policies(named: Sequence[Path] | None, settings: Settings) -> PolicySet:
    chosen = settings_with_named_policies(named, settings)
    return assembly.load_policies_of_settings(chosen, assembly.create_compile_options(chosen))


def _load_policies_and_exceptions(
    named: Sequence[Path] | None, settings: Settings
) -> tuple[PolicySet, list[dict[str, Any]]]:
    """Return the policies and the PolicyExceptions. Files may have only PolicyExceptions."""
    chosen = settings_with_named_policies(named, settings)
    compile_options = assembly.create_compile_options(chosen)
    read = read_policy_documents(assembly.policy_folders_of_settings(chosen))
    if read.documents and all(is_policy_exception(each.value) for each in read.documents) and not read.problems:
        policies = assembly.load_policies_of_settings(settings, compile_options)
        loaded = replace(policies, validating=(), mutating=())
    else:
        loaded = policies = apply_configuration_to_policies(
            compile_policy_documents(read, compile_options), chosen.configuration
        )
    return loaded, check_policy_exceptions(read.documents, policies, settings.configuration, current_day())


def _descriptions_as_json(described: Iterable[dict[str, Any]]) -> str:
    return terminal.escape_json_text(json.dumps(list(described), indent=2, ensure_ascii=False)) + "\n"


def check_policy_exceptions(
    documents: Iterable[Document], policies: PolicySet, configuration: ConfigurationFile, day: dt.date
) -> list[dict[str, Any]]:
    """Return `kind`, `name` with namespace, `file`, and `mistakes` with places of each PolicyException.

    Args:
        documents: documents of files. Other kinds are left out.
        policies: policies of the site. A PolicyException may name rules of these policies and of the shipped policies.
        configuration: has the bounds. Without a file, bounds are not checked.
        day: today. An object of a file counts as created today.
    """
    rules_of_policies = frozenset(pages.shipped_rule_ids()).difference(RULES_OF_FILES)
    names = KnownNames.of(policies, rules_of_policies)
    checked: list[dict[str, Any]] = []
    for document in documents:
        for inside, value in objects_of_list(document.value):
            if not is_policy_exception(value):
                continue
            mistakes = _mistakes(value, names, configuration, day)
            checked.append(
                {
                    "kind": "PolicyException",
                    "name": "/".join(filter(None, namespace_and_name(value))),
                    "file": document.file,
                    "mistakes": [str(document.problem((*inside, *path), text)) for path, text in mistakes],
                }
            )
    return checked


def _mistakes(
    value: JSON, names: KnownNames, configuration: ConfigurationFile, day: dt.date
) -> Iterator[tuple[FieldPath, str]]:
    try:
        exception = parse_policy_exception(value)
    except ShapeError as error:
        yield from error.problems
        return
    yield from mistakes_of_policy_exception(exception, names)
    effect = effect_of_exception(exception, configuration.value, day)
    if not effect.holds and (configuration.document is not None or effect.reason == "Expired"):
        yield _PLACES.get(effect.reason, ("spec", "rules")), f"it has no effect: {effect.message}"


def lines_about_exceptions(checked: Sequence[dict[str, Any]], configuration: ConfigurationFile) -> Iterator[str]:
    """Yield a line with the number of PolicyExceptions, then the mistakes of each PolicyException."""
    if not checked:
        return
    wrong = sum(bool(exception["mistakes"]) for exception in checked)
    bounds = configuration.path or "no configuration file, so bounds are not checked: name it with --config"
    verdict = f"{wrong} {'has' if wrong == 1 else 'have'} mistakes" if wrong else "no mistake found"
    yield f"{counted(len(checked), 'PolicyException')}: {verdict} ({bounds})"
    for exception in checked:
        yield from (f"    {text}" for text in exception["mistakes"])
