"""Which decisions a review has if its timeout ends the evaluation of an object, and for a very large object."""

import contextlib
import gc
from functools import partial

import pytest
from msgspec.structs import replace

from tests.literals import mutating, policies, request, validating
from tests.rows import some_quickly
from webhook.admission.review import answer_request
from webhook.apimachinery.attributes import Phase
from webhook.cluster.files import FilesCluster
from webhook.deadline import OVER_TIME, Deadline
from webhook.errors import BudgetExceeded, InlineBudgetSpent
from webhook.evaluation.decision_list import MOST_ADMITTED, MOST_SPOKEN, DecisionList
from webhook.evaluation.mutating import apply_mutating_policies
from webhook.evaluation.request_context import RequestContext, request_context
from webhook.evaluation.validating import validating_decisions
from webhook.rules.decisions import Decision

EXPAND = {"expand": "pods"}
NAMESPACE = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}}
CLUSTER = FilesCluster([NAMESPACE])
PAST = -1.0


class After(Deadline):
    def __init__(self, looks, overrun=None):
        super().__init__(*([PAST, overrun] if overrun else [PAST]))
        self.looks = looks

    def check_clock(self):
        self.looks -= 1
        if self.looks < 0:
            super().check_clock()
        self.left = 0


def ray(number, **spec):
    groups = [{"groupName": f"g{i}", "template": {"spec": {"containers": [], **spec}}} for i in range(number)]
    metadata = {"name": "x", "namespace": "team"}
    return {"apiVersion": "ray.io/v1", "kind": "RayCluster", "metadata": metadata, "spec": {"workerGroupSpecs": groups}}


def checked(found, number=300, deadline=None):
    return validating_decisions(
        request_context(found, request(ray(number)), CLUSTER, deadline or Deadline(PAST)), Phase.VALIDATE
    )


@pytest.mark.parametrize(("failure", "action", "code"), [("Fail", "deny", 422), ("Ignore", "admit", 0)])
def test_each_policy_reports_the_deadline_once(failure, action, code):
    found = policies(
        validating("true", name="a", annotations=EXPAND, failurePolicy=failure, actions=("Warn",)),
        validating("true", name="b", annotations=EXPAND, failurePolicy=failure, actions=("Warn",)),
    )
    made = checked(found)
    assert [(each.policy, each.binding, each.message) for each in made] == [
        ("a", "a-b", OVER_TIME),
        ("b", "b-b", OVER_TIME),
    ]
    assert {(each.evaluation, each.action, each.code, each.actions) for each in made} == {
        ("error", action, code, ("Warn",))
    }


@pytest.mark.parametrize("looks", range(3, 40, 4))
def test_an_object_is_not_read_further_after_the_deadline(looks):
    found = policies(validating("object.spec.containers.size() == 0", annotations=EXPAND))
    made = checked(found, deadline=After(looks))
    assert [each.evaluation for each in made].count("error") == 1
    assert made[-1].evaluation == "error"
    assert OVER_TIME in made[-1].message


def test_a_timeout_in_matching_a_binding_is_an_error_of_the_policy():
    rules = [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"], "resources": ["pods"]}]
    found = policies(validating("true", annotations=EXPAND, binding={"matchResources": {"resourceRules": rules}}))
    seen = {checked(found, deadline=After(looks))[-1].message for looks in range(1, 20)}
    assert OVER_TIME in seen
    assert all(each.endswith(OVER_TIME) for each in seen)


def test_the_event_loop_s_own_limit_passes_through():
    found = policies(validating("true", annotations=EXPAND), mutating('[JSONPatch{op: "test", path: "/x"}]'))
    late = Deadline(PAST, InlineBudgetSpent)
    with pytest.raises(InlineBudgetSpent):
        checked(found, deadline=late)
    with pytest.raises(InlineBudgetSpent):
        _ = late.is_over


@pytest.mark.parametrize("overrun", [None, InlineBudgetSpent])
@pytest.mark.parametrize("looks", some_quickly([0, 4, 8, 30], 3))
def test_an_interrupted_review_leaves_nothing_for_the_garbage_collector(looks, overrun):
    rule = "true"
    found = policies(validating(rule, annotations=EXPAND), mutating(LABEL, annotations=EXPAND))
    gc.collect()
    gc.disable()
    try:
        for act in (apply_mutating_policies, partial(validating_decisions, phase=Phase.VALIDATE)):
            with contextlib.suppress(InlineBudgetSpent):
                act(request_context(found, request(ray(300)), CLUSTER, After(looks, overrun)))
        assert [each for each in gc.get_objects() if isinstance(each, RequestContext | BudgetExceeded)] == []
    finally:
        gc.enable()


LABEL = 'Object{metadata: Object.metadata{labels: {"a": "b"}}}'


@pytest.mark.parametrize(("failure", "action"), [("Fail", "deny"), ("Ignore", "admit")])
@pytest.mark.parametrize("looks", [0, 4, 8, 30])
def test_a_mutation_that_is_interrupted_fails_once(failure, action, looks):
    found = policies(mutating(LABEL, annotations=EXPAND, failurePolicy=failure))
    _, made = apply_mutating_policies(request_context(found, request(ray(300)), CLUSTER, After(looks)))
    failed = [each for each in made if each.evaluation == "error"]
    assert [(each.policy, each.action) for each in failed] == [("m", action)]
    assert OVER_TIME in failed[0].message


def test_conditions_of_mutations_are_interrupted_too():
    conditions = [{"name": "c", "expression": "object.spec.containers.all(c, true)"}]
    found = policies(mutating(LABEL, annotations=EXPAND, matchConditions=conditions))
    for looks in range(0, 30, 3):
        _, made = apply_mutating_policies(request_context(found, request(ray(300)), CLUSTER, After(looks)))
        assert [each.evaluation for each in made].count("error") == 1


@pytest.mark.parametrize(("failure", "allowed"), [("Fail", False), ("Ignore", True)])
def test_a_patch_that_cannot_be_finished_is_the_policy_s_failure(failure, allowed):
    found = policies(mutating(LABEL, annotations=EXPAND, failurePolicy=failure))
    sent = request(ray(20))
    wanted, looks = [], 0
    while not wanted:
        looks += 1
        verdict = answer_request(sent, found, CLUSTER, phase=Phase.MUTATE, deadline=After(looks))
        made = [each for each in verdict.decisions if each.evaluation == "admit"]
        if len(made) == 20 and not verdict.patch:
            wanted = [each for each in verdict.decisions if each.evaluation == "error"]
    assert verdict.allowed is allowed
    assert [(each.policy, each.message) for each in wanted] == [("m", OVER_TIME)]


def test_thousands_of_templates_are_changed_in_their_places():
    sent = request(ray(3))
    kept = ray(3)
    found = policies(mutating(LABEL, annotations=EXPAND))
    verdict = answer_request(sent, found, CLUSTER, phase=Phase.MUTATE)
    assert sent.object == kept
    assert [each["template"]["metadata"] for each in verdict.patched_object["spec"]["workerGroupSpecs"]] == [
        {"labels": {"a": "b"}}
    ] * 3
    assert len(verdict.patch) == 3


def test_a_whole_object_policy_sees_each_state_as_a_separate_object():
    every = {"apiGroups": ["ray.io"], "apiVersions": ["*"], "operations": ["*"], "resources": ["rayclusters"]}
    note = (
        'Object{metadata: Object.metadata{annotations: {"%s": string(podSets.filter(p, '
        '"metadata" in p.template && "labels" in p.template.metadata).size())}}}'
    )
    found = policies(
        mutating(note % "before", name="a", rule=every, annotations={"facts": "podSets"}),
        mutating(LABEL, name="b", annotations=EXPAND),
        mutating(note % "between", name="c", rule=every, annotations={"facts": "podSets"}),
        mutating(LABEL.replace('"a"', '"c"'), name="d", annotations=EXPAND),
    )
    verdict = answer_request(request(ray(2)), found, CLUSTER, phase=Phase.MUTATE)
    assert verdict.patched_object["metadata"]["annotations"] == {"before": "0", "between": "2"}
    assert verdict.patched_object["spec"]["workerGroupSpecs"][1]["template"]["metadata"]["labels"] == {
        "a": "b",
        "c": "b",
    }


ADMIT = Decision(policy="p", binding="b", index=0, evaluation="admit")
DENY = replace(ADMIT, evaluation="deny", message="no")


def test_the_decisions_about_one_object_are_bounded():
    made = DecisionList()
    made.add([ADMIT] * (MOST_ADMITTED + 5))
    made.add([DENY] * (MOST_SPOKEN + 5))
    assert [each.evaluation for each in made.decisions].count("admit") == MOST_ADMITTED
    assert [each.evaluation for each in made.decisions].count("deny") == MOST_SPOKEN + 1


def test_the_first_decision_of_a_late_rule_is_kept():
    made = DecisionList()
    made.add([DENY] * MOST_SPOKEN)
    made.add([replace(DENY, index=1), replace(DENY, policy="q"), replace(ADMIT, audit_annotations={"a": "b"})])
    made.add([replace(DENY, index=1)])
    assert [(each.policy, each.index) for each in made.decisions[MOST_SPOKEN:]] == [("p", 1), ("q", 0), ("p", 0)]
