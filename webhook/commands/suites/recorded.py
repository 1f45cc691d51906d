"""`*cases.jsonl`: suites of other projects and answers of a real API server, one case per line.

A line has policies, bindings, params, namespaceObject, review and expect. Expected messages and annotations of
API-server answers are the server's own text, so policies are asked to speak as it does.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from webhook.admission.decode import decode_review
from webhook.commands.suites.case import Case, Request, compiled
from webhook.commands.suites.expectation import Expectation
from webhook.errors import CallError, InputError, Problem
from webhook.policy.load import Options


def read(file: Path, how: Options) -> Iterator[Case]:
    """The cases of one file.

    Raises:
        InputError: a line that is no case.
    """
    for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
        if line.strip():
            yield _case(_row(line, file, number), file, how)


def _row(line: str, file: Path, number: int) -> Mapping[str, Any]:
    try:
        row = json.loads(line)
        lacking = [key for key in ("id", "policies", "expect") if key not in row.keys()]  # noqa: SIM118 - a dict only
    except (ValueError, AttributeError):
        raise InputError(
            Problem(message="not a JSON object; expected one case per line", file=str(file), line=number)
        ) from None
    if lacking:
        raise InputError(Problem(message=f"a case needs {', '.join(lacking)}", file=str(file), line=number))
    return dict(row)


def _case(row: Mapping[str, Any], file: Path, how: Options) -> Case:
    expect = row["expect"]
    return Case(
        id=str(row["id"]),
        suite=str(file),
        request=partial(_request, row, how),
        judge=_expectation(expect).judge,
        refusal=_refusal(expect),
    )


def _refusal(expect: Mapping[str, Any]) -> str | None:
    """What the API server says after naming the policy; its prefix names the kind twice."""
    refused = expect.get("policyRefused")
    return None if refused is None else str(refused).partition(" is invalid: ")[2] or str(refused)


def _expectation(expect: Mapping[str, Any]) -> Expectation:
    is_denied = expect.get("allowed") is False
    return Expectation(
        allowed=expect.get("allowed"),
        code=expect.get("code") if is_denied else None,
        reason=expect.get("reason") if is_denied else None,
        message=expect.get("message") if is_denied else None,
        warnings=expect.get("warnings"),
        warns=expect.get("warn"),
        audit_annotations=expect.get("auditAnnotations"),
        patched_object=expect.get("patchedObject"),
    )


def _request(row: Mapping[str, Any], how: Options) -> Request:
    policies = compiled([*row["policies"], *row.get("bindings", ())], how)
    review = row.get("review")
    if review is None:
        raise InputError(Problem(message="the case has no review to be answered"))
    try:
        attributes = decode_review(review)
    except CallError as error:
        raise InputError(Problem(message=error.message)) from None
    namespace = row.get("namespaceObject")
    return Request(
        attributes=attributes,
        policies=policies,
        phase="mutate" if policies.mutating else "validate",
        context=(*row.get("params", ()), *((namespace,) if namespace else ())),
        authorizer=row.get("authorizer"),
        api_server_text=True,
    )
