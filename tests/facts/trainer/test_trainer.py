"""The pods that each release of Kubeflow Trainer makes from a TrainJob and its runtime."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.facts.trainer.made import job, node, of, patch, pod_of, pod_patch, replicated, runtime
from tests.yamldata import documents
from webhook.facts.jobset.names_and_keys import length_of_name, strictest_name_limit
from webhook.facts.train_job_pods.merged_train_job import runtime_podsets

MANIFESTS = Path(__file__).parents[2] / "data" / "manifests" / "kubeflow"


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
    assert main["env"][:3] == [{"name": "X", "value": "2"}, {"name": "Y"}, {"name": "Z"}]
    assert {each["name"]: each.get("value") for each in main["env"][3:]} == {
        "PET_NNODES": "3",
        "PET_NPROC_PER_NODE": "1",
        "PET_NODE_RANK": None,
        "PET_MASTER_ADDR": "j-node-0-0.j",
        "PET_MASTER_PORT": "29500",
    }
    assert side == {"name": "side", "image": "s"}
    first, second = fact.job.replicated_jobs
    assert [(each.replicas, each.parallelism, each.template.spec.completions) for each in (first, second)] == [
        (1, 3, 3),
        (1, 1, 1),
    ]
    assert (
        pod_of(fact, 1) == base["spec"]["template"]["spec"]["replicatedJobs"][1]["template"]["spec"]["template"]["spec"]
    )
    assert fact.job.number_of_nodes == 3
    assert [(p.name, p.count) for p in runtime_podsets(fact.job)] == [("node", 3), ("dataset-initializer", 1)]


def test_the_number_of_nodes_is_that_of_the_job_or_of_the_runtime_or_one() -> None:
    assert of(job(), runtime(policy={"torch": {}, "numNodes": 4})).job.number_of_nodes == 4
    assert of(job(trainer={"numNodes": 0}), runtime(policy={"torch": {}, "numNodes": 4})).job.number_of_nodes == 0
    assert of(job(), runtime()).job.number_of_nodes == 1


@pytest.mark.parametrize(("launcher_is_node", "nodes", "expected"), [(True, 4, 3), (True, 1, 1), (False, 4, 4)])
def test_mpi_nodes_are_the_pods_of_job_node(launcher_is_node: bool, nodes: int, expected: int) -> None:
    base = runtime(
        replicated("launcher", node(), step="trainer"),
        replicated("node", node()),
        policy={"mpi": {"runLauncherAsNode": launcher_is_node}},
    )
    fact = of(job(trainer={"numNodes": nodes, "image": "mine", "resourcesPerNode": {"limits": {"cpu": 2}}}), base)
    launcher, workers = fact.job.replicated_jobs
    assert (launcher.parallelism, workers.parallelism) == (1, expected)
    assert pod_of(fact, 1)["containers"][0]["image"] == "runtime"
    assert ("resources" in pod_of(fact, 1)["containers"][0]) is launcher_is_node


def test_without_the_label_spec_trainer_has_no_effect() -> None:
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
    assert fact.job.merged.lost_claims == ([] if version == (2, 4) else ["c"])
    assert fact.rules("lost-claim") == ([] if version == (2, 4) else ["lost-claim"])


def test_a_runtime_without_policy_ignores_resources_since_2_3() -> None:
    own = job(trainer={"resourcesPerNode": {"limits": {"nvidia.com/gpu": 1}}})
    fact = of(own, runtime(policy=None))
    assert "resources" not in pod_of(fact)["containers"][0]
    assert fact.rules() == ["ignored-resources"]
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
    at = "spec.runtimePatches[1].trainingRuntimeSpec.template.spec.replicatedJobs[0].template.spec.template.spec"
    ((path, text),) = fact.told("lost-toleration")
    assert (path, "`nvidia.com/gpu`" in text) == (f"{at}.tolerations", True)


def test_a_toleration_for_everything_loses_nothing() -> None:
    base = runtime(replicated("node", node(), step="trainer", tolerations=[{"key": "nvidia.com/gpu"}]))
    fact = of(job(runtimePatches=[patch(pod_patch("node", tolerations=[{"operator": "Exists"}]))]), base)
    assert fact.rules("lost-toleration") == []


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
    assert fact.rules("patched-job", "patched-container") == [
        "patched-job",
        "patched-container",
        "patched-container",
        "patched-job",
    ]
    (path, text), _ = fact.told("patched-container")
    assert path.endswith("replicatedJobs[1].template.spec.template.spec.containers[0].name")
    assert text.startswith("`nod` is not a container of replicated job `node`")
    assert sorted(each.name for each in fact.job.replicated_jobs) == ["launcher", "nod", "node"]
    before = of(own, runtime(), version=(2, 2))
    assert [each.name for each in before.job.replicated_jobs] == ["node"]
    assert [text.split(" is")[0] for _, text in before.told("patched-job")] == ["`nod`", "`launcher`"]
    assert all("refuses" in text for _, text in before.told("patched-job"))


def test_older_releases_read_their_own_overrides() -> None:
    base = runtime()
    template = {
        "targetJobs": [{"name": "node"}, {"name": "x"}],
        "spec": {"nodeSelector": {"a": "1"}, "containers": [{"name": "y"}]},
    }
    fact = of(job(podTemplateOverrides=[template]), base, version=(2, 1))
    assert pod_of(fact)["nodeSelector"] == {"a": "1"}
    (container, _), (target, _) = (*fact.told("patched-container"), *fact.told("patched-job"))
    assert container == "spec.podTemplateOverrides[0].spec.containers[0].name"
    assert target == "spec.podTemplateOverrides[0].targetJobs[1].name"
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


def test_the_claims_of_the_node_are_those_of_its_container() -> None:
    claims = [{"name": name, "resourceClaimTemplateName": "t"} for name in ("mine", "others", "nobodys")]
    side = {"name": "side", "resources": {"claims": [{"name": "others"}]}}
    base = runtime(
        replicated("node", node({"claims": [{"name": "mine"}]}), side, step="trainer", resourceClaims=claims)
    )
    fact = of(job(), base, TEMPLATE)
    assert [(c.name, c.devices, c.found) for c in fact.claims] == [("mine", 4, True)]
    assert fact.job.missing == ()


def test_claims_replaced_by_resources_per_node_are_still_claims_of_the_node() -> None:
    base = runtime(
        replicated(
            "node",
            node({"claims": [{"name": "mine"}]}),
            step="trainer",
            resourceClaims=[{"name": "mine", "resourceClaimName": "x"}],
        )
    )
    fact = of(job(trainer={"resourcesPerNode": {"limits": {"memory": "1Gi"}}}), base)
    assert [(c.name, c.kind, c.found) for c in fact.claims] == [("mine", "ResourceClaim", False)]
    assert fact.job.merged.lost_claims == ["mine"]
    assert fact.rules("claim-declared", "unused-claim") == []


def test_a_job_without_its_runtime_reports_its_own_fields() -> None:
    own = job(
        runtimePatches=[patch(pod_patch("node", resourceClaims=[{"name": "gpu", "resourceClaimTemplateName": "t"}]))],
        trainer={"resourceClaimsPerNode": [{"name": "nic", "resourceClaimTemplateName": "n"}]},
    )
    fact = of(own, TEMPLATE)
    assert list(map(str, fact.job.missing)) == ["ClusterTrainingRuntime r not found"]
    assert (fact.job.runtime.is_found, fact.job.plugin, fact.job.replicated_jobs) == (False, "", [])
    assert [(c.name, c.devices) for c in fact.claims] == [("gpu", 4), ("nic", None)]
    assert (fact.job.processes.count, fact.job.processes.per_node) == (None, "")


def test_a_namespaced_runtime_is_looked_for_in_the_namespace() -> None:
    own = {**runtime(), "kind": "TrainingRuntime"}
    own["metadata"] = {"name": "r", "namespace": "team"}
    reference = {"name": "r", "kind": "TrainingRuntime"}
    assert of(job(runtimeRef=reference), own).job.runtime.is_found is True
    own["metadata"]["namespace"] = "other"
    assert list(map(str, of(job(runtimeRef=reference), own).job.missing)) == ["TrainingRuntime r not found"]


def test_deprecated_runtimes_are_reported() -> None:
    found = of(job(), runtime(labels={"trainer.kubeflow.org/support": "deprecated"}))
    assert found.rules() == ["training-runtime/deprecated"]
    assert of(job(), runtime()).rules() == []


# --- names ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("jobs", "nodes", "bound", "longest"),
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
def test_pod_names_bound_the_jobs_name(jobs: list, nodes: int, bound: int, longest: str) -> None:
    """The limits of names that kubeflow/trainer#2735 names."""
    made = of(job("x" * 20, trainer={"numNodes": nodes}), runtime(*jobs)).job
    assert (strictest_name_limit(made.job_set), length_of_name(made.object.metadata)) == ((bound, "pod", longest), 20)


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
def test_unusual_objects_have_a_fact(obj: object) -> None:
    for version in ((2, 0), (2, 1), (2, 2), (2, 3), (2, 4)):
        assert of(obj, runtime(), version=version).job.release == version


@pytest.mark.parametrize(
    "jobs",
    [
        None,
        [None],
        [{"name": "node", "template": None}],
        [{"name": "node", "template": {"spec": {"template": {"spec": {"containers": [None]}}}}}],
    ],
)
def test_unusual_runtimes_have_a_fact(jobs: object) -> None:
    base = runtime()
    base["spec"]["template"]["spec"]["replicatedJobs"] = jobs
    assert of(job(trainer={"image": "x", "numNodes": 2}), base).job.node_container is None


def test_published_train_jobs_merge_with_their_runtimes() -> None:
    objects = [o for file in sorted(MANIFESTS.glob("*.yaml")) for o in documents(file) if isinstance(o, dict)]
    found = 0
    for obj in objects:
        if obj.get("kind") == "TrainJob":
            made = of(obj, *objects)
            found += made.job.runtime.is_found
            assert made.job.missing == () or not made.job.runtime.is_found
    assert found >= 3


# --- missing objects ----------------------------------------------------------------------------------------------------


def test_a_similar_runtime_name_is_suggested() -> None:
    other = runtime()
    other["metadata"]["name"] = "torch-distributed"
    (problem,) = of(job(runtimeRef={"name": "torch-distributde"}), other, is_whole=True).problems
    assert (problem.code, problem.fix) == (
        "train-job/runtime-exists",
        "write `torch-distributed`, or create the runtime first",
    )
    assert of(job(runtimeRef={"name": "torch-distributde"}), other).problems == []


def test_a_generated_name_gets_five_letters() -> None:
    obj = job()
    obj["metadata"] = {"generateName": "abc-"}
    assert length_of_name(of(obj, runtime()).job.object.metadata) == 9
