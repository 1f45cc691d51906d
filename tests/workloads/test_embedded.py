"""Objects inside other objects: their places in the table, their kinds, and how often each is created."""

from __future__ import annotations

import pytest

from tests.literals import TABLE
from webhook.apimachinery.paths import path_as_text
from webhook.workloads.embedded import embedded_objects, may_hold_kind

TRAIN_JOB = {"apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainJob", "spec": {}}


def wrapper(*templates: object) -> dict:
    components = [{"template": each} for each in templates]
    return {"apiVersion": "workload.codeflare.dev/v1beta2", "kind": "AppWrapper", "spec": {"components": components}}


def optimization(**spec: object) -> dict:
    return {"apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "OptimizationJob", "spec": spec}


@pytest.mark.parametrize(
    ("obj", "expected"),
    [
        (optimization(trainJobTemplate={"spec": {}}), [("spec.trainJobTemplate", "TrainJob", 1)]),
        (optimization(trainJobTemplate={}, parallelTrials=3), [("spec.trainJobTemplate", "TrainJob", 3)]),
        (optimization(trainJobTemplate=None), []),
        (optimization(trainJobTemplate=[]), []),
        (wrapper(TRAIN_JOB, {"apiVersion": "v1", "kind": "Secret"}), [("spec.components[0].template", "TrainJob", 1)]),
        (
            wrapper(None, optimization(trainJobTemplate={}, parallelTrials=2)),
            [
                ("spec.components[1].template", "OptimizationJob", 1),
                ("spec.components[1].template.spec.trainJobTemplate", "TrainJob", 2),
            ],
        ),
        (TRAIN_JOB, []),
        ({"kind": "Unknown"}, []),
        (None, []),
    ],
)
def test_objects_inside_objects(obj: object, expected: list) -> None:
    assert [
        (path_as_text(each.path), each.object["kind"], each.groups) for each in embedded_objects(obj, TABLE)
    ] == expected


def test_an_embedded_object_is_unchanged_except_for_its_kind() -> None:
    (found,) = embedded_objects(
        optimization(trainJobTemplate={"metadata": {"labels": {"a": "b"}}, "spec": {"x": 1}}), TABLE
    )
    assert found.object == {**TRAIN_JOB, "metadata": {"labels": {"a": "b"}}, "spec": {"x": 1}}
    assert found.row.resource == "trainjobs"


def test_nested_wrappers_are_followed_to_a_bound() -> None:
    obj = TRAIN_JOB
    for _ in range(9):
        obj = wrapper(obj)
    assert len(list(embedded_objects(obj, TABLE))) == 4


def test_the_kinds_that_may_embed_a_train_job_are_known() -> None:
    holders = {row.kind for row in TABLE.rows if may_hold_kind(row, "trainer.kubeflow.org", "TrainJob")}
    assert holders == {"AppWrapper", "Experiment", "OptimizationJob"}
    assert {row.kind for row in TABLE.rows if may_hold_kind(row, "batch", "Job")} == {"AppWrapper", "Experiment"}
