"""`claimgate backtest`: counts what policies decide about the requests of an audit log."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from webhook import assembly
from webhook.commands import options, output, ray_audit, report_options
from webhook.commands.backtest_part import (
    PartBacktester,
    PartCounts,
    PolicySetCounts,
    RuleCount,
    with_namespaces_before,
)
from webhook.commands.options import complete_output
from webhook.commands.ordered_work import results_in_order
from webhook.commands.progress import EXIT_CODE, Interrupts, Progress
from webhook.commands.ray_cluster import count_logs_on_ray
from webhook.errors import InputProblem
from webhook.input import log_lines, object_store
from webhook.input.log_lines import LogPart
from webhook.manifests.configuration import FailOn
from webhook.settings.shared import ReviewSettings
from webhook.text import terminal
from webhook.text.wording import counted
from webhook.yamltext.input_files import InputFile
from webhook.yamltext.yamlfile import problem_of_file_not_read

_MOST_NAMES_IN_TEXT: Final = 20
"""The text names at most this many namespaces and users. The JSON names more."""
_TITLES: Final = {"policies": "these policies", "against": "the policies of --against"}
FORMATS: Final = ("text", "json")
_UNREADABLE: Final = 2


@options.add_flags_of_verb(ReviewSettings, "backtest")
def command(
    log: Annotated[
        list[str],
        typer.Argument(
            metavar="LOG",
            help="Audit logs of an API server, plain or gzip, folders of rotated logs, or - for stdin.",
        ),
    ],
    *,
    against: Annotated[
        list[Path] | None,
        typer.Option(metavar="DIR", help="Compare with a second set of policies; repeatable."),
    ] = None,
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
    fail_on: report_options.FailOnText = "",
    jobs: ray_audit.Jobs = None,
    ray: ray_audit.RayAddress = "",
    settings: ReviewSettings,
) -> int:
    """Evaluate policies on the requests in the audit log of an API server.

    Counts denials and warnings by rule, namespace and user. Decisions about a request need level Request in the audit
    log, and decisions about a patch need level RequestResponse. An audit log has no old objects, so rules about changes
    find nothing. Policies look up Namespaces in the log, and other objects in --context.

    Exits with 1 if a request would have been denied, unless --fail-on says otherwise. Exits with 2 if a log or a policy
    cannot be read.
    """
    failing = report_options.parse_fail_on(fail_on, "deny")
    outputs = output.parse_outputs(chosen, FORMATS)
    ray_audit.refuse_other_options(ray, named=log)
    log_files = (
        object_store.list_log_files_of_places(log, log_lines.list_log_files) if ray else log_lines.list_log_files(log)
    )
    files, problems = log_files.files, (*log_files.problems, *map(problem_of_file_not_read, log_files.not_read))
    sets = _policy_sets_to_compare(settings, against or ())
    backtest = PartBacktester(sets)
    total = backtest.count_part(LogPart(""))  # zero counts, to which the counts of the parts are added
    terminal.print_to_stderr(f"error: {each}" for each in problems)
    with (
        ray_audit.connect_to_ray_if_given(ray if files else "", jobs) as cluster,
        Progress(_size_of_files(files), "requests") as bar,
        Interrupts() as interrupts,
    ):
        parts = count_logs_on_ray(cluster, sets, files) if cluster else _count_parts(backtest, files, jobs or 1)
        for counts in parts:
            printed = len(total.broken_lines)
            total.add(counts)
            terminal.print_to_stderr(f"error: {each}" for each in (*counts.problems, *total.broken_lines[printed:]))
            bar.advance(counts.read_bytes, counts.requests)
            if interrupts.is_set:
                break
    if further := total.broken - len(total.broken_lines):
        lines = counted(further, "further line is not an audit event", "further lines are not audit events")
        sys.stderr.write(f"error: {lines}\n")
    problems = (*problems, *total.problems, *total.broken_lines, *_problem_of_nothing_reviewed(files, total))
    terminal.print_to_stderr(f"error: {each}" for each in _problem_of_nothing_reviewed(files, total))
    if interrupts.is_set:
        sys.stderr.write(f"error: interrupted after {total.events} events; the report has only these\n")
    output.write_to_outputs(outputs, {"text": lambda: backtest_text(total), "json": lambda: backtest_json(total)})
    return EXIT_CODE if interrupts.is_set else _UNREADABLE if problems else _exit_code_of_counts(failing, total)


def _policy_sets_to_compare(settings: ReviewSettings, against: Sequence[Path]) -> dict[str, assembly.ReviewAssembly]:
    """Return the policies, and the policies of --against. Prints the names of both on stderr."""
    sets = {"policies": assembly.assemble_policies_and_context(settings)}
    options.print_policy_notes(settings, sets["policies"].policies)
    if against:
        other = replace(settings, only=tuple(against))
        sets["against"] = assembly.assemble_policies_and_context(other)
        terminal.print_to_stderr([f"note: --against: {assembly.describe_policy_sets_in_use(other)}"])
        options.warn_of_unbound(sets["against"].policies)
    return sets


def _count_parts(backtest: PartBacktester, files: Sequence[InputFile], jobs: int) -> Iterator[PartCounts]:
    parts = with_namespaces_before(part for file in files for part in log_lines.read_log_parts(file))
    count = backtest.count_part_after_others
    return map(count, parts) if jobs == 1 else results_in_order(count, parts, jobs)


def _problem_of_nothing_reviewed(files: Sequence[InputFile], total: PartCounts) -> tuple[InputProblem, ...]:
    if total.requests or total.problems or total.broken or not files:
        return ()
    message = "no request with an object was found; expected an audit log of level Request or RequestResponse"
    return (InputProblem(message=message, file=" ".join(map(str, files))),)


def _exit_code_of_counts(failing: frozenset[FailOn], total: PartCounts) -> int:
    sides = total.sides.values()
    return report_options.exit_code_of_results(
        failing,
        denied=any(each.denied for each in sides),
        warned=any(each.warned for each in sides),
        undecided=any(each.undecided for each in sides),
        has_open_rule=any(each.has_open_rule for each in sides),
    )


def _size_of_files(files: Sequence[InputFile]) -> int:
    return sum(file.path.stat().st_size for file in files if file.path.is_file())


def backtest_text(counts: PartCounts) -> str:
    """Return the counts as text."""
    return terminal.lines(_lines_of_report(counts))


def backtest_json(counts: PartCounts) -> str:
    """Return all counts as JSON."""
    sides = {side: _side_as_json(each) for side, each in counts.sides.items()}
    data = {
        "events": counts.events,
        "requests": counts.requests,
        "reads": counts.reads,
        "broken": counts.broken,
        "skipped": dict(sorted(counts.skipped.items())),
        **sides,
        **({"changed": _rules_as_json(counts.changed)} if len(sides) > 1 else {}),
    }
    return f"{terminal.escape_json_text(json.dumps(data, ensure_ascii=False, indent=2))}\n"


def _side_as_json(counts: PolicySetCounts) -> dict[str, Any]:
    return {
        "denied": counts.denied,
        "warned": counts.warned,
        "undecided": counts.undecided,
        "leftOut": counts.left_out.as_json(),
        "exceptions": dict(_sort_by_count(counts.exceptions)),
        "rules": _rules_as_json(counts.rules),
        "namespaces": dict(_sort_by_count(counts.namespaces)),
        "users": dict(_sort_by_count(counts.users)),
    }


def _rules_as_json(rules: Mapping[str, RuleCount]) -> dict[str, Any]:
    return {name: asdict(rules[name]) for name in _rules_by_effect(rules)}


def _lines_of_report(counts: PartCounts) -> Iterator[str]:
    for side, each in counts.sides.items():
        yield from _lines_of_side(_TITLES[side], each)
        yield ""
    if len(counts.sides) > 1:
        yield from _lines_of_changes(counts.changed)
        yield ""
    yield f"{counted(counts.events, 'event')}: {counts.requests} reviewed, {counts.reads} reads"
    for reason, number in sorted(counts.skipped.items(), key=lambda each: (-each[1], each[0])):
        yield f"  not reviewed: {number}: {reason}"
    if counts.broken:
        yield f"  not read: {counts.broken}"


def _lines_of_side(title: str, counts: PolicySetCounts) -> Iterator[str]:
    undecided = f", {counts.undecided} not decided" if counts.undecided else ""
    yield f"{title} would have denied {counted(counts.denied, 'request')} and warned of {counts.warned}{undecided}"
    for name in _rules_by_effect(counts.rules):
        rule = counts.rules[name]
        effects = {"denied": rule.denied, "warned of": rule.warned, "not decided": rule.undecided}
        effects_as_text = ", ".join(f"{word} {number}" for word, number in effects.items() if number)
        yield f"  {name}: {effects_as_text}"
        yield f"      {rule.message}"
        yield f"      first: {rule.example}"
    if counts.left_out:
        yield f"  {counts.left_out}"
    yield from (f"      {number} {reason}" for reason, number in _sort_by_count(counts.exceptions))
    for title_of_list, names in (("namespace", counts.namespaces), ("user", counts.users)):
        most_frequent = [f"{name} {number}" for name, number in _sort_by_count(names)[:_MOST_NAMES_IN_TEXT]]
        more = (
            [f"{len(names) - _MOST_NAMES_IN_TEXT} more (-o json has all)"] if len(names) > _MOST_NAMES_IN_TEXT else []
        )
        if most_frequent:
            yield f"  by {title_of_list}: {', '.join([*most_frequent, *more])}"


def _lines_of_changes(changed: Mapping[str, RuleCount]) -> Iterator[str]:
    if not changed:
        yield "both would have denied the same requests"
    for name in _rules_by_effect(changed):
        yield f"{name}: {counted(changed[name].denied, 'request')}"
        yield f"      {changed[name].message}"
        yield f"      first: {changed[name].example}"


def _rules_by_effect(rules: Mapping[str, RuleCount]) -> list[str]:
    return sorted(rules, key=lambda name: (-rules[name].denied, -rules[name].warned, name))


def _sort_by_count(names: Counter[str]) -> list[tuple[str, int]]:
    return sorted(names.items(), key=lambda each: (-each[1], each[0]))
