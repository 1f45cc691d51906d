"""`claimgate audit`: every object of folders, files or stdin through the same core, as findings with their lines."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

import typer

from webhook import assembly, documents
from webhook.admission import fixtures
from webhook.admission.phases import Local, run
from webhook.attributes import JSON
from webhook.commands import options, output
from webhook.errors import CallError, InputError
from webhook.paths import parse
from webhook.report import finding, json, policyreport, text
from webhook.report.finding import Finding, Foreign, Place, Report, Result

FORMATS = {"text": text.write, "json": json.write, "policyreport": policyreport.write}


def command(
    path: Annotated[
        list[str], typer.Argument(metavar="PATH", help="Folders, files or - for stdin: YAML, JSON or NDJSON.")
    ],
    *,
    policies: options.Policies = None,
    context: options.Context = None,
    chosen: Annotated[
        list[str] | None,
        typer.Option("--output", "-o", metavar="FORMAT[=FILE]", help="text, json or policyreport; repeatable."),
    ] = None,
    workloads: options.Workloads = None,
    cel_engine: options.Engine = None,
    kubernetes_version: options.Version = None,
) -> int:
    """Report every finding about the objects of folders, files or stdin.

    Each object is reviewed as if it were created now; the audited objects, and those of --context, are what the
    cluster holds. Exits with 0 when nothing was found, 1 when something was, 2 when an input or a policy cannot be
    read, and 3 when nothing was found but a policy could not decide.
    """
    outputs = output.parse(chosen, tuple(FORMATS))
    flags = {"policies": policies, "context": context, "workloads": workloads}
    settings = assembly.read_settings(**flags, cel_engine=cel_engine, kubernetes_version=kubernetes_version)
    inputs = documents.read(path)
    assembled = assembly.assemble(settings, beside=_held(inputs))
    report = _audit(inputs, assembled)
    output.deliver(outputs, {name: _writer(name, report) for name in FORMATS})
    if problems := (*report.unreadable, *documents.nothing(path, inputs, "object")):
        raise InputError(*problems)
    return _exit_code(report)


def _held(inputs: documents.Inputs) -> Iterator[JSON]:
    """The audited objects that a cluster could hold: what is not a review and has a kind."""
    for found in inputs.found:
        if isinstance(found.value, dict) and "kind" in found.value and not _is_call(found.value):
            yield found.value


def _writer(name: str, report: Report) -> output.Writer:
    return lambda: FORMATS[name](report)


def _audit(inputs: documents.Inputs, assembled: assembly.Assembly) -> Report:
    door = Local(policies=assembled.policies, cluster=assembled.cluster)
    findings: list[Finding] = []
    foreign: list[Foreign] = []
    for found in inputs.found:
        try:
            attributes = fixtures.attributes(found.value, assembled.table.row)
        except CallError as error:
            foreign.append(Foreign(place=found.place(), why=error.message.partition(";")[0]))
            continue
        outcome = run(attributes, "auto", door)
        findings.extend(finding.findings(outcome.decisions, finding.subject(attributes), _locator(found)))
    return Report(
        findings=tuple(findings),
        objects=len(inputs.found) - len(foreign),
        files=inputs.files,
        foreign=tuple(foreign),
        unreadable=inputs.problems,
    )


def _locator(found: documents.Input) -> finding.Locate:
    """From a printed field path to its place; a review's object is found inside the review."""
    inside = () if not _is_call(found.value) else (*(("request",) if fixtures.is_review(found.value) else ()), "object")

    def locate(path: str) -> Place:
        try:
            return found.place((*inside, *parse(path)))
        except ValueError:
            return found.place()

    return locate


def _is_call(value: object) -> bool:
    return fixtures.is_review(value) or fixtures.is_request(value)


def _exit_code(report: Report) -> int:
    if report.summary[Result.FAIL] or report.summary[Result.WARN]:
        return 1
    return 3 if report.summary[Result.ERROR] or report.summary[Result.SKIP] else 0
