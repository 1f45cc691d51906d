"""Answers at admission name only objects of the user's own namespace and of the cluster. An audit names all.

Another namespace gets a copy of every object of each case. It also gets an object of each looked-up kind for each name
in the case, with this name and with a similar name.
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path

import pytest
from msgspec.structs import replace

from tests.literals import OPTIONS, shipped_policies
from webhook.admission.respond import encode_response
from webhook.apimachinery.attributes import JSON, NAMESPACE, Phase
from webhook.apimachinery.names import dns1123_subdomain_errors
from webhook.cluster.known_kinds import CLUSTER_SCOPED
from webhook.evaluation.review_options import ReviewOptions
from webhook.input import shipped
from webhook.policy.load import load_policy_set
from webhook.suites import own
from webhook.suites.case import Request, answer_of_case
from webhook.suites.files import Suite

FOLDERS = sorted(path.parent for path in Path(shipped.policies_folder()).glob("*/suite.yaml"))
SECRET = "takeover-of-acme"
NEARLY = "q9"
"""A suffix that makes a name similar. A check suggests similar names."""
KINDS = sorted(
    {(each.gvk.group, each.gvk.version, each.gvk.kind) for each in shipped_policies().interests()}
    - {(NAMESPACE.group, NAMESPACE.version, NAMESPACE.kind)}
)
NAMESPACED = [each for each in KINDS if (each[0], each[2]) not in CLUSTER_SCOPED]
_MOST_NAMES = 12


def names_in(value: JSON) -> Iterator[str]:
    if isinstance(value, dict):
        for each in value.values():
            yield from names_in(each)
    elif isinstance(value, list):
        for each in value:
            yield from names_in(each)
    elif isinstance(value, str) and 2 < len(value) < 60 and not dns1123_subdomain_errors(value):
        yield value


def copied(obj: JSON, name: str) -> JSON:
    made = deepcopy(obj)
    made["metadata"] = {**made["metadata"], "name": name, "namespace": SECRET}
    return made


def objects_of_others(request: Request) -> tuple[JSON, ...]:
    names = list(dict.fromkeys(names_in(request.attributes.object or request.attributes.old_object)))
    made = [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SECRET}}]
    for group, version, kind in NAMESPACED:
        for name in names[:_MOST_NAMES]:
            head = {"apiVersion": f"{group}/{version}" if group else version, "kind": kind}
            made += ({**head, "metadata": {"name": each, "namespace": SECRET}} for each in (name, name + NEARLY))
    for obj in request.context:
        metadata = obj.get("metadata") if isinstance(obj, dict) else None
        kind = str(obj.get("apiVersion", "")).rpartition("/")[0], str(obj.get("kind")) if isinstance(obj, dict) else ""
        if isinstance(metadata, dict) and isinstance(metadata.get("name"), str) and kind not in CLUSTER_SCOPED:
            made += (copied(obj, name) for name in (metadata["name"], metadata["name"] + NEARLY))
    return tuple(made)


def said(request: Request, options: ReviewOptions) -> str:
    outcome = answer_of_case(request, options)
    sent = encode_response("uid", outcome.verdict, Phase.VALIDATE, request.attributes.operation).decode()
    return f"{sent} {outcome.decisions} {outcome.further}"


def requests_of(folder: Path) -> Iterator[tuple[str, Request]]:
    suite = Suite(file=folder / "suite.yaml", root=folder)
    policies = load_policy_set([folder], OPTIONS)
    for case in own.cases(suite):
        request = own.request_of_case(case, suite, lambda: policies, OPTIONS)
        if request.attributes.namespace != SECRET:
            yield case.name, replace(request, context=(*request.context, *objects_of_others(request)))


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_admission_names_no_objects_of_other_namespaces(folder: Path) -> None:
    for name, request in requests_of(folder):
        told = said(request, ReviewOptions(advice=True))
        assert SECRET not in told, name
        assert NEARLY not in told, name


@pytest.mark.parametrize("folder", ["dra-claims", "trainer"])
def test_an_administrator_sees_other_namespaces(folder: str) -> None:
    """A user who may read all namespaces gets the names. This shows that the test above can fail."""
    told = [
        said(request, ReviewOptions(advice=True, sees_all_namespaces=True))
        for _, request in requests_of(Path(shipped.policies_folder()) / folder)
    ]
    assert any(SECRET in each or NEARLY in each for each in told)
