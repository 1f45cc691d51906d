"""Any JSON in place of a value of a file gives findings or an error about the file, and never a bug of claimgate."""

from pathlib import Path

import pytest

from tests.fuzz.free_files import faults


def test_any_json_in_a_file_is_audited_and_simulated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert next(faults(1, 20, tmp_path, lambda: "".join(capsys.readouterr())), "") == ""


@pytest.mark.nightly
def test_any_json_in_hundreds_of_files_is_audited_and_simulated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert next(faults(2, 500, tmp_path, lambda: "".join(capsys.readouterr())), "") == ""
