"""Prints the queues of Kueue as a tree of lines, and as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from webhook import terminal
from webhook.attributes import JSON
from webhook.facts.queue_overview import Amount, Overview, Row
from webhook.wording import counted, named

_INDENT = "  "


def queue_text(made: Overview) -> str:
    """Return a line for each queue with its quota below it."""
    return terminal.lines([*_lines_of_overview(made)])


def _lines_of_overview(made: Overview) -> Iterator[str]:
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


def _source_of_usage(made: Overview) -> str:
    """Return a text that names the objects from which usage is read."""
    if made.workloads is None:
        return "as the status of the ClusterQueues says"
    return f"the sum of {counted(made.workloads, 'Workload')} with reserved quota"


def title(row: Row) -> str:
    """Return the title of a row: `LocalQueue team-a/main`, `ClusterQueue gpus`, `Cohort research`."""
    return f"{row.kind} {row.namespace}/{row.name}" if row.namespace else f"{row.kind} {row.name}"


def _quota_table_of_row(row: Row) -> Iterator[str]:
    """Yield the quota of a row, in columns."""
    if row.kind == "LocalQueue":
        yield from admitted(row)
        return
    cells = [_cells_of_amount(row, each) for each in row.amounts]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    for line in cells:
        yield "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()


def admitted(row: Row) -> Iterator[str]:
    """Yield what a LocalQueue can admit at most, by flavor: `can admit at most 64 cpu, 4 nvidia.com/gpu of l4`."""
    flavors: dict[str, list[str]] = {}
    for each in row.amounts:
        if each.most > 0:
            flavors.setdefault(each.flavor, []).append(f"{each.shown(each.most)} {each.resource}")
    if row.amounts and not flavors:
        yield "can admit nothing because all quota is 0"
    for flavor, amounts in flavors.items():
        yield f"can admit at most {', '.join(amounts)} of {flavor}"


def _cells_of_amount(row: Row, amount: Amount) -> Sequence[str]:
    own = row.kind == "ClusterQueue"
    borrowing, lending = amount.shown(amount.borrowing_limit), amount.shown(amount.lending_limit)
    return (
        amount.flavor,
        amount.resource,
        f"{amount.shown(amount.nominal)} nominal",
        f"borrows at most {borrowing}" if borrowing is not None else "",
        f"lends at most {lending}" if lending is not None else "",
        f"{amount.shown(amount.most)} {'potential' if own else 'shared'}",
        f"{amount.shown(amount.used)} used" if amount.used else "",
    )


def queue_json(made: Overview) -> str:
    """Return the rows as JSON, with amounts as quantities."""
    described = {
        "queues": [_row_as_json(each) for each in made.rows],
        "unusedFlavors": list(made.unused_flavors),
        "usedAccordingTo": "ClusterQueues" if made.workloads is None else "Workloads",
    }
    return terminal.exact_json(json.dumps(described, indent=2, ensure_ascii=False)) + "\n"


def _row_as_json(row: Row) -> JSON:
    return {
        "kind": row.kind,
        "name": row.name,
        "namespace": row.namespace,
        "parent": row.parent,
        "amounts": [_amount_as_json(row, each) for each in row.amounts],
        "obstacles": list(row.obstacles),
    }


def _amount_as_json(row: Row, amount: Amount) -> JSON:
    return {
        "flavor": amount.flavor,
        "resource": amount.resource,
        "nominal": amount.shown(amount.nominal),
        "borrowingLimit": amount.shown(amount.borrowing_limit),
        "lendingLimit": amount.shown(amount.lending_limit),
        "shared" if row.kind == "Cohort" else "potential": amount.shown(amount.most),
        "used": amount.shown(amount.used),
    }
