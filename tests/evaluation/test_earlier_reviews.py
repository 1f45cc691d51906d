"""A server that has run for days denies the same requests as a new server."""

from __future__ import annotations

import gc
from dataclasses import replace
from typing import Any

import pytest
from msgspec import structs

from tests.literals import namespace, pod, policies, request, shipped_policies, validating
from webhook.admission.review import answer_request
from webhook.apimachinery.attributes import JSON, Phase
from webhook.cluster import Cluster
from webhook.cluster.files import FilesCluster
from webhook.cluster.layered import ClusterWithAssumedNamespaces
from webhook.evaluation.request_context import request_context
from webhook.evaluation.validating import validating_decisions
from webhook.policy.policy_set import PolicySet
from webhook.rules.decisions import Decision

NOWHERE = FilesCluster()
READS_THE_NAMESPACE = {"name": "tier", "expression": "namespaceObject.metadata.?labels[?'tier'].orValue('')"}
NO_HOST = {"expression": "!has(object.spec.hostPID)"}


def denials(loaded: PolicySet, obj: Any, cluster: Cluster = NOWHERE) -> list[tuple[str, str]]:
    """Return the evaluation and message of each denial. The object must have the form that an API server sends."""
    said: tuple[Decision, ...] = validating_decisions(
        request_context(loaded, request(obj, is_decoded=True), cluster), Phase.VALIDATE
    )
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


def test_too_expensive_messages_deny_also_after_a_cheap_pod() -> None:
    """The API server evaluates every messageExpression, also of rules that hold. Above the cost budget, every rule
    fails.
    """
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


PARAM_KIND = {"apiVersion": "v1", "kind": "ConfigMap"}
REF = {"name": "c", "namespace": "site", "parameterNotFoundAction": "Deny"}
NO_LIMIT = {"containers": [{"name": "a", "image": "x", "resources": {"requests": {"nvidia.com/gpu": "1"}}}]}
ONLY_GOLD = {"matchResources": {"namespaceSelector": {"matchLabels": {"tier": "gold"}}}}


def config(**data: str) -> JSON:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "namespace": "site"}, "data": data}


def decided(loaded: PolicySet, obj: JSON, view: Cluster, **changes: JSON) -> list[tuple[str, str]]:
    said = validating_decisions(request_context(loaded, request(obj, is_decoded=True, **changes), view), Phase.VALIDATE)
    return [(each.action, each.param) for each in said]


def test_a_parameter_that_changes_is_read_again() -> None:
    over_checks = {"annotations": {"checks": "pod-resources"}, "binding": {"paramRef": REF}, "paramKind": PARAM_KIND}
    loaded = policies(
        validating({"expression": "problems.size() == 0", "messageExpression": "problems"}, **over_checks)
    )
    strict, lenient = FilesCluster([config()]), FilesCluster([config(off="pod-resources/limit-required")])
    for _ in range(2):
        assert decided(loaded, pod(**NO_LIMIT), strict) == [("deny", "site/c")]
        assert decided(loaded, pod(**NO_LIMIT), lenient) == [("admit", "site/c")]
        assert decided(loaded, pod(), NOWHERE) == [("deny", "")]  # denied by parameterNotFoundAction


def test_match_conditions_read_the_current_parameter() -> None:
    conditions = [{"name": "on", "expression": "params.data.on == 'yes'"}]
    loaded = policies(validating("false", binding={"paramRef": REF}, paramKind=PARAM_KIND, matchConditions=conditions))
    for _ in range(2):
        assert decided(loaded, pod(), FilesCluster([config(on="yes")])) == [("deny", "site/c")]
        assert decided(loaded, pod(), FilesCluster([config(on="no")])) == []


def test_a_binding_matches_the_current_labels_of_a_namespace() -> None:
    loaded = policies(validating("false", binding=ONLY_GOLD))
    for _ in range(2):
        assert decided(loaded, pod(), FilesCluster([namespace(tier="gold")])) == [("deny", "")]
        assert decided(loaded, pod(), FilesCluster([namespace()])) == []
        assert denials(loaded, pod())[0][0] == "error"


def test_a_created_object_counts_as_a_changed_spec() -> None:
    loaded = policies(validating("false", annotations={"updates": "spec"}))
    for _ in range(2):
        assert decided(loaded, pod(), NOWHERE) == [("deny", "")]
        assert decided(loaded, pod(), NOWHERE, operation="UPDATE", old=pod()) == []
        assert decided(loaded, pod(), NOWHERE, operation="UPDATE", old=pod(hostNetwork=True)) == [("deny", "")]


def test_a_pod_gets_the_same_verdict_from_every_sender() -> None:
    """A file may have objects that an API server would refuse, so claimgate decodes objects of files first."""
    loaded, view = shipped_policies(), ClusterWithAssumedNamespaces(FilesCluster())
    claim = {"resourceClaims": [{"name": "a"}], "containers": [{"name": "a", "resources": {"claims": [{"name": "b"}]}}]}
    for spec in ({"containers": [{"name": "a"}]}, NO_LIMIT, claim):
        for operation, old in (("CREATE", None), ("UPDATE", pod()), ("DELETE", pod())):
            obj = None if operation == "DELETE" else pod(**spec)
            sent = request(obj or old, operation, old, object=obj)
            decoded, undecoded = (
                [
                    structs.replace(each, elapsed_s=0.0)
                    for phase in Phase
                    for each in validating_decisions(
                        request_context(loaded, replace(sent, is_decoded=is_decoded), view), phase
                    )
                ]
                for is_decoded in (True, False)
            )
            assert decoded == undecoded


def test_a_review_leaves_nothing_to_the_garbage_collector() -> None:
    loaded, view = shipped_policies(), ClusterWithAssumedNamespaces(FilesCluster())
    sent = request(pod(containers=[{"name": "a", "image": "x"}]), is_decoded=True)
    for _ in range(3):  # the first reviews also compile expressions
        verdicts = [answer_request(sent, loaded, view, phase=phase) for phase in Phase]
    gc.collect()
    gc.disable()
    try:
        verdicts = [answer_request(sent, loaded, view, phase=phase) for phase in Phase]
        assert gc.collect() == 0
    finally:
        gc.enable()
    assert all(verdict.allowed for verdict in verdicts)
