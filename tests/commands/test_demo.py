"""`claimgate demo`: the whole way once, with every step shown as the command line that repeats it."""

import subprocess
import sys
from pathlib import Path

import pytest

from webhook.cli import run_command_line
from webhook.commands import demo
from webhook.errors import ConfigurationError

SAMPLES = Path(__file__).parents[2] / "deploy" / "samples"


def test_the_whole_way(tmp_path, capfd):
    state = tmp_path / "state"
    assert run_command_line(["demo", "--dir", str(state)]) == 0
    out, err = capfd.readouterr()
    assert err == ""
    shown = [line.split()[2] for line in out.splitlines() if line.startswith("$ claimgate ")]
    assert shown == ["certs", "serve", "replay", "audit"]
    rows = {line.split()[0]: line.split()[1:4] for line in out.splitlines() if line.startswith(" 0")}
    assert rows.keys() == {file.stem for file in (SAMPLES / "reviews").iterdir()}
    assert rows["02-pytorchjob-portable-gpu"][:2] == ["allowed", "200"]
    assert rows["03-batchsandbox-gpu-all"] == ["denied", "BadRequest", "400"]
    assert "add …/resources/limits/nvidia.com~1gpu" in out
    assert "objects in" in out
    assert '"message": "ready"' in (state / "server.log").read_text()
    assert run_command_line(["demo", "--dir", str(state)]) == 0
    assert "$ claimgate certs rotate" in capfd.readouterr().out


def test_a_server_that_does_not_start_is_an_error(tmp_path, capfd):
    state = tmp_path / "state"
    state.mkdir()
    (state / "tls.crt").write_text("nothing")
    assert run_command_line(["demo", "--dir", str(state)]) == 2
    assert "error: " in capfd.readouterr().err


def test_a_server_that_ends_is_not_waited_for(tmp_path):
    log = tmp_path / "log"
    log.write_text("it said why\n")
    with subprocess.Popen([sys.executable, "-c", "raise SystemExit(3)"]) as process:
        process.wait()
        with pytest.raises(ConfigurationError, match="the server ended with code 3: it said why"):
            demo._wait_for_port(process, log)


def test_short_pointers():
    assert demo._end_of_pointer("/a/b") == "/a/b"
    assert demo._end_of_pointer("/spec/containers/0/resources") == "…/containers/0/resources"
