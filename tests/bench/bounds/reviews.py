"""AdmissionReviews as bytes: the envelope of the API server around any object of any size."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, TypeAlias

from tests.bench.bounds.calls import UID

JSON: TypeAlias = Any
Maker: TypeAlias = Callable[[int], JSON]
"""An object with n items of a list."""

NAMESPACE = "attackers"
RESOURCES = {
    "Pod": "pods",
    "Deployment": "deployments",
    "BatchSandbox": "batchsandboxes",
    "RayCluster": "rayclusters",
    "AppWrapper": "appwrappers",
    "JobSet": "jobsets",
    "TrainJob": "trainjobs",
    "ClusterTrainingRuntime": "clustertrainingruntimes",
    "PyTorchJob": "pytorchjobs",
    "MPIJob": "mpijobs",
    "Job": "jobs",
    "ResourceClaim": "resourceclaims",
    "ResourceClaimTemplate": "resourceclaimtemplates",
    "ResourceSlice": "resourceslices",
    "DeviceClass": "deviceclasses",
    "RoleBasedGroup": "rolebasedgroups",
    "OptimizationJob": "optimizationjobs",
    "DeviceTaintRule": "devicetaintrules",
}


def review(sent: JSON, *, namespace: str = NAMESPACE, old: JSON = None, **request: Any) -> bytes:
    """Return the review of a creation, or of an update if `old` is given. The JSON is compact, as from an API
    server.
    """
    group, _, version = sent["apiVersion"].rpartition("/")
    resource = {"group": group, "version": version, "resource": RESOURCES[sent["kind"]]}
    kind = {"group": group, "version": version, "kind": sent["kind"]}
    envelope = {
        "uid": UID.decode(),
        "kind": kind,
        "resource": resource,
        "requestKind": kind,
        "requestResource": resource,
        "name": sent["metadata"]["name"],
        "namespace": namespace,
        "operation": "UPDATE" if old else "CREATE",
        "userInfo": {"username": "mallory", "groups": ["system:authenticated"]},
        "object": sent,
        "oldObject": old,
        "dryRun": False,
        "options": {"apiVersion": "meta.k8s.io/v1", "kind": "CreateOptions"},
        **request,
    }
    whole = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": envelope}
    return json.dumps(whole, separators=(",", ":")).encode() + b"\n"


def count_for(make: Maker, size: int) -> int:
    few, more = (len(json.dumps(make(n), separators=(",", ":"))) for n in (100, 300))
    return max(10, int((size - few) / ((more - few) / 200)) + 100)


def container(name: str, **fields: Any) -> JSON:
    return {"name": name, "image": "registry.example/team/image:1", **fields}


def pod(spec: JSON = None, metadata: JSON = None, **rest: Any) -> JSON:
    """Return a Pod with one container and the given fields."""
    spec = {"containers": [container("main")], **(spec or {})}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", **(metadata or {})}, "spec": spec, **rest}


def template(spec: JSON = None) -> JSON:
    """Return a pod template with one container and the given fields."""
    return {"metadata": {}, "spec": {"containers": [container("main")], **(spec or {})}}


def gpus(count: Any, name: str = "nvidia.com/gpu") -> JSON:
    return {"limits": {name: count}, "requests": {name: count}}
