"""Order, failure and reinvocation of mutating policies, as in k8s.io/apiserver v0.36 mutating/dispatcher.go."""

import pytest

from tests.literals import CONFIG_MAPS, mutating, namespace, policies, request, validating
from webhook.admission.review import answer_request
from webhook.apimachinery.attributes import Phase
from webhook.cluster.files import FilesCluster
from webhook.evaluation.mutating import apply_mutating_policies
from webhook.evaluation.request_context import request_context
from webhook.evaluation.review_options import ReviewOptions

CLUSTER = FilesCluster([namespace()])
MAP = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "namespace": "team"}, "data": {"k": "v"}}


def append(text, name="m", **spec):
    return mutating(
        f'[JSONPatch{{op: "add", path: "/data/k", value: object.data.k + "{text}"}}]',
        name=name,
        rule=CONFIG_MAPS,
        **spec,
    )


def changed(*lists, obj=MAP, **more):
    found, decisions = apply_mutating_policies(request_context(policies(*lists), request(obj, **more), CLUSTER))
    return found, decisions


def test_policies_run_in_the_order_of_their_names_and_see_each_other():
    found, decisions = changed(append("b", "b"), append("a", "a"))
    assert found["data"]["k"] == "vab"
    assert [(decision.policy, decision.kind, decision.index) for decision in decisions] == [
        ("a", "mutating", 0),
        ("b", "mutating", 0),
    ]


def test_if_needed_runs_once_more_after_any_change():
    found, _ = changed(append("a", "a", reinvocationPolicy="IfNeeded"), append("b", "b"))
    assert found["data"]["k"] == "vaba"
    found, _ = changed(append("a", reinvocationPolicy="IfNeeded"))
    assert found["data"]["k"] == "vaa"


def test_a_condition_that_became_false_stops_the_second_run():
    conditions = [{"name": "c", "expression": "object.data.k == 'v'"}]
    found, _ = changed(append("a", reinvocationPolicy="IfNeeded", matchConditions=conditions))
    assert found["data"]["k"] == "va"


def test_a_denial_is_not_run_again():
    broken = mutating("Object{data: {'x': object.data.nope}}", name="b", rule=CONFIG_MAPS)
    _, decisions = changed(append("a", "a", reinvocationPolicy="IfNeeded"), broken)
    assert [decision.action for decision in decisions] == ["admit", "deny"]


def test_an_error_does_not_stop_the_mutations_after_it():
    texts = ('Object{data: {"a": "1"}}', "Object{data: {'x': object.data.nope}}", 'Object{data: {"b": "2"}}')
    found, decisions = changed(mutating(*texts, rule=CONFIG_MAPS, failurePolicy="Ignore"))
    assert found["data"] == {"k": "v", "a": "1", "b": "2"}
    assert [(decision.evaluation, decision.action, decision.code) for decision in decisions] == [
        ("admit", "admit", 0),
        ("error", "admit", 0),
        ("admit", "admit", 0),
    ]


def test_a_failure_denies_and_leaves_no_patch():
    texts = ('Object{data: {"a": "1"}}', "Object{data: {'x': object.data.nope}}")
    verdict = answer_request(request(MAP), policies(mutating(*texts, rule=CONFIG_MAPS)), CLUSTER, phase=Phase.MUTATE)
    assert (verdict.allowed, verdict.patch, verdict.status.code, verdict.status.reason) == (False, (), 403, "Invalid")


def test_an_undecodable_object_fails_the_request_under_ignore_and_nothing_runs_after_it():
    broken = mutating(
        '[JSONPatch{op: "add", path: "/nope", value: 1}]', name="a", rule=CONFIG_MAPS, failurePolicy="Ignore"
    )
    _, (decision,) = changed(broken, append("b", "b"))
    assert (decision.policy, decision.action, decision.code, decision.reason) == ("a", "deny", 500, "InternalError")


def test_a_missing_param_is_forbidden_before_any_evaluation():
    kind = {"apiVersion": "v1", "kind": "Secret"}
    chosen = {"paramRef": {"name": "x", "parameterNotFoundAction": "Deny"}}
    lacking = mutating("Object{}", name="z", rule=CONFIG_MAPS, paramKind=kind, binding=chosen)
    _, decisions = changed(append("a", "a"), lacking)
    assert [(decision.policy, decision.reason) for decision in decisions] == [("z", "Forbidden"), ("a", "")]


def test_a_selector_on_an_unknown_namespace_is_an_error_of_the_policy():
    constraints = {"resourceRules": [CONFIG_MAPS], "namespaceSelector": {"matchLabels": {"a": "b"}}}
    found = policies(mutating("Object{}", rule=CONFIG_MAPS, matchConstraints=constraints))
    _, (decision,) = apply_mutating_policies(request_context(found, request(MAP), FilesCluster()))
    assert (decision.binding, decision.message) == ("", 'failed to configure policy: namespaces "team" not found')


def test_a_failing_condition_denies():
    _, (decision,) = changed(append("a", matchConditions=[{"name": "c", "expression": "object.x == 1"}]))
    assert (decision.code, decision.index) == (403, None)


def test_a_binding_restricts_its_policy():
    chosen = {"matchResources": {"objectSelector": {"matchLabels": {"a": "b"}}}}
    found, decisions = changed(append("a", binding=chosen))
    assert (found, decisions) == (MAP, ())


def test_deletions_and_policies_and_requests_without_an_object_are_not_changed():
    everything = {**CONFIG_MAPS, "apiGroups": ["*"], "operations": ["*"], "resources": ["*"]}
    found = policies(mutating("Object{}", rule=everything))
    own = {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingAdmissionPolicy"}
    for sent in (
        request(None, "DELETE", MAP),
        request(None, "CONNECT", MAP),
        request(own, resource="mutatingadmissionpolicies"),
    ):
        assert apply_mutating_policies(request_context(found, sent, CLUSTER)) == (sent.object, ())


def test_an_object_that_no_policy_matches_is_not_changed():
    assert changed(append("a"), obj={"apiVersion": "v1", "kind": "Secret"})[1] == ()


def test_several_policies_make_one_minimal_patch_of_the_sent_object():
    labels = mutating('Object{metadata: Object.metadata{labels: {"x": "y"}}}', name="l", rule=CONFIG_MAPS)
    verdict = answer_request(request(MAP), policies(append("a", "a"), labels), CLUSTER, phase=Phase.MUTATE)
    assert verdict.patch == (
        {"op": "add", "path": "/metadata/labels", "value": {"x": "y"}},
        {"op": "replace", "path": "/data/k", "value": "va"},
    )
    assert MAP["data"] == {"k": "v"}


def test_a_denial_on_the_object_as_submitted_comes_before_any_mutation():
    early = validating(
        {"expression": "object.data.k == 'va'", "message": "as submitted", "reason": "BadRequest"},
        rule=CONFIG_MAPS,
        annotations={"phase": "mutate"},
    )
    verdict = answer_request(request(MAP), policies(early, append("a")), CLUSTER, phase=Phase.MUTATE)
    assert (verdict.allowed, verdict.status.code, verdict.patch) == (False, 400, ())
    assert verdict.status.message == "as submitted (policy v)"


def test_warnings_of_the_mutating_phase_come_with_the_patch():
    early = validating(
        {"expression": "false", "message": "careful"},
        rule=CONFIG_MAPS,
        annotations={"phase": "mutate"},
        actions=["Warn"],
    )
    verdict = answer_request(request(MAP), policies(early, append("a")), CLUSTER, phase=Phase.MUTATE)
    assert (verdict.allowed, len(verdict.patch), verdict.warnings) == (True, 1, ("careful (policy v)",))


def test_users_are_warned_of_what_each_policy_changed_if_the_site_wants_it():
    keys = ", ".join(
        f'{{op: "add", path: "/data/{key}", value: "x"}}'.replace("{op", "JSONPatch{op") for key in "abcde"
    )
    many = mutating(f"[{keys}]", name="z", rule=CONFIG_MAPS)
    nothing = mutating("Object{}", name="b", rule=CONFIG_MAPS)
    asked = [request(MAP), policies(append("a", "a"), nothing, many), CLUSTER]
    warned = ReviewOptions(warn_of_mutations=True)
    verdict = answer_request(*asked, phase=Phase.MUTATE, options=warned)
    assert verdict.warnings == (
        "changed data.k (policy a)",
        "changed data.a, data.b, data.c and 2 more fields (policy z)",
    )
    assert verdict.audit_annotations == {
        "a/applied": "changed data.k",
        "z/applied": "changed data.a, data.b, data.c and 2 more fields",
    }
    assert answer_request(*asked, phase=Phase.MUTATE).warnings == ()
    audited = ReviewOptions(warn_of_mutations=True, enforcement_action="audit")
    assert answer_request(*asked, phase=Phase.MUTATE, options=audited).warnings == ()


def warnings_of_changes(*asked):
    asked = [request(MAP), policies(*asked), CLUSTER]
    return answer_request(*asked, phase=Phase.MUTATE, options=ReviewOptions(warn_of_mutations=True)).warnings


def test_a_policy_has_one_warning_for_all_its_changes_with_its_description():
    twice = mutating('Object{data: {"k": "w"}}', 'Object{data: {"0": "zero", "a/b": "x"}}', rule=CONFIG_MAPS)
    twice[0]["metadata"]["annotations"]["kubernetes.io/description"] = "Sets what\n  k needs. Only for maps."
    assert warnings_of_changes(twice) == ('changed data.k, data["0"], data["a/b"]: Sets what k needs (policy m)',)


def test_a_warning_of_long_paths_names_the_policy():
    long = mutating(f'Object{{data: {{"{"a" * 250}": "x", "{"b" * 250}": "y"}}}}', rule=CONFIG_MAPS)
    (warning,) = warnings_of_changes(long)
    assert warning.startswith("changed data.aaa")
    assert warning.endswith("a and 1 more field (policy m)")
    assert len(warning) < 300


def test_a_denied_request_has_no_warning_of_changes():
    denied = mutating('Object{data: {"k": object.data.missing}}', name="z", rule=CONFIG_MAPS)
    asked = [request(MAP), policies(append("a", "a"), denied), CLUSTER]
    verdict = answer_request(*asked, phase=Phase.MUTATE, options=ReviewOptions(warn_of_mutations=True))
    assert (verdict.allowed, verdict.warnings) == (False, ())


def test_without_a_mutation_there_is_no_patch():
    verdict = answer_request(
        request(MAP), policies(mutating("Object{}", rule=CONFIG_MAPS)), CLUSTER, phase=Phase.MUTATE
    )
    assert (verdict.allowed, verdict.patch) == (True, ())
    assert answer_request(request(MAP), policies(), CLUSTER, phase=Phase.MUTATE).patched_object == MAP


def test_a_changed_object_is_returned_in_the_version_that_was_sent():
    rule = {
        "apiGroups": ["coordination.k8s.io"],
        "apiVersions": ["v1beta1"],
        "operations": ["*"],
        "resources": ["leases"],
    }
    lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "l", "namespace": "team"}}
    found, _ = changed(
        mutating('Object{metadata: Object.metadata{labels: {"v": object.apiVersion}}}', rule=rule), obj=lease
    )
    assert found["apiVersion"] == "coordination.k8s.io/v1"
    assert found["metadata"]["labels"] == {"v": "coordination.k8s.io/v1beta1"}


@pytest.mark.parametrize(("policy", "action"), [("Fail", "deny"), ("Ignore", "admit")])
def test_an_object_that_cannot_be_converted_is_not_mutated_and_reported(policy, action):
    rule = {
        "apiGroups": ["autoscaling"],
        "apiVersions": ["v2"],
        "operations": ["*"],
        "resources": ["horizontalpodautoscalers"],
    }
    scaler = {"apiVersion": "autoscaling/v1", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "h"}}
    found, (decision,) = changed(mutating("Object{}", rule=rule, failurePolicy=policy), obj=scaler)
    assert (found, decision.evaluation, decision.action, decision.warns_user) == (scaler, "error", action, True)
    assert decision.message.startswith("the policy names v2 of horizontalpodautoscalers.autoscaling")


def test_kinds_with_field_by_field_conversion_are_not_mutated():
    """For such a kind, the mutated claim would have to be converted back to v1beta1, so the claim is not mutated."""
    rule = {
        "apiGroups": ["resource.k8s.io"],
        "apiVersions": ["v1beta1"],
        "operations": ["*"],
        "resources": ["resourceclaims"],
    }
    claim = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": "c", "namespace": "team"},
    }
    found, (decision,) = changed(mutating("Object{}", rule=rule), obj=claim)
    assert (found, decision.evaluation, decision.action) == (claim, "error", "deny")


DOUBLED = [{"name": "v0", "expression": "['text']"}] + [
    {"name": f"v{n}", "expression": f"[variables.v{n - 1}, variables.v{n - 1}]"} for n in range(1, 60)
]
NESTED = [{"name": "v0", "expression": "{'x': 'y'}"}] + [
    {"name": f"v{n}", "expression": f"{{'x': {{'x': {{'x': variables.v{n - 1}}}}}}}"} for n in range(1, 80)
]


@pytest.mark.parametrize(
    "change",
    [
        '[JSONPatch{op: "add", path: "/data/x", value: variables.v59}]',
        "Object{data: {'x': variables.v59}}",
    ],
)
def test_a_value_that_names_its_parts_again_and_again_is_not_written(change):
    """Each of sixty variables has the previous variable twice. As JSON, the last value would be larger than any
    memory.
    """
    policy = mutating(change, rule=CONFIG_MAPS, variables=DOUBLED)
    found, (decision,) = changed(policy)
    assert found is MAP
    assert decision.message == "the value of the expression has more than 3 MiB as JSON"
    few = mutating(change.replace("v59", "v3"), rule=CONFIG_MAPS, variables=DOUBLED)
    assert "3 MiB" not in changed(few)[1][0].message


@pytest.mark.parametrize(
    "change",
    ['[JSONPatch{op: "add", path: "/data/x", value: variables.v79}]', "Object{data: variables.v79}"],
)
def test_a_value_deeper_than_objects_are_read_is_not_written(change):
    found, (decision,) = changed(mutating(change, rule=CONFIG_MAPS, variables=NESTED))
    assert found is MAP
    assert decision.message == "the value of the expression is nested deeper than 200 levels"


@pytest.mark.parametrize("failure_policy, allowed", [("Fail", False), ("Ignore", True)])
def test_a_patch_larger_than_any_object_is_an_error_of_the_policies_that_made_it(failure_policy, allowed):
    """A policy copies a text of the object to many places, so 200 KB of a user become 240 MB."""
    copied = "[] + object.data.places.split(' ').map(p, JSONPatch{op: 'add', path: '/data/' + p, value: object.data.k})"
    policy = mutating(copied, rule=CONFIG_MAPS, failurePolicy=failure_policy)
    obj = {**MAP, "data": {"k": "v" * 20_000, "places": " ".join(f"p{n}" for n in range(50))}}
    assert len(answer_request(request(obj), policies(policy), CLUSTER, phase=Phase.MUTATE).patch) == 50
    large = {**MAP, "data": {"k": "v" * 1_600_000, "places": "p1"}}
    assert answer_request(request(large), policies(policy), CLUSTER, phase=Phase.MUTATE).allowed
    for many in (
        {**MAP, "data": {"k": "v" * 200_000, "places": " ".join(f"p{n}" for n in range(1200))}},
        {**MAP, "data": {"k": "v" * 1_600_000, "places": "p1 p2 p3"}},
    ):
        verdict = answer_request(request(many), policies(policy), CLUSTER, phase=Phase.MUTATE)
        assert (verdict.allowed, verdict.patch) == (allowed, ())
        assert "3 MiB as JSON" in str([each.message for each in verdict.decisions])


def test_the_patches_of_several_mutations_count_together():
    add = [f"[JSONPatch{{op: 'add', path: '/data/{name}', value: object.data.k}}]" for name in "abc"]
    obj = {**MAP, "data": {"k": "v" * 1_600_000}}
    for changes, allowed in ((add[:1], True), (add, False)):
        policy = policies(mutating(*changes, rule=CONFIG_MAPS))
        verdict = answer_request(request(obj), policy, CLUSTER, phase=Phase.MUTATE)
        assert verdict.allowed is allowed
    assert verdict.status.message == "the patch of all policies has more than 3 MiB as JSON (policy m)"
