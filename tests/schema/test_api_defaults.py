"""The defaults of an API server. tests/e2e/test_sent.py compares them with a real one."""

from __future__ import annotations

from typing import Any

from tests.rows import all_rows
from webhook.admission.fixtures import group_version_kind_of_object
from webhook.apimachinery import paths
from webhook.schema.api_defaults import with_api_defaults


def of_kind(kind: str, spec: Any, api_version: str = "v1", **metadata: Any) -> dict[str, Any]:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": "x", **metadata}, "spec": spec}


def pod(**container: Any) -> dict[str, Any]:
    return of_kind("Pod", {"containers": [{"name": "c", "image": "i", **container}]})


def on_host(**port: Any) -> dict[str, Any]:
    return of_kind("Pod", {"hostNetwork": True, "containers": [{"name": "c", "ports": [port]}]})


def of_whole_pod(requests: Any, limits: Any, *containers: Any) -> dict[str, Any]:
    resources = {"requests": requests} if requests else {}
    resources |= {"limits": limits} if limits else {}
    return of_kind("Pod", {"resources": resources, "containers": [{"resources": each} for each in containers]})


FILLED: dict[str, tuple[dict[str, Any], str, Any]] = {
    "a restart policy": (pod(), "spec.restartPolicy", "Always"),
    "the tag latest is pulled": (pod(), "spec.containers[0].imagePullPolicy", "Always"),
    "a digest is not pulled again": (pod(image="i@sha256:0"), "spec.containers[0].imagePullPolicy", "IfNotPresent"),
    "a port of a registry is not a tag": (pod(image="r:5000/i"), "spec.containers[0].imagePullPolicy", "Always"),
    "requests of a Pod follow limits": (
        pod(resources={"limits": {"cpu": "2", "memory": "1Gi"}, "requests": {"cpu": "1"}}),
        "spec.containers[0].resources.requests",
        {"cpu": "1", "memory": "1Gi"},
    ),
    "requests of a template do not follow limits": (
        of_kind("Deployment", {"template": pod(resources={"limits": {"cpu": "2"}})}, "apps/v1"),
        "spec.template.spec.containers[0].resources",
        {"limits": {"cpu": "2"}},
    ),
    "a port on the host": (on_host(containerPort=80), "spec.containers[0].ports[0].hostPort", 80),
    "requests at the level of the Pod follow its containers": (
        of_whole_pod({}, {"cpu": "4", "memory": "2Gi"}, {"requests": {"cpu": "1"}}, {"requests": {"cpu": "500m"}}),
        "spec.resources.requests",
        {"cpu": "1500m", "memory": "2Gi"},
    ),
    "a volume without a source": (of_kind("Pod", {"volumes": [{"name": "v"}]}), "spec.volumes[0].emptyDir", {}),
    "a Job of one pod": (of_kind("Job", {}, "batch/v1"), "spec.completions", 1),
    "a Job of many pods": (of_kind("Job", {"parallelism": 2}, "batch/v1"), "spec.completions", None),
    "labels of a Job": (
        of_kind("Job", {"template": {"metadata": {"labels": {"a": "b"}}}}, "batch/v1"),
        "metadata.labels",
        {"a": "b"},
    ),
    "a strategy": (of_kind("Deployment", {"strategy": {}}, "apps/v1"), "spec.strategy.rollingUpdate.maxSurge", "25%"),
    "a port of a Service": (of_kind("Service", {"ports": [{"port": 80}]}), "spec.ports[0].targetPort", 80),
    "the kind of a claim in a StatefulSet": (
        of_kind("StatefulSet", {"volumeClaimTemplates": [{"metadata": {"name": "v"}, "spec": {}}]}, "apps/v1"),
        "spec.volumeClaimTemplates[0]",
        {
            "metadata": {"name": "v"},
            "spec": {"volumeMode": "Filesystem"},
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "status": {"phase": "Pending"},
        },
    ),
    "a field that Go writes although it is not set": (
        pod(livenessProbe={"grpc": {"port": 80, "service": None}}),
        "spec.containers[0].livenessProbe.grpc.service",
        "",
    ),
    "a scope of parameters": (
        of_kind("IngressClass", {"parameters": {"kind": "P", "name": "p", "scope": None}}, "networking.k8s.io/v1"),
        "spec.parameters.scope",
        "Cluster",
    ),
    "a toleration of devices": (
        of_kind(
            "ResourceClaim",
            {"devices": {"requests": [{"name": "r", "exactly": {"tolerations": [{"key": "k"}]}}]}},
            "resource.k8s.io/v1",
        ),
        "spec.devices.requests[0].exactly.tolerations[0].operator",
        "Equal",
    ),
    "texts of a Secret": (
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": "x"},
            "data": {"a": "MQ=="},
            "stringData": {"a": "2"},
        },
        "data",
        {"a": "Mg=="},
    ),
    "the label of a Namespace": (
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "x"}},
        'metadata.labels["kubernetes.io/metadata.name"]',
        "x",
    ),
}


@all_rows(("obj", "path", "filled"), FILLED.values(), ids=FILLED)
def test_a_default_is_filled_in(obj: dict[str, Any], path: str, filled: Any) -> None:
    made = with_api_defaults(obj, group_version_kind_of_object(obj))
    assert paths.get(made, paths.parse_path(path)) == filled
