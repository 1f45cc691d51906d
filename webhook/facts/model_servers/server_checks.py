"""The checks of one model server, in a whole container or in a part that a controller merges.

processes.py compares processes with GPUs, and refused_arguments.py reports refused arguments. This module checks:

- GPUs that the container hides from itself, and GPUs of other pods that the container sees. Variables of the
  container and of its command decide which GPUs are visible (gpu/visible_devices.py).
- Shared memory of servers with several processes. A container runtime gives /dev/shm 64 MiB. NCCL and the queues
  between processes use /dev/shm, and often need no more if GPUs are connected directly.
- Images for GPUs of another vendor, and images for GPUs in a container that requests no GPU.
- Several processes on the time slices of one GPU, if all nodes that fit the pod share one GPU each.
- The time that the server has to end, its folder for temporary files, the source of its model, and the metrics that
  scale the server.

A container without a request may still get a GPU: from a claim, from the runtime of its node, or from a controller.
So a missing request is reported only if no part of the pod shows another way.

Source: vllm-project/vllm vllm/entrypoints/openai/cli_args.py; huggingface_hub constants.py.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import PurePosixPath
from typing import Final

from webhook.apimachinery import quantity
from webhook.apimachinery.attributes import JSON
from webhook.apimachinery.paths import FieldPath
from webhook.facts.gpu.device_pods import SERVING
from webhook.facts.gpu.visible_devices import VARIABLES_BY_VENDOR, may_see_other_gpus, visible_gpus
from webhook.facts.kinds import LEADER_WORKER_SET
from webhook.facts.model_servers import processes, refused_arguments
from webhook.facts.model_servers.processes import ServerAtPath
from webhook.facts.model_servers.server_candidates import MODEL_SERVER
from webhook.facts.model_servers.servers_of_object import ServerContainer
from webhook.facts.model_servers.services import BY_TARGET
from webhook.facts.model_servers.started_servers import LLAMA, SGLANG, TRITON, VLLM, release_of_vllm
from webhook.facts.model_servers.vllm import wants_no_gpu
from webhook.facts.nodes.node_offers import NodeOffer, pods_and_nodes
from webhook.facts.pods.pod_sets import is_part_of_template, template_of
from webhook.facts.subject import Subject
from webhook.rules.problem import Problem
from webhook.text.wording import counted
from webhook.typed.autoscaling import HorizontalPodAutoscaler
from webhook.typed.cluster_objects import LimitRange
from webhook.typed.pods import Container, PodSpec
from webhook.yamltext.placeholders import is_placeholder

HIDDEN_GPUS: Final = MODEL_SERVER.rule(
    "model-server/hidden-gpus",
    title="CUDA_VISIBLE_DEVICES hides GPUs that the server needs",
    why=(
        "CUDA numbers the GPUs of a container from 0, not by their numbers on the node. It ignores a number that does "
        "not exist, and all numbers after it. The server exits if one of its processes has no GPU."
    ),
    source="https://docs.nvidia.com/cuda/cuda-c-programming-guide/#env-vars",
)
ALL_GPUS_VISIBLE: Final = MODEL_SERVER.rule(
    "model-server/all-gpus-visible",
    title="A model server may see the GPUs of other pods",
    why=(
        "With NVIDIA_VISIBLE_DEVICES or privileged, a container sees GPUs of the node that it does not request. Two "
        "pods may then compute on one GPU."
    ),
    source="https://github.com/NVIDIA/k8s-device-plugin/issues/61",
    level="advice",
    fails="silent",
    issues=("https://github.com/NVIDIA/k8s-device-plugin/issues/87",),
)
SHARED_MEMORY: Final = MODEL_SERVER.rule(
    "model-server/shared-memory",
    title="A model server with several GPUs has only 64 MiB of shared memory",
    why=(
        "NCCL and the queues between the processes use /dev/shm. The server may fail with a bus error when /dev/shm is "
        "full."
    ),
    source="https://github.com/vllm-project/vllm/issues/7466",
    level="advice",
    issues=("https://github.com/vllm-project/production-stack/issues/276",),
)
SHUTDOWN: Final = MODEL_SERVER.rule(
    "model-server/shutdown",
    title="shutdown-timeout is above the grace period of the pod",
    why="vLLM finishes requests until this timeout, but the kubelet kills vLLM at the end of the grace period.",
    source="vllm-project/vllm vllm/entrypoints/openai/cli_args.py",
    fails="disruption",
    issues=("https://github.com/llm-d/llm-d/issues/927",),
)
OFFLINE_MODEL: Final = MODEL_SERVER.rule(
    "model-server/offline-model",
    title="The server needs a model of the Hugging Face Hub, but HF_HUB_OFFLINE is set",
    why="With HF_HUB_OFFLINE the server finds a model only in its cache, which a new pod does not have.",
    source="https://huggingface.co/docs/huggingface_hub/package_reference/environment_variables",
    level="advice",
)
GATED_MODEL: Final = MODEL_SERVER.rule(
    "model-server/gated-model",
    title="A gated model is used without a token",
    why="The Hugging Face Hub allows the download only with the token of an account that accepted the model's licence.",
    source="https://huggingface.co/docs/hub/models-gated",
    level="advice",
)
IMAGE_OF_OTHER_VENDOR: Final = MODEL_SERVER.rule(
    "model-server/image-of-other-vendor",
    title="The image of a model server is for GPUs of another vendor",
    why="An image has the libraries of either CUDA or ROCm. Without the right libraries the server finds no GPU.",
    refused_by="the server, when it starts",
    source="vllm-project/vllm docker/Dockerfile and docker/Dockerfile.rocm",
)
WITHOUT_GPU: Final = MODEL_SERVER.rule(
    "model-server/without-gpu",
    title="A model server for GPUs requests no GPU",
    why=(
        "The published images of vLLM and SGLang compute on GPUs only, and the server ends if it finds no GPU. Without "
        "a request the scheduler also chooses nodes without GPUs, and a device plugin gives the container no GPU."
    ),
    refused_by="the server, when it starts",
    source="vllm-project/vllm vllm/config/device.py; PyPI sglang 0.5.23 sglang/srt/utils",
    function="DeviceConfig.__post_init__",
    issues=("https://github.com/vllm-project/vllm/issues/12847",),
)
NO_TEMPORARY_FOLDER: Final = MODEL_SERVER.rule(
    "model-server/no-temporary-folder",
    title="A model server has no folder for temporary files",
    why=(
        "The processes of vLLM and SGLang talk over sockets in the folder for temporary files. If the root filesystem "
        "is read-only, Python finds no such folder, and the server ends."
    ),
    refused_by="the server, when it starts",
    source="vllm-project/vllm vllm/envs.py; sgl-project/sglang python/sglang/srt/server_args.py",
    function="VLLM_RPC_BASE_PATH; PortArgs.init_new",
    issues=("https://github.com/kserve/kserve/pull/5302",),
)
CPU_AUTOSCALER: Final = MODEL_SERVER.rule(
    "model-server/cpu-autoscaler",
    title="A HorizontalPodAutoscaler counts CPU or memory that a container does not request",
    why="A share of a request cannot be computed without the request, so the autoscaler never acts.",
    refused_by="the autoscaler, in its conditions",
    source="k8s.io/kubernetes v1.36 pkg/controller/podautoscaler/replica_calculator.go",
    fails="silent",
)
NVIDIA: Final = "NVIDIA_VISIBLE_DEVICES"
_AMD: Final = "AMD_VISIBLE_DEVICES"
_NO_GPUS: Final = frozenset(("void", "none", ""))
_SHARED_MEMORY_PATH: Final = "/dev/shm"  # noqa: S108 - a mount inside a container
_GRACE_S: Final = 30
_WHOLE_NODE: Final = 8
"""A number of GPUs. A container with this many GPUs usually has all GPUs of its node."""
_SCALED: Final = ("cpu", "memory")
SLICES_OF_ONE_CARD: Final = MODEL_SERVER.rule(
    "model-server/slices-of-one-card",
    title="A model server starts several processes on the time slices of one GPU",
    why="The container sees one GPU, so a process without a GPU ends the server.",
    source="NVIDIA/k8s-device-plugin@1b826acc6 internal/rm/rm.go",
)
_NVIDIA_GPU: Final = "nvidia.com/gpu"
_LONGEST_IMAGE: Final = 256
_CUDA_IMAGE: Final = re.compile(
    r"vllm/vllm-openai:.+"
    r"|lmsysorg/sglang:(latest|v[0-9.]{1,12}(\.post[0-9])?)(-cu[0-9]{3})?"
    r"|ghcr\.io/huggingface/text-generation-inference:[0-9.]{1,12}"
)
_ROCM_IMAGE: Final = re.compile(
    r"(vllm/vllm-openai-rocm|rocm/vllm|rocm/vllm-dev):.+"
    r"|lmsysorg/sglang:v[0-9.]{1,12}(\.post[0-9])?-rocm.*"
    r"|ghcr\.io/huggingface/text-generation-inference:[0-9.]{1,12}-rocm"
)
_OTHER_BUILD: Final = re.compile(r"rocm|cpu|xpu")
"""Words in the names of images without CUDA, such as `vllm/vllm-openai:latest-cpu`."""
_OF_EACH_SERVER: Final = frozenset(
    (
        processes.PARALLEL_SIZE_ABOVE_GPUS.id,
        processes.DATA_PARALLEL_SIZE_ABOVE_GPUS.id,
        refused_arguments.REFUSED_ARGUMENTS.id,
    )
)
"""If a script may start one of several servers, these rules are reported only if each server has the problem."""
_ONLY_ON_GPUS: Final = frozenset((VLLM, SGLANG))
"""Servers with published images that end without a GPU."""
_REQUESTS_ITS_GPUS: Final = SERVING | frozenset(
    (
        *(("apps", "ReplicaSet"), ("batch", "Job"), ("argoproj.io", "Rollout"), ("serving.knative.dev", "Service")),
        *(
            LEADER_WORKER_SET,
            ("serving.kserve.io", "InferenceService"),
            ("disaggregatedset.x-k8s.io", "DisaggregatedSet"),
        ),
    )
)
"""Kinds with controllers that add no GPUs to pod templates."""
_ON_CPUS: Final = re.compile(r"(?i)(?<![a-z])cpu(?![a-z])")
_DEVICE_FILES: Final = ("/dev", "/proc", "/run/nvidia", "/usr/local/nvidia")
"""Folders of a node through which a container reaches devices or their driver."""
_HOST_NAME: Final = "kubernetes.io/hostname"
_OF_AKS: Final = "kubernetes.azure.com/"
"""The beginning of AKS's labels of nodes."""
_GIVES_GPUS: Final = re.compile(r"(?i)gpu|cdi\.k8s\.io|nvidia|alibabacloud\.com/eci|virtual-kubelet|hardware-profile")
"""Matches keys of annotations and labels that tell schedulers, container runtimes, clouds or webhooks to give a pod
GPUs. The webhook of OpenShift AI reads `opendatahub.io/hardware-profile-name`.
"""
_LIBRARIES: Final = {"nvidia": ("CUDA", "NVIDIA"), "amd": ("ROCm", "AMD")}
"""The libraries for the GPUs of a vendor, and the vendor's name in messages."""
_EXAMPLES: Final = {VLLM: {"nvidia": "vllm/vllm-openai", "amd": "vllm/vllm-openai-rocm"}}
"""Images of a server for GPUs of each vendor."""
_TEMPORARY: Final = ("/tmp", "/var/tmp", "/usr/tmp")  # noqa: S108 - folders inside a container
"""Python's folders for temporary files. If no folder can be written, Python tries the working directory."""
_WORKING: Final = ("/vllm-workspace", "/sgl-workspace/sglang", "/app")
"""The working directories of published images."""
_NAMES_FOLDER: Final = frozenset(("TMPDIR", "TEMP", "TMP", "VLLM_RPC_BASE_PATH"))
_NEEDS_NO_FOLDER: Final = re.compile(
    r"\b(TMPDIR|TEMP|TMP|VLLM_RPC_BASE_PATH|cd|mount|pushd)\b|--headless|\s-dp|data[-_]parallel|dp[-_]attention"
    "|frontend-multiprocessing"
)
"""Matches a command that may set another folder, or that starts processes without a socket file between them."""
_SOCKETS_SINCE: Final = (0, 6, 0)
_OLD_SGLANG: Final = re.compile(r":v0\.[0-3]\.")
_HUB_NAME: Final = re.compile(r"[A-Za-z0-9][\w.-]{0,95}/[A-Za-z0-9][\w.-]{0,95}")
_GATED: Final = re.compile(r"(meta-llama/|google/gemma-).*")
_TOKENS: Final = frozenset(("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "HUGGINGFACE_TOKEN", "HF_TOKEN_PATH", "HF_ENDPOINT"))
_MIRRORS: Final = frozenset(("VLLM_USE_MODELSCOPE", "SGLANG_USE_MODELSCOPE"))


def check_visible_devices(member: ServerContainer) -> Iterator[Problem]:
    """Report GPUs that the server hides from itself. Advise on GPUs of other pods that the server may see."""
    yield from _check_hidden_gpus(member)
    path, values = member.path, member.container.environment.by_name()
    is_nvidia, has_whole_node = member.gpus.vendor == "nvidia", (member.gpus.count or 0) >= _WHOLE_NODE
    if not (is_nvidia or member.gpus.vendor == "amd" or member.gpus.by_claims) or has_whole_node:
        return
    if (is_nvidia or member.gpus.by_claims) and (values.get(NVIDIA) or "").strip() not in _NO_GPUS:
        message = f"sets {NVIDIA} to `{values[NVIDIA]}`, so the container may see GPUs of other pods"
        fix = f"remove {NVIDIA}, because the device plugin sets this variable"
        yield _problem_of_visible_gpus(path, message, fix, (NVIDIA,))
    elif member.container.security_context.privileged:
        message = "is privileged, so the container may see every GPU of the node, not only the requested GPUs"
        yield _problem_of_visible_gpus(path, message, "remove privileged from securityContext")


def _problem_of_visible_gpus(path: FieldPath, message: str, fix: str, words: tuple[str, ...] = ()) -> Problem:
    return ALL_GPUS_VISIBLE.problem(path, message, fix, words=words)


def _check_hidden_gpus(member: ServerContainer) -> Iterator[Problem]:
    gpus, vendor = member.gpus.count, member.gpus.vendor
    name = next((each for each in VARIABLES_BY_VENDOR.get(vendor, ()) if each in member.server.variables), "")
    written = member.server.variables.get(name, "")
    visible = None if gpus is None else visible_gpus(name, written, gpus, vendor)
    if visible is None or may_see_other_gpus(member.container):
        return
    needed, message = member.processes.here, visible.fault
    if needed is not None and visible.number >= needed:
        return
    if not message:
        if needed is None or visible.number >= (gpus or 0):  # the variable hides none of the GPUs of the container
            return
        message = f"{name}={written} leaves {counted(visible.number, 'GPU')} visible, but {member.server.name} needs "
        message += str(needed)
    is_certain = needed is not None or (not visible.number and member.server.name in _ONLY_ON_GPUS)
    fix = f"remove {name}"
    yield HIDDEN_GPUS.problem(member.path, message, fix, words=(name,), is_conditional=not is_certain)


def advise_shared_memory(member: ServerContainer) -> Iterator[Problem]:
    """Advise on a server of several processes in a container with only the default shared memory."""
    gpus, processes = member.gpus.count or 0, member.processes.here
    is_one_process = processes == 1 or member.server.name == LLAMA or (member.server.name == TRITON and not processes)
    if gpus < 2 or is_one_process or member.spec.host_ipc or member.pod_set.elsewhere:
        return
    if not any(each.mount_path.rstrip("/") == _SHARED_MEMORY_PATH for each in member.container.volume_mounts):
        message = f"has {counted(gpus, 'GPU')} but only 64 MiB of /dev/shm, which may be too little for NCCL"
        fix = "mount an emptyDir with medium Memory at /dev/shm"
        yield SHARED_MEMORY.problem(member.path, message, fix, is_conditional=True)


def check_shutdown(member: ServerContainer) -> Iterator[Problem]:
    """Report a server that may finish requests for longer than the grace period of its pod."""
    seconds = member.server.arguments.number("shutdown", 0)
    if member.server.name != VLLM or not seconds or member.spec.is_omitted("terminationGracePeriodSeconds"):
        return
    grace = member.spec.termination_grace_period_seconds
    grace = _GRACE_S if grace is None else grace
    if seconds > grace:
        message = f"--shutdown-timeout lets vLLM finish requests for {seconds} s, but the pod is killed after {grace} s"
        yield SHUTDOWN.problem(member.path, message, f"set terminationGracePeriodSeconds to {seconds + _GRACE_S}")


def advise_model_source(member: ServerContainer) -> Iterator[Problem]:
    """Advise on a model that the server cannot download."""
    arguments, names = member.server.arguments, frozenset(member.container.environment.names)
    model = arguments.values.get("model") or next(iter(arguments.positional), "")
    if not _HUB_NAME.fullmatch(model) or member.container.env_from or not _MIRRORS.isdisjoint(names):
        return
    offline = member.server.variables.get("HF_HUB_OFFLINE", "")
    has_volume = any(mount.mount_path != "/dev/shm" for mount in member.container.volume_mounts)  # noqa: S108
    if offline in ("1", "true", "True", "ON") and not has_volume:
        message = (
            f"names the model {model} of the hub, but HF_HUB_OFFLINE stops {member.server.name} from downloading it"
        )
        yield OFFLINE_MODEL.problem(member.path, message, "remove HF_HUB_OFFLINE, or mount the model and name its path")
    elif _GATED.fullmatch(model) and names.isdisjoint(_TOKENS) and not has_volume:
        message = f"names the gated model {model}, but sets no HF_TOKEN, so the hub refuses the download"
        yield GATED_MODEL.problem(member.path, message, "set HF_TOKEN from a Secret")


def check_temporary_folder(member: ServerContainer) -> Iterator[Problem]:
    """Report a published image of a server that has a read-only root filesystem and no folder for temporary files."""
    container, name = member.container, member.server.name
    if not container.security_context.read_only_root_filesystem or name not in _ONLY_ON_GPUS:
        return
    if container.env_from or any(map(container.is_omitted, ("env", "volumeMounts"))):
        return
    if not _NAMES_FOLDER.isdisjoint(container.environment.names) or container.runs(_NEEDS_NO_FOLDER):
        return
    release = release_of_vllm(container)
    is_old = release is not None and release < _SOCKETS_SINCE
    if is_old or not _vendor_of_image(container.image) or container.is_found_in(_OLD_SGLANG, (container.image,)):
        return
    working = (container.working_dir,) if container.working_dir else _WORKING
    folders = [PurePosixPath(each) for each in (*_TEMPORARY, *working)]
    paths = [PurePosixPath(mount.mount_path) for mount in container.volume_mounts if not mount.read_only]
    if any(is_placeholder(str(path)) or any(folder.is_relative_to(path) for folder in folders) for path in paths):
        return
    message = f"is true, but no writable volume is at /tmp, so {name} finds no folder for temporary files and exits"
    fix = f"mount an emptyDir at /tmp, and volumes at other folders to which {name} writes"
    at = member.locate((*container.at, "securityContext", "readOnlyRootFilesystem"))
    yield NO_TEMPORARY_FOLDER.problem(at, message, fix)


def check_autoscalers(members: Sequence[ServerContainer], subject: Subject) -> Iterator[Problem]:
    """Report an autoscaler that scales the servers by a share of a request, if a counted container does not set the
    request. A LimitRange may set the request.
    """
    view, name = subject.cluster_view(), subject.metadata.name
    if not name or not members or any(True for _ in view.typed_here(LimitRange)):
        return
    key = f"{subject.attributes.kind.kind}/{name}"
    for autoscaler in view.typed_under_key(HorizontalPodAutoscaler, BY_TARGET, key):
        for metric in autoscaler.spec.metrics:
            resource, counted_name = metric.resource_and_container
            lacking = _container_without_request(members, resource, counted_name) if resource in _SCALED else None
            if lacking is not None:
                scaler = f"HorizontalPodAutoscaler `{autoscaler.name}`"
                member, container = lacking
                who = "" if container.name == member.container.name else f"container `{container.name}` "
                message = f"{who}requests no {resource}, but {scaler} scales by a share of this request"
                fix = f"request {resource}, or scale by the server's own metrics"
                yield CPU_AUTOSCALER.problem(member.locate(container.at), message, fix)
                return


def _container_without_request(
    members: Sequence[ServerContainer], resource: str, name: str
) -> tuple[ServerContainer, Container] | None:
    """Return the first container that an autoscaler counts and that does not request the resource, with the server of
    its pod. With the name "", the autoscaler counts all containers of a pod. The resources of a pod as a whole replace
    the requests of its containers.
    """
    for member in members:
        if member.spec.has("resources") or member.spec.is_omitted("resources"):
            continue
        for container in (member.container, *member.spec.containers):
            if name in ("", container.name) and not _requests_resource(container, resource):
                return member, container
    return None


def _requests_resource(container: Container, name: str) -> bool:
    resources = container.resources
    return name in resources.requests or name in resources.limits or resources.is_omitted("requests")


def check_vendor_of_image(member: ServerContainer) -> Iterator[Problem]:
    """Report a published image with libraries for GPUs of another vendor than the container requests."""
    image, vendor = member.container.image.removeprefix("docker.io/"), member.gpus.vendor
    build = _vendor_of_image(image) if len(image) <= _LONGEST_IMAGE else ""
    if not member.gpus.count or vendor not in _LIBRARIES or build in ("", vendor):
        return
    wanted, name = _LIBRARIES[vendor]
    message = (
        f"has an image for {_LIBRARIES[build][0]}, but requests GPUs of {name}, so {member.server.name} finds no GPU"
    )
    example = _EXAMPLES.get(member.server.name, {}).get(vendor)
    fix = f"use an image for {wanted}" + (f", such as {example}" if example else "")
    yield IMAGE_OF_OTHER_VENDOR.problem(member.path, message, fix)


def check_missing_gpu(member: ServerContainer, subject: Subject) -> Iterator[Problem]:
    """Report a server with an image that needs a GPU, if the container requests no GPU and gets none in another way.

    A request of 0 GPUs counts as no request. NVIDIA's runtime may show all GPUs to a container without a request. AMD's
    runtime shows no GPU unless AMD_VISIBLE_DEVICES is set.
    """
    container, server, zero = member.container, member.server, member.gpus.requested_zero
    image = container.image.removeprefix("docker.io/")
    if server.name not in _ONLY_ON_GPUS or subject.group_kind not in _REQUESTS_ITS_GPUS or member.joins_ray:
        return
    if not member.gpus.is_without or len(image) > _LONGEST_IMAGE:
        return
    vendor = _vendor_of_image(image)
    if not vendor or (zero and member.gpus.vendor != vendor):
        return
    if _may_run_on_cpus(member, subject) or _may_get_gpu(member, subject):
        return
    at = (*member.path, "resources", "limits", zero) if zero else member.path
    requested, needs = f"requests {f'0 of {zero}' if zero else 'no GPU'}", "" if zero else "limits"
    if vendor == "amd":
        message = f"{requested}, so AMD's device plugin gives {server.name} no GPU, and {server.name} exits"
        yield WITHOUT_GPU.problem(at, message, f"request at least 1 of {zero or 'amd.com/gpu'}", needs=needs)
        return
    if _selects_aks(member.spec):
        message = "requests no GPU, and a GPU node of AKS shows every GPU, so the server may use GPUs of other pods"
        yield _problem_of_visible_gpus(member.path, message, "request a GPU")
        return
    message = f"{requested}, so {server.name} exits unless its node shows all GPUs to every container"
    fix = f"request {f'at least 1 of {zero}' if zero else 'a GPU'}, or use an image for CPUs"
    yield WITHOUT_GPU.problem(at, message, fix, needs=needs, is_conditional=True)


def _may_run_on_cpus(member: ServerContainer, subject: Subject) -> bool:
    """Return whether an argument, a variable or a name says that the server runs on CPUs."""
    server, container = member.server, member.container
    if server.arguments.is_open or server.arguments.has("config") or wants_no_gpu(server, container.image):
        return True
    if server.arguments.number("data-local") == 0:
        return True  # only an API server; the data parallel ranks run in other pods
    if (server.arguments.text("device", "auto") or "") not in ("auto", "cuda"):
        return True
    return container.is_found_in(_ON_CPUS, (subject.metadata.name, container.name, *server.variables))


def _may_get_gpu(member: ServerContainer, subject: Subject) -> bool:
    """Return whether a container may get a GPU without a request: by a claim, by its node, or from another object."""
    spec, container = member.spec, member.container
    template = template_of(member.pod_set, subject)
    keys = (*template.metadata.annotations, *template.metadata.labels, *subject.metadata.annotations)
    if is_part_of_template(template, subject):
        return True  # another part may request the GPU
    if spec.resource_claims or spec.runtime_class_name or spec.has("resources") or spec.is_omitted("resources"):
        return True
    if spec.node_name or _HOST_NAME in spec.node_selector or container.is_found_in(_GIVES_GPUS, keys):
        return True
    names = container.environment.names
    if container.env_from or NVIDIA in names or _AMD in names or any(True for _ in _requested_devices(spec)):
        return True
    if any(each.security_context.privileged for each in spec.running_containers()):
        return True
    folders = (volume.host_path.path_on_host.rstrip("/") for volume in spec.volumes)
    if any(folder.startswith(_DEVICE_FILES) and folder != _SHARED_MEMORY_PATH for folder in folders):
        return True
    return any(True for _ in subject.cluster_view().typed_here(LimitRange))


def _selects_aks(spec: PodSpec) -> bool:
    """Return whether a pod selects nodes of AKS. NVIDIA's runtime is the default on their GPU nodes (Azure/AgentBaker
    containerd.toml.gtpl), so an image with NVIDIA_VISIBLE_DEVICES sees every GPU.
    """
    required = (each.key for term in spec.required_node_terms() for each in term.match_expressions)
    return any(isinstance(key, str) and key.startswith(_OF_AKS) for key in (*spec.node_selector, *required))


def _requested_devices(spec: PodSpec) -> Iterator[str]:
    """Yield the resources of device plugins that any container of a pod requests, except in an amount of 0."""
    for container in spec.all_containers():
        for amounts in (container.resources.written_limits, container.resources.written_requests):
            yield from (name for name, amount in amounts.items() if "/" in name and not _is_zero(amount))


def _is_zero(amount: JSON) -> bool:
    return quantity.read_whole_number_or_none(amount) == 0


def _vendor_of_image(image: str) -> str:
    """Return the vendor of the GPUs that a published image is built for; "" if that is not known."""
    if _ROCM_IMAGE.fullmatch(image):
        return "amd"
    return "nvidia" if _CUDA_IMAGE.fullmatch(image) and not _OTHER_BUILD.search(image) else ""


def check_alternatives(members: Sequence[ServerContainer]) -> Iterator[Problem]:
    """Yield the problems that all servers of a container have. Its script may start any of these servers."""
    listed = [
        {problem.code: problem for problem in check_server(member) if problem.code in _OF_EACH_SERVER}
        for member in members
    ]
    for code, problem in listed[0].items() if listed else ():
        if all(code in others for others in listed):
            yield problem


def check_server(member: ServerContainer) -> Iterator[Problem]:
    """Yield the problems of one server, in an object of any kind."""
    at = ServerAtPath(
        server=member.server.name,
        path=member.path,
        processes=member.processes,
        gpus=member.gpus,
        flags=member.size_flags,
        may_see_others=may_see_other_gpus(member.container),
    )
    yield from processes.check_processes_against_gpus(at)
    yield from processes.check_slices_and_absent_gpus(at)
    yield from refused_arguments.check_refused_arguments(member)
    yield from refused_arguments.check_ray_is_named(member)
    yield from check_visible_devices(member)
    yield from check_vendor_of_image(member)
    yield from advise_shared_memory(member)
    yield from check_shutdown(member)
    yield from advise_model_source(member)


def check_time_slices(member: ServerContainer, subject: Subject) -> Iterator[Problem]:
    """Report several processes of a server, if its GPUs are time slices of one GPU on all nodes that fit the pod."""
    here, gpus = member.processes.here or 0, member.gpus.count or 0
    if member.gpus.vendor != "nvidia" or here < 2 or here > gpus or member.processes.is_advice:
        return
    fitting = next((each.fitting for each in subject.once(pods_and_nodes) if each.pods.spec is member.spec), ())
    if fitting and all(map(_has_slices_of_one_card, fitting)):
        name = member.server.name
        starts = f"starts {counted(here, member.processes.noun, member.processes.plural)}"
        message = (
            f"{name} {starts}, but the GPUs that node {fitting[0].name} offers are time slices of one GPU, so {name} "
            "finds 1 GPU"
        )
        lower = member.processes.lower.format(1) or "start one process"
        fix = f"{lower} and request 1 GPU, or select nodes with unshared GPUs"
        yield SLICES_OF_ONE_CARD.problem(member.path, message, fix)


def _has_slices_of_one_card(offer: NodeOffer) -> bool:
    is_sliced = offer.labels.get(f"{_NVIDIA_GPU}.sharing-strategy") == "time-slicing"
    return is_sliced and offer.labels.get(f"{_NVIDIA_GPU}.count") == "1"
