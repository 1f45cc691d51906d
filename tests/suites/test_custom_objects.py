"""Policies are tried on the objects that a CustomResourceDefinition beside them allows."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.literals import validating
from tests.yamldata import documents
from webhook.cli import run_command_line
from webhook.policy.load import Options, load_policy_set
from webhook.suites.custom_objects import custom_kinds, objects_of_custom_kind
from webhook.suites.trials import sentences_about_errors, untried_kinds
from webhook.workloads import table
from webhook.yamltext import yamlfile

CRDS = Path(__file__).parents[1] / "data" / "crds"
TRAIN_JOBS = {"apiGroups": ["trainer.kubeflow.org"], "apiVersions": ["v1alpha1"], "operations": ["CREATE"]}
RULE = {**TRAIN_JOBS, "resources": ["trainjobs"]}


def said(expression: str, folder: Path, crd: str = "trainer.kubeflow.org_trainjobs.yaml") -> list[str]:
    (folder / "policy.yaml").write_text("---\n".join(map(yamlfile.dump, validating(expression, rule=RULE))))
    if crd:
        (folder / "crd.yaml").write_text((CRDS / crd).read_text())
    loaded = load_policy_set([folder], Options(table=table.load_table()))
    (policy,) = loaded.policies
    return list(sentences_about_errors(policy, loaded))


@pytest.mark.parametrize(
    ("expression", "path"),
    [
        ("object.spec.trainer.numNodes <= 4", "object.spec.trainer.numNodes"),  # a rule names `trainer`
        ("!has(object.spec.trainer) || object.spec.trainer.numNodes <= 4", "object.spec.trainer.numNodes"),
        ("object.spec.labels['team'] == 'a'", "object.spec.labels"),
    ],
)
def test_an_optional_field_of_a_custom_kind_is_found(expression: str, path: str, tmp_path: Path) -> None:
    (text,) = said(expression, tmp_path)
    assert text.startswith("spec.validations[0].expression: fails on ")
    assert "TrainJob that its definition allows" in text
    assert f"`{path}` is not set there" in text


@pytest.mark.parametrize(
    "expression",
    [
        "object.spec.?trainer.?numNodes.orValue(1) <= 4",
        "object.spec.runtimeRef.name != ''",
        "object.spec.runtimeRef.kind == 'ClusterTrainingRuntime'",  # this field has a default
        "!has(object.spec.trainer) || !has(object.spec.trainer.image) || object.spec.trainer.image.startsWith('a')",
    ],
)
def test_fields_that_are_always_set_get_no_finding(expression: str, tmp_path: Path) -> None:
    assert said(expression, tmp_path) == []


def test_without_the_definition_no_field_is_known(tmp_path: Path) -> None:
    assert said("object.spec.trainer.numNodes <= 4", tmp_path, crd="") == []


@pytest.mark.parametrize(
    ("expression", "crd", "expected"),
    [
        ("object.spec.trainer.numNodes <= 4", "", ["trainjobs.trainer.kubeflow.org"]),
        ("object.spec.trainer.numNodes <= 4", "trainer.kubeflow.org_trainjobs.yaml", []),
        ("object.metadata.name != 'a'", "", []),
    ],
)
def test_kinds_without_a_definition_are_named(expression: str, crd: str, expected: list[str], tmp_path: Path) -> None:
    said(expression, tmp_path, crd)
    loaded = load_policy_set([tmp_path], Options(table=table.load_table()))
    assert list(untried_kinds(loaded.policies[0], loaded)) == expected


def test_a_policy_that_was_not_tried_is_not_reported_as_right(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said("object.spec.?trainer.?numNodes.orValue(1) <= 4", tmp_path, crd="")
    assert run_command_line(["policies", "check", str(tmp_path)]) == 0
    first, _, line = capsys.readouterr().out.splitlines()
    assert first.endswith("; no mistake was seen; 1 not tried on every kind")
    assert line.strip() == (
        "not tried on trainjobs.trainer.kubeflow.org, whose fields are not known: add its CustomResourceDefinition to "
        "the files"
    )
    said("object.spec.?trainer.?numNodes.orValue(1) <= 4", tmp_path)
    assert run_command_line(["policies", "check", str(tmp_path)]) == 0
    assert capsys.readouterr().out.endswith("; nothing is wrong\n")


def definition(schema: dict) -> dict:
    return {
        "spec": {
            "group": "example.com",
            "names": {"kind": "Thing", "plural": "things"},
            "scope": "Namespaced",
            "versions": [{"name": "v1", "served": True, "schema": {"openAPIV3Schema": schema}}],
        }
    }


def test_a_field_that_a_rule_names_may_be_required() -> None:
    spec = {
        "type": "object",
        "properties": {"a": {"type": "string"}, "b": {"type": "string"}},
        "x-kubernetes-validations": [{"rule": "has(self.a)"}],
    }
    (custom,) = custom_kinds([definition({"type": "object", "properties": {"spec": spec}})])
    objects = objects_of_custom_kind(custom)
    assert "b" not in objects.smallest["spec"]
    with pytest.raises(Exception, match=r"spec\.a is not known"):
        "a" in objects.smallest["spec"]  # noqa: B015
    assert [path for path, _ in objects.variants(["a", "b"])] == ["spec.b"]


def test_definitions_of_odd_shapes_are_left_out() -> None:
    assert list(custom_kinds([{}, {"spec": {"group": 1}}, definition({}) | {"spec": {"group": "a"}}])) == []


@pytest.mark.parametrize(
    "key", ["required", "default", "properties", "x-kubernetes-validations", "enum", "items", "additionalProperties"]
)
@pytest.mark.parametrize("value", [5, True, "x", [1], [{}], {"a": 1}, None])
def test_a_part_of_another_shape_counts_as_absent(key: str, value: object) -> None:
    """An API server does not store this schema, but a file may have it."""
    spec = {"type": "array" if key == "items" else "object", "properties": {"a": {"type": "string"}}, key: value}
    (custom,) = custom_kinds([definition({"type": "object", "properties": {"spec": spec}})])
    objects = objects_of_custom_kind(custom)
    assert "spec" in objects.full
    assert [path for path, _ in objects.variants(["b"])] == []


def test_objects_can_be_created_from_all_definitions_of_the_tests() -> None:
    for file in sorted(CRDS.glob("*.yaml")):
        for custom in custom_kinds(documents(file)):
            full = objects_of_custom_kind(custom).full
            assert full["kind"] == custom.kind.kind
            assert "spec" in full
