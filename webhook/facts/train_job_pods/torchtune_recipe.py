"""The command that Trainer builds from `tune run`: the first node, the recipe and its configuration, and paths.

Source: kubeflow/trainer@8c0f5059bd51 pkg/runtime/framework/plugins/torch/{torch,torchtune}.go and pkg/constants;
adapters exist since 2.1.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from webhook.facts.train_job_pods.releases import ADAPTERS, INJECTION
from webhook.releases import Release

ENTRYPOINT: Final = ["tune", "run"]
MANAGED: Final = ("output_dir", "tokenizer.path", "checkpointer.checkpoint_dir", "tokenizer.merges_file")
"""Arguments that the runtime manages."""
_FULL: Final = "full_finetune_distributed"


def recipe_and_config(
    model: str, args: Sequence[str], nodes: int, *, is_single: bool, release: Release
) -> tuple[str, str]:
    """Return the recipe and its configuration (getRecipeAndConfig); `is_single` for one device on one node."""
    quantized = release >= ADAPTERS and is_adapter_quantized(args, release)
    adapted = release >= ADAPTERS and any("model.lora_attn_modules" in argument for argument in args)
    if nodes != 1:
        return _FULL, f"{model}_full_multinode" if nodes > 1 else f"{model}_full"
    where = "single_device" if is_single else "distributed"
    if quantized or adapted:
        suffix = "_qlora" if quantized else "_lora"
        return f"lora_finetune_{where}", f"{model}{suffix}{'_single_device' if is_single else ''}"
    return f"full_finetune_{where}", f"{model}_full{'_single_device' if is_single else ''}"


def model_of_runtime(runtime: str) -> str:
    """Return the model of a runtime: `llama3_2/1B` for `torchtune-llama3.2-1b`."""
    parts = runtime.split("-")
    return f"{parts[1].replace('.', '_')}/{parts[2].upper()}" if len(parts) == 3 else ""


def is_adapter_quantized(args: Sequence[str], release: Release) -> bool:
    """Return whether adapters are quantized: the argument's value counts since 2.3, its name alone before."""
    if release < INJECTION:
        return any("model.quantize_base" in argument for argument in args) and not any(
            "model.use_dora" in argument for argument in args
        )
    return _is_argument_true(args, "model.quantize_base") and not _is_argument_true(args, "model.use_dora")


def _is_argument_true(args: Sequence[str], name: str) -> bool:
    pairs = (argument.partition("=") for argument in args)
    return any(name in key and equals and value.strip().lower() == "true" for key, equals, value in pairs)


def overridden_paths(command: Sequence[str]) -> Iterator[str]:
    """Yield the paths that the command of the runtime sets (extractOverridesFromRuntime)."""
    yield from (argument for argument in command if argument.split("=")[0] in MANAGED)
