"""`expand: objects` applies a policy to objects inside other objects. Messages have the whole path."""

from __future__ import annotations

import pytest

from tests.literals import mutating, namespace, policies, request, validating
from tests.workloads.test_embedded import optimization, wrapper
from webhook.apimachinery.attributes import Phase
from webhook.cluster.files import FilesCluster
from webhook.errors import PolicyError
from webhook.evaluation.request_context import request_context
from webhook.evaluation.validating import validating_decisions
from webhook.export.webhook_rules import webhook_rules

ENTER = {"expand": "objects"}
RULE = {
    "apiGroups": ["trainer.kubeflow.org"],
    "apiVersions": ["v1alpha1"],
    "operations": ["CREATE", "UPDATE"],
    "resources": ["trainjobs"],
}
CLUSTER = FilesCluster([namespace()])


def decide(*said, obj, old=None, operation="CREATE", rule=RULE, annotations=ENTER):
    found = policies(validating(*said, rule=rule, annotations=annotations))
    obj = obj and {**obj, "metadata": {"name": "o", "namespace": "team"}}
    return validating_decisions(
        request_context(found, request(obj, operation=operation, old=old), CLUSTER), Phase.VALIDATE
    )


JOB = {"spec": {"trainer": {"numNodes": 2}}}
DENIED = {"expression": "false", "message": "spec.trainer.numNodes: too many; spec.suspend: no"}


def test_an_embedded_object_is_evaluated_and_its_path_reported():
    (found,) = decide(DENIED, obj=optimization(trainJobTemplate=JOB))
    assert found.path == "spec.trainJobTemplate.spec.trainer.numNodes"
    assert found.message == (
        "spec.trainJobTemplate.spec.trainer.numNodes: too many; spec.trainJobTemplate.spec.suspend: no"
    )


def test_an_embedded_object_with_a_kind_keeps_its_kind():
    inner = {"apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainJob", "metadata": {"name": "t"}, **JOB}
    (found,) = decide("object.metadata.namespace == 'x'", obj=wrapper({"apiVersion": "v1", "kind": "Pod"}, inner))
    assert (found.evaluation, found.path) == ("deny", "spec.components[1].template")


@pytest.mark.parametrize("version", [{}, {"apiVersion": ["v1"]}, {"apiVersion": 1}], ids=str)
def test_an_embedded_pod_without_a_valid_version_does_not_stop_other_objects(version):
    job = {"apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainJob", "metadata": {"name": "t"}, **JOB}
    (found,) = decide("object.metadata.namespace == 'x'", obj=wrapper({"kind": "Pod", **version}, job))
    assert (found.evaluation, found.path) == ("deny", "spec.components[1].template")


def test_an_embedded_object_has_kind_and_namespace_and_the_request_is_unchanged():
    text = "object.apiVersion + object.kind + object.metadata.namespace + request.kind.kind + request.name"
    (found,) = decide(
        {"expression": "false", "messageExpression": f"string({text})"}, obj=optimization(trainJobTemplate=JOB)
    )
    assert found.message.endswith("trainer.kubeflow.org/v1alpha1TrainJobteamOptimizationJobo")


def test_an_update_has_the_previous_embedded_object():
    old = optimization(trainJobTemplate={"spec": {"trainer": {"numNodes": 1}}})
    (found,) = decide(
        "object.spec.trainer.numNodes == oldObject.spec.trainer.numNodes",
        obj=optimization(trainJobTemplate=JOB),
        old={**old, "metadata": {"name": "o", "namespace": "team"}},
        operation="UPDATE",
    )
    assert found.evaluation == "deny"


def test_a_delete_evaluates_the_old_object():
    old = {**optimization(trainJobTemplate=JOB), "metadata": {"name": "o", "namespace": "team"}}
    (found,) = decide("object != null", obj=None, old=old, operation="DELETE", rule={**RULE, "operations": ["DELETE"]})
    assert (found.evaluation, found.path) == ("deny", "spec.trainJobTemplate")


def test_without_the_annotation_embedded_objects_are_not_evaluated():
    assert decide(DENIED, obj=optimization(trainJobTemplate=JOB), annotations={}) == ()
    assert decide(DENIED, obj=optimization(trainJobTemplate=None)) == ()


def test_webhook_rules_name_every_kind_that_may_hold_an_embedded_object():
    found = webhook_rules(policies(validating("true", rule=RULE, annotations=ENTER)), Phase.VALIDATE)
    assert {resource for each in found for resource in each.resources} == {
        "appwrappers",
        "experiments",
        "optimizationjobs",
        "trainjobs",
    }


def test_a_mutating_policy_cannot_use_the_annotation_enter():
    with pytest.raises(PolicyError, match="is for validating policies"):
        policies(mutating("Object{}", rule=RULE, annotations=ENTER))


def test_the_annotation_enter_is_an_obstacle_to_the_export():
    (own,) = policies(validating("true", rule=RULE, annotations=ENTER)).validating
    assert own.obstacles == ("is evaluated on objects inside other objects (claimgate.dev/expand)",)
