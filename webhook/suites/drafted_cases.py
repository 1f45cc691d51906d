"""Drafts cases of a suite from objects and reviews. The cases expect the current answers of the suite's policies."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from webhook.admission import fixtures
from webhook.admission.phases import PhasesOutcome
from webhook.apimachinery.attributes import JSON
from webhook.apimachinery.paths import get
from webhook.errors import InputError, InputProblem
from webhook.policy.load import Options
from webhook.suites.case import answer_of_case
from webhook.suites.expectation import audited_texts, message_texts, published_annotations
from webhook.suites.files import Suite
from webhook.suites.own import policies_of_suite, request_of_case
from webhook.suites.suite_model import CaseModel, SuiteModel
from webhook.yamltext import yamlfile

_BLOCK_LIST: Final = "write `cases:` with each case below it, beginning with `- name:`"


def suite_with_drafted_cases(
    suite: Suite, text: str, values: Iterable[JSON], options: Options
) -> tuple[str, list[str]]:
    """Return the text of a suite with a new case for each value, and the names of the new cases.

    `text` is the content of the suite's file. A value is an object, a request or an AdmissionReview.

    Raises:
        InputError: the policies or the suite cannot be read, or no answer can be given for a value.
    """
    (document,) = yamlfile.load(text, str(suite.file))
    before = SuiteModel.model_validate(document.value).cases
    names = {each.get("name") for each in before if isinstance(each, dict)}
    drafted = _drafted_cases(suite, values, {}, names, options)
    indent = " " * (document.position(("cases", 0))[1] - 3)
    added = "".join(f"{indent}{line}\n" for line in yamlfile.dump(drafted).splitlines())
    new_text = f"{text.rstrip()}\n{added}"
    if not _has_cases(new_text, [*before, *drafted]):
        message = f"no case can be added to this list: {_BLOCK_LIST}"
        raise InputError(InputProblem(message=message, file=str(suite.file)))
    return new_text, [case["name"] for case in drafted]


def text_of_new_suite(
    folder: Path, values: Iterable[JSON], situation: Mapping[str, JSON], options: Options
) -> tuple[str, list[str]]:
    """Return the text of a suite with a case for each value, and the names of the cases. The folder has the policies.

    `situation` has fields of each case, such as `context`. Fields with their default are left out.

    Raises:
        InputError: the policies cannot be read, or no answer can be given for a value.
    """
    defaults = {each.alias: each.get_default() for each in CaseModel.model_fields.values()}
    not_default = {name: value for name, value in situation.items() if value != defaults[name]}
    suite = Suite(file=folder / "suite.yaml", root=folder)
    drafted = _drafted_cases(suite, values, not_default, set(), options)
    return yamlfile.dump({"cases": drafted}), [case["name"] for case in drafted]


def _drafted_cases(
    suite: Suite, values: Iterable[JSON], situation: Mapping[str, JSON], names: set[Any], options: Options
) -> list[dict[str, JSON]]:
    """Return a case for each value, and add the names of the cases to `names`."""
    policies = policies_of_suite(suite, options)
    drafted = []
    for value in values:
        draft = {"name": "draft", "input": value, **situation, "expect": {"allowed": True}}
        outcome = answer_of_case(request_of_case(CaseModel.model_validate(draft), suite, lambda: policies, options))
        name = _new_name(value, outcome, names)
        drafted.append({"name": name, "input": value, **situation, "expect": dict(_expectation(outcome))})
        names.add(name)
    return drafted


def _has_cases(text: str, cases: list[JSON]) -> bool:
    """Return whether the text of a suite has all cases. New cases are lost if the list is in brackets."""
    try:
        documents = yamlfile.load(text)
    except InputError:
        return False
    return [get(each.value, ("cases",), None) for each in documents] == [cases]


def _new_name(value: JSON, outcome: PhasesOutcome, names: set[Any]) -> str:
    """Return a name that no other case of the suite has."""
    obj = get(value, ("request", "object"), None) or get(value, ("request", "oldObject"), None) or value
    obj = get(obj, ("object",), obj) if fixtures.is_request(value) else obj
    kind, name = get(obj, ("kind",), "object"), get(obj, ("metadata", "name"), "")
    outcome_text = (
        "is denied" if not outcome.verdict.allowed else "is changed" if outcome.verdict.patch else "is allowed"
    )
    base_name = " ".join(filter(None, (str(kind), str(name or ""), outcome_text)))
    unused_name, number = base_name, 1
    while unused_name in names:
        number += 1
        unused_name = f"{base_name} ({number})"
    return unused_name


def _expectation(outcome: PhasesOutcome) -> Iterator[tuple[str, JSON]]:
    verdict = outcome.verdict
    yield "allowed", verdict.allowed
    denials = [decision.message for _, decision in outcome.decisions if decision.action == "deny"]
    if verdict.status is not None and not verdict.allowed:
        yield "message", next((text for text in denials if text in verdict.status.message), verdict.status.message)
    texts = {
        "warnings": verdict.warnings,
        "audited": audited_texts(outcome),
        "unknown": message_texts(outcome, "unknown"),
        "errors": message_texts(outcome, "error"),
        "patch": verdict.patch,
    }
    yield from ((field, list(value)) for field, value in texts.items() if value)
    if published := published_annotations(outcome):
        yield "auditAnnotations", dict(published)
    if not outcome.decisions:
        yield "matched", False
