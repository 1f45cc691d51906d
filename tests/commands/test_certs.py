"""`claimgate certs`: its output, its files, and its exit codes."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from certs.keep import Days, issue
from certs.store import Folder
from webhook.cli import run_command_line

Capture = pytest.CaptureFixture[str]
SAMPLE = Path(__file__).parents[2] / "deploy/samples/reviews/01-pod-with-claim.json"


def test_certificates_are_issued_shown_and_rotated(tmp_path: Path, capsys: Capture) -> None:
    folder = ["--dir", str(tmp_path)]
    assert run_command_line(["certs", "issue", *folder, "--service", "gate/claimgate", "--name", "127.0.0.1"]) == 0
    assert "for claimgate.gate.svc, claimgate.gate.svc.cluster.local" in capsys.readouterr().out
    assert run_command_line(["certs", "show", *folder, "-o", "json"]) == 0
    authority, serving = json.loads(capsys.readouterr().out)
    assert (authority["file"], authority["isAuthority"]) == ("ca.crt", True)
    assert serving["names"][0] == "claimgate.gate.svc"
    assert serving["names"][-1] == "127.0.0.1"
    assert run_command_line(["certs", "rotate", *folder]) == 0
    assert capsys.readouterr().out == "nothing is due\n"
    before = (tmp_path / "tls.crt").read_bytes()
    assert run_command_line(["certs", "rotate", *folder, "--name", "other", "--dry-run"]) == 0
    assert capsys.readouterr().out == "the serving certificate lacks other\n"
    assert (tmp_path / "tls.crt").read_bytes() == before


def test_the_signing_authority_is_marked_beside_a_former_one(tmp_path: Path, capsys: Capture) -> None:
    folder = ["--dir", str(tmp_path)]
    run_command_line(["certs", "issue", *folder])
    former = (tmp_path / "ca.crt").read_bytes()
    run_command_line(["certs", "issue", *folder, "--replace"])
    for content in (former + (tmp_path / "ca.crt").read_bytes(), (tmp_path / "ca.crt").read_bytes() + former):
        (tmp_path / "ca.crt").write_bytes(content)
        capsys.readouterr()
        run_command_line(["certs", "show", *folder])
        shown = [line for line in capsys.readouterr().out.splitlines() if line.startswith("ca.crt")]
        assert [line.endswith("  signed tls.crt") for line in shown].count(True) == 1, shown
    (tmp_path / "ca.crt").write_bytes(former)
    capsys.readouterr()
    run_command_line(["certs", "show", *folder])
    assert "signed" not in capsys.readouterr().out


def test_a_certificate_without_names_is_for_this_machine(tmp_path: Path, capsys: Capture) -> None:
    assert run_command_line(["certs", "issue", "--dir", str(tmp_path)]) == 0
    assert "for localhost, 127.0.0.1, ::1" in capsys.readouterr().out


def test_a_certificate_due_for_renewal_is_a_finding(tmp_path: Path) -> None:
    issue(Folder(tmp_path), ["a"], now=datetime.now(UTC) - timedelta(days=80), days=Days(serving=90))
    assert run_command_line(["certs", "show", "--dir", str(tmp_path)]) == 1


REFUSED = {
    "no place": (["issue"], "either --dir or --secret"),
    "two places": (["show", "--dir", "x", "--secret", "a/b"], "either --dir or --secret"),
    "a secret without a namespace": (["show", "--secret", "b"], "--secret: expected NAMESPACE/NAME, found `b`"),
    "a service in three parts": (
        ["issue", "--dir", "x", "--service", "a/b/c"],
        "--service: expected NAMESPACE/NAME, found `a/b/c`",
    ),
    "an invalid name": (["issue", "--dir", "x", "--name", "a b"], "`a b` is neither a DNS name nor an IP address"),
    "nothing to show": (["show", "--dir", "x"], "there is no certificate in x; make one with `claimgate certs issue`"),
    "nothing to inject": (["inject", "claimgate", "--dir", "x"], "there is no ca.crt in x; make one"),
    "no such kubeconfig": (
        ["show", "--secret", "a/b", "--kubeconfig", "nowhere"],
        "kubeconfig nowhere: no such file; name a kubeconfig with --kubeconfig",
    ),
    "an invalid kubeconfig": (
        ["show", "--secret", "a/b", "--kubeconfig", __file__],
        "expected YAML with clusters, users, contexts and current-context; name a kubeconfig with --kubeconfig",
    ),
    "a folder for a kubeconfig": (["show", "--secret", "a/b", "--kubeconfig", "."], "kubeconfig .: is a directory"),
    "another object for a kubeconfig": (
        ["show", "--secret", "a/b", "--kubeconfig", str(SAMPLE)],
        "Expected key current-context",
    ),
}


@pytest.mark.parametrize(("arguments", "message"), REFUSED.values(), ids=REFUSED.keys())
def test_invalid_arguments_exit_with_2_and_one_line(
    arguments: list[str], message: str, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run_command_line(["certs", *arguments]) == 2
    assert message in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


UNREADABLE = {
    "the bundle, shown": ("ca.crt", "show", "error: ca.crt: a PEM certificate is required"),
    "the certificate, shown": ("tls.crt", "show", "error: tls.crt: a PEM certificate is required"),
    "the certificate, rotated": ("tls.crt", "rotate", "error: tls.crt: a PEM certificate is required"),
    "the key, rotated": ("tls.key", "rotate", "error: tls.key: the private key is not an unencrypted PEM key"),
}


@pytest.mark.parametrize(("file", "verb", "message"), UNREADABLE.values(), ids=UNREADABLE.keys())
def test_a_file_that_cannot_be_read_is_named(
    file: str, verb: str, message: str, tmp_path: Path, capsys: Capture
) -> None:
    assert run_command_line(["certs", "issue", "--dir", str(tmp_path)]) == 0
    (tmp_path / file).write_text("hello")
    assert run_command_line(["certs", verb, "--dir", str(tmp_path)]) == 2
    assert capsys.readouterr().err.startswith(message)
