"""Policies of claimgate.dev mean the same as native ones with annotations. Mistakes are reported at their place."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from tests import quick_yaml
from webhook.apimachinery.attributes import JSON
from webhook.errors import PolicyError
from webhook.manifests.annotations import PREFIX
from webhook.manifests.claimgate_kinds import native_manifest
from webhook.policy.load import Options, load_documents
from webhook.workloads import table
from webhook.yamltext import yamlfile

POLICY = """\
apiVersion: claimgate.dev/v1alpha1
kind: ValidatingPolicy
metadata: {name: eight-gpus}
spec:
  facts: [gpu]
  expand: [pods]
  updates: spec
  registered: true
  matchConstraints:
    resourceRules:
    - {apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods]}
  validations:
  - expression: gpu.devices == null || gpu.devices <= 8
    reason: BadRequest
"""
MUTATING = """\
apiVersion: claimgate.dev/v1alpha1
kind: MutatingPolicy
metadata: {name: m}
spec:
  reinvocationPolicy: Never
  matchConstraints:
    resourceRules:
    - {apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods]}
  mutations:
  - patchType: ApplyConfiguration
    applyConfiguration: {expression: "Object{}"}
"""
BINDING = """\
apiVersion: claimgate.dev/v1alpha1
kind: PolicyBinding
metadata: {name: eight-gpus}
spec: {policyName: eight-gpus, validationActions: [Deny]}
"""
MISTAKES = {
    "a field that does not exist": (
        POLICY.replace("facts:", "fact:"),
        "p.yaml:5:3: spec.fact: unknown field `fact`; did you mean `facts`?",
    ),
    "a fact that does not exist": (
        POLICY.replace("[gpu]", "[gpus]"),
        'p.yaml:5:3: spec.facts: Invalid value: "gpus": expected one of: podSets, gpu',
    ),
    "an invalid list": (POLICY.replace("[gpu]", "gpu"), "p.yaml:5:3: spec.facts: expected a list, found `gpu`"),
    "an expression": (
        POLICY.replace("devices <=", "devises <="),
        'p.yaml:13:5: spec.validations[0].expression: Invalid value: "gpu.devices == null',
    ),
    "an annotation in the place of a field": (
        POLICY.replace("{name: eight-gpus}", "{name: eight-gpus, annotations: {claimgate.dev/facts: dra}}"),
        'metadata.annotations["claimgate.dev/facts"]: is a field of this kind: write spec.facts',
    ),
    "another version": (
        POLICY.replace("v1alpha1", "v1"),
        "p.yaml:1:1: apiVersion: unknown version `claimgate.dev/v1`; expected claimgate.dev/v1alpha1",
    ),
    "actions in a binding of a MutatingPolicy": (
        BINDING.replace("{policyName: eight-gpus", "{policyName: m, policyKind: MutatingPolicy"),
        "spec.validationActions: a MutatingPolicy has no such field: remove it",
    ),
    "checks in a MutatingPolicy": (
        MUTATING.replace("  reinvocationPolicy", "  checks: [pod-resources]\n  reinvocationPolicy"),
        "p.yaml:5:3: spec.checks: unknown field `checks`; remove it",
    ),
    "a name that another policy has": (
        f"{POLICY}---\n{POLICY}",
        'Duplicate value: "eight-gpus": first at p.yaml:1; rename one',
    ),
}


def loaded(text: str) -> Any:
    return load_documents(yamlfile.load(text, "p.yaml"), Options(table=table.load_table()))


def test_a_policy_becomes_the_native_policy_with_annotations() -> None:
    manifest: JSON = quick_yaml.load(POLICY)
    made = native_manifest(manifest)
    assert (made["apiVersion"], made["kind"]) == ("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicy")
    assert made["metadata"]["annotations"] == {
        f"{PREFIX}facts": "gpu",
        f"{PREFIX}expand": "pods",
        f"{PREFIX}updates": "spec",
        f"{PREFIX}registered": "true",
        f"{PREFIX}stored": "warn",
    }
    assert made["spec"] == {key: manifest["spec"][key] for key in ("matchConstraints", "validations")}


def test_bindings_name_policies_of_either_kind() -> None:
    to_mutating = BINDING.replace("eight-gpus", "m").replace("validationActions: [Deny]", "policyKind: MutatingPolicy")
    policies = loaded(f"{POLICY}---\n{BINDING}---\n{MUTATING}---\n{to_mutating}")
    assert [policy.name for policy in policies.policies] == ["eight-gpus", "m"]
    assert not policies.unbound_policy_names


def test_a_binding_of_claimgate_may_name_a_native_policy() -> None:
    value = quick_yaml.load(POLICY)
    spec = {**value["spec"], "validations": [{"expression": "true"}]}
    for name in ("facts", "expand", "updates", "registered"):
        del spec[name]
    kind = {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy"}
    assert not loaded(
        yaml.safe_dump_all([{**value, **kind, "spec": spec}, quick_yaml.load(BINDING)])
    ).unbound_policy_names


@pytest.mark.parametrize(("text", "told"), MISTAKES.values(), ids=MISTAKES.keys())
def test_a_mistake_is_reported_at_its_place(text: str, told: str) -> None:
    with pytest.raises(PolicyError) as caught:
        loaded(text)
    assert told in str(caught.value)
