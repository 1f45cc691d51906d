"""A policy that needs a Namespace is not evaluated if files define the Namespace differently, and this is reported."""

from __future__ import annotations

from pathlib import Path

import pytest

from webhook.cli import run_command_line

POD = "{apiVersion: v1, kind: Pod, metadata: {name: p, namespace: ml}, spec: {containers: [{name: c, image: x}]}}"
MATCH = "resourceRules: [{apiGroups: [''], apiVersions: [v1], operations: [CREATE], resources: [pods]}]"
SELECTS = "namespaceSelector: {matchLabels: {team: ml}}"
NEVER = "[{expression: 'false', message: 'of ml'}]"
READS = "[{expression: \"namespaceObject.metadata.labels['team'] == 'ml'\", message: 'of another team'}]"
CHANGES = "[{patchType: ApplyConfiguration, applyConfiguration: {expression: 'Object{}'}}]"
OF_ML = "Object{metadata: Object.metadata{labels: namespaceObject.metadata.labels}}"


def policy(kind: str, spec: str, binding: str = "") -> str:
    group = "apiVersion: admissionregistration.k8s.io/v1"
    bound = f"policyName: p{binding}" + (", validationActions: [Deny]" if kind.startswith("V") else "")
    return (
        f"{{{group}, kind: {kind}, metadata: {{name: p}}, spec: {{{spec}}}}}\n---\n"
        f"{{{group}, kind: {kind}Binding, metadata: {{name: p}}, spec: {{{bound}}}}}\n"
    )


def namespace(team: str) -> str:
    return f"{{apiVersion: v1, kind: Namespace, metadata: {{name: ml, labels: {{team: {team}}}}}}}"


VALIDATING, MUTATING = "ValidatingAdmissionPolicy", "MutatingAdmissionPolicy"
MUTATES = f"failurePolicy: Fail, reinvocationPolicy: Never, mutations: {CHANGES}"
POLICIES = {
    "the selector of a policy": policy(VALIDATING, f"matchConstraints: {{{MATCH}, {SELECTS}}}, validations: {NEVER}"),
    "the selector of a binding": policy(
        VALIDATING,
        f"matchConstraints: {{{MATCH}}}, validations: {NEVER}",
        f", matchResources: {{{SELECTS}}}",
    ),
    "an expression": policy(VALIDATING, f"matchConstraints: {{{MATCH}}}, validations: {READS}"),
    "the selector of a mutation": policy(MUTATING, f"matchConstraints: {{{MATCH}, {SELECTS}}}, {MUTATES}"),
    "the selector of a mutating binding": policy(
        MUTATING, f"matchConstraints: {{{MATCH}}}, {MUTATES}", f", matchResources: {{{SELECTS}}}"
    ),
    "the expression of a mutation": policy(
        MUTATING, f"matchConstraints: {{{MATCH}}}, {MUTATES}".replace("Object{}", OF_ML)
    ),
}


@pytest.mark.parametrize("needs", POLICIES)
def test_a_policy_that_needs_an_ambiguous_namespace_is_not_evaluated(
    needs: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    policies, objects = tmp_path / "policies", tmp_path / "objects"
    for folder in (policies, objects):
        folder.mkdir()
    (policies / "p.yaml").write_text(POLICIES[needs])
    for name, text in (("pod", POD), ("a", namespace("ml")), ("b", namespace("other"))):
        (objects / f"{name}.yaml").write_text(text)
    run_command_line(["audit", "--only", str(policies), str(objects)])
    out, err = capsys.readouterr()
    assert "○ Namespace ml is defined differently in" in out
    assert "0 with findings, 2 not read (-v names the kinds); 1 object not evaluated in full" in out
    assert "choose the file with --context" in err
    run_command_line(
        ["audit", "--only", str(policies), "--context", str(objects / "b.yaml"), str(objects / "pod.yaml")]
    )
    assert "not evaluated" not in capsys.readouterr().out
