"""The flags that choose the reported findings, and those that end a verb with code 1."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final, TypeAlias

import typer

from webhook.commands.options import complete_rule_or_group
from webhook.errors import ConfigurationError
from webhook.manifests.configuration_model import FailOn, Severity
from webhook.policy.configured_rules import describe_unknown_id, rule_ids
from webhook.policy.policy_set import PolicySet
from webhook.report import baseline
from webhook.report.filters import Filters
from webhook.settings.shared import Settings

Rules: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--rule",
        metavar="RULE",
        help="Report these rules, groups or policies alone; repeatable.",
        autocompletion=complete_rule_or_group,
    ),
]
Skip: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--skip",
        metavar="RULE",
        help="Report no such rule, group or policy; repeatable.",
        autocompletion=complete_rule_or_group,
    ),
]
MinSeverity: TypeAlias = Annotated[
    Severity | None, typer.Option("--min-severity", help="Report nothing that is less severe.")
]
Fails: TypeAlias = Annotated[
    FailOn | None,
    typer.Option("--fail-on", help="The least that ends with code 1. [default: warn, or the configuration's]"),
]
Baseline: TypeAlias = Annotated[
    Path | None,
    typer.Option("--baseline", metavar="FILE", help="Report no finding of this file, and say which are found no more."),
]
WriteBaseline: TypeAlias = Annotated[
    Path | None,
    typer.Option("--write-baseline", metavar="FILE", help="Write all findings to a file for --baseline; ends with 0."),
]
RequireInput: TypeAlias = Annotated[
    bool | None,
    typer.Option(
        "--require-input/--no-require-input",
        help="End with code 2 where no object was audited, or never for that. [default: where files have no object at "
        "all; not where a cluster has none, or all are unchanged]",
        show_default=False,
    ),
]

_GROUP: Final = "rule, group or policy"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportFlags:
    """The values of the flags."""

    rules: Sequence[str] | None
    skip: Sequence[str] | None
    min_severity: Severity | None
    baseline: Path | None


def report_filters(given: ReportFlags, settings: Settings, policies: PolicySet) -> Filters:
    """Return the filters: those of flags, then those of the configuration.

    Raises:
        ConfigurationError: a rule that nobody has.
        InputError: the baseline cannot be read.
    """
    report, file = settings.configuration.value.report, settings.configuration
    known = rule_ids(policies)
    named = known.union(rule.partition("/")[0] for rule in known)
    _refuse_unknown_rules("--rule", given.rules or (), named)
    _refuse_unknown_rules("--skip", given.skip or (), named)
    known_findings = given.baseline or (file.resolve_relative_path(report.baseline) if report.baseline else None)
    from_file = bool(report.baseline) and given.baseline is None
    of_flags = Filters(
        rules=frozenset(given.rules or ()), skip=frozenset(given.skip or ()), min_severity=given.min_severity or ""
    )
    return Filters(
        without_configuration=of_flags if report.skip or report.min_severity or from_file else None,
        rules=frozenset(given.rules or ()),
        skip=frozenset((*(given.skip or ()), *report.skip)),
        min_severity=given.min_severity or report.min_severity or "",
        baseline=baseline.read_baseline(known_findings) if known_findings else {},
    )


def _refuse_unknown_rules(flag: str, rules: Iterable[str], known: frozenset[str]) -> None:
    for rule in rules:
        if told := describe_unknown_id(rule, known, _GROUP):
            raise ConfigurationError(f"{flag}: {told}")
