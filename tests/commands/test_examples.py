"""In the example of README, every broken object has its finding, and no correct object has a finding."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests import quick_yaml
from webhook.cli import run_command_line

TEAM = Path(__file__).parents[2] / "examples" / "research-team"
TOLD = {
    "inference-gpu.yaml": {"gpu-portable/all"},
    "mpijob-slots.yaml": {"training-job/slots-for-ranks"},
    "pytorchjob-processes.yaml": {"training-job/processes-and-gpus"},
    "pytorchjob-storage.yaml": {"storage/read-write-once"},
    "pytorchjob-too-many-gpus.yaml": {"kueue-never/exceeds-max-quota"},
    "trainjob-processes.yaml": {"num-proc-per-node/not-set"},
    "trainjob-queue.yaml": {"kueue-not-now/local-queue-missing"},
    "volcano-job-gang.yaml": {"volcano-job/min-available"},
    "volcano-job-queue.yaml": {"volcano-job/queue-exists"},
    "volcano-job-quota.yaml": {"volcano-job/capability"},
}


def test_every_broken_example_gets_its_finding_and_no_good_example_gets_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command_line(["audit", str(TEAM), "--context-is-whole", "-o", "json"]) == 1
    told: dict[str, set[str]] = {}
    for finding in json.loads(capsys.readouterr().out)["findings"]:
        if finding["result"] != "pass":
            told.setdefault(Path(finding["file"]).name, set()).add(finding["rule"])
    assert told == TOLD


def test_each_working_example_kind_has_a_broken_example() -> None:
    kinds = {folder: {_kind(path) for path in (TEAM / folder).glob("*.yaml")} for folder in ("good", "broken")}
    assert kinds["good"] == kinds["broken"]
    assert {path.name for path in (TEAM / "broken").glob("*.yaml")} == set(TOLD)


def _kind(path: Path) -> str:
    return str(next(quick_yaml.load_all(path.read_text()))["kind"])
