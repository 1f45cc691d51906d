"""An object may have any JSON that an API server stores. Such JSON never changes the result of a command."""

from __future__ import annotations

import json
from pathlib import Path
from shutil import copytree
from typing import Any

import pytest

from tests.fuzz.free_fields import DENIED
from tests.rows import some_quickly
from webhook.cli import run_command_line
from webhook.input import shipped

STORED = {
    "deep": b"[" * 300 + b"]" * 300,
    "as deep as an API server reads": b"[" * 9_900 + b"]" * 9_900,
    "a byte that is not UTF-8": b'{"\xff":1}',
    "half of a surrogate pair": rb'"\ud800"',
    "a surrogate pair": rb'"\ud83d\ude00"',
    "a character that YAML does not have": b'"\x7f"',
    "a number that no double holds": b"1e999",
}
stored_json = pytest.mark.parametrize("stored", STORED.values(), ids=STORED.keys())
CLAIM = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "ResourceClaim",
    "spec": DENIED[-1][2],
    "metadata": {"name": "x", "namespace": "n", "managedFields": [{"fieldsV1": {"f:x": "here"}}]},
}
JOB = {
    "apiVersion": "kubeflow.org/v1",
    "kind": "PyTorchJob",
    "spec": DENIED[2][2],
    "metadata": {"name": "x", "namespace": "n", "managedFields": [{"fieldsV1": {"x": "here"}}]},
}
NAMES = {"kind": {"group": "resource.k8s.io", "version": "v1", "kind": "ResourceClaim"}}
RESOURCE = {"group": "resource.k8s.io", "version": "v1", "resource": "resourceclaims"}
REVIEW = {
    "apiVersion": "admission.k8s.io/v1",
    "kind": "AdmissionReview",
    "request": {"uid": "u", **NAMES, "resource": RESOURCE, "operation": "CREATE", "namespace": "n", "object": CLAIM},
}
EVENT = {
    "kind": "Event",
    "apiVersion": "audit.k8s.io/v1",
    "level": "Request",
    "auditID": "u",
    "stage": "ResponseComplete",
    "requestURI": "/apis",
    "verb": "create",
    "user": {"username": "alice"},
    "objectRef": {
        "resource": "resourceclaims",
        "apiGroup": "resource.k8s.io",
        "apiVersion": "v1",
        "namespace": "n",
        "name": "x",
    },
    "responseStatus": {"code": 201},
    "requestObject": CLAIM,
}


def told(
    capsys: pytest.CaptureFixture[str], file: Path, value: Any, stored: bytes, *command: str
) -> tuple[int, str, str]:
    file.write_bytes(json.dumps(value).encode().replace(b'"here"', stored))
    code = run_command_line([*command, str(file)])
    printed = capsys.readouterr()
    return code, printed.out, printed.err


@pytest.mark.parametrize("stored", some_quickly(STORED.values(), 3), ids=STORED.keys())
@pytest.mark.parametrize("command", ["audit", "replay", "backtest", "simulate"])
def test_a_command_reports_the_same_about_stored_json(
    command: str, stored: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    value = {"audit": CLAIM, "replay": REVIEW, "backtest": EVENT, "simulate": JOB}[command]
    asked = (command, "-o", "json")
    plain = told(capsys, tmp_path / "file.json", value, b"{}", *asked)
    assert plain[0] == 1
    assert told(capsys, tmp_path / "file.json", value, stored, *asked) == plain


@stored_json
def test_a_suite_has_the_same_results_for_stored_json(
    stored: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    copytree(Path(shipped.policies_folder()) / "nvidia-device-configs", tmp_path, dirs_exist_ok=True)
    suite = tmp_path / "suite.yaml"
    suite.write_text("cases:\n- name: a claim\n  input: file.json\n  expect: {allowed: false}\n")
    (tmp_path / "file.json").write_bytes(json.dumps(CLAIM).encode().replace(b'"here"', stored))
    assert run_command_line(["test", str(suite)]) == 0, capsys.readouterr()


@stored_json
def test_a_finding_has_its_line_in_a_file_with_stored_json(
    stored: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, printed, _ = told(capsys, tmp_path / "file.json", CLAIM, stored, "audit")
    assert code == 1
    assert "file.json:1" in printed
    assert "`Never` must be one of" in printed


def test_json_with_unclosed_brackets_is_a_problem(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, _, error = told(capsys, tmp_path / "file.json", CLAIM, b"[" * 10_000, "audit")
    assert (code, "not JSON" in error) == (2, True)
