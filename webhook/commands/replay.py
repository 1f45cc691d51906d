"""`claimgate replay`: what the webhook answers to recorded reviews or plain objects, here or at a running server."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Annotated

import typer

from webhook import assembly, documents, terminal
from webhook.admission import fixtures, respond
from webhook.admission.phases import Door, Local, PhaseName, run
from webhook.attributes import Attributes, Phase
from webhook.commands import options, output
from webhook.config import Settings
from webhook.errors import CallError, ConfigurationError, InputError, Problem
from webhook.report import answer as answers
from webhook.report.answer import Answer
from webhook.report.finding import subject
from webhook.workloads import table

FORMATS = ("text", "json", "ndjson")


def command(
    fixture: Annotated[
        list[str],
        typer.Argument(
            metavar="FIXTURE",
            help="Files, folders or - for stdin: AdmissionReviews, bare requests, plain objects (taken as CREATE), "
            "or lists of them, in YAML, JSON or NDJSON.",
        ),
    ],
    *,
    policies: options.Policies = None,
    context: options.Context = None,
    phase: Annotated[
        PhaseName, typer.Option(help="The phase to ask; auto mutates, then validates what came out.")
    ] = "auto",
    chosen: Annotated[
        list[str] | None,
        typer.Option("--output", "-o", metavar="FORMAT[=FILE]", help="text, json or ndjson; repeatable."),
    ] = None,
    server: Annotated[
        str, typer.Option(metavar="URL", help="Ask the running webhook at this https address instead.")
    ] = "",
    ca: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Certificates that the server's chain must end in (with --server)."),
    ] = None,
    workloads: options.Workloads = None,
    cel_engine: options.Engine = None,
    kubernetes_version: options.Version = None,
) -> int:
    """Say what the webhook would answer to recorded reviews or plain objects.

    Exits with 0 when all are allowed, 1 when one is denied, 2 when an input or a policy cannot be read, and 3 when
    none is denied but a policy could not decide.
    """
    outputs = output.parse(chosen, FORMATS)
    flags = {"policies": policies, "context": context, "workloads": workloads}
    settings = assembly.read_settings(**flags, cel_engine=cel_engine, kubernetes_version=kubernetes_version)
    if server and (policies or context):
        raise ConfigurationError("--server: the server has its own; leave out --policies and --context")
    if ca and not server:
        raise ConfigurationError("--ca: it is only used with --server")
    inputs = documents.read(fixture)
    with _remote(server, ca, settings) if server else _local(settings) as (door, row):
        given, problems, undecided = _answers(inputs, phase, door, row)
    problems += documents.nothing(fixture, inputs, "review")
    output.deliver(
        outputs,
        {
            "text": lambda: answers.text(given),
            "json": lambda: answers.document(given),
            "ndjson": lambda: answers.ndjson(given),
        },
    )
    return _exit_code(given, problems, undecided)


@contextmanager
def _local(settings: Settings) -> Iterator[tuple[Door, fixtures.RowOf]]:
    assembled = assembly.assemble(settings)
    door = Local(policies=assembled.policies, cluster=assembled.cluster, api_server_text=settings.api_server_text)
    yield door, assembled.table.row


@contextmanager
def _remote(server: str, ca: Path | None, settings: Settings) -> Iterator[tuple[Door, fixtures.RowOf]]:
    from webhook.commands.remote import Remote

    with closing(Remote.connect(server, ca)) as door:
        yield door, table.load(settings.workloads).row


def _answers(
    inputs: documents.Inputs, phase: PhaseName, door: Door, row: fixtures.RowOf
) -> tuple[list[Answer], list[Problem], list[Problem]]:
    """The answers, what could not be read, and what the server would not answer."""
    given: list[Answer] = []
    unreadable, undecided = list(inputs.problems), list[Problem]()
    for found in inputs.found:
        try:
            attributes = fixtures.attributes(found.value, row)
        except CallError as error:
            unreadable.append(_problem(found, error.message))
            continue
        try:
            given.append(_answer(found, attributes, phase, door))
        except CallError as error:
            undecided.append(_problem(found, f"the server answered HTTP {error.code}: {error.message}"))
    return given, unreadable, undecided


def _problem(found: documents.Input, message: str) -> Problem:
    place = found.place()
    return Problem(message=message, file=place.file, line=place.line, column=place.column)


def _answer(found: documents.Input, attributes: Attributes, phase: PhaseName, door: Door) -> Answer:
    outcome = run(attributes, phase, door)
    shown_as = Phase.VALIDATE if phase == "validate" else Phase.MUTATE  # where a patch may stand in the response
    body = respond.respond(attributes.uid, outcome.verdict, shown_as, attributes.operation)
    return Answer(
        place=found.place(),
        index=found.index,
        subject=subject(attributes),
        operation=str(attributes.operation),
        phase=phase,
        verdict=outcome.verdict,
        decisions=outcome.decisions,
        patched_object=outcome.patched_object,
        response=json.loads(body),
    )


def _exit_code(given: list[Answer], problems: list[Problem], undecided: list[Problem]) -> int:
    """Complain about what could not be read or asked, and weigh: unreadable, denied, undecided, clean."""
    for problem in undecided:
        sys.stderr.write(terminal.lines([f"error: {problem}"]))
    if problems:
        raise InputError(*problems)
    if any(not answer.verdict.allowed for answer in given):
        return 1
    return 3 if undecided or any(answer.is_undecided for answer in given) else 0
