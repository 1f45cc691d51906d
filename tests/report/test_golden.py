"""The output of each format for the same audit, replay and test, as reviewed files.

`pytest tests/report --update-golden` rewrites them, and the difference is reviewed like code.
"""

import re
from pathlib import Path

import pytest

from tests.golden import compare_with_golden_file
from webhook import __version__
from webhook.cli import run_command_line
from webhook.report import formats

HERE = Path(__file__).parents[1] / "data" / "reports"
RULES = ("denies", "warns", "fails", "training-job", "pod-resources", "claims-exactly-one", "device-claims")
AUDIT = ("audit", "objects", "--policies", "../commands/policies", *(f"--rule={rule}" for rule in RULES))
REPLAY = ("replay", "objects/team.yaml", "--only", "../commands/policies")
TEST = ("test", "suite")
ENDINGS = {
    "text": "txt",
    "github": "txt",
    "policyreport": "yaml",
    "openreports": "yaml",
    "junit": "xml",
    "markdown": "md",
    "gitlab": "json",
}
VERBS = {"audit": AUDIT, "replay": REPLAY, "test": TEST}
CASES = [
    *(("audit", name) for name in formats.format_names()),
    *((verb, name) for verb in ("replay", "test") for name in ("text", "json", "ndjson", "junit")),
]

WHOLE = (("replay", "json"), ("replay", "ndjson"))
"""These formats have objects or responses on request. No other format has values of env."""


def written(arguments, monkeypatch, capsys):
    monkeypatch.chdir(HERE)
    run_command_line(arguments)
    text = capsys.readouterr().out.replace(__version__, "VERSION")
    return re.sub(r'<details id="run".*?</details>', "HOW IT WAS MADE", text)


def compare(name, text, request):
    compare_with_golden_file(HERE / "golden" / name, text, request.config)


@pytest.mark.parametrize(("verb", "name"), CASES)
def test_each_format_writes_its_golden_output(verb, name, monkeypatch, capsys, request):
    text = written([*VERBS[verb], "-o", name], monkeypatch, capsys)
    compare(f"{verb}-{name}.{ENDINGS.get(name, name)}", text, request)
    if (verb, name) not in WHOLE:
        assert "hunter2" not in text


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("columns", ["80", "200"])
def test_text_on_a_terminal_has_colours_and_fits(verb, columns, monkeypatch, capsys, request):
    monkeypatch.setenv("COLUMNS", columns)
    monkeypatch.setenv("FORCE_COLOR", "1")
    text = written(VERBS[verb], monkeypatch, capsys)
    compare(f"{verb}-text-{columns}.txt", text.replace("\x1b", "ESC"), request)
