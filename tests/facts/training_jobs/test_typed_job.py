"""Typed jobs of the Training Operator and the MPI Operator: settings, and roles with their pods."""

from __future__ import annotations

import pytest

from tests.facts.subjects import subject
from webhook.apimachinery.attributes import JSON
from webhook.facts.training_jobs.typed_job import RoleOfJob, TrainingJobOfKind, read_job
from webhook.text.wording import either


def made(kind: str, spec: JSON, version: str = "v1", **metadata: JSON) -> JSON:
    return {"apiVersion": f"kubeflow.org/{version}", "kind": kind, "metadata": metadata, "spec": spec}


def read(kind: str, spec: JSON, version: str = "v1", **metadata: JSON) -> TrainingJobOfKind:
    return read_job(subject(made(kind, spec, version, **metadata)))


def role(kind: str, field: str, value: JSON) -> RoleOfJob:
    (found,) = read(kind, {field: {"Worker": value}}).roles.values()
    return found


def pods(*containers: JSON, **spec: JSON) -> JSON:
    return {"template": {"spec": {"containers": list(containers), **spec}}}


def jax(*containers: JSON, **spec: JSON) -> RoleOfJob:
    return role("JAXJob", "jaxReplicaSpecs", pods(*containers, **spec))


def test_roles_have_their_main_container() -> None:
    main = {"name": "pytorch", "image": "x", "resources": {"limits": {"nvidia.com/gpu": "2", "cpu": "1500m"}}}
    side = {"name": "side", "resources": {"limits": {"nvidia.com/gpu": 8}}}
    found = role("PyTorchJob", "pytorchReplicaSpecs", {"replicas": 3, **pods(side, main)})
    assert (found.replicas, found.sets_replicas, found.has_main, found.is_open) == (3, True, True, False)
    assert (found.gpus, found.cpus, found.limits_gpus, found.has_open_gpus) == (2, 2, True, False)
    assert [container.json for container in found.containers] == [side, main]


def test_the_first_container_of_an_mpi_job_is_its_main_one() -> None:
    first, second = (
        {"name": "a", "command": ["mpirun", "-np", "2", "x"]},
        {"name": "b", "command": ["mpirun", "-np", "4", "x"]},
    )
    assert role("MPIJob", "mpiReplicaSpecs", pods(first, second)).launch.ranks == 2


@pytest.mark.parametrize("version", ["v1", "v2beta1"])
def test_replicas_have_the_default_of_the_operator(version: str) -> None:
    roles = read("MPIJob", {"mpiReplicaSpecs": {"Launcher": pods(), "Worker": pods()}}, version).roles.values()
    assert [(each.sets_replicas, each.replicas) for each in roles] == [(False, 1), (False, 0)]
    found = role("TFJob", "tfReplicaSpecs", {"replicas": "${N}", **pods()})
    assert (found.sets_replicas, found.replicas) == (True, None)


def test_restart_policies_of_role_and_pod() -> None:
    found = role("JAXJob", "jaxReplicaSpecs", {"restartPolicy": "ExitCode", **pods(restartPolicy="Always")})
    assert (found.restart_policy, found.pod_restart_policy) == ("ExitCode", "Always")
    found = role("JAXJob", "jaxReplicaSpecs", {"restartPolicy": "${POLICY}", **pods()})
    assert (found.restart_policy, found.pod_restart_policy) == ("", "")


def test_amounts_without_a_number_are_distinguished() -> None:
    found = jax({"name": "jax", "resources": {"limits": {"nvidia.com/gpu": None, "amd.com/gpu": "${GPUS}"}}})
    assert (found.gpus, [path[-2:] for path in found.null_gpus]) == (0, [("limits", "nvidia.com/gpu")])
    assert found.has_open_gpus


def test_unknown_variables_of_env_from_are_a_star() -> None:
    found = jax({"name": "jax", "env": [{"name": "A"}, {}], "envFrom": [{"configMapRef": {"name": "x"}}]})
    assert found.env == {"A", "", "*"}


@pytest.mark.parametrize(
    ("containers", "spec", "shared"),
    [
        ([{"name": "jax", "volumeMounts": [{"mountPath": "/dev/shm/"}]}], {}, True),
        ([{"name": "jax", "volumeMounts": [{"mountPath": "/dev"}]}], {}, False),
        ([{"name": "jax"}], {"hostIPC": True}, True),
        ([{"name": "other", "volumeMounts": [{"mountPath": "/dev/shm"}]}], {}, False),
    ],
)
def test_shared_memory_is_a_mount_or_that_of_the_host(containers: list[JSON], spec: JSON, shared: bool) -> None:
    assert jax(*containers, **spec).shares_memory is shared


@pytest.mark.parametrize(
    ("roles", "expected", "is_open"),
    [
        (None, [], False),
        ({}, [], False),
        ("{{ roles }}", [], True),
        ({"Worker": None}, [], False),
        ({"Worker": {}}, [False], False),
        ({"Worker": "${ROLE}"}, [True], False),
        ({"Worker": {"template": "{{ template }}"}}, [True], False),
        ({"Worker": {"template": {"spec": None}}}, [False], False),
        ({"Worker": pods("${CONTAINER}")}, [True], False),
        ({"Worker": pods({"name": "x", "args": ["${ARG}"]})}, [False], False),
    ],
)
def test_a_placeholder_makes_the_answer_unknown(roles: JSON, expected: list[bool], is_open: bool) -> None:
    found = read("TFJob", {"tfReplicaSpecs": roles})
    assert found.is_open is is_open
    assert [each.is_open for each in found.roles.values()] == expected


def test_a_role_with_a_template_that_cannot_be_decoded_is_unknown() -> None:
    given = subject(made("TFJob", {"tfReplicaSpecs": {"Worker": pods()}}))
    given.omitted = frozenset({("spec", "tfReplicaSpecs", "Worker", "template")})
    assert read_job(given).roles["Worker"].is_open


def test_a_container_with_a_placeholder_name_may_be_the_main_one() -> None:
    found = role("TFJob", "tfReplicaSpecs", pods({"name": "${NAME}", "image": "x"}))
    assert (found.has_main, found.is_open) == (True, False)


def test_placeholder_settings_are_ignored() -> None:
    elastic = {"minReplicas": 1, "maxReplicas": "${MAX}", "rdzvConf": [], "standalone": None}
    found = read("PyTorchJob", {"nprocPerNode": "$N", "elasticPolicy": elastic, "runPolicy": {"backoffLimit": 3.0}})
    assert (found.value_at("nprocPerNode"), found.is_placeholder_at("nprocPerNode")) == (None, True)
    assert found.number_at("elasticPolicy", "maxReplicas") is None
    assert found.is_placeholder_at("elasticPolicy", "maxReplicas")
    assert (found.number_at("elasticPolicy", "minReplicas"), found.number_at("runPolicy", "backoffLimit")) == (1, 3)
    assert not found.is_placeholder_at("elasticPolicy", "minReplicas")


@pytest.mark.parametrize("name", [None, "${NAME}", "{{ name }}"])
def test_a_job_may_have_no_name_yet(name: JSON) -> None:
    assert read("JAXJob", {}, name=name).name == ""


def test_a_version_that_does_not_exist_is_read_as_the_existing_version() -> None:
    assert read("TFJob", {"tfReplicaSpecs": {"Worker": pods()}}, "v2beta1").roles["Worker"].replicas == 1


def test_pods_are_counted_if_all_roles_have_a_number() -> None:
    both = {"Chief": pods(), "Worker": {"replicas": 3, **pods()}}
    assert read("TFJob", {"tfReplicaSpecs": both}).count_pods() == 4
    assert read("TFJob", {"tfReplicaSpecs": {**both, "PS": {"replicas": "$N"}}}).count_pods() is None
    assert read("TFJob", {"tfReplicaSpecs": "{{ roles }}"}).count_pods() is None


def test_choices_are_joined_by_or() -> None:
    assert (either(["a"]), either(["a", "b"]), either(["a", "b", "c"])) == ("a", "a or b", "a, b or c")
