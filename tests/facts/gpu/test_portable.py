"""The portable name `gpu`: where it is requested, how many devices, and which resource it means in a namespace."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.facts.subjects import subject
from tests.rows import all_rows
from webhook.apimachinery.attributes import JSON
from webhook.errors import LookupFailed
from webhook.facts.assumptions import read_assumptions

NAMESPACE: JSON = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}}


def pod(*resources: JSON, **spec: JSON) -> JSON:
    containers = [{"name": f"c{n}", "resources": each} for n, each in enumerate(resources)]
    metadata = {"name": "p", "namespace": "team"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": containers, **spec}}


def workload(kind: str, **spec: JSON) -> JSON:
    group = {"BatchSandbox": "sandbox.opensandbox.io/v1alpha1", "JobFlow": "flow.volcano.sh/v1alpha1"}
    version = group.get(kind, "trainer.kubeflow.org/v1alpha1")
    return {"apiVersion": version, "kind": kind, "metadata": {"name": "x", "namespace": "team"}, "spec": spec}


def portable(obj: JSON, old: JSON = None, label: str = "", **resources: str) -> JSON:
    labels = {"labels": {"claimgate.dev/gpu": label}} if label else {}
    namespace = {**NAMESPACE, "metadata": {**NAMESPACE["metadata"], **labels}}
    settings = tuple((key.replace("_", ".", 1), text) for key, text in resources.items())
    return subject(obj, namespace, old=old, resources=settings).fact("portableGpu")


def asks(obj: JSON, old: JSON = None) -> list[JSON]:
    found: list[JSON] = portable(obj, old)["asks"]
    return found


@all_rows(
    ("value", "count"),
    [
        *((value, "2") for value in ("2", 2, 2.0, " 2 ", "+2", "02", "2\n")),
        *((value, "") for value in ("0", "-1", "bad", "", "1.5", "2.0", "1e3", "1k", "0x2", "²", "٣", "1_000", 0, 1.5)),
        ("9" * 18, "9" * 18),
        ("9" * 19, ""),
    ],
)
def test_a_count_is_a_positive_whole_number(value: JSON, count: str) -> None:
    (ask,) = asks(pod({"limits": {"gpu": value}}))
    assert (ask["count"], ask["limit"]["count"], ask["request"]["isSet"]) == (count, count, False)
    assert ask["asked"] == ask["limit"]


@pytest.mark.parametrize("value", ["${GPUS}", "{{ .gpus }}"])
def test_a_placeholder_requests_nothing(value: JSON) -> None:
    assert portable(pod({"limits": {"gpu": value}, "requests": {"gpu": 1}}))["paths"] == []


@pytest.mark.parametrize(("value", "found"), [(True, "`true`"), ([1], "a list"), ({}, "an object")])
def test_an_amount_that_is_not_a_quantity_is_named(value: JSON, found: str) -> None:
    fact = portable(pod({"limits": {"gpu": value}, "requests": {"gpu": 1}}))
    assert fact["mistyped"] == [{"path": "spec.containers[0].resources.limits.gpu", "found": found}]
    assert fact["asks"] == []


@pytest.mark.parametrize(
    ("resources", "equal", "every", "at"),
    [
        ({"limits": {"gpu": 1}, "requests": {"gpu": "1"}}, True, False, "limits.gpu"),
        ({"limits": {"gpu": 1}, "requests": {"gpu": 2}}, False, False, "limits.gpu"),
        ({"limits": {"gpu": 1}, "requests": {"gpu": "bad"}}, False, False, "limits.gpu"),
        ({"limits": {"gpu": "x"}, "requests": {"gpu": " x"}}, True, False, "limits.gpu"),
        ({"limits": {"gpu": None}, "requests": {"gpu": 1}}, True, False, "requests.gpu"),
        ({"limits": {"gpu": 1}, "requests": {"gpu": " All "}}, True, True, "requests.gpu"),
    ],
)
def test_a_limit_and_its_request(resources: JSON, *, equal: bool, every: bool, at: str) -> None:
    (ask,) = asks(pod(resources))
    assert (ask["isEqual"], ask["isAll"], ask["asked"]["path"]) == (equal, every, at)


def test_a_null_requests_nothing_and_counts_as_set() -> None:
    (ask,) = asks(pod({"limits": {"gpu": None}}))
    assert (ask["isNull"], ask["count"], ask["limit"]["isSet"], ask["limit"]["isNull"]) == (True, "", True, True)


def test_amounts_of_the_own_resource_are_read_at_the_same_place() -> None:
    (ask,) = asks(pod({"limits": {"gpu": 2, "nvidia.com/gpu": "2000m"}, "requests": {"nvidia.com/gpu": "all"}}))
    assert (ask["ownLimit"]["count"], ask["ownRequest"]["count"], ask["ownRequest"]["text"]) == ("2", "", "all")
    assert ask["ownLimit"]["path"] == 'limits["nvidia.com/gpu"]'
    assert ask["pointer"] + ask["ownLimit"]["pointer"] == "/spec/containers/0/resources/limits/nvidia.com~1gpu"


def test_unchanged_places_are_left_out() -> None:
    stored, changed = {"limits": {"gpu": 1}}, {"limits": {"gpu": 1, "cpu": 1, "nvidia.com/gpu": 1}}
    before = pod(stored, {"limits": {"cpu": 1, "nvidia.com/gpu": 1}})
    (ask,) = asks(pod(stored, changed), before)
    assert (ask["resources"], ask["ownLimit"]["isKept"], ask["limit"]["isKept"]) == (
        "spec.containers[1].resources", True, False,
    )  # fmt: skip


def test_requests_outside_pod_templates_are_found() -> None:
    job = workload("TrainJob", trainer={"resourcesPerNode": {"requests": {"gpu": 1}}})
    wrapper = {
        "apiVersion": "workload.codeflare.dev/v1beta2",
        "kind": "AppWrapper",
        "metadata": {"namespace": "team"},
        "spec": {"components": [{"template": pod({"limits": {"gpu": 1}})}, {"template": job}]},
    }
    assert portable(job)["paths"] == ["spec.trainer.resourcesPerNode"]
    assert portable(wrapper)["paths"] == ["spec.components[1].template.spec.trainer.resourcesPerNode"]
    assert not asks(job)[0]["hasLimits"]


def test_partial_templates_know_their_operating_system() -> None:
    template = {"spec": {"os": {"name": "windows"}}}
    patches = [pod({"limits": {"gpu": None}}), {"spec": {**pod({"limits": {"gpu": 1}})["spec"], "os": {}}}]
    sandbox = asks(workload("BatchSandbox", template=template, shardPatches=[{"spec": patches[0]["spec"]}, patches[1]]))
    assert [(each["isPatch"], each["isWindows"]) for each in sandbox] == [(True, True), (True, False)]
    task = {"template": {"spec": {**pod({"limits": {"gpu": 1}})["spec"], **template["spec"]}}}
    (flow,) = asks(workload("JobFlow", flows=[{"patch": {"jobSpec": {"tasks": [task]}}}]))
    assert (flow["isPatch"], flow["isWindows"]) == (False, True)


def test_patches_of_a_runtime_have_no_resources() -> None:
    template = {"spec": pod({"limits": {"gpu": 1}})["spec"]}
    jobs = [{"template": {"spec": {"template": template}}}]
    patch = {"trainingRuntimeSpec": {"template": {"spec": {"replicatedJobs": jobs}}}}
    assert asks(workload("TrainJob", runtimePatches=[patch])) == []


def spark(name: str) -> JSON:
    metadata = {"name": "s", "namespace": "team"}
    spec = {"driver": {"gpu": {"name": name, "quantity": 1}}}
    return {
        "apiVersion": "sparkoperator.k8s.io/v1beta2",
        "kind": "SparkApplication",
        "metadata": metadata,
        "spec": spec,
    }


def test_a_device_with_a_quantity_is_a_request_by_its_name() -> None:
    found = portable(spark("gpu"), spark("amd.com/gpu"))
    assert found["devices"] == [{"path": "spec.driver.gpu", "pointer": "/spec/driver/gpu/name"}]
    assert found["paths"] == ["spec.driver.gpu"]
    assert portable(spark("gpu"), spark("gpu"))["devices"] == []
    assert portable(spark("amd.com/gpu"))["devices"] == []


def test_kubernetes_accepts_devices_only_in_containers() -> None:
    asking = {"limits": {"gpu": 1}, "requests": {"gpu": None}}
    obj = pod({}, resources=asking, ephemeralContainers=[{}, {"name": "e", "resources": asking}])
    assert portable(obj)["misplaced"] == [
        {"path": "spec.resources.limits.gpu", "isEphemeral": False},
        {"path": "spec.ephemeralContainers[1].resources.limits.gpu", "isEphemeral": True},
    ]


@pytest.mark.parametrize(
    ("label", "resources", "meant", "unknown"),
    [
        ("", {}, "nvidia.com/gpu", ""),
        ("", {"resource": "amd.com/gpu", "resource_other": "x.y/z"}, "amd.com/gpu", ""),
        ("", {"resource": "amd.com/gpu", "resource_team": "x.y/z"}, "x.y/z", ""),
        ("intel", {"resource": "amd.com/gpu", "vendor_intel": "gpu.intel.com/i915"}, "gpu.intel.com/i915", ""),
        ("intel", {"resource_team": "x.y/z", "vendor_intel": "gpu.intel.com/i915"}, "x.y/z", ""),
        ("own", {"resource": "amd.com/gpu"}, "amd.com/gpu", ""),
        ("intell", {"resource": "amd.com/gpu", "vendor_intel": "gpu.intel.com/i915"}, "amd.com/gpu", "intell"),
        ("intell", {"resource_team": "x.y/z"}, "x.y/z", ""),
    ],
)
def test_gpu_means_this_resource_in_a_namespace(
    label: str, resources: dict[str, str], meant: str, unknown: str
) -> None:
    found = portable(pod({"limits": {"gpu": 1}}), label=label, **resources)
    assert (found["resource"], found["unknownVendor"]) == (meant, unknown)


def test_an_object_without_a_namespace_uses_the_params_of_the_cluster() -> None:
    one = subject(pod({"limits": {"gpu": 1}}), resources=(("resource", "amd.com/gpu"),))
    one.attributes = replace(one.attributes, namespace="")
    assert one.fact("portableGpu")["resource"] == "amd.com/gpu"


def test_the_namespace_of_an_object_without_gpu_is_not_read() -> None:
    assert subject(pod({"limits": {"nvidia.com/gpu": 1}})).fact("portableGpu")["resource"] == ""
    with pytest.raises(LookupFailed, match="Namespace team not found"):
        subject(pod({"limits": {"gpu": 1}})).fact("portableGpu")


def test_the_param_lists_the_resources() -> None:
    data = {"resource": "a.b/c", "resource.team": "d.e/f", "vendor.x": "g.h/i", "resources": "no", "onInvalid": "deny"}
    assert read_assumptions({"data": data}).resources == tuple(data.items())[:3]
