"""Different training jobs of Kubeflow, JobSet and Volcano, and the objects that they refer to."""

from __future__ import annotations

import json
from typing import Any, Final

from webhook.apimachinery.attributes import JSON

TRAINJOB_SIZE: Final = 60_000
JOBSET_SIZE: Final = 50_000

CLASS = {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": "gpu.nvidia.com"}, "spec": {}}


def claim_template(namespace: str, name: str, count: int) -> JSON:
    request = {"name": "gpu", "exactly": {"deviceClassName": "gpu.nvidia.com", "count": count}}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"spec": {"devices": {"requests": [request]}}},
    }


def runtime() -> JSON:
    """Return a torch runtime of three steps, with a claim for eight GPUs for its node."""
    label = "trainer.kubeflow.org/trainjob-ancestor-step"
    steps = (
        ("dataset-initializer", "dataset-initializer"),
        ("model-initializer", "model-initializer"),
        ("node", "trainer"),
    )
    jobs = []
    for name, step in steps:
        env = [{"name": f"RUNTIME_{i}", "value": f"value {i * 7919}"} for i in range(20)]
        spec: dict[str, Any] = {"containers": [{"name": name, "image": f"registry.example/{name}:1", "env": env}]}
        if name == "node":
            spec["containers"][0]["resources"] = {"claims": [{"name": "gpus"}], "limits": {"cpu": "32"}}
            spec["resourceClaims"] = [{"name": "gpus", "resourceClaimTemplateName": "eight-gpus"}]
        template = {"metadata": {"labels": {label: step}}, "spec": {"template": {"spec": spec}}}
        jobs.append({"name": name, "template": template})
    return {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "ClusterTrainingRuntime",
        "metadata": {"name": "torch-dra", "labels": {"trainer.kubeflow.org/framework": "torch"}},
        "spec": {"mlPolicy": {"numNodes": 1, "torch": {}}, "template": {"spec": {"replicatedJobs": jobs}}},
    }


def trainjob(number: int = 0, namespace: str = "team") -> JSON:
    """Return a TrainJob of 60 KB that breaks no rule. Like Kubeflow's SDK, it has its program in the command.

    It has as many variables as a trainer may have, and two managers patch its node.
    """
    env = [{"name": f"VARIABLE_{i}", "value": f"some value of {number + i * 7919}"} for i in range(128)]
    patches = []
    for manager in ("kueue.x-k8s.io/manager", "example.org/site"):
        pod = {
            "nodeSelector": {f"example.org/{manager[:5]}": "gpu"},
            "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists"}],
        }
        job = {"name": "node", "template": {"spec": {"template": {"spec": pod}}}}
        patches.append({"manager": manager, "trainingRuntimeSpec": {"template": {"spec": {"replicatedJobs": [job]}}}})
    obj: JSON = {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "TrainJob",
        "metadata": {"name": f"llm-{number}", "namespace": namespace, "labels": {"team": namespace}},
        "spec": {
            "runtimeRef": {"apiGroup": "trainer.kubeflow.org", "kind": "ClusterTrainingRuntime", "name": "torch-dra"},
            "trainer": {"image": f"registry.example/llm:{number}", "numNodes": 4, "numProcPerNode": 8, "env": env},
            "runtimePatches": patches,
        },
    }
    line = "    layers.append(build(size=1024, heads=16, dropout=0.1))\n"
    program = f"# run {number}\ndef train():\n{line * ((TRAINJOB_SIZE - len(json.dumps(obj))) // (len(json.dumps(line)) - 2))}"
    obj["spec"]["trainer"]["command"] = ["bash", "-c", f"cat > train.py <<'EOF'\n{program}EOF\ntorchrun train.py\n"]
    return obj


def jobset(number: int, namespace: str) -> JSON:
    """Return a JobSet of 50 KB with a driver and workers on GPUs. Most bytes are environment variables."""
    jobs = [_replicated_job("driver", 1, number, gpus=0), _replicated_job("workers", 4, number, gpus=8)]
    return {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": {"name": f"train-{number}", "namespace": namespace, "labels": {"team": namespace}},
        "spec": {
            "network": {"enableDNSHostnames": True},
            "successPolicy": {"operator": "All", "targetReplicatedJobs": ["driver"]},
            "replicatedJobs": jobs,
        },
    }


def _replicated_job(name: str, parallelism: int, number: int, *, gpus: int) -> JSON:
    devices = {"nvidia.com/gpu": str(gpus)} if gpus else {}
    variables = JOBSET_SIZE // 2 // 100
    container = {
        "name": "main",
        "image": f"registry.example/{name}:{number}",
        "command": ["python", "train.py", f"--run={number}"],
        "env": [{"name": f"SETTING_{i}", "value": f"{number + i:064x}"} for i in range(variables)],
        "resources": {"limits": {"cpu": "8", "memory": "64Gi", **devices}},
    }
    pod = {"restartPolicy": "Never", "containers": [container]}
    spec = {"parallelism": parallelism, "completions": parallelism, "backoffLimit": 0, "template": {"spec": pod}}
    return {"name": name, "replicas": 1, "template": {"spec": spec}}


def volcano_job(number: int, namespace: str) -> JSON:
    """Return a Volcano Job with a master and workers that start together."""
    tasks = [_task("master", 1, number, gpus=0), _task("worker", 4, number, gpus=4)]
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": f"horovod-{number}", "namespace": namespace, "labels": {"team": namespace}},
        "spec": {
            "minAvailable": 5,
            "schedulerName": "volcano",
            "queue": "default",
            "plugins": {"env": [], "svc": []},
            "policies": [{"event": "PodEvicted", "action": "RestartJob"}],
            "tasks": tasks,
        },
    }


def _task(name: str, replicas: int, number: int, *, gpus: int) -> JSON:
    devices = {"nvidia.com/gpu": str(gpus)} if gpus else {}
    container = {
        "name": name,
        "image": f"registry.example/horovod:{number}",
        "command": ["python", f"{name}.py", f"--run={number}"],
        "env": [{"name": f"SETTING_{i}", "value": f"{number + i:064x}"} for i in range(40)],
        "resources": {"limits": {"cpu": "4", "memory": "32Gi", **devices}},
    }
    pod = {"restartPolicy": "OnFailure", "containers": [container]}
    return {"name": name, "replicas": replicas, "template": {"spec": pod}}
