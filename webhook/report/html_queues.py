"""Draws the queues of Kueue and Volcano in the HTML report, with the demands of jobs.

Queues are a list, indented by their depth in the tree. The length of a bar is the amount that the queue could have:
its own quota (dark) and the amount that it could borrow (light). The line inside is the usage. A second bar is the
total demand of the jobs in the report. Values are also written as text, for readers who do not see the bars.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from typing import Final

from msgspec import Struct

from webhook.facts.queue_overview import QueueResourceAmounts, QueueRow
from webhook.facts.resource_units import format_amount_with_resource_name
from webhook.report.queue_drawings import amounts_in_words, lines_of_admissible_amounts, title
from webhook.report.queued_jobs import Demand, QueuedJob, QueueTrees
from webhook.text.terminal import one_line
from webhook.text.wording import counted

_DEEPEST: Final = 8
"""The number of levels of indentation. report.css has a class for each level."""
_KEYS: Final = (
    ("own", "own quota"),
    ("borrowed", "can be borrowed"),
    ("used", "in use"),
    ("asked", "jobs of this report would use"),
    ("over", "more than the queue could have"),
)


def links_to_queues(trees: Sequence[QueueTrees]) -> str:
    """Return links to the sections of queues, which follow all findings; "" without queues."""
    links = "".join(f'<li><a href="#{each.scheduler.lower()}">Queues of {each.scheduler}</a></li>' for each in trees)
    return f'<nav aria-label="Sections"><ul>{links}</ul></nav>\n' if links else ""


def queue_sections(trees: Iterable[QueueTrees]) -> str:
    """Return a section with the queues of each scheduler."""
    return "".join(map(_section_of_scheduler, trees))


def _section_of_scheduler(trees: QueueTrees) -> str:
    rows = trees.rows_with_demand()
    scale = _largest_amounts_by_resource(rows)
    items = [_item_of_queue(row, own, demand, scale) for row, own, demand in rows]
    items += [_item_of_unknown_queue(key.namespace, key.name, demand) for key, demand in trees.find_unknown_queues()]
    keys_with_texts = _KEYS if trees.scheduler == "Kueue" else (("own", "largest possible amount"), *_KEYS[2:])
    keys = "".join(f'<li><span class="key {kind}"></span>{text}</li>' for kind, text in keys_with_texts)
    legend = f'<ul class="keys" aria-hidden="true">{keys}</ul>'
    heading = f"<h2>Queues of {trees.scheduler}</h2>"
    tree = f'<ul class="tree">{"".join(items)}</ul>'
    return f'<section class="queues" id="{trees.scheduler.lower()}">{heading}{legend}{tree}</section>\n'


def _largest_amounts_by_resource(rows: Sequence[tuple[QueueRow, Demand, Demand]]) -> Mapping[str, int]:
    """Return the largest amount of each resource. This amount sets the scale of the resource's bars."""
    largest: dict[str, int] = {}
    for row, _, demand in rows:
        for each in row.amounts:
            largest[each.resource] = max(largest.get(each.resource, 1), each.most, each.nominal, each.used)
        for resource, amount in demand.amounts.items():
            largest[resource] = max(largest.get(resource, 1), amount)
    return largest


def _item_of_queue(row: QueueRow, own_demand: Demand, demand: Demand, scale: Mapping[str, int]) -> str:
    above = f' <span class="above">in {_escaped_text(row.parent)}</span>' if row.parent and row.depth else ""
    return (
        f'<li class="queue d{min(row.depth, _DEEPEST)}"><h3>{_escaped_text(title(row))}{above}</h3>'
        f"{''.join(_lines_of_queue(row, demand, scale))}{_list_of_jobs(own_demand)}</li>"
    )


def _lines_of_queue(row: QueueRow, demand: Demand, scale: Mapping[str, int]) -> Iterator[str]:
    yield from (f'<p class="obstacle">{_escaped_text(each)}</p>' for each in row.obstacles)
    if row.kind == "LocalQueue":
        yield from (f"<p>{_escaped_text(each)}</p>" for each in lines_of_admissible_amounts(row))
    else:
        yield from (_quota_line(row, each, scale[each.resource]) for each in row.amounts)
    for resource, amount in sorted(demand.amounts.items()):
        if amount:
            yield _demand_line(row, demand, resource, amount, scale[resource])


def _quota_line(row: QueueRow, amount: QueueResourceAmounts, largest: int) -> str:
    own = min(amount.most, amount.nominal) if row.kind == "ClusterQueue" else amount.most
    bar = _bar(
        largest, _BarPart("borrowed", amount.most), _BarPart("own", own), _BarPart("used", amount.used, is_line=True)
    )
    return f'<p class="quota">{bar}<span>{_escaped_text(amounts_in_words(row, amount))}</span></p>'


def _demand_line(row: QueueRow, demand: Demand, resource: str, amount: int, largest: int) -> str:
    """Return the line about the demand for a resource. The line also says if the queue can never have so much."""
    limits = [each.most for each in row.amounts if each.resource == resource]
    limit = sum(limits)
    is_over = bool(limits) and amount > limit
    text = f"{counted(demand.count, 'job')} would take {format_amount_with_resource_name(resource, amount)}"
    if is_over:
        together = " together" if demand.count > 1 else ""
        could_have = format_amount_with_resource_name(resource, limit)
        text += f"{together}, more than the {could_have} that the queue could have"
    fits = _BarPart("asked", min(amount, limit) if limits else amount)
    bar = _bar(largest, _BarPart("over", amount), fits) if is_over else _bar(largest, fits)
    return f'<p class="quota">{bar}<span>{_escaped_text(text)}</span></p>'


class _BarPart(Struct, frozen=True):
    """A part of a bar, from its left end. A line is inside the bar."""

    kind: str
    amount: int
    is_line: bool = False


def _bar(largest: int, *parts: _BarPart) -> str:
    drawn = "".join(
        f'<rect class="{part.kind}" y="{7 if part.is_line else 0}" height="{3 if part.is_line else 10}" '
        f'width="{_bar_width(part.amount, largest)}"/>'
        for part in parts
        if part.amount > 0
    )
    return f'<svg viewBox="0 0 1000 10" preserveAspectRatio="none" aria-hidden="true">{drawn}</svg>'


def _bar_width(amount: int, largest: int) -> int:
    """Return a length in thousandths of the scale. Small amounts stay visible."""
    return max(4, 1000 * amount // largest)


def _list_of_jobs(demand: Demand) -> str:
    """Return the first jobs by name, in a folded list."""
    if not demand.count:
        return ""
    items = "".join(f"<li>{_escaped_text(_text_of_job(each))}</li>" for each in demand.jobs)
    if rest := demand.count - len(demand.jobs):
        items += f"<li>and {rest} more</li>"
    return f"<details><summary>{counted(demand.count, 'job')}</summary><ul>{items}</ul></details>"


def _text_of_job(job: QueuedJob) -> str:
    amounts = [format_amount_with_resource_name(name, amount) for name, amount in sorted(job.amounts.items()) if amount]
    text = f"{job.job}: {', '.join(amounts) or 'nothing'}"
    return f"{text} ({job.note})" if job.note else text


def _item_of_unknown_queue(namespace: str, name: str, demand: Demand) -> str:
    shown = f"{namespace}/{name}" if namespace else name
    message = f'<p class="obstacle">Queue {_escaped_text(shown)} was not found.</p>'
    return f'<li class="queue d0"><h3>{_escaped_text(shown)}</h3>{message}{_list_of_jobs(demand)}</li>'


def _escaped_text(text: str) -> str:
    return escape(one_line(text))
