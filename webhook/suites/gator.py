"""gator `Suite` files (test.gatekeeper.sh/v1alpha1), for templates whose code is CEL.

A ConstraintTemplate with engine K8sNativeValidation and its constraint are what Gatekeeper itself makes of them: a
ValidatingAdmissionPolicy with the constraint as its parameter (open-policy-agent/gatekeeper 3.23,
pkg/drivers/k8scel/transform). `template` may also name a ValidatingAdmissionPolicy and `constraint` its binding. Rego
is not evaluated: its cases fail and say so.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from webhook import yamlfile
from webhook.admission import fixtures
from webhook.admission.phases import Outcome
from webhook.attributes import JSON
from webhook.errors import CallError, ClaimgateError, InputError, Problem
from webhook.policy.load import Options
from webhook.suites.case import Case, Request, answer, compiled
from webhook.suites.constraint import policy_and_binding
from webhook.suites.files import Suite
from webhook.terminal import one_line


def read(suite: Suite, how: Options) -> Iterator[Case]:
    """The cases of one file.

    Raises:
        InputError: the file cannot be read.
    """
    for document in yamlfile.read(suite.file):
        value = document.value
        if not isinstance(value, dict) or value.get("kind") != "Suite":
            line = document.position()[0]
            raise InputError(Problem(message="expected kind `Suite`", file=str(suite.file), line=line))
        for test in value.get("tests") or ():
            if not (value.get("skip") or test.get("skip")):
                yield from _cases(test, suite, how)


def _cases(test: Mapping[str, Any], suite: Suite, how: Options) -> Iterator[Case]:
    prefix = f"{suite.folder.name}/{test.get('name', '')}"
    if test.get("invalid"):
        yield Case(id=f"{prefix}/invalid", suite=str(suite.file), mismatches=partial(_refused, test, suite, how))
    for case in test.get("cases") or ():
        if not case.get("skip"):
            yield Case(
                id=f"{prefix}/{case.get('name', '')}",
                suite=str(suite.file),
                mismatches=partial(_mismatches, test, case, suite, how),
            )


def _refused(test: Mapping[str, Any], suite: Suite, how: Options) -> tuple[str, ...]:
    """A test that says `invalid`: its template or constraint must be refused."""
    try:
        compiled(_policies(test, suite, how), how)
    except ClaimgateError:
        return ()
    return ("invalid: expected template and constraint refused, found them loaded",)


def _mismatches(test: Mapping[str, Any], case: Mapping[str, Any], suite: Suite, how: Options) -> tuple[str, ...]:
    return _judge(case.get("assertions") or (), answer(_request(test, case, suite, how)))


def _request(test: Mapping[str, Any], case: Mapping[str, Any], suite: Suite, how: Options) -> Request:
    policies = compiled(_policies(test, suite, how), how)
    value = _one(suite, case.get("object"))
    inventory = suite.objects(case.get("inventory") or ())
    try:
        attributes = fixtures.attributes(value, how.table.row)
    except CallError as error:
        raise InputError(Problem(message=error.message, file=str(case.get("object")))) from None
    namespace = {"metadata": {"name": attributes.namespace}, "apiVersion": "v1", "kind": "Namespace"}
    context = (_one(suite, test.get("constraint")), *inventory, *((namespace,) if attributes.namespace else ()))
    return Request(attributes=attributes, policies=policies, phase="validate", context=context)


def _policies(test: Mapping[str, Any], suite: Suite, how: Options) -> Sequence[JSON]:
    if test.get("expansion"):
        raise InputError(Problem(message="gator expansion templates are not evaluated; expand the object in the suite"))
    template, constraint = _one(suite, test.get("template")), _one(suite, test.get("constraint"))
    return policy_and_binding(template, constraint, how.table.row)


def _one(suite: Suite, name: Any) -> JSON:
    objects = suite.objects([str(name)]) if name else ()
    if len(objects) != 1:
        raise InputError(
            Problem(message=f"expected a file with one object, found {len(objects)}", file=str(name or ""))
        )
    return objects[0]


def _judge(assertions: Sequence[Mapping[str, Any]], outcome: Outcome) -> tuple[str, ...]:
    """Compare with the assertions: how many violations have a message that matches. A case needs at least one."""
    if not assertions:
        return ("assertions: expected at least one, found none",)
    said = [made.message for _, made in outcome.decisions if made.evaluation == "deny"]
    failed = [made.message for _, made in outcome.decisions if made.evaluation == "error"]
    return tuple(
        [f"evaluation failed: {one_line(message)}" for message in failed]
        + [text for assertion in assertions for text in _differs(assertion, said)]
    )


def _differs(assertion: Mapping[str, Any], said: Sequence[str]) -> Iterator[str]:
    wanted, pattern = assertion.get("violations", "yes"), str(assertion.get("message") or "")
    count = sum(re.search(pattern, message) is not None for message in said)
    wanted = {True: "yes", False: "no"}.get(wanted, wanted) if isinstance(wanted, bool) else wanted
    is_met = {"yes": count > 0, "no": count == 0}.get(str(wanted), str(wanted) == str(count))
    if not is_met:
        about = f" with a message like `{pattern}`" if pattern else ""
        shown = "".join(f"\n  + {one_line(message)}" for message in said) or " none"
        yield f"violations{about}: expected {wanted}, found {count} of:{shown}"
