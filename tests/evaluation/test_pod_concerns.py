"""A policy with matchConditions is not evaluated on a Pod or a pod template that has none of the parts in its annotation
`concerns`.
"""

from __future__ import annotations

import random

import pytest

from tests.literals import PODS, job, pod, policies, request, validating
from webhook.admission.review import answer_request
from webhook.apimachinery.attributes import Phase
from webhook.cluster.files import FilesCluster
from webhook.cluster.layered import ClusterWithAssumedNamespaces
from webhook.deadline import Deadline
from webhook.errors import BudgetExceeded
from webhook.evaluation.review_options import ReviewOptions
from webhook.evaluation.trace import ReviewTrace
from webhook.export.registrations import concerns_condition
from webhook.manifests.annotations import RESOURCE_CONCERNS

CLUSTER = ClusterWithAssumedNamespaces(FilesCluster(()))
ALWAYS = [{"name": "always", "expression": "true"}]
BARE = {"name": "a", "image": "a"}


def answer(attributes, *listed, **options):
    return answer_request(
        attributes, policies(*listed), CLUSTER, phase=Phase.VALIDATE, options=ReviewOptions(**options)
    )


def concerned(word, name="v", **spec):
    return validating("false", name=name, annotations={"concerns": word}, matchConditions=ALWAYS, **spec)


def container(**resources):
    return {**BARE, "resources": resources}


ROWS = {
    "nothing": (pod(containers=[BARE]), set()),
    "amounts": (pod(containers=[container(limits={"cpu": 1, "memory": "1Gi", "ephemeral-storage": "1Gi"})]), set()),
    "a device": (pod(containers=[container(limits={"nvidia.com/gpu": 1})]), {"devices"}),
    "the portable name": (pod(containers=[container(requests={"gpu": 1})]), {"devices", "portable-gpu"}),
    "pages": (pod(containers=[container(limits={"hugepages-2Mi": "2Mi"})]), {"devices"}),
    "a device of an init container": (pod(initContainers=[container(limits={"a/b": 1})]), {"devices"}),
    "claims": (pod(containers=[BARE], resourceClaims=[{"name": "c"}]), {"claims"}),
    "an empty list of claims": (pod(containers=[BARE], resourceClaims=[]), {"claims"}),
    "claims of a container": (pod(containers=[container(claims=[{"name": "c"}])]), {"claims"}),
    "pod-level": (pod(containers=[BARE], resources={"limits": {"cpu": 1}}), {"pod-level"}),
    "overhead": (pod(containers=[BARE], overhead={"cpu": 1}), {"pod-level"}),
}


def test_a_pod_without_the_concerns_of_a_policy_is_skipped():
    found = {
        name: {word for word in RESOURCE_CONCERNS if not answer(request(obj), concerned(word)).allowed}
        for name, (obj, _) in ROWS.items()
    }
    assert found == {name: words for name, (_, words) in ROWS.items()}


def of_templates(word, **spec):
    annotations = {"concerns": word, "expand": "pods, patches"}
    return validating("false", annotations=annotations, matchConditions=ALWAYS, **spec)


def test_a_pod_template_without_the_concerns_of_a_policy_is_skipped():
    found = {
        name: {
            word for word in RESOURCE_CONCERNS if not answer(request(job(**obj["spec"])), of_templates(word)).allowed
        }
        for name, (obj, _) in ROWS.items()
    }
    assert found == {name: words for name, (_, words) in ROWS.items()}


def test_the_old_template_of_an_update_counts_too():
    bare, claims = (job(**ROWS[name][0]["spec"]) for name in ("nothing", "claims"))
    assert not answer(request(bare, "UPDATE", claims), of_templates("claims")).allowed
    assert answer(request(bare, "UPDATE", bare), of_templates("claims")).allowed


def test_a_deleted_template_is_left_to_the_match_conditions():
    rule = {**PODS, "operations": ["DELETE"]}
    assert not answer(request(None, "DELETE", job(containers=[BARE])), of_templates("claims", rule=rule)).allowed


def test_a_patch_of_a_template_is_left_to_the_match_conditions():
    patch = {"spec": {"template": {"spec": {"nodeSelector": {"a": "b"}}}}}
    jobs = {"replicatedJobs": [{"name": "node", "template": patch}]}
    patches = [{"manager": "a/b", "trainingRuntimeSpec": {"template": {"spec": jobs}}}]
    train_job = {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "TrainJob",
        "metadata": {"name": "t", "namespace": "team"},
        "spec": {"runtimeRef": {"name": "torch"}, "runtimePatches": patches},
    }
    assert not answer(request(train_job), of_templates("claims")).allowed


def test_the_explanation_of_a_template_names_the_concerns():
    trace = ReviewTrace()
    told = answer(request(job(containers=[BARE])), of_templates("claims"), trace=trace).explanations
    assert ("condition is false", "annotation `claimgate.dev/concerns`: the pod has no claims") in [
        (each.outcome, each.reason) for each in told
    ]


def test_the_old_pod_of_an_update_counts_too():
    bare, claims = ROWS["nothing"][0], ROWS["claims"][0]
    assert not answer(request(bare, "UPDATE", claims), concerned("claims")).allowed
    assert answer(request(bare, "UPDATE", bare), concerned("claims")).allowed


def test_a_concern_that_is_unknown_is_left_to_the_match_conditions():
    assert not answer(request(ROWS["nothing"][0]), concerned("claims, queues")).allowed


def test_a_policy_without_conditions_is_evaluated_on_every_pod():
    assert not answer(request(ROWS["nothing"][0]), validating("false", annotations={"concerns": "claims"})).allowed


def test_an_explanation_names_the_concerns_that_the_pod_lacks():
    trace = ReviewTrace()
    told = answer(request(ROWS["nothing"][0]), concerned("claims, devices"), trace=trace).explanations
    assert [(each.outcome, each.reason) for each in told] == [
        ("condition is false", "annotation `claimgate.dev/concerns`: the pod has no claims or devices")
    ]


@pytest.mark.parametrize("word", sorted(RESOURCE_CONCERNS))
def test_every_object_of_a_registered_webhook_is_evaluated(word):
    draw, text = random.Random(f"concerns {word}"), concerns_condition([word], "o.?spec", [])
    registered = validating("false", name="w", matchConditions=[{"name": "w", "expression": text}])
    seen = set()
    for _ in range(100):
        attributes = request(_pod(draw), is_decoded=True)
        is_asked = not answer(attributes, concerned(word)).allowed
        is_registered = not answer(attributes, registered).allowed
        assert is_asked or not is_registered, attributes.object
        seen.add(is_registered)
    assert seen == {True, False}


def _pod(draw):
    names = ["cpu", "memory", "gpu", "nvidia.com/gpu", "hugepages-1Gi"]

    def resources():
        given = {part: {draw.choice(names): "1"} for part in ("limits", "requests") if draw.random() < 0.3}
        return {**given, **({"claims": [{"name": "c"}]} if draw.random() < 0.1 else {})}

    def containers():
        return [{**BARE, **({"resources": resources()} if draw.random() < 0.5 else {})} for _ in range(2)]

    others = {"resourceClaims": [{"name": "c"}], "resources": {"limits": {"cpu": "1"}}, "overhead": {}}
    spec = {"containers": containers(), **{name: value for name, value in others.items() if draw.random() < 0.1}}
    for name in ("initContainers", "ephemeralContainers"):
        if draw.random() < 0.2:
            spec[name] = containers()
    return pod(**spec)


def test_a_pod_without_time_to_read_its_resources_gets_the_failure_policy():
    attributes = request(pod(containers=[container(limits={f"a/{i}": 1 for i in range(500)})]))
    listed = policies(concerned("devices", name="a"), concerned("claims", name="b", failurePolicy="Ignore"))
    verdict = answer_request(attributes, listed, CLUSTER, phase=Phase.VALIDATE, deadline=Deadline(0.0, BudgetExceeded))
    assert [(each.policy, each.action, each.evaluation) for each in verdict.decisions] == [
        ("a", "deny", "error"),
        ("b", "admit", "error"),
    ]
