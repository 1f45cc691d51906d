"""The fact `training`: what an object says by itself, outside its pods and of each role."""

from __future__ import annotations

import pytest

from webhook.facts.training_jobs.training import training


def fact(kind: str, spec: object, version: str = "v1", **metadata: object) -> dict:
    obj = {"apiVersion": f"kubeflow.org/{version}", "kind": kind, "metadata": metadata, "spec": spec}
    return training(obj, (2, 3))


def pods(*containers: object, **spec: object) -> dict:
    return {"template": {"spec": {"containers": list(containers), **spec}}}


def test_roles_have_their_main_container() -> None:
    main = {"name": "pytorch", "image": "x", "resources": {"limits": {"nvidia.com/gpu": "2", "cpu": "1500m"}}}
    side = {"name": "side", "resources": {"limits": {"nvidia.com/gpu": 8}}}
    (role,) = fact("PyTorchJob", {"pytorchReplicaSpecs": {"Worker": {"replicas": 3, **pods(side, main)}}})["roles"]
    at = "spec.pytorchReplicaSpecs.Worker"
    assert (role["path"], role["replicas"], role["given"], role["found"], role["open"]) == (at, 3, True, True, False)
    assert (role["gpus"], role["cpus"], role["gpuNamed"], role["gpusOpen"]) == (2, 2, True, False)
    assert role["containers"] == [
        {"name": "side", "path": f"{at}.template.spec.containers[0]", "image": ""},
        {"name": "pytorch", "path": f"{at}.template.spec.containers[1]", "image": "x"},
    ]


def test_the_first_container_of_an_mpi_job_is_its_main_one() -> None:
    first, second = (
        {"name": "a", "command": ["mpirun", "-np", "2", "x"]},
        {"name": "b", "command": ["mpirun", "-np", "4", "x"]},
    )
    (role,) = fact("MPIJob", {"mpiReplicaSpecs": {"Launcher": pods(first, second)}})["roles"]
    assert role["launch"]["ranks"] == 2


@pytest.mark.parametrize("version", ["v1", "v2beta1"])
def test_replicas_are_those_that_the_operator_fills_in(version: str) -> None:
    roles = fact("MPIJob", {"mpiReplicaSpecs": {"Launcher": pods(), "Worker": pods()}}, version)["roles"]
    assert [(role["given"], role["replicas"]) for role in roles] == [(False, 1), (False, 0)]
    (role,) = fact("TFJob", {"tfReplicaSpecs": {"Worker": {"replicas": "${N}", **pods()}}})["roles"]
    assert (role["given"], role["replicas"]) == (True, None)


def test_restart_policies_of_role_and_pod() -> None:
    worker = {"restartPolicy": "ExitCode", **pods(restartPolicy="Always")}
    (role,) = fact("JAXJob", {"jaxReplicaSpecs": {"Worker": worker}})["roles"]
    assert (role["restartPolicy"], role["podRestartPolicy"]) == ("ExitCode", "Always")
    worker = {"restartPolicy": "${POLICY}", **pods()}
    (role,) = fact("JAXJob", {"jaxReplicaSpecs": {"Worker": worker}})["roles"]
    assert (role["restartPolicy"], role["podRestartPolicy"]) == ("", "")


def test_amounts_without_a_number_are_told_apart() -> None:
    resources = {"limits": {"nvidia.com/gpu": None, "amd.com/gpu": "${GPUS}"}, "requests": "none"}
    (role,) = fact("JAXJob", {"jaxReplicaSpecs": {"Worker": pods({"name": "jax", "resources": resources})}})["roles"]
    assert (role["gpus"], role["nullGpus"], role["gpusOpen"]) == (0, ["nvidia.com/gpu"], True)


def test_variables_are_named_those_from_elsewhere_with_a_star() -> None:
    main = {"name": "jax", "env": [{"name": "A"}, {}], "envFrom": [{"configMapRef": {"name": "x"}}]}
    (role,) = fact("JAXJob", {"jaxReplicaSpecs": {"Worker": pods(main)}})["roles"]
    assert role["env"] == ["A", "", "*"]


@pytest.mark.parametrize(
    ("spec", "shared"),
    [
        (pods({"name": "jax", "volumeMounts": [{"mountPath": "/dev/shm/"}]}), True),
        (pods({"name": "jax", "volumeMounts": [{"mountPath": "/dev"}]}), False),
        (pods({"name": "jax"}, hostIPC=True), True),
        (pods({"name": "other", "volumeMounts": [{"mountPath": "/dev/shm"}]}), False),
    ],
)
def test_shared_memory_is_a_mount_or_the_hosts(spec: dict, shared: bool) -> None:
    (role,) = fact("JAXJob", {"jaxReplicaSpecs": {"Worker": spec}})["roles"]
    assert role["shm"] is shared


@pytest.mark.parametrize(
    ("roles", "expected", "is_open"),
    [
        (None, [], False),
        ({}, [], False),
        ("x", [], True),
        ("{{ roles }}", [], True),
        ([], [], True),
        ({"Worker": None}, [], False),
        ({"Worker": "x"}, [True], False),
        ({"Worker": {}}, [False], False),
        ({"Worker": {"template": "{{ template }}"}}, [True], False),
        ({"Worker": {"template": {"spec": None}}}, [False], False),
        ({"Worker": {"template": {"spec": {"containers": {}}}}}, [True], False),
        ({"Worker": pods(None)}, [False], False),
        ({"Worker": pods("${CONTAINER}")}, [True], False),
        ({"Worker": pods({"name": 1})}, [True], False),
        ({"Worker": pods({"name": "x", "args": [None, 1]})}, [True], False),
        ({"Worker": {"replicas": True, **pods({})}}, [False], False),
    ],
)
def test_odd_roles_have_a_fact(roles: object, expected: list[bool], is_open: bool) -> None:
    found = fact("TFJob", {"tfReplicaSpecs": roles})
    assert found["open"] is is_open
    assert [role["open"] for role in found["roles"]] == expected
    assert all((role["gpus"], role["found"]) == (0, False) for role in found["roles"])


def test_a_container_that_is_still_to_be_named_may_be_the_main_one() -> None:
    (role,) = fact("TFJob", {"tfReplicaSpecs": {"Worker": pods({"name": "${NAME}", "image": "x"})}})["roles"]
    assert (role["found"], role["open"]) == (True, False)


def test_settings_are_what_fits() -> None:
    spec = {
        "nprocPerNode": "auto",
        "elasticPolicy": {"minReplicas": 1, "maxReplicas": "${MAX}", "rdzvConf": [], "standalone": None},
        "runPolicy": {"suspend": True, "activeDeadlineSeconds": 1 << 40, "backoffLimit": 3.0, "unknown": 1},
    }
    found = fact("PyTorchJob", spec, name="j")
    assert found["settings"] == {
        "runPolicy": spec["runPolicy"],
        "runPolicy.activeDeadlineSeconds": 1 << 40,
        "runPolicy.suspend": True,
        "elasticPolicy": spec["elasticPolicy"],
        "elasticPolicy.minReplicas": 1,
        "elasticPolicy.rdzvConf": [],
        "nprocPerNode": "auto",
    }
    assert found["unfilled"] == ["runPolicy.backoffLimit", "elasticPolicy.maxReplicas"]
    assert (found["name"], found["odd"]) == ("j", [])


@pytest.mark.parametrize(
    ("value", "found"),
    [
        ("4", '`"4"`'),
        ("four", "`four`"),
        (True, "`true`"),
        (1.5, "`1.5`"),
        (1 << 31, "`2147483648`"),
        ([], "a list"),
        ({}, "a map"),
    ],
)
def test_values_of_another_type_are_named(value: object, found: str) -> None:
    said = fact("MPIJob", {"slotsPerWorker": value, "mpiReplicaSpecs": {"Worker": {"replicas": value}}})
    assert said["odd"] == [
        {"path": "spec.slotsPerWorker", "found": found, "expected": "a whole number"},
        {"path": "spec.mpiReplicaSpecs.Worker.replicas", "found": found, "expected": "a whole number"},
    ]
    assert said["unfilled"] == ["slotsPerWorker"]


@pytest.mark.parametrize("name", [None, 1, "${NAME}", "{{ name }}"])
def test_a_job_may_have_no_name_yet(name: object) -> None:
    assert fact("JAXJob", {}, name=name)["name"] == ""


@pytest.mark.parametrize("spec", [None, "x", 1, []])
def test_a_spec_of_any_kind_has_a_fact(spec: object) -> None:
    found = fact("JAXJob", spec)
    assert found["roles"] == []
    assert [odd["expected"] for odd in found["odd"]] == ([] if spec is None else ["a map"])


@pytest.mark.parametrize(("release", "expected"), [((2, 3), ("2.3", 3)), ((3, 0), ("3.0", 99)), ((1, 9), ("1.9", 0))])
def test_releases_can_be_compared(release: tuple, expected: tuple) -> None:
    found = training(None, release)
    assert (found["release"], found["minor"]) == expected
