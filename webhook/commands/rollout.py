"""`claimgate rollout`: what an installation that only audits or warns would have refused."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from typing import Annotated, Final

import typer

from webhook.commands import output
from webhook.commands.options import complete_output
from webhook.commands.withheld_counts import WithheldCount, WithheldCounts, lines_of_counts
from webhook.errors import ConfigurationError, InputProblem
from webhook.input import log_lines
from webhook.text import terminal
from webhook.yamltext.yamlfile import problem_of_file_not_read

FORMATS: Final = ("text", "json")
_DIGITS: Final = 4
_UNITS: Final = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


def command(
    source: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE",
            help="Metrics, JSON logs of the server, and audit logs of an API server, also gzip; folders; - for stdin.",
        ),
    ],
    *,
    since: Annotated[
        str, typer.Option(metavar="DURATION", help="Count only requests of this period, such as 7d or 12h.")
    ] = "",
    chosen: Annotated[
        list[str] | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FORMAT[=FILE]",
            help="text or json; repeatable.",
            autocompletion=complete_output(*FORMATS),
        ),
    ] = None,
) -> int:
    """Count what an installation that only audits or warns would have refused.

    Counts by rule, namespace and owner, with the newest request of each rule and the setting that makes the rule a
    warning. Metrics have only counts by rule, since the start of each server. The owner is the controller of the
    object, or the user.

    Exits with 1 if a request would have been refused, and with 2 if a file cannot be read.
    """
    outputs = output.parse_outputs(chosen, FORMATS)
    counts = WithheldCounts(since=datetime.now(UTC) - _duration(since) if since else None)
    listed = log_lines.list_log_files(source)
    problems = [*listed.problems, *map(problem_of_file_not_read, listed.not_read)]
    for file in listed.files:
        for part in log_lines.read_log_parts(file):
            problems += [part.problem] if part.problem else []
            counts.count_lines(part.lines, part.file, part.first)
    if not (problems or counts.lines or counts.old or counts.undated):
        expected = "expected metrics, lines of the server's log in JSON, or events of an audit log"
        problems.append(InputProblem(message=f"nothing of claimgate was found; {expected}", file=" ".join(source)))
    _print_problems(problems)
    output.write_to_outputs(
        outputs, {"text": lambda: terminal.lines(lines_of_counts(counts)), "json": lambda: _as_json(counts)}
    )
    is_refused = counts.denials or counts.metrics.get("would_deny")
    return 2 if problems else int(bool(is_refused))


def _duration(text: str) -> timedelta:
    number, unit = text[:-1], _UNITS.get(text[-1:])
    if unit is None or not (number.isascii() and number.isdecimal() and len(number) <= _DIGITS):
        raise ConfigurationError(f"--since: expected a number with s, m, h, d or w, such as 7d, found `{text}`")
    return timedelta(**{unit: int(number)})


def _as_json(counts: WithheldCounts) -> str:
    def rules(named: dict[str, WithheldCount]) -> object:
        return {
            rule: {
                "requests": count.requests,
                "namespaces": dict(count.namespaces.most_common()),
                "owners": dict(count.owners.most_common()),
                "newest": asdict(count.newest) if count.newest else None,
            }
            for rule, count in sorted(named.items(), key=lambda each: (-each[1].requests, each[0]))
        }

    made = {
        "since": counts.since.isoformat() if counts.since else None,
        "wouldDeny": rules(counts.denials),
        "wouldWarn": rules(counts.warnings),
        "metrics": {action: dict(each.most_common()) for action, each in sorted(counts.metrics.items())},
        "linesNotUnderstood": counts.others,
        "linesWithoutTime": counts.undated,
    }
    return f"{terminal.escape_json_text(json.dumps(made, ensure_ascii=False, indent=2))}\n"


def _print_problems(problems: Sequence[InputProblem]) -> None:
    sys.stderr.write(terminal.lines(f"error: {problem}" for problem in problems))
