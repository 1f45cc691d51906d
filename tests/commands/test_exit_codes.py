"""Each exit code of the documented table, for each verb with this code. test_audit_stream.py tests the exit code after
Ctrl-C.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from webhook.cli import run_command_line
from webhook.typer_application import EXIT_CODES

ROOT = Path(__file__).parents[2]
HERE = ROOT / "tests" / "data" / "commands"
ONLY = ("--only", str(HERE / "policies"))
POD = "apiVersion: v1\nkind: Pod\nmetadata: {name: a, labels: {LABELS}}\n"
FILES = {
    "good.yaml": POD.replace("LABELS", ""),
    "denied.yaml": POD.replace("LABELS", "deny: x"),
    "warned.yaml": POD.replace("LABELS", "warn: x"),
    "failing.yaml": POD.replace("LABELS", "fail: x"),
    "broken.yaml": "kind: [\n",
    "half.yaml": f"{POD.replace('LABELS', 'deny: x')}---\nkind: [\n",
    "nothing.yaml": "",
    "values.yaml": "replicas: 2\n",
}
JOB = str(ROOT / "examples" / "research-team" / "{}.yaml")
GOOD = str(ROOT / "examples" / "research-team" / "good")
WHOLE = ("--context", str(ROOT / "examples" / "research-team" / "cluster"), "--context-is-whole")
SUITE = "cases: [{name: a, input: {apiVersion: v1, kind: Pod, metadata: {name: a}}, expect: {allowed: ALLOWED}}]\n"
TEXTS = {
    "passing": SUITE.replace("ALLOWED", "true"),
    "failing": SUITE.replace("ALLOWED", "false"),
    "wrong": "cases: 1\n",
}

ROWS = [
    (0, ("audit", *ONLY, "good.yaml")),
    (0, ("audit", *ONLY, "denied.yaml", "--fail-on", "never")),
    (0, ("audit", *ONLY, "warned.yaml", "--fail-on", "deny")),
    (0, ("audit", *ONLY, "denied.yaml", "--write-baseline", "baseline.json")),
    (1, ("audit", *ONLY, "denied.yaml")),
    (1, ("audit", *ONLY, "warned.yaml")),
    (1, ("audit", *ONLY, "denied.yaml", "failing.yaml")),
    (2, ("audit", *ONLY, "broken.yaml")),
    (2, ("audit", *ONLY, "half.yaml")),
    (2, ("audit", *ONLY, "absent.yaml", "denied.yaml")),
    (0, ("audit", *ONLY, "nothing.yaml")),
    (0, ("audit", *ONLY, "values.yaml")),
    (2, ("audit", *ONLY, "values.yaml", "--require-input")),
    (2, ("audit", *ONLY, ".", "--include", "values.yaml", "--require-input")),
    (0, ("audit", *ONLY, ".", "--include", "good.yaml")),
    (2, ("audit", *ONLY, ".")),
    (1, ("audit", *ONLY, "values.yaml", "denied.yaml")),
    (0, ("audit", *ONLY, "values.yaml", "--no-require-input")),
    (0, ("audit", *ONLY, "nothing.yaml", "--no-require-input")),
    (2, ("audit", *ONLY, "good.yaml", "--exclude", "good.yaml", "--require-input")),
    (2, ("audit", *ONLY, "good.yaml", "-o", "pdf")),
    (2, ("audit", "--only", "absent", "good.yaml")),
    (0, ("audit", *ONLY, "failing.yaml")),
    (3, ("audit", *ONLY, "failing.yaml", "--fail-on", "warn,undecided")),
    (1, ("audit", *ONLY, "failing.yaml", "denied.yaml", "--fail-on", "warn,undecided")),
    (0, ("audit", GOOD)),
    (0, ("replay", *ONLY, "good.yaml")),
    (0, ("replay", *ONLY, "warned.yaml")),
    (1, ("replay", *ONLY, "denied.yaml")),
    (1, ("replay", *ONLY, "denied.yaml", "failing.yaml")),
    (2, ("replay", *ONLY, "half.yaml")),
    (2, ("replay", *ONLY, "nothing.yaml")),
    (0, ("replay", *ONLY, "failing.yaml")),
    (3, ("replay", *ONLY, "failing.yaml", "--fail-on", "deny,undecided")),
    (1, ("replay", *ONLY, "warned.yaml", "--fail-on", "warn")),
    (0, ("test", "passing")),
    (1, ("test", "failing")),
    (2, ("test", "passing", "--run", "no such")),
    (2, ("test", "none")),
    (2, ("test", "wrong")),
    (2, ("test", "absent")),
    (0, ("simulate", JOB.format("good/pytorchjob"), *WHOLE)),
    (2, ("why", "pytorchjob/none", *WHOLE)),
    (1, ("simulate", JOB.format("broken/volcano-job-quota"), *WHOLE)),
    (2, ("simulate", "broken.yaml")),
    (1, ("cel", "1 / (2 - 2)")),
    (3, ("simulate", JOB.format("good/mpijob"))),
    (0, ("policies", "check", str(HERE / "policies"), "--help")),
    (2, ("policies", "check", "absent")),
    (0, ("version",)),
    (0, ("-h",)),
    (2, ()),
    (2, ("audit",)),
    (2, ("adit", "x")),
]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    for name, text in TEXTS.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "suite.yaml").write_text(text)
        (tmp_path / name / "policy.yaml").write_text((HERE / "policies" / "policies.yaml").read_text())
    (tmp_path / "none").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("code", "arguments"),
    ROWS,
    ids=lambda value: " ".join(map(os.path.basename, value)) if isinstance(value, tuple) else str(value),
)
def test_a_command_exits_with_this_code(code, arguments, folder, capsys):
    assert run_command_line(arguments) == code
    told = "".join(capsys.readouterr())
    assert "Traceback" not in told
    assert told or code == 0


def test_every_exit_code_has_a_test_and_is_in_help(capsys):
    assert {code for code, _ in ROWS} == set(EXIT_CODES)
    run_command_line(["--help"])
    listed = re.findall(r"^ +(\d)  (.*)$", capsys.readouterr().out, re.MULTILINE)
    assert {int(code): meaning for code, meaning in listed} == EXIT_CODES


def test_findings_are_counted_even_if_a_file_cannot_be_read(folder, capsys):
    assert run_command_line(["audit", *ONLY, "half.yaml", "warned.yaml"]) == 2
    out, err = capsys.readouterr()
    assert "2 objects with findings in what could be read" in err
    assert "✖ fail" in out


def test_several_outputs_in_one_run_and_only_one_on_stdout(folder, capsys):
    assert (
        run_command_line(["audit", *ONLY, "denied.yaml", "-o", "sarif=a.sarif", "-o", "github", "-o", "junit=b.xml"])
        == 1
    )
    assert capsys.readouterr().out.startswith("::error ")
    assert (folder / "a.sarif").read_text().startswith("{")
    assert (folder / "b.xml").read_text().startswith("<?xml")
    assert run_command_line(["audit", *ONLY, "denied.yaml", "-o", "text", "-o", "json"]) == 2
    assert "only one format can go to stdout" in capsys.readouterr().err


def claimgate(*arguments, **more):
    return subprocess.Popen([sys.executable, "-m", "webhook", *arguments], text=True, **more)


def test_a_closed_stdout_exits_with_141(folder):
    (folder / "many.yaml").write_text("---\n".join([FILES["denied.yaml"]] * 3_000))
    command = claimgate("audit", *ONLY, "many.yaml", stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    command.stdout.readline()
    command.stdout.close()
    assert command.wait(60) == 141
    assert "Traceback" not in command.stderr.read()
    command.stderr.close()
