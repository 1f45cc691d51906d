"""What was reviewed before changes no answer: a server that has run for days denies what a fresh one denies."""

from __future__ import annotations

from typing import Any

import pytest

from tests.literals import namespace, pod, policies, request, validating
from webhook.attributes import Phase
from webhook.cluster import Cluster
from webhook.cluster.files import FilesCluster
from webhook.decisions import Decision
from webhook.evaluation.validating import validate
from webhook.policy.policy_set import PolicySet

NOWHERE = FilesCluster()
READS_THE_NAMESPACE = {"name": "tier", "expression": "namespaceObject.metadata.?labels[?'tier'].orValue('')"}
NO_HOST = {"expression": "!has(object.spec.hostPID)"}


def denials(loaded: PolicySet, obj: Any, cluster: Cluster = NOWHERE) -> list[tuple[str, str]]:
    """What denies an object as an API server sends it, and in which words."""
    said: tuple[Decision, ...] = validate(request(obj, is_decoded=True), loaded, cluster, Phase.VALIDATE)
    return [(each.evaluation, each.message) for each in said if each.action == "deny"]


@pytest.mark.parametrize(
    "policy",
    [
        validating({**NO_HOST, "messageExpression": "'not in ' + namespaceObject.metadata.name"}),
        validating(NO_HOST, variables=[READS_THE_NAMESPACE]),
    ],
    ids=["in a message", "in a variable that no rule uses"],
)
def test_an_unknown_namespace_is_an_error_after_a_known_one(policy: Any) -> None:
    fresh, warm = policies(policy), policies(policy)
    assert denials(warm, pod(), FilesCluster([namespace()])) == []
    expected = [("error", 'namespaces "team" not found')]
    assert denials(fresh, pod()) == expected
    assert denials(warm, pod()) == expected


def test_messages_that_cost_too_much_deny_after_a_pod_for_which_they_cost_little() -> None:
    """The API server evaluates every messageExpression, also of rules that hold, and no rule stands without budget."""
    pairs = "object.metadata.?annotations.orValue({})"
    costly = f"string({pairs}.map(a, {pairs}.map(b, {pairs}.map(c, a + b + c))).size())"
    rule = {**NO_HOST, "messageExpression": costly}
    fresh, warm = policies(validating(*[rule] * 14)), policies(validating(*[rule] * 14))
    many = pod()
    many["metadata"]["annotations"] = {f"example.org/annotation-{number}": "x" for number in range(45)}
    assert denials(warm, pod()) == []
    expected = denials(fresh, many)
    assert len(expected) == 14
    assert all("running out of cost budget" in text for _, text in expected)
    assert denials(warm, many) == expected
