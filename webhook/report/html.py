"""Writes one HTML file for people; it needs no network, and no JavaScript to be read.

The sums are at the beginning, so findings are kept until the end, in a file if they are many (spool). Text comes from
people, so all of it is escaped, and a policy in the page lets the browser run only the script in the page. The script
only hides what a filter leaves out.
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

from msgspec import Struct, field

from webhook import __version__
from webhook.report.counts import FINDINGS
from webhook.report.finding import Finding, Result, Subject
from webhook.report.html_queues import links_to_queues, queue_sections
from webhook.report.rule import Rules
from webhook.report.spool import Spool, file_and_object_of_finding
from webhook.report.writer import Totals
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
"""How many rows a chart has at most; the remaining ones share one more row."""
_MOST_COPIES: Final = 100
"""How many copies of an object are named."""
_CLUSTER: Final = "(whole cluster)"


class HtmlFindingsWriter:
    """Writes one HTML document."""

    def __init__(self) -> None:
        self._spoken: Spool[Finding] = Spool()
        self._counts = _FindingCounts()

    def begin(self, _rules: Rules) -> Iterator[str]:
        """Yield nothing, because the document is written at the end."""
        yield from ()

    def entry(self, entry: Finding) -> Iterator[str]:
        """Keep a finding."""
        self._counts.add(entry)
        self._spoken.append(entry)
        yield from ()

    def end(self, totals: Totals) -> Iterator[str]:
        """Yield the document."""
        yield _head_of_page(totals)
        yield links_to_queues(totals.queues)
        yield _list_of_unreadable(totals)
        if totals.configured:
            yield f"<p>{_escaped_text(str(totals.configured))}</p>\n"
        yield _charts_of_findings(self._counts)
        yield _filter_form(self._counts)
        for (file, subject), several in groupby(self._spoken, file_and_object_of_finding):
            yield _section_of_object(file, subject, several)
        yield _section_of_not_evaluated(totals)
        yield queue_sections(totals.queues)
        yield _foot_of_page()


class _FindingCounts(Struct):
    """The numbers of findings by the values of charts and filters."""

    results: Counter[str] = field(default_factory=Counter)
    rules: Counter[str] = field(default_factory=Counter)
    namespaces: Counter[str] = field(default_factory=Counter)
    severities: Counter[str] = field(default_factory=Counter)

    def add(self, finding: Finding) -> None:
        """Count a finding."""
        self.results[_result_word(finding)] += 1
        self.rules[finding.rule.id] += 1
        self.namespaces[finding.subject.namespace or _CLUSTER] += 1
        self.severities[finding.rule.severity or "not said"] += 1


def _head_of_page(totals: Totals) -> str:
    style, script = _read_page_part("report.css"), _read_page_part("report.js")
    by_result = totals.counts.results
    sums = [f'<li class="{each}"><b>{by_result[each]}</b> {_WORDS[each]}</li>' for each in Result if each in FINDINGS]
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
    )


def _list_of_unreadable(totals: Totals) -> str:
    if not totals.unreadable:
        return ""
    lines = "".join(f"<li>{_escaped_text(str(each))}</li>" for each in totals.unreadable)
    return f'<section class="unread"><h2>Could not be read</h2><ul>{lines}</ul></section>\n'


def _section_of_not_evaluated(totals: Totals) -> str:
    """Return the folded rules that were not evaluated; they are not findings."""
    reasons = totals.counts.not_evaluated.values()
    if not reasons:
        return ""
    title = f"Not evaluated: {counted(totals.counts.incomplete, 'object')}, {counted(len(reasons), 'reason')}"
    lines = "".join(
        f"<li>{_escaped_text(each.why)} "
        f"({counted(each.objects, 'object')}, first {_escaped_text(f'{each.subject} in {each.place}')})</li>"
        for each in reasons
    )
    return f'<section class="open"><details><summary>{title}</summary><ul>{lines}</ul></details></section>\n'


def _charts_of_findings(counts: _FindingCounts) -> str:
    if not counts.results:
        return "<p>Nothing was found.</p>\n"
    by = {"By rule": counts.rules, "By namespace": counts.namespaces, "By severity": counts.severities}
    charts = "".join(_bar_chart(title, numbers) for title, numbers in by.items())
    return f'<section class="charts" aria-label="Sums">{charts}</section>\n'


def _bar_chart(title: str, counts: Counter[str]) -> str:
    shown = counts.most_common(_MOST_ROWS)
    if rest := counts.total() - sum(count for _, count in shown):
        shown.append((f"{counted(len(counts) - _MOST_ROWS, 'other')}", rest))
    most = max(count for _, count in shown)
    rows = "".join(_row_of_chart(name, count, most) for name, count in shown)
    return f"<table><caption>{title}</caption><tbody>{rows}</tbody></table>"


def _row_of_chart(name: str, count: int, most: int) -> str:
    """Return a row of a chart; its bar is hidden from screen readers, since the number says the same."""
    bar = f'<meter aria-hidden="true" min="0" max="{most}" value="{count}"></meter>'
    return f'<tr><th scope="row">{_escaped_text(name)}</th><td class="bar">{bar}</td><td>{count}</td></tr>'


def _filter_form(counts: _FindingCounts) -> str:
    """Return the filter form, hidden until the script shows it, because it needs the script."""
    if not counts.results:
        return ""
    fields = "".join(
        (
            _select_field("result", "Result", counts.results),
            _select_field("rule", "Rule", counts.rules),
            _select_field("namespace", "Namespace", counts.namespaces),
        )
    )
    search = '<label>Search <input type="search" id="search" placeholder="name, path or words"></label>'
    told = '<p id="shown" role="status"></p>'
    return f'<form id="filters" role="search" hidden>{fields}{search}</form>{told}\n'


def _select_field(name: str, label: str, values: Iterable[str]) -> str:
    options = "".join(f"<option>{_escaped_text(value)}</option>" for value in sorted(set(values)))
    return f'<label>{label} <select id="{name}"><option value="">all</option>{options}</select></label>'


def _section_of_object(file: str, subject: Subject, findings: Iterable[Finding]) -> str:
    items = "".join(map(_item_of_finding, findings))
    where = f'<p class="where">{_escaped_text(file)}, {_escaped_text(subject.api_version)}</p>'
    return f'<section class="object"><h2>{_escaped_text(str(subject))}</h2>{where}<ul>{items}</ul></section>\n'


def _item_of_finding(finding: Finding) -> str:
    said, rule = _result_word(finding), finding.rule
    namespace = finding.subject.namespace or _CLUSTER
    data = {"result": said, "rule": rule.id, "namespace": namespace}
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
        f'<li class="finding {finding.result}"{attributes}><span class="said">{said}</span> '
        f'<span class="message">{message}{exception}</span>{fix}{_source_line_with_mark(finding)} '
        f'{_copies_of_object(finding)}<span class="rule">{line}{named}{severity}</span></li>'
    )


def _copies_of_object(finding: Finding) -> str:
    """Return the places of copies of the object, folded where they are many."""
    if not finding.also_in:
        return ""
    places = [f"{_escaped_text(str(each.place))}" for each in finding.also_in[:_MOST_COPIES]]
    more = len(finding.also_in) - len(places)
    items = "".join(f"<li>{each}</li>" for each in (*places, *([f"and {more} more"] if more else [])))
    title = f"Also in {counted(len(finding.also_in), 'place')}"
    return f'<details class="copies"><summary>{title}</summary><ul>{items}</ul></details>'


def _source_line_with_mark(finding: Finding) -> str:
    """Return the line of the file with the place marked; a long line can be scrolled by keyboard."""
    shown = finding.line
    if shown is None:
        return ""
    end = shown.column - 1 + shown.length
    parts = shown.text[: shown.column - 1], shown.text[shown.column - 1 : end], shown.text[end:]
    before, meant, after = (escape(one_line(part)) if part else "" for part in parts)
    number = f'<span class="number">{finding.place.line}</span>'
    label = f'aria-label="Line {finding.place.line}"'
    return f'<pre tabindex="0" role="group" {label}>{number} {before}<mark>{meant}</mark>{after}</pre>'


def _foot_of_page() -> str:
    script = _read_page_part("report.js")
    return f"</main>\n<footer>claimgate {__version__}</footer>\n<script>{script}</script>\n</body>\n</html>\n"


def _result_word(finding: Finding) -> str:
    return _ADVICE if finding.is_advice and finding.result is Result.WARN else _WORDS[finding.result]


def _message_as_html(text: str) -> str:
    """Return a line of a message as HTML; text in pairs of backticks becomes code."""
    parts = _escaped_text(text).split("`")
    if not len(parts) % 2:
        return "`".join(parts)
    return "".join(f"<code>{part}</code>" if index % 2 else part for index, part in enumerate(parts))


def _escaped_text(text: str) -> str:
    return escape(one_line(text))


def _read_page_part(name: str) -> str:
    return (files("webhook.report") / "html_page" / name).read_text(encoding="utf-8")


def _csp_hash_of_text(text: str) -> str:
    """Return the hash by which a Content-Security-Policy names one inline text (CSP Level 3, hash-source)."""
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"
