"""Finds GPU requests that Kubernetes accepts and that are probably not intended.

A container without a GPU request may still see NVIDIA GPUs, but no AMD or Intel GPUs. Pods on Windows get no GPU,
because no vendor has a device plugin for Windows. The field os, a selector of the label kubernetes.io/os or a
RuntimeClass binds a pod to Windows.

Source: NVIDIA/k8s-device-plugin README; https://kubernetes.io/docs/concepts/windows/user-guide/.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from webhook.apimachinery.images import ImageName, parse_image_name
from webhook.apimachinery.paths import FieldPath
from webhook.cluster.interest import interest_in_fields
from webhook.facts.command_lines.command import MPI, PYTHON, cached_launch_of_container
from webhook.facts.gpu import devices
from webhook.facts.gpu.devices import COUNTED, REMOVED_RESOURCE
from webhook.facts.gpu.resources import (
    DeviceContainer,
    RequestedDevice,
    has_device_requests,
    is_nothing,
    read_device_containers,
    value_of_visible_devices,
)
from webhook.facts.gpu.visible_devices import GPU_REQUESTS, check_hidden_gpus
from webhook.facts.pods.amounts import parse_resource_name
from webhook.facts.subject import Check, Subject
from webhook.facts.view import ClusterView
from webhook.rules.problem import Problem
from webhook.typed.cluster_objects import RuntimeClass
from webhook.typed.objects import ConfigMap
from webhook.typed.pod_parts import DEVICES, RUNTIME_CLASS, VISIBLE_DEVICES
from webhook.typed.pods import Container, Pod, PodSpec, SelectorRequirement, Variable

EVERY_GPU_VISIBLE: Final = GPU_REQUESTS.rule(
    "gpu-requests/every-gpu-visible",
    title="The container sees all GPUs of the node but requests none",
    why="The container runtime gives the container every GPU of the node, including GPUs of other pods.",
    fails="silent",
    issues=("https://github.com/IBM/FfDL/issues/92",),
)
GPU_IMAGE: Final = GPU_REQUESTS.rule(
    "gpu-requests/gpu-image",
    title="The image or runtime class is for GPUs but the container requests none",
    why=(
        "The container runtime shows the container every GPU of the node. This may be intended. Downloads, conversions "
        "and clients use GPU images without a GPU. Servers on one machine may share a GPU by the runtime class."
    ),
    level="advice",
    fails="silent",
)
SLICES_WITH_DEVICES: Final = GPU_REQUESTS.rule(
    "gpu-requests/slices-with-devices",
    title="The container requests MIG slices and whole GPUs",
    why="Before driver 570 CUDA uses one MIG slice and no other device, so the whole GPU stays idle.",
    source="https://docs.nvidia.com/datacenter/tesla/mig-user-guide/",
    fails="silent",
)
INIT_CONTAINER_KEEPS: Final = GPU_REQUESTS.rule(
    "gpu-requests/init-container-keeps",
    title="The init container requests more GPUs than the containers need",
    why="A pod keeps the GPUs of its init containers until it ends, so these GPUs stay idle.",
    source="https://kubernetes.io/docs/concepts/workloads/pods/init-containers/#resource-sharing-within-containers",
    fails="silent",
)
UNKNOWN_DEVICE: Final = GPU_REQUESTS.rule(
    "gpu-requests/unknown-device",
    title="The resource name of the device is misspelt",
    why="No device plugin offers a misspelt resource, so the pods stay Pending.",
)
REMOVED: Final = GPU_REQUESTS.rule(
    "gpu-requests/removed-resource",
    title="The resource of the GPU was removed from Kubernetes",
    why="Since Kubernetes 1.11 only device plugins offer GPUs, and no device plugin offers the old resource.",
    source="https://kubernetes.io/docs/reference/command-line-tools-reference/feature-gates-removed/",
)
SEVERAL_SHARES: Final = GPU_REQUESTS.rule(
    "gpu-requests/several-shares",
    title="The container requests several shares of a GPU",
    why="A time slice has no fixed size, so several slices give no more of the GPU than one slice.",
    fails="silent",
)
MONITORING_RESOURCE: Final = GPU_REQUESTS.rule(
    "gpu-requests/monitoring-resource",
    title="The container requests the monitoring resource, but is not a monitor",
    why="The monitoring resource gives a container every GPU of the node, including the GPUs of other pods.",
    source="intel/intel-device-plugins-for-kubernetes cmd/gpu_plugin/README.md",
    fails="silent",
)
VENDORS: Final = GPU_REQUESTS.rule(
    "gpu-requests/vendors",
    title="The container requests GPUs of several vendors",
    why="Hardly any node has GPUs of several vendors, so the pod probably stays Pending.",
    source="https://kubernetes.io/docs/tasks/manage-gpus/scheduling-gpus/",
)
WINDOWS: Final = GPU_REQUESTS.rule(
    "gpu-requests/windows",
    title="A Windows pod requests a device that only Linux nodes have",
    why="The device plugins of GPU vendors run only on Linux, so no Windows node offers their resources.",
    source="https://kubernetes.io/docs/concepts/windows/intro/",
)
CUDA_IMAGE: Final = GPU_REQUESTS.rule(
    "gpu-requests/cuda-image",
    title="The image of CUDA is not in NVIDIA's registries",
    why=(
        "NVIDIA deletes old tags of nvidia/cuda. Tags of releases from 11.2 on have three numbers, such as 12.9.1. The "
        "kubelet cannot pull other images, so the pod stays in ImagePullBackOff."
    ),
    source="https://gitlab.com/nvidia/container-images/cuda doc/unsupported-tags.md and doc/support-policy.md",
    fails="start",
    issues=(
        "https://github.com/NVIDIA/nvidia-docker/issues/1735",
        "https://github.com/charmed-kubernetes/kubernetes-docs/issues/648",
    ),
)
WINDOWS_LOOKUPS: Final = (interest_in_fields(RuntimeClass.gvk, "scheduling.nodeSelector"),)
_CUDA: Final = "nvidia/cuda"
_CUDA_OF_NVIDIA: Final = f"nvcr.io/{_CUDA}"
_TWO_NUMBERS: Final = re.compile(r"(?:[7-9]|1[0-2])\.[0-9](?:-.*)?")
"""Tags of nvidia/cuda such as 11.0-base. NVIDIA deleted these tags. Releases from 11.2 on never had such tags."""
_DELETED: Final = frozenset(
    ("11.2.0", "11.2.1", "11.3.0", "11.4.0", "11.4.1", "11.4.2", "11.5.0", "11.5.1", "11.6.0", "11.6.1", "11.7.0")
)
"""Releases with three numbers that NVIDIA deleted in 2023."""
_OS: Final = "kubernetes.io/os"
_BINDING: Final = frozenset(("os", "affinity", "runtimeClassName"))
"""Fields that may bind a pod to Windows, beside the label `_OS` in nodeSelector."""
_SIGNS_OF_GPUS: Final = frozenset((DEVICES, VISIBLE_DEVICES, RUNTIME_CLASS))
"""Without these parts, a pod sees GPUs only if its image sets NVIDIA_VISIBLE_DEVICES."""
_OTHER_VENDORS: Final = re.compile("rocm|amdgpu|intel")
_DOMAINS_OF_GPUS: Final = ("nvidia.com", "amd.com", "intel.com")
_MONITORS: Final = re.compile("(?i)export|monitor|metric|telegraf|xpum|collect|otel|prometheus|observ|scrape|stats")
"""Texts in the image or name of a program that reads the state of every GPU and computes nothing on GPUs."""
_SEES_NOTHING: Final = ("none", "void")
_OTHERS_DECIDE: Final = frozenset(
    (
        "MPIJob",  # the operator hides GPUs from the launcher
        "TrainingRuntime",  # the pods get their resources from the TrainJob
        "ClusterTrainingRuntime",
        "RoleBasedGroup",  # a role may add resources to its template
        "DaemonSet",  # a DaemonSet manages the devices of each node
    )
)
"""Kinds with templates that do not show all devices of their pods."""
_COMPUTE: Final = frozenset(
    (
        *(f"{name}Job" for name in ("PyTorch", "TF", "XGBoost", "Paddle", "JAX", "Ray")),
        *("RayCluster", "RayService", "LeaderWorkerSet"),
    )
)
"""Kinds with pods that train or serve, with any command."""
_JOBS: Final = ("Job", "CronJob", "JobSet", "TrainJob")
_ON_ITS_OWN: Final = {"alibabacloud.com/eci": "true"}
"""The label of Alibaba Cloud's Elastic Container Instances. Each pod with this label runs on a separate virtual
machine.
"""
_VIRTUAL_KUBELET: Final = "virtual-kubelet.io/"
"""The beginning of taints of nodes on which each pod runs on a separate virtual machine of a cloud."""
_ON_CPUS: Final = re.compile(r"(?i)^cpu$|-cpu(-|$)")
"""A name, or a value of a variable, that shows that a program runs on CPUs."""
_RUNS_ON_CPUS: Final = re.compile(
    r"(?i)(?<!cpu:)\bgloo\b|--no[-_](cuda|gpu)\b|--device[= ]cpu\b|--(use[-_])?cpu\b|\bplatforms?=cpu\b"
)
"""A part of a command that makes a program run on CPUs. `cpu:gloo,cuda:nccl` also uses GPUs."""
_MPS: Final = re.compile("CUDA_MPS_[A-Z_]{1,40}")
"""Variables of a client of the Multi-Process Service, which shares a GPU among programs on purpose."""
_ONLY_WAITS: Final = re.compile(
    r"\A(?:/\S{1,40}/)?(?:(?:ba|da|a|z)?sh -[a-z]{0,3}c )?(?:exec )?"
    r"(?:sleep (?:infinity|inf|[0-9.]{1,20}[smhd]?)|tail -f /dev/null)\s*\Z"
)
"""The command of a container that only waits, for example for a person. Nothing computes in this container."""
_WORKPLACES: Final = frozenset(("Notebook", "Workspace", "DevWorkspace"))
_WORKPLACE: Final = re.compile(r"(?i)jupyter|notebook|code-server|rstudio|vscode")
"""The image or command of a container in which a person works."""
_SSH: Final = 22
"""The port at which a person or a script logs in. This port is no sign of a server."""
_ALSO_ON_CPUS: Final = "/tritonserver:"
"""The image of a server that also runs models on CPUs. This image does not show a need for GPUs."""
_SHARES_MEMORY: Final = re.compile(
    r"--(gpu[-_]memory[-_]utilization|cuda[-_]memory[-_]fraction|mem[-_]fraction[-_]static)[ =]0?\.[0-4]"
)
"""Flags with which a server uses less than half of the memory of a GPU, so that other programs fit."""
_COMPUTES: Final = re.compile(
    "(?i)cuda|gpu|nvidia|torch|tensor|vllm|llm|llama|sglang|triton|infer|train|whisper|diffusion|comfy|nccl|jupyter"
    "|notebook|text-generation|text-embeddings"
)
"""Texts in the image or command of a program that computes on GPUs. Without these texts, a pod with a runtime class for
GPUs may be a browser.
"""
_OF_GPU_NODES: Final = re.compile(r"(?i)gpu|nvidia|accelerator|cuda")
"""Texts in the labels and taints of nodes with GPUs."""
_HOST_NAME: Final = "kubernetes.io/hostname"
_PROFILE: Final = "hardware-profile"
"""A part of the annotation by which the webhook of OpenShift AI adds the resources of a HardwareProfile."""
_OF_GKE: Final = "cloud.google.com/"
"""The beginning of GKE's labels of nodes. On GKE, a container gets GPUs and the driver only from the device plugin."""
_NEED_NONE: Final = frozenset(
    (
        *(("TFJob", role) for role in ("ps", "evaluator", "chief", "master")),
        *((kind, "head") for kind in ("RayCluster", "RayJob", "RayService", "RayCronJob", "RayClusterFleet")),
        *((kind, "submitter") for kind in ("RayJob", "RayCronJob")),
    )
)
"""Roles, in lower case, that use the image of the workers but intentionally no GPU."""


def may_use_gpus(subject: Subject) -> bool:
    """Return whether a pod may request devices, or see GPUs without a request. Call this function through
    `Subject.once`.
    """
    parts = subject.typed(Pod).parts
    if not parts.present.isdisjoint(_SIGNS_OF_GPUS):
        return True
    return any(map(devices.is_gpu_image, parts.images))


def check_gpu_requests(subject: Subject) -> Iterator[Problem]:
    """Report settings about the GPUs of a pod that are probably not intended."""
    has_devices = subject.once(has_device_requests)
    for container in subject.once(read_device_containers):
        if (
            not has_devices
            and _may_see_all_gpus(container.container, subject)
            and subject.once(_has_no_other_gpu_source)
        ):
            if not _only_starts_remote_processes(container, subject):
                yield _every_gpu_visible_problem(container, subject)
        elif not container.requested:
            continue
        elif _has_slices_and_devices(container):
            yield _slices_with_devices_problem(container)
        elif _init_container_has_more_devices(container, subject):
            yield _init_container_keeps_gpus_problem(container)
        for requested in container.requested:
            yield from _check_doubtful_device(requested, container, subject)


def _has_no_other_gpu_source(subject: Subject) -> bool:
    """Return whether a pod without requested devices also gets no device by a claim, an annotation or a controller.

    NVIDIA/KAI-Scheduler shares GPUs by the annotations gpu-fraction and gpu-memory. Some plugins share GPUs by a
    resource name of their own, such as deepomatic.com/shared-gpu. A pod on its own machine takes no GPU from other
    pods.
    """
    if subject.template_of is not None:
        kind = subject.template_of.kind
        if kind in _OTHERS_DECIDE or (kind, subject.pod_set.lower()) in _NEED_NONE:
            return False
    pod = subject.typed(Pod)
    if pod.spec.resource_claims or any("gpu" in key or _PROFILE in key for key in pod.metadata.annotations):
        return False
    if _is_shared_on_purpose(pod.spec) or any(key.startswith(_OF_GKE) for key in pod.spec.node_selector):
        return False
    if any(pod.metadata.labels.get(key) == value for key, value in _ON_ITS_OWN.items()):
        return False
    if any(toleration.key.startswith(_VIRTUAL_KUBELET) for toleration in pod.spec.tolerations):
        return False
    if pod.is_found_in(_OTHER_VENDORS, (container.image for container in pod.spec.containers)):
        return False
    return not any(map(_may_be_gpu, _names_of_requested_resources(pod.spec)))


def _may_be_gpu(name: str) -> bool:
    """Return whether a resource with an unknown name may be a GPU. NVIDIA's device plugin can rename GPUs, for example
    to nvidia.com/rtxa6000.
    """
    domain, is_qualified, _ = name.partition("/")
    return bool(is_qualified) and (domain.endswith(_DOMAINS_OF_GPUS) or "gpu" in name.lower())


def _is_shared_on_purpose(pod: PodSpec) -> bool:
    """Return whether a pod without requested devices shares a GPU on purpose. Signs are a named node, MPS, and a limit
    of less than half of the GPU's memory. Another sign is a container that sets NVIDIA_VISIBLE_DEVICES and is
    privileged or has a runtime class for GPUs.

    In clusters without a device plugin, or if all programs share one GPU, users set a runtime class for GPUs and
    NVIDIA_VISIBLE_DEVICES instead of a request. K3s with the NVIDIA Container Toolkit is an example.
    """
    if pod.node_name or _HOST_NAME in pod.node_selector:
        return True
    containers = pod.containers
    if any(_MPS.fullmatch(name) for each in containers for name in each.environment.names):
        return True
    if any(container.runs(_SHARES_MEMORY) for container in containers):
        return True
    seeing = [each for each in containers if value_of_visible_devices(each) not in ("", *_SEES_NOTHING)]
    has_class = pod.runtime_class_name in devices.read_device_catalogue().runtime_classes
    return any(has_class or each.security_context.privileged for each in seeing)


def _names_of_requested_resources(pod: PodSpec) -> Iterator[str]:
    for container in pod.running_containers():
        for amounts in (container.resources.limits, container.resources.requests):
            yield from (name for name, amount in amounts.items() if not is_nothing(amount))


def _may_see_all_gpus(container: Container, subject: Subject) -> bool:
    """Return whether a container without a request probably sees GPUs.

    A runtime class gives GPUs only to a container with NVIDIA_VISIBLE_DEVICES. Images with CUDA set this variable.
    Source: NVIDIA/nvidia-container-toolkit internal/config/image/cuda_image.go.
    """
    visible = value_of_visible_devices(container)
    if container.is_init or visible in _SEES_NOTHING:
        return False
    if devices.is_tool_image(container.image):
        return False
    if visible:
        return True
    if container.runs(_ONLY_WAITS):
        return False
    if devices.is_gpu_image(container.image):
        return True
    computes = container.is_found_in(_COMPUTES, (container.image,)) or container.runs(_COMPUTES)
    return computes and subject.once(_gpu_runtime) != ""


def _only_starts_remote_processes(requesting: DeviceContainer, subject: Subject) -> bool:
    """Return whether a container only starts processes on other hosts, as the master of an MPI job does."""
    started = cached_launch_of_container(requesting.container, subject)
    return started.by in MPI and started.hosts


def _gpu_runtime(subject: Subject) -> str:
    """Return the runtime class of a pod if this class gives access to GPUs; otherwise ""."""
    runtime_class = subject.typed(Pod).spec.runtime_class_name
    return runtime_class if runtime_class in devices.read_device_catalogue().runtime_classes else ""


def _every_gpu_visible_problem(requesting: DeviceContainer, subject: Subject) -> Problem:
    """Return the problem of a container that sees every GPU. The message names the first sign: a variable, a runtime
    class, or the image.
    """
    visible, runtime_class = value_of_visible_devices(requesting.container), subject.once(_gpu_runtime)
    sees, fix = "requests no GPU and probably sees every GPU of its node", "request a GPU"
    if visible:
        what = "all GPUs" if visible == "all" else "GPUs that other pods may use"
        message = f"requests no GPU, but NVIDIA_VISIBLE_DEVICES `{visible}` makes {what} visible"
        fix = f"{fix}, or set the variable to none"
        shows_use = runtime_class or _is_job_or_launcher(requesting, subject)
        if not (shows_use or _names_gpu_nodes(subject.typed(Pod).spec)):
            return GPU_IMAGE.problem(requesting.container.at, message, fix)
    elif runtime_class:
        message, fix = f"{sees} because of runtime class `{runtime_class}`", f"{fix}, or use another runtime class"
        if not _is_job_or_launcher(requesting, subject):
            return GPU_IMAGE.problem(requesting.container.at, message, fix, needs="limits")
    else:
        message = f"{sees} because image `{requesting.container.image}` is made for GPUs"
        fix = f"{fix}, or set NVIDIA_VISIBLE_DEVICES to none"
        if not _has_gpu_image_and_work(requesting, subject):
            return GPU_IMAGE.problem(requesting.container.at, message, fix, needs="limits")
    return EVERY_GPU_VISIBLE.problem(requesting.container.at, message, fix, needs="limits")


def _names_gpu_nodes(pod: PodSpec) -> bool:
    """Return whether a pod selects or tolerates nodes with GPUs. On other nodes, and without a runtime class for GPUs,
    NVIDIA_VISIBLE_DEVICES probably has no effect.
    """
    required = (each.key for term in pod.required_node_terms() for each in term.match_expressions)
    texts = (*pod.node_selector, *pod.node_selector.values(), *required, *(each.key for each in pod.tolerations))
    return pod.is_found_in(_OF_GPU_NODES, [each for each in texts if isinstance(each, str)])


def _is_job_or_launcher(requesting: DeviceContainer, subject: Subject) -> bool:
    """Return whether a container runs a job or a launcher. A server may share a GPU on purpose."""
    if subject.template_of is not None and subject.template_of.kind in (*_JOBS, *_COMPUTE):
        return True
    return cached_launch_of_container(requesting.container, subject).by not in ("", PYTHON)


def _hides_gpus(variable: Variable) -> bool:
    """Return whether a variable hides every GPU from its program."""
    return variable.name == "CUDA_VISIBLE_DEVICES" and variable.value in ("", "-1") and not variable.value_from.json


def _has_gpu_image_and_work(requesting: DeviceContainer, subject: Subject) -> bool:
    """Return whether a container has an image for GPUs, serves or trains, and has no sign of computing on CPUs."""
    container = requesting.container
    variables = (*container.environment.by_name().values(), *_values_of_config_maps(container, subject))
    texts = (subject.metadata.name, container.name, *filter(None, variables))
    if any(map(_ON_CPUS.search, texts)) or any(map(_hides_gpus, container.env)) or container.runs(_RUNS_ON_CPUS):
        return False
    if _ALSO_ON_CPUS in container.image or _is_for_person(container, subject):
        return False
    launch = cached_launch_of_container(container, subject)
    if subject.template_of is not None and subject.template_of.kind in _COMPUTE:
        return not launch.is_inline
    if launch.by:
        return bool(container.ports) or launch.by != PYTHON
    return any(port.container_port != _SSH for port in container.ports)


def _values_of_config_maps(container: Container, subject: Subject) -> Iterator[str]:
    """Yield the variables that a container gets from ConfigMaps. A server does not look ConfigMaps up."""
    sources = [(each.config_map_ref.name, "") for each in container.env_sources]
    references = (variable.value_from.config_map_key_ref for variable in container.env)
    for name, key in (*sources, *((each.name, each.key) for each in references)):
        stored = name and subject.cluster_view().get_without_noting(ConfigMap.gvk, subject.namespace, name)
        for each, value in ConfigMap.of(stored).data.items() if stored else ():
            if key in ("", each):
                yield value


def _is_for_person(container: Container, subject: Subject) -> bool:
    """Return whether a person works in a container. The ports of a notebook do not show work on GPUs."""
    if subject.template_of is not None and subject.template_of.kind in _WORKPLACES:
        return True
    return container.is_found_in(_WORKPLACE, (container.image,)) or container.runs(_WORKPLACE)


def _has_slices_and_devices(requesting: DeviceContainer) -> bool:
    if len(requesting.requested) < 2:
        return False
    devices = [requested.device for requested in requesting.requested if requested.whole_amount]
    has_slices = any(device.kind == "slice" and device.gpu for device in devices)
    return has_slices and any(device.kind == "device" and device.vendor == "nvidia" for device in devices)


def _slices_with_devices_problem(requesting: DeviceContainer) -> Problem:
    message = "requests whole GPUs and MIG slices, but before driver 570 CUDA programs see only a slice"
    return SLICES_WITH_DEVICES.problem(requesting.container.at, message, "request only GPUs or only slices")


def _init_container_has_more_devices(requesting: DeviceContainer, subject: Subject) -> bool:
    """Return whether an init container has more devices than the containers that run until the pod ends."""
    if not requesting.container.is_init or requesting.container.is_sidecar:
        return False
    return requesting.device_count > subject.once(_count_devices_of_lasting_containers)


def _count_devices_of_lasting_containers(subject: Subject) -> int:
    """Return the number of devices of the containers that run until the pod ends."""
    listed = subject.once(read_device_containers)
    return sum(each.device_count for each in listed if not each.container.is_init or each.container.is_sidecar)


def _init_container_keeps_gpus_problem(requesting: DeviceContainer) -> Problem:
    message = "requests more GPUs than the containers that run after it, and the pod keeps all GPUs until it ends"
    fix = "request no more GPUs than these containers, or do the work of the init container in another pod"
    return INIT_CONTAINER_KEEPS.problem(requesting.container.at, message, fix)


def _is_monitor(container: Container, subject: Subject) -> bool:
    """Return whether a container probably only reads the state of GPUs: it belongs to a DaemonSet, or an image or name
    says so.
    """
    if subject.template_of is not None and subject.template_of.kind == "DaemonSet":
        return True
    return container.is_found_in(_MONITORS, (container.image, container.name, subject.metadata.name))


def _check_doubtful_device(device: RequestedDevice, requesting: DeviceContainer, subject: Subject) -> Iterator[Problem]:
    name, kind = device.name, device.device.kind
    if name == REMOVED_RESOURCE:
        message = f"no node offers `{name}` since Kubernetes 1.11, so the pod stays Pending"
        yield REMOVED.problem(requesting.path_of(device), message, f"write `{device.nearest_known_resource}`")
    elif not kind:
        if not parse_resource_name(name).is_qualified:
            return  # pod-resources reports this name, which the API server refuses
        message = f"no known device plugin offers `{name}`, so the pod stays Pending"
        yield UNKNOWN_DEVICE.problem(
            requesting.path_of(device), message, f"write `{device.nearest_known_resource}` if that is meant"
        )
    elif kind == "shared" and device.whole_amount > 1 and name.startswith("nvidia.com/"):
        message = "must be 1 because more shares do not give more of the GPU, and the device plugin may refuse them"
        yield SEVERAL_SHARES.problem(requesting.path_of(device), message, "set 1", device.whole_amount)
    elif kind == "monitor" and not _is_monitor(requesting.container, subject):
        message = "gives the container every GPU of the node because this is the resource for monitoring"
        fix = f"to compute on a GPU, request {name.removesuffix('_monitoring')}"
        yield MONITORING_RESOURCE.problem(requesting.path_of(device), message, fix)


def check_gpus_of_several_vendors(subject: Subject) -> Iterator[Problem]:
    """Report containers that request GPUs of several vendors."""
    for container in subject.once(read_device_containers):
        if len(container.requested) < 2:
            continue
        by_vendor = {
            requested.device.vendor: requested.name
            for requested in container.requested
            if requested.device.gpu and requested.device.kind in COUNTED and requested.whole_amount
        }
        if len(by_vendor) > 1:
            names = " and ".join(f"`{name}`" for name in by_vendor.values())
            because = "hardly any node has GPUs of several vendors, so the pod probably stays Pending"
            message = f"requests {names}, but {because}"
            fix = "request the GPUs of only one vendor"
            yield VENDORS.problem(container.container.at, message, fix, is_conditional=True)


def check_cuda_images(subject: Subject) -> Iterator[Problem]:
    """Report images of CUDA that are not in NVIDIA's registries, unless only the node may have the image."""
    for each in subject.once(read_device_containers):
        container = each.container
        if container.image_pull_policy != "Never" and _is_absent(parse_image_name(container.image)):
            message = "is not in NVIDIA's registries, so the container starts only on a node that has the image"
            fix = "write a tag that NVIDIA supports, such as 12.9.1-base-ubuntu24.04"
            yield CUDA_IMAGE.problem(container.path("image"), message, fix, container.image, needs="image")


def _is_absent(image: ImageName) -> bool:
    """Return whether NVIDIA deleted or never published a tag of nvidia/cuda. NGC may have the tag latest."""
    if image.digest or image.short_name not in (_CUDA, _CUDA_OF_NVIDIA):
        return False
    if image.tag in ("", "latest"):
        return image.short_name == _CUDA
    release, _, _ = image.tag.partition("-")
    return release in _DELETED or _TWO_NUMBERS.fullmatch(image.tag) is not None


def check_devices_on_windows(subject: Subject) -> Iterator[Problem]:
    """Report pods that run on Windows and request devices."""
    pod = subject.typed(Pod).spec
    if has_no_windows_field(pod):
        return
    name = next(filter(None, map(_first_counted_device_name, subject.once(read_device_containers))), "")
    if name and (where := path_of_windows_field(pod, subject.cluster_view())):
        by = pod.runtime_class_name if where == pod.path("runtimeClassName") else ""
        through = f" as {subject.cluster_view().name_with_file(RuntimeClass.gvk, by)} says" if by else ""
        message = f"binds the pod to Windows{through}, where no device plugin offers `{name}`, so the pod stays Pending"
        yield WINDOWS.problem(where, message, "use Linux nodes, or remove the request")


def _first_counted_device_name(container: DeviceContainer) -> str:
    counted = (each for each in container.requested if each.device.kind in COUNTED and each.whole_amount)
    return next((requested.name for requested in counted), "")


def has_no_windows_field(pod: PodSpec) -> bool:
    """Return whether a pod has no field that may bind the pod to Windows. Most pods have no such field."""
    return _BINDING.isdisjoint(pod.json) and _OS not in pod.node_selector


def path_of_windows_field(pod: PodSpec, view: ClusterView) -> FieldPath:
    """Return the path of the field that binds a pod to Windows, or (). Note a missing RuntimeClass."""
    if pod.os.name == "windows":
        return pod.os.path("name")
    if pod.node_selector.get(_OS) == "windows":
        return pod.path("nodeSelector", _OS)
    terms = pod.required_node_terms()
    if terms and all(any(map(_requires_windows, term.match_expressions)) for term in terms):
        return pod.affinity.node_affinity.required.path("nodeSelectorTerms")
    name = pod.runtime_class_name
    if name and view.find(RuntimeClass, name, namespaced=False).scheduling.node_selector.get(_OS) == "windows":
        return pod.path("runtimeClassName")
    return ()


def _requires_windows(requirement: SelectorRequirement) -> bool:
    return requirement.key == _OS and requirement.operator == "In" and requirement.values == ["windows"]


_PODS: Final = frozenset((("", "Pod"),))
_WITH_DEVICES: Final = frozenset((DEVICES,))

CHECKS: Final = (
    Check(
        group="gpu-requests",
        run=check_gpu_requests,
        kinds=_PODS,
        lookups_of_audits=(interest_in_fields(ConfigMap.gvk, "data"),),
        when=may_use_gpus,
    ),
    Check(group="gpu-requests", run=check_cuda_images, kinds=_PODS, of_pods_with=_WITH_DEVICES),
    Check(group="gpu-requests", run=check_gpus_of_several_vendors, kinds=_PODS, of_pods_with=_WITH_DEVICES),
    Check(group="gpu-requests", run=check_hidden_gpus, kinds=_PODS, of_pods_with=_WITH_DEVICES),
    Check(
        group="gpu-requests",
        run=check_devices_on_windows,
        kinds=_PODS,
        lookups=WINDOWS_LOOKUPS,
        of_pods_with=_WITH_DEVICES,
    ),
)
