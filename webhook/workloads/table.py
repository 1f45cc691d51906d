"""Reads the workload table: the rows of kinds.yaml and of `--workloads` files, checked and indexed by group and kind.

A row in a `--workloads` file replaces the whole shipped row of the same group and kind. podsets.py applies rows to
objects.

Each mistake is reported with its file, line and column. pydantic finds wrong types and fields while a file is read.
This module then finds other mistakes: names that no API server has, wrong paths, rows that occur twice.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Final

import msgspec

from webhook.apimachinery.attributes import JSON, parse_group_kind
from webhook.apimachinery.paths import FieldPath
from webhook.errors import InputError, InputProblem, UnreadPartError
from webhook.text import model_errors
from webhook.workloads.rows import CompletionRule, Factor, ObjectRule, PodSetRule, ResourceRule, Row
from webhook.yamltext import yamlfile
from webhook.yamltext.unread import refuse_unread_part
from webhook.yamltext.yamlfile import Document

_WHERE: Final = "the top of webhook/workloads/kinds.yaml explains the fields of a row"
_STEP: Final = r"[A-Za-z_][\w-]*"
_FIELD: Final = re.compile(rf"{_STEP}(\.{_STEP})*")
_TEMPLATE: Final = re.compile(rf"({_STEP}(\[\]|\{{\}})*(\.{_STEP}(\[\]|\{{\}})*)*)?")
_NAMES: Final = {
    "kind": (re.compile(r"[A-Z][A-Za-z0-9]*"), "a kind such as `PyTorchJob`"),
    "resource": (re.compile(r"[a-z][a-z0-9-]*"), "the plural in lower case, such as `pytorchjobs`"),
    "group": (re.compile(r"|[a-z0-9]([a-z0-9.-]*[a-z0-9])?"), "a group such as `kubeflow.org`, without a version"),
}
_POD_GROUP = ("scheduling.volcano.sh", "PodGroup")
"""For pods, Volcano creates PodGroups that have the owner of the pods (pkg/controllers/podgroup). Operators also create
PodGroups for their pods.
"""
SHIPPED = Path(__file__).with_name("kinds.yaml")

_FACTORS = {"count", "groups"}


@dataclass(frozen=True, slots=True)
class Table:
    """All rows, in the order of their files; immutable. `holders` are the rows of kinds that contain other objects."""

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
        """Return the row of a kind in any version; None without a row. The keys of the table are group and kind."""
        return self._index.get((group, kind))

    def does_kind_make(self, owner: tuple[str, str], made: tuple[str, str]) -> bool:
        """Return whether the controller of the owner's kind creates, and then owns, objects of the other kind."""
        return made in self._made.get(owner, ())


def load_table(extra: Sequence[Path] = ()) -> Table:
    """Read the shipped table and the rows of other files. A later row of a kind replaces an earlier row.

    Raises:
        InputError: the files have mistakes. The error lists all mistakes, with file, line and column.
    """
    return _read_table(SHIPPED, *extra) if extra else _shipped_table()


@cache
def _shipped_table() -> Table:
    return _read_table(SHIPPED)


def _read_table(*files: Path) -> Table:
    rows: dict[tuple[str, str], Row] = {}
    problems: list[InputProblem] = []
    for path in files:
        seen: set[tuple[str, str]] = set()
        for document in yamlfile.read(path):
            listed, wrong = _shipped_rows(document) if path is SHIPPED else checked_rows(document)
            problems += wrong or row_mistakes(document, listed, seen)
            rows.update({(row.group, row.kind): row for row in listed})
    if problems:
        raise InputError(*problems)
    table = Table(tuple(rows.values()))
    if unknown := [InputProblem(message=text, path=path) for path, text in _kinds_without_row(table)]:
        raise InputError(*unknown)
    return table


def _shipped_rows(document: yamlfile.Document) -> tuple[tuple[Row, ...], list[InputProblem]]:
    """Return the result of `checked_rows` for the shipped table. Without pydantic, a short command is a tenth faster.

    msgspec ignores unknown fields, so a test searches the shipped table for unknown fields.
    """
    try:
        return msgspec.convert(_with_factors_as_maps(document.value), tuple[Row, ...]), []
    except msgspec.ValidationError:
        return checked_rows(document)


def checked_rows(document: yamlfile.Document) -> tuple[tuple[Row, ...], list[InputProblem]]:
    """Return the rows of a document without mistakes, or no rows and the mistakes in types and fields."""
    from pydantic import TypeAdapter, ValidationError

    try:
        text = json.dumps(_with_factors_as_maps(document.value), default=refuse_unread_part)
        return TypeAdapter(tuple[Row, ...]).validate_json(text), []
    except UnreadPartError as error:
        return (), [document.problem((), str(error))]
    except ValidationError as error:
        return (), shape_mistakes(document, error.errors(include_url=False))


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


def _kinds_without_row(table: Table) -> Iterator[tuple[str, str]]:
    for row in table.rows:
        references = [("references", kind) for reference in row.references for kind in reference.kinds]
        for place, kind in [*references, *(("objects", rule.kind) for rule in row.objects)]:
            if table.row(row.group, kind) is None:
                yield f"{row.kind}.{place}", f"kind `{kind}` of group `{row.group}` has no row: add one"


def shape_mistakes(document: Document, errors: Sequence[Mapping[str, Any]]) -> list[InputProblem]:
    """Return the mistakes that pydantic lists for a document."""
    return [document.problem(tuple(mistake["loc"]), _describe_shape_mistake(mistake)) for mistake in errors]


def _describe_shape_mistake(mistake: Mapping[str, Any]) -> str:
    if model_errors.is_unknown_field_error(mistake):
        return f"is not a field of a workload row; {_WHERE}"
    text = model_errors.describe_model_error(mistake)
    return text if mistake["loc"] else f"{text.replace('a list', 'a list of rows', 1)}; {_WHERE}"


def row_mistakes(document: Document, rows: Sequence[Row], seen: set[tuple[str, str]]) -> list[InputProblem]:
    """Return the mistakes of rows with values of the right types. `seen` has the kinds of the file so far; new kinds
    are added.
    """
    problems = []
    for index, row in enumerate(rows):
        problems += [document.problem((index, *place), text) for place, text in _mistakes_of_row(row)]
        if (row.group, row.kind) in seen:
            text = f"`{row.kind}` of group `{row.group}` occurs twice in this file: keep one row"
            problems.append(document.problem((index,), text))
        seen.add((row.group, row.kind))
    return problems


def _mistakes_of_row(row: Row) -> Iterator[tuple[FieldPath, str]]:
    for name, (pattern, expected) in _NAMES.items():
        if not pattern.fullmatch(text := getattr(row, name)):
            yield (name,), f"expected {expected}, found `{text}`"
    if not row.versions:
        yield ("versions",), "expected one version or more, the preferred version first"
    yield from _check_field_paths(("suspend",), row.suspend)
    for index, rule in enumerate(row.podSets):
        for place, text in _mistakes_of_podset_rule(rule):
            yield ("podSets", index, *place), text
        if rule.completion != CompletionRule() and row.pods != "parts":
            yield ("podSets", index, "completion"), "is only for a kind with `pods: parts`"
    for index, fragment in enumerate(row.fragments):
        yield from _check_template_path(("fragments", index, "template"), fragment.template)
    for index, resources in enumerate(row.resources):
        for place, text in _mistakes_of_resource_rule(resources):
            yield ("resources", index, *place), text
    for index, embedded in enumerate(row.objects):
        for place, text in _mistakes_of_object_rule(embedded):
            yield ("objects", index, *place), text


def _mistakes_of_resource_rule(rule: ResourceRule) -> Iterator[tuple[FieldPath, str]]:
    yield from _check_template_path(("path",), rule.path)
    for name in ("when", "unless"):
        yield from _check_field_paths((name,), getattr(rule, name))
    for index, factor in enumerate(rule.count or ()):
        for place, text in _mistakes_of_factor(factor):
            yield ("count", index, *place), text


def _mistakes_of_object_rule(rule: ObjectRule) -> Iterator[tuple[FieldPath, str]]:
    yield from _check_template_path(("template",), rule.template)
    pattern, expected = _NAMES["kind"]
    if not pattern.fullmatch(rule.kind):
        yield ("kind",), f"expected {expected}, found `{rule.kind}`"
    for index, factor in enumerate(rule.groups):
        for place, text in _mistakes_of_factor(factor):
            yield ("groups", index, *place), text


def _mistakes_of_podset_rule(rule: PodSetRule) -> Iterator[tuple[FieldPath, str]]:
    yield from _check_template_path(("template",), rule.template)
    for name in ("named", "when", "unless"):
        yield from _check_field_paths((name,), getattr(rule, name))
    yield from _check_field_paths(("completion", "device"), rule.completion.device)
    for name, factors in (("count", rule.count or ()), ("groups", rule.groups)):
        for index, factor in enumerate(factors):
            for place, text in _mistakes_of_factor(factor):
                yield (name, index, *place), text


def _mistakes_of_factor(factor: Factor) -> Iterator[tuple[FieldPath, str]]:
    if bool(factor.path) == bool(factor.least):
        yield (), "expected a field, a `path`, or `least` with several fields"
    for name in ("path", "atLeast", "atMost"):
        yield from _check_field_paths((name,), getattr(factor, name))
    yield from _check_field_paths(("least",), *factor.least)


def _check_template_path(place: FieldPath, path: str) -> Iterator[tuple[FieldPath, str]]:
    if not _TEMPLATE.fullmatch(path):
        expected = "expected a path such as `spec.template`, `spec.tasks[].template` or `spec.roles{}.template`"
        yield place, f"{expected}, found `{path}`"


def _check_field_paths(place: FieldPath, *texts: str) -> Iterator[tuple[FieldPath, str]]:
    for path in texts:
        if path and not _FIELD.fullmatch(path):
            yield place, f"expected the path of a field such as `spec.replicas`, found `{path}`"
