"""The answers of the webhooks and schemas of KServe, LeaderWorkerSet and KAI, beside claimgate's findings."""

import json
from pathlib import Path

import pytest

from tests.fault_cases import findings_of_one_object

CASES = [
    json.loads(line)
    for line in (Path(__file__).parents[2] / "data" / "serving" / "observed.jsonl").read_text().splitlines()
]
UNTOLD = {
    "is not a supported metric": "the default mode of the cluster decides",
    "is only supported for raw deployment mode": "the default mode of the cluster decides",
    "canary is only supported in Standard deployment mode": "the default mode of the cluster decides",
    "kvCacheOffloading": "not read",
    "spec.priority": "types of queues are not read",
    "spec.parentQueue": "types of queues are not read",
    "spec.displayName": "types of queues are not read",
    "spec.resources": "types of queues are not read",
    "invalid duration": "types of queues are not read",
    "must be of type": "types of groups of KAI are not read",
}
"""Parts of answers about objects for which claimgate reports nothing, with the reason"""
OTHER_MOMENTS = frozenset(
    (
        *("serving-kind/knative-field", "serving-kind/worker-gpus", "serving-kind/worker-requests"),
        *("serving-kind/llm-gpus", "serving-kind/llm-ranks", "serving-kind/llm-model"),
    )
)
"""Rules about what Knative, the controller or the server refuses later"""
READ_DIFFERENTLY = ("NaN", "0x1p-1")


def rules(case):
    """Return only rules about kinds that serve models, and rules of KAI."""
    told = {finding.rule.id for finding in findings_of_one_object(case["object"])}
    return {rule for rule in told if rule.partition("/")[0] in ("serving-kind", "kai", "object-shape")}


@pytest.mark.slow
def test_what_the_webhooks_refuse_is_reported():
    missing = [
        case["id"]
        for case in CASES
        if case["refused"] and not any(part in case["refused"] for part in UNTOLD) and not rules(case)
    ]
    assert missing == []


@pytest.mark.slow
def test_what_the_webhooks_accept_is_not_reported_as_refused():
    wrong = {
        case["id"]: sorted(rules(case) - OTHER_MOMENTS)
        for case in CASES
        if not case["refused"] and not any(text in json.dumps(case["object"]) for text in READ_DIFFERENTLY)
    }
    assert {name: told for name, told in wrong.items() if told} == {}


def test_each_known_difference_is_in_the_data():
    answers = "\n".join(case["refused"] for case in CASES)
    assert [part for part in UNTOLD if part not in answers] == []
