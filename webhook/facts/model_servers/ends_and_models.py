"""How a model server ends, and where its model comes from.

Source: vllm-project/vllm vllm/entrypoints/openai/cli_args.py; huggingface_hub constants.py.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from webhook.facts.model_servers.groups import MODEL_SERVER
from webhook.facts.model_servers.servers_of_object import ServerContainer
from webhook.facts.model_servers.started_servers import VLLM
from webhook.rules.problem import Problem

SHUTDOWN: Final = MODEL_SERVER.rule(
    "model-server/shutdown",
    title="shutdown-timeout is above the grace period of the pod",
    why="vLLM finishes requests until its timeout, but the kubelet kills it at the end of the grace period.",
    source="vllm-project/vllm vllm/entrypoints/openai/cli_args.py",
    fails="disruption",
    issues=("https://github.com/llm-d/llm-d/issues/927",),
)
OFFLINE_MODEL: Final = MODEL_SERVER.rule(
    "model-server/offline-model",
    title="A model of the hub is named where the hub is switched off",
    why="With HF_HUB_OFFLINE the server finds a model only in its cache, which a new pod does not have.",
    source="https://huggingface.co/docs/huggingface_hub/package_reference/environment_variables",
    level="advice",
)
GATED_MODEL: Final = MODEL_SERVER.rule(
    "model-server/gated-model",
    title="A gated model is named without a token",
    why="The hub allows the download only with the token of an account that has accepted the licence of the model.",
    source="https://huggingface.co/docs/hub/models-gated",
    level="advice",
)
_GRACE_S: Final = 30
_HUB_NAME: Final = re.compile(r"[A-Za-z0-9][\w.-]{0,95}/[A-Za-z0-9][\w.-]{0,95}")
_GATED: Final = re.compile(r"(meta-llama/|google/gemma-).*")
_TOKENS: Final = frozenset(("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "HUGGINGFACE_TOKEN", "HF_TOKEN_PATH", "HF_ENDPOINT"))
_MIRRORS: Final = frozenset(("VLLM_USE_MODELSCOPE", "SGLANG_USE_MODELSCOPE"))


def check_shutdown(member: ServerContainer) -> Iterator[Problem]:
    """Report a server that finishes requests for longer than its pod has to end."""
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
        yield OFFLINE_MODEL.problem(member.path, message, "mount the model, or remove HF_HUB_OFFLINE")
    elif _GATED.fullmatch(model) and names.isdisjoint(_TOKENS) and not has_volume:
        message = f"names the gated model {model}, but sets no HF_TOKEN, so the hub refuses the download"
        yield GATED_MODEL.problem(member.path, message, "set HF_TOKEN from a Secret")
