"""A Gatekeeper template and constraint as native objects: `match` becomes rules, selectors and conditions."""

import pytest

from webhook.conversion.gatekeeper import json_as_cel, policy_and_binding, with_defaults_of_template
from webhook.conversion.native import NAMESPACE_IN_CEL
from webhook.errors import NotConverted
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
    return policy_and_binding(TEMPLATE, constraint, table.load_table())


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
            {"kinds": [{"apiGroups": ["ray.io"], "kinds": ["RayJob"]}]}, ["ray.io"], ["rayjobs"], id="a known plural"
        ),
    ],
)
def test_kinds_become_resources(match, groups, resources):
    [rule] = native(match)[0]["spec"]["matchConstraints"]["resourceRules"]
    assert (rule["apiGroups"], rule["resources"]) == (groups, resources)


@pytest.mark.parametrize(
    ("match", "expected"),
    [
        pytest.param({"namespaces": ["a", "b-*"]}, 'n == \'\' || (n == "a" || n.startsWith("b-"))', id="namespaces"),
        pytest.param({"excludedNamespaces": ["*-x", "*y*"]}, 'n == \'\' || !(n.endsWith("-x") || n.contains("y"))', id="excluded namespaces"),
    ],
)  # fmt: skip
def test_namespaces_become_conditions(match, expected):
    [condition] = native(match)[0]["spec"]["matchConditions"]
    assert condition["expression"] == f"[{NAMESPACE_IN_CEL}].exists(n, {expected})"


def test_a_name_pattern_becomes_a_match_condition():
    [condition] = native({"name": "x-*"})[0]["spec"]["matchConditions"]
    named, _, generated = condition["expression"].partition(" || ")
    assert named == "[has(request.name) ? request.name : ''].exists(n, n != '' && n.startsWith(\"x-\"))"
    assert 'string(o.metadata.generateName).startsWith("x-")' in generated


def test_selectors_go_into_the_binding():
    labels = {"matchLabels": {"a": "b"}}
    binding = native({"labelSelector": labels, "namespaceSelector": labels})[1]
    assert binding["spec"]["matchResources"] == {"objectSelector": labels, "namespaceSelector": labels}


@pytest.mark.parametrize(("action", "expected"), [("deny", ["Deny"]), ("warn", ["Warn"]), ("dryrun", ["Audit"])])
def test_actions(action, expected):
    assert native({}, action)[1]["spec"]["validationActions"] == expected


def test_the_template_keeps_its_failure_policy():
    assert native({})[0]["spec"]["failurePolicy"] == "Ignore"


def test_parameters_are_written_into_the_policy():
    constraint = {"metadata": {"name": "c"}, "spec": {"parameters": {"labels": ["a", 1], "n": None}}}
    policy, binding = policy_and_binding(TEMPLATE, constraint, table.load_table())
    [variable] = [each for each in policy["spec"]["variables"] if each["name"] == "params"]
    assert variable["expression"] == 'dyn({"labels": dyn([dyn("a"), dyn(1)]), "n": dyn(null)})'
    assert "paramKind" not in policy["spec"]
    assert "paramRef" not in binding["spec"]
    assert json_as_cel(True) == "dyn(true)"


def test_defaults_of_the_template_are_filled_in():
    schema = {"properties": {"deep": {"items": {"properties": {"x": {"default": 1}}}}, "on": {"default": True}}}
    template = {"spec": {"crd": {"spec": {"validation": {"openAPIV3Schema": schema}}}}}
    given = with_defaults_of_template({"spec": {"parameters": {"deep": [{}, {"x": 2}]}}}, template)
    assert given == {"spec": {"parameters": {"deep": [{"x": 1}, {"x": 2}], "on": True}}}


@pytest.mark.parametrize(
    ("constraint", "template", "why"),
    [
        pytest.param({"enforcementAction": "scoped"}, {}, "action `scoped` is not", id="scoped actions"),
        pytest.param({"match": {"source": "Generated"}}, {}, "objects that Gatekeeper expands", id="generated"),
        pytest.param({"match": {"kindz": []}}, {}, "field `kindz` is not known", id="an unknown field"),
        pytest.param({}, {"validations": [{"expression": "params.x == 1"}]}, "reads `params`", id="the constraint"),
    ],
)
def test_a_constraint_without_a_native_form_is_refused(constraint, template, why):
    code = [{"engine": "K8sNativeValidation", "source": template}]
    with pytest.raises(NotConverted, match=why):
        policy_and_binding(
            {**TEMPLATE, "spec": {"targets": [{"code": code}]}},
            {"metadata": {"name": "c"}, "spec": constraint},
            table.load_table(),
        )
