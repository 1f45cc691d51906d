"""The fact `trainer`: what a TrainJob becomes on its runtime, per release of Kubeflow Trainer, and its processes per node."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from tests.facts.subjects import with_missing
from webhook.cluster.files import FilesCluster
from webhook.facts.trainer.processes import cpu_count
from webhook.facts.trainer.train_job import runtime_podsets, trainer
from webhook.facts.view import View

STEP = "trainer.kubeflow.org/trainjob-ancestor-step"
MANIFESTS = Path(__file__).parents[2] / "data" / "manifests" / "kubeflow"


def replicated(name: str, *containers: dict, step: str = "", **pod: object) -> dict:
    template: dict = {"spec": {"template": {"spec": {"containers": list(containers), **pod}}}}
    return {"name": name, "template": {**({"metadata": {"labels": {STEP: step}}} if step else {}), **template}}


def node(resources: object = None, **more: object) -> dict:
    return {"name": "node", "image": "runtime", **({"resources": resources} if resources else {}), **more}


def runtime(*jobs: dict, policy: object = "torch", **more: object) -> dict:
    jobs = jobs or (replicated("node", node(), step="trainer"),)
    ml = {policy: {}} if isinstance(policy, str) else policy
    return {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "ClusterTrainingRuntime",
        "metadata": {"name": "r", **more},
        "spec": {**({"mlPolicy": ml} if ml is not None else {}), "template": {"spec": {"replicatedJobs": list(jobs)}}},
    }


def job(name: str = "j", **spec: object) -> dict:
    return {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "TrainJob",
        "metadata": {"name": name, "namespace": "team"},
        "spec": {"runtimeRef": {"name": "r"}, **spec},
    }


def of(obj: dict, *context: dict, version: tuple[int, int] = (2, 3)) -> dict:
    view = View(FilesCluster(context), "team")
    return with_missing(trainer(obj, view, version), view)


def patch(*jobs: dict) -> dict:
    return {"manager": "example.org/x", "trainingRuntimeSpec": {"template": {"spec": {"replicatedJobs": list(jobs)}}}}


def pod_patch(name: str, **pod: object) -> dict:
    return {"name": name, "template": {"spec": {"template": {"spec": pod}}}}


def pod_of(fact: dict, index: int = 0) -> dict:
    return fact["jobSet"]["replicatedJobs"][index]["template"]["spec"]["template"]["spec"]


# --- processes -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
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
    """The rows of kubeflow/trainer pkg/runtime/framework/plugins/torch/torch_test.go, by torch.go's formula."""
    asked = {"numProcPerNode": explicit} if explicit else {}
    found = of(job(trainer=asked), runtime(replicated("node", node(resources), step="trainer")))["processes"]
    assert (found["perNode"], found["count"]) == expected
    assert found["explicit"] is bool(explicit)


@pytest.mark.parametrize(
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
    found = of(job(trainer=asked), runtime(replicated("node", node(resources), step="trainer"), policy=policy))[
        "processes"
    ]
    assert (found["perNode"], found["count"]) == expected
    assert found["reason"]


def test_plugins_have_names() -> None:
    plugins = [
        of(job(), runtime(policy=policy))["runtime"]["plugin"]
        for policy in ("torch", "mpi", "flux", "jax", "xgboost", {}, None)
    ]
    assert plugins == ["torch", "mpi", "flux", "jax", "xgboost", "plain", "none"]


def test_resources_per_node_alone_are_counted() -> None:
    """Pods keep the runtime's GPUs on 2.3, the count does not see them (kubeflow/trainer#3974)."""
    base = runtime(replicated("node", node({"limits": {"nvidia.com/gpu": 4, "memory": "1Gi"}}), step="trainer"))
    fact = of(job(trainer={"resourcesPerNode": {"limits": {"memory": "2Gi"}}}), base)
    assert fact["processes"]["perNode"] == "1"
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
    found = of(job(trainer={"numProcPerNode": asked}), base, version=(2, 1))["processes"]
    assert (found["perNode"], found["count"]) == expected


def test_cpus_that_are_no_quantity_are_none() -> None:
    assert cpu_count({"requests": {"cpu": "x"}, "limits": {"cpu": "2"}}) == 2
    assert cpu_count({}) == 0


# --- merging -------------------------------------------------------------------------------------------------------------


def test_the_trainer_step_gets_spec_trainer() -> None:
    base = runtime(
        replicated(
            "node",
            node({"limits": {"cpu": 1}}, command=["a"], args=["b"], env=[{"name": "X", "value": "1"}, {"name": "Y"}]),
            {"name": "side", "image": "s"},
            step="trainer",
        ),
        replicated("dataset-initializer", {"name": "dataset-initializer", "image": "d"}, step="dataset-initializer"),
    )
    own = {"image": "mine", "command": ["c"], "numNodes": 3, "env": [{"name": "X", "value": "2"}, {"name": "Z"}]}
    fact = of(job(trainer=own), base)
    main, side = pod_of(fact)["containers"]
    assert (main["image"], main["command"], main["args"]) == ("mine", ["c"], ["b"])
    assert main["env"] == [{"name": "X", "value": "2"}, {"name": "Y"}, {"name": "Z"}]
    assert side == {"name": "side", "image": "s"}
    first, second = fact["jobSet"]["replicatedJobs"]
    assert (first["replicas"], first["template"]["spec"]["parallelism"], first["template"]["spec"]["completions"]) == (
        1,
        3,
        3,
    )
    counted = {"replicas": 1, "parallelism": 1, "completions": 1}
    assert {**second, **second["template"]["spec"]}.items() >= counted.items()
    assert pod_of(fact, 1) == pod_of({"jobSet": base["spec"]["template"]["spec"]}, 1)
    assert fact["nodes"] == 3
    assert [(p.name, p.count) for p in runtime_podsets(fact)] == [("node", 3), ("dataset-initializer", 1)]


def test_nodes_are_the_jobs_then_the_runtimes_then_one() -> None:
    assert of(job(), runtime(policy={"torch": {}, "numNodes": 4}))["nodes"] == 4
    assert of(job(trainer={"numNodes": 0}), runtime(policy={"torch": {}, "numNodes": 4}))["nodes"] == 0
    assert of(job(), runtime())["nodes"] == 1


@pytest.mark.parametrize(("launcher_is_node", "nodes", "expected"), [(True, 4, 3), (True, 1, 1), (False, 4, 4)])
def test_mpi_nodes_are_the_job_named_node(launcher_is_node: bool, nodes: int, expected: int) -> None:
    base = runtime(
        replicated("launcher", node(), step="trainer"),
        replicated("node", node()),
        policy={"mpi": {"runLauncherAsNode": launcher_is_node}},
    )
    fact = of(job(trainer={"numNodes": nodes, "image": "mine", "resourcesPerNode": {"limits": {"cpu": 2}}}), base)
    launcher, workers = fact["jobSet"]["replicatedJobs"]
    assert workers["template"]["spec"]["parallelism"] == expected
    assert launcher["template"]["spec"]["parallelism"] == 1
    assert pod_of(fact, 1)["containers"][0]["image"] == "runtime"
    assert ("resources" in pod_of(fact, 1)["containers"][0]) is launcher_is_node


def test_without_the_label_spec_trainer_goes_nowhere() -> None:
    fact = of(job(trainer={"image": "mine"}), runtime(replicated("node", node())))
    assert pod_of(fact)["containers"][0]["image"] == "runtime"


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        ((2, 1), {"limits": {"cpu": 2}}),
        ((2, 2), {"limits": {"cpu": 2}}),
        ((2, 3), {"limits": {"nvidia.com/gpu": 1, "cpu": 2}}),
        ((2, 4), {"limits": {"nvidia.com/gpu": 1, "cpu": 2}, "claims": [{"name": "c"}]}),
    ],
)
def test_resources_per_node_replace_then_merge_then_keep_claims(version: tuple, expected: dict) -> None:
    base = runtime(
        replicated("node", node({"limits": {"nvidia.com/gpu": 1, "cpu": 1}, "claims": [{"name": "c"}]}), step="trainer")
    )
    fact = of(job(trainer={"resourcesPerNode": {"limits": {"cpu": 2}}}), base, version=version)
    assert pod_of(fact)["containers"][0]["resources"] == expected
    lost = [(n["what"], n["container"]) for n in fact["notes"] if n["what"] != "danglingClaim"]
    assert lost == ([] if version == (2, 4) else [("lostClaim", "c")])


def test_a_runtime_without_policy_ignores_resources_since_2_3() -> None:
    own = job(trainer={"resourcesPerNode": {"limits": {"nvidia.com/gpu": 1}}})
    fact = of(own, runtime(policy=None))
    assert "resources" not in pod_of(fact)["containers"][0]
    assert [n["what"] for n in fact["notes"]] == ["ignoredResources"]
    assert "resources" in pod_of(of(own, runtime(policy=None), version=(2, 2)))["containers"][0]


def test_patches_merge_by_name_and_later_ones_win() -> None:
    base = runtime(
        replicated(
            "node",
            node(volumeMounts=[{"name": "a", "mountPath": "/a"}]),
            step="trainer",
            nodeSelector={"a": "1"},
            volumes=[{"name": "v", "emptyDir": {}}],
            tolerations=[{"key": "nvidia.com/gpu"}],
        )
    )
    first = patch(
        pod_patch(
            "node",
            nodeSelector={"b": "2"},
            volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "p"}}],
            containers=[{"name": "node", "volumeMounts": [{"name": "b", "mountPath": "/b"}]}],
        )
    )
    second = patch(pod_patch("node", nodeSelector={"b": "3"}, tolerations=[{"key": "x"}]))
    fact = of(job(runtimePatches=[first, second]), base)
    pod = pod_of(fact)
    assert pod["nodeSelector"] == {"a": "1", "b": "3"}
    assert pod["volumes"] == [{"name": "v", "emptyDir": {}, "persistentVolumeClaim": {"claimName": "p"}}]
    assert sorted(m["mountPath"] for m in pod["containers"][0]["volumeMounts"]) == ["/a", "/b"]
    assert pod["tolerations"] == [{"key": "x"}]
    (note,) = fact["notes"]
    assert (note["what"], note["text"], note["job"]) == ("lostToleration", "nvidia.com/gpu", "node")
    assert (
        note["path"]
        == "spec.runtimePatches[1].trainingRuntimeSpec.template.spec.replicatedJobs[0].template.spec.template.spec.tolerations"
    )


def test_a_toleration_for_everything_loses_nothing() -> None:
    base = runtime(replicated("node", node(), step="trainer", tolerations=[{"key": "nvidia.com/gpu"}]))
    assert of(job(runtimePatches=[patch(pod_patch("node", tolerations=[{"operator": "Exists"}]))]), base)["notes"] == []


def test_unknown_names_are_appended_since_2_3_and_refused_before() -> None:
    own = job(
        runtimePatches=[
            patch(
                pod_patch("nod", nodeSelector={"a": "1"}),
                pod_patch("node", containers=[{"name": "nod"}], initContainers=[{"name": "node"}]),
                {"name": "launcher"},
            )
        ]
    )
    fact = of(own, runtime())
    assert [(n["what"], n["job"], n["container"]) for n in fact["notes"]] == [
        ("unknownJob", "nod", ""),
        ("unknownContainer", "node", "nod"),
        ("unknownContainer", "node", "node"),
        ("unknownJob", "launcher", ""),
    ]
    assert fact["notes"][1]["path"].endswith("replicatedJobs[1].template.spec.template.spec.containers[0]")
    assert sorted(each["name"] for each in fact["jobSet"]["replicatedJobs"]) == ["launcher", "nod", "node"]
    before = of(own, runtime(), version=(2, 2))
    assert [each["name"] for each in before["jobSet"]["replicatedJobs"]] == ["node"]
    refused = [(n["what"], n["text"]) for n in before["notes"] if n["job"] in ("nod", "launcher")]
    assert refused == [("unknownJob", "is refused")] * 2


def test_older_releases_read_their_own_overrides() -> None:
    base = runtime()
    template = {
        "targetJobs": [{"name": "node"}, {"name": "x"}],
        "spec": {"nodeSelector": {"a": "1"}, "containers": [{"name": "y"}]},
    }
    fact = of(job(podTemplateOverrides=[template]), base, version=(2, 1))
    assert pod_of(fact)["nodeSelector"] == {"a": "1"}
    assert [(n["what"], n["path"]) for n in fact["notes"]] == [
        ("unknownContainer", "spec.podTemplateOverrides[0].spec.containers[0]"),
        ("unknownJob", "spec.podTemplateOverrides[0].targetJobs[1]"),
    ]
    bare = {"targetJobs": [{"name": "node"}], "nodeSelector": {"a": "2"}}
    assert pod_of(of(job(podSpecOverrides=[bare]), base, version=(2, 0)))["nodeSelector"] == {"a": "2"}
    assert "nodeSelector" not in pod_of(of(job(podSpecOverrides=[bare], podTemplateOverrides=[template]), base))


# --- claims --------------------------------------------------------------------------------------------------------------


TEMPLATE = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "ResourceClaimTemplate",
    "metadata": {"name": "t", "namespace": "team"},
    "spec": {
        "spec": {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "gpu.nvidia.com", "count": 4}}]}}
    },
}


def test_the_nodes_claims_are_those_of_its_container_and_those_of_nobody() -> None:
    claims = [{"name": name, "resourceClaimTemplateName": "t"} for name in ("mine", "others", "nobodys")]
    side = {"name": "side", "resources": {"claims": [{"name": "others"}]}}
    base = runtime(
        replicated("node", node({"claims": [{"name": "mine"}]}), side, step="trainer", resourceClaims=claims)
    )
    fact = of(job(), base, TEMPLATE)
    assert [(c["name"], c["devices"], c["found"], c["lost"]) for c in fact["node"]["claims"]] == [
        ("mine", 4, True, False),
        ("nobodys", 4, True, False),
    ]
    assert fact["missing"] == []


def test_claims_lost_to_resources_per_node_are_still_the_nodes() -> None:
    base = runtime(
        replicated(
            "node",
            node({"claims": [{"name": "mine"}]}),
            step="trainer",
            resourceClaims=[{"name": "mine", "resourceClaimName": "x"}],
        )
    )
    fact = of(job(trainer={"resourcesPerNode": {"limits": {"memory": "1Gi"}}}), base)
    assert [(c["name"], c["kind"], c["found"], c["lost"]) for c in fact["node"]["claims"]] == [
        ("mine", "ResourceClaim", False, True)
    ]
    assert fact["missing"] == []


def test_without_its_runtime_a_job_tells_what_it_carries() -> None:
    own = job(
        runtimePatches=[patch(pod_patch("node", resourceClaims=[{"name": "gpu", "resourceClaimTemplateName": "t"}]))],
        trainer={"resourceClaimsPerNode": [{"name": "nic", "resourceClaimTemplateName": "n"}]},
    )
    fact = of(own, TEMPLATE)
    assert fact["missing"] == ["ClusterTrainingRuntime r not found"]
    assert (fact["runtime"]["found"], fact["runtime"]["plugin"], fact["jobSet"]) == (False, "", {})
    assert [(c["name"], c["devices"]) for c in fact["node"]["claims"]] == [("gpu", 4), ("nic", None)]
    assert (fact["processes"]["count"], fact["processes"]["perNode"]) == (None, "")


def test_a_namespaced_runtime_is_looked_for_in_the_namespace() -> None:
    own = {**runtime(), "kind": "TrainingRuntime"}
    own["metadata"] = {"name": "r", "namespace": "team"}
    reference = {"name": "r", "kind": "TrainingRuntime"}
    assert of(job(runtimeRef=reference), own)["runtime"]["found"] is True
    own["metadata"]["namespace"] = "other"
    assert of(job(runtimeRef=reference), own)["missing"] == ["TrainingRuntime r not found"]


def test_deprecated_runtimes_say_so() -> None:
    assert of(job(), runtime(labels={"trainer.kubeflow.org/support": "deprecated"}))["runtime"]["deprecated"] is True
    assert of(job(), runtime())["runtime"]["deprecated"] is False


# --- names ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("jobs", "nodes", "limit", "longest"),
    [
        ([replicated("node", node(), step="trainer")], 10, 48, "node"),
        ([replicated("node", node(), step="trainer")], 100, 47, "node"),
        (
            [replicated("node", node(), step="trainer"), replicated("dataset-initializer", node())],
            1,
            33,
            "dataset-initializer",
        ),
    ],
)
def test_pod_names_bound_the_jobs_name(jobs: list, nodes: int, limit: int, longest: str) -> None:
    """The limits that kubeflow/trainer#2735 found."""
    names = of(job("x" * 20, trainer={"numNodes": nodes}), runtime(*jobs))["names"]
    assert names == {"limit": limit, "of": "pod", "job": longest, "length": 20}


# --- odd objects ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "obj",
    [
        None,
        {"apiVersion": "v1", "kind": "Pod"},
        job(runtimeRef=None),
        job(trainer=None, runtimePatches=None),
        job(trainer="x", runtimePatches=[None, {}, {"trainingRuntimeSpec": None}, patch(None)]),  # type: ignore[arg-type]
        job(trainer={"env": [None], "resourcesPerNode": "x", "numNodes": "2"}),
    ],
)
def test_odd_objects_have_a_fact(obj: object) -> None:
    for version in ((2, 0), (2, 1), (2, 2), (2, 3), (2, 4)):
        assert set(of(obj, runtime(), version=version)) == set(of(job(), runtime()))


@pytest.mark.parametrize(
    "jobs",
    [
        None,
        [None],
        [{"name": "node", "template": None}],
        [{"name": "node", "template": {"spec": {"template": {"spec": {"containers": [None]}}}}}],
    ],
)
def test_odd_runtimes_have_a_fact(jobs: object) -> None:
    base = runtime()
    base["spec"]["template"]["spec"]["replicatedJobs"] = jobs
    assert of(job(trainer={"image": "x", "numNodes": 2}), base)["node"]["found"] is False


def test_published_train_jobs_merge_with_their_runtimes() -> None:
    objects = [
        o
        for file in sorted(MANIFESTS.glob("*.yaml"))
        for o in yaml.safe_load_all(file.read_text())
        if isinstance(o, dict)
    ]
    found = 0
    for obj in objects:
        if obj.get("kind") == "TrainJob":
            view = View(FilesCluster(objects), "")
            fact = with_missing(trainer(obj, view, (2, 3)), view)
            found += fact["runtime"]["found"]
            assert fact["missing"] == [] or not fact["runtime"]["found"]
    assert found >= 3


# --- what policies read beside -------------------------------------------------------------------------------------------


def test_a_runtime_of_almost_that_name_is_offered() -> None:
    other = runtime()
    other["metadata"]["name"] = "torch-distributed"
    found = of(job(runtimeRef={"name": "torch-distributde"}), other)["runtime"]
    assert (found["absent"], found["nearest"]) == (True, "torch-distributed")
    assert of(job(runtimeRef={"name": "mpi"}), other)["runtime"]["absent"] is False


def test_a_generated_name_gets_five_letters() -> None:
    obj = job()
    obj["metadata"] = {"generateName": "abc-"}
    assert of(obj, runtime())["names"]["length"] == 9
