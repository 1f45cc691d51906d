"""One request computes each value of an object once, and looks up each object once."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.facts.subjects import subject
from tests.facts.test_registry import runtime, train_job
from tests.literals import policies, request, validating
from webhook.apimachinery.attributes import JSON, GroupVersionKind
from webhook.cluster.files import FilesCluster
from webhook.deadline import Deadline
from webhook.errors import BudgetExceeded
from webhook.evaluation.activation import fact_as_cel_value
from webhook.evaluation.invocations import Invocation
from webhook.evaluation.request_context import RequestContext, request_context
from webhook.evaluation.request_objects import EvaluationTarget
from webhook.facts.dra.pod_claims import pod_claims
from webhook.facts.train_job_pods.merged_train_job import merge_train_job as merged
from webhook.policy.static_params import Param, create_param

NAMES = ("gpu", "dra", "priorities", "podSets", "trainer")
OLDER = {"data": {"trainer": "2.2"}}


class Counting(FilesCluster):
    def __init__(self, *objects: JSON) -> None:
        super().__init__(objects)
        self.asked = Counter[str]()

    def get(self, gvk: GroupVersionKind, namespace: str, name: str) -> JSON | None:
        self.asked[gvk.kind] += 1
        return super().get(gvk, namespace, name)


def target_of(obj: JSON, context: RequestContext) -> EvaluationTarget:
    return EvaluationTarget(request(obj), context.objects.sent, obj, None, obj)


def param(data: JSON = None) -> Param:
    (binding,) = policies(validating("true")).validating[0].bindings
    return create_param(binding, data)


def test_facts_of_one_object_share_one_merge() -> None:
    """podSets has the identical template of the merged JobSet, not an equal copy."""
    cluster, obj = Counting(runtime()), train_job()
    context = request_context(policies(validating("true")), request(obj), cluster)
    target = target_of(obj, context)
    (policy,) = context.policies.validating
    invocation = Invocation(context, policy, None, policy.bindings[0], param(), target)
    values = {name: fact_as_cel_value(name, invocation).value for name in NAMES}
    (job,) = invocation.subject().once(merged).replicated_jobs
    assert values["podSets"][0]["template"] is job.pod_template.json
    assert cluster.asked["ClusterTrainingRuntime"] == 1


def test_facts_with_different_params_are_not_shared() -> None:
    obj = train_job()
    context = request_context(policies(validating("true")), request(obj), FilesCluster([runtime()]))
    target = target_of(obj, context)
    releases = [context.subject(target, param(data)).once(merged).release for data in (None, OLDER, None)]
    assert releases == [(2, 3), (2, 2), (2, 3)]
    assert context.subject(target, param()) is context.subject(target, param({"data": {"other": "x"}}))


def test_pods_of_one_request_look_up_a_claim_once() -> None:
    """All facts see one cluster, and the requests of the claim are computed once."""
    template = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": "gpu", "namespace": "team"},
        "spec": {"spec": {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": ""}}]}}},
    }
    cluster = Counting(template)
    spec = {"containers": [], "resourceClaims": [{"name": "a", "resourceClaimTemplateName": "gpu"}]}
    pods = [{"apiVersion": "v1", "kind": "Pod", "metadata": {"namespace": "team"}, "spec": spec} for _ in range(2)]
    context = request_context(policies(validating("true")), request(pods[0]), cluster)
    subjects = [context.subject(target_of(pod, context), param()) for pod in pods]
    first, second = (subject.once(pod_claims).claims[0].contents for subject in subjects)
    assert first is second
    assert cluster.asked["ResourceClaimTemplate"] == 1


def test_a_fact_is_not_computed_after_the_deadline() -> None:
    one = subject(train_job(), runtime())
    one.cluster.deadline = Deadline(-1.0)
    with pytest.raises(BudgetExceeded):
        one.fact("gpu")
