"""The mistakes that the torch plugin refuses: kubeflow/trainer@8c0f5059bd51 torchtune.go, by rule and release."""

from __future__ import annotations

import pytest

from tests.facts.trainer.made import job, node, of, replicated
from tests.facts.trainer.made import runtime as made

QLORA, LORA = "model.quantize_base=True", "model.lora_attn_modules=[q_proj]"


def told(
    runtime: str, *args: str, release: tuple[int, int] = (2, 3), gpus: int = 0, **trainer: object
) -> list[tuple[str, str, str]]:
    spec = {"command": ["tune", "run"], "args": list(args), **trainer}
    own = job(runtimeRef={"name": runtime}, trainer=spec)
    base = made(replicated("node", node({"limits": {"nvidia.com/gpu": gpus}}), step="trainer"))
    base["metadata"]["name"] = runtime
    found = of(own, base, version=release)
    return [(each.code, each.path, each.found) for each in found.problems if each.code.startswith("train-job/tune-")]


SMALL, LARGE, QWEN = "torchtune-llama3.2-1b", "torchtune-llama3.3-70b", "torchtune-qwen2.5-1.5b"


@pytest.mark.parametrize(
    "runtime", [SMALL, "torchtune-llama3.2-3b", LARGE, QWEN, "x-LLAMA3.2-1b".lower(), "${RUNTIME}"]
)
def test_known_models(runtime: str) -> None:
    assert told(runtime, "lr=1") == []


@pytest.mark.parametrize(
    "runtime", ["torch-distributed", "torchtune-llama3.2-7b", "torchtune", "a-torchtune-llama3.2-1b"]
)
def test_unknown_models(runtime: str) -> None:
    assert told(runtime) == [("train-job/tune-model", "spec.runtimeRef.name", f"`{runtime}`")]


def test_the_first_release_has_another_list_of_models() -> None:
    assert told("torchtune-llama3.2-7b", release=(2, 0), numProcPerNode=1) == []
    assert [each[0] for each in told(QWEN, release=(2, 0), numProcPerNode=1)] == ["train-job/tune-model"]
    assert told(QWEN, release=(2, 0)) == []


@pytest.mark.parametrize(
    ("runtime", "nodes", "args", "expected"),
    [
        (SMALL, 2, [], ["train-job/tune-nodes"]),
        (LARGE, 2, [], []),
        (LARGE, 2, [LORA], ["train-job/tune-adapters"]),
        (LARGE, 2, [QLORA], ["train-job/tune-adapters"]),
        (LARGE, 2, [QLORA, "model.use_dora=true"], []),
        (LARGE, 2, ["model.quantize_base=False"], []),
        (SMALL, 1, [LORA], []),
        (SMALL, None, [], []),
    ],
)
def test_nodes(runtime: str, nodes: object, args: list[str], expected: list[str]) -> None:
    assert [what for what, _, _ in told(runtime, *args, numNodes=nodes)] == expected


@pytest.mark.parametrize(
    ("runtime", "processes", "gpus", "args", "expected"),
    [
        (SMALL, None, 0, [QLORA], [("train-job/tune-devices", "spec.trainer.resourcesPerNode", "")]),
        (SMALL, 2, 2, [QLORA], [("train-job/tune-devices", "spec.trainer.resourcesPerNode", "")]),
        (SMALL, 1, 8, [QLORA], []),
        (SMALL, None, 1, [QLORA], []),
        (SMALL, None, 0, [QLORA, "model.use_dora=True"], []),
        (LARGE, None, 8, [QLORA], []),
        (QWEN, None, 1, [QLORA], [("train-job/tune-quantized", "spec.runtimeRef.name", "")]),
        (QWEN, None, 8, [QLORA], [("train-job/tune-quantized", "spec.runtimeRef.name", "")]),
        (QWEN, None, 8, [LORA], []),
    ],
)
def test_quantized_adapters(runtime: str, processes: object, gpus: int, args: list[str], expected: list) -> None:
    assert told(runtime, *args, gpus=gpus, numProcPerNode=processes) == expected


def test_before_2_3_the_name_of_the_argument_is_enough_and_more_is_allowed() -> None:
    assert [each[0] for each in told(SMALL, "model.quantize_base=False", release=(2, 2))] == ["train-job/tune-devices"]
    assert told(SMALL, QLORA, "model.use_dora=False", release=(2, 2)) == []
    assert told(LARGE, LORA, "output_dir=/x", numNodes=2, release=(2, 2)) == []


def test_arguments_that_the_runtime_manages() -> None:
    found = told(SMALL, "lr=1", "output_dir=/x", "tokenizer.path=/y", "tokenizer.paths=/z")
    assert found == [
        ("train-job/tune-argument", "spec.trainer.args[1]", "`output_dir`"),
        ("train-job/tune-argument", "spec.trainer.args[2]", "`tokenizer.path`"),
    ]


@pytest.mark.parametrize(
    "trainer", [None, {}, {"command": ["tune"]}, {"command": "tune run"}, {"command": ["tune", "run", "x"]}]
)
def test_other_commands_are_not_torchtune(trainer: object) -> None:
    found = of(job(trainer=trainer), made())
    assert [each.code for each in found.problems if "tune" in each.code] == []
