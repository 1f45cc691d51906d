"""The command line promises: one exit-code table, one form of error, imports only of the verb that is used."""

import os
import subprocess
import sys

import pytest

from webhook import __version__
from webhook.cli import EXIT_CODES, VERBS, run
from webhook.commands.output import Output, parse
from webhook.errors import ConfigurationError


def test_help_names_every_verb_and_every_exit_code(capsys):
    assert run(["--help"]) == 0
    text = " ".join(capsys.readouterr().out.split())
    for verb, summary in VERBS.items():
        assert verb in text
        assert summary in text
    for code, meaning in EXIT_CODES.items():
        assert f"{code} {meaning}" in text


def test_version_is_the_distribution_s(capsys):
    assert run(["--version"]) == 0
    assert capsys.readouterr().out == f"claimgate {__version__}\n"


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        pytest.param(["nope"], "error: no such command 'nope' (see `claimgate --help`)", id="unknown verb"),
        pytest.param(["--nope"], "error: no such option: --nope", id="unknown flag"),
        pytest.param(["replay"], "error: missing argument 'FIXTURE'", id="no fixture"),
        pytest.param(["replay", "--phase", "later", "x"], "error: invalid value for '--phase'", id="bad phase"),
    ],
)
def test_bad_usage_is_exit_2_and_one_error_line(arguments, expected, capsys):
    assert run(arguments) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(expected)
    assert err.count("error: ") == 1


def test_no_verb_prints_help_on_stderr_and_is_bad_usage(capsys):
    assert run([]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("Usage: claimgate")


def test_help_imports_no_verb():
    code = (
        "import sys; from webhook.cli import run; run(['--help']);"
        "sys.exit(','.join(name for name in sys.modules if name.startswith('webhook.commands')) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_a_reader_that_goes_away_is_no_traceback():
    reader, writer = os.pipe()
    os.close(reader)
    try:
        done = subprocess.run(
            [sys.executable, "-m", "webhook", "--help"], stdout=writer, stderr=subprocess.PIPE, text=True, check=False
        )
    finally:
        os.close(writer)
    assert (done.returncode, done.stderr) == (141, "")


def test_a_terminal_without_utf_8_is_no_reason_to_fail():
    environment = {**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONIOENCODING": "ascii"}
    fixture = '{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "caf\u00e9"}}'
    done = subprocess.run(
        [sys.executable, "-m", "webhook", "replay", "-"],
        input=fixture,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "CREATE Node caf\\xe9" in done.stdout


@pytest.mark.parametrize(
    ("chosen", "expected"),
    [
        pytest.param(None, (Output("text"),), id="text when nothing is chosen"),
        pytest.param(["json=-"], (Output("json"),), id="a dash is stdout"),
        pytest.param(
            ["text", "json=a=b"], (Output("text"), Output("json", "a=b")), id="one for stdout, one for a file"
        ),
    ],
)
def test_outputs(chosen, expected):
    assert parse(chosen, ("text", "json")) == expected


@pytest.mark.parametrize(
    ("chosen", "message"),
    [
        pytest.param(["xml"], "unknown format `xml`, expected one of text, json", id="unknown format"),
        pytest.param(["json="], "`json=` names no file", id="no file"),
        pytest.param(["json", "text"], "only one format can go to stdout", id="two for stdout"),
    ],
)
def test_bad_outputs_are_configuration_errors(chosen, message):
    with pytest.raises(ConfigurationError, match=message):
        parse(chosen, ("text", "json"))
