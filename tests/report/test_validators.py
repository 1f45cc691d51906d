"""Schemas and programs of the owners of the formats validate the golden files.

CLAIMGATE_VALIDATORS names their folder (docs/formats.md). `make formats` runs these tests.
"""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from webhook import __version__

pytestmark = pytest.mark.nightly

FOLDER = Path(os.environ.get("CLAIMGATE_VALIDATORS") or "/nonexistent")
GOLDEN = Path(__file__).parents[1] / "data" / "reports" / "golden"
SEVERITIES = {"info", "minor", "major", "critical", "blocker"}
"""From the specification of Code Climate (codeclimate/platform spec/analyzers/SPEC.md, Issues)."""


def validator(name):
    if not (FOLDER / name).exists():
        pytest.skip(f"no {name}: CLAIMGATE_VALIDATORS names a folder without it")
    return FOLDER / name


def program(name):
    if shutil.which(name) is None:
        pytest.skip(f"no {name} on this machine")
    return name


def golden(name, tmp_path):
    """Return a golden file with the version of this program in place of the placeholder."""
    file = tmp_path / name
    file.write_text((GOLDEN / name).read_text().replace("VERSION", __version__))
    return file


def run(*command):
    done = subprocess.run([str(each) for each in command], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def test_sarif_fits_the_schema_of_oasis(tmp_path):
    from jsonschema import Draft4Validator

    schema = json.loads(validator("sarif-schema-2.1.0.json").read_text())
    Draft4Validator.check_schema(schema)
    log = json.loads(golden("audit-sarif.sarif", tmp_path).read_text())
    assert [each.message for each in Draft4Validator(schema).iter_errors(log)] == []
    assert log["runs"][0]["results"]


@pytest.mark.parametrize("verb", ["audit", "replay", "test"])
def test_junit_fits_the_schema_of_jenkins(verb, tmp_path):
    schema = validator("junit-10.xsd")
    run(program("xmllint"), "--noout", "--schema", schema, golden(f"{verb}-junit.xml", tmp_path))


def test_code_quality_fits_the_schema_of_gitlab(tmp_path):
    from jsonschema import Draft202012Validator

    schema = Draft202012Validator(json.loads(validator("codeclimate.json").read_text()))
    issues = json.loads(golden("audit-gitlab.json", tmp_path).read_text())
    assert [each.message for issue in issues for each in schema.iter_errors(issue)] == []
    assert {issue["severity"] for issue in issues} <= SEVERITIES
    assert len({issue["fingerprint"] for issue in issues}) == len(issues) > 0


def test_html_has_no_error(tmp_path):
    """vnu may only warn that style and script need a hash. Browsers compute hashes, and vnu does not."""
    jar = validator("node_modules/vnu-jar/build/dist/vnu.jar")
    told = run(program("java"), "-jar", jar, "--format", "gnu", golden("audit-html.html", tmp_path)).splitlines()
    assert [line for line in told if ": " in line and "violates Content Security Policy" not in line] == []


ACTIONS = """
import { error, warning, notice } from "@actions/core"
const say = { error, warning, notice }
for (const { command, message, properties } of JSON.parse(process.argv[2])) say[command](message, properties)
"""


def test_annotations_are_what_the_toolkit_of_github_writes(tmp_path):
    """Each line is parsed as by the runner, and @actions/core writes the same line."""
    validator("node_modules/@actions/core/package.json")
    lines = golden("audit-github.txt", tmp_path).read_text().splitlines()
    script = FOLDER / "annotations.mjs"
    script.write_text(ACTIONS)
    told = run(program("node"), script, json.dumps([*map(taken_apart, lines)])).splitlines()
    assert [taken_apart(line) for line in told] == [taken_apart(line) for line in lines]
    assert len(lines) > 3


def taken_apart(line):
    """Parse a workflow command as actions/runner does (src/Runner.Common/ActionCommand.cs, TryParseV2)."""
    assert line.startswith("::")
    head, _, data = line[2:].partition("::")
    command, _, listed = head.partition(" ")
    properties = dict(each.split("=", 1) for each in listed.split(",") if each)
    named = {
        {"col": "startColumn", "line": "startLine"}.get(key, key): unescaped(value) for key, value in properties.items()
    }
    numbers = {key: int(value) if key.startswith("start") else value for key, value in named.items()}
    return {"command": command, "message": unescaped(data), "properties": numbers}


def unescaped(text):
    for escape, character in (("%0D", "\r"), ("%0A", "\n"), ("%3A", ":"), ("%2C", ","), ("%25", "%")):
        text = text.replace(escape, character)
    return text
