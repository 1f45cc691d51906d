"""Mutations with unusual values, and other rare cases that no recorded case reaches."""

import pytest

from tests.literals import (
    TABLE,
    job,
    mutating,
    namespace,
    pod,
    policies,
    request,
    validating,
)
from webhook.apimachinery.attributes import GroupVersionKind, Phase
from webhook.cel.cost import RUNTIME_BUDGET
from webhook.cel.library.optional_value import Optional
from webhook.cel.values import Duration, Struct
from webhook.cluster.files import FilesCluster
from webhook.errors import EvaluationError, PatchError
from webhook.evaluation import patch_values as patchvalues
from webhook.evaluation.cost_budget import CostBudget, LazyVariables
from webhook.evaluation.mutating import apply_mutating_policies
from webhook.evaluation.mutations import refresh_target, with_changed_pod
from webhook.evaluation.request_context import request_context
from webhook.evaluation.request_objects import EvaluationTarget
from webhook.evaluation.typed_input import UndecodableObject, decode_patched_object
from webhook.evaluation.validating import validating_decisions
from webhook.policy.compiled import Expression
from webhook.policy.matching import match_of_unconverted
from webhook.workloads.podsets import pod_templates

POD_KIND = GroupVersionKind("", "v1", "Pod")
CLUSTER = FilesCluster([namespace()])


@pytest.mark.parametrize(
    ("nanoseconds", "text"),
    [
        (0, "0s"),
        (1, "1ns"),
        (1_500, "1.5µs"),
        (-20_000_000, "-20ms"),
        (1_500_000_000, "1.5s"),
        (90_000_000_000, "1m30s"),
        (3_600_000_000_000, "1h0m0s"),
    ],
)
def test_a_duration_prints_as_in_go(nanoseconds, text):
    assert patchvalues.go_duration(nanoseconds) == text
    assert patchvalues.apply_configuration_of_value(Struct("Object", [("x", Duration(nanoseconds))]))["x"].text == text


def test_a_map_with_other_keys_is_not_a_configuration():
    from webhook.cel.values import make_map

    with pytest.raises(PatchError, match='invalid return type: fail to convert field "x": map key'):
        patchvalues.apply_configuration_of_value(Struct("Object", [("x", make_map([(1, 2)]))]))


def test_an_absent_optional_is_not_json():
    with pytest.raises(PatchError, match=r"optional\.none"):
        patchvalues.json_value(Optional(None, present=False))


def test_a_text_in_place_of_a_map_is_named_with_its_go_type():
    before = {"kind": "Pod", "apiVersion": "v1", "spec": {"containers": [{"name": "a"}]}}
    for patched, text in (
        ({"containers": [{"name": "a"}], "hostAliases": "x"}, r"PodSpec.spec.hostAliases of type \[\]v1.HostAlias"),
        ({"containers": [{"name": True}]}, "Container.spec.containers.name of type string"),
    ):
        with pytest.raises(UndecodableObject, match=text):
            decode_patched_object({**before, "spec": patched}, before, POD_KIND)


def test_a_null_counts_as_absent():
    before = {"kind": "Pod", "apiVersion": "v1", "spec": {}}
    assert decode_patched_object({**before, "spec": {"nodeName": None}}, before, POD_KIND)["spec"] == {}


class Names(dict[str, object]):
    """The names and values that an expression can read."""


def test_the_error_of_a_variable_that_does_not_compile_is_kept():
    budget = CostBudget(RUNTIME_BUDGET, None)
    variables = LazyVariables({"x": Expression("1 +", error="compilation failed")}, Names(), budget)
    for _ in range(2):
        with pytest.raises(EvaluationError, match='composited variable "x" fails to compile'):
            variables["x"]
    assert "y" not in variables
    with pytest.raises(EvaluationError, match="compilation error: why"):
        budget.evaluate(Expression("1 +", error="why"), {})


def test_a_failing_audit_annotation_is_left_out_under_ignore():
    audits = [{"key": "k", "valueExpression": "string(object.x)"}]
    found = policies(validating("true", auditAnnotations=audits, failurePolicy="Ignore"))
    (decision,) = validating_decisions(request_context(found, request(pod()), CLUSTER), Phase.VALIDATE)
    assert decision.audit_annotations == {}


def test_a_fact_that_no_expression_reads_is_not_computed():
    found = policies(
        validating("true", annotations={"facts": "dra"}),
        name := validating("podSets.size() == 1", name="p", annotations={"facts": "podSets, gpu"}),
    )
    assert name
    decisions = validating_decisions(request_context(found, request(pod(containers=[])), CLUSTER), Phase.VALIDATE)
    assert {decision.evaluation for decision in decisions} == {"admit"}


def test_a_template_that_is_no_longer_an_object_is_skipped():
    obj = job()
    (podset,) = pod_templates(obj, TABLE)
    sent = request(obj)
    target = EvaluationTarget(
        sent,
        match_of_unconverted(sent),
        obj,
        None,
        obj,
        podset,
    )
    assert refresh_target(target, {**obj, "spec": {"template": "text"}}) is None
    changed = refresh_target(target, {**obj, "spec": {"template": {"spec": {"a": 1}}}})
    assert changed.object["spec"] == {"a": 1}
    assert with_changed_pod(obj, target, target.object) is obj


def test_a_spec_that_a_mutation_removes_is_gone():
    texts = ['[JSONPatch{op: "remove", path: "/spec"}]', "Object{}"]
    found = policies(mutating(*texts, annotations={"expand": "pods"}))
    changed, decisions = apply_mutating_policies(request_context(found, request(job(a=1)), CLUSTER))
    assert [decision.action for decision in decisions] == ["admit", "admit"]
    assert changed["spec"]["template"] == {}
