"""The group of rules about model servers, and the containers that may start a model server.

Words in the image and the command show whether a container may start a server. Few containers have one of these
words. The other modules of model servers read only these containers.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from webhook.cel.library.patterns import compile_policy_pattern
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
_NAMES: Final = compile_policy_pattern(
    r"vllm|sglang|text-generation|trtllm|lmdeploy|dynamo|triton_?server|llama-server|llama\.cpp|/nim/|ray start"
)
"""Texts in the image or the command of a container with a model server. RE2 reads a long script once for all."""
_CHARACTER_S: Final = 5e-9
"""The most seconds that this search takes for each character: 1.5 ns measured, 3.6 ns outside ASCII."""


class ServerCandidate(NamedTuple):
    """A container that may start a model server, with its pod set and PodSpec."""

    container: Container
    spec: PodSpec
    pod_set: PodSet


def may_start_server(container: Container) -> bool:
    """Return whether a container may start a model server. The test is fast, because most containers do not."""
    text = "\n".join((container.image, *container.words))  # a line each, so that no name is found in two words
    container.charge_search(text, _CHARACTER_S)
    return _NAMES.is_found_in(text)


def server_candidates(subject: Subject) -> tuple[ServerCandidate, ...]:
    """Return the containers of an object that may start a model server; call it through `Subject.once`."""
    return tuple(
        ServerCandidate(container, spec, podset)
        for podset, template in subject.once(located_templates)
        for spec in (template.spec,)
        for container in spec.running_containers()
        if may_start_server(container) and not _may_lack_words(container, podset, subject)
    )


def _may_lack_words(container: Container, podset: PodSet, subject: Subject) -> bool:
    """Return whether an empty text in the command may replace a value of a wrong type: a number without quotes."""
    return "" in container.words and podset.path in subject.reading_context.omitted
