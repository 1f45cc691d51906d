"""`claimgate audit --statistics` prints the number of findings of each rule, not the findings."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from webhook.cli import run_command_line

BROKEN = Path(__file__).parents[2] / "examples/research-team/broken/mpijob-slots.yaml"
RULE = "training-job/slots-for-ranks"
OTHER = "gpu-portable/all"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Write four jobs. Three break the same rule, and one of the three has an exception. The fourth breaks another rule
    twice.
    """
    monkeypatch.chdir(tmp_path)
    text = BROKEN.read_text()
    for name in ("a", "b", "excepted"):
        Path(f"{name}.yaml").write_text(text.replace("name: allreduce-slots", f"name: {name}"))
    replicas = "{template: {spec: {containers: [{name: pytorch, image: i, resources: {limits: {gpu: all}}}]}}}"
    spec = f"{{pytorchReplicaSpecs: {{Master: {replicas}, Worker: {replicas}}}}}"
    Path("other.yaml").write_text(
        f"{{apiVersion: kubeflow.org/v1, kind: PyTorchJob, metadata: {{name: p}}, spec: {spec}}}\n"
    )
    exception = {"rules": [RULE], "names": ["excepted"], "owner": "us", "reason": "r", "expires": "2999-01-01"}
    Path("claimgate.yaml").write_text(json.dumps({"exceptions": [exception]}))
    return tmp_path


def audit(*arguments: str) -> int:
    return run_command_line(["audit", "--statistics", "--rule", RULE, "--rule", OTHER, *arguments, "--", "."])


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_each_rule_has_its_findings_and_objects(folder: Path, capsys: pytest.CaptureFixture[str], jobs: str) -> None:
    assert audit("-o", "json", f"--jobs={jobs}") == 1
    made = json.loads(capsys.readouterr().out)
    counts = {each["rule"]: (each["result"], each["findings"], each["objects"]) for each in made["statistics"]}
    assert counts == {RULE: ("fail", 2, 2), OTHER: ("fail", 2, 1)}
    assert (made["summary"]["findings"]["fail"], made["leftOut"]["excepted"]) == (4, 1)


def test_text_has_a_line_for_each_rule_and_no_finding(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert audit() == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split(maxsplit=4) == ["2", "✖", "fail", OTHER, "The amount of `gpu` is the word all"]
    assert lines[1].split(maxsplit=4)[:4] == ["2", "✖", "fail", RULE]
    assert lines[2] == ""
    assert lines[3].startswith("4 objects in 5 files: ")
    assert len(lines) == 4


def test_without_a_finding_there_are_sums_alone(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command_line(["audit", "--statistics", "--rule", RULE, "--", "other.yaml"]) == 0
    (line,) = capsys.readouterr().out.splitlines()
    assert line.startswith("1 object in 1 file: 1 without findings")


def test_other_formats_are_refused(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert audit("-o", "sarif") == 2
    assert "unknown format `sarif`, expected one of text, json" in capsys.readouterr().err
