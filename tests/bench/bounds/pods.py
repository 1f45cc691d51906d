"""Pods and device objects with a list of n items: each key names a list that a user can lengthen."""

from __future__ import annotations

from tests.bench.bounds.reviews import JSON, Maker, container, gpus, pod


def _claims(n: int) -> list[JSON]:
    return [{"name": f"claim-{i}", "resourceClaimTemplateName": f"template-{i % 100}"} for i in range(n)]


def _refers(n: int) -> JSON:
    return {"claims": [{"name": f"claim-{i}"} for i in range(n)]}


def containers_by_claims(containers: int, claims: int) -> JSON:
    """Return a Pod in which every container refers to every claim."""
    users = [container(f"c-{i}", resources=_refers(claims)) for i in range(containers)]
    return pod({"resourceClaims": _claims(claims), "containers": users})


def _containers(n: int) -> list[JSON]:
    return [container(f"c-{i}", resources=gpus("1")) for i in range(n)]


def _volumes(n: int) -> JSON:
    mounts = [{"name": f"v-{i}", "mountPath": f"/mnt/{i}"} for i in range(n)]
    return {
        "volumes": [{"name": f"v-{i}", "emptyDir": {}} for i in range(n)],
        "containers": [container("main", volumeMounts=mounts)],
    }


def _affinity(n: int) -> JSON:
    terms = [{"matchExpressions": [{"key": f"k-{i}", "operator": "In", "values": [f"v-{i}"]}]} for i in range(n)]
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}


def _tolerations(n: int) -> list[JSON]:
    return [{"key": f"nvidia.com/gpu-{i}", "operator": "Exists", "effect": "NoSchedule"} for i in range(n)]


def _one(**fields: JSON) -> list[JSON]:
    return [container("main", **fields)]


POD_LISTS: dict[str, Maker] = {
    "claims": lambda n: pod({"resourceClaims": _claims(n)}),
    "claims, referred to": lambda n: containers_by_claims(1, n),
    "claims of one name": lambda n: pod({"resourceClaims": _claims(1) * n}),
    "claims, 10 per container": lambda n: pod(
        {"resourceClaims": _claims(10), "containers": [container(f"c-{i}", resources=_refers(10)) for i in range(n)]}
    ),
    "undeclared references": lambda n: pod({"containers": _one(resources=_refers(n))}),
    "containers": lambda n: pod({"containers": _containers(n)}),
    "init containers": lambda n: pod({"initContainers": _containers(n)}),
    "containers, limits.gpu": lambda n: pod(
        {"containers": [container(f"c-{i}", resources={"limits": {"gpu": "1"}}) for i in range(n)]}
    ),
    "resource names": lambda n: pod(
        {"containers": _one(resources={"limits": {f"vendor-{i}.example/gpu": "1" for i in range(n)}})}
    ),
    "env": lambda n: pod(
        {"containers": _one(env=[{"name": f"NCCL_{i}", "value": f"$(NCCL_{i - 1})"} for i in range(n)])}
    ),
    "env of one name": lambda n: pod({"containers": _one(env=[{"name": "RANK", "value": f"{i}"} for i in range(n)])}),
    "env, wrong names": lambda n: pod({"containers": _one(env=[{"name": f"=E_{i}", "value": "1"} for i in range(n)])}),
    "env, wrong types": lambda n: pod({"containers": _one(env=[{"name": f"E_{i}", "value": i} for i in range(n)])}),
    "volumes and mounts": lambda n: pod(_volumes(n)),
    "volumes, wrong names": lambda n: pod({"volumes": [{"name": f"V_{i}", "emptyDir": {}} for i in range(n)]}),
    "mounts at one path": lambda n: pod(
        {"containers": _one(volumeMounts=[{"name": f"v-{i}", "mountPath": "/mnt"} for i in range(n)])}
    ),
    "ports": lambda n: pod({"containers": _one(ports=[{"name": f"p-{i}", "containerPort": i} for i in range(n)])}),
    "arguments": lambda n: pod(
        {"containers": _one(command=["torchrun"], args=[f"--nproc_per_node={i}" for i in range(n)])}
    ),
    "tolerations": lambda n: pod({"tolerations": _tolerations(n), "containers": _containers(1)}),
    "affinity terms": lambda n: pod({"affinity": _affinity(n)}),
    "spread constraints": lambda n: pod(
        {"topologySpreadConstraints": [{"topologyKey": f"k-{i}", "maxSkew": 1} for i in range(n)]}
    ),
    "scheduling gates": lambda n: pod({"schedulingGates": [{"name": f"example.org/g-{i}"} for i in range(n)]}),
    "labels": lambda n: pod(metadata={"labels": {f"label-{i}": f"value-{i}" for i in range(n)}}),
    "annotations": lambda n: pod(metadata={"annotations": {f"key-{i}": f"value-{i}" for i in range(n)}}),
    "node selector": lambda n: pod({"nodeSelector": {f"key-{i}": f"value-{i}" for i in range(n)}}),
    "owners": lambda n: pod(
        metadata={
            "ownerReferences": [
                {"apiVersion": "v1", "kind": "Pod", "name": f"p-{i}", "uid": f"uid-{i}"} for i in range(n)
            ]
        }
    ),
    "unknown fields": lambda n: pod({f"field{i}": {"a": [1, 2]} for i in range(n)}),
}


def _devices(kind: str, spec: JSON) -> JSON:
    made = {"apiVersion": "resource.k8s.io/v1", "kind": kind, "metadata": {"name": "d"}, "spec": spec}
    return {**made, "spec": {"spec": spec}} if kind == "ResourceClaimTemplate" else made


def _request(i: int, selectors: int = 0) -> JSON:
    text = 'device.attributes["gpu.nvidia.com"].productName == "A100" && device.driver == "gpu.nvidia.com"'
    exactly = {"deviceClassName": "gpu.nvidia.com", "selectors": [{"cel": {"expression": text}}] * selectors}
    return {"name": f"r-{i}", "exactly": exactly}


def _config(i: int) -> JSON:
    parameters = {
        "apiVersion": "resource.nvidia.com/v1beta1",
        "kind": "GpuConfig",
        "sharing": {"strategy": "TimeSlicing"},
    }
    return {"requests": [f"r-{i}"], "opaque": {"driver": "gpu.nvidia.com", "parameters": parameters}}


DEVICE_LISTS: dict[str, Maker] = {
    "requests of a claim": lambda n: _devices(
        "ResourceClaim", {"devices": {"requests": [_request(i) for i in range(n)]}}
    ),
    "selectors of a claim": lambda n: _devices("ResourceClaimTemplate", {"devices": {"requests": [_request(0, n)]}}),
    "alternatives of a request": lambda n: _devices(
        "ResourceClaim",
        {
            "devices": {
                "requests": [
                    {
                        "name": "r",
                        "firstAvailable": [{"name": f"s-{i}", "deviceClassName": "gpu.nvidia.com"} for i in range(n)],
                    }
                ]
            }
        },
    ),
    "configurations of a claim": lambda n: _devices(
        "ResourceClaim",
        {"devices": {"requests": [_request(i) for i in range(n)], "config": [_config(i) for i in range(n)]}},
    ),
    "constraints of a claim": lambda n: _devices(
        "ResourceClaim",
        {
            "devices": {
                "requests": [_request(i) for i in range(n)],
                "constraints": [
                    {"requests": [f"r-{i}"], "matchAttribute": "gpu.nvidia.com/productName"} for i in range(n)
                ],
            }
        },
    ),
}
