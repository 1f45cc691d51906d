"""Pod sets: right templates, paths, names and counts for every kind, on published manifests and on odd objects."""

import json
from pathlib import Path

import pytest

from tests.literals import TABLE
from tests.rows import all_rows
from tests.yamldata import documents
from webhook.apimachinery import paths
from webhook.workloads.podsets import partial_pod_templates, patch_templates, pod_templates
from webhook.workloads.rows import Factor, PodSetRule, Row
from webhook.workloads.table import Table

DATA = Path(__file__).parents[1] / "data" / "manifests"
POD = {"spec": {"containers": [{"name": "c"}]}}

COMPUTED = [
    pytest.param(folder, row, id=f"{row['file']}#{row['doc']}")
    for folder in ("kueue", "volcano")
    for row in json.loads((DATA / folder / "podsets.json").read_text())
]


@all_rows(("folder", "expected"), COMPUTED)
def test_published_manifests_have_the_computed_pod_sets(folder: str, expected: dict) -> None:
    obj = documents(DATA / folder / expected["file"])[expected["doc"]]
    found = pod_templates(obj, TABLE)
    assert [(p.name, p.count, paths.path_as_text(p.path) or "$") for p in found] == [
        (p["name"], p["count"], p["path"]) for p in expected["podSets"]
    ]
    for podset in found:
        assert paths.get(obj, podset.path) == podset.template


def workload(api_version: str, kind: str, **spec: object) -> dict:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": "x"}, "spec": spec}


CASES = [
    ("a pod is its own template", {"apiVersion": "v1", "kind": "Pod", **POD}, [("main", "", 1)]),
    (
        "a pod template makes an unknown number of pods",
        {"apiVersion": "v1", "kind": "PodTemplate", "template": POD},
        [("main", "template", None)],
    ),
    ("daemon sets follow the nodes", workload("apps/v1", "DaemonSet", template=POD), [("main", "spec.template", None)]),
    ("replicas count", workload("apps/v1", "Deployment", replicas=3, template=POD), [("main", "spec.template", 3)]),
    ("a job is one pod by default", workload("batch/v1", "Job", template=POD), [("main", "spec.template", 1)]),
    ("parallelism 4", workload("batch/v1", "Job", parallelism=4, template=POD), [("main", "spec.template", 4)]),
    (
        "completions bound parallelism",
        workload("batch/v1", "Job", parallelism=4, completions=2, template=POD),
        [("main", "spec.template", 2)],
    ),
    (
        "completions without parallelism",
        workload("batch/v1", "Job", completions=9, template=POD),
        [("main", "spec.template", 1)],
    ),
    ("a paused job", workload("batch/v1", "Job", parallelism=0, template=POD), [("main", "spec.template", 0)]),
    (
        "multi-host ray workers",
        workload(
            "ray.io/v1",
            "RayCluster",
            headGroupSpec={"template": POD},
            workerGroupSpecs=[{"groupName": "g", "replicas": 2, "numOfHosts": 4, "template": POD}],
        ),
        [("head", "spec.headGroupSpec.template", 1), ("g", "spec.workerGroupSpecs[0].template", 8)],
    ),
    (
        "a job of Dask with its cluster",
        workload(
            "kubernetes.dask.org/v1",
            "DaskJob",
            job=POD,
            cluster={"spec": {"scheduler": {**POD}, "worker": {"replicas": 3, **POD}}},
        ),
        [
            ("job", "spec.job.spec", 1),
            ("scheduler", "spec.cluster.spec.scheduler.spec", 1),
            ("worker", "spec.cluster.spec.worker.spec", 3),
        ],
    ),
    (
        "a scaled job has pods by load",
        workload("keda.sh/v1alpha1", "ScaledJob", jobTargetRef={"template": POD}),
        [("main", "spec.jobTargetRef.template", None)],
    ),
    (
        "a united deployment of one kind",
        workload(
            "apps.kruise.io/v1beta1",
            "UnitedDeployment",
            replicas=4,
            template={"cloneSetTemplate": {"spec": {"template": POD}}},
        ),
        [("main", "spec.template.cloneSetTemplate.spec.template", 4)],
    ),
    (
        "a leader without a template is a worker",
        workload(
            "leaderworkerset.x-k8s.io/v1",
            "LeaderWorkerSet",
            replicas=2,
            leaderWorkerTemplate={"size": 4, "workerTemplate": POD},
        ),
        [("main", "spec.leaderWorkerTemplate.workerTemplate", 4)],
    ),
    (
        "one executor by default",
        workload(
            "sparkoperator.k8s.io/v1beta2", "SparkApplication", driver={"template": POD}, executor={"template": POD}
        ),
        [("driver", "spec.driver.template", 1), ("executor", "spec.executor.template", 1)],
    ),
    (
        "a flag that is false counts as unset",
        workload(
            "sparkoperator.k8s.io/v1beta2",
            "SparkApplication",
            dynamicAllocation={"enabled": False},
            executor={"instances": 3, "template": POD},
        ),
        [("executor", "spec.executor.template", 3)],
    ),
    (
        "as many executors as Spark wants",
        workload(
            "sparkoperator.k8s.io/v1beta2",
            "SparkApplication",
            dynamicAllocation={"enabled": True},
            executor={"instances": 3, "template": POD},
        ),
        [("executor", "spec.executor.template", None)],
    ),
    (
        "no MPI workers by default",
        workload(
            "kubeflow.org/v2beta1",
            "MPIJob",
            mpiReplicaSpecs={"Launcher": {"template": POD}, "Worker": {"template": POD}},
        ),
        [
            ("launcher", "spec.mpiReplicaSpecs.Launcher.template", 1),
            ("worker", "spec.mpiReplicaSpecs.Worker.template", 0),
        ],
    ),
    (
        "ray workers within their bounds",
        workload(
            "ray.io/v1",
            "RayCluster",
            workerGroupSpecs=[
                {"groupName": "none", "template": POD},
                {"groupName": "least", "minReplicas": 2, "template": POD},
                {"groupName": "most", "replicas": 9, "maxReplicas": 4, "template": POD},
                {
                    "groupName": "both",
                    "replicas": 9,
                    "minReplicas": 5,
                    "maxReplicas": 4,
                    "numOfHosts": 0,
                    "template": POD,
                },
            ],
        ),
        [
            ("none", "spec.workerGroupSpecs[0].template", 0),
            ("least", "spec.workerGroupSpecs[1].template", 2),
            ("most", "spec.workerGroupSpecs[2].template", 4),
            ("both", "spec.workerGroupSpecs[3].template", 5),
        ],
    ),
    (
        "zero is a count",
        workload("serving.kserve.io/v1beta1", "InferenceService", predictor={"minReplicas": 0, **POD["spec"]}),
        [("predictor", "spec.predictor", 0)],
    ),
    (
        "null is no count",
        workload(
            "jobset.x-k8s.io/v1alpha2",
            "JobSet",
            replicatedJobs=[
                {"name": "a", "replicas": None, "template": {"spec": {"parallelism": None, "template": POD}}}
            ],
        ),
        [("a", "spec.replicatedJobs[0].template.spec.template", 1)],
    ),
    (
        "replicas of jobs are as many times their parallelism",
        workload(
            "jobset.x-k8s.io/v1alpha2",
            "JobSet",
            replicatedJobs=[
                {
                    "name": "a",
                    "replicas": 3,
                    "template": {"spec": {"parallelism": 4, "completions": 2, "template": POD}},
                }
            ],
        ),
        [("a", "spec.replicatedJobs[0].template.spec.template", 6)],
    ),
    (
        "a group of one leader has no workers",
        workload(
            "leaderworkerset.x-k8s.io/v1",
            "LeaderWorkerSet",
            leaderWorkerTemplate={"leaderTemplate": POD, "workerTemplate": POD},
        ),
        [
            ("leader", "spec.leaderWorkerTemplate.leaderTemplate", 1),
            ("worker", "spec.leaderWorkerTemplate.workerTemplate", 0),
        ],
    ),
    (
        "templates of one element have different names",
        workload(
            "workload.serving.volcano.sh/v1alpha1",
            "ModelServing",
            template={
                "roles": [
                    {"name": "prefill", "replicas": 2, "workerReplicas": 3, "entryTemplate": POD, "workerTemplate": POD}
                ]
            },
        ),
        [
            ("prefill-entry", "spec.template.roles[0].entryTemplate", 2),
            ("prefill-worker", "spec.template.roles[0].workerTemplate", 6),
        ],
    ),
    (
        "an appwrapper says itself where templates are",
        workload(
            "workload.codeflare.dev/v1beta2",
            "AppWrapper",
            components=[
                {
                    "template": {"kind": "Odd", "spec": {"deep": POD}},
                    "podSets": [{"path": "template.spec.deep", "replicas": 7}],
                },
                {
                    "template": {"kind": "Odd"},
                    "podSets": [{"path": "..."}, {"path": "other.spec"}, {"path": "template.spec.none"}, None],
                },
            ],
        ),
        [("x-0", "spec.components[0].template.spec.deep", 7)],
    ),
    (
        "a trial is an object of another kind",
        workload(
            "kubeflow.org/v1beta1",
            "Experiment",
            parallelTrialCount=2,
            trialTemplate={
                "trialSpec": workload(
                    "kubeflow.org/v1",
                    "PyTorchJob",
                    pytorchReplicaSpecs={"Worker": {"replicas": 4, "template": POD}},
                )
            },
        ),
        [("x-0", "spec.trialTemplate.trialSpec.spec.pytorchReplicaSpecs.Worker.template", 4)],
    ),
    (
        "roles that are a list",
        workload(
            "sagemaker.amazonaws.com/v1",
            "HyperPodPyTorchJob",
            replicaSpecs=[{"name": "pods", "replicas": 2, "template": POD}],
        ),
        [("pods", "spec.replicaSpecs[0].template", 2)],
    ),
    (
        "a workspace has its own fields outside spec",
        {
            "apiVersion": "kaito.sh/v1beta1",
            "kind": "Workspace",
            "metadata": {"name": "x"},
            "resource": {"count": 2},
            "inference": {"template": POD},
        },
        [("main", "inference.template", 2)],
    ),
    (
        "a workspace with a preset has no template",
        {"apiVersion": "kaito.sh/v1beta1", "kind": "Workspace", "inference": {"preset": {"name": "phi-4"}}},
        [],
    ),
    (
        "map keys are names in lower case",
        workload(
            "kubeflow.org/v1",
            "PyTorchJob",
            pytorchReplicaSpecs={"Master": {"template": POD}, "Worker": {"replicas": 2, "template": POD}},
        ),
        [
            ("master", "spec.pytorchReplicaSpecs.Master.template", 1),
            ("worker", "spec.pytorchReplicaSpecs.Worker.template", 2),
        ],
    ),
    (
        "a count that is no number is the default",
        workload("apps/v1", "Deployment", replicas="3", template=POD),
        [("main", "spec.template", 1)],
    ),
    (
        "a negative count is none",
        workload("apps/v1", "Deployment", replicas=-3, template=POD),
        [("main", "spec.template", 0)],
    ),
    ("no template", workload("apps/v1", "Deployment"), []),
    ("a null template", workload("sandbox.opensandbox.io/v1alpha1", "BatchSandbox", replicas=1, template=None), []),
    ("a null spec", {"apiVersion": "apps/v1", "kind": "Deployment", "spec": None}, []),
    (
        "null elements",
        workload("batch.volcano.sh/v1alpha1", "Job", tasks=[None, {"template": None}, {"template": POD}]),
        [("2", "spec.tasks[2].template", 1)],
    ),
    (
        "a list where a map belongs",
        workload("kubeflow.org/v1", "PyTorchJob", pytorchReplicaSpecs=[{"template": POD}]),
        [],
    ),
    ("a map where a list belongs", workload("batch.volcano.sh/v1alpha1", "Job", tasks={"a": {"template": POD}}), []),
    ("a kind without pods", {"apiVersion": "v1", "kind": "ConfigMap"}, []),
    ("another group's job", workload("example.org/v1", "Job", template=POD), []),
    ("no object", [], []),
    ("odd type fields", {"apiVersion": 1, "kind": None}, []),
]


@all_rows(("obj", "expected"), [pytest.param(*case[1:], id=case[0]) for case in CASES])
def test_pod_sets(obj: object, expected: list) -> None:
    assert [(p.name, paths.path_as_text(p.path), p.count) for p in pod_templates(obj, TABLE)] == expected


def test_a_name_that_is_not_a_string_names_no_pod_set() -> None:
    jobs = [{"name": name, "template": {"spec": {"template": POD}}} for name in ("a", ["b"] * 1000, {"c": 1}, 7)]
    found = pod_templates(workload("jobset.x-k8s.io/v1alpha2", "JobSet", replicatedJobs=jobs), TABLE)
    assert [podset.name for podset in found] == ["a", "1", "2", "7"]


def test_groups_multiply_pods() -> None:
    lws = workload(
        "leaderworkerset.x-k8s.io/v1",
        "LeaderWorkerSet",
        replicas=3,
        leaderWorkerTemplate={"size": 4, "leaderTemplate": POD, "workerTemplate": POD},
    )
    leader, worker = pod_templates(lws, TABLE)
    assert (leader.count, leader.groups, leader.pods) == (1, 3, 3)
    assert (worker.count, worker.groups, worker.pods) == (3, 3, 9)


def test_parallel_trials_multiply_pods() -> None:
    trial = {"trialTemplate": {"trialSpec": workload("batch/v1", "Job", parallelism=2, template=POD)}}
    (known,) = pod_templates(workload("kubeflow.org/v1beta1", "Experiment", parallelTrialCount=4, **trial), TABLE)
    (default,) = pod_templates(workload("kubeflow.org/v1beta1", "Experiment", **trial), TABLE)
    assert (known.pods, default.pods) == (8, 6)


def test_groups_are_those_of_the_object() -> None:
    roles = [{"name": "r", "spec": {"replicas": 2, "leaderWorkerTemplate": {"size": 4, "workerTemplate": POD}}}]
    (podset,) = pod_templates(
        workload("disaggregatedset.x-k8s.io/v1", "DisaggregatedSet", slices=3, roles=roles), TABLE
    )
    assert (podset.name, podset.count, podset.groups, podset.pods) == ("r", 8, 3, 24)


def test_unknown_counts_stay_unknown() -> None:
    (podset,) = pod_templates(workload("apps/v1", "DaemonSet", template=POD), TABLE)
    assert podset.pods is None


def test_a_bare_pod_spec_is_wrapped_and_located() -> None:
    service = workload("serving.kserve.io/v1beta1", "InferenceService", predictor={**POD["spec"], "minReplicas": 2})
    (podset,) = pod_templates(service, TABLE)
    assert podset.template == {"spec": service["spec"]["predictor"]}
    assert (podset.count, podset.bare) == (2, True)
    assert paths.path_as_text(podset.locate(("spec", "containers", 0))) == "spec.predictor.containers[0]"
    assert paths.path_as_text(podset.locate(("metadata", "labels"))) == "spec.predictor.labels"


def test_pods_get_the_labels_of_the_objects_that_the_row_names() -> None:
    service = workload("serving.kserve.io/v1beta1", "InferenceService", predictor={**POD["spec"], "labels": {"a": "2"}})
    service["metadata"] = {"name": "s", "labels": {"a": "1", "b": "1"}, "annotations": {"c": "1"}}
    (podset,) = pod_templates(service, TABLE)
    assert podset.template["metadata"] == {"labels": {"a": "2", "b": "1"}, "annotations": {"c": "1"}}
    notebook = {**workload("kubeflow.org/v1", "Notebook", template=POD), "metadata": {"labels": {"d": "1"}}}
    assert pod_templates(notebook, TABLE)[0].template["metadata"] == {"labels": {"d": "1"}}
    cliques = [{"name": "a", "labels": {"c": "1"}, "spec": {"podSpec": POD["spec"]}}]
    (podset,) = pod_templates(workload("grove.io/v1alpha1", "PodCliqueSet", template={"cliques": cliques}), TABLE)
    assert podset.template["metadata"] == {"labels": {"c": "1"}}
    assert paths.path_as_text(podset.locate(("metadata", "labels"))) == "spec.template.cliques[0].labels"


def test_the_place_of_a_template_is_its_path_in_the_object() -> None:
    (podset,) = pod_templates(workload("apps/v1", "Deployment", template=POD), TABLE)
    assert paths.path_as_text(podset.locate(("spec", "containers", 0))) == "spec.template.spec.containers[0]"


def test_a_too_deeply_wrapped_object_is_not_read() -> None:
    obj: dict = workload("apps/v1", "Deployment", template=POD)
    for _ in range(3):
        obj = workload("workload.codeflare.dev/v1beta2", "AppWrapper", components=[{"template": obj}])
    assert len(pod_templates(obj, TABLE)) == 1
    for _ in range(10):
        obj = workload("workload.codeflare.dev/v1beta2", "AppWrapper", components=[{"template": obj}])
    assert pod_templates(obj, TABLE) == ()


def test_fragments_are_partial_templates() -> None:
    patch = {
        "spec": {
            "replicatedJobs": [
                {"name": "node", "template": {"spec": {"template": {"spec": {"tolerations": []}}}}},
                None,
            ]
        }
    }
    job = workload(
        "trainer.kubeflow.org/v1alpha1", "TrainJob", runtimePatches=[{"trainingRuntimeSpec": {"template": patch}}, None]
    )
    (fragment,) = partial_pod_templates(job, TABLE)
    assert fragment.template == {"spec": {"tolerations": []}}
    assert fragment.of == "runtime"
    assert paths.path_as_text(fragment.path) == (
        "spec.runtimePatches[0].trainingRuntimeSpec.template.spec.replicatedJobs[0].template.spec.template"
    )
    shards = workload("sandbox.opensandbox.io/v1alpha1", "BatchSandbox", shardPatches=[{"spec": {}}, None, "x"])
    assert [paths.path_as_text(f.path) for f in partial_pod_templates(shards, TABLE)] == ["spec.shardPatches[0]"]
    assert partial_pod_templates({"kind": "ConfigMap"}, TABLE) == ()
    assert [(each.path, each.template, each.is_patch) for each in patch_templates(job, TABLE)] == [
        (fragment.path, fragment.template, True)
    ]
    assert patch_templates(shards, TABLE) == ()


def test_overrides_of_old_releases_are_bare_pod_specs() -> None:
    job = workload("trainer.kubeflow.org/v1alpha1", "TrainJob", podSpecOverrides=[{"nodeSelector": {"a": "b"}}])
    (fragment,) = partial_pod_templates(job, TABLE)
    assert fragment.template == {"spec": {"nodeSelector": {"a": "b"}}}


def test_pod_sets_of_a_custom_table_row() -> None:
    rule = PodSetRule(
        template="spec.a[].b{}", name="n", count=(Factor(path="r"), Factor(path="s", default=5, less=1, floor=2))
    )
    table = Table((Row(group="g", versions=("v1",), kind="K", resource="ks", templates="mutable", podSets=(rule,)),))
    obj = {"apiVersion": "g/v1", "kind": "K", "spec": {"a": [{"b": {"X": {"r": 2, "spec": {}}, "Y": None}}]}}
    assert [(p.name, p.count, paths.path_as_text(p.path)) for p in pod_templates(obj, table)] == [
        ("x-n", 8, "spec.a[0].b.X")
    ]
