"""Compares claimgate with an API server for a policy and an object."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from tests.fuzz.live import BATCH, Question, Server, Told, custom
from tests.literals import OPTIONS, request
from webhook.admission.review import answer_request
from webhook.apimachinery.attributes import JSON, Phase
from webhook.cluster.files import FilesCluster
from webhook.deadline import Deadline
from webhook.errors import PolicyError
from webhook.evaluation.review_options import ReviewOptions
from webhook.patch import structural
from webhook.policy.load import load_documents
from webhook.policy.policy_set import PolicySet
from webhook.yamltext.yamlfile import Document

_NAME = re.compile(r"fuzz-\d+-\d+")
_ADDRESS = re.compile(r"\(0x[0-9a-f]+\)")


def own(question: Question, kind: str, schema: Mapping[str, Any], objects: Iterable[JSON]) -> Told:
    name = "fuzz-0-0"
    try:
        policies = _loaded(question, kind, name)
    except PolicyError as error:
        return Told("refused", message=str(error))
    if question.kind == "Validating" and _crashes(policies):
        return Told("crashed")
    sent = structural.without_unknown_fields(custom(kind, name, question.spec), schema, Deadline())
    obj = structural.with_schema_defaults(sent, schema, Deadline())
    phase = Phase.MUTATE if question.kind == "Mutating" else Phase.VALIDATE
    verdict = answer_request(
        request(obj, dry_run=True),
        policies,
        FilesCluster(objects),
        phase=phase,
        options=ReviewOptions(api_server_text=True),
    )
    if not verdict.allowed:
        assert verdict.status is not None
        said = verdict.status
        return Told("denied", said.code, said.reason, said.message, verdict.warnings)
    made = obj if verdict.patched_object is None else verdict.patched_object
    stored = structural.with_schema_defaults(
        structural.without_unknown_fields(made, schema, Deadline()), schema, Deadline()
    )
    return Told("allowed", warnings=verdict.warnings, spec=stored.get("spec"))


def is_refused(question: Question, kind: str) -> bool:
    try:
        _loaded(question, kind, "fuzz-0-0")
    except PolicyError:
        return True
    return False


def _loaded(question: Question, kind: str, name: str) -> PolicySet:
    written = question.manifests(name, f"{kind.lower()}s")
    return load_documents([Document(each, "fuzz", place) for place, each in enumerate(written)], OPTIONS)


def _crashes(policies: PolicySet) -> bool:
    """Return whether an API server is known to drop the connection for a policy. Some mutations do this only when they
    are evaluated.
    """
    return any(
        each.program and each.program.api_server_panics()
        for policy in policies.policies
        for each in policy.expressions()
    )


def _unnamed(told: Told) -> Told:
    warnings = tuple(sorted(_NAME.sub("x", each) for each in told.warnings))  # params have no order
    return replace(told, message=_unordered(_NAME.sub("x", told.message)), warnings=warnings)


def _unordered(text: str) -> str:
    """Return a text with sorted errors and without addresses, because Go iterates over maps in random order."""
    head, several, listed = _ADDRESS.sub("(…)", text).partition("errors:\n")
    return f"{head}{several}{chr(10).join(sorted(listed.split(chr(10))))}"


def difference(mine: Told, theirs: Told) -> str:
    """Return `same …`, or `text of …` if only the words differ. Otherwise return the difference."""
    mine, theirs = _unnamed(mine), _unnamed(theirs)
    if mine.phase == "refused" and theirs.phase in {"refused", "crashed"}:
        return "same refused"
    if theirs.phase == "denied" and " is invalid: " in theirs.message and mine.phase == "allowed":
        return "invalid object there"
    if mine.phase != theirs.phase:
        return f"{theirs.phase} there, {mine.phase} here"
    if mine == theirs or mine.phase == "crashed":
        return f"same {mine.phase}"
    for part in ("code", "reason", "spec", "message", "warnings"):
        if getattr(mine, part) != getattr(theirs, part):
            return f"{part} of {mine.phase}"
    raise AssertionError(mine)


def compare(
    remote: Server,
    kind: str,
    schema: Mapping[str, Any],
    draw: Callable[[], Question],
    count: int,
    *,
    objects: Sequence[JSON] = (),
    shown: int = 3,
) -> Counter[str]:
    """Return the number of each result."""
    outcomes = Counter[str]()
    for start in range(0, count, BATCH):
        batch = [draw() for _ in range(min(BATCH, count - start))]
        for each, theirs in zip(batch, remote.answers(kind, batch), strict=True):
            mine = own(each, kind, schema, objects)
            found = difference(mine, theirs)
            if theirs.phase == "crashed" and not found.startswith("same") and _crashes(_loaded(each, kind, "fuzz-0-0")):
                found = "same crashed"
            outcomes[found] += 1
            if not found.startswith(("same", "invalid")) and outcomes[found] <= shown:
                print(f"{found}: {each}\n  there: {theirs}\n  here:  {mine}", flush=True)
    return outcomes


def held(*objects: JSON) -> list[JSON]:
    labels = {"kubernetes.io/metadata.name": "default"}
    return [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default", "labels": labels}}, *objects]
