"""Writes one HTML file for people. The file needs no network, and can be read without JavaScript.

The sums come first, so findings are kept until the end, in a file if there are many (spool). Texts come from users, so
all texts are escaped. A Content-Security-Policy allows only the script of the page. The script filters rows.
"""

from __future__ import annotations

import base64
import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator
from html import escape
from importlib.resources import files
from itertools import groupby
from string import Template
from typing import Final
from urllib.parse import urlencode

from msgspec import Struct, field

from webhook import __version__
from webhook.report.counts import FINDINGS
from webhook.report.finding import Finding, Result, Subject
from webhook.report.html_queues import links_to_queues, queue_sections
from webhook.report.rule import Rules
from webhook.report.spool import Spool, SpoolFile, file_and_object_of_finding
from webhook.report.writer import RunDescription, Totals
from webhook.rules.decisions import SEVERITIES
from webhook.text.terminal import one_line
from webhook.text.wording import counted

_WORDS: Final = {
    Result.FAIL: "denied",
    Result.WARN: "warning",
    Result.ERROR: "error",
    Result.SKIP: "not evaluated",
    Result.PASS: "passed",
}
_ADVICE: Final = "advice"
_MOST_ROWS: Final = 12
"""A chart has at most this number of rows, and one more row for all other values."""
_MOST_COPIES: Final = 100
"""The report names at most this number of copies of an object."""
_CLUSTER: Final = "(whole cluster)"
_NO_SEVERITY: Final = "no severity"
_SORTED_RESULTS: Final = (
    _WORDS[Result.FAIL],
    _WORDS[Result.ERROR],
    _WORDS[Result.WARN],
    _ADVICE,
    _WORDS[Result.SKIP],
    _WORDS[Result.PASS],
)
"""The results in the order of their sections. Within a result, severities order the sections."""


class HtmlFindingsWriter:
    """Writes one HTML document."""

    def __init__(self) -> None:
        self._file = SpoolFile()
        self._findings: dict[tuple[str, str], Spool[Finding]] = {}
        self._counts = _FindingCounts()

    def begin(self, _rules: Rules) -> Iterator[str]:
        yield from ()

    def entry(self, entry: Finding) -> Iterator[str]:
        self._counts.add(entry)
        group = _result_word(entry), entry.rule.severity
        if group not in self._findings:
            self._findings[group] = Spool(self._file)
        self._findings[group].append(entry)
        yield from ()

    def end(self, totals: Totals) -> Iterator[str]:
        yield _head_of_page(totals)
        yield links_to_queues(totals.queues)
        yield _list_of_unreadable(totals)
        if totals.configured:
            yield f"<p>{_escaped_text(str(totals.configured))}</p>\n"
        yield '<div class="columns">\n<div>\n'
        yield _filter_form(self._counts)
        if not self._findings:
            yield "<p>No findings.</p>\n"
        for result, severity in sorted(self._findings, key=_rank_of_group):
            count = self._counts.groups[result, severity]
            yield f'<section class="group"><h2>{_title_of_group(result, severity, count)}</h2>\n'
            for (file, subject), several in groupby(self._findings[result, severity], file_and_object_of_finding):
                yield _section_of_object(file, subject, several)
            yield "</section>\n"
        yield _section_of_not_evaluated(totals)
        yield "</div>\n"
        yield _charts_of_findings(self._counts)
        yield "</div>\n"
        yield queue_sections(totals.queues)
        yield _foot_of_page()


class _FindingCounts(Struct):
    """The number of findings for each value of the filters. Charts leave out passes and rules that were not evaluated,
    so these count as 0. `groups` counts all results.
    """

    groups: Counter[tuple[str, str]] = field(default_factory=Counter)
    results: Counter[str] = field(default_factory=Counter)
    rules: Counter[str] = field(default_factory=Counter)
    namespaces: Counter[str] = field(default_factory=Counter)
    severities: Counter[str] = field(default_factory=Counter)

    def add(self, finding: Finding) -> None:
        is_finding = finding.result in FINDINGS
        self.groups[_result_word(finding), finding.rule.severity] += 1
        self.results[_result_word(finding)] += is_finding
        self.rules[finding.rule.id] += is_finding
        self.namespaces[finding.subject.namespace or _CLUSTER] += is_finding
        self.severities[finding.rule.severity or _NO_SEVERITY] += is_finding


def _rank_of_group(group: tuple[str, str]) -> tuple[int, int, str]:
    result, severity = group
    rank_of_severity = SEVERITIES.index(severity) if severity in SEVERITIES else len(SEVERITIES)
    return _SORTED_RESULTS.index(result), rank_of_severity, severity


def _title_of_group(result: str, severity: str, count: int) -> str:
    """Return a title such as `Denied, high: 2`."""
    of_severity = f", {_escaped_text(severity)}" if severity else ""
    return f"{result[:1].upper()}{result[1:]}{of_severity}: {count}"


def _head_of_page(totals: Totals) -> str:
    style, script = _read_page_part("report.css"), _read_page_part("report.js")
    by_result = totals.counts.results
    sums = [
        f'<li class="{each}"><b>{by_result[each]}</b> {_result_in_number(each, by_result[each])}</li>'
        for each in Result
        if each in FINDINGS
    ]
    objects = {
        "without findings": totals.without_findings,
        "with findings": totals.counts.with_findings,
        "not read": totals.unread_objects,
        "not evaluated in full": totals.counts.incomplete,
    }
    of_objects = [f"<li><b>{count}</b> {word}</li>" for word, count in objects.items()]
    return Template(_read_page_part("head.html")).substitute(
        title=f"claimgate: {counted(totals.entries, 'object')}",
        files=counted(totals.files, "file"),
        policy=f"default-src 'none'; style-src '{_csp_hash_of_text(style)}'; script-src '{_csp_hash_of_text(script)}'",
        style=style,
        objects="".join(of_objects),
        sums="".join(sums),
        run=_section_about_run(totals.run),
    )


def _result_in_number(result: Result, count: int) -> str:
    """Return `denied`, `warning` or `warnings`."""
    return f"{_WORDS[result]}s" if count != 1 and result is not Result.FAIL else _WORDS[result]


def _section_about_run(run: RunDescription) -> str:
    """Return the section about the run: time, command, policies and commit; "" if the time is unknown."""
    rows = {"Command": run.command, "Policies": run.policies, "Commit": run.revision}
    terms = "".join(f"<dt>{term}</dt><dd>{_escaped_text(text)}</dd>" for term, text in rows.items() if text)
    if not run.time:
        return ""
    time = f'<time datetime="{_escaped_text(run.time)}">{_escaped_text(run.time_in_words)}</time>'
    return f'<details id="run" open><summary>Written {time}</summary><dl>{terms}</dl></details>'


def _list_of_unreadable(totals: Totals) -> str:
    if not totals.unreadable:
        return ""
    lines = "".join(f"<li>{_escaped_text(str(each))}</li>" for each in totals.unreadable)
    return f'<section class="unread"><h2>Could not be read</h2><ul>{lines}</ul></section>\n'


def _section_of_not_evaluated(totals: Totals) -> str:
    """Return the section about rules that were not evaluated. These are not findings, so the section is folded."""
    reasons = totals.counts.not_evaluated.values()
    if not reasons:
        return ""
    title = f"Not evaluated: {counted(totals.counts.incomplete, 'object')}, {counted(len(reasons), 'reason')}"
    lines = "".join(
        f"<li>{_escaped_text(each.why)} "
        f"({counted(each.objects, 'object')}, first {_escaped_text(f'{each.subject} in {each.place}')})</li>"
        for each in reasons
    )
    return f'<div class="open"><details><summary>{title}</summary><ul>{lines}</ul></details></div>\n'


def _charts_of_findings(counts: _FindingCounts) -> str:
    by = {"severity": counts.severities, "rule": counts.rules, "namespace": counts.namespaces}
    charts = "".join(
        _bar_chart(name, +findings_by_value) for name, findings_by_value in by.items() if findings_by_value.total()
    )
    return f'<section class="charts" aria-label="Sums">{charts}</section>\n' if charts else ""


def _bar_chart(filtered: str, counts: Counter[str]) -> str:
    """Return a chart of findings by the values of a filter. Each row is a link that sets the filter."""
    shown = counts.most_common(_MOST_ROWS)
    rest = counts.total() - sum(count for _, count in shown)
    most = max(rest, *(count for _, count in shown))
    rows = "".join(
        _row_of_chart(f'<a href="#{urlencode({filtered: name})}">{_escaped_text(name)}</a>', count, most)
        for name, count in shown
    )
    if rest:
        rows += _row_of_chart(counted(len(counts) - _MOST_ROWS, "other"), rest, most)
    return f"<table><caption>By {filtered}</caption><tbody>{rows}</tbody></table>"


def _row_of_chart(head: str, count: int, most: int) -> str:
    """Return a row of a chart. The bar is hidden from screen readers, because screen readers read the number."""
    bar = f'<meter aria-hidden="true" min="0" max="{most}" value="{count}"></meter>'
    return f'<tr><th scope="row">{head}</th><td class="bar">{bar}</td><td>{count}</td></tr>'


def _filter_form(counts: _FindingCounts) -> str:
    """Return the form of the filters. The script shows the form, because the form needs the script."""
    if not counts.results:
        return ""
    fields = "".join(
        (
            _select_field("result", "Result", counts.results),
            _select_field("severity", "Severity", counts.severities),
            _select_field("rule", "Rule", counts.rules),
            _select_field("namespace", "Namespace", counts.namespaces),
        )
    )
    search = '<label>Search <input type="search" id="search" placeholder="name, path or words"></label>'
    show_all = '<button type="button" id="every">Show all</button>'
    status = '<p id="shown" role="status"></p>'
    form = f'<form id="filters" role="search">{fields}{search}{show_all}</form>'
    return f'<details id="filtering" hidden><summary>Filter</summary>{form}</details>{status}\n'


def _select_field(name: str, label: str, values: Iterable[str]) -> str:
    options = "".join(f"<option>{_escaped_text(value)}</option>" for value in sorted(set(values)))
    return f'<label>{label} <select id="{name}"><option value="">all</option>{options}</select></label>'


def _section_of_object(file: str, subject: Subject, findings: Iterable[Finding]) -> str:
    items = "".join(map(_item_of_finding, findings))
    where = f'<p class="where">{_escaped_text(file)}, {_escaped_text(subject.api_version)}</p>'
    return f'<section class="object"><h3>{_escaped_text(str(subject))}</h3>{where}<ul>{items}</ul></section>\n'


def _item_of_finding(finding: Finding) -> str:
    result, rule = _result_word(finding), finding.rule
    namespace = finding.subject.namespace or _CLUSTER
    data = {"result": result, "severity": rule.severity or _NO_SEVERITY, "rule": rule.id, "namespace": namespace}
    attributes = "".join(f' data-{name}="{_escaped_text(value)}"' for name, value in data.items())
    line = f"line {finding.place.line}, " if finding.place.line else ""
    named = (
        f'<a href="{_escaped_text(rule.docs)}">{_escaped_text(rule.id)}</a>'
        if rule.docs.startswith("https://")
        else _escaped_text(rule.id)
    )
    severity = f", {_escaped_text(rule.severity)}" if rule.severity else ""
    text, told_fix = finding.message_and_fix()
    message = "<br>".join(map(_message_as_html, text.split("\n")))
    fix = f'<span class="fix"><b>Fix:</b> {_message_as_html(told_fix)}</span>' if told_fix else ""
    exception = f" {_escaped_text(f'({finding.exception_reason})')}" if finding.exception_reason else ""
    return (
        f'<li class="finding {finding.result}"{attributes}><span class="said">{result}</span> '
        f'<span class="message">{message}{exception}</span>{fix}{_source_line_with_mark(finding)} '
        f'{_copies_of_object(finding)}<span class="rule">{line}{named}{severity}</span></li>'
    )


def _copies_of_object(finding: Finding) -> str:
    """Return the places of copies, folded if there are several."""
    if not finding.also_in:
        return ""
    places = [f"{_escaped_text(str(each.place))}" for each in finding.also_in[:_MOST_COPIES]]
    more = len(finding.also_in) - len(places)
    items = "".join(f"<li>{each}</li>" for each in (*places, *([f"and {more} more"] if more else [])))
    title = f"Also in {counted(len(finding.also_in), 'place')}"
    return f'<details class="copies"><summary>{title}</summary><ul>{items}</ul></details>'


def _source_line_with_mark(finding: Finding) -> str:
    """Return the source line of a finding with a mark. A long line can be scrolled with the keyboard."""
    shown = finding.line
    if shown is None:
        return ""
    end = shown.column - 1 + shown.length
    parts = shown.text[: shown.column - 1], shown.text[shown.column - 1 : end], shown.text[end:]
    before, marked, after = (escape(one_line(part)) if part else "" for part in parts)
    number = f'<span class="number">{finding.place.line}</span>'
    label = f'aria-label="Line {finding.place.line}"'
    return f'<pre tabindex="0" role="group" {label}>{number} {before}<mark>{marked}</mark>{after}</pre>'


def _foot_of_page() -> str:
    script = _read_page_part("report.js")
    return f"</main>\n<footer>claimgate {__version__}</footer>\n<script>{script}</script>\n</body>\n</html>\n"


def _result_word(finding: Finding) -> str:
    return _ADVICE if finding.is_advice and finding.result is Result.WARN else _WORDS[finding.result]


def _message_as_html(text: str) -> str:
    """Return a message as HTML. Text between two backticks becomes code."""
    parts = _escaped_text(text).split("`")
    if not len(parts) % 2:
        return "`".join(parts)
    return "".join(f"<code>{part}</code>" if index % 2 else part for index, part in enumerate(parts))


def _escaped_text(text: str) -> str:
    return escape(one_line(text))


def _read_page_part(name: str) -> str:
    return (files("webhook.report") / "html_page" / name).read_text(encoding="utf-8")


def _csp_hash_of_text(text: str) -> str:
    """Return the hash that allows one inline text in a Content-Security-Policy (CSP Level 3, hash-source)."""
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"
