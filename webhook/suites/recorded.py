"""Reads `*cases.jsonl`: suites of other projects and answers of a real API server; cases.py has their meaning."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from webhook.apimachinery.attributes import JSON
from webhook.errors import InputError, InputProblem
from webhook.policy.load import Options
from webhook.suites import cases
from webhook.suites.case import Case, Entry, UnreadableCase
from webhook.suites.files import Suite
from webhook.yamltext import yamlfile

_NEEDED = ("id", "policies", "expect")


def read_recorded_file(suite: Suite, how: Options) -> Iterator[Entry]:
    """Yield the cases of one file; a line that is not a case does not affect the others."""
    file = suite.file
    for number, line in enumerate(yamlfile.text(suite.input).split("\n"), 1):
        if not line.strip():
            continue
        try:
            value = _value(line, file, number)
        except InputError as error:
            yield UnreadableCase(id=f"{file.name}:{number}", suite=str(file), problems=error.problems)
            continue
        mismatches = partial(cases.mismatches, cases.RecordedCase(value), how)
        yield Case(id=str(value["id"]), suite=str(file), mismatches=mismatches, line=number)


def _value(line: str, file: Path, number: int) -> JSON:
    try:
        value = json.loads(line)
    except ValueError:
        value = None
    if not isinstance(value, dict):
        text = "not a JSON object; expected one case per line"
        raise InputError(InputProblem(message=text, file=str(file), line=number))
    if lacking := [key for key in _NEEDED if key not in value]:
        raise InputError(InputProblem(message=f"a case needs {', '.join(lacking)}", file=str(file), line=number))
    return value
