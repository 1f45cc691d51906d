"""Servers of models that their livenessProbe ends before the model is loaded.

The kubelet waits initialDelaySeconds, then asks every periodSeconds, and kills the container after failureThreshold
failures one after the other; a startupProbe keeps it from asking before that has succeeded: k8s.io/kubernetes v1.36
pkg/kubelet/prober/worker.go doProbe. Which programs answer only once the model is loaded is data, model_servers.yaml.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from webhook import yamlfile
from webhook.facts.device_failures.groups import DEVICE_FAILURES
from webhook.facts.gpu.device_pods import BATCH, DevicePods, read_device_workload
from webhook.facts.subject import Subject
from webhook.problem import Problem
from webhook.typed.pods import Container, Probe

LIVENESS_PROBE: Final = DEVICE_FAILURES.rule(
    "device-failures/liveness-probe",
    title="A livenessProbe leaves a server the time to load its language model.",
    why=(
        "vLLM, SGLang, TGI and others answer once the model is loaded. A livenessProbe without a startupProbe kills "
        "the container before that, it starts again from the beginning, and never serves."
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
    title="A server with devices that has a livenessProbe has a startupProbe too, or starts quickly.",
    why="Programs that use devices often take longer to start than a livenessProbe with its default values allows.",
    source="https://kubernetes.io/docs/concepts/configuration/liveness-readiness-startup-probes/",
    level="advice",
    severity="low",
    fails="start",
)

FILE: Final = Path(__file__).with_name("model_servers.yaml")
_LONG_S: Final = 120
"""15 GB, a model of 7 billion parameters of 2 bytes each, at 125 MB/s: a gigabit network, or an ordinary cloud disk."""
_LARGE_LONG_S: Final = 240
"""The same of 30 GB: a large model even with one byte for each parameter."""
_SHORT_S: Final = 60
"""Starting CUDA, and reading what little a small model has."""
_PERIOD_S: Final = 10
_FAILURES: Final = 3
_SMALL: Final = 3.0
"""Billions of parameters of a model that a minute or two may be enough for."""
_LARGE: Final = 30.0
_LOCAL: Final = re.compile(r"--model(-path|-id)?[= ]+/|\bserve +/")
"""A model that is on a volume already, which most disks read in half the time that a network takes."""
_SIZE: Final = re.compile(r"(?i)(?<![a-z0-9.])([0-9]{1,4}(?:\.[0-9]{1,3})?)([bm])(?![a-z0-9])")


@dataclass(frozen=True, slots=True)
class ModelServerPatterns:
    """All of model_servers.yaml: what an image or a word of a command has in it that starts such a server.

    `later`: one that loads its models when they are asked for.
    """

    images: re.Pattern[str]
    commands: re.Pattern[str]
    later: re.Pattern[str]


@cache
def read_model_server_patterns() -> ModelServerPatterns:
    """Return the shipped rows, which are read on first use."""
    (document,) = yamlfile.read(FILE)
    return ModelServerPatterns(
        *(re.compile("|".join(document.value[each])) for each in ("images", "commands", "later"))
    )


def advise_liveness_probes(subject: Subject) -> Iterator[Problem]:
    """Warn of containers with devices that are killed while they start."""
    if subject.group_kind in BATCH:
        return
    for pods in subject.once(read_device_workload).device_pods:
        for container in pods.containers:
            if container.liveness_probe and not container.has("startupProbe"):
                yield from _check_liveness_probe(container, pods)


def _check_liveness_probe(container: Container, pods: DevicePods) -> Iterator[Problem]:
    probe = container.liveness_probe
    seconds = _seconds_until_kill(probe)
    if seconds is None:
        return
    message = f"kills the container {seconds} s after its start if it does not answer by then"
    at = pods.locate(probe.at)
    if seconds < _seconds_to_load_model(container):
        fix = "add a startupProbe with a failureThreshold that allows the minutes that loading takes"
        yield LIVENESS_PROBE.problem(at, f"{message}, but the server answers only once its model is loaded", fix)
    elif seconds < _SHORT_S:
        yield LIVENESS_WITHOUT_STARTUP.problem(at, message, "add a startupProbe if the start may take longer")


def _seconds_until_kill(probe: Probe) -> int | None:
    """Return the seconds until the kubelet kills the container at the latest; None where nobody knows.

    A command may succeed whatever the server does.
    """
    names = ("initialDelaySeconds", "periodSeconds", "failureThreshold")
    if probe.exec or any(probe.is_omitted(name) for name in names):
        return None
    period, failures = probe.period_seconds or _PERIOD_S, probe.failure_threshold or _FAILURES
    return (probe.initial_delay_seconds or 0) + period * failures


def _seconds_to_load_model(container: Container) -> int:
    """Return the seconds that a server of language models needs to load; 0 for another one, and for a small model."""
    servers = read_model_server_patterns()
    if not (container.is_found_in(servers.images, (container.image,)) or container.runs(servers.commands)):
        return 0
    texts = (container.command_line, *(value for value in container.environment.by_name().values() if value))
    sizes = [size for text in texts for size in _billions_of_parameters(text, container)]
    if sizes and max(sizes) < _SMALL:
        return 0
    needed = _LARGE_LONG_S if sizes and max(sizes) >= _LARGE else _LONG_S
    return needed // 2 if container.runs(_LOCAL) else needed


def _billions_of_parameters(text: str, container: Container) -> Iterator[float]:
    """Yield the sizes of models that a text names, in billions of parameters: `7B`, `125m`."""
    container.charge_search(text)
    for number, unit in _SIZE.findall(text):
        yield float(number) / (1000 if unit in "mM" else 1)
