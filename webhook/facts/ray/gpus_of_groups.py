"""Compares the GPUs that KubeRay reports to Ray for a cluster with the demands of Serve's deployments and of
entrypoints.

Ray places a replica, an actor or an entrypoint in one pod. `resources` of a group override num-gpus of rayStartParams.
num-gpus overrides the GPU limit of the group's first container. With Ray's autoscaler a group may have maxReplicas
pods.

Source: ray-project/kuberay@feeaf72f ray-operator/controllers/ray/common/pod.go; PyPI ray 2.60.0 ray/serve/schema.py and
ray/llm/_internal/serve/engines/vllm/vllm_models.py; ray/dashboard/modules/job/job_manager.py.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from webhook.apimachinery import quantity
from webhook.apimachinery.paths import FieldPath
from webhook.facts.gpu.devices import device_of_resource_name
from webhook.facts.gpu.resources import is_nothing, may_have_gpus_by_annotation
from webhook.facts.ray.releases import RAY
from webhook.facts.ray.serve_config import read_serve_config
from webhook.facts.subject import Subject
from webhook.rules.problem import Problem
from webhook.text.wording import counted, some_of
from webhook.typed.objects import Metadata
from webhook.typed.pod_parts import VISIBLE
from webhook.typed.pods import Container
from webhook.typed.ray import Group, RayClusterSpec, RayCronJob, RayJob, RayJobSpec, RayService

NO_GROUP_WITH_GPUS: Final = RAY.rule(
    "ray/no-group-with-gpus",
    title="No pod of a Ray cluster has the GPUs or CPUs that one replica needs",
    why="Ray places a replica in one pod. No pod has enough of them, so Ray waits and the RayService is never ready.",
    refused_by="nothing; Ray waits",
    source="PyPI ray 2.60.0 ray/serve/schema.py",
    fails="waiting",
    issues=("https://github.com/ray-project/ray-llm/issues/120", "https://github.com/ray-project/kuberay/issues/4555"),
)
TOO_FEW_GPUS: Final = RAY.rule(
    "ray/too-few-gpus",
    title="A Ray cluster has too few GPUs or pods for the replicas of Ray Serve",
    why="Replicas that find no place wait for ever, because the cluster grows only with enableInTreeAutoscaling.",
    refused_by="nothing; Ray waits",
    source="PyPI ray 2.60.0 ray/serve/schema.py",
    fails="waiting",
    issues=("https://github.com/ray-project/ray/issues/48471",),
)
HIDDEN_FROM_RAY: Final = RAY.rule(
    "ray/hidden-gpus",
    title="num-gpus hides the GPUs of a group from Ray",
    why="num-gpus overrides the GPU limit of the container. With 0, Ray places no work that needs a GPU in the pods.",
    refused_by="nothing; Ray waits",
    source="ray-project/kuberay@feeaf72f ray-operator/controllers/ray/common/pod.go",
    fails="waiting",
)
ENTRYPOINT_GPUS: Final = RAY.rule(
    "ray/entrypoint-gpus",
    title="No pod of a Ray cluster has the GPUs or CPUs of the entrypoint",
    why="Ray places the entrypoint in one pod. If no pod has enough resources for 900 s, the job fails.",
    refused_by="Ray, after 900 s",
    source="PyPI ray 2.60.0 ray/dashboard/modules/job/job_manager.py",
    fails="start",
)
LARGE_BUNDLE: Final = RAY.rule(
    "ray/large-bundle",
    title="A bundle of an LLM deployment has several GPUs",
    why="The executor of vLLM accepts only bundles of one GPU. Newer releases of vLLM may not check this.",
    source="vllm-project/vllm vllm/v1/executor/ray_utils.py@0057add1",
    level="advice",
    fails="start",
)
RESOURCES_TWICE: Final = RAY.rule(
    "ray/resources-twice",
    title="A group of a Ray cluster sets resources in two places",
    why="KubeRay refuses a group that sets the same amounts in resources and in rayStartParams.",
    source="ray-project/kuberay@feeaf72f ray-operator/controllers/ray/utils/validation.go",
    function="ValidateRayClusterSpec",
)
_LLM_APP: Final = "ray.serve.llm:build_openai_app"
_LLM_APP_OF_TWO: Final = "ray.serve.llm:build_pd_openai_app"
"""An application with separate deployments for prefill and decode."""
_NAMES: Final = {"GPU": "num-gpus", "CPU": "num-cpus", "memory": "memory"}
_AT: Final = ("spec", "serveConfigV2")
_NAMES_DEVICES: Final = ("placement_group_config", "resources_per_bundle", "accelerator_config")
"""Fields of an LLM config that may name other devices than GPUs, or CPUs only."""
_COMPARABLE: Final = frozenset(("nvidia.com/gpu", "amd.com/gpu"))
_MOST: Final = 10_000
_LEAST_REPLICAS: Final = "min_replicas"
_APART: Final = "STRICT_SPREAD"
_OWN_COMMAND: Final = "ray.io/overwrite-container-cmd"
"""The annotation of pods in which KubeRay does not run `ray start`."""
_GENERATED: Final = "KUBERAY_GEN_RAY_START_CMD"
"""The variable with the command that KubeRay would run."""
_GROW: Final = "raise replicas and minReplicas of the group, or set enableInTreeAutoscaling"
_MORE_PODS: Final = "raise replicas and maxReplicas of a worker group"
_SHOWN: Final = 3
"""Names of deployments in one message."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RayGpus:
    """The GPUs of each group of a Ray cluster.

    Args:
        largest: the largest number of GPUs of one pod; None if the number is not known.
        total: the GPUs of all pods at the largest number of pods; None if the number is not known.
        pods: the largest number of pods, by the number of GPUs of each pod.
        idle: the name of a group without pods, and the GPUs that each of its pods would have.
        hiding: the path of an amount of 0 in num-gpus or `resources` of a group with a GPU limit; None if there is no
            such amount.
        limit: the GPU limit of the group with `hiding`; 0 without `hiding`.
        lowered: a clause about a group with `resources` or rayStartParams that set fewer GPUs than the limit.
        unread: the name of a container with GPUs that is not the first of its pod. KubeRay ignores its limits.
        detects: whether a group sets no number of GPUs. Ray then counts the GPUs that the container sees.
    """

    largest: int | None
    total: int | None
    hiding: FieldPath | None = None
    limit: int = 0
    lowered: str = ""
    unread: str = ""
    detects: bool = False
    pods: Mapping[int, int] = field(default_factory=dict)
    idle: tuple[str, int] = ("", 0)

    def count_pods_with(self, gpus: float) -> int:
        """Return how many pods have at least this number of GPUs."""
        return sum(pods for amount, pods in self.pods.items() if amount >= gpus)

    def has_idle_group_for(self, gpus: float) -> bool:
        """Return whether a group without pods would have this number of GPUs in a pod."""
        return self.idle[1] >= gpus

    def shortage_in_words(self, wanted: float) -> str:
        """Return a clause that says why no pod has the wanted GPUs."""
        if self.has_idle_group_for(wanted):
            return f"group `{self.idle[0]}` has 0 replicas, and the Ray cluster does not grow"
        if self.largest:
            because = f", because {self.lowered}" if self.lowered else ""
            return f"no pod of the Ray cluster has more than {self.largest}{because}"
        if self.unread:
            because = f"because KubeRay reads the limits of the first container, and `{self.unread}` is not the first"
            return f"no pod requests one for Ray, {because}"
        seen = ", so Ray waits unless a node shows all GPUs to every container" if self.detects else ""
        return f"no pod requests one for Ray{seen}"


def who_writes_ray_start(group: Group, metadata: Metadata) -> Literal["kuberay", "group", "group with rayStartParams"]:
    """Return who writes the command `ray start` of a group (common/pod.go).

    A group that starts Ray itself uses rayStartParams only if its command contains the variable with KubeRay's command.
    Then the answer is "group with rayStartParams".

    metadata: the metadata of the object, whose annotations KubeRay copies to the pods.
    """
    container = next(iter(group.template.spec.containers), None)
    words = "" if container is None else " ".join(str(each) for each in (*container.command, *container.args))
    is_own = any(_OWN_COMMAND in each.annotations for each in (metadata, group.template.metadata))
    if not is_own and "ray start" not in words:
        return "kuberay"
    return "group with rayStartParams" if _GENERATED in words else "group"


def read_ray_gpus(cluster: RayClusterSpec, metadata: Metadata) -> RayGpus:
    """Return the GPUs of a Ray cluster; `metadata` is the metadata of its object."""
    largest, total, hiding, hidden_limit, lowered, unread = 0, 0, None, 0, (0, ""), ""
    detects = False
    pods_with, idle = Counter[int](), ("", 0)
    for group in cluster.groups():
        gpus, limit = _gpus_of_group(group)
        pods = _most_pods_of_group(group, cluster)
        if gpus is None or pods is None or who_writes_ray_start(group, metadata) == "group":
            return RayGpus(largest=None, total=None)
        if pods:
            largest, total = max(largest, gpus), total + gpus * pods
            pods_with[gpus] += pods
        elif gpus > idle[1]:
            idle = (group.group_name, gpus)
        setting = ("resources", "GPU") if "GPU" in group.resources else ("rayStartParams", "num-gpus")
        if gpus == 0 and limit:
            hiding, hidden_limit = group.path(*setting), limit
        elif gpus < limit:
            lowered = max(lowered, (limit, f"{'.'.join(setting)} of a group overrides the limit of {limit}"))
        detects = detects or not (gpus or limit or _written_gpus(group) is not None)
        others = list(group.template.spec.containers)[1:] if not gpus else ()
        unread = next((each.name for each in others if not _COMPARABLE.isdisjoint(each.resources.limits)), unread)
    why = lowered[1] if lowered[0] > largest else ""
    return RayGpus(
        largest=largest,
        total=total,
        hiding=hiding,
        limit=hidden_limit,
        lowered=why,
        unread=unread,
        detects=detects,
        pods=pods_with,
        idle=idle,
    )


def _gpus_of_group(group: Group) -> tuple[int | None, int]:
    """Return the GPUs that Ray counts in a pod of a group (None if not known), and the GPU limit of the container."""
    container = next(iter(group.template.spec.containers), None)
    if container is None or container.resources.claims:
        return None, 0
    limit = 0
    for name, written in container.resources.limits.items():
        if name in _COMPARABLE:
            limit += quantity.read_count(written) or 0
        elif "/" in name and ("gpu" in name or "mig" in name or "tpu" in name):
            return None, 0
    gpus = _written_gpus(group)
    if gpus is None and not limit and (may_see_gpus(group) or has_other_accelerators(container)):
        return None, 0  # Ray counts the devices that the container sees
    return (limit if gpus is None else quantity.read_count(gpus)), limit


def may_see_gpus(group: Group) -> bool:
    """Return whether the first container of a group may see GPUs without a limit: by an annotation for a part of a GPU,
    a runtime class, or NVIDIA_VISIBLE_DEVICES.
    """
    names = {name for each in list(group.template.spec.containers)[:1] for name in each.environment.names}
    by_annotation = may_have_gpus_by_annotation(group.template.metadata)
    return by_annotation or bool(group.template.spec.runtime_class_name) or VISIBLE in names


def has_other_accelerators(container: Container) -> bool:
    """Return whether a container has accelerators that are not GPUs, such as the cores of AWS Neuron. Ray LLM may
    place models on these accelerators.
    """
    kinds = (device_of_resource_name(name) for name, amount in container.resources.limits.items() if amount)
    return any(device.kind and not device.gpu for device in kinds)


def _written_gpus(group: Group) -> str | None:
    """Return the number of GPUs in `resources` or rayStartParams of a group, as it is written."""
    return group.resources.get("GPU", group.ray_start_params.num_gpus or None)


def _most_pods_of_group(group: Group, cluster: RayClusterSpec) -> int | None:
    if group.at == cluster.head_group_spec.at:
        return 1
    written = [group.json.get(name) for name in ("replicas", "minReplicas", "maxReplicas")]
    if any(value is not None and not isinstance(value, int) for value in written):
        return None
    replicas, least, most = written
    pods = max(replicas or 0, least or 0)
    if cluster.enable_in_tree_autoscaling:
        pods = most if most is not None else _MOST
    hosts = group.json.get("numOfHosts")
    return pods * (hosts if isinstance(hosts, int) and hosts > 0 else 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaDemand:
    """The GPUs that a deployment of Serve needs in one pod, and in all replicas together.

    `sizes` are the parallel sizes for messages, and `setting` is the field with the number of replicas. `apart` has the
    GPUs of each bundle if Ray places each bundle in a different pod (STRICT_SPREAD).
    """

    name: str
    of_one_pod: float
    total: float
    replicas: int
    what: str = "num_gpus"
    sizes: str = ""
    setting: str = "num_replicas"
    apart: Sequence[float] = ()


def check_gpus_of_serve(subject: Subject) -> Iterator[Problem]:
    """Report deployments of Serve that need more GPUs than the RayService's cluster can have, or more CPUs than its
    largest pod has.
    """
    config = subject.once(read_serve_config)
    if config is None:
        return
    yield from _advise_bundles(config)
    yield from _check_cpus_of_serve(config, subject)
    gpus = read_ray_gpus(subject.typed(RayService).spec.ray_cluster_config, subject.metadata)
    demands = list(_demands_of_deployments(config, subject))
    if gpus.largest is None or gpus.total is None:
        return
    for demand in demands:
        if demand.of_one_pod and gpus.hiding is not None and gpus.largest < demand.of_one_pod <= gpus.limit:
            message = (
                f"is 0, which hides {counted(gpus.limit, 'GPU')} of the container from Ray, but {demand.name} needs "
            )
            name = gpus.hiding[-1]
            message += f"{_gpus_as_text(demand.of_one_pod)}, so {name} keeps the deployment waiting"
            yield HIDDEN_FROM_RAY.problem(gpus.hiding, message, f"remove {name}, and KubeRay sets it from the limit")
            return
        if demand.of_one_pod <= gpus.largest and (problem := _problem_of_bundles_apart(demand, gpus)) is not None:
            yield problem
            return
    too_large = [demand for demand in demands if demand.of_one_pod > gpus.largest]
    if too_large:
        yield _problem_of_too_large(too_large, gpus)
        return
    total = sum(demand.total for demand in demands)
    if total > gpus.total:
        largest = max(demands, key=lambda demand: demand.total)
        least = "at least " if largest.setting == _LEAST_REPLICAS else ""
        has = f"has {largest.sizes or least + counted(largest.replicas, 'replica')}"
        message = f"{largest.name} {has}, and all deployments need {_gpus_as_text(total)}, "
        message += f"but the Ray cluster has {gpus.total}"
        fix = f"lower {'the sizes' if largest.sizes else largest.setting}, or {_MORE_PODS}"
        yield _problem_of_too_few(message, fix)


def _check_cpus_of_serve(config: Mapping[str, Any], subject: Subject) -> Iterator[Problem]:
    """Report the deployment that needs the most CPUs of one pod, if no pod of the Ray cluster has so many."""
    largest = _most_cpus_of_a_pod(subject.typed(RayService).spec.ray_cluster_config, subject.metadata)
    if largest is None:
        return
    most, name = 0.0, ""
    for application in subject.deadline.charge_for_items(_maps(config.get("applications"))):
        for deployment in subject.deadline.charge_for_items(_maps(application.get("deployments"))):
            cpus = _cpus_of_one_pod(deployment)
            if cpus > most:
                most, name = cpus, str(deployment.get("name", ""))
    if most > largest:
        message = f"deployment `{name}` needs {_number_as_text(most)} CPUs of one pod, but no pod of the Ray cluster "
        fix = f"ask for {largest}, or give a group pods of {math.ceil(most)} CPUs"
        yield _problem_of_no_pod(f"{message}has more than {largest}", fix)


def _cpus_of_one_pod(deployment: Mapping[str, Any]) -> float:
    """Return how many CPUs one replica needs of one pod, as far as the configuration says."""
    bundles = [_number(bundle.get("CPU", 0)) or 0 for bundle in _maps(deployment.get("placement_group_bundles"))]
    if bundles:
        return sum(bundles) if deployment.get("placement_group_strategy") == "STRICT_PACK" else max(bundles)
    return _number(_map(deployment.get("ray_actor_options")).get("num_cpus", 0)) or 0


def _problem_of_too_large(demands: Sequence[ReplicaDemand], gpus: RayGpus) -> Problem:
    """Return the one problem of all deployments that need more GPUs of a pod than any pod has."""
    most = max(demands, key=lambda demand: demand.of_one_pod)
    others = [demand.name for demand in demands if demand is not most]
    likewise = f"; likewise {some_of(others, _SHOWN)}" if others else ""
    message = f"{most.name} needs {_gpus_as_text(most.of_one_pod)} of one pod ({most.what}{likewise}), "
    message += f"but {gpus.shortage_in_words(most.of_one_pod)}"
    if gpus.has_idle_group_for(most.of_one_pod):
        fix = _GROW
    elif gpus.unread and not gpus.largest:
        fix = f"put `{gpus.unread}` first"
    else:
        fix = f"ask for {gpus.largest}, or give a group pods of {counted(math.ceil(most.of_one_pod), 'GPU')}"
    return _problem_of_no_pod(message, fix)


def _problem_of_no_pod(message: str, fix: str) -> Problem:
    return NO_GROUP_WITH_GPUS.problem(_AT, message, fix)


def _problem_of_bundles_apart(demand: ReplicaDemand, gpus: RayGpus) -> Problem | None:
    """Return the problem of more bundles of one replica than pods, if Ray places each bundle in a different pod."""
    for size in sorted(set(demand.apart), reverse=True):
        bundles, pods = sum(each >= size for each in demand.apart), gpus.count_pods_with(size)
        if bundles > pods:
            of_each = f" with {_gpus_as_text(size)} or more" if size else ""
            message = f"{demand.name} needs {counted(bundles, 'pod')}{of_each} for one replica ({_APART}), "
            message += f"but the Ray cluster has {pods}"
            fix = f"{_MORE_PODS}, or set placement_group_strategy SPREAD"
            return _problem_of_too_few(message, fix)
    return None


def _problem_of_too_few(message: str, fix: str) -> Problem:
    return TOO_FEW_GPUS.problem(_AT, message, fix)


def _number_as_text(number: float) -> str:
    return f"{number:g}"


def _gpus_as_text(number: float) -> str:
    return f"{number:g} GPU{'' if number == 1 else 's'}"


def _demands_of_deployments(config: Mapping[str, Any], subject: Subject) -> Iterator[ReplicaDemand]:
    """Yield the demands that the configuration states. Demands in the code of an application are not known."""
    for application in subject.deadline.charge_for_items(_maps(config.get("applications"))):
        arguments = _map(application.get("args"))
        if application.get("import_path") == _LLM_APP:
            yield from _demands_of_llm_configs(_maps(arguments.get("llm_configs")), subject)
        elif application.get("import_path") == _LLM_APP_OF_TWO:
            halves = [_map(arguments.get(f"{half}_config")) for half in ("prefill", "decode")]
            yield from _demands_of_llm_configs(halves, subject)
        for deployment in subject.deadline.charge_for_items(_maps(application.get("deployments"))):
            demand = _demand_of_deployment(deployment)
            if demand is not None:
                yield demand


def _maps(value: Any) -> Sequence[Mapping[str, Any]]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def _map(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _demand_of_deployment(deployment: Mapping[str, Any]) -> ReplicaDemand | None:
    name = f"deployment `{deployment.get('name', '')}`"
    replicas = _replicas(deployment)
    bundles = _maps(deployment.get("placement_group_bundles"))
    if bundles:
        sizes = [_number(bundle.get("GPU", 0)) or 0 for bundle in bundles]
        strategy = deployment.get("placement_group_strategy")
        is_strict = strategy == "STRICT_PACK"
        what = "bundles with STRICT_PACK" if is_strict else "its largest bundle"
        one = sum(sizes) if is_strict else max(sizes)
        total = sum(sizes) * replicas
        return ReplicaDemand(
            name=name,
            of_one_pod=one,
            total=total,
            replicas=replicas,
            what=what,
            setting=_field_of_replicas(deployment),
            apart=sizes if strategy == _APART else (),
        )
    gpus = _number(_map(deployment.get("ray_actor_options")).get("num_gpus", 0))
    if not gpus:
        return None
    total, setting = gpus * replicas, _field_of_replicas(deployment)
    return ReplicaDemand(name=name, of_one_pod=gpus, total=total, replicas=replicas, setting=setting)


def _demands_of_llm_configs(configs: Sequence[Mapping[str, Any]], subject: Subject) -> Iterator[ReplicaDemand]:
    for config in subject.deadline.charge_for_items(configs):
        engine, model = _map(config.get("engine_kwargs")), _map(config.get("model_loading_config")).get("model_id", "")
        names_devices = any(config.get(name) for name in _NAMES_DEVICES)
        tensor, pipeline = (_number(engine.get(name, 1)) for name in ("tensor_parallel_size", "pipeline_parallel_size"))
        if names_devices or not config or not tensor or not pipeline:
            continue
        replicas = _replicas(_map(config.get("deployment_config")))
        gpus = tensor * pipeline
        sizes = f"tensor_parallel_size {_number_as_text(tensor)}"
        sizes += f" times pipeline_parallel_size {_number_as_text(pipeline)}" if pipeline > 1 else ""
        sizes += f" in {replicas} replicas" if replicas > 1 else ""
        name, total = f"model `{model}`", gpus * replicas
        yield ReplicaDemand(name=name, of_one_pod=1, total=total, replicas=replicas, what="a bundle", sizes=sizes)


def _replicas(deployment: Mapping[str, Any]) -> int:
    """Return how many replicas a deployment has at least."""
    scaling = deployment.get("autoscaling_config")
    number = _map(scaling).get(_LEAST_REPLICAS, 1) if scaling is not None else deployment.get("num_replicas", 1)
    return number if isinstance(number, int) and 0 <= number <= _MOST else 1


def _field_of_replicas(deployment: Mapping[str, Any]) -> str:
    """Return the field with the least number of replicas."""
    return "num_replicas" if deployment.get("autoscaling_config") is None else _LEAST_REPLICAS


def _number(value: Any) -> float | None:
    """Return a number from 0 to _MOST, also if it is written as a text; None for other values."""
    if isinstance(value, bool):
        return None
    try:
        number = float(value)
    except (TypeError, ValueError):
        return None
    return number if 0 <= number <= _MOST else None


def _advise_bundles(config: Mapping[str, Any]) -> Iterator[Problem]:
    for application in _maps(config.get("applications")):
        for model in _maps(_map(application.get("args")).get("llm_configs")):
            placement = _map(model.get("placement_group_config"))
            of_worker = _number(_map(placement.get("bundle_per_worker")).get("GPU", 0)) or 0
            if of_worker > 1:
                message = (
                    f"an LLM deployment has a bundle_per_worker of {_number_as_text(of_worker)} GPUs, but vLLM accepts "
                )
                yield LARGE_BUNDLE.problem(_AT, f"{message}only bundles of 1", "write GPU: 1 in bundle_per_worker")
                return
            sizes = [_number(bundle.get("GPU", 0)) or 0 for bundle in _maps(placement.get("bundles"))]
            if sizes and max(sizes) > 1:
                most = _number_as_text(max(sizes))
                message = f"an LLM deployment has a bundle of {most} GPUs, but vLLM accepts only bundles of 1"
                fix = f"write {_number_as_text(sum(sizes))} bundles of 1 GPU"
                yield LARGE_BUNDLE.problem(_AT, message, fix)
                return


def ray_job_spec_of(subject: Subject) -> RayJobSpec:
    """Return the spec of a RayJob, or of the RayJobs of a RayCronJob."""
    is_repeated = subject.group_kind == (RayCronJob.gvk.group, RayCronJob.gvk.kind)
    return subject.typed(RayCronJob).spec.job_template if is_repeated else subject.typed(RayJob).spec


def check_entrypoint_gpus(subject: Subject) -> Iterator[Problem]:
    """Report an entrypoint that needs more GPUs or CPUs than any pod of the job's cluster has."""
    spec = ray_job_spec_of(subject)
    if not spec.has_cluster:
        return
    wanted = _number(spec.json.get("entrypointNumGpus", 0))
    gpus = read_ray_gpus(spec.ray_cluster_spec, subject.metadata) if wanted else None
    if wanted and gpus is not None and gpus.largest is not None and wanted > gpus.largest:
        message = f"needs {_gpus_as_text(wanted)} of one pod, but {gpus.shortage_in_words(wanted)}"
        has_idle = gpus.has_idle_group_for(wanted)
        fix = _GROW if has_idle else f"set entrypointNumGpus {gpus.largest}, or add GPUs to the pods of a group"
        at = spec.path("entrypointNumGpus")
        yield ENTRYPOINT_GPUS.problem(at, f"{message}, so the job fails after 900 s", fix)
    wanted = _number(spec.json.get("entrypointNumCpus", 0))
    cpus = _most_cpus_of_a_pod(spec.ray_cluster_spec, subject.metadata) if wanted else None
    if wanted and cpus is not None and wanted > cpus:
        message = f"needs {_number_as_text(wanted)} CPUs of one pod, but no pod of the Ray cluster has more than {cpus}"
        fix = f"set entrypointNumCpus {cpus}, or add CPUs to the pods of a group"
        at = spec.path("entrypointNumCpus")
        yield ENTRYPOINT_GPUS.problem(at, f"{message}, so the job fails after 900 s", fix)


def _most_cpus_of_a_pod(cluster: RayClusterSpec, metadata: Metadata) -> int | None:
    """Return the largest number of CPUs of one pod; None if the number of a group is not known."""
    most = 0
    for group in cluster.groups():
        container = next(iter(group.template.spec.containers), None)
        limit = None if container is None else container.resources.limits.get("cpu")
        # Without a limit above 0, the number is not known: later releases of KubeRay pass the request to Ray, and with
        # older releases Ray counts all CPUs of the node.
        is_set = limit is not None and not is_nothing(limit)
        number_for_ray = group.resources.get(
            "CPU", group.ray_start_params.json.get("num-cpus", limit if is_set else None)
        )
        read = quantity.read_quantity_or_none(number_for_ray) if number_for_ray is not None else None
        if read is None or who_writes_ray_start(group, metadata) == "group":
            return None
        most = max(most, read.value())
    return most


def check_resources_of_groups(cluster: RayClusterSpec) -> Iterator[Problem]:
    """Report groups that set the same resource twice, which KubeRay refuses."""
    for group in cluster.groups():
        twice = [name for name in _NAMES if name in group.resources and _NAMES[name] in group.ray_start_params.json]
        if twice:
            message = f"sets {twice[0]} in resources and {_NAMES[twice[0]]} in rayStartParams, which KubeRay refuses"
            yield RESOURCES_TWICE.problem(
                group.path("resources", twice[0]), message, f"remove {_NAMES[twice[0]]} from rayStartParams"
            )
