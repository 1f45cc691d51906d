"""Policies of other projects become native policies: each part is converted, or refused by name."""

from __future__ import annotations

import copy
from pathlib import Path

import pytest

from webhook.conversion.convert import convert_documents
from webhook.policy.load import Options
from webhook.workloads import table
from webhook.yamltext import yamlfile

DATA = Path(__file__).parents[1] / "data"
HOW = Options(table=table.load_table())

KUBEWARDEN = """\
apiVersion: policies.kubewarden.io/v1
kind: AdmissionPolicy
metadata: {name: replicas, namespace: shop}
spec:
  module: registry://ghcr.io/kubewarden/policies/cel-policy:v1.4.1
  mode: monitor
  settings:
    paramKind: {apiVersion: v1, kind: ConfigMap}
    paramRef: {name: most, namespace: shop, parameterNotFoundAction: Deny}
    variables: [{name: replicas, expression: object.spec.replicas}]
    validations: [{expression: variables.replicas <= int(params.data.most), message: too many}]
  rules:
  - {apiGroups: [apps], apiVersions: [v1], operations: [CREATE], resources: [deployments]}
  mutating: false
"""
GATEKEEPER = """\
apiVersion: templates.gatekeeper.sh/v1
kind: ConstraintTemplate
metadata: {name: labelled}
spec:
  crd: {spec: {names: {kind: Labelled}}}
  targets:
  - target: admission.k8s.gatekeeper.sh
    code:
    - engine: K8sNativeValidation
      source:
        validations:
        - expression: variables.params.labels.all(l, l in variables.anyObject.metadata.labels)
---
apiVersion: constraints.gatekeeper.sh/v1beta1
kind: Labelled
metadata: {name: team}
spec:
  enforcementAction: warn
  match:
    kinds: [{apiGroups: [""], kinds: [Pod, Service]}]
    excludedNamespaces: ["kube-*"]
    labelSelector: {matchLabels: {a: b}}
  parameters: {labels: [team]}
"""


def convert(*texts):
    return convert_documents([each for text in texts for each in yamlfile.load(text, "given.yaml")], HOW)


def kyverno():
    return (DATA / "suites" / "kyverno-kinds" / "policies.yaml").read_text()


def vpol(spec, kind="ValidatingPolicy", group="policies.kyverno.io/v1"):
    rules = "[{apiGroups: [''], apiVersions: [v1], operations: [CREATE], resources: [pods]}]"
    match = (
        ""
        if "matchConstraints" in spec or group == "kyverno.io/v1"
        else f"matchConstraints: {{resourceRules: {rules}}}, "
    )
    return f"{{apiVersion: {group}, kind: {kind}, metadata: {{name: p}}, spec: {{{match}{spec}}}}}"


def test_kinds_of_kyverno_become_policies_with_bindings():
    made = convert(kyverno())
    named = {each["metadata"]["name"]: each for each in made.manifests if not each["kind"].endswith("Binding")}
    assert list(named) == [
        *("team-label", "team-label-autogen", "team-label-autogen-cronjobs"),
        "shop-owner",
        *("queue", "queue-autogen", "queue-autogen-cronjobs"),
        *("no-host", "no-host-autogen-host-network", "no-host-autogen-cronjob-host-network"),
    ]
    bindings = {each["metadata"]["name"]: each["spec"] for each in made.manifests if each["kind"].endswith("Binding")}
    assert bindings["team-label"]["validationActions"] == ["Audit"]
    assert bindings["no-host"]["validationActions"] == ["Deny"]
    assert bindings["shop-owner"]["matchResources"]["namespaceSelector"]["matchLabels"] == {
        "kubernetes.io/metadata.name": "shop"
    }
    team = named["team-label-autogen"]["spec"]
    assert team["variables"][0]["expression"] == "object.spec.template.metadata.?labels.?team.orValue('')"
    assert team["matchConditions"][0] == {
        "name": "not-of-the-system",
        "expression": "object.metadata.namespace != 'kube-system'",
    }
    assert team["validations"][1]["message"] == "a team is a number"
    assert named["team-label"]["metadata"]["annotations"]["claimgate.dev/severity"] == "high"
    assert named["queue"]["spec"]["matchConditions"][0]["expression"].startswith("!(has(object.metadata.labels)")
    [problem] = made.problems
    assert str(problem) == (
        "given.yaml:94:1: ValidatingPolicy `looks-up` is not converted: uses `resource`, which only Kyverno has"
    )


def test_settings_of_kubewarden_become_a_policy_with_a_param():
    policy, binding = convert(KUBEWARDEN).manifests
    assert policy["spec"]["paramKind"] == {"apiVersion": "v1", "kind": "ConfigMap"}
    assert policy["spec"]["matchConstraints"]["resourceRules"][0]["resources"] == ["deployments"]
    assert binding["spec"]["validationActions"] == ["Audit"]
    assert binding["spec"]["paramRef"]["name"] == "most"


def test_a_template_becomes_a_policy_for_each_constraint():
    other = GATEKEEPER.partition("---\n")[2].replace("name: team", "name: owner").replace("[team]", "[owner]")
    made = convert(GATEKEEPER, other)
    assert [each["metadata"]["name"] for each in made.manifests] == [
        *("labelled-team", "labelled-team"),
        *("labelled-owner", "labelled-owner"),
    ]
    policy, binding = made.manifests[:2]
    rule = policy["spec"]["matchConstraints"]["resourceRules"][0]
    assert (rule["operations"], rule["resources"]) == (
        ["CREATE", "UPDATE"],
        ["pods", "pods/ephemeralcontainers", "services"],
    )
    assert binding["spec"]["validationActions"] == ["Warn"]
    assert made.problems == ()


@pytest.mark.parametrize(
    ("text", "why"),
    [
        pytest.param(vpol("validations: [{expression: image('x').registry() == 'y'}]"), "uses `image`, which only", id="image"),
        pytest.param(vpol("validations: [{expression: a.b}]"), "an API server refuses it: spec.validations[0].expression", id="no CEL"),
        pytest.param(vpol("evaluation: {mode: JSON}, validations: []"), "mode JSON is about other payloads", id="JSON"),
        pytest.param(vpol("evaluation: {admission: {enabled: false}}, validations: []"), "not evaluated at admission", id="background"),
        pytest.param(vpol("validatons: []"), "field `validatons` is not known here", id="a typo"),
        pytest.param(vpol("targetMatchConstraints: {expression: x}, mutations: []", "MutatingPolicy"), "mutates existing objects", id="targets"),
        pytest.param(
            vpol(
                "mutations: [{patchType: JSONPatch, jsonPatch: {expression: \"[JSONPatch{op: 'add', path: '/a', value: {}}]\"}},"
                " {patchType: JSONPatch, jsonPatch: {expression: '[]'}}]",
                "MutatingPolicy",
            ),
            "adds an empty value for a later mutation",
            id="empty values",
        ),
        pytest.param(vpol("rules: [{name: r, validate: {pattern: {}}}]", "ClusterPolicy", "kyverno.io/v1"), "none of its rules has `validate.cel`", id="patterns"),
        pytest.param(
            vpol(
                "rules: [{name: r, match: {any: [{subjects: [{kind: User, name: a}], resources: {kinds: [Pod]}}]}, validate: {cel: {expressions: []}}}]",
                "ClusterPolicy",
                "kyverno.io/v1",
            ),
            "selects users by subjects",
            id="users",
        ),
        pytest.param(vpol("", "PolicyException"), "policies of this kind have no native form", id="exceptions"),
        pytest.param(GATEKEEPER.partition("---\n")[0], "none of the files has a constraint of this template", id="a template without a constraint"),
        pytest.param(GATEKEEPER.partition("---\n")[2], "its ConstraintTemplate is in none of the files", id="a constraint without a template"),
        pytest.param(GATEKEEPER.replace("K8sNativeValidation", "Rego"), "it is in Rego, not in CEL", id="Rego"),
        pytest.param(KUBEWARDEN.replace("cel-policy", "pod-privileged"), "its module is not `cel-policy`", id="another module"),
    ],
)  # fmt: skip
def test_a_policy_without_a_native_form_is_named(text, why):
    made = convert(text)
    assert why in str(made.problems[0])
    assert made.manifests == ()


def test_additional_actions_of_kyverno_are_noted():
    apply = "Object{metadata: Object.metadata{labels: {'a': 'b'}}}"
    spec = f'evaluation: {{mutateExisting: {{enabled: true}}}}, mutations: [{{patchType: ApplyConfiguration, applyConfiguration: {{expression: "{apply}"}}}}]'
    made = convert(vpol(spec, "MutatingPolicy"))
    assert [each["metadata"]["name"] for each in made.manifests] == ["p", "p"]
    texts = " ".join(map(str, made.notes))
    assert "it no longer mutates existing objects" in texts
    assert "policy `p-autogen` is left out, because it fails for every object" in texts


def places(value, path=()):
    yield path
    entries = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in entries:
        yield from places(item, (*path, key))


@pytest.mark.parametrize("text", [kyverno(), KUBEWARDEN, GATEKEEPER], ids=["kyverno", "kubewarden", "gatekeeper"])
def test_malformed_policies_are_problems_and_not_internal_errors(text):
    """Replace each part of every policy by values of other types, one part at a time."""
    whole = [each.value for each in yamlfile.load(text, "given.yaml")]
    for number, policy in enumerate(whole):
        beside = [each for at, each in enumerate(whole) if at != number] if text == GATEKEEPER else []
        for path in places(policy):
            if path[:1] in ((), ("kind",), ("apiVersion",)) or "expression" in path:
                continue
            for wrong in (1, [1]):
                broken = copy.deepcopy(policy)
                inner = broken
                for key in path[:-1]:
                    inner = inner[key]
                inner[path[-1]] = wrong
                convert_documents([yamlfile.Document(each, "given.yaml") for each in (broken, *beside)], HOW)
