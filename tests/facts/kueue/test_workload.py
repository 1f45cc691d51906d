"""The amounts of the pods of a job, by Kueue's Configuration, LimitRanges and the kind of the object."""

from __future__ import annotations

from tests.facts.subjects import subject
from tests.rows import all_rows
from webhook.apimachinery.attributes import JSON
from webhook.facts.kueue.workload import build_workload

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
    (only,) = build_workload(subject(obj, *context, is_whole=True)).pod_sets
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
    "transformed and excluded resources": (
        job(2, containers=[container(requests={**MIG["resources"]["requests"], "ephemeral-storage": "1Gi"})]),
        (configured(REPLACED),),
        {"cpu": 3000, "credits": 4, "gpu-memory": 20, "slices": 2},
    ),
    "defaults of a LimitRange": (job(containers=[container()]), (LIMITS,), {"cpu": 250, "memory": 4 * GI}),
    "overhead of a RuntimeClass": (job(runtimeClassName="kata", containers=[container()]), (CLASS,), {"memory": GI}),
    "the least parallelism of a Job that may start smaller": (
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
    "a sidecar counts with the containers, an init container for itself": (
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


def sourced(source: str) -> JSON:
    mapping = f"{{name: gpu.memory, deviceClassNames: [gpu.example.com], sources: [{source}]}}"
    return configured(f"resources: {{deviceClassMappings: [{mapping}]}}")


def claim_template(count: int, **exactly: JSON) -> JSON:
    request = {"name": "g", "exactly": {"deviceClassName": "gpu.example.com", "count": count, **exactly}}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": "one", "namespace": "team"},
        "spec": {"spec": {"devices": {"requests": [request]}}},
    }


def resource_slice(name: str, *devices: JSON, generation: int = 1, slices: int = 1) -> JSON:
    pool = {"name": "node", "generation": generation, "resourceSliceCount": slices}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": name},
        "spec": {"driver": "gpu.example.com", "pool": pool, "devices": [*devices]},
    }


def device(name: str, memory: str, kind: str = "a100", **capacity: JSON) -> JSON:
    return {
        "name": name,
        "attributes": {"model": {"string": kind}},
        "consumesCounters": [{"counterSet": "card", "counters": {"memory": {"value": memory}}}],
        "capacity": {"gpu.example.com/memory": {"value": memory, **capacity}},
    }


DEVICE_CLASS = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "DeviceClass",
    "metadata": {"name": "gpu.example.com"},
    "spec": {"selectors": [{"cel": {"expression": "device.driver == 'gpu.example.com'"}}]},
}
CLAIMING = job(2, resourceClaims=[{"name": "a", "resourceClaimTemplateName": "one"}], containers=[container()])
COUNTER = "{counter: {name: memory, driver: gpu.example.com}}"
OF_MODEL = "{counter: {name: memory, driver: gpu.example.com, deviceSelector: {cel: {expression: \"device.attributes['gpu.example.com'].model == 'a100'\"}}}}"
CAPACITY = "{capacity: {name: gpu.example.com/memory, driver: gpu.example.com}}"
ASKS_5 = {"capacity": {"requests": {"gpu.example.com/memory": "5Gi"}}}
STEPS = {"requestPolicy": {"default": "2Gi", "validRange": {"min": "2Gi", "step": "2Gi", "max": "8Gi"}}}
VALUES = {"requestPolicy": {"default": "1Gi", "validValues": ["1Gi", "4Gi"]}}
SOURCES: dict[str, tuple[str, JSON, list[JSON], dict[str, int]]] = {
    "the largest counter of the devices, for each of them": (
        COUNTER,
        claim_template(2),
        [resource_slice("s", device("d1", "10Gi"), device("d2", "40Gi"))],
        {"gpu.memory": 160 * GI},
    ),
    "devices that the source selects": (
        OF_MODEL,
        claim_template(1),
        [resource_slice("s", device("d1", "10Gi"), device("d2", "40Gi", "h100"))],
        {"gpu.memory": 20 * GI},
    ),
    "devices that the request selects": (
        COUNTER,
        claim_template(1, selectors=[{"cel": {"expression": "device.attributes['gpu.example.com'].model == 'h100'"}}]),
        [resource_slice("s", device("d1", "80Gi"), device("d2", "40Gi", "h100"))],
        {"gpu.memory": 80 * GI},
    ),
    "the newest generation of a pool, once it is whole": (
        COUNTER,
        claim_template(1),
        [
            resource_slice("old", device("d1", "80Gi")),
            resource_slice("new", device("d1", "10Gi"), generation=2),
        ],
        {"gpu.memory": 20 * GI},
    ),
    "all of a capacity, if the claim requests none of it": (
        CAPACITY,
        claim_template(1),
        [resource_slice("s", device("d1", "40Gi"))],
        {"gpu.memory": 80 * GI},
    ),
    "the default of a capacity": (
        CAPACITY,
        claim_template(1),
        [resource_slice("s", device("d1", "40Gi", **STEPS))],
        {"gpu.memory": 4 * GI},
    ),
    "the request of the claim, rounded up to a step": (
        CAPACITY,
        claim_template(1, **ASKS_5),
        [resource_slice("s", device("d1", "40Gi", **STEPS))],
        {"gpu.memory": 12 * GI},
    ),
    "the request of the claim, from devices that can give it": (
        CAPACITY,
        claim_template(1, **ASKS_5),
        [resource_slice("s", device("d1", "40Gi", **VALUES), device("d2", "40Gi", **STEPS))],
        {"gpu.memory": 12 * GI},
    ),
}


@all_rows("source, template, slices, expected", SOURCES.values(), ids=list(SOURCES))
def test_claimed_devices_count_for_these_resources(
    source: str, template: JSON, slices: list[JSON], expected: dict[str, int]
) -> None:
    assert requested(CLAIMING, sourced(source), template, DEVICE_CLASS, *slices) == expected


UNCOUNTED = {
    "too few devices": (COUNTER, claim_template(2), device("d1", "10Gi"), "waiting", "devices-missing"),
    "no such counter": (
        COUNTER.replace("memory", "cores"),
        claim_template(1),
        device("d", "1"),
        "waiting",
        "devices-missing",
    ),
    "no such capacity": (
        CAPACITY.replace("memory", "cores"),
        claim_template(1),
        device("d", "1"),
        "waiting",
        "devices-missing",
    ),
    "more than any device gives to a request": (
        CAPACITY,
        claim_template(1, **ASKS_5),
        device("d1", "40Gi", **VALUES),
        "refused",
        "claim-capacity",
    ),
}


@all_rows("source, template, held, kind, rule", UNCOUNTED.values(), ids=list(UNCOUNTED))
def test_devices_are_not_counted(source: str, template: JSON, held: JSON, kind: str, rule: str) -> None:
    context = sourced(source), template, DEVICE_CLASS, resource_slice("s", held)
    (only,) = build_workload(subject(CLAIMING, *context, is_whole=True)).pod_sets
    codes = [problem.code for problem in getattr(only.devices, kind)]
    assert [code.rpartition("/")[2] for code in codes] == [rule]


UNKNOWN = {
    "not all ResourceSlices": ([DEVICE_CLASS], "ResourceSlice", False),
    "no class": ([resource_slice("s", device("d1", "10Gi"))], "DeviceClass", True),
    "a selector that fails": (
        [
            {**DEVICE_CLASS, "spec": {"selectors": [{"cel": {"expression": "device.attributes['x'].y == 1"}}]}},
            resource_slice("s", device("d1", "10Gi")),
        ],
        "ResourceSlice",
        True,
    ),
}


@all_rows("context, kind, is_whole", UNKNOWN.values(), ids=list(UNKNOWN))
def test_unknown_resources_of_claimed_devices_are_reported_as_missing(
    context: list[JSON], kind: str, is_whole: bool
) -> None:
    made = build_workload(subject(CLAIMING, sourced(COUNTER), claim_template(1), *context, is_whole=is_whole))
    assert [each.kind for each in made.missing] == [kind]
