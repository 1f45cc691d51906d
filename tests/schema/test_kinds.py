"""Kinds: their declarations agree with the published CustomResourceDefinitions and with the workload table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.rows import all_rows
from tests.yamldata import document
from webhook.apimachinery.attributes import GroupVersionKind
from webhook.schema import decode_object, kubernetes_type, type_of
from webhook.schema.kinds import declarations, type_at_path
from webhook.schema.types import Fields, Items, Type
from webhook.workloads.table import load_table

CRDS = Path(__file__).parents[1] / "data" / "crds"
TEMPLATES = {kubernetes_type("core.v1.PodTemplateSpec"), kubernetes_type("core.v1.PodSpec")}
SCALARS = {"string": "text", "integer": "int64", "boolean": "truth"}
OLDER = {"trainer.numProcPerNode", "mlPolicy.torch.numProcPerNode"}
"""Fields that an older release had with another type"""


def disagreements(of: Type | None, schema: Any, path: str) -> list[str]:
    """Return the fields of the published schema that are declared with another type, or not declared."""
    if schema.get("x-kubernetes-preserve-unknown-fields") or path in OLDER or of in TEMPLATES or of == "any":
        return []
    if schema.get("x-kubernetes-int-or-string"):
        return [] if of in ("intOrText", "quantity") else [path]
    if schema.get("type") == "array":
        return disagreements(of.item, schema["items"], path) if isinstance(of, Items) else [path]
    if schema.get("type") == "object":
        if not isinstance(of, Fields):
            return [path]
        inner = schema.get("properties", {})
        found = [
            each
            for name in inner
            for each in disagreements(type_at_path(of, (name,)), inner[name], f"{path}.{name}".lstrip("."))
        ]
        others = schema.get("additionalProperties")
        return found + (disagreements(of.others, others, f"{path}.*") if others else [])
    wanted = SCALARS[schema["type"]]
    return [] if of == wanted or (wanted == "int64" and of in ("int32", "number")) else [path]


def published() -> list[tuple[GroupVersionKind, Any]]:
    found = []
    for file in sorted(CRDS.glob("*.yaml")):
        spec = document(file)["spec"]
        for version in spec["versions"]:
            kind = GroupVersionKind(spec["group"], version["name"], spec["names"]["kind"])
            found.append((kind, version["schema"]["openAPIV3Schema"]["properties"]["spec"]))
    return found


@all_rows(("kind", "schema"), published, ids=lambda each: getattr(each, "kind", ""))
def test_a_kind_has_the_types_of_its_published_schema(kind: GroupVersionKind, schema: Any) -> None:
    assert disagreements(type_at_path(type_of(kind), ("spec",)), schema, "") == []


def test_every_type_that_is_named_is_declared_and_used() -> None:
    found = declarations()
    for name in found.written:
        found.resolve_type(name)
    assert len(found.kinds) > 15


ROWS = [row for row in load_table().rows if row.podSets]
TYPED = [
    (row, version)
    for row in ROWS
    for version in row.versions
    if type_of(GroupVersionKind(row.group, version, row.kind))
]


def steps(template: str) -> tuple[str | int, ...]:
    return tuple(
        0 if step == "[]" else "each" if step == "{}" else step
        for step in template.replace("[]", ".[]").replace("{}", ".{}").split(".")
        if step
    )


@all_rows(("row", "version"), TYPED, ids=lambda each: getattr(each, "kind", each))
def test_a_typed_kind_has_pod_templates_where_the_workload_table_has_them(row: Any, version: str) -> None:
    of = type_of(GroupVersionKind(row.group, version, row.kind))
    for rule in row.podSets:
        if rule.template:
            assert type_at_path(of, steps(rule.template)) in TEMPLATES, rule.template


def test_core_kinds_and_the_kinds_of_data_are_typed() -> None:
    assert {row.kind for row, _ in TYPED} >= {
        *("Pod", "PodTemplate", "Deployment", "StatefulSet", "DaemonSet", "Job", "CronJob", "JobSet", "TrainingRuntime"),
        *("PyTorchJob", "TFJob", "MPIJob", "XGBoostJob", "JAXJob", "PaddleJob", "JobTemplate", "BatchSandbox", "Pool"),
        *("Sandbox", "SandboxTemplate"),
    }  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "spec", "path"),
    [
        (("trainer.kubeflow.org", "v1alpha1", "TrainJob"), {"trainer": {"numNodes": "4"}}, "spec.trainer.numNodes"),
        (("kubeflow.org", "v1", "PyTorchJob"), {"nprocPerNode": 8}, "spec.nprocPerNode"),
        (("kubeflow.org", "v1", "TFJob"), {"tfReplicaSpecs": {"PS": []}}, "spec.tfReplicaSpecs.PS"),
        (("jobset.x-k8s.io", "v1alpha2", "JobSet"), {"replicatedJobs": {}}, "spec.replicatedJobs"),
        (("batch.volcano.sh", "v1alpha1", "Job"), {"tasks": [{"template": {"spec": []}}]}, "spec.tasks[0].template.spec"),
        (("apps", "v1", "Deployment"), {"replicas": "2"}, "spec.replicas"),
        (("sandbox.opensandbox.io", "v1alpha1", "Pool"), {"template": "x"}, "spec.template"),
    ],
)  # fmt: skip
def test_an_object_is_checked_by_the_types_of_its_kind(kind: tuple[str, str, str], spec: Any, path: str) -> None:
    found = decode_object({"spec": spec, "status": 1}, GroupVersionKind(*kind))
    assert [each.path for each in found.mismatches] == [path]


def test_a_kind_without_a_definition_is_not_changed() -> None:
    obj = {"spec": None, "metadata": 1}
    found = decode_object(obj, GroupVersionKind("example.com", "v1", "Thing"))
    assert found.value is obj
    assert found.mismatches == ()
