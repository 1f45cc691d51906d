"""Reads gator `Suite` files (test.gatekeeper.sh/v1alpha1), for templates with CEL code.

A ConstraintTemplate with engine K8sNativeValidation and its constraint are evaluated as the native policy of
`claimgate policies convert` (open-policy-agent/gatekeeper dd8507eb, pkg/gator/verify). A failed evaluation counts as a
violation if the failurePolicy is Fail. `template` may also name a ValidatingAdmissionPolicy, and `constraint` its
binding. Cases of Rego are skipped.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from msgspec import structs

from webhook.admission import fixtures
from webhook.admission.phases import PhasesOutcome
from webhook.apimachinery.attributes import JSON, Attributes, UserInfo
from webhook.apimachinery.paths import FieldPath, get
from webhook.cel.library.patterns import compile_policy_pattern
from webhook.conversion.convert import reason_as_text
from webhook.conversion.gatekeeper import EVERY_OPERATION, non_cel_engines, policy_and_binding
from webhook.errors import CallError, ClaimgateError, InputError, InputProblem, NotConverted
from webhook.manifests.models import VALIDATING
from webhook.policy.load import Options
from webhook.suites.case import (
    Case,
    Entry,
    Request,
    SkippedCase,
    UnreadableCase,
    answer_of_case,
    policies_of_case,
    unreadable_case,
)
from webhook.suites.files import Suite
from webhook.text.terminal import one_line
from webhook.text.wording import shown
from webhook.yamltext import yamlfile


def read_gator_cases(suite: Suite, documents: Sequence[yamlfile.Document], options: Options) -> Iterator[Entry]:
    """Yield the cases of one file.

    Raises:
        InputError: a document is not a suite.
    """
    for document in documents:
        value = document.value
        if not isinstance(value, dict) or value.get("kind") != "Suite":
            line = document.position()[0]
            raise InputError(InputProblem(message="expected kind `Suite`", file=str(suite.file), line=line))
        for path, test in _entries_with_paths(value, "tests", ()):
            if isinstance(test, dict):
                yield from _cases(
                    {**test, "skip": value.get("skip") or test.get("skip")}, path, document, suite, options
                )
            else:
                yield _unreadable_non_map(document, path, test)


def _entries_with_paths(value: Mapping[str, Any], key: str, path: FieldPath) -> Iterator[tuple[FieldPath, JSON]]:
    """Yield the entries of a list with their paths. A value that is not a list counts as a list with this one entry."""
    entries = value.get(key) or ()
    if not isinstance(entries, list | tuple):
        yield (*path, key), entries
        return
    yield from (((*path, key, index), entry) for index, entry in enumerate(entries))


def _unreadable_non_map(document: yamlfile.Document, path: FieldPath, value: JSON) -> UnreadableCase:
    return unreadable_case(document, path, f"expected a map, found `{shown(value)}`")


def _cases(
    test: Mapping[str, Any], path: FieldPath, document: yamlfile.Document, suite: Suite, options: Options
) -> Iterator[Entry]:
    prefix, file = f"{suite.folder.name}/{test.get('name', '')}", str(suite.file)
    reason_of_test = _reason_of_skip(test.get("skip")) or _reason_not_evaluated(test, suite)
    if test.get("invalid"):
        name = f"{prefix}/invalid"
        refused = Case(id=name, suite=file, mismatches=partial(_check_invalid_is_refused, test, suite, options))
        yield SkippedCase(id=name, suite=file, why=reason_of_test) if reason_of_test else refused
    for at, case in _entries_with_paths(test, "cases", path):
        if not isinstance(case, dict):
            yield _unreadable_non_map(document, at, case)
            continue
        name, reason = f"{prefix}/{case.get('name', '')}", reason_of_test or _reason_of_skip(case.get("skip"))
        entry = SkippedCase(id=name, suite=file, why=reason) if reason else _case(name, test, case, suite, options)
        yield structs.replace(entry, line=document.position(at)[0])


def _reason_of_skip(skip: Any) -> str:
    """Return why the suite skips a case, or "". gator accepts any text as the reason."""
    if not skip:
        return ""
    return "the suite skips it" if skip is True else f"the suite skips it: {one_line(str(skip))}"


def _reason_not_evaluated(test: Mapping[str, Any], suite: Suite) -> str:
    """Return why the cases of a test cannot be run; "" if they can, or if running reports the mistake."""
    if test.get("expansion"):
        return "expansion templates of Gatekeeper are not evaluated"
    try:
        engines = non_cel_engines(_read_one_object(suite, test.get("template")))
    except ClaimgateError:
        return ""
    return (
        f"templates in {engines} are not evaluated, only those in CEL (engine K8sNativeValidation)" if engines else ""
    )


def _case(name: str, test: Mapping[str, Any], case: Mapping[str, Any], suite: Suite, options: Options) -> Case:
    return Case(
        id=name,
        suite=str(suite.file),
        mismatches=partial(_mismatches, test, case, suite, options),
        notes=partial(_notes, case, suite),
    )


def _notes(case: Mapping[str, Any], suite: Suite) -> tuple[str, ...]:
    note = fixtures.note_on_v1beta1_review(_read_one_object(suite, case.get("object")))
    return (note,) if note else ()


def _check_invalid_is_refused(test: Mapping[str, Any], suite: Suite, options: Options) -> tuple[str, ...]:
    """Return a difference if both template and constraint are loaded. `invalid` expects that one of them is refused."""
    try:
        policies_of_case(_policies(test, suite, options), options)
    except ClaimgateError:
        return ()
    return ("invalid: expected template and constraint refused, found them loaded",)


def _mismatches(test: Mapping[str, Any], case: Mapping[str, Any], suite: Suite, options: Options) -> tuple[str, ...]:
    return _judge(case.get("assertions") or (), answer_of_case(_request(test, case, suite, options)))


def _request(test: Mapping[str, Any], case: Mapping[str, Any], suite: Suite, options: Options) -> Request:
    policies = policies_of_case(_policies(test, suite, options), options)
    value = _read_one_object(suite, case.get("object"))
    inventory = suite.objects(case.get("inventory") or ())
    try:
        attributes = _with_written_objects(fixtures.attributes_of_fixture(value, options.table.row), value)
    except CallError as error:
        raise InputError(InputProblem(message=error.message, file=str(case.get("object")))) from None
    namespace = {"metadata": {"name": attributes.namespace}, "apiVersion": "v1", "kind": "Namespace"}
    context = (
        _read_one_object(suite, test.get("constraint")),
        *inventory,
        *((namespace,) if attributes.namespace else ()),
    )
    return Request(attributes=attributes, policies=policies, phase="validate", context=context)


def _with_written_objects(attributes: Attributes, value: JSON) -> Attributes:
    """Keep the objects unchanged, because gator evaluates without decoding."""
    if fixtures.is_review_or_request(value):
        request = value["request"] if fixtures.is_review(value) else value
        return replace(attributes, object=request.get("object"), old_object=request.get("oldObject"), is_decoded=True)
    return replace(
        attributes,
        namespace=str(get(value, ("metadata", "namespace")) or ""),
        user_info=UserInfo(),  # requests of gator have an empty user
        object=None if attributes.object is None else value,
        old_object=None if attributes.old_object is None else value,
        is_decoded=True,
    )


def _policies(test: Mapping[str, Any], suite: Suite, options: Options) -> Sequence[JSON]:
    template, constraint = (
        _read_one_object(suite, test.get("template")),
        _read_one_object(suite, test.get("constraint")),
    )
    if template.get("kind") == VALIDATING:
        return template, constraint
    try:
        return policy_and_binding(template, constraint, options.table, EVERY_OPERATION)
    except NotConverted as error:
        raise InputError(InputProblem(message=reason_as_text(error), file=str(test.get("template")))) from None


def _read_one_object(suite: Suite, name: Any) -> JSON:
    objects = suite.objects([str(name)]) if name else ()
    if len(objects) != 1:
        raise InputError(
            InputProblem(message=f"expected a file with one object, found {len(objects)}", file=str(name or ""))
        )
    return objects[0]


def _judge(assertions: Sequence[Mapping[str, Any]], outcome: PhasesOutcome) -> tuple[str, ...]:
    """Return the differences from the assertions, which count violations with matching messages. At least one assertion
    is needed.
    """
    if not assertions:
        return ("assertions: expected at least one, found none",)
    messages = [decision.message for _, decision in outcome.decisions if decision.action == "deny"]
    return tuple(text for assertion in assertions for text in _differs(assertion, messages))


def _differs(assertion: Mapping[str, Any], messages: Sequence[str]) -> Iterator[str]:
    expected, pattern = assertion.get("violations", "yes"), str(assertion.get("message") or "")
    try:
        is_like = compile_policy_pattern(pattern).is_found_in  # gator has regular expressions of Go, which are RE2
    except ValueError as error:
        yield f"message: {error}"
        return
    count = sum(map(is_like, messages))
    expected = {True: "yes", False: "no"}.get(expected, expected) if isinstance(expected, bool) else expected
    is_met = {"yes": count > 0, "no": count == 0}.get(str(expected), str(expected) == str(count))
    if not is_met:
        like_pattern = f" with a message like `{pattern}`" if pattern else ""
        all_messages = "".join(f"\n  + {one_line(message)}" for message in messages) or " none"
        yield f"violations{like_pattern}: expected {expected}, found {count} of:{all_messages}"
