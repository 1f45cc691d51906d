"""The fact `training`: what an object says by itself."""

from __future__ import annotations

import pytest

from webhook.facts.training import training


def test_roles_have_their_main_container() -> None:
    main = {"name": "pytorch", "image": "x", "resources": {"limits": {"nvidia.com/gpu": "2", "cpu": "1500m"}}}
    side = {"name": "side", "resources": {"limits": {"nvidia.com/gpu": 8}}}
    spec = {"pytorchReplicaSpecs": {"Worker": {"replicas": 3, "template": {"spec": {"containers": [side, main]}}}}}
    (role,) = training({"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "spec": spec}, (2, 3))["roles"]
    assert (role["path"], role["replicas"], role["found"]) == ("spec.pytorchReplicaSpecs.Worker", 3, True)
    assert (role["gpus"], role["cpus"], role["containers"], role["noImage"]) == (2, 2, ["side", "pytorch"], ["side"])


@pytest.mark.parametrize("roles", [None, "x", {}, {"Worker": None}, {"Worker": {"replicas": True, "template": "x"}}])
def test_odd_roles_have_a_fact(roles: object) -> None:
    found = training({"apiVersion": "kubeflow.org/v1", "kind": "TFJob", "spec": {"tfReplicaSpecs": roles}}, (2, 3))
    assert all((role["replicas"], role["found"], role["gpus"]) == (1, False, 0) for role in found["roles"])


@pytest.mark.parametrize(("release", "expected"), [((2, 3), ("2.3", 3)), ((3, 0), ("3.0", 99)), ((1, 9), ("1.9", 0))])
def test_releases_can_be_compared(release: tuple, expected: tuple) -> None:
    found = training(None, release)
    assert (found["release"], found["minor"], found["missing"]) == (*expected, [])
