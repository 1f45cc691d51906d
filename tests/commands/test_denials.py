"""A job has ten mistakes, and a mutating policy denies one of them. The denial has the code of this policy, and reports
all ten mistakes.
"""

import json
from pathlib import Path

import pytest

from webhook.cli import run_command_line

ROOT = Path(__file__).parents[2]
JOB = ROOT / "tests" / "data" / "commands" / "denials" / "ten-mistakes.yaml"


def test_audit_finds_all_ten_mistakes_at_once(capsys):
    assert run_command_line(["audit", str(JOB), "-o", "ndjson"]) == 1
    found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    failed = [each for each in found if each["result"] == "fail"]
    assert len(failed) == 10
    assert len({each["line"] for each in failed}) == 10
    assert [each["rule"] for each in failed if each["phase"] == "mutate"] == ["gpu-portable/all"]


@pytest.mark.parametrize("phase", ["auto", "mutate"])
def test_replay_reports_ten_problems_and_denies(phase, capsys):
    assert run_command_line(["replay", str(JOB), "--phase", phase, "-o", "ndjson"]) == 1
    [answer] = map(json.loads, capsys.readouterr().out.splitlines())
    assert (answer["code"], answer["reason"]) == (400, "BadRequest")
    head, *problems = answer["message"].split("\n* ")
    assert head == "10 problems (9 of them from checks that run later):"
    assert len(problems) == 10
    assert {each["phase"] for each in answer["decisions"]} == {"mutate"}
    assert len(answer["response"]["response"]["status"]["details"]["causes"]) == 10


def test_the_page_shows_the_result_of_replay(capsys):
    run_command_line(["replay", str(JOB)])
    page = (ROOT / "docs" / "denials.md").read_text()
    told = [line.strip() for line in capsys.readouterr().out.splitlines() if line.startswith("    * ")]
    assert len(told) == 10
    assert all(line in page for line in told)


def test_a_translated_gpu_is_not_reported_as_a_problem(tmp_path, capsys):
    """A container with `gpu: 1` is translated before the other checks, also if another container is refused."""
    file = tmp_path / "job.yaml"
    file.write_text(JOB.read_text().replace("nvidia.com/gpu: 500m", "gpu: 1"))
    assert run_command_line(["replay", str(file), "-o", "ndjson"]) == 1
    [answer] = map(json.loads, capsys.readouterr().out.splitlines())
    assert "Worker.template.spec.containers[0].resources.limits.gpu" not in answer["message"]
    assert answer["message"].startswith("9 problems (8 of them")
