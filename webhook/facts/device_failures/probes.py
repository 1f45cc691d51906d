"""Advice on probes and disruption budgets of model servers with devices.

A livenessProbe may kill a server before the server has loaded the model. So may a startupProbe that allows too little
time. The kubelet waits initialDelaySeconds, probes every periodSeconds, and kills the container after failureThreshold
failures in a row. Other probes begin only after a startupProbe has succeeded. model_servers.yaml lists the programs
that answer only when the model is loaded. Without a readinessProbe, requests arrive before the server is ready. Without
a PodDisruptionBudget, a drain may stop all servers at once.

KServe, and the operator of NIM, make the container from several objects. Only probes that these objects certainly
have are compared with the time to load.

Source: k8s.io/kubernetes v1.36 pkg/kubelet/prober/worker.go doProbe; NVIDIA/k8s-nim-operator@f63f74d7
api/apps/v1alpha1/nimservice_types.go; kserve/kserve@aaac4e294 pkg/controller/v1beta1/inferenceservice/components.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Final

from msgspec import Struct

from webhook.apimachinery.attributes import JSON
from webhook.apimachinery.paths import FieldPath, path_as_text
from webhook.cluster.interest import Index, interest_in_fields
from webhook.facts.device_failures.types import DEVICE_FAILURES, is_named_as_trial
from webhook.facts.gpu.device_pods import (
    BATCH,
    SERVING,
    DevicePods,
    count_devices_of_container,
    read_device_workload,
)
from webhook.facts.kinds import LEADER_WORKER_SET
from webhook.facts.subject import Subject
from webhook.facts.view import ClusterView
from webhook.rules.problem import MissingObject, Problem
from webhook.typed.cluster_objects import PodDisruptionBudget
from webhook.typed.objects import Object
from webhook.typed.pods import Container, LabelSelector, Probe
from webhook.typed.serving import (
    ClusterServingRuntime,
    InferenceService,
    LlmInferenceService,
    NimService,
    ServingRuntime,
)
from webhook.typed.worker_sets import LeaderWorkerSet
from webhook.yamltext import yamlfile

LIVENESS_PROBE: Final = DEVICE_FAILURES.rule(
    "device-failures/liveness-probe",
    title="The probe kills the server before its model is loaded",
    why=(
        "vLLM, SGLang, TGI and other servers answer only when the model is loaded. If a probe fails earlier, the "
        "kubelet kills the container. The server starts again and never serves."
    ),
    source="k8s.io/kubernetes v1.36 pkg/kubelet/prober/worker.go",
    function="doProbe",
    fails="start",
    issues=(
        "https://github.com/kserve/kserve/issues/5062",
        "https://github.com/opendatahub-io/kserve/pull/1161",
    ),
)
LIVENESS_WITHOUT_STARTUP: Final = DEVICE_FAILURES.rule(
    "device-failures/liveness-without-startup",
    title="A server with devices has a livenessProbe but no startupProbe",
    why="Programs that use devices often take longer to start than a livenessProbe with its default values allows.",
    source="https://kubernetes.io/docs/concepts/configuration/liveness-readiness-startup-probes/",
    level="advice",
    severity="low",
    fails="start",
)
READINESS_PROBE: Final = DEVICE_FAILURES.rule(
    "device-failures/readiness-probe",
    title="A server with devices has no readinessProbe",
    why=(
        "Without a readinessProbe or a startupProbe, a Service sends requests as soon as the container runs, minutes "
        "before a large model is loaded."
    ),
    source="https://kubernetes.io/docs/concepts/configuration/liveness-readiness-startup-probes/",
    severity="low",
)
DISRUPTION_BUDGET: Final = DEVICE_FAILURES.rule(
    "device-failures/disruption-budget",
    title="Servers with devices have no PodDisruptionBudget",
    why="A node drain then stops all servers at once, and new pods take minutes to load their models.",
    source="https://kubernetes.io/docs/tasks/run-application/configure-pdb/",
    severity="low",
)
MODEL_SERVERS_FILE: Final = Path(__file__).with_name("model_servers.yaml")
SERVICES: Final = frozenset((("ray.io", "RayService"), ("serving.kserve.io", "InferenceService")))
"""Kinds with controllers that add labels and probes to the pods that answer requests."""
_REPLACED: Final = SERVING | frozenset(
    (
        ("", "ReplicationController"),
        ("apps", "ReplicaSet"),
        ("argoproj.io", "Rollout"),
        *(("apps.kruise.io", kind) for kind in ("CloneSet", "StatefulSet")),
    )
)
"""Kinds with one pod template. All pods of the template answer requests."""
OTHER_SERVERS: Final = (_REPLACED - SERVING) | frozenset(
    (
        ("disaggregatedset.x-k8s.io", "DisaggregatedSet"),
        ("serving.knative.dev", "Service"),
        *(("orchestration.aibrix.ai", kind) for kind in ("StormService", "RoleSet")),
        ("workload.serving.volcano.sh", "ModelServing"),
        ("workloads.x-k8s.io", "RoleBasedGroup"),
        ("grove.io", "PodCliqueSet"),
    )
)
"""Kinds of servers that get only advice about probes and budgets."""
_WITH_MORE_LABELS: Final = SERVICES | {LEADER_WORKER_SET}
LLM_SERVICES: Final = frozenset((("serving.kserve.io", "LLMInferenceService"),))
"""Kinds with parts of pods that a controller merges over its presets."""
NIM_SERVICES: Final = frozenset((("apps.nvidia.com", "NIMService"),))
INFERENCE_SERVICES: Final = frozenset((("serving.kserve.io", "InferenceService"),))
RUNTIME_LOOKUPS: Final = tuple(
    interest_in_fields(kind.gvk, "spec.containers") for kind in (ServingRuntime, ClusterServingRuntime)
)
_NIM_LIVENESS_S: Final = 45
"""The seconds until the default livenessProbe of NVIDIA's operator kills a container without a startupProbe: a delay of
15 s, and 3 periods of 10 s.
"""
_KSERVE: Final = "kserve-container"
_MAIN: Final = "main"
_DELAY_OF_PRESET_S: Final = 10
"""initialDelaySeconds of the startupProbe in KServe's presets (config/llmisvcconfig of kserve/kserve@aaac4e294)."""
_LONG_S: Final = 120
"""Seconds to load 15 GB (7 billion parameters of 2 bytes) at 125 MB/s, over a gigabit network or from a cloud disk."""
_LARGE_LONG_S: Final = 240
"""Seconds to load 30 GB at the same speed: 30 billion parameters of 1 byte."""
_SHORT_S: Final = 60
"""Seconds to start CUDA and to read a small model."""
_PERIOD_S: Final = 10
_FAILURES: Final = 3
_SMALL: Final = 3.0
"""Models with fewer billions of parameters may load within a minute or two."""
_LARGE: Final = 30.0
_LOCAL: Final = re.compile(r"--model(-path|-id)?[= ]+/|\bserve +/")
"""A model on a volume. Most disks read a model in half the time of a network."""
_LISTENS_FIRST: Final = re.compile(r"(^|[ /])llama-server\b")
"""A server that accepts connections while it loads the model. Meanwhile it answers HTTP requests with status 503."""
_SIZE: Final = re.compile(r"(?i)(?<![a-z0-9.])([0-9]{1,4}(?:\.[0-9]{1,3})?)([bm])(?![a-z0-9])")
_SEVERAL: Final = 2
_FOR_PEOPLE: Final = frozenset((22, 6006, 8888))
"""The ports of SSH, of TensorBoard and of Jupyter."""
_NOT_OF_CLIENTS: Final = re.compile("(?i)worker-g?rpc|peer|p2p|metric|prom")
"""The name of a port that no client uses: a port for Prometheus or for other pods of the server."""
_METRICS_PORT: Final = re.compile("(?i)(?:metrics|prometheus|prom)[-_]port[= ]([0-9]{2,5})(?![0-9.])")
"""A variable or flag with the number of a port for Prometheus: `WORKER_METRICS_PORT=9091`, `--metrics-port 9091`."""
_NOTEBOOK: Final = re.compile("jupyter|notebook|code-server|rstudio")
_SERVES_MODEL: Final = re.compile(
    "(?i)model|llm|infer|serving|(?<!api-)triton(?!-client)|predict|embed(?!ded)|rerank|generat(?!ed)|chat|diffusion"
    "|whisper|llama|mistral|qwen|gemma|deepseek|gpt|roberta|(?<![a-z])(distil|de|camem|s)?bert(?![a-z])|torchserve"
    "|tensorrt|hugging|\\bhf[-_]|sglang|lmdeploy|comfyui|\\bnim\\b|\\btgi\\b|\\btei\\b"
)
"""Texts in the name, image, command or environment of a model server. fastapi-triton is only a client of a server, and
a folder for generated files is not about a model.
"""
_OF_TRAINING: Final = re.compile("(?i)train|output|test")
"""A variable with one of these texts in its name does not name a served model."""
_PRETENDS: Final = re.compile(r"(?i)emulat|simulat|\bsim\b|\bmock|\bfake")
"""Texts in the name, namespace, label, image or command of a program that only simulates a server of models."""
_WAITS: Final = re.compile(r"(\btail -f /dev/null|\bsleep (infinity|inf|[0-9.]+[smhd]?))[\s\"';]*$")
"""The end of the command of a container for interactive work."""
_IN_BACKGROUND: Final = re.compile(r"(?<!&)&(?!&)")
"""The sign after a program that runs in the background, such as a server before `sleep infinity`."""
_SERVES_NOTHING: Final = re.compile(
    r"(?i)\b(celery|rq)\b.{0,200} worker\b|\b(dramatiq|arq) "
    r"|(?<![a-z])(train|fine[-_]?tune?)\w{0,40}\.(py|sh)\b"
)
"""A worker of a queue, or the program of a training. Neither answers requests."""
_WAITS_FOR_SERVER: Final = re.compile(r"\b(until|while)\b|\bcurl\b.{0,200}--retry")
"""A part of a postStart hook that waits until the server answers."""
_OF_SEVERAL: Final = re.compile(r"\bray start\b|--(headless|nnodes|node[-_]rank|dist[-_]init[-_]addr)\b")
"""Texts in a command that starts one node of a server with several nodes. Only the first node accepts requests."""
_HEADLESS: Final = re.compile(r"--headless\b")
"""The flag of a node that answers no requests. The node may be the leader of its group."""
_PLAIN_TRITON: Final = re.compile(r"(\A|/)nvidia/tritonserver(:|@|\Z)")
"""The published image of Triton, which has no models."""
_LOCAL_REPOSITORY: Final = re.compile(r"--model-(repository|store)[= ]/")
_OF_FURTHER_NODE: Final = re.compile(r"(?i)\A(?:\w{1,30}_)?(?:node_rank|node_index|headless)=(?!0?$|false$|no$).+\Z")
"""A variable that shows that the pod answers no requests: `NODE_RANK=1`."""


class ModelServerPatterns(Struct, frozen=True):
    """The patterns of model_servers.yaml, for parts of the images and commands of model servers. `later` matches
    servers that load models on request.
    """

    images: re.Pattern[str]
    commands: re.Pattern[str]
    later: re.Pattern[str]


@cache
def read_model_server_patterns() -> ModelServerPatterns:
    """Return the patterns of model_servers.yaml, which is read on first use."""
    (document,) = yamlfile.read(MODEL_SERVERS_FILE)
    return ModelServerPatterns(
        *(re.compile("|".join(document.value[each])) for each in ("images", "commands", "later"))
    )


def advise_liveness_probes(subject: Subject) -> Iterator[Problem]:
    """Warn of livenessProbes and startupProbes that kill containers with devices before the model is loaded."""
    if subject.group_kind in BATCH:
        return
    for pods in subject.once(read_device_workload).device_pods:
        for container in pods.containers:
            yield from _check_probe_that_kills(container, pods)


def _check_probe_that_kills(container: Container, pods: DevicePods) -> Iterator[Problem]:
    """Report a probe that kills a server before the model is loaded. A startupProbe delays all other probes."""
    has_startup_probe = container.has("startupProbe")
    probe = container.startup_probe if has_startup_probe else container.liveness_probe
    seconds = _seconds_until_kill(probe) if probe.connections else None
    if seconds is None:
        return
    at = pods.locate(probe.at)
    accepts_connections = probe.tcp_socket and container.runs(_LISTENS_FIRST)
    if seconds < _LARGE_LONG_S and not accepts_connections and seconds < _seconds_to_load_model(container):
        yield _problem_of_probe_that_kills(at, seconds, has_startup_probe=has_startup_probe)
    elif seconds < _SHORT_S and not has_startup_probe:
        fix = "add a startupProbe if the start may take longer"
        yield _problem_without_startup(at, _kills_after(seconds), fix)


def _kills_after(seconds: int) -> str:
    return f"kills the container {seconds} s after the start if the server does not answer earlier"


def _problem_without_startup(at: FieldPath, message: str, fix: str) -> Problem:
    return LIVENESS_WITHOUT_STARTUP.problem(at, message, fix)


def _problem_of_probe_that_kills(at: FieldPath, seconds: int, *, has_startup_probe: bool) -> Problem:
    fix = "add a startupProbe with a failureThreshold that allows the minutes that loading takes"
    if has_startup_probe:
        fix = "raise failureThreshold so that the probe allows the minutes that loading takes"
    message = f"{_kills_after(seconds)}, but the server answers only when the model is loaded"
    return LIVENESS_PROBE.problem(at, message, fix)


def advise_probes_of_parts(subject: Subject) -> Iterator[Problem]:
    """Warn of startupProbes that allow too little time. KServe merges a startupProbe of the object with the
    startupProbe of a preset.

    A livenessProbe alone is harmless, because each preset has a startupProbe of ten minutes. The presets load the model
    from a volume.
    """
    spec = subject.typed(LlmInferenceService).spec
    texts = [spec.model.uri, spec.model.name]
    for workload in (spec, spec.prefill):
        for pod in (workload.template, workload.worker):
            for container in pod.containers:
                probe = container.startup_probe
                is_server = container.name == _MAIN and bool(count_devices_of_container(container))
                if not is_server or probe.period_seconds is None or probe.failure_threshold is None:
                    continue
                seconds = _seconds_until_kill(probe)
                if seconds is not None and probe.initial_delay_seconds is None:
                    seconds += _DELAY_OF_PRESET_S
                if seconds is not None and seconds < _seconds_of_sizes(texts, container) // 2:
                    yield _problem_of_probe_that_kills(probe.at, seconds, has_startup_probe=True)


def advise_probes_of_nim_service(subject: Subject) -> Iterator[Problem]:
    """Warn of a startupProbe that is too short for the model in the name of the image. Also warn if the startupProbe is
    off and the livenessProbe kills the container early.

    A startupProbe of a NIMService replaces the startupProbe of the operator, which allows 20 minutes.
    """
    spec = subject.typed(NimService).spec
    startup, liveness = spec.startup_probe, spec.liveness_probe
    if startup.enabled is False:
        if liveness.enabled is not False:
            seconds = _seconds_until_kill(liveness.probe) if liveness.probe else _NIM_LIVENESS_S
            if seconds is not None and seconds < _SHORT_S:
                message = f"is off, so the livenessProbe {_kills_after(seconds)}"
                fix = "remove enabled: false, or raise the failureThreshold of the livenessProbe"
                yield _problem_without_startup(startup.path("enabled"), message, fix)
        return
    container = Container.of({"image": f"{spec.image.repository}:{spec.image.tag}"}, (), subject.reading_context)
    is_known = container.is_found_in(read_model_server_patterns().images, (container.image,))
    seconds = _seconds_until_kill(startup.probe) if startup.probe and is_known else None
    if seconds is not None and seconds < _seconds_of_sizes((container.image,), container) // 2:
        yield _problem_of_probe_that_kills(startup.probe.at, seconds, has_startup_probe=True)


def advise_probes_of_inference_service(subject: Subject) -> Iterator[Problem]:
    """Warn of probes of `model` that are too short. KServe merges these probes over the probes of the runtime. KServe
    downloads the model before the container starts.
    """
    model, view = subject.typed(InferenceService).spec.predictor.model, subject.cluster_view()
    if not model.runtime or not (model.startup_probe or model.liveness_probe):
        return
    json = view.get_without_noting(ServingRuntime.gvk, view.namespace, model.runtime)
    json = json or view.get_without_noting(ClusterServingRuntime.gvk, "", model.runtime)
    containers = ServingRuntime.of(json, (), subject.reading_context).spec.containers
    server = next((each for each in containers if each.name == _KSERVE), None)
    if server is None or model.image or model.command or (server.has("startupProbe") and not model.startup_probe):
        return
    servers = read_model_server_patterns()
    if not (server.is_found_in(servers.images, (server.image,)) or server.runs(servers.commands)):
        return
    probe, name = (
        model.startup_probe or model.liveness_probe,
        "startupProbe" if model.startup_probe else "livenessProbe",
    )
    if server.has(name) and (probe.period_seconds is None or probe.failure_threshold is None):
        return  # the other numbers come from the runtime
    texts = (model.storage_uri, server.command_line, model.command_line)
    seconds = _seconds_until_kill(probe)
    if seconds is not None and seconds < _seconds_of_sizes(texts, model) // 2:
        yield _problem_of_probe_that_kills(probe.at, seconds, has_startup_probe=bool(model.startup_probe))


def _seconds_until_kill(probe: Probe) -> int | None:
    """Return the seconds after which the kubelet kills a container that never answers; None if not known. A probe that
    runs a command may succeed although the server does not answer.
    """
    names = ("initialDelaySeconds", "periodSeconds", "failureThreshold")
    if probe.exec or any(probe.is_omitted(name) for name in names):
        return None
    period, failures = probe.period_seconds or _PERIOD_S, probe.failure_threshold or _FAILURES
    return (probe.initial_delay_seconds or 0) + period * failures


def _seconds_to_load_model(container: Container) -> int:
    """Return the seconds that a model server needs to load the model; 0 for another program, and for a small model."""
    servers = read_model_server_patterns()
    if not (container.is_found_in(servers.images, (container.image,)) or container.runs(servers.commands)):
        return 0
    if _loads_model_later(container):
        return 0
    texts = (container.command_line, *(value for value in container.environment.by_name().values() if value))
    needed = _seconds_of_sizes(texts, container)
    return needed // 2 if container.runs(_LOCAL) else needed


def _seconds_of_sizes(texts: Iterable[str], container: Container) -> int:
    """Return the seconds to load a model of the largest size that the texts name; 0 for a small model."""
    sizes = [size for text in texts for size in _billions_of_parameters(text, container)]
    if sizes and max(sizes) < _SMALL:
        return 0
    return _LARGE_LONG_S if sizes and max(sizes) >= _LARGE else _LONG_S


def _billions_of_parameters(text: str, container: Container) -> Iterator[float]:
    """Yield the model sizes in a text, in billions of parameters: 7 for `7B`, 0.125 for `125m`."""
    container.charge_search(text)
    for number, unit in _SIZE.findall(text):
        yield float(number) / (1000 if unit in "mM" else 1)


def _label_that_selects(budget: JSON) -> Sequence[str]:
    """Return the index keys of a PodDisruptionBudget: one label that the selector requires, as `key=value`. The key is
    "" for a selector without labels or with expressions.
    """
    selector = PodDisruptionBudget.of(budget).spec.selector
    return (min("=".join(each) for each in selector.match_labels.items()) if _asks_for_labels(selector) else "",)


def _asks_for_labels(selector: LabelSelector) -> bool:
    return bool(selector.match_labels) and not selector.match_expressions


_BY_LABEL: Final = Index("a label that it selects", _label_that_selects)


DISRUPTION_BUDGET_LOOKUPS: Final = (interest_in_fields(PodDisruptionBudget.gvk, "spec.selector", indexes=(_BY_LABEL,)),)


def advise_serving_readiness_and_disruption(subject: Subject) -> Iterator[Problem]:
    """Warn of servers that get requests before they are ready, and of servers that a drain may stop all at once."""
    if subject.group_kind in SERVICES:
        for pods in subject.once(read_device_workload).device_pods:
            if _may_lack_budget(pods, subject):
                yield from _check_disruption_budget(pods, subject)
    is_of_groups = subject.group_kind == LEADER_WORKER_SET
    if not (is_of_groups or subject.group_kind in _REPLACED):
        return
    for pods in subject.once(read_device_workload).device_pods:
        is_switched_off = pods.podset.pods == 0
        if is_switched_off or (is_of_groups and not _answers_for_group(pods, subject)):
            continue
        running = [container for container in pods.containers if not container.is_init]
        for container in running:
            is_probed = container.readiness_probe or container.startup_probe
            if is_probed or not _has_request_port(container) or _waits_for_server(container, pods):
                continue
            if _serves_model(container, subject, _HEADLESS if is_of_groups else _OF_SEVERAL):
                yield _problem_of_unprobed_server(container, pods)
        if _may_lack_budget(pods, subject) and any(map(_has_request_port, running)):
            yield from _check_disruption_budget(pods, subject)


def _answers_for_group(pods: DevicePods, subject: Subject) -> bool:
    """Return whether pods of a LeaderWorkerSet answer requests: the leaders, or the pods of groups of size 1 without a
    leaderTemplate.
    """
    if pods.podset.path[-1:] == ("leaderTemplate",):
        return True
    group = subject.typed(LeaderWorkerSet).spec.leader_worker_template
    return group.size == 1 and not group.has("leaderTemplate")


def _problem_of_unprobed_server(container: Container, pods: DevicePods) -> Problem:
    """Return the problem of a port without readinessProbe and startupProbe. With these probes, a pod is ready only
    after they succeed (k8s.io/kubernetes v1.36 pkg/kubelet/prober).
    """
    has = "has a port but" if container.ports else "serves requests but has"
    message = f"{has} no readinessProbe, so requests reach the container before the server is ready"
    fix = "add a readinessProbe that succeeds when the server is ready"
    return READINESS_PROBE.problem(pods.locate(container.at), message, fix, needs="readinessProbe")


def _waits_for_server(container: Container, pods: DevicePods) -> bool:
    """Return whether the pod is ready only when its server is ready, although the container has no probe.

    A readiness gate, such as the health check of a load balancer, and a probe of another container count for the whole
    pod. The kubelet reports a container as running only after its postStart hook has ended.
    """
    hook = " ".join(container.lifecycle.post_start.exec.command)
    container.charge_search(hook)
    if pods.spec.json.get("readinessGates") or _WAITS_FOR_SERVER.search(hook):
        return True
    own = {port.container_port for port in container.ports}
    probes = (each.readiness_probe for each in pods.spec.running_containers() if each.name != container.name)
    return any(handler.port in own for probe in probes for handler in probe.connections)


def _has_request_port(container: Container) -> bool:
    """Return whether a container has a port for requests. Ports of SSH, Jupyter and Prometheus are not for requests."""
    if container.is_found_in(_NOTEBOOK, (f"{container.image}\n{container.name}",)):
        return False
    patterns = read_model_server_patterns()
    is_of_image = not container.command and container.is_found_in(patterns.images, (container.image,))
    serves = is_of_image or container.runs(patterns.commands)
    if serves:
        return True
    named = [port for port in container.ports if not container.is_found_in(_NOT_OF_CLIENTS, (port.name,))]
    return any(port.container_port not in _FOR_PEOPLE | _ports_for_metrics(container) for port in named)


def _ports_for_metrics(container: Container) -> frozenset[int]:
    """Return the ports that a variable or flag of a container gives to Prometheus."""
    variables = (f"{name}={value}" for name, value in container.environment.by_name().items())
    text = "\n".join((container.command_line, *variables))
    container.charge_search(text)
    return frozenset(map(int, _METRICS_PORT.findall(text)))


def _serves_model(container: Container, subject: Subject, silent: re.Pattern[str]) -> bool:
    """Return whether a name, variable or command shows that the container serves a model in every pod. If a part of
    the command matches `silent`, some pods do not answer requests.
    """
    if container.runs(silent) or _only_waits(container) or _only_simulates_server(container, subject):
        return False
    if container.runs(_SERVES_NOTHING) and not container.runs(_IN_BACKGROUND):
        return False
    loads_none = _loads_model_later(container) or _is_triton_without_models(container)
    if loads_none or is_named_as_trial(subject.metadata):
        return False
    written = (f"{name}={value}" for name, value in container.environment.by_name().items())
    if container.is_found_in(_OF_FURTHER_NODE, written):
        return False
    variables = (
        text
        for pair in container.environment.by_name().items()
        if not _OF_TRAINING.search(pair[0])
        for text in pair
        if text
    )
    mounts = (mount.mount_path for mount in container.volume_mounts)
    texts = (subject.typed(Object).name, container.name, container.image, container.command_line, *variables, *mounts)
    return container.is_found_in(_SERVES_MODEL, ("\n".join(texts),))  # no pattern matches across a line break


def _loads_model_later(container: Container) -> bool:
    """Return whether a container runs a server that loads models on request. The image or the command shows this. If
    the image and the command name no server, the name of the container or of a port may show this.
    """
    patterns, image, words = read_model_server_patterns(), container.image, container.command_line
    if container.is_found_in(patterns.later, (f"{image} {words}",)):
        return True
    names = (container.name, *(port.name for port in container.ports))
    is_other = container.is_found_in(patterns.images, (image,)) or container.runs(patterns.commands)
    return not is_other and container.is_found_in(patterns.later, ("\n".join(names),))


def _is_triton_without_models(container: Container) -> bool:
    """Return whether Triton reads models from a folder of Triton's published image, which has no models."""
    if container.volume_mounts or not container.words or not container.words[0].endswith("tritonserver"):
        return False
    return container.is_found_in(_PLAIN_TRITON, (container.image,)) and container.runs(_LOCAL_REPOSITORY)


def _only_waits(container: Container) -> bool:
    """Return whether the command only waits for ever, without starting a server first."""
    if not container.runs(_WAITS) or container.runs(_IN_BACKGROUND):
        return False
    return not ("&&" in container.command_line and container.runs(read_model_server_patterns().commands))


def _only_simulates_server(container: Container, subject: Subject) -> bool:
    """Return whether a name, label or command shows that a container only simulates a server and loads no model."""
    metadata = subject.metadata
    texts = (metadata.name, metadata.namespace, *metadata.labels.values(), container.name, container.image)
    return container.is_found_in(_PRETENDS, ("\n".join((*texts, *container.words)),))


def _may_lack_budget(pods: DevicePods, subject: Subject) -> bool:
    """Return whether there are several pods, and the view has all objects of the cluster."""
    return pods.pod_count >= _SEVERAL and subject.cluster.is_whole()


def _check_disruption_budget(pods: DevicePods, subject: Subject) -> Iterator[Problem]:
    view, kind = subject.cluster_view(), PodDisruptionBudget.gvk
    labels, has_more = pods.template.metadata.labels, subject.group_kind in _WITH_MORE_LABELS
    budgets = _budgets_that_may_select(labels, view, has_more=has_more)
    if any(_may_select_pods(budget.spec.selector, labels, has_more=has_more) for budget in budgets):
        return
    at = path_as_text(pods.podset.path) if has_more else "spec.replicas"
    if not view.is_whole(kind):
        missing = MissingObject(kind=kind.kind, name="", namespace=subject.namespace, why="not looked up")
        yield DISRUPTION_BUDGET.problem(at, missing=(missing,))
        return
    message = f"no PodDisruptionBudget selects the {pods.pod_count} pods, so node drains may stop all pods at once"
    yield DISRUPTION_BUDGET.problem(at, message, "create a PodDisruptionBudget with maxUnavailable: 1")


def _budgets_that_may_select(
    labels: Mapping[str, str], view: ClusterView, *, has_more: bool
) -> Iterator[PodDisruptionBudget]:
    """Yield the PodDisruptionBudgets that may select pods with these labels. If the pods may have more labels
    (`has_more`), yield all PodDisruptionBudgets of the namespace.
    """
    if has_more:
        yield from view.typed_here(PodDisruptionBudget)
        return
    for key in ("", *map("=".join, labels.items())):
        yield from view.typed_under_key(PodDisruptionBudget, _BY_LABEL, key)


def _may_select_pods(selector: LabelSelector, labels: Mapping[str, str], *, has_more: bool) -> bool:
    """Return whether a selector may select pods with these labels. With `has_more`, the pods may have more labels. For
    a selector with expressions, the result is True.
    """
    if selector.match_expressions:
        return True
    wanted = selector.match_labels.items()
    return all(labels.get(key, value if has_more else None) == value for key, value in wanted)
