"""The table of Kubeflow Trainer's fields agrees with its CRDs, and names the fields that a release lacks."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.rows import all_rows
from tests.yamldata import document
from webhook.deadline import Deadline
from webhook.facts.train_job_pods import train_job_and_runtime_fields
from webhook.facts.trainer.train_job import TRAIN_JOB_FIELD_RULES
from webhook.rules.problem import Problem

CRDS = Path(__file__).parents[2] / "data" / "crds"
FILES = {
    "TrainJob": "trainer.kubeflow.org_trainjobs.yaml",
    "TrainingRuntime": "trainer.kubeflow.org_trainingruntimes.yaml",
    "ClusterTrainingRuntime": "trainer.kubeflow.org_clustertrainingruntimes.yaml",
}


def told(obj: dict, kind: str, release: tuple[int, int]) -> Iterator[Problem]:
    return train_job_and_runtime_fields.check_fields_exist_in_release(
        obj, kind, release, TRAIN_JOB_FIELD_RULES, Deadline(), is_named=True
    )


def schema(kind: str) -> dict:
    (version,) = document(CRDS / FILES[kind])["spec"]["versions"]
    return version["schema"]["openAPIV3Schema"]


def disagreements(shape: train_job_and_runtime_fields.ObjectShape, published: dict, at: str) -> list[str]:
    """Return the fields that only the table or only the CRD of release 2.3 has."""
    found = []
    own = published.get("items", published).get("properties", {})
    if shape.known is not None:
        there = {name for name, each in shape.changed.items() if each.since <= (2, 3) <= each.until}
        found += [f"{at}.{name}" for name in (shape.known | there) ^ set(own)]
    for name, inner in shape.inner.items():
        if name in own:
            found += disagreements(inner, own[name], f"{at}.{name}")
    return found


@pytest.mark.parametrize("kind", FILES)
def test_the_table_is_that_of_the_published_crds(kind: str) -> None:
    assert disagreements(train_job_and_runtime_fields.read_field_table().kinds[kind], schema(kind), kind) == []


@all_rows(
    ("obj", "release", "expected"),
    [
        ({"podSpecOverrides": []}, (2, 0), []),
        ({"podSpecOverrides": []}, (2, 1), [("spec.podSpecOverrides", "release 2.0 has")]),
        ({"podTemplateOverrides": []}, (2, 1), []),
        ({"podTemplateOverrides": []}, (2, 2), [("spec.podTemplateOverrides", "release 2.1 has")]),
        ({"runtimePatches": []}, (2, 1), [("spec.runtimePatches", "releases since 2.2 have")]),
        ({"labels": {"a": "b"}}, (2, 3), [("spec.labels", "releases up to 2.1 have")]),
        ({"labels": None, "trainer": None}, (2, 3), []),
        ({"trainer": {"resourceClaimsPerNode": []}}, (2, 4), []),
        ({"trainer": {"resourceClaimsPerNode": [{"x": 1}]}}, (2, 4), [("spec.trainer.resourceClaimsPerNode[0].x", "")]),
        ({"podTemplateOverrides": [{"spec": {"nodeSelector": {}}}]}, (2, 1), []),
        (
            {"podTemplateOverrides": [{"spec": {"resourceClaims": []}}]},
            (2, 1),
            [("spec.podTemplateOverrides[0].spec.resourceClaims", "")],
        ),
        (
            {"podSpecOverrides": [{"containers": [{"name": "node", "image": "x"}]}]},
            (2, 0),
            [("spec.podSpecOverrides[0].containers[0].image", "")],
        ),
        ({"wrong": 1}, (2, 1), []),
        ({"wrong": 1}, (2, 3), [("spec.wrong", "")]),
        ({"wrong": 1}, (2, 9), []),
    ],
)
def test_releases_have_their_fields(obj: dict, release: tuple, expected: list) -> None:
    """Unknown names are reported only for releases with a known shape."""
    found = list(told({"spec": obj}, "TrainJob", release))
    assert [each.path for each in found] == [path for path, _ in expected]
    for each, (_, releases) in zip(found, expected, strict=True):
        assert each.code == ("train-job/other-release-field" if releases else "train-job/unknown-field")
        assert releases in each.message


def test_other_kinds_have_no_fields_to_miss() -> None:
    assert list(told({"spec": {"x": 1}}, "OptimizationJob", (2, 3))) == []
