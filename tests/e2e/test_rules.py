"""The three shipped rules in a real cluster: the command of a user, and the output of kubectl."""

from __future__ import annotations

import copy
import re
from typing import Any

import pytest
import yaml

from tests.e2e.conftest import Cluster

pytestmark = pytest.mark.e2e

PREFIX = 'admission webhook "mutate.claimgate.dev" denied the request: '


def pod(name: str, limits: dict[str, Any] | None = None, **spec: Any) -> dict[str, Any]:
    container: dict[str, Any] = {"name": "c", "image": "i"}
    if limits is not None:
        container["resources"] = {"limits": limits}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"containers": [container], **spec},
    }


def template(limits: dict[str, Any] | None = None, name: str = "pytorch", **spec: Any) -> dict[str, Any]:
    made = copy.deepcopy(pod("x", limits, **spec)["spec"])
    made["containers"][0]["name"] = name
    return {"spec": made}


def pytorchjob(name: str, **spec: Any) -> dict[str, Any]:
    replicas = {"Worker": {"replicas": 2, "template": template(**spec)}}
    return {
        "apiVersion": "kubeflow.org/v1",
        "kind": "PyTorchJob",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"pytorchReplicaSpecs": replicas},
    }


def test_a_pod_with_portable_gpu_is_stored_with_the_resource_of_the_cluster(cluster: Cluster) -> None:
    cluster.server.apply(pod("portable", {"gpu": "2", "cpu": "1"}))
    stored = cluster.server.get("pod", "portable")["spec"]["containers"][0]["resources"]
    assert stored["limits"] == {"nvidia.com/gpu": "2", "cpu": "1"}
    assert stored["requests"] == {"nvidia.com/gpu": "2", "cpu": "1"}


def test_a_gpu_of_a_pytorchjob_is_translated_too(cluster: Cluster) -> None:
    cluster.server.apply(pytorchjob("portable", limits={"gpu": 4}))
    job = cluster.server.get("pytorchjobs.kubeflow.org", "portable")
    worker = job["spec"]["pytorchReplicaSpecs"]["Worker"]["template"]["spec"]
    assert worker["containers"][0]["resources"] == {"limits": {"nvidia.com/gpu": "4"}}


def test_a_pod_without_gpu_is_stored_unchanged(cluster: Cluster) -> None:
    cluster.server.apply(pod("plain", {"cpu": "1"}))
    assert cluster.server.get("pod", "plain")["spec"]["containers"][0]["resources"]["limits"] == {"cpu": "1"}


def deployment(count: int) -> dict[str, Any]:
    made = template({"gpu": count}, "main")
    labels = {"app": "applied"}
    spec = {"replicas": 0, "selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, **made}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "applied", "namespace": "default"},
        "spec": spec,
    }


def test_a_manifest_is_applied_again_with_another_count(cluster: Cluster) -> None:
    for count in (1, 1, 2):
        cluster.server.kubectl("apply", "-f", "-", given=yaml.safe_dump(deployment(count)))
        stored = cluster.server.get("deployment", "applied")["spec"]["template"]["spec"]["containers"][0]
        assert stored["resources"] == {"limits": {"nvidia.com/gpu": str(count)}}
    cluster.server.kubectl("scale", "deployment/applied", "--replicas=1")


def test_a_batchsandbox_with_gpu_all_is_a_bad_request(cluster: Cluster) -> None:
    sandbox = {
        "apiVersion": "sandbox.opensandbox.io/v1alpha1",
        "kind": "BatchSandbox",
        "metadata": {"name": "all", "namespace": "default"},
        "spec": {"replicas": 1, "template": template({"gpu": "all"}, "sandbox")},
    }
    refused = cluster.server.apply(sandbox, code=1).stderr
    assert "Error from server (BadRequest)" in refused
    assert PREFIX in refused
    assert "spec.template.spec.containers[0].resources.limits.gpu" in refused


@pytest.mark.parametrize("value", ["all", " ALL "])
def test_a_pod_with_gpu_all_is_a_bad_request(cluster: Cluster, value: str) -> None:
    # the API server reads quantities before it calls: " ALL " in a Pod never reaches a webhook
    refused = cluster.server.apply(pod("all", {"gpu": value}), code=1).stderr
    assert "BadRequest" in refused or "quantities must match" in refused


def test_claims_with_two_sources_and_without_a_source_are_refused_in_a_template(cluster: Cluster) -> None:
    both = {"name": "both", "resourceClaimName": "a", "resourceClaimTemplateName": "b"}
    job = pytorchjob("claims", resourceClaims=[both, {"name": "neither"}])
    refused = cluster.server.apply(job, code=1).stderr
    assert 'The PyTorchJob "claims" is invalid: ' in refused  # with reason Invalid, kubectl shows only the causes
    where = re.escape("spec.pytorchReplicaSpecs.Worker.template.spec.resourceClaims")
    for number in (0, 1):
        assert re.search(rf"^\* {where}\[{number}\]: .+ \(claimgate: claims-exactly-one/\S+\)$", refused, re.MULTILINE)


RUNTIME = {
    "apiVersion": "trainer.kubeflow.org/v1alpha1",
    "kind": "ClusterTrainingRuntime",
    "metadata": {"name": "torch-claims", "labels": {"trainer.kubeflow.org/framework": "torch"}},
    "spec": {
        "mlPolicy": {"numNodes": 1, "torch": {}},
        "template": {
            "spec": {
                "replicatedJobs": [
                    {
                        "name": "node",
                        "template": {
                            "metadata": {"labels": {"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"}},
                            "spec": {
                                "template": {
                                    "spec": {
                                        "containers": [
                                            {"name": "node", "image": "i", "resources": {"claims": [{"name": "gpus"}]}}
                                        ],
                                        "resourceClaims": [{"name": "gpus", "resourceClaimTemplateName": "two-gpus"}],
                                        "restartPolicy": "Never",
                                    }
                                }
                            },
                        },
                    }
                ]
            }
        },
    },
}
CLAIM = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "ResourceClaimTemplate",
    "metadata": {"name": "two-gpus", "namespace": "default"},
    "spec": {
        "spec": {
            "devices": {
                "requests": [
                    {
                        "name": "gpu",
                        "exactly": {"deviceClassName": "gpu.nvidia.com", "allocationMode": "ExactCount", "count": 2},
                    }
                ]
            }
        }
    },
}


def trainjob(name: str, runtime: str) -> dict[str, Any]:
    return {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "TrainJob",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"runtimeRef": {"name": runtime}},
    }


def test_a_trainjob_of_a_runtime_with_claims_prints_the_warning_and_is_stored(cluster: Cluster) -> None:
    cluster.server.apply(CLAIM)
    # the runtime is cluster-scoped, so the first test that needs the runtime creates it for all
    cluster.server.apply(RUNTIME, code=None)
    warned = ""
    for number in range(50):  # the webhook sees a stored object after a moment
        warned = cluster.server.apply(trainjob(f"warned-{number}", "torch-claims")).stderr
        if "set the field to 2" in warned:
            break
    assert "Warning: spec.trainer.numProcPerNode: is not set" in warned
    assert "set the field to 2" in warned
    assert cluster.server.get("trainjobs.trainer.kubeflow.org", "warned-0")["metadata"]["uid"]


def test_a_trainjob_with_an_unknown_runtime_gets_only_the_finding_about_the_runtime(cluster: Cluster) -> None:
    (warning,) = cluster.server.apply(trainjob("unknown", "nowhere")).stderr.splitlines()
    assert warning.startswith(
        "Warning: spec.runtimeRef.name: names ClusterTrainingRuntime `nowhere`, which does not exist"
    )


def test_other_kinds_and_the_own_namespace_are_never_sent_to_the_webhook(cluster: Cluster) -> None:
    cluster.server.kubectl("create", "configmap", "free", "-n", "default")
    both = {"name": "both", "resourceClaimName": "a", "resourceClaimTemplateName": "b"}
    own = yaml.safe_load(yaml.safe_dump(pytorchjob("own", resourceClaims=[both])))
    own["metadata"]["namespace"] = "claimgate-system"
    cluster.server.apply(own)
    cluster.server.apply(trainjob("after", "nowhere"))
    asked = cluster.asked_until("after")
    assert "default" in {namespace for namespace, _ in asked}
    assert not {("default", "free"), ("claimgate-system", "own")} & asked
