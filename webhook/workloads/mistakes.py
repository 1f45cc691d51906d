"""The mistakes in rows of the workload table, each with its file, line and column.

Two rounds: the shape, found by pydantic while a file is read, and the meaning, which no type can check: names that no
API server has, paths that lead nowhere, rows that occur twice.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from webhook.apimachinery.paths import FieldPath
from webhook.errors import InputProblem
from webhook.text import model_errors
from webhook.workloads.rows import Factor, ObjectRule, PodSetRule, ResourceRule, Row
from webhook.yamltext.yamlfile import Document

_WHERE: Final = "the top of webhook/workloads/kinds.yaml says what a row is"
_STEP: Final = r"[A-Za-z_][\w-]*"
_FIELD: Final = re.compile(rf"{_STEP}(\.{_STEP})*")
_TEMPLATE: Final = re.compile(rf"({_STEP}(\[\]|\{{\}})*(\.{_STEP}(\[\]|\{{\}})*)*)?")
_NAMES: Final = {
    "kind": (re.compile(r"[A-Z][A-Za-z0-9]*"), "a kind such as `PyTorchJob`"),
    "resource": (re.compile(r"[a-z][a-z0-9-]*"), "the plural in lower case, such as `pytorchjobs`"),
    "group": (re.compile(r"|[a-z0-9]([a-z0-9.-]*[a-z0-9])?"), "a group such as `kubeflow.org`, without a version"),
}


def shape_mistakes(document: Document, errors: Sequence[Mapping[str, Any]]) -> list[InputProblem]:
    """Return the mistakes that pydantic lists for a document."""
    return [document.problem(tuple(mistake["loc"]), _describe_shape_mistake(mistake)) for mistake in errors]


def _describe_shape_mistake(mistake: Mapping[str, Any]) -> str:
    if model_errors.is_unknown_field_error(mistake):
        return f"is not a field of a workload row; {_WHERE}"
    said = model_errors.describe_model_error(mistake)
    return said if mistake["loc"] else f"{said.replace('a list', 'a list of rows', 1)}; {_WHERE}"


def row_mistakes(document: Document, rows: Sequence[Row], seen: set[tuple[str, str]]) -> list[InputProblem]:
    """Return what rows of the right shape get wrong; the kinds so far of the same file are in `seen`, which this adds
    to.
    """
    problems = []
    for index, row in enumerate(rows):
        problems += [document.problem((index, *place), said) for place, said in _mistakes_of_row(row)]
        if (row.group, row.kind) in seen:
            said = f"`{row.kind}` of group `{row.group}` occurs twice in this file: keep one row"
            problems.append(document.problem((index,), said))
        seen.add((row.group, row.kind))
    return problems


def _mistakes_of_row(row: Row) -> Iterator[tuple[FieldPath, str]]:
    for name, (pattern, expected) in _NAMES.items():
        if not pattern.fullmatch(text := getattr(row, name)):
            yield (name,), f"expected {expected}, found `{text}`"
    if not row.versions:
        yield ("versions",), "expected one version or more, the preferred one first"
    yield from _check_field_paths(("suspend",), row.suspend)
    for index, rule in enumerate(row.podSets):
        for place, said in _mistakes_of_podset_rule(rule):
            yield ("podSets", index, *place), said
    for index, fragment in enumerate(row.fragments):
        yield from _check_template_path(("fragments", index, "template"), fragment.template)
    for index, resources in enumerate(row.resources):
        for place, said in _mistakes_of_resource_rule(resources):
            yield ("resources", index, *place), said
    for index, embedded in enumerate(row.objects):
        for place, said in _mistakes_of_object_rule(embedded):
            yield ("objects", index, *place), said


def _mistakes_of_resource_rule(rule: ResourceRule) -> Iterator[tuple[FieldPath, str]]:
    yield from _check_template_path(("path",), rule.path)
    for name in ("when", "unless"):
        yield from _check_field_paths((name,), getattr(rule, name))
    for index, factor in enumerate(rule.count or ()):
        for place, said in _mistakes_of_factor(factor):
            yield ("count", index, *place), said


def _mistakes_of_object_rule(rule: ObjectRule) -> Iterator[tuple[FieldPath, str]]:
    yield from _check_template_path(("template",), rule.template)
    pattern, expected = _NAMES["kind"]
    if not pattern.fullmatch(rule.kind):
        yield ("kind",), f"expected {expected}, found `{rule.kind}`"
    for index, factor in enumerate(rule.groups):
        for place, said in _mistakes_of_factor(factor):
            yield ("groups", index, *place), said


def _mistakes_of_podset_rule(rule: PodSetRule) -> Iterator[tuple[FieldPath, str]]:
    yield from _check_template_path(("template",), rule.template)
    for name in ("named", "when", "unless"):
        yield from _check_field_paths((name,), getattr(rule, name))
    for name, factors in (("count", rule.count or ()), ("groups", rule.groups)):
        for index, factor in enumerate(factors):
            for place, said in _mistakes_of_factor(factor):
                yield (name, index, *place), said


def _mistakes_of_factor(factor: Factor) -> Iterator[tuple[FieldPath, str]]:
    if bool(factor.path) == bool(factor.least):
        yield (), "expected a field, or `path`, or `least` with several"
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
