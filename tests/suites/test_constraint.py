"""A Gatekeeper template and constraint as native objects: what `match` says becomes rules, selectors and conditions."""

import pytest

from webhook.suites.constraint import policy_and_binding
from webhook.workloads import table

TEMPLATE = {
    "kind": "ConstraintTemplate",
    "metadata": {"name": "t"},
    "spec": {
        "crd": {"spec": {"names": {"kind": "T"}}},
        "targets": [{"code": [{"engine": "K8sNativeValidation", "source": {"failurePolicy": "Ignore"}}]}],
    },
}


def native(match, action="deny"):
    constraint = {"metadata": {"name": "c"}, "spec": {"match": match, "enforcementAction": action}}
    return policy_and_binding(TEMPLATE, constraint, table.load_table().row)


@pytest.mark.parametrize(
    ("match", "groups", "resources"),
    [
        pytest.param({}, ["*"], ["*"], id="everything"),
        pytest.param(
            {"kinds": [{"apiGroups": [""], "kinds": ["NetworkPolicy"]}]},
            [""],
            ["networkpolicies"],
            id="a guessed plural",
        ),
        pytest.param(
            {"kinds": [{"apiGroups": ["ray.io"], "kinds": ["RayJob"]}]}, ["ray.io"], ["rayjobs"], id="a known one"
        ),
    ],
)
def test_kinds_become_resources(match, groups, resources):
    [rule] = native(match)[0]["spec"]["matchConstraints"]["resourceRules"]
    assert (rule["apiGroups"], rule["resources"]) == (groups, resources)


@pytest.mark.parametrize(
    ("match", "expected"),
    [
        pytest.param({"namespaces": ["a", "b-*"]}, '{0} == "a" || {0}.startsWith("b-")', id="namespaces"),
        pytest.param({"excludedNamespaces": ["*-x", "*y*"]}, '!({0}.endsWith("-x") || {0}.contains("y"))', id="excluded"),
    ],
)  # fmt: skip
def test_namespaces_become_conditions(match, expected):
    [condition] = native(match)[0]["spec"]["matchConditions"]
    assert condition["expression"] == expected.format("(has(request.namespace) ? request.namespace : '')")


def test_a_name_becomes_a_condition():
    [condition] = native({"name": "x-*"})[0]["spec"]["matchConditions"]
    assert condition["expression"] == "(has(request.name) ? request.name : '').startsWith(\"x-\")"


def test_selectors_go_into_the_binding():
    labels = {"matchLabels": {"a": "b"}}
    binding = native({"labelSelector": labels, "namespaceSelector": labels})[1]
    assert binding["spec"]["matchResources"] == {"objectSelector": labels, "namespaceSelector": labels}


@pytest.mark.parametrize(("action", "expected"), [("deny", ["Deny"]), ("warn", ["Warn"]), ("dryrun", ["Audit"])])
def test_actions(action, expected):
    assert native({}, action)[1]["spec"]["validationActions"] == expected


def test_the_template_keeps_its_failure_policy():
    assert native({})[0]["spec"]["failurePolicy"] == "Ignore"
