"""How many processes a TrainJob starts on each node, by plugin and release of Kubeflow Trainer."""

from __future__ import annotations

import pytest

from tests.facts.trainer.made import job, node, of, pod_of, replicated, runtime
from tests.rows import all_rows
from webhook.facts.resource_units import cpu_count


@all_rows(
    ("resources", "explicit", "expected"),
    [
        ({"limits": {"cpu": 4}}, None, ("4", 4)),
        (None, None, ("1", 1)),
        ({"requests": {"cpu": 2}}, None, ("2", 2)),
        ({"limits": {"cpu": "3"}}, None, ("3", 3)),
        ({"limits": {"cpu": "2500m"}}, None, ("3", 3)),
        ({"limits": {"cpu": 2.5}}, None, ("3", 3)),
        ({"limits": {"cpu": "0.7"}}, None, ("1", 1)),
        ({"limits": {"cpu": "3.7"}}, None, ("4", 4)),
        ({"limits": {"example.com/gpu": 2, "cpu": 6}}, None, ("auto", 2)),
        ({"limits": {"cpu": 8}}, 3, ("3", 3)),
        ({"limits": {"cpu": 8}, "requests": {"cpu": 2}}, None, ("2", 2)),
        ({"limits": {"cpu": 8}, "requests": {"cpu": 0}}, None, ("8", 8)),
        ({"limits": {"nvidia.com/mig-1g.5gb": 2}}, None, ("1", 1)),
    ],
)
def test_torch_counts_gpus_then_cpus_then_one(resources: object, explicit: object, expected: tuple) -> None:
    """The rows and the formula of kubeflow/trainer pkg/runtime/framework/plugins/torch."""
    asked = {"numProcPerNode": explicit} if explicit else {}
    found = of(job(trainer=asked), runtime(replicated("node", node(resources), step="trainer"))).job.processes
    assert (found.per_node, found.count) == expected


@all_rows(
    ("policy", "resources", "explicit", "expected"),
    [
        ("mpi", None, None, ("1", 1)),
        ("mpi", {"limits": {"nvidia.com/gpu": 8}}, None, ("8", 8)),
        ("mpi", {"limits": {"nvidia.com/gpu": 1}}, None, ("1", 1)),
        ({"mpi": {"numProcPerNode": 4}}, {"limits": {"nvidia.com/gpu": 8}}, None, ("4", 4)),
        ({"mpi": {"numProcPerNode": 4}}, {"limits": {"nvidia.com/gpu": 8}}, 2, ("2", 2)),
        ("flux", {"limits": {"nvidia.com/gpu": 8}}, None, ("1", 1)),
        ({"flux": {"numProcPerNode": 3}}, None, None, ("3", 3)),
        ("xgboost", {"limits": {"nvidia.com/gpu": 2}}, 7, ("2", 2)),
        ("xgboost", None, None, ("1", 1)),
        ("jax", {"limits": {"nvidia.com/gpu": 8}}, 8, ("1", 1)),
        ({}, {"limits": {"nvidia.com/gpu": 8}}, None, ("1", 1)),
        (None, None, None, ("1", 1)),
    ],
)
def test_every_plugin_has_its_own_formula(policy: object, resources: object, explicit: object, expected: tuple) -> None:
    asked = {"numProcPerNode": explicit} if explicit else {}
    base = runtime(replicated("node", node(resources), step="trainer"), policy=policy)
    found = of(job(trainer=asked), base).job.processes
    assert (found.per_node, found.count) == expected
    assert found.reason


def test_the_plugin_of_a_runtime_is_named() -> None:
    plugins = [
        of(job(), runtime(policy=policy)).job.plugin for policy in ("torch", "mpi", "flux", "jax", "xgboost", {}, None)
    ]
    assert plugins == ["torch", "mpi", "flux", "jax", "xgboost", "plain", "none"]


def test_resources_per_node_alone_are_counted() -> None:
    """On 2.3, pods keep the runtime's GPUs, but Trainer does not count them (kubeflow/trainer#3974)."""
    base = runtime(replicated("node", node({"limits": {"nvidia.com/gpu": 4, "memory": "1Gi"}}), step="trainer"))
    fact = of(job(trainer={"resourcesPerNode": {"limits": {"memory": "2Gi"}}}), base)
    assert fact.job.processes.per_node == "1"
    assert pod_of(fact)["containers"][0]["resources"]["limits"] == {"nvidia.com/gpu": 4, "memory": "2Gi"}


@pytest.mark.parametrize(
    ("asked", "default", "resources", "expected"),
    [
        (None, "auto", {"limits": {"cpu": 4}}, ("4", 4)),
        ("cpu", "auto", {"limits": {"cpu": 4, "nvidia.com/gpu": 2}}, ("4", 4)),
        ("gpu", "auto", {"limits": {"cpu": 4, "nvidia.com/gpu": 2}}, ("gpu", 2)),
        ("auto", "auto", {"limits": {"nvidia.com/gpu": 2}}, ("auto", 2)),
        (None, 8, None, ("8", 8)),
        ("4", "auto", None, ("4", 4)),
        ("many", "auto", None, ("many", None)),
    ],
)
def test_before_2_2_the_number_may_be_a_word(
    asked: object, default: object, resources: object, expected: tuple
) -> None:
    base = runtime(replicated("node", node(resources), step="trainer"), policy={"torch": {"numProcPerNode": default}})
    found = of(job(trainer={"numProcPerNode": asked}), base, version=(2, 1)).job.processes
    assert (found.per_node, found.count) == expected


def test_cpus_that_are_not_a_quantity_are_ignored() -> None:
    assert cpu_count({"requests": {"cpu": "x"}, "limits": {"cpu": "2"}}) == 2
    assert cpu_count({}) == 0
