"""The fact `gpu`: the devices that containers request as extended resources. portable.py has the fact `portableGpu`."""

from __future__ import annotations

from typing import Final

from webhook.cel.types import BOOL, DYN, INT, STRING, list_of, map_of
from webhook.facts.fact import FactResult, declare_structure
from webhook.facts.gpu.portable import PORTABLE_GPU
from webhook.facts.gpu.resources import compute_gpu_fact
from webhook.facts.pods.pod_sets import pod_sets
from webhook.facts.subject import Fact, Subject
from webhook.facts.train_job_pods.types import RUNTIMES
from webhook.workloads.podsets import partial_pod_templates
from webhook.workloads.resource_fields import resource_fields

RESOURCE: Final = declare_structure(
    "GpuResource",
    name=(STRING, "name of the resource: `nvidia.com/gpu`"),
    path=(STRING, "the path of the limit, or of the request if there is no limit"),
    vendor=(STRING, "the vendor of the device: `nvidia`"),
    kind=(
        STRING,
        (
            '`device`, `shared`, `slice`, `amount` (memory or cores), `monitor`, `portable`, `class`; `""` for an '
            "unknown name that is similar to a known name"
        ),
    ),
    gpu=(BOOL, "whether the device is a GPU or a part of a GPU"),
    limit=(DYN, "limit as text; null without a limit"),
    request=(DYN, "request as text; null without a request"),
    count=(INT, "the amount; 0 if it is not a whole number"),
    whole=(BOOL, "whether the amount is a whole number of at least 0"),
    equal=(BOOL, "whether limit and request are equal, or only one is set"),
    nearest=(STRING, "the known resource that the user probably meant, if the name is unknown"),
)
CONTAINER: Final = declare_structure(
    "GpuContainer",
    podSet=(STRING, "name of the pod set that the container belongs to"),
    path=(STRING, "the path of the container"),
    name=(STRING, "name of the container"),
    init=(BOOL, "whether the container is an init container"),
    restarts=(BOOL, "whether the container is a sidecar: an init container that keeps running"),
    resources=(list_of(RESOURCE.type), "devices of the container, and names that are similar to names of devices"),
    vendors=(map_of(STRING, INT), "number of devices that the container requests, by vendor"),
    devices=(INT, "number of whole, shared and sliced devices; memory and cores do not count"),
    gpuImage=(BOOL, "whether the image is known to need GPUs"),
    visibleDevices=(STRING, "value of NVIDIA_VISIBLE_DEVICES"),
    claims=(INT, "number of device claims that the container uses"),
)
POD_SET: Final = declare_structure(
    "GpuPodSet",
    name=(STRING, "name of the pod set"),
    path=(STRING, "the path of the pod template"),
    pods=(DYN, "number of pods; null if not known"),
    devices=(INT, "number of devices of one pod as the scheduler counts, with init containers and sidecars"),
    total=(DYN, "number of devices of all pods of the pod set; null if not known"),
    vendors=(map_of(STRING, INT), "number of devices of one pod, by vendor"),
    kinds=(list_of(STRING), "values of `kind` in the resources of the containers"),
    runtimeClass=(STRING, "runtimeClassName of the pods"),
    gpuRuntime=(BOOL, "whether the runtime class is known to give access to GPUs"),
)
GPU: Final = declare_structure(
    "Gpu",
    containers=(
        list_of(CONTAINER.type),
        "containers of all pod sets, and containers with resources outside a template",
    ),
    patches=(list_of(CONTAINER.type), "containers of partial templates, such as shardPatches and runtimePatches"),
    podSets=(list_of(POD_SET.type), "devices of each pod set"),
    vendors=(map_of(STRING, INT), "number of devices of all pods, by vendor"),
    devices=(DYN, "number of devices of all pods; null if not known"),
)


def _compute_gpu_fact(subject: Subject) -> FactResult:
    listed = subject.once(pod_sets)
    parts = listed.all.of(partial_pod_templates(subject.object, subject.table, subject.deadline))
    fields = listed.all.of(tuple(resource_fields(subject.object, subject.table, subject.deadline)))
    return listed.build_fact_result(
        compute_gpu_fact(listed.all, parts, fields, subject.reading_context), "patches", missing={}
    )


FACTS: Final = (
    Fact(
        name="gpu",
        about=(
            "Devices that the containers of an object request as extended resources: for each pod, as the scheduler "
            "counts, and for all pods of the object. The gpu fields of a SparkApplication and the resources of "
            "a KServe component such as `model` count too. Device claims are in the fact `dra`."
        ),
        examples=(
            "gpu.devices == null || gpu.devices <= 16",
            "gpu.vendors.?nvidia.orValue(0) > 0",
            "gpu.containers.all(c, c.resources.all(r, r.whole && r.limit != null))",
            'gpu.podSets.exists(p, "slice" in p.kinds)',
        ),
        type=GPU.type,
        structures=(GPU, CONTAINER, RESOURCE, POD_SET),
        compute=_compute_gpu_fact,
        lookups=RUNTIMES,
        expanded={
            "devices": "the devices of one pod of this template",
            "vendors": "the devices of one pod of this template, by vendor",
        },
    ),
    PORTABLE_GPU,
)
