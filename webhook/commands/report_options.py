"""The flags for the findings that are reported, and for the findings that make a verb exit with 1."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Final, TypeAlias, TypeVar, get_args

import typer
from msgspec import Struct

from webhook.errors import ConfigurationError
from webhook.manifests.configuration import FailOn, Severity
from webhook.policy.configured_rules import refuse_unknown_rules
from webhook.policy.policy_set import PolicySet
from webhook.report import baseline
from webhook.report.filters import Filters
from webhook.report.finding import Result
from webhook.settings.shared import ReviewSettings
from webhook.text.wording import either

_Word = TypeVar("_Word", bound=str)

MinSeverity: TypeAlias = Annotated[
    Severity | None, typer.Option("--min-severity", help="Report only findings of at least this severity.")
]
FailOnText: TypeAlias = Annotated[
    str,
    typer.Option(
        "--fail-on",
        metavar="LIST",
        help=(
            "deny: exit with 1 if a finding denies. warn: also for a warning. never: do not exit with 1. With "
            "undecided: exit with 3 if a rule that may deny was not evaluated, and with `warn,undecided` also for "
            "other rules."
        ),
        show_default=False,
        autocompletion=lambda incomplete: [each for each in get_args(FailOn) if each.startswith(incomplete)],
    ),
]
Show: TypeAlias = Annotated[
    str,
    typer.Option(
        metavar="RESULTS",
        help=(
            "Also show passed policies (pass), rules that were not evaluated or have an exception (skip), or both: "
            "`pass,skip`."
        ),
        autocompletion=lambda incomplete: [each for each in SHOWN if each.startswith(incomplete)],
    ),
]
Baseline: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--baseline",
        metavar="FILE",
        help="Do not report the findings in this file. Count findings of the file that no longer occur.",
    ),
]
WriteBaseline: TypeAlias = Annotated[
    Path | None,
    typer.Option("--write-baseline", metavar="FILE", help="Write all findings to a file for --baseline; exits with 0."),
]
Statistics: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--statistics", help="Show the number of findings of each rule, not the findings. Formats: text and json."
    ),
]
RequireInput: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--require-input/--no-require-input",
        help="Exit with 2 if no object was audited.",
    ),
]

SHOWN: Final = (Result.PASS, Result.SKIP)
"""The results that `--show` names."""


def parse_fail_on(text: str, default: FailOn | Sequence[FailOn]) -> frozenset[FailOn]:
    """Return the results that make a command fail, from a value of `--fail-on`. "" gives the default.

    Raises:
        ConfigurationError: a word is unknown.
    """
    if not text:
        return frozenset((default,) if isinstance(default, str) else default)
    words: Sequence[FailOn] = get_args(FailOn)
    return frozenset(_parse_words("--fail-on", text, words))


def parse_shown(text: str) -> frozenset[Result]:
    """Return the results for a value of `--show`.

    Raises:
        ConfigurationError: a word is unknown.
    """
    return frozenset(_parse_words("--show", text, SHOWN)) if text else frozenset()


def exit_code_of_results(
    fail_on: frozenset[FailOn], *, denied: bool, warned: bool, undecided: bool, has_open_rule: bool
) -> int:
    """Return 1 if a denial or a warning makes the command fail, 3 if only a rule that was not evaluated does, else 0.

    `undecided` says whether a rule that may deny was not evaluated, and `has_open_rule` whether any rule was not.
    """
    if (denied and fail_on & {"deny", "warn"}) or (warned and "warn" in fail_on):
        return 1
    is_open = has_open_rule if "warn" in fail_on else undecided
    return 3 if is_open and "undecided" in fail_on else 0


def _parse_words(flag: str, text: str, choices: Sequence[_Word]) -> Iterator[_Word]:
    words = {str(each): each for each in choices}
    for name in map(str.strip, text.split(",")):
        if name not in words:
            raise ConfigurationError(f"{flag}: expected {either(words)}, found `{name}`")
        yield words[name]


class ReportFlags(Struct, frozen=True, kw_only=True):
    """The values of the flags."""

    min_severity: Severity | None
    baseline: Path | None


def report_filters(flags: ReportFlags, settings: ReviewSettings, policies: PolicySet) -> Filters:
    """Return the filters of the flags and of the configuration.

    Raises:
        ConfigurationError: a rule does not exist.
        InputError: the baseline cannot be read.
    """
    report, file = settings.configuration.value.report, settings.configuration
    refuse_unknown_rules("--rule", settings.rule, policies)
    refuse_unknown_rules("--skip", settings.skip, policies)
    known_findings = flags.baseline or (file.resolve_relative_path(report.baseline) if report.baseline else None)
    from_file = bool(report.baseline) and flags.baseline is None
    of_flags = Filters(
        rules=frozenset(settings.rule), skip=frozenset(settings.skip), min_severity=flags.min_severity or ""
    )
    return Filters(
        without_configuration=of_flags if report.skip or report.min_severity or from_file else None,
        rules=frozenset(settings.rule),
        skip=frozenset((*settings.skip, *report.skip)),
        min_severity=flags.min_severity or report.min_severity or "",
        baseline=baseline.read_baseline(known_findings) if known_findings else {},
    )
