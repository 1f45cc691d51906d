"""What the pods of a job count for, as Kueue's Configuration, LimitRanges and the kind of the object have it."""

from __future__ import annotations

from typing import Any

from tests.facts.subjects import subject
from tests.rows import all_rows
from webhook.attributes import JSON
from webhook.facts.kueue.workload import workload

QUEUE = {"kueue.x-k8s.io/queue-name": "main"}


def configured(text: str) -> JSON:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "kueue-manager-config", "namespace": "kueue-system"},
        "data": {"controller_manager_config.yaml": text},
    }


def job(count: int = 1, annotations: JSON = None, **pod: JSON) -> JSON:
    metadata = {"name": "train", "namespace": "team", "labels": QUEUE, "annotations": annotations or {}}
    spec = {"parallelism": count, "completions": count, "template": {"spec": pod}}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": spec}


def container(name: str = "main", **resources: JSON) -> JSON:
    return {"name": name, "image": "train", "resources": resources}


def requested(obj: JSON, *context: JSON) -> dict[str, int]:
    (only,) = workload(subject(obj, *context)).pod_sets
    return dict(only.requests)


MIG = container(requests={"nvidia.com/mig-1g.5gb": 2, "cpu": "1500m"}, limits={"nvidia.com/mig-1g.5gb": 2})
REPLACED = """
resources:
  excludeResourcePrefixes: [ephemeral-]
  transformations:
  - {input: nvidia.com/mig-1g.5gb, strategy: Replace, outputs: {gpu-memory: 5, slices: "0.5"}}
  - {input: cpu, outputs: {credits: 1}}
"""
LIMITS = {
    "apiVersion": "v1",
    "kind": "LimitRange",
    "metadata": {"name": "l", "namespace": "team"},
    "spec": {"limits": [{"type": "Container", "max": {"memory": "4Gi"}, "defaultRequest": {"cpu": "250m"}}]},
}
CLASS = {
    "apiVersion": "node.k8s.io/v1",
    "kind": "RuntimeClass",
    "metadata": {"name": "kata"},
    "overhead": {"podFixed": {"memory": "1Gi"}},
}
GI = 1 << 30
ROWS: dict[str, tuple[JSON, tuple[JSON, ...], dict[str, int]]] = {
    "cpu in thousandths, the rest in whole units": (
        job(3, containers=[MIG]),
        (),
        {"cpu": 4500, "nvidia.com/mig-1g.5gb": 6},
    ),
    "transformations and what is left out": (
        job(2, containers=[container(requests={**MIG["resources"]["requests"], "ephemeral-storage": "1Gi"})]),
        (configured(REPLACED),),
        {"cpu": 3000, "credits": 4, "gpu-memory": 20, "slices": 2},
    ),
    "defaults of a LimitRange": (job(containers=[container()]), (LIMITS,), {"cpu": 250, "memory": 4 * GI}),
    "overhead of a RuntimeClass": (job(runtimeClassName="kata", containers=[container()]), (CLASS,), {"memory": GI}),
    "the least of a Job that may start smaller": (
        job(10, {"kueue.x-k8s.io/job-min-parallelism": "4"}, containers=[container(requests={"cpu": 1})]),
        (),
        {"cpu": 4000},
    ),
    "one pod of a Deployment": (
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": "serve", "namespace": "team"},
            "spec": {"replicas": 5, "template": {"spec": {"containers": [container(requests={"cpu": 1})]}}},
        },
        (),
        {"cpu": 1000},
    ),
    "a sidecar counts with the containers, an init container alone": (
        job(
            containers=[container(requests={"cpu": 1})],
            initContainers=[
                {**container("side", requests={"cpu": 2}), "restartPolicy": "Always"},
                container("init", requests={"cpu": 2}),
            ],
        ),
        (),
        {"cpu": 4000},
    ),
}


@all_rows("obj, context, expected", ROWS.values(), ids=list(ROWS))
def test_pods_count_for(obj: JSON, context: tuple[JSON, ...], expected: dict[str, int]) -> None:
    assert requested(obj, *context) == expected


def test_devices_whose_parts_are_counted_are_not_known() -> None:
    mapping = {"name": "memory", "deviceClassNames": ["gpu.example.com"], "sources": [{"counter": {"name": "memory"}}]}
    template: dict[str, Any] = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": "one", "namespace": "team"},
        "spec": {"spec": {"devices": {"requests": [{"name": "g", "exactly": {"deviceClassName": "gpu.example.com"}}]}}},
    }
    claiming = job(resourceClaims=[{"name": "a", "resourceClaimTemplateName": "one"}], containers=[container()])
    made = workload(subject(claiming, configured(f"resources: {{deviceClassMappings: [{mapping}]}}"), template))
    assert [each.kind for each in made.missing] == ["ResourceSlice"]
