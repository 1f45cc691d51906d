"""Runs expressions with known answers, and reports other results.

Each line is a JSON object with `expr` and `bindings` {name: typed value}. The expected outcome is `expect` (a typed
value), `deduced_type` (only the type is compared), or `expect_error` with `error_phase` (compile or runtime). Optional
keys: id, runtime_cost, output_type, type_env {name: type}, container, disable_check, disable_macros, check_only,
version, exact (the text of the error must be equal).

Rows with a source_file below `google/cel-spec` have all functions of cel-go. Other rows have the functions of
Kubernetes 1.34, and `self` and the bindings are dyn. Errors are compared by phase. A row that cannot be read, or that
breaks the engine, counts as a failure.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from msgspec import Struct, field

from webhook.apimachinery.attributes import JSON
from webhook.cel import typed_json
from webhook.cel.check.inference import type_text
from webhook.cel.cost import CostMeter
from webhook.cel.environment import Environment
from webhook.cel.program import Engine, Program
from webhook.cel.types import DYN, Type
from webhook.errors import CompileError, EvaluationError, InputError, InputProblem
from webhook.yamltext import yamlfile

_KUBERNETES = Environment(version=(1, 34), mutation=True)
_CEL = Environment(
    version=(1, 37),
    mutation=False,
    extensions=frozenset({"bindings", "encoders", "format", "math"}),
    escaped_fields=True,
    homogeneous=False,
    planned=False,
)
_NO_ENVIRONMENT: Mapping[str, Type] = {"self": DYN}


class RowOutcome(Struct, frozen=True, kw_only=True):
    """The expected and the actual outcome of one row, as text; `cost_equal` is None for a row without runtime_cost."""

    id: str
    expression: str
    expected: str
    actual: str
    passed: bool
    cost_equal: bool | None = None


class OutcomeCounters(Struct):
    """Totals of the outcomes of a corpus."""

    total: int = 0
    passed: int = 0
    failed: list[RowOutcome] = field(default_factory=list)
    cost_equal: int = 0
    cost_rows: int = 0

    def count_outcome(self, outcome: RowOutcome) -> None:
        self.total += 1
        self.passed += outcome.passed
        if not outcome.passed:
            self.failed.append(outcome)
        self.cost_rows += outcome.cost_equal is not None
        self.cost_equal += outcome.cost_equal is True

    def to_json(self) -> JSON:
        """Return the totals as `-o json` prints them."""
        return {
            "total": self.total,
            "passed": self.passed,
            "failed": [outcome.id for outcome in self.failed],
            "cost_equal": self.cost_equal,
            "cost_rows": self.cost_rows,
        }


def read_rows(file: Path) -> Iterator[JSON]:
    """Yield the rows of a corpus file. A row without an id gets the id `file:line`.

    Raises:
        InputError: the file cannot be read, or a line is not a row.
    """
    for number, line in enumerate(yamlfile.text(file).split("\n"), 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except ValueError as error:
            message = f"not JSON: {getattr(error, 'msg', str(error)).lower()}"
            raise InputError(
                InputProblem(message=message, file=str(file), line=number, column=getattr(error, "colno", 0))
            ) from None
        if not isinstance(row, dict) or not isinstance(row.get("expr"), str):
            message = "not a row of a corpus: expected an object with `expr`, a string"
            raise InputError(InputProblem(message=message, file=str(file), line=number))
        yield {"id": f"{file.stem}:{number}", **row}


def evaluate_rows(rows: Iterable[JSON], engine: Engine) -> Iterator[RowOutcome]:
    """Evaluate rows, and yield an outcome for each row, also for a row that cannot run."""
    for row in rows:
        try:
            yield _evaluate_row(row, engine)
        except Exception as error:  # noqa: BLE001 - other rows must run
            expected = json.dumps({key: value for key, value in row.items() if key.startswith("expect")}, default=str)
            text = f"cannot be run: {type(error).__name__}: {error}"
            yield RowOutcome(id=str(row["id"]), expression=row["expr"], expected=expected, actual=text, passed=False)


def environment_of_row(row: JSON) -> Environment:
    """Return the environment for a row's expression."""
    base = _CEL if str(row.get("source_file", "")).startswith("google/cel-spec") else _KUBERNETES
    declared = {name: typed_json.parse_type(text) for name, text in row.get("type_env", {}).items()}
    bound = {name: DYN for name in row.get("bindings", {}) if name not in declared}
    assumed = {} if base is _CEL else _NO_ENVIRONMENT
    return Environment(
        version=_parse_version(row.get("version"), base),
        variables={**assumed, **bound, **declared},
        container=row.get("container", ""),
        mutation=base.mutation,
        extensions=base.extensions,
        escaped_fields=base.escaped_fields,
        homogeneous=base.homogeneous,
        planned=base.planned,
        macros=not row.get("disable_macros", False),
        strict=not row.get("disable_check", False),
    )


def _parse_version(text: str | None, base: Environment) -> tuple[int, int]:
    if text is None:
        return base.version
    major, _, minor = text.partition(".")
    return int(major), int(minor)


def _evaluate_row(row: JSON, engine: Engine) -> RowOutcome:
    activation = {name: typed_json.decode_value(value) for name, value in row.get("bindings", {}).items()}
    meter = CostMeter()
    try:
        program = engine.compile(row["expr"], environment_of_row(row))
    except CompileError as error:
        return _compare_with_expected(row, "compile", str(error))
    if row.get("check_only") or ("expect" not in row and "deduced_type" in row):
        return _compare_with_expected(row, "type", type_text(program.result))
    try:
        value = program.evaluate(activation, meter)
    except EvaluationError as error:
        return _compare_with_expected(row, "runtime", str(error), program, meter.spent)
    return _compare_with_expected(
        row, "value", json.dumps(typed_json.encode_value(value), sort_keys=True), program, meter.spent
    )


def _compare_with_expected(
    row: JSON, phase: str, text: str, program: Program | None = None, spent: int | None = None
) -> RowOutcome:
    if "expect_error" in row:
        expected_phase = row.get("error_phase", "")
        expected = f"{expected_phase} error: {row['expect_error']}".lstrip()
        passed = phase in ("compile", "runtime") and expected_phase in ("", phase)
        passed = passed and (not row.get("exact") or text == row["expect_error"])
    elif "expect" in row and not row.get("check_only"):
        expected = json.dumps(typed_json.canonical_json(row["expect"]), sort_keys=True)
        passed = phase == "value" and text == expected
    else:
        expected = row["deduced_type"]
        passed = phase == "type" and text == expected
    if passed and program is not None and "output_type" in row and str(program.result) != row["output_type"]:
        passed, expected, text = False, f"type {row['output_type']}", f"type {program.result}"
    cost = row.get("runtime_cost")
    return RowOutcome(
        id=row["id"],
        expression=row["expr"],
        expected=expected,
        actual=text if phase in ("value", "type") else f"{phase} error: {text}",
        passed=passed,
        cost_equal=None if cost is None else cost == spent,
    )
