"""`claimgate cel` prints the value, type and cost of an expression, or its error with a caret. It also runs corpora of
expressions.
"""

import io
import json
import os
import pty
import subprocess
import sys

import pytest

from webhook.cli import run_command_line


def cel(capsys, *arguments):
    code = run_command_line(["cel", *arguments])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


@pytest.mark.parametrize(
    "expression, text",
    [
        ("1 + 2", "3\ntype: int\ncost: 1\n"),
        ("'é' + \"'\"", '"é\'"\ntype: string\ncost: 1\n'),
        ("{'a': [1.5, 2.0]}", '{"a": [1.5, 2.0]}\ntype: map(string, list(double))\ncost: 0\n'),
        ("quantity('1500m')", '"1500m"\ntype: kubernetes.Quantity\ncost: 1\n'),
        ("0.0 / 0.0", '"nan"\ntype: double\ncost: 1\n'),
    ],
)
def test_value_type_and_cost(capsys, expression, text):
    assert cel(capsys, expression) == (0, text, "")


def test_a_refusal_shows_its_caret(capsys):
    code, out, _ = cel(capsys, "1 + 'a'")
    assert code == 2
    assert (
        out
        == "ERROR: <input>:1:3: found no matching overload for '_+_' applied to '(int, string)'\n | 1 + 'a'\n | ..^\n"
    )


def test_a_failure_is_not_a_value(capsys):
    assert cel(capsys, "1 / (2 - 2)") == (1, "error: division by zero\ntype: int\ncost: 2\n", "")


def test_bindings_of_a_file_are_variables(capsys, tmp_path):
    file = tmp_path / "bindings.yaml"
    file.write_text("object: {spec: {replicas: 3}}\nlimit: 2\n")
    assert cel(capsys, "object.spec.replicas <= limit", "--bindings", str(file))[1].startswith("false\n")
    file.write_text("[1]")
    code, _, err = cel(capsys, "1", "--bindings", str(file))
    assert code == 2
    assert "must be one object with the names of variables as keys" in err


def test_json(capsys):
    code, out, _ = cel(capsys, "[1u]", "-o", "json")
    assert (code, json.loads(out)) == (
        0,
        {"value": [1], "typed": {"list": [{"uint": "1"}]}, "type": "list(uint)", "cost": 0},
    )
    code, out, _ = cel(capsys, "x", "-o", "json")
    assert (code, json.loads(out)["phase"]) == (2, "compile")
    code, out, _ = cel(capsys, "[1][lists.range(3)[1]]", "-o", "json")
    assert (code, json.loads(out)["error"]) == (1, "index out of bounds: 1")


def test_versions_and_engines(capsys):
    assert cel(capsys, "[1].slice(0, 1)", "--kubernetes-version", "1.33")[0] == 2
    assert cel(capsys, "[1].slice(0, 1)", "--kubernetes-version", "1.34")[0] == 0
    assert cel(capsys, "1", "--kubernetes-version", "two")[0] == 2
    assert cel(capsys, "[1, 2].exists(x, x > 1)", "--cel-engine", "celpy")[1].startswith("true\n")


def test_cases(capsys, tmp_path):
    file = tmp_path / "few.jsonl"
    rows = [
        {"expr": "1 + 1", "expect": {"int": "2"}, "runtime_cost": 1},
        {"id": "mine", "expr": "x", "expect": {"int": "2"}},
    ]
    file.write_text("\n".join(map(json.dumps, rows)))
    code, out, _ = cel(capsys, "--cases", str(file))
    assert code == 1
    assert out.startswith('mine: x\n  expected {"int": "2"}\n  found    compile error: ERROR: <input>:1:1: undeclared')
    assert out.endswith("\n1 of 2 passed, 1 of 1 costs equal\n")
    code, out, _ = cel(capsys, "--cases", str(file), "-o", "json")
    assert (code, json.loads(out)) == (
        1,
        {"total": 2, "passed": 1, "failed": ["mine"], "cost_equal": 1, "cost_rows": 1},
    )
    file.write_text(json.dumps(rows[0]))
    assert cel(capsys, "--cases", str(file)) == (0, "1 of 1 passed, 1 of 1 costs equal\n", "")


@pytest.mark.parametrize(
    "arguments, complaint",
    [
        ((), "an expression is required"),
        (("1", "--cases", "x.jsonl"), "--cases: a corpus has its own expressions"),
        (("--cases", "missing.jsonl"), "error: missing.jsonl: cannot be read: no such file or directory\n"),
        (("1", "-o", "yaml"), "unknown format `yaml`"),
    ],
)
def test_bad_usage(capsys, monkeypatch, arguments, complaint):
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    code, _, err = cel(capsys, *arguments)
    assert code == 2
    assert complaint in err


def test_a_prompt_on_a_terminal_evaluates_expressions(tmp_path):
    parent, child = pty.openpty()
    environment = {**os.environ, "XDG_STATE_HOME": str(tmp_path), "TERM": "dumb"}
    process = subprocess.Popen(
        [sys.executable, "-m", "webhook", "cel"], stdin=child, stdout=child, stderr=child, env=environment
    )
    os.close(child)
    os.write(parent, b"1 + 2\nx\n\n:q\n")
    seen = b""
    try:
        while chunk := os.read(parent, 4096):
            seen += chunk
    except OSError:  # the terminal closes when its last process ends
        pass
    os.close(parent)
    assert process.wait() == 0
    assert b"type: int" in seen
    assert b"undeclared reference to 'x'" in seen
    assert "1 + 2" in (tmp_path / "claimgate" / "cel-history").read_text()
