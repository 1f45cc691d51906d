"""The fact `gpu`: devices per container, pod and object. Amounts of memory or cores are never devices."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.literals import TABLE
from tests.rows import all_rows
from webhook.facts.gpu import devices
from webhook.facts.gpu.resources import compute_gpu_fact
from webhook.facts.train_job_pods.nodes_and_processes import gpu_count
from webhook.typed.pods import Resources
from webhook.typed.view import ReadingContext
from webhook.workloads.podsets import PodSet, pod_templates
from webhook.workloads.resource_fields import resource_fields


def pod(*containers: dict, **spec: object) -> dict:
    return {"apiVersion": "v1", "kind": "Pod", "spec": {"containers": list(containers), **spec}}


def container(limits: object = None, requests: object = None, **more: object) -> dict:
    resources = {k: v for k, v in (("limits", limits), ("requests", requests)) if v is not None}
    return {"name": "c", "resources": resources, **more}


def of(obj: dict) -> dict:
    return compute_gpu_fact(pod_templates(obj, TABLE))


@all_rows(
    ("name", "vendor", "kind"),
    [
        ("nvidia.com/gpu", "nvidia", "device"),
        ("nvidia.com/gpu.shared", "nvidia", "shared"),
        ("nvidia.com/mig-1g.5gb", "nvidia", "slice"),
        ("nvidia.com/mig-1g.10gb.me", "nvidia", "slice"),
        ("nvidia.com/mig-1g.5gb.shared", "nvidia", "shared"),
        ("nvidia.com/gpumem", "nvidia", "amount"),
        ("nvidia.com/gpumem-percentage", "nvidia", "amount"),
        ("volcano.sh/vgpu-number", "nvidia", "shared"),
        ("volcano.sh/vgpu-memory", "nvidia", "amount"),
        ("amd.com/gpu", "amd", "device"),
        ("amd.com/gpumem", "amd", "amount"),
        ("gpu.intel.com/i915", "intel", "device"),
        ("gpu.intel.com/i915_monitoring", "intel", "monitor"),
        ("habana.ai/gaudi", "habana", "device"),
        ("aws.amazon.com/neuroncore", "neuron", "slice"),
        ("google.com/tpu", "tpu", "device"),
        ("huawei.com/Ascend910", "ascend", "device"),
        ("huawei.com/Ascend910B-memory", "ascend", "amount"),
        ("gpu", "portable", "portable"),
        ("cpu", "", ""),
        ("rdma/hca_shared_devices_a", "", ""),
        ("example.com/gpu", "", ""),
    ],
)
def test_a_resource_name_means_one_thing(name: str, vendor: str, kind: str) -> None:
    assert (devices.device_of_resource_name(name).vendor, devices.device_of_resource_name(name).kind) == (vendor, kind)


@all_rows(
    ("name", "meant"),
    [
        ("nvidia.com/gpus", "nvidia.com/gpu"),
        ("nvdia.com/gpu", "nvidia.com/gpu"),
        ("nividia.com/gpu", "nvidia.com/gpu"),
        ("nvidia.com/GPU", "nvidia.com/gpu"),
        ("nvidia/gpu", "nvidia.com/gpu"),
        ("nvidia.com/mig-1g5gb", "nvidia.com/mig-1g.5gb"),
        ("nvidia.com/mig-7g.80b", "nvidia.com/mig-7g.80gb"),
        ("amd.com/gpus", "amd.com/gpu"),
        ("example.com/gpu", ""),
        ("rdma/hca", ""),
        ("vpc.amazonaws.com/efa", ""),
        ("nvidia.com/gup", "nvidia.com/gpu"),
        ("nvidia.com/gpuu", "nvidia.com/gpu"),
        ("nvidia.con/gpu", "nvidia.com/gpu"),
        ("adm.com/gpu", "amd.com/gpu"),
        ("habana.ai/gaudy", "habana.ai/gaudi"),
        ("aws.amazon.com/nueron", "aws.amazon.com/neuron"),
        ("google.com/tpus", "google.com/tpu"),
        ("nvidia.com/gpucore", "nvidia.com/gpucores"),
        ("gpu.itnel.com/i915", "gpu.intel.com/i915"),
        ("nvdia.com/gpus", "nvidia.com/gpu"),
        ("nvda.com/gpus", ""),
        ("nvidia-com/gpu", "nvidia.com/gpu"),
        ("com.nvidia/gpu", "nvidia.com/gpu"),
        ("nvidia.com/gpux", "nvidia.com/gpu"),
        ("amd.com/gpux", "amd.com/gpu"),
        ("google.com/tpux", "google.com/tpu"),
        ("nvidia.com/gpux.shared", "nvidia.com/gpu.shared"),
        ("nvidia.com/vgpu", ""),
        ("nvidia.com/gpu0", ""),
        ("nvidia.com/gpu-a100", ""),
    ],
)
def test_a_misspelt_name_gets_the_nearest_known_name(name: str, meant: str) -> None:
    assert devices.nearest_known_resource(name) == meant


OTHERS = (Path(__file__).parents[2] / "data" / "cases" / "other_resources.txt").read_text().splitlines()[1:]


@all_rows("name", OTHERS)
def test_a_resource_of_another_vendor_is_not_a_misspelling(name: str) -> None:
    assert devices.nearest_known_resource(name) == ""


def test_no_known_name_is_a_misspelling_of_another() -> None:
    known = {row.name for row in devices.read_device_catalogue().resources if "*" not in row.name}
    assert {name: devices.nearest_known_resource(name) for name in known if devices.nearest_known_resource(name)} == {}


def test_devices_add_up_over_containers_pods_and_vendors() -> None:
    job = {
        "apiVersion": "kubeflow.org/v1",
        "kind": "PyTorchJob",
        "spec": {
            "pytorchReplicaSpecs": {
                "Master": {"template": pod(container({"nvidia.com/gpu": 1}))},
                "Worker": {
                    "replicas": 3,
                    "template": pod(container({"nvidia.com/gpu": "2"}), container({"amd.com/gpu": "1"})),
                },
            }
        },
    }
    fact = of(job)
    assert fact["devices"] == 1 + 3 * 3
    assert fact["vendors"] == {"nvidia": 7, "amd": 3}
    assert [(p["name"], p["devices"], p["total"]) for p in fact["podSets"]] == [("master", 1, 1), ("worker", 3, 9)]
    assert fact["containers"][0]["path"] == "spec.pytorchReplicaSpecs.Master.template.spec.containers[0]"
    assert fact["containers"][0]["resources"][0]["path"] == (
        'spec.pytorchReplicaSpecs.Master.template.spec.containers[0].resources.limits["nvidia.com/gpu"]'
    )


def test_amounts_of_cpu_and_memory_are_not_devices() -> None:
    fact = of(pod(container({"nvidia.com/gpu": "1", "nvidia.com/gpumem": "3000", "nvidia.com/gpucores": "50"})))
    assert fact["devices"] == 1
    assert sorted(r["kind"] for r in fact["containers"][0]["resources"]) == ["amount", "amount", "device"]


@pytest.mark.parametrize(
    ("init", "sidecar", "main", "expected"),
    [(0, 0, 2, 2), (4, 0, 2, 4), (1, 1, 2, 3), (4, 1, 2, 5), (0, 4, 0, 4)],
)
def test_the_devices_of_a_pod_are_those_that_the_scheduler_counts(
    init: int, sidecar: int, main: int, expected: int
) -> None:
    """A sidecar keeps running beside the next init container, so the devices of both count together."""
    spec = pod(container({"nvidia.com/gpu": main}))
    spec["spec"]["initContainers"] = [
        container({"nvidia.com/gpu": sidecar}, restartPolicy="Always"),
        container({"nvidia.com/gpu": init}),
    ]
    assert of(spec)["devices"] == expected


def test_unknown_counts_stay_unknown() -> None:
    fact = of(
        {"apiVersion": "apps/v1", "kind": "DaemonSet", "spec": {"template": pod(container({"nvidia.com/gpu": 1}))}}
    )
    assert fact["devices"] is None
    assert (
        of({"apiVersion": "apps/v1", "kind": "DaemonSet", "spec": {"template": pod(container({"cpu": 1}))}})["devices"]
        == 0
    )


@pytest.mark.parametrize(
    ("limits", "requests", "limit", "request_", "count", "whole", "equal"),
    [
        ({"nvidia.com/gpu": "2"}, {"nvidia.com/gpu": 2}, "2", "2", 2, True, True),
        ({"nvidia.com/gpu": "2"}, None, "2", None, 2, True, True),
        (None, {"nvidia.com/gpu": "2"}, None, "2", 2, True, True),
        ({"nvidia.com/gpu": "2"}, {"nvidia.com/gpu": "1"}, "2", "1", 2, True, False),
        ({"nvidia.com/gpu": "2000m"}, None, "2000m", None, 2, True, True),
        ({"nvidia.com/gpu": "1.5"}, None, "1.5", None, 0, False, True),
        ({"nvidia.com/gpu": "all"}, None, "all", None, 0, False, True),
        ({"nvidia.com/gpu": "-1"}, None, "-1", None, 0, False, True),
        ({"nvidia.com/gpu": True}, None, "True", None, 0, False, True),
    ],
)
def test_amounts_are_read_as_quantities(
    limits: object, requests: object, limit: object, request_: object, count: int, whole: bool, equal: bool
) -> None:
    (resource,) = of(pod(container(limits, requests)))["containers"][0]["resources"]
    assert (resource["limit"], resource["request"]) == (limit, request_)
    assert (resource["count"], resource["whole"], resource["equal"]) == (count, whole, equal)


def test_null_is_absent_at_every_level() -> None:
    assert of(pod(container({"nvidia.com/gpu": None})))["containers"][0]["resources"] == []
    assert of({"apiVersion": "v1", "kind": "Pod", "spec": None}) == {
        "containers": [],
        "patches": [],
        "podSets": of({"apiVersion": "v1", "kind": "Pod"})["podSets"],
        "vendors": {},
        "devices": 0,
    }
    assert of(pod({"name": "c", "resources": None}))["containers"][0]["resources"] == []
    spec = pod()
    spec["spec"]["containers"] = [None, "x"]
    assert of(spec)["containers"] == []


def test_signs_that_a_pod_needs_a_gpu_are_listed() -> None:
    fact = of(
        pod(
            container(
                image="nvcr.io/nvidia/pytorch:24.01-py3", env=[{"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"}]
            ),
            runtimeClassName="nvidia",
        )
    )
    assert (fact["containers"][0]["gpuImage"], fact["containers"][0]["visibleDevices"]) == (True, "all")
    assert (fact["podSets"][0]["gpuRuntime"], fact["podSets"][0]["runtimeClass"]) == (True, "nvidia")
    plain = of(pod(container(image="python:3.12", env=[{"name": "X"}, None])))
    assert (plain["containers"][0]["gpuImage"], plain["containers"][0]["visibleDevices"]) == (False, "")
    assert plain["podSets"][0]["gpuRuntime"] is False


@pytest.mark.parametrize("runtime_class", [[], {"a": 1}, 1])
def test_a_runtime_class_that_is_not_a_string_is_ignored(runtime_class: object) -> None:
    (podset,) = of(pod(container(image="x"), runtimeClassName=runtime_class))["podSets"]
    assert (podset["gpuRuntime"], podset["runtimeClass"]) == (False, "")


@all_rows(
    ("image", "expected"),
    [
        ("nvcr.io/nvidia/pytorch:24.01-py3", True),
        ("registry.example/nvcr.io/nvidia/tritonserver:24.01", True),
        ("docker.io/nvidia/cuda:12", True),
        ("pytorch/pytorch:2.7.1-cuda12.8-cudnn9-runtime", True),
        ("rayproject/ray-ml:2.9.0-gpu", True),
        ("rocm/pytorch", True),
        ("registry.example/cuda-operator/pytorch-cuda:1", True),
        ("nvcr.io/nvidia/k8s-device-plugin:v0.17.1", False),
        ("nvcr.io/nvidia/gpu-operator:v25.3.0", False),
        ("nvcr.io/nvidia/k8s/dcgm-exporter:4.2.0", False),
        ("ghcr.io/nvidia/aicr:latest", False),
        ("intel/intel-gpu-plugin:0.32.0", False),
        ("registry.example/elastic-gpu-scheduler:1", False),
        ("registry.example/tpu-gpu-webhook:1-gpu", False),
        ("nvcr.io/nvidia/tritonserver:25.01-py3-sdk", False),
        ("nvcr.io/nvidia/blueprint/aira-load-files:v1.1.0", False),
        ("registry.example/nvcr.io/nvidia/mellanox/network-operator-init-container:1", False),
        ("nvcr.io/nvidia/ai-dynamo/vllm-runtime:0.5", True),
        ("nvcr.io/nvidia/ai-dynamo/modelexpress-server:0.3.0", False),
        ("nvcr.io/nvidia/k8s/cuda-sample:nbody", True),
        ("registry.example/fake-gpu-operator/topology-server:1", False),
        ("registry.example/team/k8s-gpu-management:1.0.0", False),
        ("registry.example/team/training:2.0.1-gpu-py310", True),
    ],
)
def test_images_that_compute_on_gpus(image: str, expected: bool) -> None:
    assert devices.is_gpu_image(image) is expected


@pytest.mark.parametrize(
    ("limits", "requests", "expected"),
    [
        ({"nvidia.com/gpu": "4"}, {}, (4, False)),
        ({"nvidia.com/gpu": "4"}, {"nvidia.com/gpu": "2"}, (2, False)),
        ({"nvidia.com/gpu": "4"}, {"nvidia.com/gpu": "0"}, (4, False)),
        ({"example.com/GPU": 2}, {}, (2, False)),
        ({"gpu": "2"}, {}, (2, False)),
        ({"nvidia.com/gpu": 1, "nvidia.com/gpumem": 3000}, {}, (1, True)),
        ({"nvidia.com/mig-1g.5gb": 1}, {}, (0, False)),
        ({"nvidia.com/gpu": "x"}, {}, (0, False)),
        ({}, {}, (0, False)),
    ],
)
def test_trainer_counts_resources_with_gpu_in_their_names(limits: dict, requests: dict, expected: tuple) -> None:
    """kubeflow/trainer pkg/runtime/runtime.go GetNumGPUPerNode."""
    assert gpu_count(Resources({"limits": limits, "requests": requests}, (), ReadingContext())) == expected


def test_an_object_without_pod_sets_has_no_devices() -> None:
    assert compute_gpu_fact(())["devices"] == 0
    assert compute_gpu_fact([PodSet(name="x", path=(), template=None)])["containers"] == []


def outside(obj: dict) -> dict:
    return compute_gpu_fact(pod_templates(obj, TABLE), fields=tuple(resource_fields(obj, TABLE)))


def spark(**spec: object) -> dict:
    return {"apiVersion": "sparkoperator.k8s.io/v1beta2", "kind": "SparkApplication", "spec": spec}


GPU = {"name": "nvidia.com/gpu", "quantity": 2}


def test_spark_requests_gpus_in_its_own_fields() -> None:
    fact = outside(spark(driver={"gpu": {**GPU, "quantity": 1}}, executor={"instances": 3, "gpu": GPU}))
    assert (fact["devices"], fact["vendors"]) == (7, {"nvidia": 7})
    assert [(each["name"], each["pods"], each["total"]) for each in fact["podSets"]] == [
        ("driver", 1, 1),
        ("executor", 3, 6),
    ]
    assert [each["resources"][0]["path"] for each in fact["containers"]] == ["spec.driver.gpu", "spec.executor.gpu"]


def test_gpus_of_spark_are_added_to_requests_of_a_template() -> None:
    template = {"spec": {"containers": [container({"nvidia.com/gpu": 1})]}}
    fact = outside(
        spark(driver={"template": template, "gpu": GPU}, executor={"gpu": GPU}, dynamicAllocation={"enabled": True})
    )
    assert [(each["name"], each["devices"], each["total"]) for each in fact["podSets"]] == [
        ("driver", 3, 3),
        ("executor", 2, None),
    ]
    assert fact["devices"] is None


def test_a_gpu_of_a_scheduled_application_is_translated_too() -> None:
    obj = {**spark(template=spark(executor={"gpu": GPU})["spec"]), "kind": "ScheduledSparkApplication"}
    assert outside(obj)["containers"][0]["path"] == "spec.template.executor.gpu"


@pytest.mark.parametrize(
    "field",
    [
        None,
        [],
        {},
        {"name": "nvidia.com/gpu"},
        {**GPU, "quantity": 0},
        {**GPU, "quantity": True},
        {**GPU, "name": ["x"]},
    ],
)
def test_a_field_that_is_not_gpu_is_ignored(field: object) -> None:
    assert outside(spark(driver={"gpu": field}))["podSets"] == []


def served(**spec: object) -> dict:
    return {"apiVersion": "serving.kserve.io/v1beta1", "kind": "InferenceService", "spec": spec}


def test_a_model_requests_gpus_in_its_own_field() -> None:
    fact = outside(served(predictor={"minReplicas": 2, "model": {"resources": {"limits": {"nvidia.com/gpu": "4"}}}}))
    assert fact["devices"] == 8
    assert fact["containers"][0]["resources"][0]["path"] == 'spec.predictor.model.resources.limits["nvidia.com/gpu"]'


@pytest.mark.parametrize("predictor", [None, [], {"model": None}, {"model": {"resources": []}}, {"minReplicas": "2"}])
def test_a_component_without_requests_has_no_devices(predictor: object) -> None:
    assert outside(served(predictor=predictor))["containers"] == []
