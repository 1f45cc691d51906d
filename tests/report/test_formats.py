"""A new output format is one file and one row. audit, replay and test then write it."""

import importlib
import inspect
import json
import pkgutil
from dataclasses import dataclass, field
from pathlib import Path

import pytest

import webhook.report
from webhook.cli import run_command_line
from webhook.commands import output
from webhook.report import formats
from webhook.report.formats import FORMATS, ReportFormat
from webhook.report.writer import Totals
from webhook.yamltext import yamlfile

HERE = Path(__file__).parents[1] / "data" / "commands"
POLICIES = ["--only", str(HERE / "policies")]


class Rows:
    """A new format: the number of rules, then rule, result and object of each finding, then the sums."""

    def begin(self, rules):
        yield f"{len(rules)} rules\n"

    def entry(self, entry):
        yield f"{entry.rule.id}\t{entry.result}\t{entry.subject}\n"

    def end(self, totals):
        yield f"{totals.entries} entries, {sum(totals.counts.results.values())} findings\n"


WITHOUT_FORMAT = {"baseline", "copies", "statistics", "writer"}
"""Modules with writers that a flag chooses, or that wrap the writer of a format"""


def test_a_module_with_writers_has_a_row() -> None:
    for found in pkgutil.iter_modules(webhook.report.__path__):
        module = importlib.import_module(f"webhook.report.{found.name}")
        own = [each for each in vars(module).values() if getattr(each, "__module__", "") == module.__name__]
        is_writer = any(all(hasattr(each, step) for step in ("begin", "entry", "end")) for each in own)
        has_row = f'_writer("{found.name}"' in inspect.getsource(formats)
        assert has_row or not is_writer or found.name in WITHOUT_FORMAT, (
            f"add a row for webhook/report/{found.name}.py to FORMATS in webhook/report/formats.py, and run `make docs`"
        )


@pytest.fixture
def rows(monkeypatch):
    monkeypatch.setattr(
        formats, "FORMATS", (*FORMATS, ReportFormat(name="rows", audience="people", content="rows", findings=Rows))
    )


@pytest.fixture
def pods(tmp_path):
    labels = {"good": {}, "bad": {"deny": "1"}}
    pods = [{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": labels[name]}} for name in labels]
    (tmp_path / "pods.json").write_text(json.dumps(pods))
    return str(tmp_path / "pods.json")


DENIED = "denies\tfail\tPod default/bad\n"


@pytest.mark.parametrize("verb", ["audit", "replay"])
def test_a_format_that_is_added_writes_audits_and_replays(verb, rows, pods, capsys):
    assert run_command_line([verb, *POLICIES, pods, "-o", "rows"]) == 1
    out = capsys.readouterr().out
    assert out.startswith(("4 rules\n", "6 rules\n"))  # audit has two rules without a policy
    assert DENIED in out
    assert "denies\tpass\tPod default/good\n" in out
    assert out.endswith(f"2 entries, {out.count(chr(10)) - 2} findings\n")


def test_a_format_that_is_added_writes_tests(rows, tmp_path, capsys):
    (tmp_path / "policy.yaml").write_text((HERE / "policies" / "policies.yaml").read_text())
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}}
    cases = [{"name": str(allowed), "input": pod, "expect": {"allowed": allowed}} for allowed in (True, False)]
    (tmp_path / "suite.yaml").write_text(yamlfile.dump({"cases": cases}))
    assert run_command_line(["test", str(tmp_path), "-o", "rows"]) == 1
    suite = tmp_path / "suite.yaml"
    outcomes = [
        f"{suite}\t{outcome}\tCase {tmp_path.name}/{name}" for outcome, name in (("pass", True), ("fail", False))
    ]
    assert capsys.readouterr().out.splitlines() == ["0 rules", *outcomes, "2 entries, 2 findings"]


@pytest.mark.parametrize("name", formats.format_names())
@pytest.mark.parametrize("verb", ["audit", "replay"])
def test_every_format_writes_what_a_verb_reports(verb, name, pods, capsys):
    assert run_command_line([verb, *POLICIES, pods, "-o", name]) == 1
    assert "is not allowed; remove it" in capsys.readouterr().out


NOT_IN_REPORT = {
    "text": "stderr has the error, and both are on one terminal",
    "ndjson": "a line is about an object; stderr has the error",
    "policyreport": "a result is about an object; stderr has the error",
    "openreports": "a result is about an object; stderr has the error",
}
"""The formats that do not name an unreadable file"""


@pytest.mark.parametrize("name", formats.format_names())
def test_every_format_names_a_file_that_cannot_be_read(name, pods, capsys):
    Path(pods).with_name("broken.yaml").write_text("kind: [")
    assert run_command_line(["audit", *POLICIES, str(Path(pods).parent), "-o", name]) == 2
    out, err = capsys.readouterr()
    assert "broken.yaml:" in err
    assert ("broken.yaml" in out) is (name not in NOT_IN_REPORT), (
        f"the writer of `{name}` in webhook/report must name the files of Totals.unreadable, or NOT_IN_REPORT in "
        "this file must say why it does not"
    )


def test_a_run_that_cannot_start_does_not_change_the_file(tmp_path, pods):
    kept = tmp_path / "kept.json"
    kept.write_text("before")
    assert run_command_line(["audit", "--only", str(tmp_path / "absent"), pods, "-o", f"json={kept}"]) == 2
    assert kept.read_text() == "before"


@dataclass
class Gone:
    texts: list[str] = field(default_factory=list)

    def writelines(self, texts):
        for text in texts:
            if self.texts:
                raise BrokenPipeError
            self.texts.append(text)


class Words:
    def begin(self, _rules):
        yield "begin\n"

    def entry(self, entry):
        yield f"{entry}\n"

    def end(self, _totals):
        yield "end\n"


def reported(outputs, monkeypatch):
    monkeypatch.setattr(output.sys, "stdout", Gone())
    with output.Report(outputs, {"words": Words}, {}) as report:
        report.write_entry("one")
        report.write_entry("two")
        report.end(Totals())


def test_a_file_is_complete_even_if_stdout_is_closed(tmp_path, monkeypatch):
    kept = tmp_path / "kept"
    with pytest.raises(BrokenPipeError):
        reported([output.Output("words"), output.Output("words", str(kept))], monkeypatch)
    assert kept.read_text() == "begin\none\ntwo\nend\n"


def test_no_format_is_written_after_a_broken_pipe(monkeypatch):
    with pytest.raises(BrokenPipeError):
        reported([output.Output("words")], monkeypatch)
