"""Prints cases of suites: a line for each suite, each failure with its difference, the sums, reasons for skipping."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from webhook.report.finding import Result
from webhook.report.results import CaseResult
from webhook.report.rule import Rules
from webhook.report.screen import PLAIN, Screen
from webhook.report.writer import Totals
from webhook.text import terminal
from webhook.text.wording import counted


class TextCasesWriter:
    """Prints one test. The results of a suite are kept until the suite ends."""

    def __init__(self) -> None:
        self._screen = PLAIN
        self._suite: list[CaseResult] = []
        self._suites: Counter[bool] = Counter()
        self._skipped: Counter[str] = Counter()

    def use_screen(self, screen: Screen) -> None:
        self._screen = screen

    def begin(self, _rules: Rules) -> Iterator[str]:
        yield from ()

    def entry(self, entry: CaseResult) -> Iterator[str]:
        """Keep the case. If a new suite begins, yield the lines of the previous suite."""
        if self._suite and self._suite[0].suite != entry.suite:
            yield from self._flush_suite()
        self._suite.append(entry)
        if entry.result is Result.SKIP:
            self._skipped[entry.why] += 1

    def end(self, totals: Totals) -> Iterator[str]:
        yield from self._flush_suite()
        yield terminal.lines(self._sums(totals))
        if totals.coverage:
            yield "".join(
                f"{line}\n"
                for line in self._screen.wrapped(terminal.one_line(_sentence_about_coverage(totals)), "", "  ")
            )

    def _flush_suite(self) -> Iterator[str]:
        """Yield the lines of the current suite."""
        if self._suite:
            self._suites[any(case.result is not Result.SKIP for case in self._suite)] += 1
            yield "".join(f"{line}\n" for line in _lines_of_suite(self._suite, self._screen))
        self._suite = []

    def _sums(self, totals: Totals) -> Iterator[str]:
        if self._skipped:
            suites = counted(self._suites.total(), "suite")
            yield f"{suites}: {self._suites[True]} run, {self._suites[False]} skipped"
        left_out = f"; {counted(totals.left_out, 'case')} not run" if totals.left_out else ""
        yield f"{counted(totals.entries, 'case')}: {_counts_of_outcomes(totals.results)}{left_out}"
        for why, count in self._skipped.most_common():
            yield f"  skipped: {counted(count, 'case')}: {why}"


def _counts_of_outcomes(results: Mapping[Result, int]) -> str:
    """Return a text such as `2 passed, 1 failed`. A number of skipped or unreadable cases is left out if it is 0."""
    always = [f"{results[Result.PASS]} passed", f"{results[Result.FAIL]} failed"]
    skipped = [f"{results[Result.SKIP]} skipped"] * bool(results[Result.SKIP])
    errors = [f"{results[Result.ERROR]} not readable"] * bool(results[Result.ERROR])
    return ", ".join([*always, *skipped, *errors])


def _lines_of_suite(results: Sequence[CaseResult], screen: Screen) -> Iterator[str]:
    counts = Counter(result.result for result in results)
    run = counts[Result.PASS] + counts[Result.FAIL]
    passed = [f"{counts[Result.PASS]} of {run} passed"] * bool(run)
    skipped = [f"{counts[Result.SKIP]} skipped"] * bool(counts[Result.SKIP])
    errors = [f"{counts[Result.ERROR]} not readable"] * bool(counts[Result.ERROR])
    text = terminal.one_line(f"{results[0].suite}: {', '.join([*passed, *skipped, *errors])}")
    worst = next(each for each in (Result.FAIL, Result.ERROR, Result.PASS, Result.SKIP) if counts[each])
    yield f"{screen.symbol_of_result(worst)} {text}"
    for result in results:
        if result.result is Result.FAIL or (result.is_listed and result.result is not Result.SKIP):
            yield from _lines_of_case(result, screen)


def _lines_of_case(result: CaseResult, screen: Screen) -> Iterator[str]:
    took = f"  {result.elapsed_s * 1000:.0f} ms" if result.is_listed and result.elapsed_s else ""
    name = terminal.one_line(f"{result.id}  {result.place}{took}")
    yield f"  {screen.symbol_of_result(result.result)} {name}"
    if result.why:
        yield from (f"    {terminal.one_line(line)}" for line in result.why.split("\n"))


def _sentence_about_coverage(totals: Totals) -> str:
    """Say how many rules and match conditions have a case that tries them, and name those without a case."""
    untried = [part for part, is_tried in totals.coverage.items() if not is_tried]
    parts = counted(len(totals.coverage), "rule or condition", "rules and conditions")
    sentence = f"{len(totals.coverage) - len(untried)} of {parts} tried by a case"
    return f"{sentence}; not tried: {', '.join(untried)}" if untried else sentence
