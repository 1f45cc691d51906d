"""JSON that is nested too deeply is reported as a mistake of its file, by each command that reads the file."""

from __future__ import annotations

from pathlib import Path

import pytest

from webhook.cli import run_command_line, run_with_traceback

DEEP = '{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": ' + '{"a":' * 5000 + "1" + "}" * 5001
"""Deeper than Python's own JSON reader accepts."""
FEW = DEEP.replace('{"a":' * 5000, '{"a":' * 300).replace("}" * 5001, "}" * 301)
"""Python's own JSON reader accepts this depth."""


@pytest.mark.parametrize("text", [DEEP, FEW], ids=["5,000 levels", "300 levels"])
@pytest.mark.parametrize(
    "arguments",
    [
        ["config", "check", "{}"],
        ["audit", "--config", "{}", "good.json"],
        ["audit", "--workloads", "{}", "good.json"],
        ["audit", "--baseline", "{}", "good.json"],
        ["policies", "new", "own", "--case", "{}"],
        ["policies", "check", "{}"],
        ["policies", "convert", "{}"],
        ["replay", "--authorizer", "{}", "good.json"],
        ["audit", "--only", "{}", "good.json"],
        ["test", "{}"],
        ["backtest", "{}"],
        ["rollout", "{}"],
        ["queues", "{}"],
        ["why", "pod/a", "--context", "{}"],
    ],
    ids=" ".join,
)
def test_a_deep_file_is_reported_as_a_mistake_of_the_file(
    arguments: list[str], text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("deep.json").write_text(text)
    Path("good.json").write_text('{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}}')
    code = run_with_traceback(lambda: run_command_line([each.format("deep.json") for each in arguments]))
    said = capsys.readouterr()
    assert "Traceback" not in said.err
    assert code == (0 if arguments[0] == "queues" else 2), said.err
