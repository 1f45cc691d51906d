"""Objects with one list of any length, for each list that a user can lengthen.

A function of `LISTS` gets a number of items, and returns an object with a list of this length. Most items have unique names, so no
scan ends early. The objects are as valid as possible, so policies read all of them.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from itertools import count
from typing import Any, TypeAlias

from tests.literals import TABLE
from webhook.apimachinery.attributes import JSON

Make: TypeAlias = Callable[[int], JSON]
TRAINER = "trainer.kubeflow.org/v1alpha1"
STEP = "trainer.kubeflow.org/trainjob-ancestor-step"


def review(obj: JSON, operation: str = "CREATE", old: JSON = None) -> JSON:
    group, _, version = obj["apiVersion"].rpartition("/")
    row = TABLE.row(group, obj["kind"])
    resource = row.resource if row else obj["kind"].lower() + ("es" if obj["kind"].endswith("Class") else "s")
    request = {
        "uid": "u",
        "kind": {"group": group, "version": version, "kind": obj["kind"]},
        "resource": {"group": group, "version": version, "resource": resource},
        "operation": operation,
        "name": "x",
        "namespace": "team",
        "userInfo": {"username": "alice", "groups": ["developers"]},
        "object": obj,
        "oldObject": old,
    }
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}


def longest(make: Make, size: int) -> int:
    """Return the number of items with which an object has about this size. The number is a multiple of four."""
    number = 256
    while len(json.dumps(make(number))) < size:
        number *= 4
    return max(4, int(number * size / len(json.dumps(make(number)))) // 4 * 4)


def named(number: int, prefix: str = "n", **fields: Any) -> list[JSON]:
    return [{"name": f"{prefix}{i}", **fields} for i in range(number)]


def container(name: str = "main", **fields: Any) -> JSON:
    return {"name": name, "image": "registry.example/team/image:1", **fields}


def many(number: int, **fields: Any) -> list[JSON]:
    return [container(f"c{i}", **fields) for i in range(number)]


def obj(api_version: str, kind: str, spec: JSON, **metadata: Any) -> JSON:
    named = {"name": "x", "namespace": "team", **metadata}
    return {"apiVersion": api_version, "kind": kind, "metadata": named, "spec": spec}


def pod(**spec: Any) -> JSON:
    return obj("v1", "Pod", {"containers": [container()], **spec})


def template(**spec: Any) -> JSON:
    return {"metadata": {"labels": {"app": "x"}}, "spec": {"containers": [container()], **spec}}


def _claims(number: int, **fields: Any) -> list[JSON]:
    return [{"name": f"n{i}", "resourceClaimTemplateName": "one-gpu", **fields} for i in range(number)]


def _using(*names: str) -> JSON:
    return {"claims": [{"name": name} for name in names]}


def _gpus(count: int = 1) -> JSON:
    return {"limits": {"nvidia.com/gpu": count}}


_GPU_POD = {"containers": [container(resources=_gpus())]}


def _bare(number: int) -> JSON:
    return pod(
        resourceClaims=_claims(number), containers=[container(resources=_using(*(f"n{i}" for i in range(number))))]
    )


_PODS: Mapping[str, Make] = {
    "claims": lambda n: pod(resourceClaims=_claims(n)),
    "claims used": _bare,
    "claims not found": lambda n: pod(
        resourceClaims=[{"name": f"n{i}", "resourceClaimName": f"c{i}"} for i in range(n)]
    ),
    "claims without source": lambda n: pod(resourceClaims=named(n)),
    "claims of one name": lambda n: pod(resourceClaims=[{"name": "n", "resourceClaimTemplateName": "one-gpu"}] * n),
    "claims, one container each": lambda n: pod(
        resourceClaims=_claims(n), containers=[container(f"c{i}", resources=_using(f"n{i}")) for i in range(n)]
    ),
    "claims and GPUs of containers": lambda n: pod(
        resourceClaims=_claims(n),
        containers=[container(f"c{i}", resources={**_using(f"n{i}"), **_gpus()}) for i in range(n)],
    ),
    "references to one claim": lambda n: pod(
        resourceClaims=_claims(1), containers=[container(resources=_using(*["n0"] * n))]
    ),
    "references to requests": lambda n: pod(
        resourceClaims=_claims(1),
        containers=[container(resources={"claims": [{"name": "n0", "request": f"r{i}"} for i in range(n)]})],
    ),
    "undeclared references": lambda n: pod(containers=[container(resources=_using(*(f"n{i}" for i in range(n))))]),
    "containers": lambda n: pod(containers=many(n)),
    "containers with GPUs": lambda n: pod(containers=many(n, resources=_gpus())),
    "init containers": lambda n: pod(initContainers=many(n)),
    "init containers with GPUs": lambda n: pod(initContainers=many(n, resources=_gpus())),
    "sidecars": lambda n: pod(initContainers=many(n, restartPolicy="Always", resources=_gpus())),
    "env": lambda n: pod(containers=[container(env=named(n, "E", value="1"))]),
    "env of a GPU container": lambda n: pod(containers=[container(env=named(n, "E", value="1"), resources=_gpus())]),
    "ports": lambda n: pod(containers=[container(ports=[{"name": f"p{i}", "containerPort": i} for i in range(n)])]),
    "volumes": lambda n: pod(volumes=named(n, emptyDir={})),
    "volumes and mounts": lambda n: pod(
        volumes=named(n, emptyDir={}),
        containers=[container(volumeMounts=[{"name": f"n{i}", "mountPath": f"/m/{i}"} for i in range(n)])],
    ),
    "tolerations": lambda n: pod(
        **_GPU_POD, tolerations=[{"key": f"k{i}", "operator": "Exists", "effect": "NoSchedule"} for i in range(n)]
    ),
    "node selector": lambda n: pod(**_GPU_POD, nodeSelector={f"example.org/k{i}": "v" for i in range(n)}),
    "labels": lambda n: obj("v1", "Pod", pod()["spec"], labels={f"example.org/k{i}": "v" for i in range(n)}),
    "annotations": lambda n: obj("v1", "Pod", pod()["spec"], annotations={f"example.org/k{i}": "v" for i in range(n)}),
    "limits": lambda n: pod(containers=[container(resources={"limits": {f"nvidia.com/gqu-{i}": 1 for i in range(n)}})]),
    "resources that are named like GPUs": lambda n: pod(
        containers=[container(resources={"limits": {f"gpu{i}.example.org/gpu": 1 for i in range(n)}})]
    ),
    "device classes as resources": lambda n: pod(
        containers=[container(resources={"limits": {f"deviceclass.resource.kubernetes.io/c{i}": 1 for i in range(n)}})]
    ),
    "args": lambda n: pod(containers=[container(command=["torchrun"], args=[f"--x{i}=1" for i in range(n)])]),
    "parameters of a script that repeats them": lambda n: pod(
        containers=[
            container(command=["sh", "-c", "vllm serve" + ' "$@"' * n, "--"], args=["a"] * n, resources=_gpus())
        ]
    ),
    "model servers with probes of other ports": lambda n: pod(
        containers=[
            {
                **container(f"c{i}", args=["--model", "m"], ports=[{"containerPort": i + 1}], resources=_gpus()),
                "image": "vllm/vllm-openai:v0.8.0",
                "livenessProbe": {"httpGet": {"port": 1}},
            }
            for i in range(n)
        ]
    ),
    "pod group claims": lambda n: pod(resourceClaims=_claims(n), schedulingGroup={"podGroupName": "group"}),
}


def _batch(shards: list[JSON], **spec: Any) -> JSON:
    return obj(
        "sandbox.opensandbox.io/v1alpha1",
        "BatchSandbox",
        {"replicas": len(shards), "template": template(**spec), "shardPatches": shards},
    )


def _shard(**spec: Any) -> JSON:
    return {"spec": spec}


def _trainjob(**spec: Any) -> JSON:
    reference = {"apiGroup": "trainer.kubeflow.org", "kind": "ClusterTrainingRuntime", "name": "torch-dra"}
    return obj(TRAINER, "TrainJob", {"runtimeRef": reference, **spec})


def _patch(number: int, *jobs: JSON) -> JSON:
    return {
        "manager": f"example.org/m{number}",
        "trainingRuntimeSpec": {"template": {"spec": {"replicatedJobs": jobs}}},
    }


def _job(name: str, labels: JSON = None, **spec: Any) -> JSON:
    return {"name": name, "template": {"metadata": {"labels": labels or {}}, "spec": {"template": {"spec": spec}}}}


def _node(**fields: Any) -> JSON:
    return _job("node", {STEP: "trainer"}, containers=[container("node", **fields)])


def _runtime(*jobs: JSON, **spec: Any) -> JSON:
    policy = {"numNodes": 1, "torch": {}}
    return obj(TRAINER, "TrainingRuntime", {"mlPolicy": policy, "template": {"spec": {"replicatedJobs": jobs, **spec}}})


def _jobset(*jobs: JSON, **spec: Any) -> JSON:
    return obj("jobset.x-k8s.io/v1alpha2", "JobSet", {"replicatedJobs": [*jobs], **spec})


def _jobs(number: int, **fields: Any) -> list[JSON]:
    return [{**_job(f"j{i}", containers=[container()]), **fields} for i in range(number)]


def _ray(groups: list[JSON]) -> JSON:
    return obj("ray.io/v1", "RayCluster", {"headGroupSpec": {"template": template()}, "workerGroupSpecs": groups})


def _groups(number: int, **spec: Any) -> list[JSON]:
    return [{"groupName": f"g{i}", "replicas": 1, "template": template(**spec)} for i in range(number)]


def _component(number: int, **spec: Any) -> JSON:
    return {"template": {**obj("batch/v1", "Job", {"template": template(**spec)}, name=f"j{number}")}}


def _wrapper(components: list[JSON]) -> JSON:
    return obj("workload.codeflare.dev/v1beta2", "AppWrapper", {"components": components})


def _pytorch(role: JSON, **roles: JSON) -> JSON:
    specs = {"Master": {"replicas": 1, "template": role}, **roles}
    return obj("kubeflow.org/v1", "PyTorchJob", {"pytorchReplicaSpecs": specs})


def _launched(*words: str, **fields: Any) -> JSON:
    return template(containers=[container("pytorch", command=["torchrun"], args=[*words], **fields)])


_WORKLOADS: Mapping[str, Make] = {
    "shards": lambda n: _batch([_shard(containers=[container(image=f"i:{i}")]) for i in range(n)]),
    "shards that do not fit": lambda n: _batch([_shard(containers=[container(image=i)]) for i in range(n)]),
    "shards x containers": lambda n: _batch(
        [_shard(nodeSelector={"a": f"{i}"}) for i in range(math.isqrt(n))], containers=many(math.isqrt(n))
    ),
    "shards x patched containers": lambda n: _batch(
        [_shard(containers=[container(f"c{i}", command=["x"])]) for i in range(math.isqrt(n))],
        containers=many(math.isqrt(n)),
    ),
    "containers of one shard": lambda n: _batch([_shard(containers=many(n, command=["x"]))], containers=many(n)),
    "containers added by one shard": lambda n: _batch([_shard(containers=many(n))]),
    "claims of one shard": lambda n: _batch([_shard(resourceClaims=named(n))], resourceClaims=_claims(n)),
    "claims x containers of shards": lambda n: _batch(
        [
            _shard(containers=[container(resources=_using(*(f"n{j}" for j in range(math.isqrt(n)))))])
            for i in range(math.isqrt(n))
        ],
        resourceClaims=_claims(math.isqrt(n)),
    ),
    "runtime patches": lambda n: _trainjob(runtimePatches=[_patch(i, _job("node")) for i in range(n)]),
    "runtime patches with env": lambda n: _trainjob(
        runtimePatches=[
            _patch(i, _job("node", containers=[{"name": "node", "env": [{"name": f"E{i}", "value": "1"}]}]))
            for i in range(n)
        ]
    ),
    "jobs of one runtime patch": lambda n: _trainjob(runtimePatches=[_patch(0, *_jobs(n))]),
    "containers of one runtime patch": lambda n: _trainjob(
        runtimePatches=[_patch(0, _job("node", containers=many(n)))]
    ),
    "claims of one runtime patch": lambda n: _trainjob(
        runtimePatches=[_patch(0, _job("node", resourceClaims=_claims(n)))]
    ),
    "tolerations of one runtime patch": lambda n: _trainjob(
        runtimePatches=[_patch(0, _job("node", tolerations=[{"key": f"k{i}"} for i in range(n)]))]
    ),
    "env of the trainer": lambda n: _trainjob(trainer={"env": named(n, "E", value="1")}),
    "claims of the trainer": lambda n: _trainjob(trainer={"resourceClaimsPerNode": _claims(n)}),
    "args of torchtune": lambda n: _trainjob(
        trainer={"command": ["tune", "run"], "args": [f"output_dir={i}" for i in range(n)]}
    ),
    "trainer's resources": lambda n: _trainjob(
        trainer={"resourcesPerNode": {"limits": {f"example.org/gpu{i}": 1 for i in range(n)}}}
    ),
    "jobs of a runtime": lambda n: _runtime(_node(), *_jobs(n)),
    "claims of a runtime": lambda n: _runtime(
        _job("node", {STEP: "trainer"}, resourceClaims=_claims(n), containers=[container("node")])
    ),
    "injection targets": lambda n: obj(
        TRAINER,
        "TrainingRuntime",
        {
            "mlPolicy": {
                "torch": {
                    "envInjection": {"targets": [{"jobName": f"j{i}", "containerNames": ["main"]} for i in range(n)]}
                }
            },
            "template": {"spec": {"replicatedJobs": [_node(), *_jobs(n)]}},
        },
    ),
    "replicated jobs": lambda n: _jobset(*_jobs(n)),
    "replicated jobs of one name": lambda n: _jobset(*[_job("j", containers=[container()])] * n),
    "dependencies": lambda n: _jobset(
        *(
            {**job, "dependsOn": [{"name": f"j{i - 1}", "status": "Ready"}]} if i else job
            for i, job in enumerate(_jobs(n))
        )
    ),
    "dependencies of one job": lambda n: _jobset(*_jobs(2), {**_jobs(1)[0], "dependsOn": named(n)}),
    "success targets": lambda n: _jobset(
        *_jobs(n), successPolicy={"operator": "All", "targetReplicatedJobs": [f"j{i}" for i in range(n)]}
    ),
    "failure rules": lambda n: _jobset(*_jobs(1), failurePolicy={"rules": named(n, "r", action="FailJobSet")}),
    "targets of failure rules": lambda n: _jobset(
        *_jobs(n), failurePolicy={"rules": [{"name": "r", "targetReplicatedJobs": [f"j{i}" for i in range(n)]}]}
    ),
    "volume claim templates": lambda n: _jobset(
        *_jobs(1), volumeClaimPolicies=[{"templates": [{"metadata": {"name": f"v{i}"}} for i in range(n)]}]
    ),
    "volume claim templates that are mounted": lambda n: _jobset(
        _job(
            "j",
            containers=[container(volumeMounts=[{"name": f"v{i}", "mountPath": f"/v/{i}"} for i in range(n)])],
        ),
        volumeClaimPolicies=[{"templates": [{"metadata": {"name": f"v{i}"}} for i in range(n)]}],
    ),
    "worker groups": lambda n: _ray(_groups(n)),
    "worker groups with GPUs": lambda n: _ray(_groups(n, **_GPU_POD)),
    "worker groups that are denied": lambda n: _ray(
        _groups(n, containers=[container(resources={"limits": {"nvidia.com/gpus": 1}})])
    ),
    "worker groups with claims": lambda n: _ray(_groups(n, resourceClaims=_claims(1))),
    "components": lambda n: _wrapper([_component(i) for i in range(n)]),
    "components with GPUs": lambda n: _wrapper([_component(i, **_GPU_POD) for i in range(n)]),
    "components that are TrainJobs": lambda n: _wrapper([{"template": _trainjob()} for _ in range(n)]),
    "pod sets of a component": lambda n: _wrapper(
        [{**_component(0), "podSets": [{"path": "template.spec.template", "replicas": 1}] * n}]
    ),
    "tasks": lambda n: obj(
        "batch.volcano.sh/v1alpha1",
        "Job",
        {"minAvailable": 1, "tasks": [{"name": f"t{i}", "replicas": 1, "template": template()} for i in range(n)]},
    ),
    "roles": lambda n: _pytorch(
        _launched("train.py"), **{f"R{i}": {"replicas": 1, "template": _launched("train.py")} for i in range(n)}
    ),
    "words of a launcher": lambda n: _pytorch(_launched(*(f"--x{i}=1" for i in range(n)))),
    "options of mpirun": lambda n: _pytorch(
        template(containers=[container("pytorch", command=["mpirun", *(["--mca", "a", "b"] * n)])])
    ),
    "words of a script": lambda n: _pytorch(
        template(containers=[container("pytorch", command=["bash", "-c", "\n".join(f"V{i}=1" for i in range(n))])])
    ),
    "env of a launcher": lambda n: _pytorch(_launched("train.py", env=named(n, "E", value="$(E1) x"))),
    "env that grows": lambda n: _pytorch(
        _launched("train.py", env=[{"name": f"E{i}", "value": f"$(E{i - 1})$(E{i - 1})"} for i in range(n)])
    ),
    "containers of a role": lambda n: _pytorch(template(containers=many(n))),
    "predictors": lambda n: obj(
        "serving.kserve.io/v1beta1",
        "InferenceService",
        {"predictor": {"model": {}}, "canary": [{"predictor": {"name": f"p{i}", **pod()["spec"]}} for i in range(n)]},
    ),
}


def _claim(**devices: Any) -> JSON:
    return obj("resource.k8s.io/v1", "ResourceClaim", {"devices": devices})


def _request(number: int, **fields: Any) -> JSON:
    return {"name": f"r{number}", "exactly": {"deviceClassName": "gpu.nvidia.com", **fields}}


_ONE = [_request(0)]
_CONFIG = {"apiVersion": "resource.nvidia.com/v1beta1", "kind": "GpuConfig"}


def _config(*names: str) -> JSON:
    return {"requests": [*names], "opaque": {"driver": "gpu.nvidia.com", "parameters": _CONFIG}}


_NUMBERS = count()


def _selectors(number: int) -> list[JSON]:
    return [{"cel": {"expression": f'device.driver == "d{next(_NUMBERS)}"'}} for _ in range(number)]


_DEVICES: Mapping[str, Make] = {
    "requests": lambda n: _claim(requests=[_request(i) for i in range(n)]),
    "requests of unknown classes": lambda n: _claim(
        requests=[{"name": f"r{i}", "exactly": {"deviceClassName": f"c{i}.example.org"}} for i in range(n)]
    ),
    "alternatives": lambda n: _claim(
        requests=[{"name": "r", "firstAvailable": named(n, deviceClassName="gpu.nvidia.com")}]
    ),
    "selectors": lambda n: _claim(requests=[_request(0, selectors=_selectors(n))]),
    "device tolerations": lambda n: _claim(
        requests=[_request(0, tolerations=[{"key": f"k{i}", "operator": "Exists"} for i in range(n)])]
    ),
    "constraints": lambda n: _claim(
        requests=_ONE, constraints=[{"requests": ["r0"], "matchAttribute": f"example.org/a{i}"} for i in range(n)]
    ),
    "requests of a constraint": lambda n: _claim(
        requests=[_request(i) for i in range(n)],
        constraints=[{"requests": [f"r{i}" for i in range(n)], "matchAttribute": "example.org/a"}],
    ),
    "unknown requests of a constraint": lambda n: _claim(
        requests=[_request(i) for i in range(n)],
        constraints=[{"requests": [f"unknown{i}" for i in range(n)], "matchAttribute": "example.org/a"}],
    ),
    "configurations": lambda n: _claim(requests=_ONE, config=[_config("r0") for i in range(n)]),
    "requests of a configuration": lambda n: _claim(
        requests=[_request(i) for i in range(n)], config=[_config(*(f"r{i}" for i in range(n)))]
    ),
    "requests of a template": lambda n: obj(
        "resource.k8s.io/v1",
        "ResourceClaimTemplate",
        {"spec": {"devices": {"requests": [_request(i) for i in range(n)]}}},
    ),
    "selectors of a class": lambda n: obj("resource.k8s.io/v1", "DeviceClass", {"selectors": _selectors(n)}),
    "configurations of a class": lambda n: obj("resource.k8s.io/v1", "DeviceClass", {"config": [_config()] * n}),
    "pod group templates": lambda n: obj(
        "scheduling.k8s.io/v1alpha2",
        "Workload",
        {"podGroupTemplates": [{"name": f"g{i}", "resourceClaims": _claims(1)} for i in range(n)]},
    ),
    "claims of a pod group": lambda n: obj("scheduling.k8s.io/v1alpha2", "PodGroup", {"resourceClaims": _claims(n)}),
}

LISTS: Mapping[str, Make] = {
    **{f"Pod: {name}": make for name, make in _PODS.items()},
    **{f"workload: {name}": make for name, make in _WORKLOADS.items()},
    **{f"devices: {name}": make for name, make in _DEVICES.items()},
}
