"""What KubeRay's operator refuses in a RayCluster, a RayJob or a RayService, and the checks of Ray's kinds.

The operator reports a refused object in an event, after the object is stored. Names of RayJobs and RayServices must be
six characters shorter than names of RayClusters, because KubeRay appends six characters to name the cluster. Rules that
depend on feature gates of the operator, or on fault tolerance, are not checked here. KubeRay passes rayStartParams to
`ray start`. If rayStartParams do not set num-gpus, KubeRay sets num-gpus from the limits of the first container. If
num-gpus is below the GPUs of the container, Ray places too few GPU tasks in the pod. If num-gpus is 0, Ray places no
GPU tasks in the pod. Since 1.5, `resources` of a group replace rayStartParams.

Source: ray-project/kuberay v1.4.2 ray-operator/controllers/ray/utils/validation.go and constant.go;
ray-project/kuberay@feeaf72f ray-operator/controllers/ray/common/pod.go addWellKnownAcceleratorResources and
updateRayStartParamsResources, utils/resources.go IsGPUResourceKey.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from msgspec import structs

from webhook.apimachinery import paths
from webhook.apimachinery.attributes import CRD
from webhook.apimachinery.names import (
    dns1035_label_errors,
    label_fault,
    label_fix,
)
from webhook.apimachinery.paths import FieldPath, path_as_text
from webhook.apimachinery.releases import Release, release_as_text
from webhook.facts.command_lines.shell import word_after_first_command
from webhook.facts.ray.gpus_of_groups import (
    check_entrypoint_gpus,
    check_gpus_of_serve,
    check_resources_of_groups,
    may_see_gpus,
    ray_job_spec_of,
    who_writes_ray_start,
)
from webhook.facts.ray.releases import RAY, check_ray_releases, installed_kuberay
from webhook.facts.ray.serve_config import check_serve_config
from webhook.facts.subject import Check, Subject, group_kinds_of_types
from webhook.rules.problem import Problem
from webhook.schema.decode import described
from webhook.text.wording import counted, shown
from webhook.typed.objects import Object
from webhook.typed.pods import Container
from webhook.typed.ray import Group, RayCluster, RayClusterSpec, RayCronJob, RayJob, RayService
from webhook.typed.view import Typed
from webhook.yamltext.placeholders import is_placeholder, is_placeholder_for_name

NAME: Final = RAY.rule(
    "ray/name",
    title="The name of the Ray object is invalid or too long",
    why=(
        "The API server accepts the object, but KubeRay creates no pod. An event says that the name is too long or not "
        "a DNS label."
    ),
    function="ValidateRayClusterMetadata",
)
CLUSTER_REQUIRED: Final = RAY.rule(
    "ray/cluster-required",
    title="The RayJob or RayService has no cluster",
    why="KubeRay creates no pod without a Ray cluster, and sets the RayJob to failed.",
    function="ValidateRayJobSpec",
)
HEAD_REQUIRED: Final = RAY.rule(
    "ray/head-required",
    title="The Ray cluster has no head group",
    why="The API server refuses a Ray cluster without headGroupSpec.",
    refused_by="the API server",
    source="ray-project/kuberay@feeaf72f ray-operator/config/crd/bases",
    level="warn",
    fails="create",
)
POD_FIELD: Final = RAY.rule(
    "ray/pod-field",
    title="A field of pods is outside the pod templates of the Ray cluster",
    why=(
        "Only the pod template of each group has fields of pods, such as volumes. kubectl refuses the object, and for "
        "other clients the API server drops the field."
    ),
    refused_by="kubectl; the API server drops the field",
    source="ray-project/kuberay@feeaf72f ray-operator/config/crd/bases",
    level="warn",
    fails="silent",
)
SUSPEND: Final = RAY.rule(
    "ray/suspend",
    title="The suspended RayJob does not shut down its cluster",
    why="KubeRay suspends a job by deleting its cluster, and refuses jobs that keep their cluster.",
    function="ValidateRayJobSpec",
)
TTL: Final = RAY.rule(
    "ray/ttl",
    title="The RayJob has a TTL but does not shut down its cluster",
    why="KubeRay deletes the cluster after the TTL. KubeRay 1.4 and later refuse a TTL if the job keeps its cluster.",
    source="ray-project/kuberay v1.7.0 ray-operator/controllers/ray/utils/validation.go",
    function="validateDeletionConfiguration",
)
REPLICA_BOUNDS: Final = RAY.rule(
    "ray/replica-bounds",
    title="minReplicas of a Ray group is above maxReplicas",
    why=(
        "KubeRay 1.6 and later create no pods for these bounds, or for negative bounds. Older releases ignore one of "
        "the two bounds."
    ),
    source="ray-project/kuberay v1.7.0 ray-operator/controllers/ray/utils/validation.go",
    function="ValidateRayClusterSpec",
)
REPLICAS_OUT_OF_BOUNDS: Final = RAY.rule(
    "ray/replicas-out-of-bounds",
    title="replicas of a Ray group is not between minReplicas and maxReplicas",
    why="KubeRay starts minReplicas or maxReplicas pods instead, without a message.",
    source="ray-project/kuberay v1.7.0 ray-operator/controllers/ray/utils/util.go",
    function="GetWorkerGroupDesiredReplicas",
    refused_by="nothing; KubeRay starts another number of pods",
    fails="silent",
)
CONTAINERS_REQUIRED: Final = RAY.rule(
    "ray/containers-required",
    title="The Ray group has no container",
    why="Ray runs in the first container of a group. Without a container, KubeRay creates no pods.",
    function="ValidateRayClusterSpec",
)
NUM_GPUS: Final = RAY.rule(
    "ray/num-gpus",
    title="Ray counts more GPUs than the container has",
    why="Ray starts a task for each GPU that it counts, and tasks without a GPU fail.",
    refused_by="",
    source="ray-project/kuberay@feeaf72f ray-operator/controllers/ray/common/pod.go",
    function="addWellKnownAcceleratorResources",
    fails="start",
)
GPUS_WITHOUT_REQUEST: Final = RAY.rule(
    "ray/gpus-without-request",
    title="Ray counts GPUs but the container requests no GPU",
    why=(
        "Ray starts tasks for these GPUs, but Kubernetes gives the container no GPU, and may choose a node without "
        "GPUs."
    ),
    refused_by="",
    source="ray-project/kuberay@feeaf72f ray-operator/controllers/ray/common/pod.go",
    function="updateRayStartParamsResources",
    fails="start",
)
PARAMETER_TYPE: Final = RAY.rule(
    "ray/parameter-type",
    title="A parameter of a Ray group is not a string",
    why="rayStartParams and resources of a group have only strings as values, so the API server refuses the object.",
    refused_by="the API server",
    source="ray-project/kuberay@feeaf72f ray-operator/config/crd/bases",
    fails="create",
)
JSON_PARAMETER: Final = RAY.rule(
    "ray/json-parameter",
    title="The shell removes the quotes of a JSON parameter of `ray start`",
    why=(
        "KubeRay writes rayStartParams without quotes into the command of a shell. The shell removes the quotes inside "
        "the JSON, so `ray start` fails, and the container restarts for ever."
    ),
    refused_by="`ray start`",
    source="ray-project/kuberay@feeaf72f ray-operator/controllers/ray/common/pod.go",
    function="convertParamMap",
    fails="start",
    issues=(
        "https://github.com/ray-project/kuberay/issues/1984",
        "https://github.com/ray-project/kuberay/issues/1758",
    ),
)
SEVERAL_COMMANDS: Final = RAY.rule(
    "ray/several-commands",
    title="Only the first command of the entrypoint runs in the Ray cluster",
    why=(
        "KubeRay 1.3 and later write the entrypoint into a shell script of the submitter, after `ray job submit --`. "
        "The shell ends this command at the first `;`, `&&`, `||` or new line, and runs the other commands itself, "
        "outside the cluster and without its GPUs."
    ),
    refused_by="nothing; the other commands run in the submitter",
    source="ray-project/kuberay v1.4.2 ray-operator/controllers/ray/common/job.go",
    function="BuildJobSubmitCommand",
    level="warn",
    fails="silent",
    issues=("https://github.com/ray-project/kuberay/issues/3929",),
)
_FIELDS_OF_PODS: Final = frozenset(
    (
        *("affinity", "containers", "hostNetwork", "imagePullSecrets", "initContainers", "nodeName", "nodeSelector"),
        *("priorityClassName", "restartPolicy", "runtimeClassName", "schedulerName", "securityContext"),
        *("serviceAccountName", "tolerations", "topologySpreadConstraints", "volumes"),
    )
)
"""Fields of a PodSpec that no object of KubeRay has beside its pod templates."""
_CONTAINERS: Final = ("containers", "initContainers")
_OF_GROUPS: Final = "the pod template of each group"
_KIND_OF_FIELD: Final = {"rayClusterSpec": "RayJob", "rayClusterConfig": "RayService"}
"""The kinds that have a Ray cluster in a field of their spec."""
_LONGEST: Final[Mapping[str, int]] = {"RayCluster": 53, "RayJob": 47, "RayService": 47}
_QUOTE: Final = "put it in quotes"
_SHARES_GPUS: Final = "RAY_EXPERIMENTAL_NOSET_CUDA_VISIBLE_DEVICES"
"""With this variable, Ray does not set CUDA_VISIBLE_DEVICES, so that several tasks may use one GPU."""
_BLANK: Final = "..."
"""A placeholder for a field that a user fills in."""
_SELECTED: Final = "ray.io/cluster"
_JSON_PARAMETERS: Final = ("resources", "system-config")
"""The parameters of `ray start` that are JSON."""
_NOT_PLAIN: Final = re.compile(r"['\\]")
"""A quote or a backslash, which may keep quotes of JSON in a shell."""
_LONGEST_JSON: Final = 4096
_REWRITTEN_FOR: Final = frozenset(("aws.amazon.com/neuroncore", "google.com/tpu"))
"""Devices that KubeRay adds to the parameter `resources`. KubeRay then writes this parameter in quotes."""
_SCRIPT_OF_SUBMITTER: Final[Release] = (1, 3)
"""The first release of KubeRay that writes the entrypoint into a shell script."""
_BY_SCRIPT: Final = ("", "K8sJobMode", "SidecarMode")
"""The submission modes with a script. In the others, the shell on the head of the cluster gets the whole entrypoint."""
_REFUSES_TTL: Final[Release] = (1, 4)
"""The first release of KubeRay that refuses ttlSecondsAfterFinished in a RayJob that keeps its cluster."""
_COUNT: Final = re.compile("[0-9]{1,6}", re.ASCII)
_MIG: Final = "nvidia.com/mig-"


def validate_name(subject: Subject) -> Iterator[Problem]:
    """Check the name as ValidateRayClusterMetadata and similar functions do. Names of Services contain the name of the
    cluster.
    """
    name = subject.typed(Object).name
    if not name or is_placeholder_for_name(name):
        return
    longest = _LONGEST[subject.group_kind[1]]
    if len(name) > longest:
        message = f"must not be longer than {longest} characters because names of Services contain this name"
        yield NAME.problem("metadata.name", message, f"remove {counted(len(name) - longest, 'character')}", name)
    elif dns1035_label_errors(name):
        message = f"cannot be a part of the names of services because {label_fault(name, begins_with_letter=True)}"
        fix = label_fix(name, begins_with_letter=True)
        yield NAME.problem("metadata.name", message, fix, name)


def validate_ray_job_spec(subject: Subject) -> Iterator[Problem]:
    """Check as ValidateRayJobSpec does whether the job can be suspended."""
    spec = subject.typed(RayJob).spec
    selector = spec.cluster_selector
    if spec.suspend and (selector or not spec.shutdown_after_job_finishes):
        why = "runs on an existing Ray cluster" if selector else "keeps its Ray cluster"
        message = f"is not allowed for a job that {why}, because KubeRay suspends a job by deleting its Ray cluster"
        fix = "remove suspend" if selector else "set spec.shutdownAfterJobFinishes to true, or remove suspend"
        yield SUSPEND.problem(spec.path("suspend"), message, fix, shown="`true`")


def check_cluster_required(subject: Subject) -> Iterator[Problem]:
    """Require a Ray cluster for a RayJob, as ValidateRayJobSpec does, and for a RayService, as its CRD does."""
    service, spec = subject.typed(RayService).spec, subject.typed(RayJob).spec
    if subject.group_kind[1] == RayService.gvk.kind:
        if service.json and not service.ray_cluster_config:
            message = "has no rayClusterConfig, so the service has no Ray cluster to run on"
            yield CLUSTER_REQUIRED.problem("spec", message, "set rayClusterConfig with a head group")
    elif spec.cluster_selector and not spec.cluster_selector.get(_SELECTED):
        message = f"must name a RayCluster by the key {_SELECTED} because KubeRay reads no other key"
        yield CLUSTER_REQUIRED.problem("spec.clusterSelector", message, f"set {_SELECTED}")
    elif not spec.cluster_selector and not spec.ray_cluster_spec:
        message = "has neither rayClusterSpec nor clusterSelector, so the job has no Ray cluster to run on"
        fix = "set rayClusterSpec, or select a Ray cluster with clusterSelector"
        yield CLUSTER_REQUIRED.problem("spec", message, fix)


def check_head_required(subject: Subject) -> Iterator[Problem]:
    """Require a head group, as the CustomResourceDefinitions do. The fix names another kind if the spec has a field of
    this other kind.
    """
    spec = ray_cluster_spec_of(subject)
    is_omitted = any(place[: len(spec.at)] == spec.at for place in subject.omitted)
    is_filled_in_later = is_omitted or any(spec.json.get(name) == _BLANK for name in spec.json)
    if not spec.json or spec.has("headGroupSpec") or is_filled_in_later:
        return
    fix = "add headGroupSpec"
    if subject.group_kind[1] == RayCluster.gvk.kind:
        kinds = [kind for field, kind in _KIND_OF_FIELD.items() if spec.has(field)]
        fix = f"write kind: {kinds[0]}, which has the fields of this spec" if kinds else fix
    yield HEAD_REQUIRED.problem(spec.at, "has no headGroupSpec, so the API server refuses the object", fix)


def check_pod_fields(subject: Subject) -> Iterator[Problem]:
    """Report fields of pods beside the groups of a Ray cluster, beside the pod template of a group, and beside the spec
    of this template. If the files have the CustomResourceDefinition, `manifest-shape/unknown-field` reports the fields.
    """
    crd = f"{subject.attributes.resource.resource}.{subject.attributes.kind.group}"
    if subject.cluster_view().get_without_noting(CRD, "", crd) is not None:
        return
    cluster = ray_cluster_spec_of(subject)
    outer = [subject.typed(RayCluster).spec, subject.typed(RayCronJob).spec.job_template, cluster]
    parts: list[tuple[Typed, str]] = [(each, _OF_GROUPS) for each in {each.at: each for each in outer}.values()]
    for group in cluster.groups():
        inner = path_as_text(group.template.path("spec"))
        parts += [(group, inner), (group.template, inner)]
    for part, target in parts:
        names = [name for name in part.json if name in _FIELDS_OF_PODS and part.json[name] is not None]
        if names:
            what = "is a field" if len(names) == 1 else "are fields"
            message = f"{what} of pods and not of this object, so kubectl refuses the object, or nothing uses the value"
            fix = _fix_of_pod_fields(names, target)
            shown = ", ".join(f"`{name}`" for name in names)
            if len(names) == 1:
                yield POD_FIELD.problem(part.path(names[0]), message, fix)
            else:
                yield POD_FIELD.problem(part.at, f"{shown} {message}", fix)


def _fix_of_pod_fields(names: Sequence[str], target: str) -> str:
    """Return where fields of pods belong. The target has containers of its own, so containers are added to them."""
    added = " and ".join(f"`{name}`" for name in names if name in _CONTAINERS)
    moved = [f"`{name}`" for name in names if name not in _CONTAINERS]
    shown = "the field" if len(names) == 1 else ", ".join(moved) if added else "the fields"
    fixes = [f"move {shown} to {target}"] if moved else []
    place = "the pod template of a group" if target == _OF_GROUPS else target
    fixes += [f"add the entries of {added} to {place}, or remove {added}"] if added else []
    return ", and ".join(fixes)


def check_time_to_live(subject: Subject) -> Iterator[Problem]:
    """Report a negative TTL, and a TTL of a job that keeps its Ray cluster (validateDeletionConfiguration)."""
    job = subject.typed(RayCronJob).spec.job_template
    spec = job if subject.group_kind[1] == RayCronJob.gvk.kind else subject.typed(RayJob).spec
    seconds = spec.ttl_seconds_after_finished
    if not seconds:
        return
    path = spec.path("ttlSecondsAfterFinished")
    if seconds < 0:
        yield TTL.problem(path, "must not be negative because KubeRay refuses the job", "set 0 or more", seconds)
    elif not spec.shutdown_after_job_finishes:
        installed = installed_kuberay(subject.cluster_view())
        if installed is not None and installed.release < _REFUSES_TTL:
            return
        message = (
            f"is refused by KubeRay {release_as_text(_REFUSES_TTL)} and later because the job keeps its Ray cluster"
        )
        fix = f"set {paths.path_as_text(spec.path('shutdownAfterJobFinishes'))} to true, or remove the TTL"
        yield TTL.problem(path, message, fix, seconds)


def check_replica_bounds(subject: Subject) -> Iterator[Problem]:
    """Report bounds that ValidateRayClusterSpec refuses, and replicas that KubeRay changes to a bound."""
    for group in ray_cluster_spec_of(subject).worker_group_specs:
        lowest, highest, replicas = group.min_replicas, group.max_replicas, group.replicas
        negative = [(name, n) for name, n in (("minReplicas", lowest), ("maxReplicas", highest)) if n and n < 0]
        for name, number in negative:
            message = "must not be negative because KubeRay 1.6 and later refuse the cluster"
            yield REPLICA_BOUNDS.problem(group.path(name), message, "set 0 or more", number)
        if negative or group.json.get("suspend") is True:
            continue
        if lowest is not None and highest is not None and lowest > highest:
            message = f"must not be above maxReplicas `{highest}` because KubeRay 1.6 and later refuse the cluster"
            fix = f"set at most {highest}, or raise maxReplicas"
            yield REPLICA_BOUNDS.problem(group.path("minReplicas"), message, fix, lowest)
        elif replicas and highest is not None and replicas > highest:
            message = f"is above maxReplicas `{highest}`, so KubeRay starts {counted(highest, 'replica')}"
            fix = f"set at most {highest}, or raise maxReplicas"
            yield REPLICAS_OUT_OF_BOUNDS.problem(group.path("replicas"), message, fix, replicas)
        elif replicas and lowest is not None and replicas < lowest:  # the API server stores unset replicas as 0
            message = f"is below minReplicas `{lowest}`, so KubeRay starts {counted(lowest, 'replica')}"
            fix = f"set {lowest} or more, or lower minReplicas"
            yield REPLICAS_OUT_OF_BOUNDS.problem(group.path("replicas"), message, fix, replicas)


def validate_parameter_types(subject: Subject) -> Iterator[Problem]:
    """Report the first parameter of each group that is not a string, as the CustomResourceDefinition requires."""
    for group in ray_cluster_spec_of(subject).groups():
        written = (("rayStartParams", group.ray_start_params.json), ("resources", group.resources))
        values = ((at, *item) for at, parameters in written for item in parameters.items())
        wrong = next((each for each in values if each[2] is not None and not isinstance(each[2], str)), None)
        if wrong is not None:
            at, name, value = wrong
            yield PARAMETER_TYPE.problem(group.path(at, name), f"must be a string, not {described(value)}", _QUOTE)


def check_json_parameters(subject: Subject) -> Iterator[Problem]:
    """Report JSON in rayStartParams without quotes for the shell (convertParamMap), once for all groups."""
    values = [
        (group.ray_start_params.path(name), group.ray_start_params.json.get(name))
        for group in ray_cluster_spec_of(subject).groups()
        for name in (_JSON_PARAMETERS if _is_command_of_kuberay(group, subject) else ())
    ]
    wrong = [(at, value) for at, value in values if isinstance(value, str) and _is_json_without_quotes_for_shell(value)]
    if not wrong:
        return
    at, value = wrong[0]
    message = "loses its quotes in the shell that runs `ray start`, so `ray start` refuses the value"
    quoted = json.dumps(f"'{value.strip()}'", ensure_ascii=False)
    problem = JSON_PARAMETER.problem(at, message, f"add single quotes for the shell: `{at[-1]}: {quoted}`", value)
    yield structs.replace(problem, also=tuple(paths.path_as_text(other) for other, _ in wrong[1:]))


def check_commands_of_entrypoint(subject: Subject) -> Iterator[Problem]:
    """Report an entrypoint of several commands, unless the submitter has an own command, or an older KubeRay is
    installed.
    """
    spec = ray_job_spec_of(subject)
    submitter = next(iter(spec.submitter_pod_template.spec.containers), None)
    if spec.submission_mode not in _BY_SCRIPT or is_placeholder(spec.entrypoint) or (submitter and submitter.command):
        return
    operator = installed_kuberay(subject.cluster_view())
    rest = word_after_first_command(spec.entrypoint, subject.deadline)
    if rest and (operator is None or operator.release >= _SCRIPT_OF_SUBMITTER):
        message = "has several commands; KubeRay 1.3 and later run only the first one in the Ray cluster"
        message = f"{message}, and the rest, from `{shown(rest)}` on, in the submitter"
        fix = "write one command, such as bash -c '…', or set submissionMode: HTTPMode"
        yield SEVERAL_COMMANDS.problem(spec.path("entrypoint"), message, fix)


def _is_command_of_kuberay(group: Group, subject: Subject) -> bool:
    """Return whether KubeRay certainly runs `ray start` in a group with the parameters as they are written."""
    container = next(iter(group.template.spec.containers), None)
    if container is None or container.is_omitted("resources") or group.resources:
        return False
    is_rewritten = not _REWRITTEN_FOR.isdisjoint(container.resources.written_limits)
    return not is_rewritten and who_writes_ray_start(group, subject.metadata) == "kuberay"


def _is_json_without_quotes_for_shell(text: str) -> bool:
    """Return whether a text is a JSON object with keys, and a shell removes the quotes in the text."""
    if len(text) > _LONGEST_JSON or _NOT_PLAIN.search(text):
        return False
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return False
    return isinstance(value, dict) and bool(value)


def check_groups_have_containers(subject: Subject) -> Iterator[Problem]:
    """Require a container in every group of a Ray cluster (ValidateRayClusterSpec)."""
    for group in ray_cluster_spec_of(subject).groups():
        pod = group.template.spec
        if pod.json.get("containers") == []:  # the schema refuses a template without the list
            message = "has no container, but Ray runs in a container"
            yield CONTAINERS_REQUIRED.problem(pod.path("containers"), message, "add a container")


def ray_cluster_spec_of(subject: Subject) -> RayClusterSpec:
    """Return the RayClusterSpec of a RayCluster, RayJob, RayService or RayCronJob."""
    match subject.group_kind[1]:
        case "RayCluster":
            return subject.typed(RayCluster).spec
        case "RayJob":
            return subject.typed(RayJob).spec.ray_cluster_spec
        case "RayService":
            return subject.typed(RayService).spec.ray_cluster_config
        case _:
            return subject.typed(RayCronJob).spec.job_template.ray_cluster_spec


def validate_num_gpus(subject: Subject) -> Iterator[Problem]:
    """Report groups that set more GPUs for Ray than the container has."""
    for group in ray_cluster_spec_of(subject).groups():
        num_gpus = _num_gpus_of_group(group)
        container = next(iter(group.template.spec.containers), None)
        if num_gpus is None or container is None or container.resources.claims:
            continue
        if who_writes_ray_start(group, subject.metadata) == "group" or _SHARES_GPUS in container.environment.names:
            continue
        at, written = num_gpus
        gpus = _gpu_limit_of_container(container)
        if 0 < gpus < int(written):
            message = (
                f"must not be more than the {counted(gpus, 'GPU')} of the container because Ray otherwise starts work "
                "for GPUs that do not exist"
            )
            name = at[-1]
            yield NUM_GPUS.problem(at, message, f"remove {name}, so that KubeRay sets it from the limits", written)
        elif int(written) and not _may_have_gpus(container, group):
            message = (
                "tells Ray of GPUs, but the container requests none, so tasks get no GPU unless the node shows GPUs to "
                "every container"
            )
            fix = f"set the GPU limit of the container to {written}, or remove this field"
            yield GPUS_WITHOUT_REQUEST.problem(at, message, fix, written)


def _num_gpus_of_group(group: Group) -> tuple[FieldPath, str] | None:
    """Return the path and the text of the number of GPUs for Ray in a group; None if not set or not known."""
    written = {name: str(value) for name, value in group.resources.items() if name.lower().endswith("gpu")}
    params = group.ray_start_params
    named = [(group.path("resources", name), value) for name, value in written.items()]
    numbers = named or [(params.path("num-gpus"), params.num_gpus)]
    return numbers[0] if len(numbers) == 1 and _COUNT.fullmatch(numbers[0][1]) else None


def _gpu_limit_of_container(container: Container) -> int:
    """Return how many GPUs a container has by its limits."""
    limits = container.resources.limits.items()
    amounts = (str(value) for name, value in limits if name.endswith("gpu") or name.startswith(_MIG))
    return sum(int(amount) for amount in amounts if _COUNT.fullmatch(amount))


def _may_have_gpus(container: Container, group: Group) -> bool:
    """Return whether a container may have GPUs without a limit: by a share, a runtime class, or a placeholder. A share
    has a resource name of its own, or an annotation.
    """
    resources = container.resources
    sides = (resources.written_limits, resources.written_requests)
    is_open = any(
        each.is_omitted(name) for each in (container, resources) for name in ("resources", "limits", "requests")
    )
    is_named = any("/" in name for side in sides for name in side)
    return is_named or is_open or may_see_gpus(group) or bool(container.env_from)


def validate_group_resources(subject: Subject) -> Iterator[Problem]:
    """Report groups that set an amount for Ray in two places (ValidateRayClusterSpec)."""
    yield from check_resources_of_groups(ray_cluster_spec_of(subject))


_RAY: Final = group_kinds_of_types(RayCluster, RayJob, RayService, RayCronJob)
_OF_OPERATOR: Final = group_kinds_of_types(RayCluster, RayJob, RayService)

CHECKS: Final = (
    Check(group="ray", run=validate_name, kinds=_OF_OPERATOR),
    Check(group="ray", run=validate_ray_job_spec, kinds=group_kinds_of_types(RayJob)),
    Check(group="ray", run=check_time_to_live, kinds=group_kinds_of_types(RayJob, RayCronJob)),
    Check(group="ray", run=check_cluster_required, kinds=group_kinds_of_types(RayJob, RayService)),
    Check(group="ray", run=check_head_required, kinds=_RAY),
    Check(group="ray", run=check_pod_fields, kinds=_RAY),
    Check(group="ray", run=check_replica_bounds, kinds=_RAY),
    Check(group="ray", run=validate_parameter_types, kinds=_RAY),
    Check(group="ray", run=check_json_parameters, kinds=_RAY),
    Check(group="ray", run=check_groups_have_containers, kinds=_RAY),
    Check(group="ray", run=validate_num_gpus, kinds=_RAY),
    Check(group="ray", run=validate_group_resources, kinds=_RAY),
    Check(group="ray", run=check_serve_config, kinds=group_kinds_of_types(RayService)),
    Check(group="ray", run=check_gpus_of_serve, kinds=group_kinds_of_types(RayService)),
    Check(group="ray", run=check_entrypoint_gpus, kinds=group_kinds_of_types(RayJob, RayCronJob)),
    Check(group="ray", run=check_commands_of_entrypoint, kinds=group_kinds_of_types(RayJob, RayCronJob)),
    Check(group="ray", run=check_ray_releases, kinds=_OF_OPERATOR),
)
