"""The group of rules about model servers, and the containers that may start a model server.

Words in the image and the command show whether a container may start a server. Few containers have one of these words.
The other modules of model servers read only these containers. If the command is a script in a known ConfigMap, the
script is read instead of the command. The content of a script that an image contains is not known.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

from webhook.cel.library.patterns import compile_policy_pattern
from webhook.facts.command_lines.shell import read_shell_call
from webhook.facts.gpu.device_pods import located_templates
from webhook.facts.kinds import RAY_JOB
from webhook.facts.subject import Subject
from webhook.rules.rule import RuleGroup
from webhook.typed.objects import ConfigMap
from webhook.typed.pods import Container, PodSpec
from webhook.typed.ray import RayJob, RayJobSpec
from webhook.typed.volumes import Volume
from webhook.workloads.podsets import PodSet

MODEL_SERVER: Final = RuleGroup(
    "model-server",
    source="vllm-project/vllm vllm/config/parallel.py@00193b82",
    level="warn",
    fails="start",
)
"""Commands of model servers that cannot run in their pods."""
_NAMES: Final = compile_policy_pattern(
    r"vllm|sglang|text-generation|trtllm|lmdeploy|dynamo|triton_?server|llama-server|llama\.cpp|/nim/|ray\sstart|ollama\sserve"
)
"""Texts in the image or the command of a container with a model server. RE2 searches a long script for all names at
once.
"""
_FILE: Final = re.compile(r"/[\w./-]{1,250}")
_ONLY_A_FILE: Final = re.compile(r"\s*(?:exec\s+)?(?:(?:ba)?sh\s+|source\s+|\.\s+)?(/[\w./-]{1,250})\s*")
"""A script that only runs the script in a file."""
_PARAMETERS: Final = "$@"
_LONGEST_SCRIPT: Final = 64 * 1024
_CHARACTER_S: Final = 5e-9
"""An upper bound for the seconds that a search for _NAMES takes per character. Measured: 1.5 ns, and 3.6 ns outside
ASCII.
"""


class ServerCandidate(NamedTuple):
    """A container that may start a model server, with its pod set and PodSpec."""

    container: Container
    spec: PodSpec
    pod_set: PodSet


def may_start_server(container: Container) -> bool:
    """Return whether a container may start a model server, or has a command that begins with a flag or with several
    words in one item. The test is fast, because it runs for every container.
    """
    first = container.command[0] if container.command else ""
    if first.startswith("-") or len(first.split(maxsplit=1)) > 1:
        return True
    # one line for each word, so that no name matches across words
    text = "\n".join((container.image, *container.words))
    container.charge_search(text, _CHARACTER_S)
    return _NAMES.is_found_in(text)


def may_start_server_in_entrypoint(subject: Subject) -> bool:
    """Return whether the entrypoint of a RayJob may start a model server; False for other kinds."""
    if subject.group_kind != RAY_JOB:
        return False
    spec = subject.typed(RayJob).spec
    head = next(iter(spec.ray_cluster_spec.head_group_spec.template.spec.containers), None)
    return head is not None and bool(spec.entrypoint) and may_start_server(container_of_entrypoint(spec, head))


def container_of_entrypoint(spec: RayJobSpec, head: Container) -> Container:
    """Return the entrypoint of a RayJob as a container with the image and the variables of the head. A shell runs the
    entrypoint.
    """
    obj = {"image": head.image, "env": head.json.get("env"), "command": ["sh", "-c", spec.entrypoint]}
    return Container(obj, spec.path("entrypoint"), head.reading)


def server_candidates(subject: Subject) -> tuple[ServerCandidate, ...]:
    """Return the containers of an object that may start a model server; call it through `Subject.once`."""
    return tuple(
        ServerCandidate(container, spec, podset)
        for podset, template in subject.once(located_templates)
        for spec in (template.spec,)
        for written in spec.running_containers()
        for container in (_with_mounted_script(written, spec, subject),)
        if may_start_server(container) and not _may_lack_words(container, podset, subject)
    )


def _with_mounted_script(container: Container, spec: PodSpec, subject: Subject) -> Container:
    """Return a container with `bash -c` and the text of its script, if its command is a script in a known ConfigMap.
    Return other containers unchanged.
    """
    path, parameters = _script_of_command(container)
    text = text_of_mounted_file(path, container, spec, subject) if path else ""
    if not text or "{{" in text:
        return container
    command = ["bash", "-c", text, path, *(parameters if _PARAMETERS in text else ())]
    return Container({**container.json, "command": command, "args": []}, container.at, container.reading)


def _script_of_command(container: Container) -> tuple[str, Sequence[str]]:
    """Return the file of the script that a command runs, and the script's parameters; ("", ()) without a script."""
    if not container.command or not any(True for _ in container.volume_mounts):
        return "", ()
    first, *words = container.words
    if first.endswith(".sh") and _FILE.fullmatch(first[:_LONGEST_SCRIPT]):
        return first, words
    call = read_shell_call(container.words)
    if call is None:
        return "", ()
    if call.is_file:
        return (call.script, call.rest) if _FILE.fullmatch(call.script) else ("", ())
    container.charge_search(call.script)
    only = _ONLY_A_FILE.fullmatch(call.script)
    return (only[1], ()) if only else ("", ())


def text_of_mounted_file(path: str, container: Container, spec: PodSpec, subject: Subject) -> str:
    """Return the content of a file that a known ConfigMap mounts into a container; "" if the file is not known."""
    mount = next((each for each in container.volume_mounts if each.path_in_volume(path)), None)
    volume = next((each for each in spec.volumes if mount is not None and each.name == mount.name), None)
    if mount is None or volume is None or mount.sub_path_expr:
        return ""
    name, key = volume.config_map.name, _key_of_file(mount.path_in_volume(path), volume)
    config_map = subject.cluster_view().get_without_noting(ConfigMap.gvk, subject.namespace, name) if name else None
    text = ConfigMap.of(config_map).data.get(key, "")
    return text if len(text) <= _LONGEST_SCRIPT else ""


def _key_of_file(file: str, volume: Volume) -> str:
    """Return the key of a ConfigMap that a volume mounts as the file; "" if the volume mounts no key as the file."""
    items = volume.config_map.items
    if not volume.config_map.has("items"):
        return file
    return next((item.key for item in items if item.file_path == file), "")


def _may_lack_words(container: Container, podset: PodSet, subject: Subject) -> bool:
    """Return whether the command may lack a word. A number without quotes is read as an empty text."""
    return "" in container.words and podset.path in subject.reading_context.omitted
