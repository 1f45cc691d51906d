"""Prints the queues of Kueue as a tree of lines, and as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from webhook.apimachinery.attributes import JSON
from webhook.facts.queue_overview import QueueOverview, QueueResourceAmounts, QueueRow
from webhook.text import terminal
from webhook.text.wording import counted, named

_INDENT = "  "


def queue_text(made: QueueOverview) -> str:
    """Return a line for each queue with its quota below it."""
    return terminal.lines([*_lines_of_overview(made)])


def _lines_of_overview(made: QueueOverview) -> Iterator[str]:
    for row in made.rows:
        margin = _INDENT * row.depth
        yield f"{margin}{title(row)}"
        yield from (f"{margin}{_INDENT}! {each}" for each in row.obstacles)
        yield from (f"{margin}{_INDENT}{each}" for each in _quota_table_of_row(row))
    if made.unused_flavors:
        has = "has" if len(made.unused_flavors) == 1 else "have"
        yield f"{named(made.unused_flavors, 'flavor')} {has} no quota in any queue"
    if any(each.used for row in made.rows for each in row.amounts):
        yield f"used: {_source_of_usage(made)}"
    kinds = [row.kind for row in made.rows]
    blocked = sum(bool(row.obstacles) for row in made.rows)
    yield (
        f"{counted(kinds.count('Cohort'), 'cohort')}, {counted(kinds.count('ClusterQueue'), 'ClusterQueue')},"
        f" {counted(kinds.count('LocalQueue'), 'LocalQueue')}; {blocked} with obstacles"
    )


def _source_of_usage(made: QueueOverview) -> str:
    """Return a text that names the objects from which usage is read."""
    if made.workloads is None:
        return "as the status of the ClusterQueues says"
    return f"the sum of {counted(made.workloads, 'Workload')} with reserved quota"


def title(row: QueueRow) -> str:
    """Return the title of a row: `LocalQueue team-a/main`, `ClusterQueue gpus`, `Cohort research`."""
    return f"{row.kind} {row.namespace}/{row.name}" if row.namespace else f"{row.kind} {row.name}"


def _quota_table_of_row(row: QueueRow) -> Iterator[str]:
    """Yield the quota of a row, in columns."""
    if row.kind == "LocalQueue":
        yield from lines_of_admissible_amounts(row)
        return
    cells = [_cells_of_amount(row, each) for each in row.amounts]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    for line in cells:
        yield "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()


def lines_of_admissible_amounts(row: QueueRow) -> Iterator[str]:
    """Yield what a LocalQueue can admit at most, by flavor: `can admit at most 64 cpu, 4 nvidia.com/gpu of l4`."""
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


def queue_json(made: QueueOverview) -> str:
    """Return the rows as JSON, with amounts as quantities."""
    described = {
        "queues": [_row_as_json(each) for each in made.rows],
        "unusedFlavors": list(made.unused_flavors),
        "usedAccordingTo": "ClusterQueues" if made.workloads is None else "Workloads",
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
