"""What is kept of the pods that a runtime makes changes no answer: TrainJobs of all kinds on a few runtimes, in any order."""

from __future__ import annotations

from random import Random
from typing import Any, Final

from hypothesis import given
from hypothesis import strategies as st

from tests.evaluation.test_warm_shipped import again
from tests.evaluation.warm import Step, assert_same, examples, forgetful
from tests.literals import request, shipped_policies
from webhook.attributes import JSON
from webhook.cluster.assumed_namespaces import AssumedNamespaces
from webhook.cluster.files import FilesCluster

STEPS: Final = {
    "dataset-initializer": "dataset-initializer",
    "model-initializer": "model-initializer",
    "node": "trainer",
}
INJECTED: Final = {"jobName": "dataset-initializer", "containerNames": ["dataset-initializer"]}
ML_POLICIES: Final[tuple[JSON, ...]] = (
    {"numNodes": 1, "torch": {}},
    {"numNodes": 2, "torch": {"envInjection": {"targets": [INJECTED]}}},
    {"numNodes": 1, "mpi": {"runLauncherAsNode": True}},
    {"numNodes": 1, "flux": {}},
    {},
    None,
)
GROUPS: Final[tuple[JSON, ...]] = (None, None, {"coscheduling": {}}, {"volcano": {}})
POD_SPECS: Final[tuple[JSON, ...]] = (
    {},
    {},
    {"nodeSelector": {"a/b/c": "x"}},
    {"tolerations": [{"operator": "Sometimes"}]},
    {"volumes": [{"name": "data", "emptyDir": {}}, {"name": "data", "emptyDir": {}}]},
    {"resourceClaims": [{"name": "gpus", "resourceClaimTemplateName": "eight-gpus"}]},
    {"serviceAccountName": "No name"},
)
CONTAINERS: Final[tuple[JSON, ...]] = (
    {},
    {},
    {"env": [{"name": "A", "value": "x"}]},
    {"resources": {"limits": {"cpu": "1"}, "requests": {"cpu": "2"}}},
    {"resources": {"limits": {"deviceclass.resource.kubernetes.io/gpu.nvidia.com": "1"}}},
    {"resources": {"claims": [{"name": "gpus"}]}},
    {"ports": [{"containerPort": 0}]},
    {"volumeMounts": [{"name": "initializer", "mountPath": "/workspace"}]},
)
INSTALLED: Final = ("2.0", "2.1", "2.2", "2.3", "2.4")
TEMPLATE: Final = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "ResourceClaimTemplate",
    "metadata": {"name": "eight-gpus", "namespace": "team"},
    "spec": {"spec": {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu.nvidia.com"}}]}}},
}
CLASS: Final = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "DeviceClass",
    "metadata": {"name": "gpu.nvidia.com"},
    "spec": {},
}
SYSTEM: Final = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kube-system"}}


def runtime(name: str, chosen: Random) -> JSON:
    jobs = []
    for job, step in STEPS.items():
        labels = {"trainer.kubeflow.org/trainjob-ancestor-step": step} if chosen.random() < 0.9 else {"a": "-"}
        container = {"name": job, "image": "x", **chosen.choice(CONTAINERS)}
        pod = {"metadata": {"labels": {"a": chosen.choice(("b", "b", "-"))}}, "spec": {"containers": [container]}}
        pod["spec"] |= chosen.choice(POD_SPECS)
        spec: dict[str, Any] = {"template": pod, **chosen.choice(({}, {}, {"parallelism": 2}))}
        replicas = chosen.choice(({}, {}, {"replicas": 1}, {"replicas": 2}))
        jobs.append({"name": job, **replicas, "template": {"metadata": {"labels": labels}, "spec": spec}})
    policy, group = chosen.choice(ML_POLICIES), chosen.choice(GROUPS)
    spec = {"template": {"spec": {"replicatedJobs": jobs}}}
    spec |= ({} if policy is None else {"mlPolicy": policy}) | ({} if group is None else {"podGroupPolicy": group})
    metadata = {"name": name}
    return {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "ClusterTrainingRuntime",
        "metadata": metadata,
        "spec": spec,
    }


def patch(chosen: Random) -> JSON:
    pod = {**chosen.choice(POD_SPECS), "containers": [{"name": "node", **chosen.choice(CONTAINERS)}]}
    job = {"name": chosen.choice((*STEPS, "another")), "template": {"spec": {"template": {"spec": pod}}}}
    spec = {"template": {"spec": {"replicatedJobs": [job]}}}
    return {"manager": "example.org/site", "trainingRuntimeSpec": spec}


def trainer(chosen: Random) -> JSON:
    fields: tuple[JSON, ...] = (
        {"numNodes": chosen.randint(1, 3)},
        {"numProcPerNode": 2},
        {"env": [{"name": "A", "value": "x"}]},
        {"command": ["torchrun", "train.py"]},
        {"resourcesPerNode": {"limits": {"nvidia.com/gpu": "1"}}},
    )
    return {name: value for each in fields if chosen.random() < 0.4 for name, value in each.items()}


def step(chosen: Random, views: list[AssumedNamespaces]) -> Step:
    """A TrainJob that is created, or changed while it is suspended."""
    spec: dict[str, JSON] = {"runtimeRef": {"name": chosen.choice("abc")}}
    if chosen.random() < 0.7:
        spec["trainer"] = trainer(chosen)
    if chosen.random() < 0.3:
        spec["initializer"] = {"dataset": {"storageUri": "hf://x"}}
    if chosen.random() < 0.5:
        spec["runtimePatches"] = [patch(chosen)]
    metadata = {"name": chosen.choice(("job", "job-2")), "namespace": "team"}
    job = {"apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainJob", "metadata": metadata, "spec": spec}
    old = {**job, "spec": {**spec, "suspend": True}} if chosen.random() < 0.2 else None
    return Step(request(job, "UPDATE" if old else "CREATE", old), chosen.choice(views))


def view(runtimes: list[JSON], chosen: Random) -> AssumedNamespaces:
    """A cluster with some runtimes, which another one has, too."""
    metadata, data = {"name": "trainer", "namespace": "claimgate-system"}, {"trainer": chosen.choice(INSTALLED)}
    installed = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}
    others = [each for each in (TEMPLATE, CLASS, SYSTEM) if chosen.random() < 0.5]
    return AssumedNamespaces(FilesCluster([*runtimes, installed, *others]))


@given(st.integers(0, 2**32))
@examples(4)
def test_train_jobs_are_answered_as_if_each_were_the_first(seed):
    chosen = Random(seed)
    runtimes = [runtime(name, chosen) for name in "ab"]
    views = [view(runtimes, chosen) for _ in range(3)]
    assert_same(forgetful(shipped_policies()), again(), [step(chosen, views) for _ in range(20)])
