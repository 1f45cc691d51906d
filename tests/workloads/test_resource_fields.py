"""Resources outside pod templates, from the row of a kind: their places, their containers, and the numbers of pods."""

import pytest

from tests.literals import TABLE
from webhook.apimachinery import paths
from webhook.apimachinery.attributes import JSON
from webhook.workloads.resource_fields import resource_fields

TRAIN_JOB = {"apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainJob"}
SERVICE = {"apiVersion": "serving.kserve.io/v1beta1", "kind": "InferenceService"}
SPARK = {"apiVersion": "sparkoperator.k8s.io/v1beta2", "kind": "SparkApplication"}
LIMITS = {"limits": {"gpu": 1}}


def found(obj: JSON) -> list[tuple[str, JSON, str, str, int | None]]:
    fields = resource_fields(obj, TABLE)
    return [(paths.path_as_text(each.path), each.resources, each.podset, each.container, each.count) for each in fields]


def test_the_nodes_of_a_train_job_have_their_own_resources() -> None:
    obj = {**TRAIN_JOB, "spec": {"trainer": {"resourcesPerNode": LIMITS}}}
    assert found(obj) == [("spec.trainer.resourcesPerNode", LIMITS, "", "", 1)]


def test_a_component_has_resources_in_any_of_its_fields() -> None:
    predictor = {"minReplicas": 2, "model": {"resources": LIMITS}, "sklearn": {"name": "own", "resources": {}}}
    obj = {
        **SERVICE,
        "spec": {"predictor": predictor, "canary": [None, {"predictor": {"model": {"resources": LIMITS}}}]},
    }
    assert found(obj) == [
        ("spec.predictor.model.resources", LIMITS, "predictor", "kserve-container", 2),
        ("spec.predictor.sklearn.resources", {}, "predictor", "own", 2),
        ("spec.canary[1].predictor.model.resources", LIMITS, "", "", 1),
    ]


def test_a_service_with_one_container_sets_resources_next_to_replicas() -> None:
    kind = {"apiVersion": "apps.nvidia.com/v1alpha1", "kind": "NIMService"}
    parallel = {"multiNode": {"parallelism": {"pipeline": 2}}}
    obj = {**kind, "spec": {"replicas": 3, "resources": LIMITS, **parallel}}
    assert found(obj) == [("spec.resources", LIMITS, "main", "nim", 6)]
    scaled = {**kind, "spec": {"scale": {"enabled": True}, "resources": LIMITS}}
    assert found(scaled) == [("spec.resources", LIMITS, "main", "nim", None)]


def test_the_nodes_of_a_mini_cluster_are_pods() -> None:
    kind = {"apiVersion": "flux-framework.org/v1alpha2", "kind": "MiniCluster"}
    obj = {**kind, "spec": {"size": 4, "containers": [{"name": "app", "resources": LIMITS}]}}
    assert found(obj) == [("spec.containers[0].resources", LIMITS, "main", "app", 4)]


STEP = {"computeResources": LIMITS}
STEPS = [
    ("argoproj.io/v1alpha1", "Workflow", {"templates": [{}, {"script": {"resources": LIMITS}}]}, "spec.templates[1].script.resources"),
    ("tekton.dev/v1", "Task", {"steps": [STEP]}, "spec.steps[0].computeResources"),
    ("tekton.dev/v1", "PipelineRun", {"pipelineSpec": {"tasks": [{"taskSpec": {"steps": [STEP]}}]}}, "spec.pipelineSpec.tasks[0].taskSpec.steps[0].computeResources"),
    ("serving.kserve.io/v1alpha1", "LLMInferenceService", {"worker": {"containers": [{"resources": LIMITS}]}}, "spec.worker.containers[0].resources"),
    ("serving.kserve.io/v1alpha1", "ServingRuntime", {"containers": [{"resources": LIMITS}]}, "spec.containers[0].resources"),
    ("serving.kserve.io/v1alpha1", "ClusterServingRuntime", {"workerSpec": {"containers": [{"resources": LIMITS}]}}, "spec.workerSpec.containers[0].resources"),
    ("apps.nvidia.com/v1alpha1", "NIMPipeline", {"services": [{"spec": {"resources": LIMITS}}]}, "spec.services[0].spec.resources"),
]  # fmt: skip


@pytest.mark.parametrize(("version", "kind", "spec", "path"), STEPS, ids=[step[1] for step in STEPS])
def test_containers_outside_pod_templates_have_resources(version: str, kind: str, spec: JSON, path: str) -> None:
    assert found({"apiVersion": version, "kind": kind, "spec": spec}) == [(path, LIMITS, "", "", 1)]


def test_gpu_of_a_dynamo_service_is_not_translated() -> None:
    """The operator translates `resources.limits.gpu` itself."""
    service = {"resources": LIMITS, "extraPodSpec": {"mainContainer": {"resources": LIMITS}}}
    obj = {"apiVersion": "nvidia.com/v1alpha1", "kind": "DynamoGraphDeployment", "spec": {"services": {"a": service}}}
    assert [each[0] for each in found(obj)] == ["spec.services.a.extraPodSpec.mainContainer.resources"]


def test_a_device_with_a_quantity_is_a_limit() -> None:
    device = {"name": "gpu", "quantity": 2}
    obj = {**SPARK, "spec": {"driver": {"gpu": device}, "executor": {"instances": 3, "gpu": device}}}
    driver, executor = "spark-kubernetes-driver", "spark-kubernetes-executor"
    limit = {"limits": {"gpu": 2}}
    assert found(obj) == [
        ("spec.driver.gpu", limit, "driver", driver, 1),
        ("spec.executor.gpu", limit, "executor", executor, 3),
    ]
    obj["spec"]["dynamicAllocation"] = {"enabled": True}
    assert found(obj)[1] == ("spec.executor.gpu", limit, "executor", executor, None)


@pytest.mark.parametrize("device", [{"name": "gpu"}, {"name": "gpu", "quantity": True}, {"name": [], "quantity": 1}])
def test_a_device_without_a_quantity_requests_nothing(device: JSON) -> None:
    assert found({**SPARK, "spec": {"driver": {"gpu": device}}})[0][1] == {}


@pytest.mark.parametrize(
    "obj",
    [
        None,
        {"kind": "ConfigMap"},
        {**TRAIN_JOB, "spec": None},
        {**TRAIN_JOB, "spec": {"trainer": {"resourcesPerNode": "8 GPUs"}}},
        {**SERVICE, "spec": {"predictor": {"model": []}, "canary": {}}},
    ],
)
def test_other_objects_have_no_resource_fields(obj: JSON) -> None:
    assert found(obj) == []
