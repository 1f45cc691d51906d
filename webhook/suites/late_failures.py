"""Writes the page about failures that appear late without claimgate: rules by topic, and failures without a rule.

The page is made from policies, their rules and not_covered.yaml. docs/late-failures.md is the page of the shipped
policies. A test checks that the file is up to date.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from webhook.policy.compiled import Policy
from webhook.rules.problem import AT_ONCE, MOMENTS
from webhook.rules.rule import github_issue_links
from webhook.suites.rule_reference import StatedRule, links_to_issues, rule_address, rules_of_policies
from webhook.yamltext import yamlfile

NOT_COVERED: Final = Path(__file__).with_name("not_covered.yaml")
_TITLE: Final = """\
# Late failures of GPU workloads on Kubernetes

*Written by `claimgate policies rules --late`.*

An object that the API server accepts may still fail: its controller cannot create the pods, a queue never admits it,
its processes wait for each other for ever, or a setting is silently dropped. These tables list the rules that report
these failures before they happen, by topic and by the moment of the failure. Mistakes that an API server or a webhook
refuses at once are listed if people reported them, because an audit and a CI job find them earlier. Each rule links to
its page in [rules](rules/README.md), with a bad and a good example.
"""
_NOT_COVERED: Final = """\
## Not covered

No rule reports these failures. People reported them, or they follow from the code of controllers.
"""
_SPELLED: Final = {"gpu": "GPU", "jobset": "JobSet", "opensandbox": "OpenSandbox", "trainer": "Trainer"}


@dataclass(frozen=True, slots=True, kw_only=True)
class UncoveredFailure:
    """A late failure without a rule. `issues` are links. `reason` says why there is no rule."""

    topic: str
    what: str
    reason: str
    issues: tuple[str, ...] = ()


def read_uncovered_failures(file: Path = NOT_COVERED) -> Sequence[UncoveredFailure]:
    """Return the failures that no rule reports."""
    entries: Sequence[Mapping[str, Any]] = yamlfile.read(file)[0].value
    return tuple(UncoveredFailure(**{**each, "issues": tuple(each.get("issues", ()))}) for each in entries)


def late_failures_as_markdown(policies: Iterable[Policy], left: Sequence[UncoveredFailure] = ()) -> str:
    """Return the whole page. Topics are in alphabetical order."""
    topics: dict[str, list[StatedRule]] = {}
    for entry in rules_of_policies(policies).values():
        if entry.rule.fails not in ("", AT_ONCE) or entry.rule.issue_links_by_name:
            topics.setdefault(entry.policies[0].category or entry.rule.group, []).append(entry)
    lines = [_TITLE, *_index(topics, left)]
    for topic in sorted(topics):
        lines += [f"## {_heading(topic)}", ""]
        lines += _tables_by_moment(topics[topic])
    return "\n".join((*lines, *_table_of_uncovered_failures(left)))


def _index(topics: Mapping[str, Sequence[StatedRule]], left: Sequence[UncoveredFailure]) -> Iterator[str]:
    yield from (f"- [{_heading(topic)}](#{topic.replace(' ', '-')}): {len(topics[topic])}" for topic in sorted(topics))
    if left:
        yield f"- [Not covered](#not-covered): {len(left)}"
    yield ""


def _heading(topic: str) -> str:
    words = " ".join(_SPELLED.get(word, word) for word in topic.split())
    return words[:1].upper() + words[1:]


def _tables_by_moment(entries: Iterable[StatedRule]) -> Iterator[str]:
    by_moment: dict[str, list[StatedRule]] = {}
    for entry in entries:
        by_moment.setdefault(entry.rule.fails or AT_ONCE, []).append(entry)
    for moment, title in MOMENTS.items():
        if moment in by_moment:
            yield from (f"### {title}", "", "| rule | why | reported in |", "|---|---|---|")
            yield from map(_row, by_moment[moment])
            yield ""


def _row(entry: StatedRule) -> str:
    rule = entry.rule
    link = f"[{rule.id}](rules/{rule_address(rule)}): {_cell(rule.title)}"
    return f"| {link} | {_cell(rule.why)} | {links_to_issues(rule.issue_links_by_name)} |"


def _table_of_uncovered_failures(left: Sequence[UncoveredFailure]) -> Iterator[str]:
    if left:
        yield from (
            _NOT_COVERED,
            "| topic | what happens | why no rule reports it | reported in |",
            "|---|---|---|---|",
        )
        for each in left:
            cells = (
                _heading(each.topic),
                _cell(each.what),
                _cell(each.reason),
                links_to_issues(github_issue_links(each.issues)),
            )
            yield f"| {' | '.join(cells)} |"
        yield ""


def _cell(text: str) -> str:
    return text.replace("|", "&#124;")
