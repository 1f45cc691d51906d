"""No name of an object, policy, suite or file can control a terminal or a CI system, at any place of the output.

Each text output gets a name that would clear the screen, reverse the line, and forge an error line.
"""

from __future__ import annotations

import json
import re
import shutil
import unicodedata
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from webhook.cli import run_command_line, run_with_traceback
from webhook.report.formats import format_names
from webhook.yamltext import yamlfile

WIDE = f"{'w' * 31} ::stop-commands::x {'w' * 71} ::stop-commands::x"
HOSTILE = (
    "a\x1b[2J\x9b1m\u202e\u2028\u200b\n::error file=x::y\r\n  ::error::z\n##[error]w [bold]b[/]\ud800" + f" {WIDE}"
)
IN_FILE = HOSTILE.replace("\ud800", "")  # a file name may contain everything except this, "/" and null
OF_GITHUB = re.compile(r"::(?:error|warning|notice) (?:file=[^,:]+,line=\d+,|title=)")
"""A command that the format `github` writes. No part of HOSTILE looks like it."""
POLICY = """\
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: named}
spec:
  matchConstraints:
    resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods]}]
  validations:
  - expression: "false"
    messageExpression: string(object.metadata.labels.said)
  - expression: object.metadata.labels.none == "x"
  variables:
  - {name: x, expression: "1"}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: named}
spec: {policyName: named, validationActions: [Deny]}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: warned}
spec: {policyName: named, validationActions: [Warn]}
"""
MUTATION = """\
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicy
metadata: {name: labels}
spec:
  reinvocationPolicy: Never
  matchConstraints:
    resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods]}]
  mutations:
  - patchType: JSONPatch
    jsonPatch: {expression: '[JSONPatch{op: "add", path: "/metadata/labels/copy", value: object.metadata.name}]'}
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicyBinding
metadata: {name: labels}
spec: {policyName: labels}
"""


@pytest.fixture(autouse=True, params=["", "1", "80"], ids=lambda width: f"COLUMNS={width}")
def width(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", request.param)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Write policies, a Pod and a suite with the hostile name at every possible place. Only JSON can have a lone
    surrogate.
    """
    (tmp_path / "policies").mkdir()
    (tmp_path / "policies" / "policy.yaml").write_text(POLICY)
    (tmp_path / "policies" / "mutation.yaml").write_text(MUTATION)
    (tmp_path / "objects").mkdir()
    (tmp_path / "objects" / "pod.json").write_text(json.dumps(pod()))
    (tmp_path / "objects" / f"{IN_FILE.replace('/', '')}.json").write_text(json.dumps([pod(), {"none": 1}]))
    return tmp_path


def pod() -> dict[str, Any]:
    labels = {"said": "::error::" + HOSTILE.replace("\n", "\r")}
    metadata = {"name": HOSTILE, "namespace": HOSTILE, "labels": labels, HOSTILE: HOSTILE}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {HOSTILE: 1}}


def assert_harmless(text: str) -> None:
    """Fail if the text has an invisible character, or a command of GitHub that claimgate did not write."""
    hidden = {each for each in text if unicodedata.category(each)[0] == "C" or each in "\u2028\u2029"} - {"\n"}
    assert not hidden, "write what users name as JSON, or through terminal.one_line of webhook/text/terminal.py"
    lines = text.split("\n")
    assert [line for line in lines if line.lstrip().startswith("::") and not OF_GITHUB.match(line)] == []
    assert "##[" not in text.replace(r"\x23#[", "")


def door(arguments: Sequence[str], capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    """Run a command and return its exit code and output. The output must be harmless."""
    code = run_with_traceback(lambda: run_command_line(arguments))
    captured = capsys.readouterr()
    assert_harmless(captured.out + captured.err)
    return code, captured.out + captured.err


@pytest.mark.parametrize("format_", ["text", "json", "svg"])
def test_queues(format_: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    quota = [{"name": HOSTILE, "nominalQuota": 1}]
    groups = [{"coveredResources": [HOSTILE], "flavors": [{"name": HOSTILE, "resources": quota}]}]
    spec = {"cohortName": HOSTILE, "namespaceSelector": {}, "stopPolicy": HOSTILE, "resourceGroups": groups}
    metadata, local = {"name": HOSTILE, "namespace": HOSTILE}, {"clusterQueue": HOSTILE}
    made = [
        {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": kind, "metadata": metadata, "spec": each}
        for kind, each in (("ClusterQueue", spec), ("LocalQueue", local), ("ResourceFlavor", {}))
    ]
    (folder / "queues.json").write_text(json.dumps(made))
    code, said = door(["queues", str(folder / "queues.json"), "-o", format_], capsys)
    assert code == 1
    if format_ == "json":
        assert {each["name"] for each in json.loads(said)["queues"]} == {HOSTILE.replace("\ud800", "\ufffd")}
    else:
        assert r"a\x1b[2J" in said


@pytest.mark.parametrize("format_", format_names())
def test_audit(format_: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["audit", str(folder / "objects"), "--only", str(folder / "policies"), "-o", format_]
    code, said = door(arguments, capsys)
    assert code == 1
    if format_ == "text":
        assert r"a\x1b[2J\x9b1m\u202e\u2028\u200b\n::error file=x::y" in said
        assert len(said.splitlines()) == len(said.split("\n")) - 1
    if format_ == "json":
        assert {each["object"]["name"] for each in json.loads(said)["findings"]} == {
            HOSTILE.replace("\ud800", "\ufffd")
        }


@pytest.mark.parametrize("format_", format_names())
def test_replay(format_: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    objects = [str(path) for path in sorted((folder / "objects").iterdir())]
    code, said = door(["replay", *objects, "--only", str(folder / "policies"), "-o", format_], capsys)
    assert code == 2  # one document of the input is not an object
    if format_ == "text":
        assert re.search(r"warning:\s+\\x3a:error::a", said)
        # the name is not at the start of the line, so it is not a command
        assert re.search(r"\*\s+(::|\\x3a:)error::a", said)


@pytest.mark.parametrize("format_", format_names())
def test_test(format_: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    value = pod() | {"metadata": {**pod()["metadata"], "name": IN_FILE}}
    expectations: list[dict[str, Any]] = [
        {"allowed": True},
        {"allowed": False, "message": IN_FILE, "warnings": [IN_FILE]},
        {"allowed": False, "patched": {"metadata": {"name": IN_FILE + "x"}}, "patch": [IN_FILE]},
    ]
    value = json.loads(json.dumps(value).replace("\\ud800", ""))
    cases = [{"name": f"{IN_FILE}{n}", "input": value, "expect": each} for n, each in enumerate(expectations)]
    cases.append({"name": "lost", "input": IN_FILE.replace("/", ""), "expect": {"allowed": True}})
    (folder / "policies" / "suite.yaml").write_text(yamlfile.dump({"cases": cases}))
    code, said = door(["test", str(folder / "policies"), "-o", format_], capsys)
    assert code == 1
    if format_ == "junit":
        assert len(ET.fromstring(said).findall(".//failure")) == 4
    if format_ == "text":
        assert r"\x1b[2J" in said


@pytest.mark.parametrize(
    "arguments",
    [["policies", "list"], ["policies", "check"], ["policies", "check", "-o", "json"], ["policies", "export"]],
)
def test_policies(arguments: list[str], folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = folder / IN_FILE.replace("/", "")
    (folder / "policies").rename(place)
    expected = 1 if "check" in arguments else 0  # the policies fail for a Pod without labels
    assert door([*arguments, str(place)], capsys)[0] == expected
    described = POLICY.replace(
        "{name: named}", json.dumps({"name": "named", "annotations": {"kubernetes.io/description": IN_FILE}}), 1
    )
    (place / "policy.yaml").write_text(described)
    assert door([*arguments, str(place)], capsys)[0] == expected
    (place / "policy.yaml").write_text(
        described.replace('"false"', json.dumps(f"1 +\n'{IN_FILE}'").replace("\\n", "\\\\n"))
    )
    code, said = door([*arguments, str(place)], capsys)
    assert code == 2
    assert "\n | " in said  # the text still points to the place in the expression


def test_pages_of_rules_of_other_policies_are_written_safely(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    own = folder / IN_FILE.replace("/", "")
    shutil.copytree(Path(__file__).parents[2] / "policies" / "served-versions", own)
    suite = yamlfile.read(own / "suite.yaml")[0].value
    for number, case in enumerate(suite["cases"][:2]):
        case["name"] = f"{IN_FILE}{number}"
        case["input"]["metadata"] = {"name": IN_FILE, "namespace": IN_FILE, IN_FILE: f"a\n{IN_FILE}"}
    (own / "suite.yaml").write_text(json.dumps(suite))
    code, said = door(["policies", "rules", str(own)], capsys)
    assert code == 0
    assert "stop-commands" in said


def test_configuration(folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(folder)
    excepted = {"rules": ["pod-resources/whole-number"], "owner": IN_FILE, "reason": IN_FILE, "expires": "2020-01-01"}
    file = {
        "exceptions": [{**excepted, "names": [IN_FILE]}],
        "context": ["objects"],
        "ignore": {"namespaces": [IN_FILE]},
    }
    (folder / "objects").rename(folder / IN_FILE.replace("/", ""))
    (folder / "claimgate.yaml").write_text(json.dumps({**file, "context": [IN_FILE.replace("/", "")]}))
    assert door(["config", "show"], capsys)[0] == 0
    assert door(["config", "check"], capsys)[0] == 0
    (folder / "claimgate.yaml").write_text(json.dumps({IN_FILE: 1, "levels": {"rules": {IN_FILE: "warn"}}}))
    assert door(["config", "show"], capsys)[0] == 2


@pytest.mark.parametrize("format_", ["text", "json"])
def test_backtest(format_: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    event = {
        "kind": "Event",
        "apiVersion": "audit.k8s.io/v1",
        "stage": "ResponseComplete",
        "verb": "create",
        "user": {"username": HOSTILE},
        "objectRef": {"resource": "pods", "namespace": HOSTILE, "apiVersion": "v1", "name": HOSTILE},
        "responseStatus": {"code": 201},
        "requestObject": pod(),
    }
    log = folder / f"{IN_FILE.replace('/', '')}.log"
    log.write_text(f"{json.dumps(event)}\n{HOSTILE!a}\n")
    code, said = door(["backtest", str(log), "--only", str(folder / "policies"), "-o", format_], capsys)
    assert code == 2  # one line of the log is not an event
    assert "stop-commands" in said


REFUSED = {
    "a file that does not exist": ["audit", IN_FILE],
    "an invalid verb": [IN_FILE],
    "an invalid option": ["audit", f"--{IN_FILE}"],
    "an invalid format": ["audit", "x", "-o", IN_FILE],
    "a suite that does not exist": ["test", IN_FILE],
    "an expression": ["cel", IN_FILE],
    "an expression that fails": ["cel", f"{{'a': 1}}[{json.dumps(IN_FILE)}]"],
    "a certificate secret": ["certs", "show", "--secret", IN_FILE.replace("/", "")],
    "a server": ["replay", "x", "--server", IN_FILE],
    "a configuration": ["webhook-config", "--name", IN_FILE, "--service", "a/b"],
}


@pytest.mark.parametrize("arguments", REFUSED.values(), ids=REFUSED.keys())
def test_errors(
    arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    code, said = door(arguments, capsys)
    assert code >= (1 if arguments[0] == "cel" else 2)
    assert "\\x1b[2J" in said or arguments[0] == "cel"


def test_a_file_that_cannot_be_read(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / f"{IN_FILE.replace('/', '')}.yaml").write_text("kind: [\n::error::x\n")
    code, said = door(["audit", str(folder)], capsys)
    assert code == 2
    assert all(line.startswith("error: ") for line in said.splitlines() if "not YAML" in line)


def test_a_value_of_cel(capsys: pytest.CaptureFixture[str]) -> None:
    value = json.dumps(IN_FILE).replace("\\u202e", "\u202e")
    assert json.loads(door(["cel", value], capsys)[1].splitlines()[0]) == IN_FILE


def test_an_internal_error(capsys: pytest.CaptureFixture[str]) -> None:
    def fail() -> int:
        raise ValueError(HOSTILE)

    assert run_with_traceback(fail) == 70
    assert_harmless(capsys.readouterr().err)
