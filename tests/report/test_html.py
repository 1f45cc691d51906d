"""The HTML report is complete without scripts, runs no other scripts, and escapes all text of objects."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import subprocess
from html.parser import HTMLParser
from pathlib import Path

import pytest

from webhook.apimachinery.attributes import Phase
from webhook.cli import run_command_line
from webhook.report.finding import Finding, Result, Subject
from webhook.report.formats import writers_of_findings
from webhook.report.rule import Rule
from webhook.report.writer import Totals
from webhook.rules.decisions import Decision
from webhook.yamltext.source_line import Place

GOLDEN = Path(__file__).parents[1] / "data" / "reports" / "golden" / "audit-html.html"
POLICIES = ["--only", str(Path(__file__).parents[1] / "data" / "commands" / "policies")]
VOID = {"meta", "input", "br"}
HOSTILE = "<script>alert(1)</script>"


class Page(HTMLParser):
    """Reads HTML like a browser. It records the open elements, and every element that was opened."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def named(self, tag: str, **attributes: str) -> list[dict[str, str | None]]:
        return [own for name, own in self.elements if name == tag and attributes.items() <= own.items()]


def pod(name: str, **labels: str) -> dict[str, object]:
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": HOSTILE, "labels": labels}}


@pytest.fixture
def page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> str:
    (tmp_path / "pods.json").write_text(json.dumps([pod("good"), pod("bad", deny="1"), pod('"><b', deny="1")]))
    assert run_command_line(["audit", *POLICIES, str(tmp_path), "-o", "html"]) == 1
    return capsys.readouterr().out


def test_every_section_begins_with_a_heading_or_has_a_label() -> None:
    """Screen readers list the sections of a page by these names."""
    sections = re.findall(r"<section[^>]*>(?:<h[2-6])?", GOLDEN.read_text())
    assert len(sections) > 3
    assert [each for each in sections if "aria-label" not in each and "<h" not in each] == [], "use a div"


def test_every_element_is_closed_and_each_finding_is_there(page: str) -> None:
    read = Page(page)
    assert read.open == []
    assert len(read.named("li", **{"data-result": "denied"})) == 2
    assert read.named("html") == [{"lang": "en"}]
    assert {own["id"] for own in read.named("select")} == {"result", "severity", "rule", "namespace"}
    assert "hidden" in read.named("details", id="filtering")[0], "without a script filters would do nothing"


def test_a_browser_runs_and_loads_only_content_of_the_page(page: str) -> None:
    (policy,) = [own["content"] for own in Page(page).named("meta", **{"http-equiv": "Content-Security-Policy"})]
    for element in ("style", "script"):
        (text,) = re.findall(rf"<{element}>(.*?)</{element}>", page, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"{element}-src 'sha256-{digest}'" in str(policy)
    assert str(policy).startswith("default-src 'none'; ")


def test_text_of_objects_is_escaped_in_html(page: str) -> None:
    assert HOSTILE not in page
    assert "&lt;script&gt;alert(1)" in page
    assert len(Page(page).named("script")) == 1
    assert Page(page).named("b") == [{}] * 7, "the seven sums alone"


def test_the_head_says_when_and_how_the_report_was_made(page: str, tmp_path: Path) -> None:
    head = page.partition("</header>")[0]
    assert re.search(
        r'Written <time datetime="\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ">\d{4}-\d\d-\d\d \d\d:\d\d UTC</time>', head
    )
    assert f"<dd>claimgate audit --only {POLICIES[1]} {tmp_path} -o html</dd>" in head
    assert f"<dt>Policies</dt><dd>{POLICIES[1]}</dd>" in head
    assert "Commit" not in head, "the folder is in no work tree"


def test_the_head_names_the_commit_of_a_work_tree(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def git(*arguments: str) -> str:
        command = ["git", "-c", "user.name=n", "-c", "user.email=e@example.com", *arguments]
        return subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, text=True).stdout.strip()

    git("init", "-q")
    (tmp_path / "pod.json").write_text(json.dumps(pod("good")))
    run_command_line(["audit", *POLICIES, str(tmp_path), "-o", "html"])
    assert "<dt>Commit</dt>" not in capsys.readouterr().out, "there is no commit yet"
    git("commit", "-q", "--allow-empty", "-m", "first")
    run_command_line(["audit", *POLICIES, str(tmp_path / "pod.json"), "-o", "html"])
    assert f"<dt>Commit</dt><dd>{git('rev-parse', 'HEAD')}</dd>" in capsys.readouterr().out


def test_findings_are_in_the_order_of_results_and_severities() -> None:
    def found(result: Result, severity: str, name: str) -> Finding:
        decision = Decision(policy="p", binding="b", evaluation="deny", message="is bad")
        return Finding(
            result=result,
            rule=Rule(id=f"g/{name}", policy="p", severity=severity),
            subject=Subject(api_version="v1", kind="Pod", namespace="team", name="a"),
            place=Place(file="a.yaml", line=1, column=1),
            phase=Phase.VALIDATE,
            decision=decision,
        )

    writer = writers_of_findings([Result.SKIP])["html"]()
    for each in (
        found(Result.SKIP, "critical", "skipped"),
        found(Result.WARN, "high", "warned"),
        found(Result.FAIL, "", "denied"),
        found(Result.FAIL, "low", "low"),
        found(Result.FAIL, "critical", "critical"),
    ):
        assert [*writer.entry(each)] == []
    page = "".join(writer.end(Totals()))
    assert re.findall(r"<h2>(.*?)</h2>", page) == [
        "Denied, critical: 1",
        "Denied, low: 1",
        "Denied: 1",
        "Warning, high: 1",
        "Not evaluated, critical: 1",
    ]
    rules = re.findall(r'data-rule="([^"]*)"', page)
    assert rules == ["g/critical", "g/low", "g/denied", "g/warned", "g/skipped"]
    charts = page[page.index('<section class="charts"') :]
    assert re.findall(r'<a href="#([^"]*)">', charts) == [
        "severity=critical",
        "severity=high",
        "severity=no+severity",
        "severity=low",
        "rule=g%2Fwarned",
        "rule=g%2Fdenied",
        "rule=g%2Flow",
        "rule=g%2Fcritical",
        "namespace=team",
    ], "what was not evaluated is in no chart"


def test_the_finding_shows_the_source_line_with_a_marker(page: str) -> None:
    assert page.count("<mark>&quot;deny&quot;</mark>") == 2
    assert [own["tabindex"] for own in Page(page).named("pre")] == ["0", "0"], "what scrolls is reached by keyboard"
