"""The group of rules about model servers, and the containers that may start a model server.

Words in the image and the command show whether a container may start a server. Few containers have one of these
words. All other modules of model servers are about these containers.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from webhook.facts.gpu.device_pods import located_templates
from webhook.facts.subject import Subject
from webhook.rules.rule import RuleGroup
from webhook.typed.pods import Container, PodSpec
from webhook.workloads.podsets import PodSet

MODEL_SERVER: Final = RuleGroup(
    "model-server",
    source="vllm-project/vllm vllm/config/parallel.py@00193b82",
    level="warn",
    fails="start",
)
"""Commands of model servers that cannot run in their pods."""
_NAMES: Final = (
    *("vllm", "sglang", "text-generation", "trtllm", "lmdeploy", "dynamo", "tritonserver", "triton_server"),
    *("llama-server", "llama.cpp", "/nim/", "ray start"),
)
"""Texts in the image or the command of a container with a model server."""


class ServerCandidate(NamedTuple):
    """A container that may start a model server, with its pod set and PodSpec."""

    container: Container
    spec: PodSpec
    pod_set: PodSet


def may_start_server(container: Container) -> bool:
    """Return whether a container may start a model server. The test is fast, because most containers do not."""
    return container.contains_any(_NAMES, (container.image, *container.words))


def server_candidates(subject: Subject) -> tuple[ServerCandidate, ...]:
    """Return the containers of an object that may start a model server; call it through `Subject.once`."""
    return tuple(
        ServerCandidate(container, spec, podset)
        for podset, template in subject.once(located_templates)
        for spec in (template.spec,)
        for container in spec.running_containers()
        if may_start_server(container)
    )
