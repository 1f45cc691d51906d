"""The fact `training`: what an object says by itself, and the numbers in its commands."""

from __future__ import annotations

import pytest

from webhook.facts.launch import launch
from webhook.facts.training import training


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        (["torchrun", "--nproc_per_node=8", "train.py"], ("torchrun", 8, "", None)),
        (["torchrun", "--nproc-per-node", "4", "--nnodes", "2"], ("torchrun", 4, "2", None)),
        (["bash", "-c", "cd /x; /opt/bin/torchrun --nproc_per_node 2 t.py"], ("torchrun", 2, "", None)),
        (["python", "-m", "torch.distributed.launch", "--nproc_per_node=$GPUS"], ("torchrun", None, "", None)),
        (["torchrun", "--nnodes=$(WORLD_SIZE)"], ("torchrun", None, "$(WORLD_SIZE)", None)),
        (["mpirun", "-np", "8", "-n", "3"], ("mpirun", None, "", 8)),
        (["/usr/bin/mpiexec", "-n", "2", "./pi"], ("mpirun", None, "", 2)),
        (["sh", "-c", "mpirun -np 2 a && mpirun -np 4 b"], ("mpirun", None, "", None)),
        (["python", "train.py", "-n", "3"], ("", None, "", None)),
        (["torchrun", "--nproc_per_node"], ("torchrun", None, "", None)),
        ([1, None], ("", None, "", None)),
        (None, ("", None, "", None)),
    ],
)
def test_commands_say_how_processes_start(command: object, expected: tuple) -> None:
    found = launch({"command": command})
    assert (found["by"], found["processes"], found["nodes"], found["ranks"]) == expected


def test_args_continue_the_command() -> None:
    assert launch({"command": ["mpirun"], "args": ["--map-by", "slot:OVERSUBSCRIBE", "-np", "4"]}) == {
        "by": "mpirun",
        "processes": None,
        "nodes": "",
        "ranks": 4,
        "oversubscribed": True,
    }


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
