"""Rules of the torch plugin for a TrainJob that runs torchtune (`command: [tune, run]`).

The plugin reads the model from the name of the runtime, `<anything>-<name>-<size>`, and chooses a recipe by nodes,
devices and arguments. The rules about quantized adapters apply since 2.1, TUNE_ADAPTERS and TUNE_ARGUMENT since 2.3.

Source: kubeflow/trainer@8c0f5059bd51 pkg/runtime/framework/plugins/torch/torchtune.go and pkg/constants, and branches
release-2.0 to release-2.3.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from webhook.apimachinery.attributes import JSON
from webhook.apimachinery.releases import release_as_text
from webhook.facts.train_job_pods.merged_train_job import MergedTrainJob
from webhook.facts.train_job_pods.plugins import TORCHTUNE_PATHS, TUNE_RUN, is_adapter_quantized, model_of_runtime
from webhook.facts.train_job_pods.releases import ADAPTERS, INJECTION, NUMBERS_ONLY
from webhook.facts.train_job_pods.types import TRAIN_JOB
from webhook.rules.problem import Problem
from webhook.text.wording import counted
from webhook.yamltext.placeholders import is_placeholder

TUNE_MODEL: Final = TRAIN_JOB.rule(
    "train-job/tune-model",
    title="The torchtune runtime's name does not end with a known model",
    why="The torch plugin reads the model from the name of the runtime.",
    source="kubeflow/trainer@8c0f5059bd51 pkg/runtime/framework/plugins/torch/torchtune.go",
)
TUNE_NODES: Final = TRAIN_JOB.rule(
    "train-job/tune-nodes",
    title="torchtune cannot train this model on several nodes",
    why="Only llama3.3-70b has a recipe for several nodes.",
    source="kubeflow/trainer@8c0f5059bd51 pkg/runtime/framework/plugins/torch/torchtune.go",
)
TUNE_QUANTIZED: Final = TRAIN_JOB.rule(
    "train-job/tune-quantized",
    title="The model has no recipe for quantized adapters",
    why="torchtune has no recipe for QLoRA with qwen2.5-1.5b.",
    source="kubeflow/trainer@8c0f5059bd51 pkg/runtime/framework/plugins/torch/torchtune.go",
)
TUNE_DEVICES: Final = TRAIN_JOB.rule(
    "train-job/tune-devices",
    title="Quantized adapters of llama3.2 are trained on several devices",
    why="The recipes of llama3.2 for QLoRA use one device.",
    source="kubeflow/trainer@8c0f5059bd51 pkg/runtime/framework/plugins/torch/torchtune.go",
)
TUNE_ADAPTERS: Final = TRAIN_JOB.rule(
    "train-job/tune-adapters",
    title="torchtune cannot train adapters on several nodes",
    why="torchtune has no recipe for LoRA or QLoRA on several nodes.",
    source="kubeflow/trainer@8c0f5059bd51 pkg/runtime/framework/plugins/torch/torchtune.go",
)
TUNE_ARGUMENT: Final = TRAIN_JOB.rule(
    "train-job/tune-argument",
    title="The TrainJob sets a torchtune argument that its runtime manages",
    why="Trainer refuses paths of the output, the tokenizer and the checkpoint.",
    source="kubeflow/trainer@8c0f5059bd51 pkg/runtime/framework/plugins/torch/torchtune.go",
)

_MODEL_FOR_MANY_NODES: Final = "llama3_3/70B"
_SMALL_MODELS: Final = ("llama3_2/1B", "llama3_2/3B")
_UNQUANTIZED_MODEL: Final = "qwen2_5/1.5B"
_MODELS: Final = (*_SMALL_MODELS, _MODEL_FOR_MANY_NODES, _UNQUANTIZED_MODEL)
_FIRST_MODELS: Final = ("llama3_2/1B", "llama3_2/7B", _MODEL_FOR_MANY_NODES)  # the models of 2.0
_NAME, _NODES = "spec.runtimeRef.name", "spec.trainer.numNodes"


def validate_torchtune(job: MergedTrainJob) -> Iterator[Problem]:
    """Yield the problems that the torch plugin would report about a TrainJob with a `tune run` command."""
    name = job.runtime.name
    if job.trainer.command != TUNE_RUN or job.plugin != "torch" or is_placeholder(name):
        return
    explicit = job.trainer.num_proc_per_node
    if job.release < NUMBERS_ONLY and explicit is None:  # before 2.2 the plugin checks nothing without numProcPerNode
        return
    model, args = model_of_runtime(name), job.trainer.args
    nodes = 1 if job.trainer.num_nodes is None else job.trainer.num_nodes
    yield from _validate_model(job, model, nodes)
    if job.release >= ADAPTERS and nodes == 1 and is_adapter_quantized(args, job.release):
        yield from _validate_quantized(model, explicit, job)
    if job.release >= INJECTION:
        yield from _validate_args(args, nodes, job)


def _validate_model(job: MergedTrainJob, model: str, nodes: int) -> Iterator[Problem]:
    models = _MODELS if job.release >= ADAPTERS else _FIRST_MODELS
    if model not in models:
        tunes = f"does not end with a model that Trainer {release_as_text(job.release)} can tune with torchtune"
        message = f"{tunes}, and Trainer reads the model from this name"
        fix = f"use one of {', '.join(map(_runtime_name_of_model, models))}"
        yield TUNE_MODEL.problem(_NAME, message, fix, job.runtime.name)
    if nodes > 1 and model != _MODEL_FOR_MANY_NODES:
        message = f"must be 1 because Trainer tunes the model of `{job.runtime.name}` on one node only"
        yield TUNE_NODES.problem(_NODES, message, "set 1", nodes)


def _validate_quantized(model: str, explicit: JSON, job: MergedTrainJob) -> Iterator[Problem]:
    """Yield the problems of quantized adapters. One model has no quantized adapters, and small models train quantized
    adapters only on one device.
    """
    gpus, _ = job.counted_gpus
    if model == _UNQUANTIZED_MODEL:
        message = f"is a runtime of model `{model}`, which has no quantized adapters (QLoRA)"
        yield TUNE_QUANTIZED.problem(_NAME, message, "remove model.quantize_base from spec.trainer.args")
    if model in _SMALL_MODELS and explicit != 1 and gpus != 1:
        message = (
            f"each node has {counted(gpus, 'GPU')}, from this field or the runtime, but quantized adapters (QLoRA) "
            f"of `{job.runtime.name}` train on one device"
        )
        fix = (
            "request one GPU in limits"
            if gpus
            else "request one GPU in limits, or set spec.trainer.numProcPerNode to 1"
        )
        yield TUNE_DEVICES.problem("spec.trainer.resourcesPerNode", message, fix)


def _validate_args(args: Sequence[str], nodes: int, job: MergedTrainJob) -> Iterator[Problem]:
    adapted = any("model.lora_attn_modules" in argument for argument in args) or is_adapter_quantized(args, job.release)
    if nodes > 1 and adapted:
        message = "must be 1 because adapters (LoRA, QLoRA) train on one node only"
        yield TUNE_ADAPTERS.problem(_NODES, message, "set 1, or remove the arguments for adapters", nodes)
    for index, argument in enumerate(args):
        if (key := argument.split("=")[0]) in TORCHTUNE_PATHS:
            message = "must not be set because the runtime of a torchtune job manages this argument"
            yield TUNE_ARGUMENT.problem(job.trainer.path("args", index), message, "remove the argument", key)


def _runtime_name_of_model(model: str) -> str:
    name, _, size = model.partition("/")
    return f"torchtune-{name.replace('_', '.')}-{size.lower()}"
