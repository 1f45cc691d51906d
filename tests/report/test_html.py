"""The HTML report: it is complete without scripts, runs no other scripts, and escapes all text of objects."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from webhook.cli import run_command_line

POLICIES = ["--only", str(Path(__file__).parents[1] / "data" / "commands" / "policies")]
VOID = {"meta", "input", "br"}
HOSTILE = "<script>alert(1)</script>"


class Page(HTMLParser):
    """The page as a browser reads it: the open elements, and each element that was open."""

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


@pytest.fixture
def page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> str:
    def pod(name: str, **labels: str) -> dict[str, object]:
        return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": HOSTILE, "labels": labels}}

    (tmp_path / "pods.json").write_text(json.dumps([pod("good"), pod("bad", deny="1"), pod('"><b', deny="1")]))
    assert run_command_line(["audit", *POLICIES, str(tmp_path), "-o", "html"]) == 1
    return capsys.readouterr().out


def test_every_element_is_closed_and_each_finding_is_there(page: str) -> None:
    read = Page(page)
    assert read.open == []
    assert len(read.named("li", **{"data-result": "denied"})) == 2
    assert read.named("html") == [{"lang": "en"}]
    assert {own["id"] for own in read.named("select")} == {"result", "rule", "namespace"}
    assert "hidden" in read.named("form")[0], "without a script filters would do nothing"


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


def test_the_finding_shows_the_source_line_with_a_marker(page: str) -> None:
    assert page.count("<mark>&quot;deny&quot;</mark>") == 2
    assert [own["tabindex"] for own in Page(page).named("pre")] == ["0", "0"], "what scrolls is reached by keyboard"
