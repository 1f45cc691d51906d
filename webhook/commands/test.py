"""`claimgate test`: the suites beside policies, run through the same core that serves."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from webhook import assembly, shipped, terminal
from webhook.commands import options, output
from webhook.errors import InputError, Problem
from webhook.policy.load import Options
from webhook.report import junit
from webhook.suites import find
from webhook.suites.case import Result, check

FORMATS = ("text", "json", "junit")
_NONE = "no case found; expected suite.yaml, kyverno-test.yaml or *cases.jsonl"


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
    require_tests: Annotated[bool, typer.Option("--require-tests", help="Fail when there is no case at all.")] = False,
    chosen: Annotated[
        list[str] | None,
        typer.Option("--output", "-o", metavar="FORMAT[=FILE]", help="text, json or junit; repeatable."),
    ] = None,
    workloads: options.Workloads = None,
    cel_engine: options.Engine = None,
    kubernetes_version: options.Version = None,
) -> int:
    """Run the suites beside policies.

    Exits with 0 when all cases pass, 1 when one fails, and 2 when a suite cannot be read.
    """
    outputs = output.parse(chosen, FORMATS)
    settings = assembly.read_settings(workloads=workloads, cel_engine=cel_engine, kubernetes_version=kubernetes_version)
    problems: list[Problem] = []
    named = folder or [Path(shipped.shown(each)) for each in assembly.places(settings)]
    results = list(_results(named, assembly.options(settings), problems))
    writers = {"text": lambda: text(results), "json": lambda: document(results), "junit": lambda: junit.write(results)}
    output.deliver(outputs, writers)
    if problems:
        raise InputError(*problems)
    if not results:
        where = " ".join(map(str, folder or ()))
        told = f"{'error: --require-tests: ' if require_tests else ''}{where}: {_NONE}"
        sys.stderr.write(terminal.lines([told]))
        return int(require_tests)
    return 1 if any(result.why for result in results) else 0


def _results(named: Sequence[Path], how: Options, problems: list[Problem]) -> Iterator[Result]:
    """Every case of every suite; a suite that cannot be read is a problem, and the others still run."""
    for suite in find.suites(named):
        try:
            yield from map(check, list(find.read(suite, how)))
        except InputError as error:
            problems.extend(error.problems)


def text(results: Sequence[Result]) -> str:
    """A line per suite, every failure with its difference, and the sums."""
    lines: list[str] = []
    for suite in dict.fromkeys(result.suite for result in results):
        own = [result for result in results if result.suite == suite]
        failed = [result for result in own if result.why]
        lines.append(f"{suite}: {len(own) - len(failed)} of {len(own)} passed")
        for result in failed:
            lines.append(f"  failed: {result.id}")
            lines.extend(f"    {line}" for line in result.why.split("\n"))
    failures = sum(bool(result.why) for result in results)
    cases = "1 case" if len(results) == 1 else f"{len(results)} cases"
    lines.append(f"{cases}: {len(results) - failures} passed, {failures} failed")
    return terminal.lines(lines)


def document(results: Sequence[Result]) -> str:
    """`{"total", "passed", "failed": [{"id", "why"}]}`."""
    failed = [{"id": result.id, "why": result.why} for result in results if result.why]
    sums: dict[str, Any] = {"total": len(results), "passed": len(results) - len(failed), "failed": failed}
    return terminal.exact_json(json.dumps(sums, indent=2, ensure_ascii=False)) + "\n"
