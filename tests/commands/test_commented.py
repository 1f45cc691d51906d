"""Comments `# claimgate:ignore RULE reason` in audited files, if the configuration allows such comments."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.rows import all_rows
from webhook.cli import run_command_line

BROKEN = Path(__file__).parents[2] / "examples/research-team/broken/mpijob-slots.yaml"
RULE = "training-job/slots-for-ranks"
COMMENT = f"# claimgate:ignore {RULE} the old launcher counts twice"
WHY = "excepted by a comment in the file: the old launcher counts twice"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def written(comment: str, *, above: bool = False, separator: str = "") -> None:
    field = "  slotsPerWorker: 4\n"
    changed = f"  {comment}\n{field}" if above else f"  slotsPerWorker: 4  {comment}\n"
    Path("job.yaml").write_text(separator + BROKEN.read_text().replace(field, changed))


def audited(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, dict[str, Any], str]:
    code = run_command_line(["audit", "-o", "json", "--show=skip", "--rule", RULE, *arguments, "--", "job.yaml"])
    out, err = capsys.readouterr()
    return code, json.loads(out), err


@all_rows(
    ("above", "separator"),
    [(False, ""), (True, ""), (True, "broken: [\n---\n")],
    ids=["at the line", "above the line", "in a file with a broken document"],
)
def test_a_comment_makes_an_exception_for_the_finding_at_its_line(
    folder: Path, capsys: pytest.CaptureFixture[str], *, above: bool, separator: str
) -> None:
    Path("claimgate.yaml").write_text("ignoreComments: [research]\n")
    written(COMMENT, above=above, separator=separator)
    code, made, _ = audited(capsys)
    (finding,) = made["findings"]
    assert (finding["result"], finding["rule"]) == ("skip", RULE)
    assert WHY in finding["message"]
    assert code == (2 if separator else 0)
    assert made["leftOut"]["commented"] == 1
    run_command_line(["audit", "--rule", RULE, "--", "job.yaml"])
    assert "left out: 1 finding by comments" in capsys.readouterr().out


@all_rows(
    ("configuration", "comment", "arguments", "said"),
    [
        ("ignoreComments: [other]", COMMENT, [], "the configuration does not allow it here (ignoreComments)"),
        ("shipped: true", COMMENT, [], "the configuration does not allow it here (ignoreComments)"),
        ("ignoreComments: ['*']", COMMENT, ["--no-config"], "does not allow it here (ignoreComments)"),
        ("ignoreComments: ['*']", f"# claimgate:ignore {RULE}", [], "without a reason: write the reason after"),
        ("ignoreComments: ['*']", "# claimgate:ignore gpu-portable/all why", [], ""),
    ],
    ids=["another namespace", "no configuration of comments", "--no-config", "no reason", "another rule"],
)
def test_a_comment_without_effect_is_reported(
    folder: Path,
    capsys: pytest.CaptureFixture[str],
    configuration: str,
    comment: str,
    arguments: list[str],
    said: str,
) -> None:
    Path("claimgate.yaml").write_text(configuration)
    written(comment)
    code, made, err = audited(capsys, *arguments)
    assert (code, [each["result"] for each in made["findings"]]) == (1, ["fail"])
    assert made["leftOut"]["commented"] == 0
    assert said in err
    assert ("warning: job.yaml:9: the comment" in err) is bool(said)


def test_several_processes_count_the_same(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("claimgate.yaml").write_text("ignoreComments: [research]\n")
    written(COMMENT)
    Path("other.yaml").write_text(Path("job.yaml").read_text())
    for jobs in ("1", "2"):
        assert run_command_line(["audit", "--rule", RULE, "--output=github", f"--jobs={jobs}", "--", "."]) == 0
        said = "left out: 2 findings by comments"
        assert capsys.readouterr().out.splitlines() == [f"::notice title=left out by configuration::{said}"]


def test_a_comment_is_about_one_line(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A comment in one document does not ignore a finding in the next document."""
    Path("claimgate.yaml").write_text("ignoreComments: [research]\n")
    written(COMMENT)
    Path("job.yaml").write_text(f"{Path('job.yaml').read_text()}---\n{BROKEN.read_text()}")
    _, made, _ = audited(capsys)
    assert sorted(each["result"] for each in made["findings"]) == ["fail", "skip"]
