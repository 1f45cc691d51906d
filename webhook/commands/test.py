"""`claimgate test`: the suites of policies, run through the same function that serves."""

from __future__ import annotations

import sys
from collections import Counter
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
from webhook.report.finding import Result
from webhook.report.writer import Totals
from webhook.settings.shared import Settings
from webhook.suites import find
from webhook.suites.case import Case, Entry, Unreadable, check
from webhook.suites.files import Suite
from webhook.wording import counted

_NONE = "no case found; expected suite.yaml, kyverno-test.yaml, gator Suites or *cases.jsonl"


@options.with_settings(Settings, "config", "workloads", "cel_engine", "kubernetes_version")
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
    advice: options.Advice = False,
    chosen: options.ReportOutputs = None,
    settings: Settings,
) -> int:
    """Run the suites of policies.

    Cases that cannot be evaluated here, such as those of Rego or of Kyverno's own kinds of policies, are skipped,
    counted, and named with the reason. Exits with 0 when all other cases pass, 1 when one fails, and 2 when a suite or
    a case cannot be read, or when no case of a file that is named was run.
    """
    writers = formats.of_cases()
    outputs = output.parse_outputs(chosen, writers)
    named = folder or [Path(shipped.shown(each)) for each in assembly.policy_places(settings)]
    tests = _Tests(named, assembly.compile_options(settings), shows_advice=advice)
    with output.Report(outputs, writers, {}) as report:
        for result in tests.results():
            report.entry(result)
        report.end(tests.totals())
    _write([f"note: {counted(count, 'case')}: {note}" for note, count in tests.notes.items()])
    if problems := tests.problems():
        raise InputError(*problems)
    return tests.exit_code(folder, require_tests=require_tests)


class _Tests:
    """One run of suites: its results one after the other, and then what they add up to."""

    def __init__(self, named: Sequence[Path], how: Options, *, shows_advice: bool) -> None:
        self.notes: Counter[str] = Counter()
        self._named = named
        self._how = how
        self._shows_advice = shows_advice
        self._results: Counter[Result] = Counter()
        self._problems: list[Problem] = []
        self._without: list[Problem] = []

    def results(self) -> Iterator[CaseResult]:
        """Every case of every suite, once; what cannot be read is kept, and the others still run."""
        for suite in find.suites(self._named):
            ran = False
            for entry in _entries(suite, self._how):
                if isinstance(entry, Unreadable):
                    self._problems.extend(entry.problems)
                result = check(entry)
                if result.result is Result.ERROR and not isinstance(entry, Unreadable):
                    self._problems.append(Problem(message=f"{entry.id}: {result.why}", file=str(suite.file)))
                self._results[result.result] += 1
                self.notes.update(result.notes)
                if self._shows_advice and isinstance(entry, Case):
                    self.notes.update(f"advice: {text}" for text in entry.advice())
                ran |= result.result is not Result.SKIP
                yield result
            if not ran and suite.file in self._named:
                self._without.append(_without(suite))

    def totals(self) -> Totals:
        """What the results so far add up to."""
        results = {result: self._results[result] for result in Result}
        return Totals(entries=self._results.total(), failures=self._results[Result.FAIL], results=results)

    def problems(self) -> tuple[Problem, ...]:
        """What could not be read, and named files of which nothing was run."""
        return (*self._problems, *self._without)

    def exit_code(self, folder: Sequence[Path] | None, *, require_tests: bool) -> int:
        """1 where a case failed, or where none was run and one had to be."""
        if self._results[Result.PASS] or self._results[Result.FAIL]:
            return int(self._results[Result.FAIL] > 0)
        where = " ".join(map(str, folder or ()))
        told = "no case was run: all are skipped" if self._results[Result.SKIP] else _NONE
        _write([f"{'error: --require-tests: ' if require_tests else ''}{where}: {told}"])
        return int(require_tests)


def _entries(suite: Suite, how: Options) -> Iterator[Entry]:
    """What a suite holds; a suite that cannot be read is one entry."""
    try:
        yield from find.read(suite, how)
    except InputError as error:
        yield Unreadable(id=str(suite.file), suite=str(suite.file), problems=error.problems)


def _without(suite: Suite) -> Problem:
    message = "no case of this file was run; name a folder to pass over files without cases that can be run"
    return Problem(message=message, file=str(suite.file))


def _write(lines: Sequence[str]) -> None:
    sys.stderr.write(terminal.lines(lines))
