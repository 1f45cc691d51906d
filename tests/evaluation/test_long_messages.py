"""A long list of mistakes is cut between two mistakes. Other long texts are dropped, as in kube-apiserver."""

from __future__ import annotations

import pytest

from tests.literals import pod, request, shipped_policies
from webhook.admission.review import answer_request
from webhook.apimachinery.attributes import Phase
from webhook.cluster.files import FilesCluster
from webhook.evaluation.rule_decisions import MAX_BYTES, message_or_empty


@pytest.mark.parametrize("count", [20, 60, 2000])
def test_every_wrong_claim_is_reported_or_counted(count: int) -> None:
    claims = [
        {"name": f"c{each}", "resourceClaimName": "n" * 30, "resourceClaimTemplateName": ""} for each in range(count)
    ]
    verdict = answer_request(
        request(pod(resourceClaims=claims)), shipped_policies(), FilesCluster(), phase=Phase.VALIDATE
    )
    assert verdict.status is not None
    said = next(
        each for each in verdict.decisions if each.rule == "claims-exactly-one/empty-name" and each.message
    ).message
    *named, last = said.split("; ")
    left = last.removeprefix("and ").removesuffix(" more")
    assert len(said) <= MAX_BYTES
    assert (len(named) + int(left) if left.isdecimal() else len(named) + 1) == count


@pytest.mark.parametrize(
    "text",
    [
        "x" * (MAX_BYTES + 1),
        "not a path: a; " * MAX_BYTES,
        f"spec.a: {'x' * MAX_BYTES}; spec.b: no",
        "spec.a: no; spec.b: no\n" * MAX_BYTES,
    ],
    ids=["a word", "sentences without paths", "a first sentence that is too long", "several lines"],
)
def test_an_invalid_problem_list_falls_back_to_the_message(text: str) -> None:
    assert message_or_empty(text) == ""


def test_characters_of_several_bytes_are_not_cut() -> None:
    said = message_or_empty("; ".join(f"spec.a[{each}]: `ü{'é' * 40}`" for each in range(100)))
    assert said.endswith("é`; and 48 more")
    assert len(said.encode()) <= MAX_BYTES
