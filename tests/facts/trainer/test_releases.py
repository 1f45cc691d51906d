"""Releases of Kubeflow Trainer differ in the shapes of patches, in how they merge, and in how processes are counted.

Expected values follow the code of branches release-2.0 to release-2.3, and for 2.4 kubeflow/trainer#4027 and #4301.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.facts.trainer.made import job, node, of, patch, pod_of, pod_patch, replicated, runtime
from tests.rows import all_rows

EVERY = ((2, 0), (2, 1), (2, 2), (2, 3), (2, 4))
SINCE_2_1 = EVERY[1:]


def laid(version: tuple[int, int], name: str = "node", **pod: Any) -> dict:
    if version >= (2, 2):
        return {"runtimePatches": [patch(pod_patch(name, **pod))]}
    if version >= (2, 1):
        return {"podTemplateOverrides": [{"targetJobs": [{"name": name}], "spec": pod}]}
    return {"podSpecOverrides": [{"targetJobs": [{"name": name}], **pod}]}


# --- processes per node --------------------------------------------------------------------------------------------------


@all_rows("version", SINCE_2_1)
@all_rows(
    ("resources", "expected"),
    [
        ({"requests": {"cpu": 4}}, ("4", 4)),
        ({"requests": {"cpu": "2500m"}}, ("3", 3)),
        ({"limits": {"cpu": "0.7"}}, ("1", 1)),
        ({"requests": {"example.com/gpu": 2, "cpu": 6}}, ("auto", 2)),
        ({"limits": {"nvidia.com/gpu": 8}, "requests": {"cpu": 6}}, ("auto", 8)),
        ({}, ("1", 1)),
    ],
)
@all_rows("where", ["runtime", "job"])
def test_torch_since_2_1(version: tuple, resources: dict, expected: tuple, where: str) -> None:
    base = runtime(replicated("node", node(resources if where == "runtime" else None), step="trainer"))
    own = {"resourcesPerNode": resources} if where == "job" else {}
    found = of(job(trainer=own), base, version=version).job.processes
    assert (found.per_node, found.count) == expected


@all_rows(
    ("asked", "resources", "expected"),
    [
        ("auto", {"requests": {"cpu": 4}}, ("4", 4)),
        ("auto", {"limits": {"cpu": 4}}, ("4", 4)),
        ("auto", {"limits": {"cpu": "2.5"}, "requests": {"cpu": 1}}, ("3", 3)),
        ("auto", {"requests": {"example.com/gpu": 2}}, ("auto", 2)),
        ("auto", {"limits": {"example.com/gpu": 2}}, ("1", 1)),
        ("auto", {"limits": {"example.com/gpu": 2}, "requests": {"cpu": 6}}, ("6", 6)),
        ("auto", {}, ("1", 1)),
        ("cpu", {"requests": {"cpu": 6, "example.com/gpu": 2}}, ("6", 6)),
        ("cpu", {"requests": {"memory": "1Gi"}}, ("1", 1)),
        (3, {"requests": {"cpu": 8}}, ("3", 3)),
        (3, {"limits": {"cpu": 8}}, ("1", 1)),
        ("gpu", {"requests": {"nvidia.com/gpu": 2}}, ("gpu", 2)),
        (3, None, ("3", 3)),
        ("auto", None, ("auto", 4)),
        (None, None, ("auto", 4)),
    ],
)
def test_torch_of_2_0_reads_resources_per_node_alone(asked: object, resources: object, expected: tuple) -> None:
    """Without requests, release-2.0 torch.go calculateNumProcPerNode returns 1, for any setting."""
    base = runtime(replicated("node", node({"limits": {"nvidia.com/gpu": 4}}), step="trainer"))
    own = job(trainer={"numProcPerNode": asked, "resourcesPerNode": resources})
    found = of(own, base, version=(2, 0)).job.processes
    assert (found.per_node, found.count) == expected


@pytest.mark.parametrize(("version", "expected"), [((2, 0), "1"), *((each, "8") for each in SINCE_2_1)])
def test_mpi_raises_one_slot_to_the_gpus_since_2_1(version: tuple, expected: str) -> None:
    base = runtime(replicated("node", node({"limits": {"nvidia.com/gpu": 8}}), step="trainer"), policy="mpi")
    assert of(job(trainer={}), base, version=version).job.processes.per_node == expected


@pytest.mark.parametrize("version", EVERY)
def test_nodes_of_mpi_are_counted_apart(version: tuple) -> None:
    """newRuntimeInfo counts the labelled job as mlPolicy.numNodes. mpi.go puts spec.trainer.numNodes into `node`."""
    launcher, workers = replicated("launcher", node(), step="trainer"), replicated("node", node())
    workers["template"]["spec"]["parallelism"] = 3
    base = runtime(launcher, workers, policy={"mpi": {}, "numNodes": 2})

    def pods(**trainer: object) -> list[int]:
        jobs = of(job(trainer=trainer), base, version=version).job.replicated_jobs
        return [each.parallelism for each in jobs]

    assert pods() == [2, 3]
    assert pods(numNodes=5) == [2, 5]
    assert of(job(trainer={}), base, version=version).job.number_of_nodes == 3


def test_a_runtime_without_policy_keeps_its_own_parallelism() -> None:
    base = runtime(replicated("node", node(), step="trainer"), policy=None)
    base["spec"]["template"]["spec"]["replicatedJobs"][0]["template"]["spec"]["parallelism"] = 4
    fact = of(job(), base)
    assert (fact.job.number_of_nodes, fact.job.replicated_jobs[0].template.spec.completions) == (4, 4)


# --- merging -------------------------------------------------------------------------------------------------------------


@all_rows("version", EVERY)
@all_rows(
    ("before", "change", "after"),
    [
        ({"nodeSelector": {"a": "1"}}, {"nodeSelector": {"b": "2"}}, {"nodeSelector": {"a": "1", "b": "2"}}),
        ({"tolerations": [{"key": "a"}]}, {"tolerations": [{"key": "b"}]}, {"tolerations": [{"key": "b"}]}),
        (
            {"volumes": [{"name": "v", "emptyDir": {}}]},
            {"volumes": [{"name": "v", "hostPath": {"path": "/x"}}]},
            {"volumes": [{"name": "v", "emptyDir": {}, "hostPath": {"path": "/x"}}]},
        ),
        (
            {"schedulingGates": [{"name": "a"}]},
            {"schedulingGates": [{"name": "b"}]},
            {"schedulingGates": [{"name": "b"}, {"name": "a"}]},
        ),
        (
            {"affinity": {"nodeAffinity": {"required": {"nodeSelectorTerms": [{"a": 1}]}}}},
            {"affinity": {"nodeAffinity": {"required": {"nodeSelectorTerms": [{"b": 1}]}}}},
            {"affinity": {"nodeAffinity": {"required": {"nodeSelectorTerms": [{"b": 1}]}}}},
        ),
        ({"serviceAccountName": "a"}, {"serviceAccountName": "b"}, {"serviceAccountName": "b"}),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_patches_of_every_shape_have_the_same_result(version: tuple, before: dict, change: dict, after: dict) -> None:
    fact = of(
        job(**laid(version, **change)), runtime(replicated("node", node(), step="trainer", **before)), version=version
    )
    pod = pod_of(fact)
    is_dropped = "affinity" in change and version < (2, 1)  # podSpecOverrides has no such field
    assert {name: pod[name] for name in after} == (before if is_dropped else after)


@pytest.mark.parametrize("version", EVERY)
def test_containers_merge_by_name_and_mounts_by_path(version: tuple) -> None:
    base = runtime(replicated("node", node(volumeMounts=[{"name": "a", "mountPath": "/a"}]), step="trainer"))
    change = {"containers": [{"name": "node", "volumeMounts": [{"name": "a", "mountPath": "/b"}]}]}
    (container,) = pod_of(of(job(**laid(version, **change)), base, version=version))["containers"]
    assert sorted(each["mountPath"] for each in container["volumeMounts"]) == ["/a", "/b"]


@pytest.mark.parametrize("version", EVERY)
def test_an_unknown_job_in_a_patch_is_reported_in_every_release(version: tuple) -> None:
    fact = of(job(**laid(version, "nod", nodeSelector={"a": "b"})), runtime(), version=version)
    appended = version >= (2, 3)
    assert [text.split(" is")[0] for _, text in fact.told("patched-job")] == ["`nod`"]
    assert [each.name for each in fact.job.replicated_jobs] == (["nod", "node"] if appended else ["node"])


@pytest.mark.parametrize("version", EVERY)
def test_empty_resources_change_nothing_before_2_3(version: tuple) -> None:
    """Up to release-2.2, builder.go replaces resources only if limits or requests are set. Since 2.3, it always does."""
    base = runtime(replicated("node", node({"limits": {"cpu": 1}, "claims": [{"name": "c"}]}), step="trainer"))
    resources = pod_of(of(job(trainer={"resourcesPerNode": {}}), base, version=version))["containers"][0]["resources"]
    assert resources["limits"] == {"cpu": 1}
    assert ("claims" in resources) is (version != (2, 3))


@pytest.mark.parametrize(("version", "expected"), [((2, 3), "runtime"), ((2, 4), "mine")])
def test_workers_of_mpi_get_the_image_since_2_4(version: tuple, expected: str) -> None:
    base = runtime(replicated("launcher", node(), step="trainer"), replicated("node", node()), policy="mpi")
    fact = of(job(trainer={"image": "mine", "command": ["x"]}), base, version=version)
    assert pod_of(fact, 1)["containers"][0]["image"] == expected
    assert "command" not in pod_of(fact, 1)["containers"][0]
    assert pod_of(fact, 0)["containers"][0]["image"] == "mine"


@all_rows(
    ("policy", "release", "asked", "what"),
    [
        ("torch", (2, 1), "gpu", None),
        ("torch", (2, 1), "8", "processes"),
        ("torch", (2, 1), "npu", "processes"),
        ("torch", (2, 1), "${N}", None),
        ("mpi", (2, 1), "auto", "processes"),
        ("mpi", (2, 1), 4, None),
        ({}, (2, 1), "npu", None),
        ("torch", (2, 3), 0, "no-processes"),
        ("mpi", (2, 3), 0, "no-processes"),
        ("flux", (2, 3), 0, "processes"),
        ("flux", (2, 2), 0, "no-processes"),
        ("jax", (2, 3), 0, "no-processes"),
        ("torch", (2, 4), 0, "processes"),
    ],
)
def test_a_plugin_accepts_these_values_of_num_proc_per_node(
    policy: object, release: tuple, asked: object, what: str
) -> None:
    found = of(job(trainer={"numProcPerNode": asked}), runtime(policy=policy), version=release)
    assert found.rules("processes", "no-processes") == ([what] if what else [])


@pytest.mark.parametrize(
    ("policy", "name", "release", "explicit", "expected"),
    [
        ("torch", "PET_NNODES", (2, 1), None, False),
        ("torch", "PET_NNODES", (2, 1), 1, True),
        ("torch", "PET_NNODES", (2, 2), None, True),
        ("mpi", "OMPI_MCA_plm_rsh_args", (2, 2), None, False),
        ("mpi", "OMPI_MCA_plm_rsh_args", (2, 3), None, True),
    ],
)
def test_reserved_variables_by_release(
    policy: str, name: str, release: tuple, explicit: object, expected: bool
) -> None:
    own = job(trainer={"env": [{"name": name}], "numProcPerNode": explicit})
    assert bool(of(own, runtime(policy=policy), version=release).rules("reserved-env")) is expected
