"""`claimgate replay --explain` prints why each policy decided or not, from the record of the evaluation."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import get_args

import pytest

from tests.golden import compare_with_golden_file
from webhook.cli import run_command_line
from webhook.rules.decisions import Outcome

HERE = Path(__file__).parents[1] / "data" / "commands" / "explain"
SAMPLES = Path(__file__).parents[2] / "deploy" / "samples"
FIXED = ["replay", "--only", "policies.yaml", "objects.yaml"]


def stable(text: str) -> str:
    """Replace times, which differ from run to run."""
    return re.sub(
        r" {2}\d+\.\d\d +(?=\d)", "  n.nn  ", re.sub(r"MS +COST", "MS    COST", re.sub(r"- +- ", "-     - ", text))
    )


def explained(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[list[dict[str, object]]]:
    run_command_line(["replay", *arguments, "--explain", "-o", "ndjson"])
    return [json.loads(line)["explanations"] for line in capsys.readouterr().out.splitlines()]


def test_explain_prints_a_table_for_each_phase(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The fixtures are a Pod with a warning, a denied Pod, a Job, and a Service without findings."""
    monkeypatch.chdir(HERE)
    assert run_command_line([*FIXED, "--explain"]) == 1
    actual = stable(capsys.readouterr().out)
    compare_with_golden_file(HERE / "explained.txt", actual, request.config)


def test_explain_changes_no_other_output(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(HERE)
    answers = []
    for flags in ([], ["--explain"]):
        assert run_command_line([*FIXED, *flags, "-o", "json"]) == 1
        answers.append(json.loads(capsys.readouterr().out))
    plain, told = answers
    assert all("explanations" not in answer for answer in plain)
    assert [answer.pop("explanations") != [] for answer in told] == [True] * 4
    for answer in (*plain, *told):
        answer["response"]["response"].pop("uid")
    assert told == plain


def test_json_has_every_field(capsys: pytest.CaptureFixture[str]) -> None:
    first, *_ = explained(capsys, "--only", str(HERE / "policies.yaml"), str(HERE / "objects.yaml"))
    (marked,) = [each for each in first if each["policy"] == "marked"]
    assert marked.pop("elapsedMs") > 0  # type: ignore[operator]
    assert marked == {
        "phase": "mutate",
        "policy": "marked",
        "kind": "mutating",
        "binding": "marked",
        "param": "",
        "path": "",
        "outcome": "changed",
        "reason": "",
        "cost": 53,
    }
    assert {each["outcome"] for each in first} <= set(get_args(Outcome))


def test_the_shipped_policies_on_a_train_job(capsys: pytest.CaptureFixture[str]) -> None:
    review, context = SAMPLES / "reviews" / "05-trainjob-dra-claims.json", SAMPLES / "context"
    (told,) = explained(capsys, str(review), "--context", str(context))
    outcomes = {each["policy"]: (each["outcome"], each["reason"]) for each in told if each["phase"] == "validate"}
    assert outcomes["trainjob-num-proc-per-node"] == ("warned", "num-proc-per-node/not-set")
    assert outcomes["trainer-job"] == ("no problem", "")
    no_pods = "it is about pods, and the object has no pod template itself"
    assert outcomes["claims-exactly-one"] == ("not matched", no_pods)
    names = "no rule of its matchConstraints names CREATE trainjobs.trainer.kubeflow.org"
    assert outcomes["kueue-queues"] == ("not registered", names)
    (told,) = explained(capsys, str(review))  # the TrainingRuntime is not in the input
    (open_one,) = [each["reason"] for each in told if each["policy"] == "trainjob-num-proc-per-node"]
    assert open_one == "ClusterTrainingRuntime torch-distributed-a100 not found"


def test_explain_says_that_no_policy_matches_policies(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    binding = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": "a"},
        "spec": {"policyName": "a", "validationActions": ["Deny"]},
    }
    (tmp_path / "object.json").write_text(json.dumps(binding))
    (told,) = explained(capsys, str(tmp_path / "object.json"))
    assert {each["outcome"] for each in told} == {"not registered"}
    asked = "no policy is evaluated on policies and webhook configurations"
    others = {each["policy"] for each in told if each["reason"] != asked}
    assert "gpu-limits" not in others
    assert "served-versions" in others  # is not registered, so an API server never asks for it
