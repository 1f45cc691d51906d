"""`claimgate test`: the suites of policies, run through the same function that serves."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated

import typer

from webhook import assembly, shipped, terminal
from webhook.commands import options, output
from webhook.errors import InputError, Problem
from webhook.policy.load import Options
from webhook.report import formats
from webhook.report.case import CaseResult
from webhook.report.writer import Totals
from webhook.settings.shared import Settings
from webhook.suites import find
from webhook.suites.case import check

_NONE = "no case found; expected suite.yaml, kyverno-test.yaml or *cases.jsonl"


@options.takes(Settings, "workloads", "cel_engine", "kubernetes_version")
def command(
    folder: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="DIR",
            show_default=False,
            help="Folders (or suite files): suite.yaml, kyverno-test.yaml, gator Suites and *cases.jsonl. "
            "Default: the shipped policies.",
        ),
    ] = None,
    *,
    require_tests: Annotated[bool, typer.Option("--require-tests", help="Exit with 1 when there is no case.")] = False,
    chosen: options.ReportOutputs = None,
    settings: Settings,
) -> int:
    """Run the suites of policies.

    Exits with 0 when all cases pass, 1 when one fails, and 2 when a suite cannot be read.
    """
    writers = formats.of_cases()
    outputs = output.parse(chosen, writers)
    problems: list[Problem] = []
    named = folder or [Path(shipped.shown(each)) for each in assembly.places(settings)]
    count = failed = 0
    with output.Report(outputs, writers, {}) as report:
        for result in _results(named, assembly.options(settings), problems):
            count += 1
            failed += bool(result.why)
            report.entry(result)
        report.end(Totals(entries=count, failures=failed, unreadable=tuple(problems)))
    if problems:
        raise InputError(*problems)
    return int(failed > 0) if count else _nothing(folder, require_tests=require_tests)


def _results(named: Sequence[Path], how: Options, problems: list[Problem]) -> Iterator[CaseResult]:
    """Every case of every suite; a suite that cannot be read is a problem, and the others still run."""
    for suite in find.suites(named):
        try:
            yield from map(check, list(find.read(suite, how)))
        except InputError as error:
            problems.extend(error.problems)


def _nothing(folder: Sequence[Path] | None, *, require_tests: bool) -> int:
    where = " ".join(map(str, folder or ()))
    sys.stderr.write(terminal.lines([f"{'error: --require-tests: ' if require_tests else ''}{where}: {_NONE}"]))
    return int(require_tests)
