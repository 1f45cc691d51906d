"""The facts as policies get them: names, types that agree with the values, and only plain JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.facts.subjects import subject
from tests.yamldata import documents
from webhook.apimachinery.attributes import JSON
from webhook.cel.types import BOOL, DYN, INT, STRING, Structure, Type
from webhook.cluster.files import FilesCluster
from webhook.facts.subject import SHIPPED, FactRegistry
from webhook.rules.problem import MissingObject

MANIFESTS = Path(__file__).parents[1] / "data" / "manifests"
OBJECTS = [
    obj
    for file in sorted(MANIFESTS.rglob("*.yaml"))
    for obj in documents(file)
    if isinstance(obj, dict) and obj.get("apiVersion") and obj.get("kind")
]
VIEW = FilesCluster(OBJECTS)
NAMES = SHIPPED.fact_names


def structures(name: str) -> Mapping[str, Structure]:
    return {each.structure.name: each.structure for each in SHIPPED.fact(name).structures}


def check(value: object, kind: Type, known: Mapping[str, Structure], at: str) -> None:
    """Fail unless a value of a fact has exactly the declared fields, with their types."""
    if kind == DYN:
        return
    if kind.name == "list":
        assert isinstance(value, list), at
        for each in value:
            check(each, kind.parameters[0], known, f"{at}[]")
    elif kind.name == "map":
        assert isinstance(value, dict), at
        for key, each in value.items():
            check(each, kind.parameters[1], known, f"{at}.{key}")
    elif kind.kind == "object":
        assert isinstance(value, dict), at
        fields = known[kind.name].fields
        assert set(value) == set(fields), at
        for name, each in value.items():
            check(each, fields[name], known, f"{at}.{name}")
    else:
        assert type(value) is {STRING: str, INT: int, BOOL: bool}[kind], at


@pytest.mark.parametrize("name", NAMES)
def test_values_agree_with_declared_types(name: str) -> None:
    """Missing objects are reported for declared fields."""
    fact, known = SHIPPED.fact(name), structures(name)
    fields = {"", *known.get(fact.type.name, Structure("")).fields}
    for obj in OBJECTS:
        result = subject(obj, cluster=VIEW).fact_result(name)
        check(result.value, fact.type, known, name)
        json.dumps(result.value)
        assert set(result.missing) <= fields


@pytest.mark.parametrize("name", NAMES)
def test_null_has_facts_too(name: str) -> None:
    """On DELETE the object is null."""
    result = subject(None, cluster=VIEW).fact_result(name)
    check(result.value, SHIPPED.fact(name).type, structures(name), name)
    assert result.missing_objects_of_fields() == ()


def test_a_package_has_the_facts_of_the_list() -> None:
    import importlib

    for package in SHIPPED.packages:
        declared = importlib.import_module(package.fact_module).FACTS if package.facts else ()
        assert tuple(each.name for each in declared) == package.facts, (
            f"webhook/facts/packages.py: `facts` of the row of {package.module} must be the names in FACTS of "
            f"{package.fact_module}"
        )


def test_a_package_has_the_groups_of_the_list() -> None:
    import importlib

    for package in SHIPPED.packages:
        declared = importlib.import_module(package.checks_module).CHECKS if package.groups else ()
        lost = {each.group for each in declared} - set(SHIPPED.check_groups)
        assert not lost, f"webhook/facts/packages.py: add {lost} to `groups` of the row of {package.module}"
        for group in package.groups:
            assert SHIPPED.checks(group), f"CHECKS of {package.checks_module} has no Check of `{group}`: add it"


def test_a_structure_is_declared_once() -> None:
    """Two facts with a structure of one name use the same structure."""
    known: dict[str, object] = {}
    for each in (each for name in NAMES for each in SHIPPED.fact(name).structures):
        assert known.setdefault(each.structure.name, each) is each


def test_pod_sets_are_shown() -> None:
    obj = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "d"},
        "spec": {"replicas": 2, "template": {"spec": {}}},
    }
    assert subject(obj, cluster=VIEW).fact("podSets") == [
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
        subject(None).fact("weather")


def test_kinds_that_facts_look_up() -> None:
    kinds = {name: {each.gvk.kind for each in SHIPPED.fact(name).lookups} for name in NAMES}
    assert {"ResourceClaim", "ResourceClaimTemplate", "DeviceClass", "ComputeDomain", "Namespace"} <= kinds["dra"]
    assert {"ClusterTrainingRuntime", "TrainingRuntime", "ResourceClaimTemplate"} <= kinds["trainer"]
    assert kinds["training"] == set()


def train_job(kind: str = "TrainJob", **spec: JSON) -> JSON:
    return {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": kind,
        "metadata": {"name": "j", "namespace": "team"},
        "spec": spec or {"runtimeRef": {"name": "r"}, "trainer": {"numNodes": 3}},
    }


def runtime() -> JSON:
    step = {"metadata": {"labels": {"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"}}}
    node = {"name": "node", "resources": {"limits": {"nvidia.com/gpu": 2}}}
    job = {"name": "node", "template": {**step, "spec": {"template": {"spec": {"containers": [node]}}}}}
    return {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "ClusterTrainingRuntime",
        "metadata": {"name": "r"},
        "spec": {"mlPolicy": {"torch": {}}, "template": {"spec": {"replicatedJobs": [job]}}},
    }


def test_a_train_job_has_its_runtimes_pods() -> None:
    one = subject(train_job(), runtime())
    assert (one.fact("gpu")["devices"], one.fact("gpu")["containers"][0]["path"]) == (6, "spec.runtimeRef")
    assert one.fact_result("gpu").missing_objects_of_fields() == ()
    (podset,) = one.fact("podSets")
    assert (podset["name"], podset["path"], podset["pods"]) == ("node", "spec.runtimeRef", 3)
    trials = {"parallelTrials": 2, "trainJobTemplate": {"spec": train_job()["spec"]}}
    many = subject(train_job("OptimizationJob", **trials), runtime())
    (podset,) = many.fact("podSets")
    assert (podset["path"], podset["count"], podset["pods"]) == ("spec.trainJobTemplate.spec.runtimeRef", 3, 6)
    assert many.fact("gpu")["devices"] == 12


@pytest.mark.parametrize("name", ["podSets", "gpu", "dra", "priorities", "trainer"])
def test_facts_about_pods_report_a_missing_runtime(name: str) -> None:
    for obj in (train_job(), train_job("OptimizationJob", trainJobTemplate={"spec": train_job()["spec"]})):
        lacks = subject(obj).fact_result(name).missing_objects_of_fields()
        expected = (
            () if obj["kind"] == "OptimizationJob" and name == "trainer" else ("ClusterTrainingRuntime r not found",)
        )
        assert tuple(map(str, lacks)) == expected


def test_only_fields_that_needed_an_object_lack_it() -> None:
    (runtime_,) = subject(train_job()).fact_result("trainer").missing_objects_of_fields(("processes",))
    assert runtime_ == MissingObject(kind="ClusterTrainingRuntime", name="r")
    assert subject(train_job()).fact_result("gpu").missing_objects_of_fields(("patches",)) == ()
    claims = [{"name": "a", "resourceClaimName": "a"}]
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "n"}}
    dra = subject({**pod, "spec": {"containers": [], "resourceClaims": claims}}).fact_result("dra")
    assert dra.missing_objects_of_fields(("claims",)) == (MissingObject(kind="ResourceClaim", namespace="n", name="a"),)
    assert dra.missing_objects_of_fields(("requests",)) == ()


def test_patches_of_templates_are_separate() -> None:
    patch = {"spec": {"containers": [{"name": "sandbox", "resources": {"limits": {"gpu": 2}}}]}}
    obj = {
        "apiVersion": "sandbox.opensandbox.io/v1alpha1",
        "kind": "BatchSandbox",
        "metadata": {"name": "b"},
        "spec": {"replicas": 2, "template": {"spec": {"containers": []}}, "shardPatches": [None, patch]},
    }
    fact = subject(obj).fact("gpu")
    assert fact["containers"] == []
    assert [(c["path"], c["resources"][0]["kind"]) for c in fact["patches"]] == [
        ("spec.shardPatches[1].spec.containers[0]", "portable")
    ]


def test_invented_kinds_do_not_evict_other_cached_kinds():
    registry = FactRegistry(SHIPPED.packages)
    for number in range(3000):
        registry.checks_of_kind((f"{number}.example", "Invented"), is_deleted=False)
    assert len(registry._of_kinds) <= 1000
    pods = registry.checks_of_kind(("", "Pod"), is_deleted=False)
    assert registry.checks_of_kind(("", "Pod"), is_deleted=False) is pods
