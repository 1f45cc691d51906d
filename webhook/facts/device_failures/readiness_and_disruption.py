"""Servers with devices that fail: requests that come before they are ready, and drains that stop all at once."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from webhook.attributes import JSON
from webhook.cluster.interest import Index, interest_in_fields
from webhook.facts.device_failures.groups import DEVICE_FAILURES
from webhook.facts.device_failures.liveness import read_model_server_patterns
from webhook.facts.device_failures.types import PodDisruptionBudget
from webhook.facts.gpu.device_pods import SERVING, DevicePods, read_device_workload
from webhook.facts.subject import Subject
from webhook.facts.view import ClusterView
from webhook.paths import path_as_text
from webhook.problem import MissingObject, Problem
from webhook.typed.objects import Object
from webhook.typed.pods import Container, LabelSelector

READINESS_PROBE: Final = DEVICE_FAILURES.rule(
    "device-failures/readiness-probe",
    title="A server with devices has a readinessProbe.",
    why=(
        "Without one, and without a startupProbe, a Service sends requests as soon as the container runs, minutes "
        "before a large model is loaded, and also when its device has failed."
    ),
    source="https://kubernetes.io/docs/concepts/configuration/liveness-readiness-startup-probes/",
    severity="low",
)
DISRUPTION_BUDGET: Final = DEVICE_FAILURES.rule(
    "device-failures/disruption-budget",
    title="Servers with devices have a PodDisruptionBudget.",
    why="Upgrades of nodes drain them without one, and new pods take minutes to load their models.",
    source="https://kubernetes.io/docs/tasks/run-application/configure-pdb/",
    severity="low",
)


def _label_that_selects(budget: JSON) -> Sequence[str]:
    """Return one label that the pods of a budget have, "" where its selector asks for none, or for more than labels."""
    selector = PodDisruptionBudget.of(budget).spec.selector
    return (min("=".join(each) for each in selector.match_labels.items()) if _asks_for_labels(selector) else "",)


def _asks_for_labels(selector: LabelSelector) -> bool:
    return bool(selector.match_labels) and not selector.match_expressions


_BY_LABEL: Final = Index("a label that it selects", _label_that_selects)
LOOKUPS: Final = (interest_in_fields(PodDisruptionBudget.gvk, "spec.selector", indexes=(_BY_LABEL,)),)
SERVICES: Final = frozenset((("ray.io", "RayService"), ("serving.kserve.io", "InferenceService")))
"""Kinds whose controllers add labels and probes to the pods that answer requests."""
_SEVERAL: Final = 2
_FOR_PEOPLE: Final = frozenset((22, 8888))
"""The ports of SSH and of Jupyter."""
_NOTEBOOK: Final = re.compile("jupyter|notebook|code-server|rstudio")
_SERVES_MODEL: Final = re.compile(
    "(?i)model|llm|infer|serving|triton|predict|embed|rerank|generat|chat|diffusion|whisper|llama|mistral|qwen|gemma"
    "|deepseek|gpt|bert|torchserve|tensorrt|hugging|\\bhf[-_]|sglang|lmdeploy|comfyui|\\bnim\\b|\\btgi\\b|\\btei\\b"
)
"""What the name, image, command or environment of a server of models has somewhere."""
_OF_TRAINING: Final = re.compile("(?i)train|output|test")
"""What the name of a variable has that says nothing of a model that is served."""
_PRETENDS: Final = re.compile(r"(?i)emulat|simulat|\bsim\b|\bmock|\bfake")
"""What the name, namespace, label, image or command of a program has somewhere that only acts as a server of models."""
_WAITS: Final = re.compile(r"(\btail -f /dev/null|\bsleep (infinity|inf|[0-9.]+[smhd]?))[\s\"';]*$")
"""What a command ends with in whose container a person works later; one that starts a server before has an `&`."""
_OF_SEVERAL: Final = re.compile(r"\bray start\b|--(headless|nnodes|node[-_]rank|dist[-_]init[-_]addr)\b")
"""What a command has that starts one node of a server of several nodes: only the first of its pods takes requests."""

_OF_FURTHER_NODE: Final = re.compile(r"(?i)\A(?:\w{1,30}_)?(?:node_rank|node_index|headless)=(?!0?$|false$|no$).+\Z")
"""A variable with its value that says the same of one pod: `NODE_RANK=1`."""


def advise_serving_readiness_and_disruption(subject: Subject) -> Iterator[Problem]:
    """Warn of servers that get requests before they are ready, or are all drained at once."""
    if subject.group_kind in SERVICES:
        for pods in subject.once(read_device_workload).device_pods:
            yield from _check_disruption_budget(pods, subject)
    if subject.group_kind not in SERVING:
        return
    for pods in subject.once(read_device_workload).device_pods:
        servers = [container for container in pods.containers if not container.is_init and _has_request_port(container)]
        for container in servers:
            if _serves_model(container, subject):
                yield from _check_readiness_probe(container, pods)
        if servers:
            yield from _check_disruption_budget(pods, subject)


def _check_readiness_probe(container: Container, pods: DevicePods) -> Iterator[Problem]:
    """Warn of a port without probes; a pod is not ready before both succeed (k8s.io/kubernetes v1.36
    pkg/kubelet/prober).
    """
    if not container.readiness_probe and not container.startup_probe:
        message = "has a port but no readinessProbe, so requests reach the container while its model loads"
        fix = "add a readinessProbe that succeeds once the model is loaded"
        yield READINESS_PROBE.problem(pods.locate(container.at), message, fix)


def _has_request_port(container: Container) -> bool:
    """Return whether a container has a port for requests; a person who opens a shell or a notebook waits for no
    model.
    """
    if container.is_found_in(_NOTEBOOK, (container.image, container.name)):
        return False
    serves = container.runs(read_model_server_patterns().commands)
    return any(serves or port.container_port not in _FOR_PEOPLE for port in container.ports)


def _serves_model(container: Container, subject: Subject) -> bool:
    """Return whether something says that every pod of a container answers with a model; other programs load none."""
    words = container.command_line
    if container.runs(_OF_SEVERAL) or ("&" not in words and container.runs(_WAITS)) or _pretends(container, subject):
        return False
    written = (f"{name}={value}" for name, value in container.environment.by_name().items())
    if container.is_found_in(_OF_FURTHER_NODE, written):
        return False
    if container.is_found_in(read_model_server_patterns().later, (f"{container.image} {words}",)):
        return False
    variables = (
        text
        for pair in container.environment.by_name().items()
        if not _OF_TRAINING.search(pair[0])
        for text in pair
        if text
    )
    mounts = (mount.mount_path for mount in container.volume_mounts)
    texts = (subject.typed(Object).name, container.name, container.image, words, *variables, *mounts)
    return container.is_found_in(_SERVES_MODEL, texts)


def _pretends(container: Container, subject: Subject) -> bool:
    """Return whether something says that a container only acts as a server, with no model to load."""
    metadata = subject.metadata
    texts = (metadata.name, metadata.namespace, *metadata.labels.values(), container.name, container.image)
    texts = (*texts, *container.words)
    return container.is_found_in(_PRETENDS, texts)


def _check_disruption_budget(pods: DevicePods, subject: Subject) -> Iterator[Problem]:
    view, kind = subject.cluster_view(), PodDisruptionBudget.gvk
    if pods.pod_count < _SEVERAL or not view.is_whole():
        return
    labels, has_more = pods.template.metadata.labels, subject.group_kind in SERVICES
    budgets = _budgets_that_may_select(labels, view, has_more=has_more)
    if any(_may_select_pods(budget.spec.selector, labels, has_more=has_more) for budget in budgets):
        return
    at = path_as_text(pods.podset.path) if has_more else "spec.replicas"
    if not view.is_whole(kind):
        missing = MissingObject(kind=kind.kind, name="", namespace=subject.namespace, why="not looked up")
        yield DISRUPTION_BUDGET.problem(at, missing=(missing,))
        return
    message = f"no PodDisruptionBudget selects the {pods.pod_count} pods, so node drains may stop all of them at once"
    yield DISRUPTION_BUDGET.problem(at, message, "create a PodDisruptionBudget with maxUnavailable: 1")


def _budgets_that_may_select(
    labels: Mapping[str, str], view: ClusterView, *, has_more: bool
) -> Iterator[PodDisruptionBudget]:
    """Yield the budgets of the namespace that may select pods with labels; of pods with more labels, any may."""
    if has_more:
        yield from view.typed_here(PodDisruptionBudget)
        return
    for key in ("", *map("=".join, labels.items())):
        yield from view.typed_under_key(PodDisruptionBudget, _BY_LABEL, key)


def _may_select_pods(selector: LabelSelector, labels: Mapping[str, str], *, has_more: bool) -> bool:
    """Return whether a selector certainly or possibly selects pods with labels, or more: expressions are not
    followed.
    """
    if selector.match_expressions:
        return True
    wanted = selector.match_labels.items()
    return all(labels.get(key, value if has_more else None) == value for key, value in wanted)
