"""Rules, selectors and matchPolicy: k8s.io/apiserver v0.36 plugin/policy/matching and webhook/predicates."""

from dataclasses import replace

import pytest

from tests.rows import all_rows
from webhook.apimachinery.attributes import Attributes, GroupVersionKind, GroupVersionResource, Operation
from webhook.errors import BindingError, LookupFailed
from webhook.manifests.models import LabelSelector, LabelSelectorRequirement, MatchResources, NamedRule
from webhook.policy.matching import compile_criteria, equivalent_resources, is_exempt, match_request
from webhook.workloads.rows import Row
from webhook.workloads.table import Table

TABLE = Table(
    (Row(group="example.com", versions=("v1", "v1beta1"), kind="Widget", resource="widgets", templates="mutable"),)
)
EQUAL = equivalent_resources(TABLE)


def request(group="", version="v1", resource="pods", kind="Pod", **changes):
    known = {
        "uid": "u",
        "kind": GroupVersionKind(group, version, kind),
        "resource": GroupVersionResource(group, version, resource),
        "operation": Operation.CREATE,
        "request_kind": GroupVersionKind(group, version, kind),
        "request_resource": GroupVersionResource(group, version, resource),
        "namespace": "team",
        "name": "p",
        "object": {"metadata": {"labels": {"a": "b"}}},
    }
    return Attributes(**{**known, **changes})


def rule(**changes):
    return NamedRule(
        **{"api_groups": [""], "api_versions": ["v1"], "operations": ["CREATE"], "resources": ["pods"], **changes}
    )


def asked(attributes, labels=None, **resources):
    found = compile_criteria(MatchResources(**{"resource_rules": [rule()], **resources}))
    return match_request(found, attributes, lambda: labels, EQUAL)


@all_rows(
    ("changes", "attributes", "expected"),
    [
        pytest.param({}, {}, True, id="the plain rule"),
        pytest.param({"operations": ["UPDATE"]}, {}, False, id="another operation"),
        pytest.param({"operations": ["*"]}, {}, True, id="any operation"),
        pytest.param({"api_groups": ["apps"]}, {}, False, id="another group"),
        pytest.param({"api_groups": ["*"]}, {}, True, id="any group"),
        pytest.param({"api_versions": ["v2"]}, {}, False, id="a version that is not served"),
        pytest.param({"resources": ["services"]}, {}, False, id="another resource"),
        pytest.param({"resources": ["*"]}, {}, True, id="any resource"),
        pytest.param({"resources": ["*"]}, {"sub_resource": "exec"}, False, id="* does not match a sub-resource"),
        pytest.param(
            {"resources": ["pods"]}, {"sub_resource": "exec"}, False, id="a resource does not match its sub-resource"
        ),
        pytest.param({"resources": ["pods/exec"]}, {"sub_resource": "exec"}, True, id="the sub-resource"),
        pytest.param({"resources": ["pods/*"]}, {"sub_resource": "exec"}, True, id="every sub-resource"),
        pytest.param({"resources": ["pods/*"]}, {}, True, id="pods/* matches pods too"),
        pytest.param({"resources": ["*/exec"]}, {"sub_resource": "exec"}, True, id="a sub-resource of anything"),
        pytest.param({"resources": ["*/*"]}, {"sub_resource": "exec"}, True, id="everything"),
        pytest.param({"resource_names": ["p"]}, {}, True, id="the name"),
        pytest.param({"resource_names": ["q"]}, {}, False, id="another name"),
        pytest.param({"resource_names": ["p"]}, {"name": ""}, False, id="an object without a name"),
        pytest.param({"scope": "Namespaced"}, {}, True, id="namespaced"),
        pytest.param({"scope": "Cluster"}, {}, False, id="not cluster-scoped"),
        pytest.param({"scope": "Cluster"}, {"namespace": ""}, True, id="cluster-scoped"),
        pytest.param({"scope": "Namespaced"}, {"namespace": ""}, False, id="not namespaced"),
        pytest.param({"scope": "*"}, {"namespace": ""}, True, id="any scope"),
    ],
)
def test_a_rule_matches_these_requests(changes, attributes, expected):
    assert bool(asked(request(**attributes), resource_rules=[rule(**changes)])) is expected


@pytest.mark.parametrize(("scope", "expected"), [("Cluster", True), ("Namespaced", False)])
def test_a_namespace_is_cluster_scoped_even_if_the_request_has_a_namespace(scope, expected):
    found = asked(
        request(resource="namespaces", kind="Namespace", namespace="team"),
        resource_rules=[rule(resources=["namespaces"], scope=scope)],
    )
    assert bool(found) is expected


def test_an_excluded_rule_wins_and_an_excluded_name_only_for_that_name():
    assert not asked(request(), exclude_resource_rules=[rule(resources=["*"])])
    assert asked(request(), exclude_resource_rules=[rule(resource_names=["other"])])


def test_no_rules_match_everything():
    found = asked(request(resource="services"), resource_rules=[])
    assert found.resource.resource == "services"


@pytest.mark.parametrize(
    ("new", "old", "expected"),
    [
        ({"a": "b"}, None, True),
        ({"a": "x"}, None, False),
        ({"a": "x"}, {"a": "b"}, True),
        (None, {"a": "b"}, True),
        ({}, {}, False),
    ],
)
def test_an_object_selector_matches_the_new_or_the_old_object(new, old, expected):
    attributes = request(
        object=None if new is None else {"metadata": {"labels": new}},
        old_object=None if old is None else {"metadata": {"labels": old}},
    )
    selector = LabelSelector(match_labels={"a": "b"})
    assert bool(asked(attributes, object_selector=selector)) is expected


@pytest.mark.parametrize(
    ("operator", "values", "labels", "expected"),
    [
        ("In", ["x"], {"k": "x"}, True),
        ("In", ["x"], {}, False),
        ("NotIn", ["x"], {"k": "x"}, False),
        ("NotIn", ["x"], {"k": "y"}, True),
        ("NotIn", ["x"], {}, True),
        ("Exists", [], {"k": ""}, True),
        ("Exists", [], {}, False),
        ("DoesNotExist", [], {"k": ""}, False),
        ("DoesNotExist", [], {}, True),
    ],
)
def test_a_namespace_selector(operator, values, labels, expected):
    requirement = LabelSelectorRequirement(key="k", operator=operator, values=values)
    selector = LabelSelector(match_expressions=[requirement])
    assert bool(asked(request(), labels, namespace_selector=selector)) is expected


NAMED = LabelSelector(match_labels={"env": "prod"})


def test_a_namespace_selector_does_not_exclude_cluster_scoped_objects():
    assert asked(
        request(resource="nodes", namespace=""), resource_rules=[rule(resources=["nodes"])], namespace_selector=NAMED
    )


def test_a_written_namespace_is_selected_by_its_new_labels():
    sent = request(resource="namespaces", kind="Namespace", object={"metadata": {"labels": {"env": "prod"}}})
    assert asked(sent, {"env": "dev"}, resource_rules=[rule(resources=["namespaces"])], namespace_selector=NAMED)


def test_a_deleted_namespace_is_selected_by_its_old_labels():
    going = request(resource="namespaces", kind="Namespace", object=None, operation=Operation.DELETE)
    rules = [rule(resources=["namespaces"], operations=["*"])]
    assert asked(going, {"env": "prod"}, resource_rules=rules, namespace_selector=NAMED)
    assert not asked(going, {"env": "dev"}, resource_rules=rules, namespace_selector=NAMED)


def test_a_missing_namespace_counts_only_when_everything_else_matches():
    with pytest.raises(BindingError, match='namespaces "team" not found'):
        asked(request(), None, namespace_selector=NAMED)
    assert not asked(request(), None, namespace_selector=NAMED, resource_rules=[rule(operations=["DELETE"])])


def test_a_namespaces_name_label_needs_no_look_up():
    selector = LabelSelector(match_labels={"kubernetes.io/metadata.name": "team"})
    assert asked(request(), None, namespace_selector=selector)
    assert not asked(request(namespace="other"), None, namespace_selector=selector)


def test_the_name_of_a_namespace_is_known_without_a_lookup():
    def fails():
        raise LookupFailed("not synced")

    for name, taken in (("team", True), ("other", False)):
        selector = LabelSelector(match_labels={"kubernetes.io/metadata.name": name})
        found = compile_criteria(MatchResources(resource_rules=[rule()], namespace_selector=selector))
        assert bool(match_request(found, request(), fails, EQUAL)) is taken


def test_a_selector_has_no_answer_for_an_unknown_namespace():
    def fails():
        raise LookupFailed("not synced")

    found = compile_criteria(MatchResources(resource_rules=[rule()], namespace_selector=NAMED))
    with pytest.raises(LookupFailed):
        match_request(found, request(), fails, EQUAL)


WIDGETS = {"api_groups": ["example.com"], "resources": ["widgets"]}


def test_an_equivalent_version_matches_and_is_in_the_request():
    sent = request("example.com", "v1beta1", "widgets", "Widget")
    found = asked(sent, resource_rules=[rule(**WIDGETS)])
    assert (found.resource.version, found.kind.version, found.conversion) == ("v1", "v1", "version")


def test_match_policy_exact_uses_the_requested_version():
    sent = request("example.com", "v1beta1", "widgets", "Widget")
    assert not asked(sent, resource_rules=[rule(**WIDGETS)], match_policy="Exact")
    converted = replace(
        sent,
        resource=GroupVersionResource("example.com", "v1", "widgets"),
        kind=GroupVersionKind("example.com", "v1", "Widget"),
    )
    exact = asked(converted, resource_rules=[rule(**WIDGETS, api_versions=["v1beta1"])], match_policy="Exact")
    assert exact.conversion == "version"
    assert asked(converted, resource_rules=[rule(**WIDGETS)]).conversion == "none"


def test_a_conversion_that_changes_fields_is_recognized():
    sent = request("autoscaling", "v1", "horizontalpodautoscalers", "HorizontalPodAutoscaler")
    rules = [rule(api_groups=["autoscaling"], api_versions=["v2"], resources=["horizontalpodautoscalers"])]
    assert asked(sent, resource_rules=rules).conversion == "impossible"


GADGET = GroupVersionKind("example.com", "v1", "Gadget")
SCALE = GroupVersionKind("autoscaling", "v1", "Scale")


@all_rows(
    ("changes", "attributes", "expected"),
    [
        pytest.param({}, {}, ("v1beta1", "impossible"), id="a version that a rule names"),
        pytest.param(
            {"api_versions": ["v1beta1", "v1alpha1"]}, {}, ("v1alpha1", "impossible"), id="one of several versions"
        ),
        pytest.param({"api_versions": ["v1", "v1beta1"]}, {}, ("v1", "none"), id="also the requested version"),
        pytest.param({"api_versions": ["*"]}, {}, ("v1", "none"), id="every version"),
        pytest.param({"resources": ["*"]}, {}, None, id="every resource of v1beta1"),
        pytest.param({"api_groups": ["*"]}, {}, None, id="every group of v1beta1"),
        pytest.param({"operations": ["DELETE"]}, {}, None, id="another operation"),
        pytest.param({"resources": ["gadgets/status"]}, {}, None, id="another sub-resource"),
        pytest.param({}, {"is_plain": True}, ("v1beta1", "impossible"), id="an object of a file"),
        pytest.param(
            {"resources": ["gadgets/scale"]},
            {"sub_resource": "scale", "kind": SCALE},
            ("v1beta1", "none"),
            id="a Scale",
        ),
    ],
)
def test_a_custom_resource_may_be_served_under_each_version_that_a_rule_names(changes, attributes, expected):
    named = {"api_groups": ["example.com"], "api_versions": ["v1beta1"], "resources": ["gadgets"], **changes}
    sent = replace(request("example.com", "v1", "gadgets"), **{"kind": GADGET, **attributes})
    found = asked(sent, resource_rules=[rule(**named)])
    assert (found and (found.resource.version, found.conversion)) == expected


def test_an_object_in_a_file_may_use_a_removed_api():
    sent = request("example.com", "v1alpha1", "widgets", "Widget")
    assert asked(sent, resource_rules=[rule(**WIDGETS)]).conversion == "impossible"
    assert not asked(replace(sent, is_plain=True), resource_rules=[rule(**WIDGETS)])


def test_an_exclusion_is_not_assumed():
    """A rule about an unserved version would exclude served versions."""
    gadgets = {"api_groups": ["example.com"], "resources": ["gadgets"]}
    excluded = [rule(**gadgets, api_versions=["v1beta1"])]
    found = asked(
        replace(request("example.com", "v1", "gadgets"), kind=GADGET),
        resource_rules=[rule(**gadgets)],
        exclude_resource_rules=excluded,
    )
    assert found.conversion == "none"


def test_the_versions_of_kinds_of_kubernetes_are_all_known():
    sent = request("apps", "v1", "deployments", "Deployment")
    assert not asked(
        sent, resource_rules=[rule(api_groups=["apps"], api_versions=["v1beta1"], resources=["deployments"])]
    )


def test_a_rule_for_the_sent_version_matches_the_sent_version():
    """The API server converted the object to v2 for a webhook of v2 alone. claimgate cannot convert it back."""
    scalers = {"api_groups": ["autoscaling"], "resources": ["horizontalpodautoscalers"]}
    sent = replace(
        request("autoscaling", "v2", "horizontalpodautoscalers", "HorizontalPodAutoscaler"),
        request_resource=GroupVersionResource("autoscaling", "v1", "horizontalpodautoscalers"),
        request_kind=GroupVersionKind("autoscaling", "v1", "HorizontalPodAutoscaler"),
    )
    both, old = ([rule(**scalers, api_versions=versions)] for versions in (["*"], ["v1"]))
    assert asked(sent, resource_rules=both).conversion == "none"
    assert asked(sent, resource_rules=old).conversion == "impossible"


def test_events_are_in_two_groups():
    assert EQUAL.canonical_resource("events.k8s.io", "events") == EQUAL.canonical_resource("", "events")


@pytest.mark.parametrize(
    ("kind", "exempt"),
    [
        ("ValidatingAdmissionPolicy", True),
        ("MutatingAdmissionPolicyBinding", True),
        ("ValidatingWebhookConfiguration", True),
        ("Other", False),
    ],
)
def test_policies_are_never_evaluated_on_policies(kind, exempt):
    assert is_exempt(request("admissionregistration.k8s.io", "v1", "x", kind)) is exempt
