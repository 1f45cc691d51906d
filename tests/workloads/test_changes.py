"""What a change of a pod template does to the running pods, by kind, and for a suspended object."""

import pytest

from tests.literals import TABLE
from webhook.workloads.podsets import PodSet, change_of_template, is_template_changed, pod_templates


def workload(api_version: str, kind: str, **spec: object) -> dict:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": "x"}, "spec": spec}


@pytest.mark.parametrize(
    ("obj", "old", "expected"),
    [
        pytest.param(workload("apps/v1", "Deployment"), None, "mutable", id="a deployment"),
        pytest.param({"apiVersion": "v1", "kind": "Pod"}, None, "immutable", id="a pod"),
        pytest.param(workload("ray.io/v1", "RayCluster"), None, "later", id="a cluster that runs"),
        pytest.param(
            workload("ray.io/v1", "RayCluster", suspend=True), None, "mutable", id="a cluster that is suspended now"
        ),
        pytest.param(
            workload("ray.io/v1", "RayCluster", suspend=False),
            workload("ray.io/v1", "RayCluster", suspend=True),
            "mutable",
            id="a cluster that was suspended",
        ),
        pytest.param(workload("batch/v1", "Job", suspend=None), None, "immutable", id="a job that runs"),
        pytest.param(workload("batch/v1", "Job", suspend=True), None, "mutable", id="a job that is suspended"),
        pytest.param(workload("batch/v1", "Job", suspend="yes"), None, "immutable", id="a word does not suspend a job"),
        pytest.param(
            workload("sparkoperator.k8s.io/v1alpha1", "SparkConnect"),
            None,
            "later",
            id="a kind that cannot be suspended",
        ),
        pytest.param(workload("example.org/v1", "Fleet"), None, "mutable", id="a kind that is not in the table"),
        pytest.param(None, None, "mutable", id="not an object"),
    ],
)
def test_a_template_change_has_this_effect(obj: object, old: object, expected: str) -> None:
    assert change_of_template(obj, old, TABLE) == expected


def test_a_change_of_a_template_is_a_change_of_its_pod_spec() -> None:
    (before,) = pod_templates(workload("apps/v1", "Deployment", template={"spec": {"a": 1}}), TABLE)
    (same,) = pod_templates(workload("apps/v1", "Deployment", template={"metadata": {}, "spec": {"a": 1}}), TABLE)
    (other,) = pod_templates(workload("apps/v1", "Deployment", template={"spec": {"a": 2}}), TABLE)
    assert [is_template_changed(each, before) for each in (same, other)] == [False, True]
    assert not is_template_changed(other, None)
    assert not is_template_changed(PodSet(name="main", path=(), template={"spec": {}}, elsewhere=True), before)
