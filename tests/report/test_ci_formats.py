"""The formats for CI systems and code hosts: SARIF, GitHub's annotations, GitLab's report, a comment in Markdown."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from webhook.apimachinery.attributes import Phase
from webhook.cli import run_command_line
from webhook.errors import InputProblem
from webhook.report import formats, github, gitlab, markdown, sarif
from webhook.report.counts import ObjectCounts
from webhook.report.finding import Finding, Result, Subject
from webhook.report.rule import Rule
from webhook.report.writer import Totals
from webhook.rules.decisions import Decision, ValidationAction
from webhook.rules.problem import Problem as Found
from webhook.yamltext import yamlfile
from webhook.yamltext.source_line import Place

POLICIES = ["--only", str(Path(__file__).parents[1] / "data" / "commands" / "policies")]
HOSTILE = "a\n::error::b%`|<img src=x>@team\x1b[31m"


@pytest.fixture
def pods(tmp_path: Path) -> str:
    """Write two files. One has an allowed Pod, and a Pod that is denied because of its second label. The other has a
    Pod with only a name.
    """
    labels: dict[str, dict[str, str]] = {"good": {}, "bad": {"a": "1", "deny": "1"}}
    texts = [
        yamlfile.dump({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": own}})
        for name, own in labels.items()
    ]
    (tmp_path / "a.yaml").write_text("---\n".join(texts))
    other = texts[1].replace('deny: "1"', 'deny: "2"')
    assert other != texts[1]
    (tmp_path / "b.yaml").write_text(other)
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
    (rule,) = made["tool"]["driver"]["rules"]
    assert rule["help"]["markdown"].startswith(f"**{rule['shortDescription']['text']}**")
    assert rule["fullDescription"]["text"]
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


def test_github_shows_a_finding_next_to_the_code(pods: str, capsys: pytest.CaptureFixture[str]) -> None:
    lines = audited("github", pods, capsys).splitlines()
    assert len(lines) == 2
    for line in lines:
        assert re.fullmatch(r"::error file=[^:,]+,line=\d+,col=\d+,title=[^:,]+::Pod default/bad: .+", line)


def test_markdown_has_the_totals_and_then_each_object(pods: str, capsys: pytest.CaptureFixture[str]) -> None:
    text = audited("markdown", pods, capsys)
    assert text.startswith("### claimgate: 3 objects\n\n1 without findings, 2 with findings (2 fail)\n")
    assert "\n**❌ denied: `denies`**\n\n- metadata.labels.deny: is not allowed; remove it\n" in text
    assert text.count(" Pod default/bad\n") == 2


UNREADABLE = Totals(unreadable=(InputProblem(message=HOSTILE, file="x,y:z.yaml", line=3),))
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
def test_text_of_a_file_is_shown_and_never_a_ci_command(form: str) -> None:
    writer, expected = HELD[form]
    made = writer()
    text = "".join([*made.begin({}), *made.end(UNREADABLE)])
    assert expected in text
    assert "\x1b" not in text
    assert "\n::error::" not in text


def test_a_comment_has_at_most_the_length_that_github_accepts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bad = {"apiVersion": "v1", "kind": "Pod", "metadata": {"labels": {"deny": "1"}}}
    pods: list[object] = [{**bad, "metadata": {**bad["metadata"], "name": f"p{number}"}} for number in range(700)]  # type: ignore[dict-item]
    gpu = {"nvidia.com/gpu": 0.5}
    for number in range(900):
        name = f"p{number}-{'n' * 50}"
        containers = [{"name": name, "image": "x", "resources": {"limits": gpu}}]
        pods.append({**bad, "metadata": {"name": name}, "spec": {"containers": containers}})
    (tmp_path / "pods.json").write_text(json.dumps(pods))
    text = audited("markdown", str(tmp_path), capsys)
    assert len(text) < 65_536
    assert "- metadata.labels.deny: is not allowed; remove it\n" in text
    assert "  - and 690 more\n" in text


def test_many_findings_fit_into_a_short_comment(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """148 findings of twelve rules would need 56 KB, with a link, a path and a text each."""
    found, writer = ObjectCounts(), formats.writers_of_findings()["markdown"]()
    pieces = [*writer.begin({})]
    for number in range(148):
        rule = Rule(
            id=f"group/a-rule-of-such-a-name-{number % 12}", policy="p", docs=f"https://docs.example/{'x' * 80}"
        )
        path = f'spec.template.spec.containers[{number % 3}].resources.limits["nvidia.com/gpu"]'
        problem = Found(code=rule.id, path=path, message=f"{'says what is wrong ' * 5}{number % 5}", fix="do this " * 6)
        decision = Decision(
            policy="p", binding="b", evaluation="deny", actions=(ValidationAction.DENY,), problems=(problem,)
        )
        about = Subject(api_version="v1", kind="PyTorchJob", namespace="research", name=f"fine-tune-{number}")
        at = Place(file=f"manifests/teams/research/jobs/fine-tune-{number}.yaml", line=20, column=5)
        one = Finding(
            result=Result.FAIL,
            rule=rule,
            subject=about,
            place=at,
            phase=Phase.VALIDATE,
            decision=decision,
            problem=problem,
        )
        found.add_finding(one)
        pieces += writer.entry(one)
    text = "".join([*pieces, *writer.end(Totals(entries=148, counts=found))])
    assert text.count("fine-tune-") == 2 * 148
    assert len(text.encode()) < 30_000
