"""The README beside the policies: every fact and every field of one is named, and its examples compile."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from webhook import shipped
from webhook.cel import Environment, compiled_engine
from webhook.facts.functions import NAMES, declared

README = (Path(shipped.policies()) / "README.md").read_text()
EXAMPLES = [line.split("//")[0].strip() for line in README.splitlines() if line.startswith("    ")]


def environment() -> Environment:
    found = {name: declared(name) for name in NAMES}
    structures = {each.name: each for _, structures in found.values() for each in structures}
    return Environment(variables={name: kind for name, (kind, _) in found.items()}, structures=structures)


@pytest.mark.parametrize("expression", EXAMPLES)
def test_an_example_compiles(expression: str) -> None:
    compiled_engine().compile(expression, environment())


@pytest.mark.parametrize(
    "name",
    [
        *(
            "PodSet",
            "GpuContainer",
            "GpuResource",
            "GpuPodSet",
            "Gpu",
            "PodClaim",
            "ClaimReference",
            "DeviceRequest",
            "Dra",
        ),
        *("Training", "UnknownField", "TrainingRole", "TrainingContainer", "Launch", "OddValue"),
        *("SandboxReference", "SandboxPool", "SandboxNote", "Sandbox"),
        *(
            "Trainer",
            "TrainerRuntime",
            "TrainerNode",
            "NodeClaim",
            "TrainerProcesses",
            "TrainerNames",
            "TrainerScheduling",
        ),
        *("TrainerNote", "Priorities", "PodPriority", "Running"),
    ],
)
def test_every_field_is_named(name: str) -> None:
    _, structures = declared("gpu")
    (structure,) = [each for each in structures if each.name == f"claimgate.{name}"]
    words = set(re.findall(r"\w+", README))
    assert set(structure.fields) <= words
