"""The facts as policies see them: names, types that agree with the values, and nothing that is not plain JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest
import yaml

from webhook.admission import fixtures
from webhook.attributes import Attributes
from webhook.cel.types import BOOL, DYN, INT, STRING, Structure, Type
from webhook.cluster.files import FilesCluster
from webhook.facts.functions import NAMES, compute, declared, lookups
from webhook.workloads.table import load

TABLE = load()
MANIFESTS = Path(__file__).parents[1] / "data" / "manifests"
OBJECTS = [
    obj
    for file in sorted(MANIFESTS.rglob("*.yaml"))
    for obj in yaml.safe_load_all(file.read_text())
    if isinstance(obj, dict) and obj.get("apiVersion") and obj.get("kind")
]
VIEW = FilesCluster(OBJECTS)


def attributes(obj: dict) -> Attributes:
    return fixtures.attributes_of_object(obj, TABLE.row)


def check(value: object, kind: Type, structures: Mapping[str, Structure], at: str) -> None:
    """A value is of its declared type: every field there, none besides."""
    if kind == DYN:
        return
    if kind.name == "list":
        assert isinstance(value, list), at
        for each in value:
            check(each, kind.parameters[0], structures, f"{at}[]")
    elif kind.name == "map":
        assert isinstance(value, dict), at
        for key, each in value.items():
            check(each, kind.parameters[1], structures, f"{at}.{key}")
    elif kind.kind == "object":
        assert isinstance(value, dict), at
        fields = structures[kind.name].fields
        assert set(value) == set(fields), at
        for name, each in value.items():
            check(each, fields[name], structures, f"{at}.{name}")
    else:
        assert type(value) is {STRING: str, INT: int, BOOL: bool}[kind], at


@pytest.mark.parametrize("name", NAMES)
def test_values_agree_with_declared_types(name: str) -> None:
    kind, known = declared(name)
    structures = {each.name: each for each in known}
    for obj in OBJECTS:
        value = compute(name, obj, attributes(obj), VIEW, TABLE)
        check(value, kind, structures, name)
        json.dumps(value)


@pytest.mark.parametrize("name", NAMES)
def test_nothing_has_facts_too(name: str) -> None:
    """On DELETE the object is null."""
    kind, known = declared(name)
    value = compute(name, None, attributes({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}}), VIEW, TABLE)
    check(value, kind, {each.name: each for each in known}, name)


def test_pod_sets_are_shown() -> None:
    obj = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "d"},
        "spec": {"replicas": 2, "template": {"spec": {}}},
    }
    assert compute("podSets", obj, attributes(obj), VIEW, TABLE) == [
        {
            "name": "main",
            "path": "spec.template",
            "template": {"spec": {}},
            "count": 2,
            "groups": 1,
            "pods": 2,
            "change": "mutable",
            "changed": False,
        }
    ]


def test_an_unknown_fact_is_an_error() -> None:
    with pytest.raises(KeyError):
        compute("weather", {}, attributes({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}}), VIEW, TABLE)


def test_kinds_that_facts_look_up() -> None:
    claims = {"ResourceClaim", "ResourceClaimTemplate", "DeviceClass", "ComputeDomain", "Namespace"}
    assert claims <= {each.gvk.kind for each in lookups("dra")}
    assert {"ClusterTrainingRuntime", "TrainingRuntime", "ResourceClaimTemplate"} <= {
        each.gvk.kind for each in lookups("trainer")
    }
    assert lookups("training") == ()


def test_a_train_job_has_its_runtimes_pods() -> None:
    step = {"metadata": {"labels": {"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"}}}
    node = {"name": "node", "resources": {"limits": {"nvidia.com/gpu": 2}}}
    job = {"name": "node", "template": {**step, "spec": {"template": {"spec": {"containers": [node]}}}}}
    runtime = {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "ClusterTrainingRuntime",
        "metadata": {"name": "r"},
        "spec": {"mlPolicy": {"torch": {}}, "template": {"spec": {"replicatedJobs": [job]}}},
    }
    obj = {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "TrainJob",
        "metadata": {"name": "j", "namespace": "team"},
        "spec": {"runtimeRef": {"name": "r"}, "trainer": {"numNodes": 3}},
    }
    fact = compute("gpu", obj, attributes(obj), FilesCluster([runtime]), TABLE)
    assert (fact["devices"], fact["containers"][0]["path"], fact["missing"]) == (6, "spec.runtimeRef", [])
    (podset,) = compute("podSets", obj, attributes(obj), FilesCluster([runtime]), TABLE)
    assert (podset["name"], podset["path"], podset["pods"]) == ("node", "spec.runtimeRef", 3)
    trials = {"parallelTrials": 2, "trainJobTemplate": {"spec": obj["spec"]}}
    many = {**obj, "kind": "OptimizationJob", "spec": trials}
    (podset,) = compute("podSets", many, attributes(many), FilesCluster([runtime]), TABLE)
    assert (podset["path"], podset["count"], podset["pods"]) == ("spec.trainJobTemplate.spec.runtimeRef", 3, 6)
    assert compute("gpu", many, attributes(many), FilesCluster([runtime]), TABLE)["devices"] == 12
    assert compute("gpu", obj, attributes(obj), FilesCluster(), TABLE)["missing"] == [
        "ClusterTrainingRuntime r not found"
    ]


def test_patches_of_templates_are_kept_apart() -> None:
    patch = {"spec": {"containers": [{"name": "sandbox", "resources": {"limits": {"gpu": 2}}}]}}
    obj = {
        "apiVersion": "sandbox.opensandbox.io/v1alpha1",
        "kind": "BatchSandbox",
        "metadata": {"name": "b"},
        "spec": {"replicas": 2, "template": {"spec": {"containers": []}}, "shardPatches": [None, patch]},
    }
    fact = compute("gpu", obj, attributes(obj), FilesCluster(), TABLE)
    assert fact["containers"] == []
    assert [(c["path"], c["resources"][0]["kind"]) for c in fact["patches"]] == [
        ("spec.shardPatches[1].spec.containers[0]", "portable")
    ]
