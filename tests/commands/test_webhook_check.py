"""`claimgate webhook-config --check` on files; on clusters it is tests/e2e/test_install.py's."""

from __future__ import annotations

from pathlib import Path

import pytest

from webhook.cli import run_command_line

BASE = Path(__file__).parents[2] / "deploy" / "base"


def test_the_base_cannot_block_a_cluster(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command_line(["webhook-config", "--check", str(BASE)]) == 0
    assert capsys.readouterr().out == "nothing can block the cluster\n"


def test_what_fails_closed_without_a_bundle_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command_line(["webhook-config", "--failure-policy", "Fail"]) == 0
    file = tmp_path / "enforced.yaml"
    file.write_text(capsys.readouterr().out)
    assert run_command_line(["webhook-config", "--check", str(file)]) == 1
    assert capsys.readouterr().out.count("no call of it can succeed, because it has no caBundle") == 10


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--check"], "--check needs either PATH or --live"),
        (["x.yaml"], "PATH needs --check"),
        (["--watch"], "--watch needs --live"),
        (["--watch", "--live", "--rbac"], "neither --check nor --rbac"),
        (["--check", "x.yaml", "--live"], "--check needs either PATH or --live"),
        (["--check", str(BASE / "service.yaml")], "there is no webhook configuration"),
    ],
)
def test_what_cannot_be_checked(arguments: list[str], expected: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command_line(["webhook-config", *arguments]) == 2
    assert expected in capsys.readouterr().err
