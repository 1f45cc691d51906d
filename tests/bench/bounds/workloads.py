"""Workloads of other kinds with a list of n items: each key names a list that a user can lengthen."""

from __future__ import annotations

from tests.bench.bounds.reviews import JSON, Maker, container, gpus, pod, template


def _object(api_version: str, kind: str, spec: JSON) -> JSON:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": "w"}, "spec": spec}


_CLAIM = [{"name": "gpu", "resourceClaimTemplateName": "template-1"}]


def _gpu_template() -> JSON:
    return template({"containers": [container("main", resources=gpus("1"))]})


def shards(n: int, containers: int) -> JSON:
    """Return a BatchSandbox with this number of containers in its template, and n shards that each patch one
    container.
    """
    main = [container(f"c-{i}", resources=gpus("1")) for i in range(containers)]
    patches = [
        {"spec": {"containers": [{"name": f"c-{i % containers}", "env": [{"name": "A", "value": "b"}]}]}}
        for i in range(n)
    ]
    spec = {"replicas": n, "template": template({"containers": main}), "shardPatches": patches}
    return _object("sandbox.opensandbox.io/v1alpha1", "BatchSandbox", spec)


def full_shards(n: int, containers: int = 100) -> JSON:
    """Return a BatchSandbox with this number of containers in its template, and n shards that each patch all
    containers.
    """
    main = [container(f"c-{i}") for i in range(containers)]
    patch = {"spec": {"containers": [{"name": f"c-{i}", "resources": gpus("1")} for i in range(containers)]}}
    spec = {"replicas": n, "template": template({"containers": main}), "shardPatches": [patch] * n}
    return _object("sandbox.opensandbox.io/v1alpha1", "BatchSandbox", spec)


def _ray(n: int) -> JSON:
    groups = [
        {"groupName": f"g-{i}", "replicas": 1, "rayStartParams": {"num-gpus": "1"}, "template": _gpu_template()}
        for i in range(n)
    ]
    return _object("ray.io/v1", "RayCluster", {"headGroupSpec": {"template": template()}, "workerGroupSpecs": groups})


def _wrapper(components: list[JSON]) -> JSON:
    return _object("workload.codeflare.dev/v1beta2", "AppWrapper", {"components": components})


def _pod_sets(n: int) -> JSON:
    jobs = [{"name": f"j-{i}", "template": {"spec": {"template": _gpu_template()}}} for i in range(n)]
    inner = _object("jobset.x-k8s.io/v1alpha2", "JobSet", {"replicatedJobs": jobs})
    declared = [{"path": f"template.spec.replicatedJobs[{i}].template.spec.template", "replicas": 1} for i in range(n)]
    return _wrapper([{"template": inner, "podSets": declared}])


def _jobset(n: int, *, chained: bool = False) -> JSON:
    jobs = [{"name": f"j-{i}", "replicas": 1, "template": {"spec": {"template": _gpu_template()}}} for i in range(n)]
    if chained:
        for i in range(1, n):
            jobs[i]["dependsOn"] = [{"name": f"j-{i - 1}", "status": "Complete"}]
    return _object("jobset.x-k8s.io/v1alpha2", "JobSet", {"replicatedJobs": jobs})


def _annotated_jobset(n: int) -> JSON:
    """Return a JobSet with n annotations and n jobs. For each job, KAI looks for an annotation of the JobSet."""
    made = _jobset(n)
    for job in made["spec"]["replicatedJobs"]:
        job["template"]["spec"]["template"]["spec"]["schedulerName"] = "kai-scheduler"
    annotations = {f"example.org/a-{i}": "b" for i in range(n)}
    return {**made, "metadata": {**made["metadata"], "annotations": annotations}}


def _trainjob(**spec: JSON) -> JSON:
    spec = {"runtimeRef": {"name": "torch-distributed-a100"}, **spec}
    return _object("trainer.kubeflow.org/v1alpha1", "TrainJob", spec)


def _patch(i: int, jobs: int = 1) -> JSON:
    inner = {"spec": {"template": {"spec": {"nodeSelector": {"a": f"b-{i}"}, "tolerations": [{"operator": "Exists"}]}}}}
    named = [{"name": "node" if jobs == 1 else f"node-{j}", "template": inner} for j in range(jobs)]
    return {"manager": f"example.org/m-{i}", "trainingRuntimeSpec": {"template": {"spec": {"replicatedJobs": named}}}}


def _env_patch(n: int) -> JSON:
    containers = [{"name": "node", "env": [{"name": f"=E_{i}", "value": "1"} for i in range(n)]}]
    jobs = [{"name": "node", "template": {"spec": {"template": {"spec": {"containers": containers}}}}}]
    return {"manager": "example.org/m", "trainingRuntimeSpec": {"template": {"spec": {"replicatedJobs": jobs}}}}


def _variable_patch(i: int) -> JSON:
    """Return a patch that adds a variable after the first variable."""
    containers = [{"name": "node", "env": [{"name": "FIRST", "value": "1"}, {"name": f"E_{i}", "value": "1"}]}]
    jobs = [{"name": "node", "template": {"spec": {"template": {"spec": {"containers": containers}}}}}]
    spec = {"template": {"spec": {"replicatedJobs": jobs}}}
    return {"manager": f"example.org/m-{i}", "trainingRuntimeSpec": spec}


def _override(i: int, **spec: JSON) -> JSON:
    return {"targetJobs": [{"name": "node"}], "spec": {"nodeSelector": {"a": f"b-{i}"}, **spec}}


def _runtime(n: int) -> JSON:
    jobs = _jobset(n)["spec"]["replicatedJobs"]
    made = _object(
        "trainer.kubeflow.org/v1alpha1", "ClusterTrainingRuntime", {"template": {"spec": {"replicatedJobs": jobs}}}
    )
    return {**made, "metadata": {**made["metadata"], "labels": {"trainer.kubeflow.org/framework": "torch"}}}


WORKLOAD_LISTS: dict[str, Maker] = {
    "shards": lambda n: shards(n, 10),
    "shards of 100 containers": full_shards,
    "containers of a shard": lambda n: full_shards(4, n),
    "worker groups": _ray,
    "components": lambda n: _wrapper([{"template": pod({"resourceClaims": _CLAIM})} for _ in range(n)]),
    "components, TrainJobs": lambda n: _wrapper([{"template": _trainjob()} for _ in range(n)]),
    "declared pod sets": _pod_sets,
    "replicated jobs": _jobset,
    "annotations x replicated jobs": _annotated_jobset,
    "replicated jobs, chained": lambda n: _jobset(n, chained=True),
    "runtime patches": lambda n: _trainjob(runtimePatches=[_patch(i) for i in range(n)]),
    "runtime patches, a variable each": lambda n: _trainjob(runtimePatches=[_variable_patch(i) for i in range(n)]),
    "env of a runtime patch, wrong names": lambda n: _trainjob(runtimePatches=[_env_patch(n)]),
    "jobs of a runtime patch": lambda n: _trainjob(runtimePatches=[_patch(0, n)]),
    "template overrides": lambda n: _trainjob(podTemplateOverrides=[_override(i) for i in range(n)]),
    "spec overrides": lambda n: _trainjob(podSpecOverrides=[_override(i) for i in range(n)]),
    "env of a trainer": lambda n: _trainjob(trainer={"env": [{"name": f"E_{i}", "value": f"{i}"} for i in range(n)]}),
    "env of a trainer, wrong names": lambda n: _trainjob(
        trainer={"env": [{"name": f"=E_{i}", "value": f"{i}"} for i in range(n)]}
    ),
    "claims of a trainer": lambda n: _trainjob(
        trainer={
            "resourceClaimsPerNode": [{"name": f"c-{i}", "resourceClaimTemplateName": "template-1"} for i in range(n)]
        }
    ),
    "arguments of a trainer": lambda n: _trainjob(
        trainer={"command": ["torchrun"], "args": [f"--nproc_per_node={i}" for i in range(n)]}
    ),
    "jobs of a runtime": _runtime,
    "replica specs": lambda n: _object(
        "kubeflow.org/v1",
        "PyTorchJob",
        {"pytorchReplicaSpecs": {f"Worker{i}": {"replicas": 1, "template": _gpu_template()} for i in range(n)}},
    ),
    "tasks": lambda n: _object(
        "batch.volcano.sh/v1alpha1",
        "Job",
        {"tasks": [{"name": f"t-{i}", "replicas": 1, "template": _gpu_template()} for i in range(n)]},
    ),
    "roles": lambda n: _object(
        "workloads.x-k8s.io/v1alpha1",
        "RoleBasedGroup",
        {"roles": [{"name": f"r-{i}", "replicas": 1, "template": _gpu_template()} for i in range(n)]},
    ),
}


def options_of_read(length: int) -> JSON:
    """Return a Volcano Job with a script of this length that reads a variable. Its last command has only options of
    `read`.
    """
    script = "echo $X; read " + "-read " * (length // 6)
    pods = template({"containers": [{**container("main"), "command": ["bash", "-c", script]}]})
    tasks = [{"name": "t", "replicas": 1, "template": pods}]
    return _object("batch.volcano.sh/v1alpha1", "Job", {"tasks": tasks})
