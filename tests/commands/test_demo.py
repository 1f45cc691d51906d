"""`claimgate demo`: five scenes, each with the command that repeats it."""

import subprocess
import sys

import pytest

from tests.page_blocks import ROOT
from webhook.cli import run_command_line
from webhook.commands import demo
from webhook.errors import ConfigurationError


def test_the_five_scenes(tmp_path, capfd, monkeypatch):
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("COLUMNS", "200")
    state = tmp_path / "state"
    assert run_command_line(["demo", "--dir", str(state)]) == 0
    out, err = capfd.readouterr()
    assert err == ""
    lines = out.splitlines()
    assert [line for line in lines if len(line) > 80 and str(state) not in line] == [], "make it fit 80 columns"
    # wrapped commands count as one line, because the folder of this test has a longer name than .demo
    in_one_line = out.replace(" \\\n", " ").splitlines()
    assert len(in_one_line) + len(("serve", "replay", "replay")) < 60
    assert [line[0] for line in lines if line[:1].isdigit() and line[1:3] == ". "] == ["1", "2", "3", "4", "5"]
    shown = [line.split()[2] for line in lines if line.startswith("$ claimgate ")]
    assert shown == ["certs", "serve", "replay", "replay", "audit", "simulate"]
    for scene in (
        "denied 422 Invalid",
        '/nvidia.com~1gpu = "1"',
        "launch/processes-and-gpus",
        "never starts unless the job or the cluster changes",
        "Next:",
    ):
        assert scene in out
    assert '"message": "ready"' in (state / "server.log").read_text()
    assert run_command_line(["demo", "--dir", str(state)]) == 0
    assert "$ claimgate certs rotate" in capfd.readouterr().out


def test_a_server_that_does_not_start_is_an_error(tmp_path, capfd):
    state = tmp_path / "state"
    state.mkdir()
    (state / "tls.crt").write_text("nothing")
    assert run_command_line(["demo", "--dir", str(state)]) == 2
    assert "error: " in capfd.readouterr().err


def test_a_server_that_ends_is_not_awaited(tmp_path):
    log = tmp_path / "log"
    log.write_text("it said why\n")
    with subprocess.Popen([sys.executable, "-c", "raise SystemExit(3)"]) as process:
        process.wait()
        with pytest.raises(ConfigurationError, match="the server ended with code 3: it said why"):
            demo._wait_for_port(process, log)
