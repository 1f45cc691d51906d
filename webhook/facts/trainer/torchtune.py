"""What the torch plugin of Kubeflow Trainer refuses of a TrainJob that runs torchtune (`command: [tune, run]`).

The model is read from the runtime's name, `<anything>-<name>-<size>`; the recipe from nodes, devices and arguments.
Sources: kubeflow/trainer@8c0f5059bd51 pkg/runtime/framework/plugins/torch/torchtune.go and pkg/constants; adapters
exist since 2.1, the last two rules since 2.3 (branches release-2.0 to release-2.3).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from webhook.attributes import JSON
from webhook.facts.finding import note
from webhook.facts.pods.containers import items, text, whole
from webhook.facts.trainer.releases import ADAPTERS, INJECTION, NUMBERS_ONLY
from webhook.paths import get
from webhook.placeholders import is_placeholder
from webhook.releases import Release

_MANY_NODES: Final = "llama3_3/70B"
_SMALL: Final = ("llama3_2/1B", "llama3_2/3B")
_UNQUANTIZED: Final = "qwen2_5/1.5B"
_MODELS: Final = (*_SMALL, _MANY_NODES, _UNQUANTIZED)
_FIRST_MODELS: Final = ("llama3_2/1B", "llama3_2/7B", _MANY_NODES)  # of 2.0
_MANAGED: Final = ("output_dir", "tokenizer.path", "checkpointer.checkpoint_dir", "tokenizer.merges_file")
_NAME, _NODES = "spec.runtimeRef.name", "spec.trainer.numNodes"


def notes(job: JSON, gpus: int, release: Release) -> Iterator[JSON]:
    """What will be refused; `gpus` is how many Trainer counts per node."""
    trainer, runtime = get(job, ("spec", "trainer")), text(get(job, ("spec", "runtimeRef", "name")))
    if not isinstance(trainer, dict) or trainer.get("command") != ["tune", "run"] or is_placeholder(runtime):
        return
    explicit = trainer.get("numProcPerNode")
    if release < NUMBERS_ONLY and explicit is None:  # the plugin's checks ended there
        return
    model, args = _model(runtime), [each for each in items(trainer.get("args")) if isinstance(each, str)]
    nodes = 1 if (asked := whole(trainer.get("numNodes"))) is None else asked
    known = _MODELS if release >= ADAPTERS else _FIRST_MODELS
    if model not in known:
        yield note("tuneModel", _NAME, ", ".join(map(_runtime_name, known)))
    if nodes > 1 and model != _MANY_NODES:
        yield note("tuneNodes", _NODES, str(nodes))
    if release >= ADAPTERS and nodes == 1 and _is_quantized(args, release):
        yield from _quantized(model, explicit, gpus)
    if release >= INJECTION:
        yield from _strict(args, nodes, release)


def _quantized(model: str, explicit: JSON, gpus: int) -> Iterator[JSON]:
    """Quantized adapters: one model has none, and the small ones train on one device only."""
    if model == _UNQUANTIZED:
        yield note("tuneQuantized", _NAME, model)
    if model in _SMALL and explicit != 1 and gpus != 1:
        yield note("tuneDevices", "spec.trainer.resourcesPerNode", str(gpus))


def _strict(args: Sequence[str], nodes: int, release: Release) -> Iterator[JSON]:
    adapted = any("model.lora_attn_modules" in each for each in args) or _is_quantized(args, release)
    if nodes > 1 and adapted:
        yield note("tuneAdapters", _NODES, str(nodes))
    for index, each in enumerate(args):
        if (key := each.split("=")[0]) in _MANAGED:
            yield note("tuneManaged", f"spec.trainer.args[{index}]", key)


def _model(runtime: str) -> str:
    """`torchtune-llama3.2-1b` trains `llama3_2/1B`."""
    parts = runtime.split("-")
    return f"{parts[1].replace('.', '_')}/{parts[2].upper()}" if len(parts) == 3 else ""


def _runtime_name(model: str) -> str:
    name, _, size = model.partition("/")
    return f"torchtune-{name.replace('_', '.')}-{size.lower()}"


def _is_quantized(args: Sequence[str], release: Release) -> bool:
    """Whether adapters are quantized: the argument's value counts since 2.3, its name alone before."""
    if release < INJECTION:
        return any("model.quantize_base" in each for each in args) and not any(
            "model.use_dora" in each for each in args
        )
    return _is_true(args, "model.quantize_base") and not _is_true(args, "model.use_dora")


def _is_true(args: Sequence[str], name: str) -> bool:
    pairs = (each.partition("=") for each in args)
    return any(name in key and equals and value.strip().lower() == "true" for key, equals, value in pairs)
