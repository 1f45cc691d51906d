"""Writes the queues of Kueue as text, as JSON, and as an SVG picture: a tree with a bar for each resource of a flavor.

The length of a bar is the amount that the queue could use: its own quota (dark) and the amount that it could borrow
(light). The line below is the usage. The bar of a cohort is the quota that its members share. Bars of one resource
have the same scale. Colours follow the reader's system, light or dark. Texts come from users, so they are escaped. Long
texts are cut, and a tooltip shows the whole text.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from html import escape
from textwrap import wrap
from typing import Final

from webhook.apimachinery.attributes import JSON
from webhook.apimachinery.names import object_as_text
from webhook.facts.queue_overview import QueueOverview, QueueResourceAmounts, QueueRow
from webhook.text import terminal
from webhook.text.wording import counted, named

_WIDTH: Final = 1180
_MARGIN, _INDENT_PIXELS = 24, 26
_LINE, _GAP = 20, 10
_BAR_AT, _BAR, _NUMBERS_AT = 470, 330, 815
_CHARACTERS, _LONG = 58, 150
"""The most characters of a text beside a bar, and of a text on its own line."""
_LETTER: Final = 8
"""The width of the widest letter of a name, in pixels."""
_MARKS: Final = {"Cohort": "all", "ClusterQueue": "own", "LocalQueue": "local", "Queue": "own"}
"""The CSS class of the square before a queue's name, by the queue's kind."""
_STYLE: Final = (
    "text{font:13px system-ui,sans-serif;fill:#1f2328}.name{font-weight:600}.small{font-size:12px;fill:#57606a}"
    ".no{fill:#b42318;font-size:12px}.own{fill:#0b62a8}.all{fill:#6f42c1}.borrowed{fill:#a8cdea}.used{fill:#d9822b}"
    ".local{fill:#2c7a3f}.line{stroke:#d0d7de;fill:none}.track{fill:#f0f2f4}.back{fill:#fff}"
    "@media(prefers-color-scheme:dark){text{fill:#e6ebf0}.small{fill:#b0bac5}.no{fill:#ff9c92}.own{fill:#58a6ff}"
    ".all{fill:#b392f0}.borrowed{fill:#24507f}.used{fill:#f0a54a}.local{fill:#7ed397}.line{stroke:#4a5562}"
    ".track{fill:#2a323b}.back{fill:#12161b}}"
)
_LEGEND: Final = (("own", "own quota"), ("borrowed", "can be borrowed"), ("all", "shared in the cohort"))
_INDENT = "  "


def queue_text(overview: QueueOverview) -> str:
    """Return a line for each queue, with its quota below."""
    return terminal.lines([*_lines_of_overview(overview)])


def _lines_of_overview(overview: QueueOverview) -> Iterator[str]:
    for row in overview.rows:
        margin = _INDENT * row.depth
        yield f"{margin}{title(row)}"
        yield from (f"{margin}{_INDENT}! {each}" for each in row.obstacles)
        yield from (f"{margin}{_INDENT}{each}" for each in _quota_table_of_row(row))
    if overview.unused_flavors:
        has = "has" if len(overview.unused_flavors) == 1 else "have"
        yield f"{named(overview.unused_flavors, 'flavor')} {has} no quota in any queue"
    if any(each.used for row in overview.rows for each in row.amounts):
        yield f"used: {_source_of_usage(overview)}"
    kinds = [row.kind for row in overview.rows]
    blocked = sum(bool(row.obstacles) for row in overview.rows)
    yield (
        f"{counted(kinds.count('Cohort'), 'cohort')}, {counted(kinds.count('ClusterQueue'), 'ClusterQueue')},"
        f" {counted(kinds.count('LocalQueue'), 'LocalQueue')}; {blocked} with obstacles"
    )


def _source_of_usage(overview: QueueOverview) -> str:
    """Return a text about the objects that the usage comes from."""
    if overview.workloads is None:
        return "as the status of the ClusterQueues says"
    return f"the sum of {counted(overview.workloads, 'Workload')} with reserved quota"


def title(row: QueueRow) -> str:
    """Return the title of a row, such as `LocalQueue team-a/main`, `ClusterQueue gpus` or `Cohort research`."""
    return object_as_text(row.kind, row.namespace, row.name)


def _quota_table_of_row(row: QueueRow) -> Iterator[str]:
    if row.kind == "LocalQueue":
        yield from lines_of_admissible_amounts(row)
        return
    cells = [_cells_of_amount(row, each) for each in row.amounts]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    for line in cells:
        yield "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()


def lines_of_admissible_amounts(row: QueueRow) -> Iterator[str]:
    """Yield the most that a LocalQueue can admit, by flavor: `can admit at most 64 cpu, 4 nvidia.com/gpu of l4`."""
    flavors: dict[str, list[str]] = {}
    for each in row.amounts:
        if each.most > 0:
            flavors.setdefault(each.flavor, []).append(f"{each.format_as_quantity(each.most)} {each.resource}")
    if row.amounts and not flavors:
        yield "can admit nothing because all quota is 0"
    for flavor, amounts in flavors.items():
        yield f"can admit at most {', '.join(amounts)} of {flavor}"


def _cells_of_amount(row: QueueRow, amount: QueueResourceAmounts) -> Sequence[str]:
    own = row.kind == "ClusterQueue"
    borrowing, lending = (
        amount.format_as_quantity(amount.borrowing_limit),
        amount.format_as_quantity(amount.lending_limit),
    )
    return (
        amount.flavor,
        amount.resource,
        f"{amount.format_as_quantity(amount.nominal)} nominal",
        f"borrows at most {borrowing}" if borrowing is not None else "",
        f"lends at most {lending}" if lending is not None else "",
        f"{amount.format_as_quantity(amount.most)} {'potential' if own else 'shared'}",
        f"{amount.format_as_quantity(amount.used)} used" if amount.used else "",
    )


def queue_json(overview: QueueOverview) -> str:
    """Return the rows as JSON, with amounts as quantities."""
    described = {
        "queues": [_row_as_json(each) for each in overview.rows],
        "unusedFlavors": list(overview.unused_flavors),
        "usedAccordingTo": "ClusterQueues" if overview.workloads is None else "Workloads",
    }
    return terminal.escape_json_text(json.dumps(described, indent=2, ensure_ascii=False)) + "\n"


def _row_as_json(row: QueueRow) -> JSON:
    return {
        "kind": row.kind,
        "name": row.name,
        "namespace": row.namespace,
        "parent": row.parent,
        "amounts": [_amount_as_json(row, each) for each in row.amounts],
        "obstacles": list(row.obstacles),
    }


def _amount_as_json(row: QueueRow, amount: QueueResourceAmounts) -> JSON:
    return {
        "flavor": amount.flavor,
        "resource": amount.resource,
        "nominal": amount.format_as_quantity(amount.nominal),
        "borrowingLimit": amount.format_as_quantity(amount.borrowing_limit),
        "lendingLimit": amount.format_as_quantity(amount.lending_limit),
        "shared" if row.kind == "Cohort" else "potential": amount.format_as_quantity(amount.most),
        "used": amount.format_as_quantity(amount.used),
    }


def queue_svg(overview: QueueOverview) -> str:
    """Return the picture as one SVG document."""
    return "".join(_Drawing(overview).document())


class _Drawing:
    """Draws one picture from the top. The height of a row depends on its lines."""

    def __init__(self, overview: QueueOverview) -> None:
        self._overview = overview
        self._at = _MARGIN + 40
        self._scale: dict[str, int] = {}
        self._bottoms: dict[int, int] = {}
        for amount in (each for row in overview.rows for each in row.amounts):
            largest = max(amount.most, amount.nominal, amount.used, 1)
            self._scale[amount.resource] = max(self._scale.get(amount.resource, 1), largest)

    def document(self) -> Iterator[str]:
        """Yield the whole document. Rows are drawn first, because they set its height."""
        drawn = [part for row in self._overview.rows for part in self._row_elements(row)]
        if self._overview.unused_flavors:
            flavors = ", ".join(self._overview.unused_flavors)
            for line in _wrapped_lines(f"Flavors without quota in any queue: {flavors}"):
                drawn.append(_text_element(_MARGIN, self._at + 14, line, "no", _LONG))
                self._at += _LINE
            self._at += _GAP
        height = self._at + _MARGIN
        yield (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{height}"'
            f' viewBox="0 0 {_WIDTH} {height}" role="img">'
        )
        yield f"<title>Queues of Kueue</title><style>{_STYLE}</style>"
        yield f'<rect class="back" width="{_WIDTH}" height="{height}"/>'
        yield from _legend_elements(self._overview.workloads)
        yield from drawn
        yield "</svg>\n"

    def _row_elements(self, row: QueueRow) -> Iterator[str]:
        left, top = _MARGIN + _INDENT_PIXELS * min(row.depth, 8), self._at
        if row.depth:
            yield from self._connecting_line(row.depth, left, top)
        yield f'<rect class="{_MARKS[row.kind]}" x="{left}" y="{top}" width="12" height="12" rx="3"/>'
        self._bottoms[row.depth] = top + 12
        amounts = row.amounts if row.kind != "LocalQueue" else ()
        most = (_BAR_AT - left - 18) // _LETTER if amounts else _LONG
        yield _text_element(left + 18, top + 11, title(row), "name", most)
        lines_with_kinds = [("no", line) for each in row.obstacles for line in _wrapped_lines(each)]
        if row.kind == "LocalQueue":
            lines_with_kinds.extend(
                ("small", line) for each in lines_of_admissible_amounts(row) for line in _wrapped_lines(each)
            )
        lines = max(1, len(amounts))
        for index, (kind, line) in enumerate(lines_with_kinds):
            yield _text_element(left + 18, top + 11 + _LINE * (lines + index), line, kind, _LONG)
        for index, amount in enumerate(amounts):
            yield from self._bar_elements(row, amount, top + _LINE * index)
        self._at += _LINE * (lines + len(lines_with_kinds)) + _GAP

    def _connecting_line(self, depth: int, left: int, top: int) -> Iterator[str]:
        """Yield the line to the row above in the tree."""
        x, start = left - _INDENT_PIXELS + 6, self._bottoms.get(depth - 1, top)
        yield f'<path class="line" d="M{x} {start}V{top + 6}H{left - 2}"/>'

    def _bar_elements(self, row: QueueRow, amount: QueueResourceAmounts, top: int) -> Iterator[str]:
        """The length of a bar is relative to the largest amount of its resource."""
        largest = self._scale[amount.resource]
        most = _BAR * max(0, amount.most) // largest
        own = min(most, _BAR * amount.nominal // largest) if row.kind == "ClusterQueue" else most
        used = min(_BAR, _BAR * max(0, amount.used) // largest)
        yield f'<rect class="track" x="{_BAR_AT}" y="{top}" width="{_BAR}" height="12" rx="2"/>'
        yield f'<rect class="borrowed" x="{_BAR_AT}" y="{top}" width="{most}" height="12" rx="2"/>'
        kind = "own" if row.kind == "ClusterQueue" else "all"
        yield f'<rect class="{kind}" x="{_BAR_AT}" y="{top}" width="{own}" height="12" rx="2"/>'
        if used:
            yield f'<rect class="used" x="{_BAR_AT}" y="{top + 13}" width="{used}" height="3"/>'
        yield _text_element(_NUMBERS_AT, top + 11, amounts_in_words(row, amount), "small")


def amounts_in_words(row: QueueRow, amount: QueueResourceAmounts) -> str:
    """Return the numbers of a bar, such as `8 + 8 = 16 nvidia.com/gpu (3 in use) of a100`."""
    nominal, most = amount.format_as_quantity(amount.nominal), amount.format_as_quantity(amount.most)
    used = f" ({amount.format_as_quantity(amount.used)} in use)" if amount.used else ""
    if row.kind == "Queue":
        deserved = f", deserves {nominal}" if amount.nominal else ""
        return f"at most {most} {amount.resource}{deserved}{used}"
    borrowed = amount.most - amount.nominal
    is_sum = row.kind == "ClusterQueue" and borrowed > 0
    amounts = f"{nominal} + {amount.format_as_quantity(borrowed)} = {most}" if is_sum else f"{most}"
    return f"{amounts} {amount.resource}{used} of {amount.flavor}"


def _wrapped_lines(text: str) -> list[str]:
    return wrap(terminal.one_line(text), _LONG, break_long_words=False, break_on_hyphens=False)


def _legend_elements(workloads: int | None) -> Iterator[str]:
    yield _text_element(_MARGIN, _MARGIN + 11, "Queues of Kueue", "name")
    source = "status of ClusterQueues" if workloads is None else counted(workloads, "Workload")
    x = _BAR_AT
    for kind, text in (*_LEGEND, ("used", f"in use ({source})")):
        yield f'<rect class="{kind}" x="{x}" y="{_MARGIN}" width="12" height="12" rx="2"/>'
        yield _text_element(x + 18, _MARGIN + 11, text, "small")
        x += 34 + _LETTER * len(text)


def _text_element(x: int, y: int, text: str, kind: str, max_characters: int = _CHARACTERS) -> str:
    whole = terminal.one_line(text)
    shown = escape(whole)
    if len(whole) > max_characters:
        shown = f"{escape(whole[: max_characters - 3])}...<title>{shown}</title>"
    return f'<text class="{kind}" x="{x}" y="{y}">{shown}</text>'
