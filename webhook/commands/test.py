"""`claimgate test`: runs the suites of policies, with the same evaluation as the server.

`--watch` polls sizes and times of files.
"""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Annotated, Final

import typer
from msgspec import Struct
from msgspec.structs import replace

from webhook import assembly
from webhook.commands import options, output
from webhook.errors import ClaimgateError, ConfigurationError, InputError, InputProblem
from webhook.policy.load import Options
from webhook.policy.policy_set import PolicySet
from webhook.report import formats
from webhook.report.finding import Result
from webhook.report.results import CaseResult
from webhook.report.writer import RunDescription, Totals
from webhook.settings.shared import ReviewSettings
from webhook.suites import find, golden
from webhook.suites.case import Case, Entry, UnreadableCase, run_case
from webhook.suites.files import Suite
from webhook.text import terminal
from webhook.text.wording import counted
from webhook.yamltext import input_files, yamlfile

INTERVAL_S: Final = 0.5
MOST_FILES: Final = 5_000
"""The most files that --watch checks in each interval, in about 20 milliseconds."""
_NO_CASE: Final = 2
_MOST_UNDECIDED: Final = 5
_NONE = (
    "no case found; expected suite.yaml, kyverno-test.yaml, gator Suites, *cases.jsonl or golden folders: "
    "`claimgate policies new NAME --in DIR --case FILE` writes a suite for the policies in DIR/NAME"
)


@options.add_flags_of_verb(ReviewSettings, "test")
def command(
    folder: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="DIR",
            show_default=False,
            help="Folders (or suite files): suite.yaml, kyverno-test.yaml, gator Suites, *cases.jsonl and golden "
            "folders of replay --record. Default: the policies in use.",
        ),
    ] = None,
    *,
    command_line: typer.Context = None,  # type: ignore[assignment] # Typer passes it
    filename: options.FilesByOption = None,
    require_tests: Annotated[
        bool, typer.Option("--require-tests", help="Exit with 2 also if every case is skipped.")
    ] = False,
    run: Annotated[str, typer.Option("--run", "-r", metavar="REGEX", help="Run only cases with a matching id.")] = "",
    verbose: Annotated[
        bool,
        typer.Option(
            "--verbose",
            "-v",
            help=(
                "List every case with its line and time, and the validations, rules and match conditions that no "
                "case covers."
            ),
        ),
    ] = False,
    update_golden: Annotated[
        bool, typer.Option("--update-golden", help="Write the new answers into golden folders.")
    ] = False,
    watch: Annotated[
        bool, typer.Option("--watch", help="Run again after each change of a file in DIR, until Ctrl-C.")
    ] = False,
    chosen: options.ReportOutputs = None,
    settings: ReviewSettings,
) -> int:
    """Run the suites of policies.

    Each suite tests the policies of its own folder. Cases that claimgate cannot evaluate, such as Rego or patterns of
    Kyverno, are skipped and counted, with the reason.

    Exits with 1 if a case fails. Exits with 2 if a suite, its policies or a case cannot be read, or if there is no
    case. If every case is skipped, exits with 0 unless --require-tests is set.
    """
    writers = formats.writers_of_cases()
    outputs = output.parse_outputs(chosen, writers)
    named_by_user = [Path(each) for each in options.named_files([str(each) for each in folder or ()], filename)]
    named = named_by_user or [
        Path(input_files.path_as_shown(each)) for each in assembly.policy_folders_of_settings(settings)
    ]
    chosen_cases = _compile_regex(run)

    def run_suites() -> int:
        test_options = _TestOptions(
            options=assembly.create_compile_options(settings),
            policies=cache(lambda: assembly.read_policy_sources(settings).compile()),
            run=chosen_cases,
            shows_advice=settings.advice,
            is_verbose=verbose,
            updates_golden=update_golden,
        )
        tests = _TestRun(named, test_options)
        with output.Report(outputs, writers, {}) as report:
            for result in tests.results():
                report.write_entry(result)
            report.end(tests.totals(output.describe_run(command_line, policies="those of each suite")))
        terminal.print_to_stderr([f"note: {counted(count, 'case')}: {note}" for note, count in tests.notes.items()])
        if undecided := tests.undecided:
            terminal.print_to_stderr([f"note: {each}" for each in undecided[:_MOST_UNDECIDED]])
            passed = counted(len(undecided), "case passes although a rule is", "cases pass although a rule is")
            terminal.print_to_stderr(
                [f"note: {passed} not evaluated: add what the rule needs to context, or expect it in unknown"]
            )
        if chainsaw := [*find.find_chainsaw_tests(named)]:
            one, more = (
                "test of Chainsaw needs a cluster and is not run",
                "tests of Chainsaw need a cluster and are not run",
            )
            terminal.print_to_stderr([f"note: {counted(len(chainsaw), one, more)}, first {chainsaw[0]}"])
        if problems := tests.problems():
            raise InputError(*problems)
        return tests.exit_code(named_by_user or None, require_tests=require_tests)

    return _run_after_each_change(run_suites, named) if watch else run_suites()


def _run_after_each_change(run_suites: Callable[[], int], named: Sequence[Path]) -> int:
    """Run suites now and after each change of their files, until Ctrl-C; return the code of the last run."""
    code = 0
    with suppress(KeyboardInterrupt):
        while True:
            before = files_with_times(named)
            try:
                code = run_suites()
            except ClaimgateError as error:
                terminal.print_to_stderr([f"error: {line}" for line in str(error).splitlines()])
                code = _NO_CASE
            terminal.print_to_stderr([f"note: waiting for a change of {counted(len(before), 'file')}; Ctrl-C ends"])
            wait_for_change(named, before, time.sleep)
    return code


def _compile_regex(text: str) -> re.Pattern[str]:
    try:
        return re.compile(text)
    except re.error as error:
        raise ConfigurationError(f"--run: `{text}` is not a regular expression: {error}") from None


class _TestOptions(Struct, frozen=True, kw_only=True):
    options: Options
    policies: Callable[[], PolicySet]
    run: re.Pattern[str]
    shows_advice: bool
    is_verbose: bool
    updates_golden: bool


class _TestRun:
    """One run of suites. Read `results` before the totals."""

    def __init__(self, named: Sequence[Path], options: _TestOptions) -> None:
        self.notes: Counter[str] = Counter()
        self.undecided: list[str] = []
        self._named = named
        self._options = options
        self._coverage: dict[str, bool] = {}
        self._left_out = 0
        self._results: Counter[Result] = Counter()
        self._problems: list[InputProblem] = []
        self._without: list[InputProblem] = []

    def results(self) -> Iterator[CaseResult]:
        """Yield the result of every case that --run selects. A problem does not stop the other cases."""
        for suite in find.find_suites(self._named):
            ran = False
            for entry in _entries_of_suite(suite, self._options):
                if not self._options.run.search(entry.id) and not isinstance(entry, UnreadableCase):
                    self._left_out += 1
                    ran = True
                    continue
                if isinstance(entry, UnreadableCase):
                    self._problems.extend(entry.problems)
                result = run_case(entry)
                if result.result is Result.ERROR and not isinstance(entry, UnreadableCase):
                    self._problems.append(InputProblem(message=f"{entry.id}: {result.why}", file=str(suite.file)))
                self._results[result.result] += 1
                self.notes.update(result.notes)
                if self._options.shows_advice and isinstance(entry, Case):
                    self.notes.update(_notes_of_advice(entry))
                if self._options.is_verbose and isinstance(entry, Case) and result.result is Result.PASS:
                    self._coverage.update((part, self._coverage.get(part, False)) for part in entry.parts())
                    self._coverage.update(dict.fromkeys(self._coverage.keys() & entry.tried(), True))
                    self.undecided += (f"{entry.id}: {text}" for text in entry.undecided()[:1])
                ran |= result.result is not Result.SKIP
                yield replace(result, is_listed=self._options.is_verbose)
            if not ran and suite.file in self._named:
                self._without.append(_problem_of_no_case(suite))

    def totals(self, run: RunDescription) -> Totals:
        """Return the totals of the results so far. `run` describes the run."""
        results = {result: self._results[result] for result in Result}
        return Totals(
            entries=self._results.total(),
            failures=self._results[Result.FAIL],
            results=results,
            left_out=self._left_out,
            is_verbose=self._options.is_verbose,
            coverage=self._coverage,
            run=run,
        )

    def problems(self) -> tuple[InputProblem, ...]:
        """Return the problems of unreadable input, and of named files without a case that was run."""
        return (*self._problems, *self._without)

    def exit_code(self, folder: Sequence[Path] | None, *, require_tests: bool) -> int:
        """Return 1 if a case failed, and 2 if no case was run, and print why. Skipped cases alone are 0 by default."""
        if self._results[Result.PASS] or self._results[Result.FAIL]:
            return int(self._results[Result.FAIL] > 0)
        where = " ".join(map(str, folder or ()))
        are_skipped = self._results[Result.SKIP] > 0
        message = "no case was run: all are skipped" if are_skipped else _NONE
        message = f"--run: no case has a match of `{self._options.run.pattern}`" if self._left_out else message
        accepts = are_skipped and not self._left_out and not require_tests
        flag = "--require-tests: " if require_tests and are_skipped else ""
        terminal.print_to_stderr([f"{'warning' if accepts else 'error'}: {flag}{where}: {message}"])
        return 0 if accepts else _NO_CASE


def _entries_of_suite(suite: Suite, test_options: _TestOptions) -> Iterator[Entry]:
    """Yield the cases of a suite. A suite that cannot be read is one entry."""
    try:
        if golden.is_golden(suite.file):
            yield from golden.read(
                suite, test_options.options, test_options.policies, updates=test_options.updates_golden
            )
        else:
            yield from find.read_suite(suite, test_options.options)
    except InputError as error:
        yield UnreadableCase(id=str(suite.file), suite=str(suite.file), problems=error.problems)


def _notes_of_advice(case: Case) -> Iterator[str]:
    if case.advice is None:
        yield "--advice has no effect on suites of Kyverno and Gatekeeper, and on recorded cases"
        return
    with suppress(ClaimgateError):  # the result of a case that cannot be read reports the error
        yield from (f"advice: {text}" for text in case.advice())


def _problem_of_no_case(suite: Suite) -> InputProblem:
    message = "no case of this file was run; name its folder, because a folder may have files without cases to run"
    return InputProblem(message=message, file=str(suite.file))


def wait_for_change(places: Sequence[Path], before: Mapping[str, object], sleep: Callable[[float], None]) -> None:
    """Wait until files have changed, and then one interval passes without a change.

    Raises:
        ConfigurationError: there are too many files.
    """
    while (now := files_with_times(places)) == before:
        sleep(INTERVAL_S)
    while True:  # editors may write several files
        sleep(INTERVAL_S)
        seen_again = files_with_times(places)
        if seen_again == now:
            return
        now = seen_again


def files_with_times(places: Sequence[Path]) -> Mapping[str, tuple[int, int]]:
    """Return size and modification time of each YAML or JSON file in these folders.

    Raises:
        ConfigurationError: there are too many files.
    """
    files: dict[str, tuple[int, int]] = {}
    for file in yamlfile.listing(places).files:
        if len(files) == MOST_FILES:
            raise ConfigurationError(f"--watch: there are more than {MOST_FILES:,} files: name a folder with fewer")
        try:
            status = file.path.stat()
        except OSError:  # the file has just been removed
            continue
        files[str(file.path)] = status.st_size, status.st_mtime_ns
    return files
