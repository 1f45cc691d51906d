"""Reads and runs `*cases.jsonl`: cases of other projects, and answers of a real API server.

A line is one recorded review with these keys:

    policies, bindings, params, namespaceObject, authorizer
    review    an AdmissionReview, null if an API server sends none
    expect    `allowed`, and if known `code`, `reason`, `message`, `warnings`, `auditAnnotations`, `patchedObject`,
              `warn`, or `policyRefused`

Objects are compared with all defaults. An object that a server recorded has defaults, and a webhook's patch has none.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from itertools import permutations
from pathlib import Path
from typing import Any, Final

from msgspec import structs

from webhook.admission.decode import decode_review
from webhook.admission.fixtures import group_version_kind_of_object
from webhook.admission.review import answer_request
from webhook.apimachinery.attributes import JSON, GroupVersionKind, Phase
from webhook.cel.library.authorizer import ListedAuthorizer
from webhook.cluster.files import FilesCluster
from webhook.errors import CallError, InputError, InputProblem, PolicyError
from webhook.evaluation.review_options import ReviewOptions
from webhook.manifests.models import MUTATING, VALIDATING_BINDING
from webhook.policy.load import Options, load_documents, refusal_of_manifest
from webhook.policy.policy_set import PolicySet
from webhook.rules.decisions import Verdict
from webhook.schema.api_defaults import with_api_defaults
from webhook.schema.sent import as_sent_by_api_server
from webhook.suites.case import Case, Entry, UnreadableCase
from webhook.suites.files import Suite
from webhook.yamltext import yamlfile
from webhook.yamltext.yamlfile import Document

_SERVER_METADATA: Final = frozenset(
    ("managedFields", "uid", "resourceVersion", "creationTimestamp", "generation", "selfLink")
)
_EMPTY: Final = frozenset(
    ("resources", "securityContext", "nodeSelector", "labels", "annotations", "strategy", "metadata")
)
_NEEDED = ("id", "policies", "expect")


def read_recorded_file(suite: Suite, options: Options) -> Iterator[Entry]:
    """Yield the cases of one file. A line that is not a case does not affect other lines."""
    file = suite.file
    for number, line in enumerate(yamlfile.text(suite.input).split("\n"), 1):
        if not line.strip():
            continue
        try:
            value = _value(line, file, number)
        except InputError as error:
            yield UnreadableCase(id=f"{file.name}:{number}", suite=str(file), problems=error.problems)
            continue
        compare = partial(mismatches, RecordedCase(value), options)
        yield Case(id=str(value["id"]), suite=str(file), mismatches=compare, line=number)


def _value(line: str, file: Path, number: int) -> JSON:
    try:
        value = json.loads(line)
    except ValueError:
        value = None
    if not isinstance(value, dict):
        text = "not a JSON object; expected one case per line"
        raise InputError(InputProblem(message=text, file=str(file), line=number))
    if missing := [key for key in _NEEDED if key not in value]:
        raise InputError(InputProblem(message=f"a case needs {', '.join(missing)}", file=str(file), line=number))
    return value


@dataclass(frozen=True, slots=True)
class RecordedCase:
    """One case as written."""

    value: JSON

    @property
    def id(self) -> str:
        """Return the name of the case."""
        return str(self.value.get("id", ""))

    def get_list(self, key: str) -> list[JSON]:
        """Return the list with a key of the case; [] if not set."""
        return list(self.value.get(key) or ())


def mismatches(case: RecordedCase, options: Options) -> tuple[str, ...]:
    """Return the differences between the answer and the expected answer."""
    expect = case.value["expect"]
    if "policyRefused" in expect:
        return _differ("policyRefused", expect["policyRefused"], _refusal(case, options))
    try:
        policies = _policies(case, options)
    except PolicyError as error:
        return (f"policies refused: {error}",)
    if case.value.get("review") is None:
        return ()
    differences: tuple[str, ...] = ()
    for order in _policy_orders(case, policies):
        differences = _compare(case, _answer(case, order))
        if not differences:
            break
    return differences


def _refusal(case: RecordedCase, options: Options) -> str:
    for value in (*case.get_list("policies"), *case.get_list("bindings")):
        if text := refusal_of_manifest(value, options):
            return f"{value['kind']} {value['metadata']['name']}: {text}"
    return ""


def _policies(case: RecordedCase, options: Options) -> PolicySet:
    written = [*map(complete_manifest, case.get_list("policies")), *map(complete_manifest, case.get_list("bindings"))]
    return _loaded(json.dumps(written), options)


@lru_cache(maxsize=8)
def _loaded(written: str, options: Options) -> PolicySet:
    """Cached, because the next case often has the same policies."""
    return load_documents([Document(value, "case", index) for index, value in enumerate(json.loads(written))], options)


def complete_manifest(value: JSON) -> JSON:
    """Add the fields that an API server requires and suites of other tools leave out."""
    spec = dict(value.get("spec") or {})
    constraints = spec.get("matchConstraints")
    if constraints:
        rules = [{"operations": ["*"], **rule} for rule in constraints.get("resourceRules") or ()]
        spec["matchConstraints"] = {**constraints, "resourceRules": rules}
    if spec.get("paramRef"):
        spec["paramRef"] = {"parameterNotFoundAction": "Deny", **spec["paramRef"]}
    if value["kind"] == VALIDATING_BINDING and not spec.get("validationActions"):
        spec["validationActions"] = ["Deny"]
    return {**value, "spec": spec}


def _policy_orders(case: RecordedCase, policies: PolicySet) -> Iterator[PolicySet]:
    """Yield the policies in the order of their names. If the server defines no order, also yield all other orders."""
    if not case.value.get("orderDependent"):
        yield policies
        return
    for validating in permutations(policies.validating):
        for mutating in permutations(policies.mutating):
            yield replace(policies, validating=validating, mutating=mutating)


def _answer(case: RecordedCase, policies: PolicySet) -> Verdict:
    """Return the verdict of the phases for which the case has policies."""
    attributes = decode_review(case.value["review"])
    cluster = _cluster(case)
    authorizer = ListedAuthorizer(case.get_list("authorizer"))
    arguments: dict[str, Any] = {"authorizer": authorizer, "options": ReviewOptions(api_server_text=True)}
    verdict = None
    if any(policy["kind"] == MUTATING for policy in case.get_list("policies")):
        verdict = answer_request(attributes, policies, cluster, phase=Phase.MUTATE, **arguments)
        if not verdict.allowed:
            return verdict
        attributes = replace(attributes, object=verdict.patched_object)
    answer = answer_request(attributes, policies, cluster, phase=Phase.VALIDATE, **arguments)
    return answer if verdict is None else structs.replace(answer, patched_object=verdict.patched_object)


def _cluster(case: RecordedCase) -> FilesCluster:
    params = case.get_list("params")
    others = [*filter(None, [case.value.get("namespaceObject")]), *case.get_list("namespaces")]
    if str(case.value.get("upstream", "")).startswith("kyverno/"):
        return cluster_with_kyverno_params(params, case.get_list("bindings"), others)
    return FilesCluster([*params, *others])


def cluster_with_kyverno_params(
    params: Sequence[JSON], bindings: Sequence[JSON], others: Sequence[JSON]
) -> FilesCluster:
    """Return the objects of a case of Kyverno. A selector of params finds one list with all params."""
    if len(params) > 1:
        chosen = [(binding.get("spec") or {}).get("paramRef") or {} for binding in bindings]
        if any("selector" in reference for reference in chosen):
            return _ClusterWithOneListOfParams(list(params), others)
    return FilesCluster([*params, *others])


class _ClusterWithOneListOfParams(FilesCluster):
    """Lists a kind as one object with `items`, as Kyverno gives params to a policy."""

    def __init__(self, params: Sequence[JSON], others: Iterable[JSON]) -> None:
        super().__init__([*params, *others])
        self._params = params

    def list(self, gvk: GroupVersionKind, namespace: str | None, labels: str = "") -> Sequence[JSON]:
        """Return one object with all params for the kind of the params; for other kinds, return the objects."""
        if gvk.kind != self._params[0]["kind"]:
            return super().list(gvk, namespace, labels)
        return [{**self._params[0], "items": self._params}]


def _compare(case: RecordedCase, verdict: Verdict) -> tuple[str, ...]:
    expect = case.value["expect"]
    differences = [*_differ("allowed", expect["allowed"], verdict.allowed)]
    status = verdict.status
    if not expect["allowed"] and status:
        for key, value in (("code", status.code), ("reason", status.reason)):
            differences += _differ(key, expect[key], value) if key in expect else ()
        if "message" in expect and not _is_message_as_expected(expect, status.message):
            differences += _differ("message", expect["message"], status.message)
    if "warnings" in expect:
        differences += _differ("warnings", sorted(expect["warnings"]), sorted(verdict.warnings))
    if expect.get("warn") and not verdict.warnings:
        differences.append("warnings: expected one, found none")
    if "auditAnnotations" in expect:
        differences += _differ("auditAnnotations", expect["auditAnnotations"], dict(verdict.audit_annotations))
    if "patchedObject" in expect:
        differences += _differ(
            "patchedObject", comparable_object(expect["patchedObject"]), comparable_object(verdict.patched_object)
        )
    return tuple(differences)


def _is_message_as_expected(expect: JSON, message: str) -> bool:
    """If the status of a server was recorded, the message must be equal. Otherwise, a part suffices."""
    return bool(expect["message"] == message if "code" in expect else expect["message"] in message)


def _differ(name: str, expected: JSON, actual: JSON) -> tuple[str, ...]:
    return () if expected == actual else (f"{name}: expected {json.dumps(expected)}, found {json.dumps(actual)}",)


def comparable_object(obj: JSON) -> JSON:
    """Return an object with defaults and without fields that only a server writes."""
    if not isinstance(obj, dict):
        return obj
    metadata = {key: value for key, value in (obj.get("metadata") or {}).items() if key not in _SERVER_METADATA}
    if metadata.get("namespace") == "default":
        del metadata["namespace"]
    bare = {key: value for key, value in obj.items() if key not in ("metadata", "status")}
    return _without_empty(_with_defaults({**bare, "metadata": metadata}))


def _with_defaults(obj: JSON) -> JSON:
    try:
        kind = group_version_kind_of_object(obj)
    except CallError:
        return obj
    sent = as_sent_by_api_server(obj, kind)
    return obj if sent is None else with_api_defaults(sent, kind)


def _without_empty(value: JSON) -> JSON:
    if isinstance(value, list):
        return [_without_empty(item) for item in value]
    if not isinstance(value, dict):
        return value
    cleaned = {key: _without_empty(item) for key, item in value.items()}
    return {key: item for key, item in cleaned.items() if key not in _EMPTY or item not in ({}, None)}
