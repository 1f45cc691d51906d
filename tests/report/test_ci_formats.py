"""What CI systems and code hosts read: SARIF, GitHub's annotations, GitLab's report, a comment in Markdown."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from webhook.cli import run_command_line
from webhook.errors import Problem
from webhook.report import github, gitlab, markdown, sarif
from webhook.report.writer import Totals
from webhook.yamltext import yamlfile

POLICIES = ["--only", str(Path(__file__).parents[1] / "data" / "commands" / "policies")]
HOSTILE = "a\n::error::b%`|<img src=x>@team\x1b[31m"


@pytest.fixture
def pods(tmp_path: Path) -> str:
    """A Pod that is denied on its second line of labels, one that is not, and one with the same name in another file."""
    labels: dict[str, dict[str, str]] = {"good": {}, "bad": {"a": "1", "deny": "1"}}
    texts = [
        yamlfile.dump({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": own}})
        for name, own in labels.items()
    ]
    (tmp_path / "a.yaml").write_text("---\n".join(texts))
    (tmp_path / "b.yaml").write_text(texts[1])
    return str(tmp_path)


def audited(form: str, pods: str, capsys: pytest.CaptureFixture[str]) -> str:
    assert run_command_line(["audit", *POLICIES, pods, "-o", form]) == 1
    return capsys.readouterr().out


def test_sarif_names_the_rule_the_place_and_the_object(pods: str, capsys: pytest.CaptureFixture[str]) -> None:
    log = json.loads(audited("sarif", pods, capsys))
    (made,) = log["runs"]
    first, second = made["results"]
    (location,) = first["locations"]
    assert (log["version"], made["invocations"][0]["executionSuccessful"]) == ("2.1.0", True)
    assert [rule["id"] for rule in made["tool"]["driver"]["rules"]] == [first["ruleId"]]
    assert (first["ruleIndex"], first["level"]) == (0, "error")
    assert location["physicalLocation"]["artifactLocation"]["uri"].endswith("/a.yaml")
    assert location["physicalLocation"]["region"]["startLine"] > 1
    assert location["logicalLocations"][0]["fullyQualifiedName"] == "v1 Pod default/bad"
    assert first["partialFingerprints"] != second["partialFingerprints"]


def test_a_finding_keeps_its_fingerprint_when_its_object_moves(pods: str, capsys: pytest.CaptureFixture[str]) -> None:
    def fingerprints() -> list[Any]:
        return [one["fingerprint"] for one in json.loads(audited("gitlab", pods, capsys))]

    before = fingerprints()
    file = Path(pods) / "a.yaml"
    file.write_text("# a comment\n\n" + file.read_text())
    assert fingerprints() == before
    assert len(set(before)) == len(before) == 2


def test_gitlab_reads_severity_and_line(pods: str, capsys: pytest.CaptureFixture[str]) -> None:
    issues = json.loads(audited("gitlab", pods, capsys))
    assert {issue["severity"] for issue in issues} <= {"info", "minor", "major", "critical", "blocker"}
    assert all(issue["location"]["lines"]["begin"] >= 1 for issue in issues)
    assert all({"description", "check_name", "fingerprint", "severity", "location"} == set(issue) for issue in issues)


def test_github_shows_a_line_beside_the_code(pods: str, capsys: pytest.CaptureFixture[str]) -> None:
    lines = audited("github", pods, capsys).splitlines()
    assert len(lines) == 2
    for line in lines:
        assert re.fullmatch(r"::error file=[^:,]+,line=\d+,col=\d+,title=[^:,]+::Pod default/bad: .+", line)


def test_markdown_says_the_sums_and_then_each_object(pods: str, capsys: pytest.CaptureFixture[str]) -> None:
    text = audited("markdown", pods, capsys)
    assert text.startswith("### claimgate: 3 objects\n\n❌ 2 denied, ⚠️ 0 warning")
    assert text.count("**Pod default/bad** in `") == 2
    assert text.count("\n- ❌ denied: ") == 2


UNREADABLE = Totals(unreadable=(Problem(message=HOSTILE, file="x,y:z.yaml", line=3),))
HELD = {
    "github": (
        github.GithubFindingsWriter,
        "::error file=x%2Cy%3Az.yaml,line=3,title=cannot be read::a%0A\\x3a:error::b%25",
    ),
    "gitlab": (gitlab.GitlabFindingsWriter, '"path": "x,y:z.yaml"'),
    "sarif": (sarif.SarifWriter, '"uri": "x%2Cy%3Az.yaml"'),
    "markdown": (markdown.MarkdownFindingsWriter, r"\<img src=x\>\@team\\x1b\[31m"),
}


@pytest.mark.parametrize("form", HELD)
def test_what_a_file_holds_is_shown_and_not_obeyed(form: str) -> None:
    writer, expected = HELD[form]
    made = writer()
    text = "".join([*made.begin({}), *made.end(UNREADABLE)])
    assert expected in text
    assert "\x1b" not in text
    assert "\n::error::" not in text


def test_a_comment_stays_short_enough(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bad = {"apiVersion": "v1", "kind": "Pod", "metadata": {"labels": {"deny": "1"}}}
    pods = [{**bad, "metadata": {**bad["metadata"], "name": f"p{number}"}} for number in range(700)]  # type: ignore[dict-item]
    (tmp_path / "pods.json").write_text(json.dumps(pods))
    text = audited("markdown", str(tmp_path), capsys)
    assert len(text) < 65_536
    said = text.count("\n- ❌ denied: ")
    assert f"{700 - said} further findings did not fit into a comment.\n" in text
