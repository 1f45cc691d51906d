"""The workload table: rows of kinds.yaml and of `--workloads` files, checked and indexed by group and kind.

A row of a site's own file replaces the shipped row of the same group and kind, whole. Knows no objects: podsets.py
applies a row to one.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from webhook.apimachinery.attributes import JSON, parse_group_kind
from webhook.errors import InputError, InputProblem, UnreadPartError
from webhook.workloads import mistakes
from webhook.workloads.rows import Row
from webhook.yamltext import yamlfile
from webhook.yamltext.unread import refuse_unread_part

_POD_GROUP = ("scheduling.volcano.sh", "PodGroup")
"""Volcano creates a PodGroup for pods, and operators for their pods, with the owner of the pods:
pkg/controllers/podgroup."""
SHIPPED = Path(__file__).with_name("kinds.yaml")

_FACTORS = {"count", "groups"}


@dataclass(frozen=True, slots=True)
class Table:
    """All rows, in the order of their files; immutable. `holders` are the rows of objects that hold other objects."""

    rows: tuple[Row, ...]
    holders: tuple[Row, ...] = field(init=False, repr=False, compare=False)
    _index: Mapping[tuple[str, str], Row] = field(init=False, repr=False, compare=False)
    _made: Mapping[tuple[str, str], frozenset[tuple[str, str]]] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "holders", tuple(row for row in self.rows if row.holds_objects))
        object.__setattr__(self, "_index", {(row.group, row.kind): row for row in self.rows})
        between = [(each.kind, each.makes) for row in self.rows for each in row.between]
        made = {parse_group_kind(kind): frozenset(map(parse_group_kind, makes)) for kind, makes in between}
        for row in self.rows:
            grouped = (_POD_GROUP,) if row.makes and (row.podSets or row.fragments) else ()
            made[row.group, row.kind] = frozenset((*map(parse_group_kind, row.makes), *grouped))
        object.__setattr__(self, "_made", made)

    def row(self, group: str, kind: str) -> Row | None:
        """Return the row of a kind in any version, or None: the table keys are group and kind."""
        return self._index.get((group, kind))

    def does_kind_make(self, owner: tuple[str, str], made: tuple[str, str]) -> bool:
        """Return whether the controller of one group and kind makes objects of another, which it then owns."""
        return made in self._made.get(owner, ())


def load_table(extra: Sequence[Path] = ()) -> Table:
    """Read the shipped table and the rows of a site's own files; a later file's row of a kind replaces an earlier one.

    Raises:
        InputError: every problem of every file, each with file, line and column.
    """
    rows: dict[tuple[str, str], Row] = {}
    problems: list[InputProblem] = []
    for path in (SHIPPED, *extra):
        seen: set[tuple[str, str]] = set()
        for document in yamlfile.read(path):
            listed, wrong = _rows(document)
            problems += wrong or mistakes.row_mistakes(document, listed, seen)
            rows.update({(row.group, row.kind): row for row in listed})
    if problems:
        raise InputError(*problems)
    table = Table(tuple(rows.values()))
    if dangling := [InputProblem(message=text, path=path) for path, text in _dangling(table)]:
        raise InputError(*dangling)
    return table


def _rows(document: yamlfile.Document) -> tuple[tuple[Row, ...], list[InputProblem]]:
    """Return the rows of one document, or none and what is wrong with their shape."""
    from pydantic import TypeAdapter, ValidationError

    try:
        text = json.dumps(_with_factors_as_maps(document.value), default=refuse_unread_part)
        return TypeAdapter(tuple[Row, ...]).validate_json(text), []
    except UnreadPartError as error:
        return (), [document.problem((), str(error))]
    except ValidationError as error:
        return (), mistakes.shape_mistakes(document, error.errors(include_url=False))


def _with_factors_as_maps(value: JSON) -> JSON:
    """Return a document in which every factor of `count` and `groups` is a map."""
    if isinstance(value, list):
        return [_with_factors_as_maps(each) for each in value]
    if not isinstance(value, dict):
        return value
    spelled = {key: _with_factors_as_maps(each) for key, each in value.items()}
    for key in _FACTORS & spelled.keys():
        if isinstance(factors := spelled[key], list):
            spelled[key] = [{"path": each} if isinstance(each, str) else each for each in factors]
    return spelled


def _dangling(table: Table) -> Iterator[tuple[str, str]]:
    for row in table.rows:
        references = [("references", kind) for reference in row.references for kind in reference.kinds]
        for place, kind in [*references, *(("objects", rule.kind) for rule in row.objects)]:
            if table.row(row.group, kind) is None:
                yield f"{row.kind}.{place}", f"kind `{kind}` of group `{row.group}` has no row: add one"
